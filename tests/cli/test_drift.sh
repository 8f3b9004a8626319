#!/bin/bash
# attest drift: what has moved is found and named, what has not is not accused.
# SPDX-License-Identifier: Apache-2.0
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"
/usr/bin/python3 -c 'import numpy' 2> /dev/null || { echo "numpy is missing: python3-h5py brings it"; exit 77; }
h=4 # heads of the recorded activations
what=()
[[ ${AT_EFFORT:-full} == fast ]] && h=2 what=(--what 'q,k,raw,scaled,fir,p,out')
/usr/bin/python3 tests/python/drift_captures.py datasets/activations/minilm.safetensors "$scratch" $h || fail "no captures"
for capture in same own scale taps tap bf16 left right moved; do
    causal=0; [[ $capture == left || $capture == right || $capture == moved ]] && causal=1
    layers=2..4; [[ $causal == 1 ]] && layers=0
    "$attest" record "$scratch/$capture.safetensors" --attention asynct --layers $layers --params "causal=$causal" "${what[@]}" --out "$scratch/$capture.h5" > "$scratch/out" 2>&1 ||
        { cat "$scratch/out"; fail "record $capture"; }
done
"$attest" record "$scratch/same.safetensors" --attention asynct --layers 3 "${what[@]}" --out "$scratch/one.h5" > /dev/null 2>&1 || fail "record a layer"
"$attest" record "$scratch/same.safetensors" --layers 2..4 --attention softmax --what raw --out "$scratch/softmax.h5" > /dev/null 2>&1 || fail "record softmax"
drift() { "$attest" drift "$@" > "$scratch/drift.txt" 2>&1; }
# says 'TEXT': a line of the last drift
says() { grep -qE -- "$1" "$scratch/drift.txt" || { cat "$scratch/drift.txt"; fail "drift does not say '$1'"; }; }
# heads N: so many heads were accused
heads() { says "beyond their limits, in $1 heads"; }

# --- the same requests
drift "$scratch/same.h5" "$scratch/same.h5" || fail "equal recordings have drifted"
says 'in pairs: the same requests'; says ' 0 beyond their limits, in 0 heads'
drift "$scratch/same.h5" "$scratch/own.h5" || fail "a sigma and gamma of the capture's own, of 1, are not the default"

drift "$scratch/same.h5" "$scratch/scale.h5" --junit "$scratch/d.xml" --json "$scratch/d.jsonl"; [[ $? == 1 ]] || fail "a head's scale moved by 2 %, exit $?"
heads 1; says '^ +2 +1 '; says 'layer 2, head 1'; says 'first to move: q;'; says 'deciles in B are 1.0[12]'
drift "$scratch/taps.h5" "$scratch/tap.h5"; [[ $? == 1 ]] || fail "a dropped tap, exit $?"
heads 1; says "^ +4 +$((h - 1)) "; says "layer 4, head $((h - 1))"; says 'first to move: fir; .*FIR'
drift "$scratch/same.h5" "$scratch/bf16.h5"; [[ $? == 1 ]] || fail "a layer in bf16, exit $?"
says '^ +3 +[0-9]+\* k +k '; says '^ +3 +[0-9]+  q +q '; says 'rounded to 8 significant bits'
grep -E '^ +[0-9]+ +[0-9]+[ *]' "$scratch/drift.txt" | grep -vqE '^ +3 ' && fail "another layer than 3 is accused"

# Another parameter: named by the first quantity that it reaches.
while read -r parameter moved; do
    "$attest" record "$scratch/same.safetensors" --attention asynct --layers 3 --params "$parameter" "${what[@]}" --out "$scratch/parameter.h5" > "$scratch/out" 2>&1 ||
        { cat "$scratch/out"; fail "record $parameter"; }
    drift "$scratch/one.h5" "$scratch/parameter.h5"; [[ $? == 1 ]] || fail "$parameter has moved nothing"
    says "^first to move: $moved"
done << 'MOVED'
scale=0.4 scaled; .*: the scale has$
sigma=0.5 fir; .* sigma or edge have$
clip=0:3 p; .*: the gate or the softmax has$
gamma=2 out; .*: gamma, or which row of v
MOVED
says 'deciles in B are 2 times'

# a kernel is given a capture's own taps, too
n=0
for runner in cpu "exec '$BUILD/attest-cpu'"; do
    "$attest" record "$scratch/tap.safetensors" --attention asynct --layers 4 --what raw,fir,p --runner "$runner" --out "$scratch/by_$((++n)).h5" > "$scratch/out" 2>&1 ||
        { cat "$scratch/out"; fail "record by $runner"; }
done
same "$scratch/by_1.h5" "$scratch/by_2.h5"

# --- every value carries noise, and none is equal
for capture in noise1 noise2 noise3 noise4 loud1 loud2 loud3 loud4 loud_scale noisy_scale noisy_order all_f32 all_bf16 ids ids_order ids_other equal equal_other; do
    "$attest" record "$scratch/$capture.safetensors" --attention asynct "${what[@]}" --out "$scratch/$capture.h5" > "$scratch/out" 2>&1 || { cat "$scratch/out"; fail "record $capture"; }
done
"$attest" record "$scratch/noise2.safetensors" --attention asynct --params causal=1 "${what[@]}" --out "$scratch/causal.h5" > /dev/null 2>&1 || fail "record causal"
"$attest" record "$scratch/noise2.safetensors" --attention asynct --params causal=1 --what out --out "$scratch/causal_out.h5" > /dev/null 2>&1 || fail "record causal outputs"
by_values='in pairs: the same requests, by their sizes and by values closer than those of other requests could be'
# mirrored A B CODE: both ways round the same heads are accused of the same; the last drift is A against B
mirrored() {
    local code a b way
    for way in "$2 $1" "$1 $2"; do
        read -r a b <<< "$way"
        drift "$scratch/$a.h5" "$scratch/$b.h5" --json "$scratch/${a}_$b.jsonl"; code=$?
        [[ $code == "$3" ]] || { cat "$scratch/drift.txt"; fail "drift $a $b: exit $code, wanted $3"; }
    done
    /usr/bin/python3 - "$scratch/$1_$2.jsonl" "$scratch/$2_$1.jsonl" << 'P' || fail "$1 against $2 and $2 against $1 differ"
import json, sys
there, back = ([json.loads(line) for line in open(path)] for path in sys.argv[1:])
assert len(there) == len(back) > 0
for x, y in zip(there, back):
    x["n_a"], x["n_b"], x["hidden_a"], x["hidden_b"] = x["n_b"], x["n_a"], x["hidden_b"], x["hidden_a"]
    assert x == y, (x, y)
P
}
mirrored all_f32 all_bf16 1
says "$by_values"; says '^ +3 +[0-9]+  q +q '; says 'those of B were rounded to 8 significant bits \(bf16 has 8\)'
drift "$scratch/all_bf16.h5" "$scratch/all_f32.h5"; says 'those of A were rounded to 8 significant bits'
mirrored noise1 noise2 0
says "$by_values"; says ' 0 beyond their limits, in 0 heads'
mirrored noise1 noisy_scale 1
says "$by_values"; heads 1; says '^ +3 +1 '; says 'first to move: q;'; says 'deciles in B are 1\.3 times'
mirrored noise1 causal 1
says "$by_values"; says '^asked for differently: params: A causal=0, B causal=1$'
says '^first to move: raw; the mask, or the lengths of rows, have changed: hidden are 0 % of \(query, key\) in A, 4[0-9.]+ % in B'
drift "$scratch/noise1.h5" "$scratch/causal_out.h5" --paired; says '^first to move: out; the mask, or the lengths of rows, have changed'
mirrored left right 0
mirrored noise1 noisy_order 0
says "$by_values"; heads 0
for i in 1 2; do
    "$attest" record "$scratch/noisy_order.safetensors" --attention asynct "${what[@]}" --shard $i/2 --out "$scratch/shard_$i.h5" > /dev/null 2>&1 || fail "record a shard"
done
"$attest" merge "$scratch"/shard_?.h5 --out "$scratch/merged.h5" > /dev/null || fail "merge"
drift "$scratch/noise1.h5" "$scratch/merged.h5" || fail "requests in another order and in shards"
says "$by_values"
mirrored ids ids_order 1
says 'in pairs: the same requests, by the ids of their tokens'
drift "$scratch/ids.h5" "$scratch/ids_other.h5"; says 'by a permutation test: other requests, by the ids of their tokens: 0 of 7 and 7 units in common'
drift "$scratch/ids.h5" "$scratch/noise1.h5" || fail "one of them has no ids"
says "$by_values"
mirrored equal equal_other 0
says 'by a permutation test: requests of the same sizes, .*; neither has ids of their tokens; --paired'
drift tests/golden/distributions_v1.h5 tests/golden/distributions_v1.h5 || fail "an archive without the column of ids"
says 'in pairs: the same requests, and values of theirs that are equal'

# --- a measured floor: 3 % of noise are beyond the default limits, and no change
drift "$scratch/loud1.h5" "$scratch/loud2.h5"; [[ $? == 1 ]] || fail "3 % of noise are within the default limits"
floor=(--noise "$scratch/loud3.h5,$scratch/loud4.h5")
drift "$scratch/loud1.h5" "$scratch/loud2.h5" "${floor[@]}" || { cat "$scratch/drift.txt"; fail "noise is accused beside its own floor"; }
says '^noise of 2 recordings of one thing, of which 3 times are left beside the limits; its largest: ks 0'
drift "$scratch/loud1.h5" "$scratch/loud_scale.h5" --noise "$scratch/loud3.h5" "$scratch/loud4.h5"; [[ $? == 1 ]] || fail "a head's scale moved by 50 % is not found beside the floor"
heads 1; says '^ +3 +1 '
echo '{"paired": {"noise_factor": 0}}' > "$scratch/no_floor.json"
drift "$scratch/loud1.h5" "$scratch/loud2.h5" "${floor[@]}" --limits "$scratch/no_floor.json"; [[ $? == 1 ]] || fail "0 times the floor leaves something"
wants 2 'the mask of ' "$attest" drift "$scratch/noise1.h5" "$scratch/noise2.h5" --noise "$scratch/noise3.h5,$scratch/causal.h5"
cp "$scratch/loud2.h5" "$scratch/loud2_again.h5"
wants 2 'a change would be its own noise' "$attest" drift "$scratch/loud1.h5" "$scratch/loud2.h5" --noise "$scratch/loud2_again.h5,$scratch/loud3.h5,$scratch/loud1.h5"
wants 2 'found 1 recordings, wanted 2 to 32' "$attest" drift "$scratch/noise1.h5" "$scratch/noise2.h5" --noise "$scratch/noise3.h5"
wants 2 'more recordings belong to --noise' "$attest" drift "$scratch/noise1.h5" "$scratch/noise2.h5" "$scratch/noise3.h5"
wants 2 'wanted the requests of A and B' "$attest" drift "$scratch/left.h5" "$scratch/left.h5" --noise "$scratch/right.h5,$scratch/right.h5"
wants 2 '--noise is for recordings of the same requests, found other requests' "$attest" drift "$scratch/left.h5" "$scratch/right.h5" --noise "$scratch/left.h5,$scratch/right.h5"
wants 2 'token_ids has type I32, rank 1 and 164 values, wanted i32 and the id of each of the 165 key tokens' "$attest" record "$scratch/bad_ids.safetensors" --attention asynct --out "$scratch/x.h5"

# --- files of the moved scale
[[ $(grep -c '<failure' "$scratch/d.xml") == 1 ]] || fail "failures in JUnit"
[[ $(grep -c '<testcase' "$scratch/d.xml") == $((6 * h)) ]] || fail "test cases in JUnit: $h heads and $h key/value heads of 3 layers"
if command -v xmllint > /dev/null; then
    xmllint --noout --schema tests/golden/junit.xsd "$scratch/d.xml" 2> "$scratch/out" || { tail -n 3 "$scratch/out"; fail "JUnit"; }
else
    echo "xmllint is missing: the JUnit file is not validated"
fi
/usr/bin/python3 - "$scratch/d.jsonl" <<'P' || fail "JSON lines"
import json, sys
rows = [json.loads(line) for line in open(sys.argv[1])]
bad = {(r["layer"], r["head"]) for r in rows if r["failed"]}
assert bad == {(2, 1)}, bad
assert all(r["ks"] == 0 for r in rows if r["layer"] != 2), "ks of what is equal"
P

# --- limits
echo '{"paired": {"ks": 0.5, "wasserstein": null, "js": null, "grain": null, "zero_share": null, "headroom": null}}' > "$scratch/wide.json"
drift "$scratch/same.h5" "$scratch/scale.h5" --limits "$scratch/wide.json" || fail "limits from a file are not taken"
echo '{"paired": {"k": {"ks": 0}}}' > "$scratch/zero.json"
drift "$scratch/same.h5" "$scratch/same.h5" --limits "$scratch/zero.json" || fail "a limit of 0 fails what is equal"

# --- other requests
drift "$scratch/left.h5" "$scratch/right.h5" || { cat "$scratch/drift.txt"; fail "other requests of one kind are accused"; }
says 'by a permutation test: other requests'; says '48 and 48 groups of requests, 1000 deals'
drift "$scratch/left.h5" "$scratch/moved.h5"; [[ $? == 1 ]] || fail "a head's scale moved by 20 % is not found"
heads 1; says '^ +0 +1 '
splits=200; [[ ${AT_EFFORT:-full} == fast ]] && splits=20
"$BUILD/tests/support/make_drift_splits" "$scratch/left.h5" $splits 0.05 || fail "random halves are accused too often, or too seldom"
# so few requests that no deal could reach the level: nothing was judged
drift "$scratch/same.h5" "$scratch/bf16.h5" --unpaired --limits <(echo '{"unpaired": {"level": 0.0005}}')
[[ $? == 4 ]] || { cat "$scratch/drift.txt"; fail "a test that cannot fail judged something"; }
says 'nothing was judged'; says '7 and 7 groups of requests, 1000 deals'
drift "$scratch/same.h5" "$scratch/bf16.h5" --unpaired --limits <(echo '{"unpaired": {"permutations": 5000}}')
says 'all 3432 deals.*the least p they can give is 0.00058'

# --- what cannot be compared
wants 2 "layers: A has 2 where B has 3" "$attest" drift "$scratch/same.h5" "$scratch/one.h5"
wants 2 "heads: A has 4/2, B has $h/$h" "$attest" drift "$scratch/left.h5" "$scratch/one.h5"
wants 2 "attention: A has asynct, B has softmax" "$attest" drift "$scratch/same.h5" "$scratch/softmax.h5"
wants 2 "--paired: A and B do not have the same requests" "$attest" drift "$scratch/left.h5" "$scratch/right.h5" --paired
wants 2 "exclude each other" "$attest" drift "$scratch/left.h5" "$scratch/right.h5" --paired --unpaired
wants 2 "no quantity like fri in common" "$attest" drift "$scratch/left.h5" "$scratch/right.h5" --what fri
wants 2 "group distributions is missing" "$attest" drift "$scratch/left.h5" tests/golden/run_v1.h5
wants 2 "No such file" "$attest" drift "$scratch/left.h5" "$scratch/none.h5"
head -c 3000 "$scratch/left.h5" > "$scratch/torn.h5"
wants 2 "torn.h5" "$attest" drift "$scratch/left.h5" "$scratch/torn.h5"
echo '{"pared": {}}' > "$scratch/bad.json"
wants 2 "did you mean 'paired'" "$attest" drift "$scratch/left.h5" "$scratch/left.h5" --limits "$scratch/bad.json"
wants 2 "wanted one value, or one for each query head" "$attest" record "$scratch/bad_sigma.safetensors" --attention asynct --out "$scratch/x.h5"
wants 2 "value 1 is nan, wanted a finite one" "$attest" record "$scratch/bad_taps.safetensors" --attention asynct --out "$scratch/x.h5"
echo "ok: same requests (scale, tap, bf16), noise (rounding, 1.3, mask, order, ids, floor), other requests, limits, files, refusals"
