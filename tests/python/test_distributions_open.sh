#!/bin/sh
# Recordings open in h5py, xarray and pandas, and hold what numpy counts and sorts.
# SPDX-License-Identifier: Apache-2.0
set -eu
: "${BUILD:?the build folder}"
here=$(cd "$(dirname "$0")" && pwd)
python=${AT_PYTHON:-/usr/bin/python3}
if ! command -v "$python" >/dev/null; then
    echo "skipped: no $python"
    exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
data=$here/../../datasets/activations/minilm.safetensors
layers=2..3
if [ "${AT_EFFORT:-full}" = fast ] && "$python" -c 'import numpy' 2>/dev/null; then # a layer, of two heads
    layers=3..3
    mkdir -p "$folder/activations"
    "$python" "$here/few_heads.py" "$data" "$folder/activations/minilm.safetensors" 2
    data=$folder/activations/minilm.safetensors
    export AT_DATASETS="$folder"
fi
for attention in asynct softmax; do
    "$BUILD/attest" record minilm --attention "$attention" --params causal=1 --layers $layers --dtype f16 \
        --out "$folder/$attention.h5" >/dev/null
done
"$python" "$here/distributions_open.py" "$folder" "$data" $layers
# The same tensors in other files: the same counts.
for suffix in safetensors npz h5; do
    "$BUILD/attest" record "$folder/same.$suffix" --attention asynct --what q,v,raw --out "$folder/$suffix.h5" >/dev/null
done
"$python" "$here/distributions_open.py" "$folder" "$data" same
