#!/bin/bash
# record: whatever it dies of between a part and the journal's line, nothing is lost and nothing counted twice.
# SPDX-License-Identifier: Apache-2.0
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"
few_heads
cd "$scratch" || exit 3
few=(minilm --layers '2..3' --params 'causal=1 sigma=0.5' --what 'raw,p,entropy')
lines() { wc -l < "$1.jsonl"; }
wants 0 '14 of 14 units' "$attest" record "${few[@]}" --out whole.h5

# ---- the part first, the line after it: a part that cannot be written has no line
for layer in 2 3; do
    out=part_$layer.h5
    mkdir -p $out.parts/layer_00000$layer.h5
    wants 2 'is a folder' "$attest" record "${few[@]}" --out $out
    [[ $(lines $out) == $((layer - 1)) ]] || { cat $out.jsonl; fail "a part that was not written is journaled"; }
    [[ ! -e $out ]] || fail "an archive of a recording that failed"
    rmdir $out.parts/layer_00000$layer.h5
done
# a part of the layers is there
wants 0 '14 of 14 units' "$attest" record "${few[@]}" --out part_3.h5 --resume
same part_3.h5 whole.h5

# ---- killed between the two: the part is there, its line is not; the layer is counted again, not twice
sed -i '$d' part_2.h5.jsonl # no whole line: begun anew
mkdir part_2.h5.parts/layer_000003.h5
wants 2 'is a folder' "$attest" record "${few[@]}" --out part_2.h5
rmdir part_2.h5.parts/layer_000003.h5
[[ -e part_2.h5.parts/layer_000002.h5 && $(lines part_2.h5) == 2 ]] || fail "the first layer is not done"
sed -i '$d' part_2.h5.jsonl
wants 0 '14 of 14 units' "$attest" record "${few[@]}" --out part_2.h5 --resume
same part_2.h5 whole.h5

# ---- killed by the system in the middle of a write, at every size of file that there may be
for blocks in 1 4 16 64; do
    (ulimit -c 0 -f $blocks; exec "$attest" record "${few[@]}" --out cut.h5 > out 2>&1)
    [[ $? != 0 && ! -e cut.h5 ]] || fail "files of $blocks KiB were enough"
    resume=(--resume); [[ -s cut.h5.jsonl ]] || resume=()
    wants 0 '14 of 14 units' "$attest" record "${few[@]}" --out cut.h5 "${resume[@]}"
    same cut.h5 whole.h5
    [[ ! -e cut.h5.parts ]] || { ls cut.h5.parts; fail "parts are left"; }
    rm cut.h5 cut.h5.jsonl
done

# ---- one layer of many requests, killed again and again: those that lie in its part are not counted again
cp "$OLDPWD/datasets/activations/minilm.safetensors" mine.safetensors
one=(mine.safetensors --attention asynct --layers 3 --params causal=1) what=()
[[ ${AT_EFFORT:-full} == fast ]] && what=(--what 'raw,fir,p,out,entropy')
one+=("${what[@]}")
wants 0 '7 of 7 units' "$attest" record "${one[@]}" --out one.h5
part=kill.h5.parts/layer_000003.h5
resume=()
for kill in 1 2 3; do
    before=$(stat -c %i.%Y.%y $part 2> /dev/null)
    "$attest" record "${one[@]}" --part-seconds 0 --out kill.h5 "${resume[@]}" > /dev/null 2>&1 &
    pid=$!
    while kill -0 $pid 2> /dev/null; do
        [[ -e $part && $(stat -c %i.%Y.%y $part) != "$before" && -s kill.h5.jsonl && $(lines kill.h5) == 2 ]] && break
        sleep 0.005
    done
    kill -9 $pid; wait $pid 2> /dev/null
    [[ ! -e kill.h5 && $(lines kill.h5) == 2 ]] || { cat kill.h5.jsonl; fail "it had ended before kill $kill"; }
    resume=(--resume)
done
cp -r kill.h5.parts changed.h5.parts; cp kill.h5.jsonl changed.h5.jsonl
cp -r kill.h5.parts lost.h5.parts; cp kill.h5.jsonl lost.h5.jsonl; rm lost.h5.parts/*
cp -r kill.h5.parts unknown.h5.parts; sed '$d' kill.h5.jsonl > unknown.h5.jsonl
# the part of a layer that was done got lost, and the kill came while it was counted again
cp -r kill.h5.parts half.h5.parts; sed '$d' one.h5.jsonl > half.h5.jsonl
# What lies in the part is not read again: the source may change. A part that is lost, or that no line names, is.
for out in kill lost half; do
    wants 0 '7 of 7 units' "$attest" record "${one[@]}" --out $out.h5 --resume
    same $out.h5 one.h5
    [[ ! -e $out.h5.parts ]] || fail "the parts of $out.h5 are left"
done
/usr/bin/python3 - mine.safetensors << 'END' || exit 1
import json, struct, sys
with open(sys.argv[1], "r+b") as f:
    n = struct.unpack("<Q", f.read(8))[0]
    q = json.loads(f.read(n))["layers.3.q"]
    row = (q["data_offsets"][1] - q["data_offsets"][0]) // q["shape"][0]
    f.seek(8 + n + q["data_offsets"][0] + row) # the second row: the first one tells files apart
    f.write(b"\0\0\0\0")
END
hash_of() { grep -o '"hash":"[0-9a-f]*","request":'"$2" "$1.jsonl"; }
wants 0 '7 of 7 units' "$attest" record "${one[@]}" --out changed.h5 --resume
same changed.h5 one.h5
[[ $(hash_of changed.h5 0) == $(hash_of one.h5 0) ]] || fail "request 0 was counted again"
wants 0 '7 of 7 units' "$attest" record "${one[@]}" --out anew.h5
[[ $(hash_of anew.h5 0) != $(hash_of one.h5 0) && $(hash_of anew.h5 6) == $(hash_of one.h5 6) ]] || fail "the change shows in request 0"
wants 0 '7 of 7 units' "$attest" record "${one[@]}" --out unknown.h5 --resume
same unknown.h5 anew.h5

# ---- a part of something else is not taken
cp one.h5.jsonl foreign.h5.jsonl; sed -i '$d' foreign.h5.jsonl
for other in "mine.safetensors --attention asynct --layers 3" "mine.safetensors --attention asynct --layers 3 --params causal=1 --shard 1/2" "mine.safetensors --attention asynct --layers 2..3 --params causal=1"; do
    mkdir -p foreign.h5.parts
    # shellcheck disable=SC2086
    wants 0 units "$attest" record $other "${what[@]}" --out foreign.h5.parts/layer_000003.h5
    wants 2 'layer_000003.h5: is not a part of this recording' "$attest" record "${one[@]}" --out foreign.h5 --resume
done
