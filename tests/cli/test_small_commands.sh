#!/bin/bash
# list, doctor, bench reference and merge's own words: every kind, as text and as JSON lines, and what they refuse.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
declare -A expect=([operators]=qk_uclip_norm [kernels]=asynct_decode/00_split_k [cases]='data=exact' [datasets]=outlier_channel
    [runners]=cpu)
for kind in "${!expect[@]}"; do
    wants 0 "${expect[$kind]}" "$attest" list "$kind"
    lines=$(wc -l < "$scratch/out")
    wants 0 "${expect[$kind]}" "$attest" list "$kind" --json
    [[ $(wc -l < "$scratch/out") == "$lines" ]] || fail "list $kind: $lines lines as text, another number as JSON"
    /usr/bin/python3 -c 'import json, sys; [json.loads(line) for line in sys.stdin]' < "$scratch/out" || fail "list $kind: not JSON"
done
for operator in reference/*/; do # every folder but those that several operators share
    operator=$(basename "$operator")
    [[ " attest tensor_core special fast norm gated rotation cache " == *" $operator "* ]] && continue
    "$attest" list operators | grep -q "^$operator " || fail "operator $operator is not listed"
done
wants 0 '01_last_key_dropped' "$attest" list kernels --runner mutants
wants 0 'operators' "$attest" list

wants 0 'OpenBLAS' "$attest" doctor
[[ $(uname -m) != x86_64 ]] || OPENBLAS_CORETYPE=Nehalem wants 0 'core Nehalem, by OPENBLAS_CORETYPE=Nehalem' "$attest" doctor
small='asynct_prefill b=1 h=2 hk=1 sq=600 d=64 causal=1 dtype=bf16'
wants 0 'cross-check  64 rows' "$attest" bench reference --rounds 1 --case "$small"
wants 0 '% of dgemm' "$attest" bench reference --rounds 1 --threads 1 --case 'softmax_prefill b=1 h=2 hk=1 sq=600 d=64 causal=1 dtype=f16'
wants 1 'wanted 100000.0 %' "$attest" bench reference --rounds 1 --min-share 1000 --case "$small"
wants 2 'wanted one' "$attest" bench reference --case 'asynct_decode sk=1,2'
wants 2 'has no fast tier' "$attest" bench reference --case 'asynct_decode b=1 h=1 hk=1 sk=2 d=8'
wants 2 'has no fast tier' "$attest" bench reference --case 'uclip_norm tokens=3 channels=8'
