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
