#!/bin/bash
# A limit that lets wrong results through is reported, not trusted: made ten times wider by hand, it turns VACUOUS.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
line='asynct_decode b=2 h=4 hk=2 sk=2048 d=128 dtype=bf16' # a long row: its limit is wide already
wants 0 PASS "$attest" verify 'asynct_decode/00_blas_pbf16' --case "$line" --strict
wants 1 VACUOUS "$attest" verify 'asynct_decode/00_blas_pbf16' --case "$line" --strict --limit-factor 10
wants 0 VACUOUS "$attest" verify 'asynct_decode/00_blas_pbf16' --case "$line" --limit-factor 10
# A variant judged to the bit by its model does not lean on the limit.
wants 0 MODEL-EXACT "$attest" verify 'asynct_decode/00_split_k' --case "$line" --strict --limit-factor 10
# A required decoy that changes nothing on a case makes it VACUOUS too.
wants 1 'change nothing' "$attest" verify 'asynct_prefill/00_split_k' --strict --case 'asynct_prefill b=1 h=1 hk=1 sq=1 sk=1 d=32 data=all_masked require=tap_dropped'
# How much a claim without an order leaves open is said: P in bf16 has limits far beyond those of f32, f32 has not, a model leaves nothing.
looseness() { # VARIANT CASE: of its first output
    "$attest" verify "$1" --case "$2" --json "$scratch/r.jsonl" --quiet > "$scratch/out" 2>&1 || { cat "$scratch/out"; fail "$1"; }
    sed -n '1s/.*"looseness":\([^,}]*\).*/\1/p' <(grep '"state":"PASS"' "$scratch/r.jsonl")
}
line='asynct_decode b=2 h=4 hk=2 sk=200 d=64 dtype=f32'
wants 0 'loose claim: asynct_decode/00_blas_pbf16: limits up to' "$attest" verify asynct_decode/00_blas_pbf16 --case "$line"
# With such a claim a strict run wants one case at least that would have shown an output 1/32 too large.
blind='asynct_decode b=2 h=2 hk=1 sk=600/270 d=64 sigma=0.5 data=swamped dtype=bf16'
claim=("$attest" verify asynct_decode/00_blas_pbf16)
wants 1 'on no case would an output times 1.07 have been seen, which --strict does not' "${claim[@]}" --case "$blind" --strict
grep -q 'exit 1: 0 of 1 results fail the run, 1 claims are so loose that nothing was tested' "$scratch/out" || fail "the exit line"
wants 0 'on no case would an output times 1.07 have been seen: declare' "${claim[@]}" --case "$blind"
wants 0 'loose claim' "${claim[@]}" --case "${blind/data=swamped/data=swamped,normal}" --strict # two cases
! grep -q 'on no case' "$scratch/out" || fail "a case that shows it does not count"
wants 0 'no result fails' "$attest" verify asynct_decode/00_blas_p32 --case "$blind" --strict
got=$(looseness asynct_decode/00_blas_pbf16 "$line")
awk -v x="$got" 'BEGIN { exit !(x > 32) }' || fail "P in bf16 on f32: looseness '$got'"
long='asynct_decode b=1 h=8 hk=2 sk=9000 d=64 dtype=f32' # rows that take long are no way around it
got=$(looseness asynct_decode/00_blas_pbf16 "$long")
awk -v x="$got" 'BEGIN { exit !(x > 4) }' || fail "P in bf16 on f32, many keys: looseness '$got'"
got=$(looseness asynct_decode/00_blas_p32 "$line")
awk -v x="$got" 'BEGIN { exit !(x > 0.5 && x < 2) }' || fail "sums in f32 of no order: looseness '$got'"
got=$(looseness asynct_decode/00_split_k "$line")
[[ $got == '"NaN"' ]] || fail "a model judged, and its looseness is '$got'"
wants 0 'no result fails' "$attest" verify asynct_decode/00_blas_p32 --case "$line"
! grep -q 'loose claim' "$scratch/out" || fail "sums in f32 are called loose"
