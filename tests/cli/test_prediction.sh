#!/bin/bash
# A CUDA run is held to the bits of the SIMT run of the same source. Without a GPU, a second attest-cpu stands in for
# attest-cuda: it must be found equal, and other sources must not be compared.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
copy_programs attest attest-cpu
cp "$BUILD/attest-cpu" "$scratch/attest-cuda"
wants 0 'BIT-EXACT 4 of 4, MODEL-EXACT 4 of 4' "$scratch/attest" verify 'asynct_decode/07_*' --runner cuda \
    --case 'asynct_decode b=2 h=4 hk=2 sk=33,300 d=64 dtype=bf16,f16'
wants 0 'PASS' "$attest" verify 'asynct_decode/07_*' --case 'asynct_decode b=2 h=4 hk=2 sk=33 d=64 dtype=bf16'
grep -q BIT-EXACT "$scratch/out" && fail "a CPU run claims to equal itself"
# Another source of the same name is no prediction: the hash of one variant is changed in the program's table.
hash=$(sha256sum kernels/asynct_decode/07_split_k.cu | cut -d' ' -f1)
sed "s/$hash/0000${hash:4}/" "$BUILD/attest-cpu" > "$scratch/attest-cuda"
wants 0 PASS "$scratch/attest" verify 'asynct_decode/07_*' --runner cuda --case 'asynct_decode b=2 h=4 hk=2 sk=33 d=64 dtype=bf16'
grep -q BIT-EXACT "$scratch/out" && fail "variants of different sources were compared"
# No GPU here, or none that serves: exit code 3 and what to do.
rm "$scratch/attest-cuda"
wants 3 'attest-cuda' "$scratch/attest" verify 'asynct_decode/07_*' --runner cuda
