#!/usr/bin/env python3
"""Makes the journals of a large run out of those of a small one: grow_journals.py BASE.h5.jsonl RESULTS SHARDS STEM

Writes STEM1.h5.jsonl ... as `attest verify --shard i/SHARDS` leaves them, with at least RESULTS results in all: the results of
the small run again and again, each time of other cases (another seed) at the next positions of the plan. Every line is one that
attest has written but for these numbers. The archives beside the journals, which merge does not read, are not made.
SPDX-License-Identifier: Apache-2.0
"""
import re
import sys

base, wanted, shards, stem = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
lines = open(base, encoding="utf-8").read().splitlines()
start, steps = lines[0], lines[1:-1]
assert '"event":"start"' in start and '"event":"end"' in lines[-1], f"{base}: not the journal of a run that ended"
position = re.compile(r'"plan_index":(\d+)')
seed = re.compile(r'(?<= )seed=(\d+)')
assert all(seed.search(s) for s in steps), f"{base}: a case without a seed"
positions = 1 + max(int(p) for s in steps for p in position.findall(s))
cut = [(int(position.search(s).group(1)), s.count('"plan_index":'), s) for s in steps]
cases = sorted({re.search(r'"case_id":"([^"]*)"', s).group(1) for s in steps})
case_of = {at: cases.index(re.search(r'"case_id":"([^"]*)"', s).group(1)) for at, n, s in cut}

files = [open(f"{stem}{i + 1}.h5.jsonl", "w", encoding="utf-8") for i in range(shards)]
entries = [0] * shards
for f in files:
    f.write(start + "\n")
copy = 0
while sum(entries) < wanted:
    for at, n, step in cut:
        # a shard has whole cases, as those of a run have, here one copy of a case after the other
        number = 1000 * (copy + 1) + int(seed.search(step).group(1)) % 1000
        shard = (copy + case_of[at]) % shards
        text = position.sub(lambda m: f'"plan_index":{int(m.group(1)) + copy * positions}', step)
        files[shard].write(seed.sub(f"seed={number}", text) + "\n")
        entries[shard] += n
    copy += 1
for i, f in enumerate(files):
    f.write('{"event":"end","n":%d,"shard":"%d/%d"}\n' % (entries[i], i + 1, shards))
    f.close()
print(sum(entries))
