#!/bin/bash
# record: whatever it dies of between a part and the journal's line, nothing is lost and nothing counted twice.
# SPDX-License-Identifier: Apache-2.0
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"
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
