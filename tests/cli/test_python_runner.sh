#!/bin/bash
# attest_runner.py makes a runner of Python functions: right ones pass, wrong ones get the state that they must and say why,
# formats are the project's to the bit, the conversation is that of the protocol, the examples are right.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
python=/usr/bin/python3
$python -c 'import numpy' 2> /dev/null || { echo "no numpy for $python"; exit 77; }
folder=$PWD/kernels/runner/python examples=$PWD/kernels/runner/python/examples
export PYTHONPATH=$folder PYTHONDONTWRITEBYTECODE=1
version=$(sed -n 's/^## \([0-9][^ ]*\).*/\1/p' CHANGELOG.md | head -n 1)
grep -qx "version = \"$version\"" "$folder/pyproject.toml" || fail "pyproject.toml has another version than $version"
draws=100000; [[ ${AT_EFFORT:-full} == fast ]] && draws=10000
wants 0 'as in C' $python tests/python/runner_formats.py "$BUILD/tests/support/make_format_codes" $draws
wants 0 'as the protocol has it' $python tests/python/runner_talk.py $python tests/python/runner_kernels.py
wants 0 "are the device's" $python tests/python/runner_times.py

# A right kernel and a wrong one in a few lines: the beginning of everybody's own.
cat > "$scratch/my_runner.py" << 'PY'
import sys, numpy as np
from attest_runner import kernel, serve, f64, put
@kernel("uclip_norm", numerics="free_order=1")
def toy(x, alpha, gamma, beta, y, *, lo, hi):
    put(y, f64(gamma) * np.clip(f64(alpha) * f64(x), lo, hi) * float(sys.argv[1]) + f64(beta))
serve()
PY
wants 0 'PASS' "$attest" verify 'uclip_norm/*' --runner "$python $scratch/my_runner.py 1" --cases 'smoke:*'
wants 1 'WRONG' "$attest" verify 'uclip_norm/*' --runner "$python $scratch/my_runner.py 1.03" --cases 'smoke:*'
sed -i 's/free_order=1/qk_unit=abacus/' "$scratch/my_runner.py"
wants 3 'uclip_norm/01_toy declares numerics that mean nothing: ' "$attest" verify 'uclip_norm/*' --runner "$python $scratch/my_runner.py 1" --cases 'smoke:*'
grep -q 'qk_unit.*abacus' "$scratch/out" || { cat "$scratch/out"; fail "the field that means nothing is not named"; }

# A declaration for each problem: of what is asked, held to in each; what it does not fit is WRONG; of zeros, whatever the data are.
cat > "$scratch/by_size.py" << 'PY'
import sys, numpy as np
from attest_runner import kernel, serve, f64
@kernel("uclip_norm", dtypes="f32", numerics=lambda job: "fir_fma=%d" % (job.size["tokens"] % 2 == int(sys.argv[1])))
def by_size(x, alpha, gamma, beta, y, *, lo, hi, tokens):
    inner = np.clip(alpha * x, np.float32(lo), np.float32(hi))
    y[...] = f64(gamma) * f64(inner) + f64(beta) if tokens % 2 else gamma * inner + beta
@kernel("uclip_norm", dtypes="f32", numerics=lambda job: "qk_unit=abacus" if job.tensors["x"].any() else "")
def by_data(x, alpha, gamma, beta, y, *, lo, hi):
    y[...] = gamma * np.clip(alpha * x, np.float32(lo), np.float32(hi)) + beta
@kernel("uclip_norm", dtypes="f32", numerics=lambda job: "qk_unit=abacus")
def nothing(x, alpha, gamma, beta, y, *, lo, hi):
    y[...] = 0
serve()
PY
sizes='uclip_norm tokens=7,8 channels=512 dtype=f32'
wants 0 'MODEL-EXACT 2 of 2' "$attest" verify '*/01_by_size' --runner "$python $scratch/by_size.py 1" --case "$sizes"
wants 1 '2 results: 2 WRONG' "$attest" verify '*/01_by_size' --runner "$python $scratch/by_size.py 0" --case "$sizes"
wants 0 'MODEL-EXACT 2 of 2' "$attest" verify '*/02_by_data' --runner "$python $scratch/by_size.py 1" --case "$sizes"
wants 1 'declares numerics that mean nothing' "$attest" verify '*/03_nothing' --runner "$python $scratch/by_size.py 1" --case "$sizes"
sed -i 's/"qk_unit=abacus")/job.nosuch)/' "$scratch/by_size.py" # what fails is no declaration either
wants 1 'and failed: AttributeError' "$attest" verify '*/03_nothing' --runner "$python $scratch/by_size.py 1" --case "$sizes"
silent="'$BUILD/attest-cpu' | sed -u '/^done /s/ numerics=[^ ]*//'"
wants 1 'did not say it' "$attest" verify 'asynct_decode/39_dispatch' --runner "$silent" --case 'asynct_decode b=2 h=2 hk=1 sk=40 d=64 dtype=bf16'
"$attest" certify 'asynct_decode/@(39_dispatch|01_sequential_qk)' --properties batch --runner "$silent" > "$scratch/out" 2>&1
grep -q '^asynct_decode/01_sequential_qk: invariant: batch' "$scratch/out" || { cat "$scratch/out"; fail "a variant that does not declare ends the others' certificates"; }
grep -q 'did not say it' "$scratch/out" || { cat "$scratch/out"; fail "the certificate does not say why there is none"; }
wants 4 '1 not probed' "$attest" fit '*/01_by_size' --runner "$python $scratch/by_size.py 1"
grep -q 'its arithmetic depends on the problem' "$scratch/out" || fail "fit does not say why"
"$attest" verify '*/01_by_size' --runner "$python $scratch/by_size.py 1" --case "$sizes" --quiet --json "$scratch/r.jsonl" > "$scratch/out"
[[ $(grep -c 'fir_fma=1' "$scratch/r.jsonl") == 1 && $(grep -c 'fir_fma=0' "$scratch/r.jsonl") == 1 ]] || fail "results have not their own declarations"

# One of each kind; in the results, whose lines are not wrapped.
takes=softmax_attention.softcap,softmax_attention.alibi
kinds() { # options
    "$attest" verify '*/*' --runner "$python tests/python/runner_kernels.py $takes" --jobs 1 --quiet --json "$scratch/r.jsonl" "$@"
}
judged() { # VARIANT STATE ['text of its result']
    local line
    line=$(grep -F "\"variant\":\"$1\"" "$scratch/r.jsonl")
    if [[ "$line" != *"${3:-}"* ]] || grep -qvF "\"state\":\"$2\"" <<< "$line"; then
        fail "$1: wanted $2 ${3:-}, got $(grep -o '"\(state\|reason\|cause\)":"[^"]*"' <<< "$line")"
    fi
}
wants 1 'exit 1' kinds --cases 'smoke:@(uclip_norm|asynct_decode)*'
judged 01_right PASS
judged 02_by_index PASS
judged 03_everything PASS
judged 04_factor WRONG
judged 05_one_row WRONG 'only token 6'
judged 06_unwritten DIRTY 'left 256 of 1792 elements of y unwritten'
judged 07_past_the_end DIRTY 'wrote past tensor y'
judged 08_input_written DIRTY 'changed its input alpha'
judged 09_raises ERROR 'the last line says why (runner_kernels.py line'
judged 10_declines UNSUPPORTED 'not on a Friday'
judged 11_misnamed ERROR 'did you mean gamma? Tensors: x alpha gamma beta y. Parameters: lo hi. Sizes: tokens channels'
judged 12_unknown ERROR 'a default, page=None'
judged 13_no_output ERROR 'does not take y, which uclip_norm wants written'
judged 14_computes_with_codes ERROR 'codes of bf16: f64() has their values'
judged 15_other_formats UNSUPPORTED 'for f32 and f16 alone'
judged 16_of_attention ERROR 'requests() is for attention'
judged 17_exits CRASHED 'going home'
judged 18_sleeps UNSUPPORTED 'for one token'
judged 01_one_name_twice UNSUPPORTED 'taps (8, 3) beside 3'
wants 1 'exit 1' kinds --case 'softmax_prefill b=2 h=3 hk=1 sq=19/9 prefix=5/0 d=64 causal=1 dtype=bf16 softcap=2 alibi=1'
judged 01_capped PASS
judged 02_not_capped ERROR 'softmax_attention.softcap is taken'
wants 4 '1 UNSUPPORTED, 19 SKIPPED' kinds --case 'uclip_norm tokens=0 channels=8 dtype=bf16' # nothing to write is nothing to do

# Where the descriptor does not arrive, the bytes do.
for fd in 3 4 5 6 7 8 9; do echo "exec $fd<&-"; done > "$scratch/closed.sh"
echo "exec $python $examples/numpy_uclip_norm.py" >> "$scratch/closed.sh"
wants 0 'PASS' "$attest" verify 'uclip_norm/*' --runner "sh $scratch/closed.sh" --case 'uclip_norm tokens=5 channels=40 dtype=bf16'

# The examples, by cases of every layout, of no keys and of NaNs.
wants 0 'exit 0' "$attest" verify 'uclip_norm/*' --runner "$python $examples/numpy_uclip_norm.py" --cases '@(smoke|edge|nonfinite):uclip_norm*' --strict
wants 0 'exit 0' "$attest" verify 'softmax_*/*' --runner "$python $examples/numpy_softmax.py" --cases '@(smoke|edge|nonfinite):softmax_*'
grep -q ' [1-9][0-9]* PASS, [0-9]* UNSUPPORTED$' "$scratch/out" || fail "states of the softmax example: $(tail -n 3 "$scratch/out")"
torch=${AT_TORCH_PYTHON:-$python} # a Python that has PyTorch 2
if "$torch" -c 'import torch; torch.nn.functional.scaled_dot_product_attention' 2> /dev/null; then
    wants 0 'the same in PyTorch' "$torch" tests/python/runner_formats.py "$BUILD/tests/support/make_format_codes" 1000
    wants 0 'exit 0' "$attest" verify 'softmax_*/*' --runner "$torch $examples/torch_sdpa.py" --cases 'smoke:softmax_prefill*' --strict
    if "$torch" -c 'import triton' 2> /dev/null; then
        TRITON_INTERPRET=1 wants 0 '2 PASS' "$attest" verify 'softmax_*/*' --runner "$torch $examples/triton_minimal.py" --case 'softmax_prefill b=3 h=4 hk=2 sq=40/7/0 sk=40/9/33 d=64 causal=1 dtype=f16'
    else
        echo "no Triton for $torch: its example is not run"
    fi
else
    echo "no PyTorch 2 for $torch: its example is not run"
    wants 3 'SKIPPED: torch_sdpa.py wants PyTorch 2' "$attest" verify 'softmax_*/*' --runner "$torch $examples/torch_sdpa.py" --cases 'smoke:softmax_prefill*'
fi
if ! "$torch" -c 'import sys, torch; sys.exit(not torch.cuda.is_available())' 2> /dev/null; then # on a GPU: verify/bench/README.md
    for peers in torch_peers flashinfer_peers triton_peers; do
        wants 3 "SKIPPED: $peers.py wants" "$attest" verify 'softmax_*/*' --runner "$torch $folder/peers/$peers.py" --cases 'smoke:softmax_prefill*'
    done
fi
