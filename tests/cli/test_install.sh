#!/bin/bash
# An installed attest works where the source tree is not, and each installation works with its own data.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
make/install.sh "$scratch/one" "$BUILD/attest" "$BUILD/attest-cpu" "$BUILD/attest-so" || fail "install"
make/install.sh "$scratch/two" "$BUILD/attest" "$BUILD/attest-cpu" || fail "a second installation"
[[ $(find "$scratch/one" -name '*.cases' | wc -l) == $(find datasets -name '*.cases' | wc -l) ]] || fail "not every case file is installed"
for file in attest/activations/licences/python3.11-doc.copyright attest/activations/steps/asynct_docs_steps.safetensors \
    man/man1/attest.1 bash-completion/completions/attest attest/PROTOCOL.md attest/python/runner_client.py attest/python/attest_runner{,_cuda}.py \
    attest/python/{torch,flashinfer}_peers.py attest/python/attest_flashinfer.py; do
    [[ -s "$scratch/one/share/$file" ]] || fail "no share/$file"
done
for word in $("$attest" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p'); do # as the help has them
    grep -q "^.SS attest $word\$" "$scratch/one/share/man/man1/attest.1" || fail "the man page has no $word"
    grep -q "^ *$word) words=" "$scratch/one/share/bash-completion/completions/attest" || fail "the completion has no $word"
done
grep -q '^.B 130$' "$scratch/one/share/man/man1/attest.1" || fail "the man page has no exit codes"
golden=share/attest/measurements/h200_tensor_core.txt
head -n 6 "$scratch/one/$golden" > "$scratch/golden" && mv "$scratch/golden" "$scratch/one/$golden"

# What stands in one installation is seen from there alone, whether or not the source tree is there.
echo 'uclip_norm tokens=3 channels=16 dtype=f16 seed=4711' >> "$scratch/one/share/attest/cases/smoke.cases"
wants 0 'seed=4711' "$scratch/one/bin/attest" list cases
for other in "$scratch/two/bin/attest" "$attest"; do
    wants 0 'smoke:' "$other" list cases
    ! grep -q seed=4711 "$scratch/out" || fail "$other shows a case of the first installation"
done
mv "$scratch/two" "$scratch/moved"
wants 0 'smoke:' "$scratch/moved/bin/attest" list cases
rm -r "$scratch/moved/share/attest/cases"
wants 2 'wanted a folder of case files' "$scratch/moved/bin/attest" list cases

# Every command, in a folder that is not the tree's, with the tree hidden: an empty file system lies over it.
cat > "$scratch/run.sh" <<'SH'
attest=$scratch/one/bin/attest
cd "$scratch" || exit 3
mount -t tmpfs none "$1" && [[ -z "$(ls -A "$1")" ]] || fail "the tree is not hidden"
share=$scratch/one/share/attest
wants 0 ' 8 PASS' "$attest" verify 'asynct_decode/0[1-2]*' --case 'asynct_decode b=2 h=4 hk=2 sk=33,300 d=64 dtype=bf16,f16' --out run.h5
wants 0 'no result fails the run' "$attest" verify 'uclip_norm/00_fp32' --cases 'smoke:*'
wants 0 'no result fails the run' "$attest" verify --runner "$share/python/runner_client.py" --case 'uclip_norm tokens=2 channels=16 dtype=f16'
if /usr/bin/python3 -c 'import numpy' 2> /dev/null; then # examples lie beside the module that they import
    wants 0 'PASS' "$attest" verify 'uclip_norm/*' --runner "/usr/bin/python3 $share/python/numpy_uclip_norm.py" --cases 'smoke:*'
fi
if command -v gcc > /dev/null; then # a shared library of the installed example, by the installed header
    gcc -O2 -shared -fPIC -I "$scratch/one/include" "$share/so/softmax_launch.c" -o libmine.so -lm || fail "the example is not built"
    wants 0 '2 PASS' "$attest" verify --runner 'attest-so ./libmine.so' --case 'softmax_prefill b=1 h=2 hk=1 sq=5 sk=9 d=32 dtype=f32 data=normal'
fi
wants 0 'smoke:' "$attest" list cases
wants 0 'minilm' "$attest" list datasets
wants 0 'MODEL-EXACT' "$attest" replay 'asynct_decode/02_cooperative_qk asynct_decode b=2 h=4 hk=2 sk=33 d=64 dtype=bf16'
wants 0 '02_cooperative_qk' "$attest" show run.h5 --worst 10
wants 0 '1 file in' "$attest" export run.h5 --to html --out page
wants 4 'nothing was timed' "$attest" bench 'asynct_decode/02_*' --runner cpu --case 'asynct_decode b=1 h=1 hk=1 sk=3 d=8 dtype=f16'
wants 0 'results as on the device' "$attest" bench tensor-core --rounds 1
wants 0 'golden vectors, 0 differ' "$attest" study tensor-core --golden "$share/measurements/h200_tensor_core.txt"
wants 0 'minilm: asynct' "$attest" record minilm --attention asynct --layers 3 --out minilm.h5
wants 0 "$share" "$attest" doctor
wants 3 'the wrong kernels are not installed' "$attest" selftest
wants 3 'make install MUTANTS=1' "$attest" verify '*/*' --runner mutants

echo "to the end"
SH
export scratch; export -f wants fail
unshare -m true 2> /dev/null || { echo "hiding the tree wants unshare -m, which root may"; exit 77; }
wants 0 'to the end' unshare -m bash "$scratch/run.sh" "$PWD"
make/install.sh --remove "$scratch/one"
[[ -z "$(find "$scratch/one" ! -type d)" ]] || fail "uninstalling leaves $(find "$scratch/one" ! -type d)"
