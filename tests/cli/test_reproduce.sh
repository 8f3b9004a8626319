#!/bin/bash
# reproduce: the committed claims from the committed measurements and from a run; what it refuses, and that a refuted claim fails nothing.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
python=$(command -v python3) || { echo "no python3: the runner that stands in for a GPU does not start"; exit 77; }
runner="$python tests/python/runner_client.py"

# Without a GPU: every claim has a verdict, and every figure of ours an origin.
wants 0 ' refuted, ' "$attest" reproduce --json "$scratch/all.json"
cp "$scratch/out" "$scratch/table"
"$python" - "$scratch/all.json" "$scratch/table" <<'P' || fail "the claims do not hold together"
import json, re, sys
found, table = json.load(open(sys.argv[1])), open(sys.argv[2]).read()
claims = found["claims"]
counts = {v: sum(c["verdict"] == v for c in claims) for v in ("supported", "refuted", "not seen")}
assert [found["supported"], found["refuted"], found["not_seen"]] == list(counts.values()) and all(counts.values()), counts
assert table.splitlines()[-1] == f"{len(claims)} claims: " + ", ".join(f"{n} {v}" for v, n in counts.items())
assert len(claims) >= 30 and len({c["claim"] for c in claims}) == len(claims)
for c in claims:
    seen = c["verdict"] != "not seen"
    assert (c["ours"] is not None) == seen == bool(c["file"]), c
    assert seen or c["why"], c
    if c["file"].endswith(".h5"):
        assert c["device"] and c["commit"] and re.fullmatch(r"\d{4}-\d\d-\d\d", c["date"]), c
    if seen and all(isinstance(t["value"], float) for t in c["terms"]) and c["ours"] != "inf":
        assert abs(eval(c["expression"], {}, {t["name"]: t["value"] for t in c["terms"]}) / (c["ours"] or 1) - bool(c["ours"])) < 1e-12, c
P

# Chosen by id or by section; to stdout as JSON alone.
wants 0 '2 claims: ' "$attest" reproduce mma-bk-16 '000 6.10'
wants 0 '"verdict": ' "$attest" reproduce mma-bk-16 --json -
"$python" -m json.tool < "$scratch/out" > /dev/null || fail "no JSON"
wants 2 "matches 'mma-bk-17'; nearest is 'mma-bk-1" "$attest" reproduce mma-bk-17
wants 2 'did you mean' "$attest" reproduce --jsn x
wants 2 "did you mean 'reproduce'" "$attest" reproudce
wants 2 'without --runner' "$attest" reproduce --out "$scratch/b.h5"
wants 2 'of one kind' "$attest" reproduce --from . --runner cuda

# Measurements that are not there, hold nothing, or are damaged.
wants 2 "$scratch/none: No such file" "$attest" reproduce --from "$scratch/none"
mkdir "$scratch/empty"
wants 2 'has no archive *.h5' "$attest" reproduce --from "$scratch/empty"
wants 2 'wanted archives or folders' "$attest" reproduce --from ,
head -c 30000 datasets/measurements/h200_bench.h5 > "$scratch/short.h5"
wants 2 short.h5 "$attest" reproduce --from "$scratch/short.h5"
echo text > "$scratch/text.h5"
wants 2 text.h5 "$attest" reproduce --from "$scratch/text.h5,datasets/measurements"
wants 0 '1 claims: 0 supported, 0 refuted, 1 not seen' "$attest" reproduce mma-bk-16 --from datasets/measurements/h200_exp2.h5
wants 2 ':1: found "claims" before the first' "$attest" reproduce --claims <(echo 'claims a') # and a pipe can be read
echo 'claim a' > "$scratch/claims"
wants 2 "$scratch/claims:1: claim a: wanted a line \`source\`" "$attest" reproduce --claims "$scratch/claims"

# Measured now: by a runner that stands in for a GPU, on the rows that the claims need and no others.
mkdir -p "$scratch/data/bench"
cp datasets/bench/source_times.txt datasets/bench/ceilings.txt "$scratch/data/bench/"
echo 'asynct_decode b=1 h=1 hk=1 sk=3,4,5 d=8 dtype=f16' > "$scratch/data/bench/tiny.cases"
{
    printf 'claim %s\nsource 000 1\nwhat any\nlet a = bench asynct_decode/70_python hot sk=%s\n' longer 4
    printf 'let b = bench asynct_decode/70_python hot sk=3\nours a / b\nrule %s\n' 'above 0'
    printf 'claim %s\nsource 000 1\nwhat any\nlet a = bench asynct_decode/70_python hot sk=%s\nours a\nrule below 0\n' refuted 4 nowhere 9
} > "$scratch/claims"
wants 0 '3 claims: 1 supported, 1 refuted, 1 not seen' env AT_DATASETS="$scratch/data" "$attest" reproduce --claims "$scratch/claims" \
    --runner "$runner" --replays 3 --out "$scratch/b.h5"
grep -q "^longer .* supported  this run, .*$(date -u +%Y)" "$scratch/out" || { cat "$scratch/out"; fail "it does not say that this run gave it"; }
wants 0 '70_python' "$attest" show "$scratch/b.h5"
[[ $(grep -c '^  70_python' "$scratch/out") == 2 ]] || fail "not the two rows that the claims need"
wants 0 '3 claims: 1 supported, 1 refuted, 1 not seen' "$attest" reproduce --claims "$scratch/claims" --from "$scratch/b.h5"
grep -q '^longer .* b.h5, ' "$scratch/out" || fail "it does not name the archive"
wants 2 'no clock worth reading' "$attest" reproduce --runner cpu
wants 2 'no chosen claim needs a benchmark' "$attest" reproduce f16-ends-at-65504 --runner "$runner"
wants 2 'has none of the kernels' "$attest" reproduce mma-bk-16 --runner "$runner"
copy_programs attest attest-cpu # no attest-cuda beside them
wants 3 attest-cuda "$scratch/attest" reproduce mma-bk-16 --runner cuda
# What the SIMT machine counts is not seen where there is none, with the reason.
rm "$scratch/attest-cpu"
wants 0 'no SIMT machine: ' "$scratch/attest" reproduce lightning-bank-conflicts
