#!/bin/bash
# attest help: commands and topics, from the program's own tables; and the nearest word for every word that can be misspelt.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
near() { wants 2 "$1" "${@:2}"; [[ $(grep -c . "$scratch/out") == 1 ]] || { cat "$scratch/out"; fail "more than one line"; }; }

wants 0 'exit codes' "$attest" help
for code in 0 1 2 3 4 70 130; do grep -q "^  $code  " "$scratch/out" || fail "attest help does not say what exit $code is"; done
"$attest" --help | diff - "$scratch/out" || fail "attest help and attest --help differ"
listed=0
while read -r command _; do
    listed=$((listed + 1))
    wants 0 "usage: attest $command" "$attest" "$command" --help
    "$attest" "$command" --help | diff - "$scratch/out" || fail "help $command and $command --help differ"
done < <("$attest" help | sed -n '/^commands:/,/^$/s/^  \([a-z]\)/\1/p')
[[ $listed -ge 13 ]] || fail "only $listed commands are listed"

# Every key that a case of a family has in its id, and no key of another operator's.
for family in asynct_decode softmax_prefill uclip_norm kv_write; do
    wants 0 "keys of $family" "$attest" help cases $family
    cp "$scratch/out" "$scratch/keys"
    id=$("$attest" list cases | grep -m 1 ":$family ")
    for word in ${id#* }; do
        grep -q "^  ${word%%=*} " "$scratch/keys" || fail "help cases $family lacks ${word%%=*}"
    done
done
# The domain is the one declared, of a family or of an operator's first.
wants 0 'domain of asynct_prefill, a line a class' "$attest" help cases asynct_prefill
grep -qx '    causal=0' "$scratch/out" || fail "prefill has no causal=0"
wants 0 'domain of softmax_decode' "$attest" help cases softmax_attention
grep -qx '    causal=0' "$scratch/out" && fail "decode has a class of prefill's"
wants 0 'far out: hk=32' "$attest" help cases kv_write

grep -q '^  sigma ' "$scratch/keys" && fail "kv_write has no sigma"
wants 0 'lse' "$attest" help tensors softmax_decode
grep -q uclip "$scratch/out" && fail "tensors of one family, wanted no other"
wants 0 'tc_f16 ' "$attest" help numerics
for field in qk_unit pv_zero batch_invariant; do grep -q "^$field=" "$scratch/out" || fail "help numerics lacks $field"; done
wants 0 'fails the run unless the case says expect=' "$attest" help verdicts
wants 0 softmax_attention "$attest" list families

near "did you mean 'numerics'" "$attest" help numeric
near "did you mean 'verify'" "$attest" help verfy
near "did you mean 'asynct_decode'" "$attest" help cases asynct_decoed
near 'goes with no further word' "$attest" help numerics x
near "did you mean 'kernels'" "$attest" list kernesl
near "did you mean 'accumulate'" "$attest" study acumulate
near "nearest is 'smoke:*'" "$attest" verify --cases 'smoek:*'
near "nearest is 'smoke:*'" "$attest" verify --cases smoke
near "nearest is 'smoke:*dtype=bf16*'" "$attest" verify --cases 'smoke:*dtype=bf61*'
near 'the roles are declarations, edge, exact' "$attest" verify --cases 'no_such_role:*'
near "nearest is 'asynct_decode/*'" "$attest" verify 'asynct_decoed/*'
near "nearest is 'softmax_prefill/*'" "$attest" verify 'softmx_prefill/*'
near "nearest is '*/00_split_k'" "$attest" verify '*/00_spilt_k'
near "nearest is 'asynct_decode/00_blas_p32'" "$attest" verify 'asynct_decode/00_blas_p33'
near "nearest is 'asynct_decode/*'" "$attest" selftest --mutants 'asynct_decoed/*'
near "nearest is 'asynct_decode/*'" "$attest" show tests/golden/run_v1.h5 'asynct_decoed/*'
# A glob that matches cases, of which no selected variant takes any: nothing was judged, which is another matter.
wants 4 'nothing was judged' "$attest" verify 'uclip_norm/*' --cases 'smoke:asynct_decode *'
