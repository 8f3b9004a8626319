#!/bin/bash
# Every exit code, and one clear line for every kind of bad input on the command line and in case lines.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
one_line() { [[ $(grep -c . "$scratch/out") == 1 ]] || { cat "$scratch/out"; fail "more than one line for bad input"; }; }
bad_case() { wants 2 "$1" "$attest" verify --case "$2"; one_line; }
good='asynct_decode b=2 h=4 hk=2 sk=33 d=32 dtype=bf16'

wants 0 PASS "$attest" verify 'asynct_decode/*' --case "$good"
wants 0 verify "$attest" --help
wants 2 usage "$attest"
wants 2 "did you mean 'verify'" "$attest" verfy; one_line
wants 2 'did you mean --cases' "$attest" verify --casse x; one_line
wants 2 'matches' "$attest" verify 'asynct_decode/00_blas_p33'; one_line
wants 2 'wanted i/N' "$attest" verify --shard 3/2; one_line
wants 2 'exclude each other' "$attest" verify --case "$good" --cases 'x:*'; one_line
wants 2 '--resume wants --out' "$attest" verify --resume; one_line
# Reports in the place of the archive, of its journal or of each other; where none can be written. Before any work.
run=$scratch/run.h5
ln -s run.h5.jsonl "$scratch/link"; : > "$run.jsonl"
for report in "$run" "$run.jsonl" "$scratch/link"; do
    wants 2 'are one file' "$attest" verify --case "$good" --out "$run" --json "$report"; one_line
    wants 2 'are one file' "$attest" verify --case "$good" --out "$run" --junit "$report"; one_line
done
wants 2 'are one file' "$attest" verify --case "$good" --junit "$scratch/both" --json "$scratch/both"; one_line
wants 3 "$scratch/no" "$attest" verify --case "$good" --junit "$scratch/no/x.xml"; one_line
[[ ! -e "$run" && ! -s "$run.jsonl" && ! -e "$scratch/both" ]] || fail "a refused run has written"
rm "$run.jsonl"
wants 2 'the roles are declarations, edge' "$attest" verify --cases 'no_such_role:*'; one_line
wants 4 UNSUPPORTED "$attest" verify 'asynct_decode/00_tc_f16' --case "$good"
wants 3 'absent' "$attest" verify --runner 'echo absent >&2; exit 9' --case "$good"
wants 2 'no_such.h5' "$attest" show "$scratch/no_such.h5"; one_line
wants 2 'wants --out' "$attest" merge a.h5; one_line
wants 2 "wanted 'family/variant case line'" "$attest" replay nonsense; one_line
wants 2 'wanted operators' "$attest" list nonsense; one_line

bad_case 'asynct_decoed' 'asynct_decoed b=1'
bad_case 'hk' 'asynct_decode b=1 h=4 hk=3 sk=8 d=32'
bad_case 'h' 'asynct_decode b=1 h=0 hk=1 sk=8 d=32'
bad_case 'd' 'asynct_decode b=1 h=1 hk=1 sk=8 d=0'
bad_case 'scale' 'asynct_decode b=1 h=1 hk=1 sk=8 d=32 scale=nan'
bad_case 'sigma' 'asynct_decode b=1 h=1 hk=1 sk=8 d=32 sigma=inf'
bad_case 'clip' 'asynct_decode b=1 h=1 hk=1 sk=8 d=32 clip=1:0'
bad_case 'dtype' 'asynct_decode b=1 h=1 hk=1 sk=8 d=32 dtype=f17'
bad_case 'data' 'asynct_decode b=1 h=1 hk=1 sk=8 d=32 data=nomal'
bad_case 'b' 'asynct_decode b=99999999999 h=1 hk=1 sk=8 d=32'
bad_case 'sk' 'asynct_decode b=1 h=1 hk=1 sk=-1 d=32'
bad_case 'twice' 'asynct_decode b=1 b=2 h=1 hk=1 sk=8 d=32'
bad_case 'wanted one decoy' 'asynct_decode b=1 h=1 hk=1 sk=8 d=32 require=lse_base_2'
bad_case 'b' 'asynct_decode b=1000000 h=8 hk=8 sk=8 d=128'
bad_case '65536000000 key slots' 'asynct_decode b=65536 h=8 hk=8 sk=1000000 d=128'
bad_case 'AT_MEMORY_LIMIT' 'asynct_decode b=2000 h=8 hk=8 sk=1000000 d=128'
printf 'asynct_decode b=1 sk=8\nuclip_norm tokens=3 channels=\0x\n' > "$scratch/bad.cases"
mkdir "$scratch/cases" && mv "$scratch/bad.cases" "$scratch/cases/"
AT_DATASETS=$scratch wants 2 'bad.cases:2' "$attest" verify --cases '*'; one_line
echo 'uclip_norm tokens=3' > "$scratch/cases/bad.cases"
printf 'bad:*\nbad:rms_norm*\n' > "$scratch/cases/some.selection"
AT_DATASETS=$scratch wants 2 "some.selection:2: no case matches 'bad:rms_norm*'" "$attest" verify --cases @some; one_line
for variant in 'rms_norm/*' 'uclip_norm/nothing*'; do # none of the case's family, none at all
    printf 'bad:*\nonly %s bad:*\n' "$variant" > "$scratch/cases/some.selection"
    AT_DATASETS=$scratch wants 2 "some.selection:2: no variant that is judged on 'bad:*' matches '$variant'" "$attest" verify --cases @some; one_line
done
head -c 100000 /dev/urandom > "$scratch/cases/bad.cases"
AT_DATASETS=$scratch wants 2 'bad.cases' "$attest" verify --cases '*'; one_line
AT_DATASETS=$scratch/none wants 2 'none' "$attest" verify; one_line
head -c 5000 datasets/activations/minilm.safetensors > "$scratch/minilm.safetensors"
mkdir "$scratch/activations" && mv "$scratch/minilm.safetensors" "$scratch/activations/"
AT_DATASETS=$scratch wants 2 'minilm.safetensors' "$attest" verify 'asynct_*/*' --case 'asynct_prefill dataset=minilm layer=0'; one_line
for command in list verify replay show selftest bench study merge export doctor; do
    wants 0 "usage: attest $command" "$attest" "$command" --help
done
