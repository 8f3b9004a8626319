#!/bin/bash
# attest coverage: the gate over the kernels of this tree (fast effort: a few), which cases take nothing by themselves, and what
# it says of planted faults: a branch that no case takes, a mark where none belongs, an error that is lost, no gcov, another gcov, sources that are newer or gone, nothing built.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
[[ -z "${AT_SLOW_BUILD:-}" && -f "$BUILD/flags" && -f build/simt/flags ]] || { echo "left to the plain build, whose kernels these are"; exit 77; }
command -v gcov > /dev/null || { echo "gcov is not installed: nothing was counted"; exit 77; }
[[ -x "$BUILD/attest-cpu-coverage" ]] || fail "no attest-cpu-coverage, which make check builds"
look() { jq_py "$1" "$scratch/c.json"; }
jq_py() { /usr/bin/python3 -c "import json, sys; d = json.load(open(sys.argv[1])); sys.exit(not ($1))" "$2" || { head -c 2000 "$2"; fail "not so: $1"; }; }

# ---- this tree
if [[ ${AT_EFFORT:-full} == fast ]]; then globs=('uclip_norm/*' 'gemm/01*' 'qk_uclip_norm/03*'); else globs=('*'); fi
# Few of the cases of @check (tests/verify/plan/test_case_globs.c) are enough.
wants 0 ': the gate is open' "$attest" coverage "${globs[@]}" --gate --cases @coverage --quiet --json "$scratch/c.json" --html "$scratch/c.html"
look 'd["gate"] and d["open"] == [] and d["asked"]["branches_taken"] + d["asked"]["branches_explained"] == d["asked"]["branches"] > 5'
[[ ${AT_EFFORT:-full} == fast ]] || look 'all(f["asked"] for f in d["files"]) and 0 < 100 * d["asked"]["branches_explained"] < d["asked"]["branches"]'
look 'all(v["launched"] and not v["broken"] for v in d["variants"])'
wants 1 'branches never taken' "$attest" coverage 'qk_uclip_norm/*' --gate --cases 'smoke:*' --quiet # none without rows
# The lines of a selection in turn take what all of it at once takes, in fewer launches; what nothing takes stays open.
in_turn() { # PROGRAM SELECTION FEWER [GLOB]: FEWER is how many launches it saves, at the least
    local way
    local -A how=([turn]=--until-taken)
    for way in once turn; do
        "$1" coverage "${@:4}" --gate --cases "$2" --quiet --json "$scratch/$way.json" ${how[$way]:+"${how[$way]}"} > "$scratch/out" 2>&1
        [[ $? -le 1 ]] || { cat "$scratch/out"; fail "$2 $way"; }
    done
    /usr/bin/python3 - "$scratch/once.json" "$scratch/turn.json" "$3" << 'END' || fail "$2 in turn is not $2 at once"
import json, sys
once, turn = (json.load(open(name)) for name in sys.argv[1:3])
for what in "open", "gate":
    assert turn[what] == once[what], (turn[what], once[what])
for what in "branches", "branches_taken", "branches_explained", "functions_called", "lines_run": # instances are counted, and not asked for
    assert turn["asked"][what] == once["asked"][what], (turn["asked"], once["asked"])
launched = [sum(v["launched"] for v in d["variants"]) for d in (once, turn)]
assert 0 < launched[1] <= launched[0] - int(sys.argv[3]), launched
END
}
in_turn "$attest" @check 100 'qk_uclip_norm/*'
wants 2 'exclude each other' "$attest" coverage 'gemm/*' --until-taken --by-case
# Two cases that take the same, of which one is enough, and one that takes what they do not.
three='uclip_norm tokens=0,2,3 channels=8'
wants 0 '2 of 3 cases take no branch that no other case takes; 1 add none to those before them in order of ids; 2 take together' \
    "$attest" coverage 'uclip_norm/*' --case "$three" --by-case --quiet --json "$scratch/c.json" --fewest "$scratch/few"
look 'sorted((c["branches_own"], c["branches_added"] == c["branches_taken"]) for c in d["by_case"]) == [(0, False), (0, True), (1, True)]'
look '[c["branches_added"] for c in d["by_case"] if "tokens=3" in c["case"]] == [0] and all("tokens=0" in c["case"] for c in d["by_case"] if c["branches_own"])'
look 'sorted(c["branches_own"] for c in d["by_case"] if c["enough"]) == [0, 1]'
grep -v '^#' "$scratch/few" > "$scratch/ids"
[[ $(wc -l < "$scratch/ids") == 2 && $(grep -c '^line:uclip_norm tokens=0 ' "$scratch/ids") == 1 ]] || { cat "$scratch/few"; fail "not the two that are enough"; }
wants 2 '--fewest wants --by-case' "$attest" coverage 'uclip_norm/*' --case "$three" --fewest "$scratch/few"
# Lines `only` hold for cases by themselves, for the lines of a selection in turn, and come into what --fewest writes.
mkdir -p "$scratch/data/cases" && cp datasets/cases/*.cases "$scratch/data/cases/"
printf 'smoke:gemv*\nonly gemv/02* smoke:gemv*\n' > "$scratch/data/cases/dear.selection"
printf 'smoke:gemv*\n' > "$scratch/data/cases/all.selection"
by_case() { AT_DATASETS=$scratch/data wants 0 '' "$attest" coverage "$1" --cases "$2" "${@:4}" --quiet --json "$scratch/$3.json"; }
by_case 'gemv/*' @dear few --by-case --fewest "$scratch/few" && by_case 'gemv/02*' @all one --by-case && by_case 'gemv/*' @all all --by-case
/usr/bin/python3 - "$scratch"/{few,one,all}.json << 'END' || fail "a line only does not hold for cases by themselves"
import json, sys
# which of two that take the same is enough is the quicker
few, one, every = ([(c["case"], c["branches_taken"]) for c in json.load(open(name))["by_case"]] for name in sys.argv[1:4])
assert few == one and few != every and few, (few, one)
END
grep -q '^only gemv/02\* smoke:gemv ' "$scratch/few" || { cat "$scratch/few"; fail "few cases without the line only"; }
by_case 'gemv/*' @dear turn --until-taken
jq_py '[v["file"] for v in d["variants"]] == ["kernels/gemv/02_vector_loads.cu"]' "$scratch/turn.json"
# However many runners count, and a lambda of a template, whose instances gcov lists one after another, has its branches once.
counts() { wants 0 '' "$attest" coverage 'asynct_prefill/08*' --case 'asynct_prefill b=1 h=2 hk=1 sq=5 d=32,64 dtype=bf16' --quiet --jobs "$1" --json "$scratch/$1.json"; }
counts 1 && counts 3 && same "$scratch/1.json" "$scratch/3.json"
line=$(grep -n 'if (from >= 0)' kernels/asynct_prefill/08_mma_cp_async.cu | cut -d: -f1)
jq_py '[l["branches"] for f in d["files"] if f["file"].endswith("08_mma_cp_async.cu") for l in f["lines"] if l["line"] == '"${line:-0}"'] and all(len(b) == 2 for f in d["files"] if f["file"].endswith("08_mma_cp_async.cu") for l in f["lines"] if l["line"] == '"${line:-0}"' for b in l["branches"])' "$scratch/1.json"
wants 4 'nothing was launched' "$attest" coverage 'gemm/*' --case 'uclip_norm tokens=3 channels=8'
wants 2 'exclude each other' "$attest" coverage 'gemm/*' --case 'gemm m=1' --cases '@check'
wants 3 'there is no program /no/gcov' env GCOV=/no/gcov "$attest" coverage 'uclip_norm/*' --case 'uclip_norm tokens=3 channels=8' --quiet
wants 3 'gives no JSON' env GCOV=/bin/true "$attest" coverage 'uclip_norm/*' --case 'uclip_norm tokens=3 channels=8' --quiet
mkdir "$scratch/alone" && cp "$attest" "$scratch/alone/" && wants 3 'coverage-runner' "$scratch/alone/attest" coverage

# ---- a copy of the tree with one kernel, into which faults go
tree=$scratch/tree name=$(sed -n 's/.*-I\(build\/[^ ]*\)\/gen.*/\1/p' "$BUILD/flags") kernel=kernels/uclip_norm/01_block_per_row.cu
[[ -n "$name" ]] || fail "wants a build in build/"
mkdir -p "$tree/$name"
git ls-files -z -- Makefile make kernels reference datasets/cases CHANGELOG.md 2> /dev/null | xargs -0 cp -a --parents -t "$tree" 2> /dev/null
[[ -f "$tree/Makefile" ]] || { echo "wants a git checkout"; exit 77; }
find "$BUILD" -maxdepth 1 -mindepth 1 \( -name gen -o -name kernels -o -name reference -o -name flags -o -name attest -o -name libreference.a \) -exec cp -a -t "$tree/$name" {} +
find "$tree/$name" \( -name '*.o' -o -name '*.a' \) -exec touch {} +
cc=$(sed 's/ -std=c11.*//' "$BUILD/flags") cxx=$(sed 's/ -std=c++20.*//' build/simt/flags)
build() {
    make -C "$tree" -s DEPS=0 CUDA=0 CC="$cc" CXX="$cxx" BUILD="$name" DEVICE_VARIANTS="$kernel" "$name/attest-cpu-coverage" > "$scratch/make.out" 2>&1 ||
        { tail -n 30 "$scratch/make.out"; fail "does not build"; }
}
planted() { # EXIT 'text' 'what the JSON must say'
    build
    wants "$1" "$2" env AT_DATASETS="$PWD/datasets" "$tree/$name/attest" coverage --gate --quiet --cases 'shapes:uclip_norm*' --json "$scratch/c.json"
    look "$3"
}
opens() { echo "[(o[\"file\"], o[\"what\"]) for o in d[\"open\"] if o[\"file\"] == \"$kernel\"] == [(\"$kernel\", \"$1\")]"; }
plant() { # TEXT: at the beginning of the kernel's launch, in the place of what was planted before
    sed "s|^int launch(const struct at_launch \*launch) {|&\n$1|" "$kernel" > "$tree/$kernel"
    cmp -s "$kernel" "$tree/$kernel" && fail "nothing planted"
}
plant '    if (launch->problem->sizes.tokens == 123457)\n        return 7;'
planted 1 '1 of 2 branches never taken' "$(opens 'branch never taken')"
plant '    /* not reached: no case has as many rows */\n    if (launch->problem->sizes.tokens == 123457)\n        return 7;'
planted 1 'no case has as many rows' '[o for o in d["open"] if o["file"] == "'"$kernel"'"] == [] and d["asked"]["branches_explained"] >= 1' # of one kernel too large a share
plant '    /* not reached: so it says */\n    for (int i = 0; i < 2; i++)\n        (void)launch;'
planted 1 'marked as not reached, and is reached' "$(opens 'marked as not reached, and reached')"
plant '    /* not reached: so it says */\n\n    (void)launch;'
build
wants 2 'has no code' env AT_DATASETS="$PWD/datasets" "$tree/$name/attest" coverage --quiet --cases 'shapes:uclip_norm*'
cp "$kernel" "$tree/$kernel"
printf '\nstatic int nobody_calls() { return 1; }\nint (*const volatile at_kept)() = nobody_calls;\n' >> "$tree/$kernel"
planted 1 'nothing calls this function' "$(opens 'function never called')"
cp "$kernel" "$tree/$kernel"
for lost in 's|return at_launch(kernel|return 0 * at_launch(kernel|' 's|return \(at_launch(kernel.*\);|const int code = \1;\n    return code ? code : 0 * \1;|'; do # of the only launch, of the second
    sed "$lost" kernels/norm/norm.h > "$tree/kernels/norm/norm.h"
    cmp -s kernels/norm/norm.h "$tree/kernels/norm/norm.h" && fail "nothing planted"
    planted 1 'failed, and it did not say so' 'd["variants"][0]["broken"] >= 1'
done
cp kernels/norm/norm.h "$tree/kernels/norm/norm.h"
# In turn: a branch that the second line of a selection takes, and one that none does.
printf 'smoke:uclip_norm*\nshapes:uclip_norm*\n' > "$scratch/data/cases/two.selection"
for rows in 33 34; do
    plant "    static volatile int seen;\n    if (launch->problem->sizes.tokens == $rows)\n        seen = 1;"
    build
    AT_DATASETS=$scratch/data in_turn "$tree/$name/attest" @two 0
    jq_py 'len([o for o in d["open"] if o["file"] == "'$kernel'"]) == '$((rows - 33)) "$scratch/turn.json"
done
touch -d '2 minutes' "$tree/$kernel"
wants 3 'newer than the runner' env AT_DATASETS="$PWD/datasets" "$tree/$name/attest" coverage --quiet --cases 'shapes:uclip_norm*'
mv "$tree/kernels" "$tree/elsewhere"
wants 3 'are gone from' "$tree/$name/attest" coverage --quiet
