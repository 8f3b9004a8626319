#!/bin/bash
# The demonstration: host variants on recorded activations of a real model, one planted wrong kernel, an archive.
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail
build=$1
out=${2:-build/demo}
cases=${3:-real:*_prefill*pad_d=0*} # the test of this script takes fewer
mkdir -p "$out"
rm -f "$out"/minilm.h5 "$out"/minilm.h5.jsonl
start=$(date +%s.%N)
echo "== host variants of AsyncT and softmax attention on real activations (MiniLM, 6 layers, bf16 and f16)"
"$build/attest" verify 'asynct_prefill/00_*' 'softmax_prefill/00_*' --cases "$cases" --strict --out "$out/minilm.h5" || exit $?
echo
echo "== a planted wrong kernel must be rejected"
mutant=asynct_prefill/01_last_key_dropped
if "$build/attest" verify "$mutant" --runner mutants --case 'asynct_prefill dataset=minilm layer=3 dtype=bf16'; then
    echo "demo: the wrong kernel $mutant passed" >&2
    exit 1
fi
echo
printf '== archive: %s (%s bytes); it opens in h5py, xarray and pandas\n' "$out/minilm.h5" "$(stat -c %s "$out/minilm.h5")"
echo "== $(echo "$start $(date +%s.%N)" | awk '{ printf "%.1f", $2 - $1 }') s"
