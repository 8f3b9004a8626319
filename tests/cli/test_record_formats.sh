#!/bin/bash
# record: the same tensors in any format are the same recording, to the byte; what is wrong with one is said in one line.
# SPDX-License-Identifier: Apache-2.0
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"
/usr/bin/python3 -c 'import numpy, h5py' 2> /dev/null || { echo "numpy or h5py is missing: python3-h5py brings them"; exit 77; }
/usr/bin/python3 tests/python/record_captures.py "$scratch" || fail "no captures"
cd "$scratch" || exit 3
formats=(safetensors npy npz npz_deflated hdf5 hdf5_groups)
# Causal; at fast effort what is read, and the one of the computed quantities that the capture's own sigma changes first.
how=(--attention asynct --params causal=1)
[[ ${AT_EFFORT:-full} == fast ]] && how+=(--what 'q,k,v,fir')

for kind in float16 float32; do
    for format in "${formats[@]}"; do
        wants 0 '6 of 6 units' "$attest" record "${format}_$kind/capture.safetensors" "${how[@]}" --out "${format}_$kind.h5"
        same "safetensors_$kind.h5" "${format}_$kind.h5"
    done
    wants 0 'own_params' "$attest" show "npy_$kind.h5"
done
# the slash that a shell adds to a folder is no part of its name
wants 0 '6 of 6 units' "$attest" record npy_float16/capture.safetensors/ "${how[@]}" --out slash.h5
same safetensors_float16.h5 slash.h5
# what else lies in a folder is none of its tensors
touch npy_float16/capture.safetensors/{README,.layers.2.q.npy}
wants 0 '6 of 6 units' "$attest" record npy_float16/capture.safetensors "${how[@]}" --out beside.h5
same safetensors_float16.h5 beside.h5

# ---- what is refused: one line that names the file and the tensor, and nothing written
refused() { # CODE TEXT INPUT
    wants "$1" "$2" "$attest" record "$3" --out no.h5
    [[ $(grep -c . out) == 1 ]] || { cat out; fail "$3: wanted one line"; }
    grep -qF "$(basename "$3")" out || { cat out; fail "$3: the file is not named"; }
    [[ ! -e no.h5 && ! -e no.h5.jsonl && ! -e no.h5.parts ]] || fail "$3: wrote something"
}
for format in "${formats[@]}"; do
    mv "mixed_$format" m; mv "without_$format" w # suffixes are needed by safetensors alone, which has no first bytes of its own
    suffix=; [[ $format == safetensors ]] && suffix=.safetensors
    mv m "mixed_$format$suffix"; mv w "without_$format$suffix"
    refused 2 'layers.1.v has type' "mixed_$format$suffix"
    refused 2 'no tensor layers.1.k beside its fellows' "without_$format$suffix"
    [[ $format == npy ]] && continue
    size=$(stat -c %s "${format}_float16/capture.safetensors")
    for part in 10 100 $((size / 2)) $((size - 1)); do
        head -c "$part" "${format}_float16/capture.safetensors" > "cut_$format${suffix:-.${format%%_*}}"
        refused 2 "cut_$format" "cut_$format${suffix:-.${format%%_*}}"
    done
done
for format in npy npz; do
    refused 2 "layers.0.k has type <f4 Fortran" "turned_$format"
done
array=npy_float16/capture.safetensors/layers.1.k.npy
cp "$array" layers.1.k.npy
refused 2 'wanted the folder they are in, or an .npz' layers.1.k.npy
head -c 200 layers.1.k.npy > "$array"
wants 2 'layers.1.k.npy: holds 72 bytes of elements' "$attest" record npy_float16/capture.safetensors --out no.h5
rm "$array"; mkdir "$array"
wants 2 'layers.1.k.npy: is a folder' "$attest" record npy_float16/capture.safetensors --out no.h5
mkdir empty
refused 2 'is a folder, wanted a regular file, or a folder that holds .npy files' empty
[[ ! -e no.h5 ]] || fail "a refused capture was recorded"
echo "ok: ${#formats[@]} formats, mixed types, missing tensors, cut files"
