#!/bin/bash
# A runner written for protocol 5 and not touched since: its results, both transports, and an operator it does not know.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
python=$(command -v python3) || { echo "no python3"; exit 77; }
client="$python $PWD/tests/golden/runner_client_v5.py"

judged() { # TRANSPORT GLOB LINE
    wants 0 'PASS' "$attest" verify "$2" --runner "$client --transports $1" --case "$3" --strict --quiet --json "$scratch/r.jsonl"
    grep -q '"state":"PASS"' "$scratch/r.jsonl" || { cat "$scratch/r.jsonl"; fail "$3: not judged"; }
}
judged memfd 'asynct_decode/*' 'asynct_decode b=2 h=2 hk=1 sk=5/17 d=16 page=4 dtype=bf16'
judged inline 'asynct_prefill/*' 'asynct_prefill b=1 h=2 hk=2 sq=3 sk=9 d=8 causal=1 taps=0.5:-0.25 edge=zero dtype=f32'
judged memfd 'softmax_decode/*' 'softmax_decode b=2 h=2 hk=1 sk=4/9 d=16 dtype=f16'
judged inline 'softmax_prefill/*' 'softmax_prefill b=1 h=1 hk=1 sq=2 sk=6 d=8 dtype=f32'
judged memfd 'uclip_norm/*' 'uclip_norm tokens=2 channels=24 dtype=bf16 lo=-0.5'
# a family whose operator it has never heard of: declined, not an error
wants 4 '1 UNSUPPORTED' "$attest" verify 'kv_write/*' --runner "$client --also kv_write" --json "$scratch/r.jsonl" \
    --case 'kv_write b=1 hk=1 sq=2 sk=4 d=8 dtype=f16'
grep -q 'no operator kv_write in Python' "$scratch/r.jsonl" || fail "the reason is not that it does not know the operator"
# parameters that came after it: it does not say that it takes them, and is not sent them; at their defaults it is
later='softmax_decode b=2 h=2 hk=1 sk=4/9 d=16 dtype=f16'
for parameter in softcap=2 alibi=0.5; do
    wants 4 '1 UNSUPPORTED' "$attest" verify 'softmax_decode/*' --runner "$client" --case "$later $parameter" --json "$scratch/r.jsonl"
    grep -q "the runner does not say that it takes $parameter" "$scratch/r.jsonl" || fail "$parameter: not declined for its silence"
done
judged memfd 'softmax_decode/*' "$later softcap=0 alibi=0"

# The same of products: a client that took gemm would pass over these.
for parameter in 'scale_a=2' 'bias=f32' 'amax=1'; do
    wants 4 'the runner does not say that it takes' "$attest" verify 'gemm/*' --runner 'python3 tests/golden/runner_client_v5.py --also gemm' \
        --case "gemm m=4 n=4 k=4 dtype=f16 $parameter"
done
