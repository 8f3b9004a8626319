#!/bin/bash
# The worked notebooks: the committed ones are what export makes of notebooks_export/worked, and they run from start to
# end on the recorded activations; that of the trained pair on its measurements too.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
python=${AT_PYTHON:-/usr/bin/python3}
[[ ${AT_SLOW_BUILD:-0} == 1 ]] && { echo "left to the plain build: what runs is Python"; exit 77; }
few_heads
layers='*'
[[ ${AT_EFFORT:-full} == fast ]] && layers='[01]'
wants 0 'minilm: asynct' "$attest" record minilm --layers "$layers" --out "$scratch/minilm.h5"
for name in fp16_headroom asynct_sparsity; do
    wants 0 "$name.ipynb" "$attest" export "$scratch/minilm.h5" --to ipynb --cells notebooks_export/worked/$name.py --out "$scratch"
done
wants 0 '4 and 2 heads' "$attest" record datasets/activations/asynct_docs.safetensors --attention asynct --params causal=1 --out "$scratch/asynct_docs.h5"
wants 0 'asynct_model.ipynb' "$attest" export "$scratch/asynct_docs.h5" --to ipynb --cells notebooks_export/worked/asynct_model.py --out "$scratch"
cp datasets/measurements/h200_asynct_model.json "$scratch/asynct_model.json"
"$python" tests/python/worked_notebooks.py check "$scratch" notebooks_export/{fp16_headroom,asynct_sparsity,asynct_model}.ipynb > "$scratch/log" 2>&1; code=$?
[[ $code != 77 ]] || { tail -n 1 "$scratch/log"; exit 77; }
[[ $code == 0 ]] || { cat "$scratch/log"; fail "a notebook does not run, or one of notebooks_export/ is stale: make notebooks"; }
# What the notebooks say is what attest says itself: headroom before the scale, and zeros, layer by layer.
"$attest" show "$scratch/minilm.h5" > "$scratch/shown"
least=$(awk '$1 ~ /^[0-9]+$/ { if (!n++ || $2 < least) least = $2 } END { print least }' "$scratch/shown")
grep -q "Raw scores have $least bit to spare" "$scratch/fp16_headroom.log" || { cat "$scratch/shown" "$scratch/fp16_headroom.log"; fail "headroom, wanted $least"; }
awk '$1 ~ /^[0-9]+$/ { print $1, $6, $7, $8, $9 }' "$scratch/shown" | tr -d '%' > "$scratch/zeros"
sed -n '/saved at most/,$p' "$scratch/asynct_sparsity.log" | awk '$1 ~ /^[0-9]+$/ { print $1, $2, $3, $4, $5 }' > "$scratch/saved"
[[ -s "$scratch/zeros" ]] && diff "$scratch/zeros" "$scratch/saved" || fail "zeros differ from those of attest show"
# Zeros of the recorded prompts are those that attest shows, layer by layer.
"$attest" show "$scratch/asynct_docs.h5" | awk '$1 ~ /^[0-9]+$/ { print $1, $6 }' | tr -d '%' > "$scratch/zeros"
sed -n "s/^layer *\\([0-9]*\\): *\\([0-9.]*\\) % of the prompts.*/\\1 \\2/p" "$scratch/asynct_model.log" > "$scratch/said"
[[ -s "$scratch/zeros" ]] && diff "$scratch/zeros" "$scratch/said" || fail "zeros of the recorded prompts differ from those of attest show"
