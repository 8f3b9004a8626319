#!/bin/bash
# What it takes to add an operator: a copy of the tree gets the five files of tests/toy_operator and a line in
# families.txt, nothing else. It is judged, its decoys count, a wrong kernel is WRONG, a foreign runner of before goes on.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
[[ -z "${AT_SLOW_BUILD:-}" ]] || { echo "instrumented builds are made of the same sources"; exit 77; }
[[ -f "$BUILD/flags" && -f build/simt/flags ]] || { echo "wants the objects of a build in $BUILD and build/simt"; exit 77; }
toy=tests/toy_operator tree=$scratch/tree

# The sources, and the objects that are theirs: make finds them up to date and compiles what is new. Copies, not links:
# compilers write into the files that are there.
mkdir -p "$tree/build/toy" "$tree/build/simt"
git ls-files -z 2> /dev/null | grep -zv '^datasets/measurements/' | xargs -0 cp -a --parents -t "$tree" 2> /dev/null
[[ -f "$tree/Makefile" ]] || { echo "wants a git checkout"; exit 77; }
name=$(sed -n 's/.*-I\(build\/[^ ]*\)\/gen.*/\1/p' "$BUILD/flags")
[[ -n "$name" ]] || { echo "wants a build in build/"; exit 77; }
mkdir -p "$tree/$name"
find "$BUILD" -maxdepth 1 -mindepth 1 ! -name tests ! -name mutants ! -name cuda ! -name 'attest*' ! -name '*.gc*' -exec cp -a -t "$tree/$name" {} +
cp -a build/simt/kernels build/simt/flags "$tree/build/simt"
# Whatever these are older than, they are what the suite is run on: nothing but what is new is to be compiled.
find "$tree/$name" "$tree/build/simt" -name "*.o" -exec touch {} +

cp -a --parents -t "$scratch" "$toy" && cp -a "$scratch/$toy"/. "$tree"
echo 'ramp ramp' >> "$tree/kernels/families.txt"
new=$(cd "$toy" && find . -type f | wc -l)
[[ $new -le 5 ]] || fail "$new new files, wanted 5 at most"
diff -rq "$toy" "$tree" | grep '^Files' && fail "a file of the toy operator replaces one that was there"

sed 's/00_plain/02_twice_the_slope/; s/z\.slope \*/2 * z.slope */' "$toy/kernels/ramp/00_plain.c" > "$tree/kernels/ramp/02_twice_the_slope.c"
cc=$(sed 's/ -std=c11.*//' "$BUILD/flags") cxx=$(sed 's/ -std=c++20.*//' build/simt/flags)
build() { make -C "$tree" -s DEPS=0 CUDA=0 CC="$cc" CXX="$cxx" BUILD="$name" "$name/attest" "$name/attest-cpu"; }
processor_seconds "$scratch/seconds" build > "$scratch/make.out" 2>&1 || { tail -n 30 "$scratch/make.out"; fail "does not build"; }
under 60 "$scratch/seconds"

attest=$tree/$name/attest
export AT_DATASETS=$tree/datasets
wants 0 'no result fails the run' "$attest" verify 'ramp/0[01]*' --cases 'ramp:*' --strict --quiet --jobs 1 --json "$scratch/r.jsonl"
for variant in 00_plain 01_thread_per_place; do
    grep -q "\"model_exact\":true.*\"state\":\"PASS\".*\"variant\":\"$variant\"" "$scratch/r.jsonl" ||
        fail "$variant: no case that passes and equals its model"
done
wants 1 'WRONG' "$attest" verify 'ramp/02*' --case 'ramp lines=3 places=40 slope=0.25 dtype=f32' --strict
wants 0 'ramp lines=7 places=33 slope=-0.25 dtype=bf16' "$attest" list cases --json
wants 2 'wanted a number from -8 to 8' "$attest" verify 'ramp/*' --case 'ramp slope=9'
wants 2 'ramp does not take this key' "$attest" verify 'ramp/*' --case 'ramp tokens=9'

# It declares no domain: nothing is designed or drawn for it, and both say why.
wants 2 'operator ramp declares no domain' "$attest" cases --design ramp
wants 2 'belongs to an operator that declares a domain' "$attest" verify 'ramp/*' --random 3 --seed 1
wants 0 'operator ramp declares no domain' "$attest" help cases ramp

# A runner of before goes on, and declines the operator that has come since.
python=$(command -v python3) || { echo "no python3: the runner of before was not asked"; exit 77; }
client="$python $PWD/tests/golden/runner_client_v5.py --also ramp"
wants 0 'PASS' "$attest" verify 'uclip_norm/*' --runner "$client" --case 'uclip_norm tokens=2 channels=24 dtype=bf16' --strict
wants 4 '1 UNSUPPORTED' "$attest" verify 'ramp/*' --runner "$client" --case 'ramp dtype=f32'
