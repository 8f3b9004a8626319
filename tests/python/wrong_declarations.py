#!/usr/bin/env python3
"""Declares real variants wrongly, one field at a time, and wants them WRONG on the case that is said to test that field.

    wrong_declarations.py ATTEST RUNNER FIELDS.jsonl [PART/PARTS]

FIELDS.jsonl is what `attest declarations --json` printed. Between RUNNER and attest stands sed, which changes the field in
the greeting: the kernel runs as it is, and is judged by another declaration. Left out is what is not the same both ways:
variants without an order, which limits judge; the exponential, whose neighbour allows more than the declaration does; a
logarithm or a tanh by a C library as the neighbour, which allows a range that the unit's may lie in; the logarithm of a sum of a C
library's exponentials, which is a range that the neighbour's logarithm widens; and blocks beside a P of f32, which rescale
what the exponential is off by.
SPDX-License-Identifier: Apache-2.0
"""
import collections
import json
import subprocess
import sys
import tempfile

attest, runner, path = sys.argv[1:4]
part, parts = map(int, sys.argv[4].split("/")) if len(sys.argv) > 4 else (1, 1)

with open(path, encoding="ascii") as lines:
    fields = [json.loads(line) for line in lines]
rounds_p = {(f["family"], f["variant"]): f["value"] != "f32" for f in fields if f["field"] == "p"}
ranges = {(f["family"], f["variant"]) for f in fields if f["field"] == "exp" and f["value"] == "libm"}

groups = collections.defaultdict(list)  # variants that one run judges: (family, case, what is declared instead)
for field in fields:
    key = field["family"], field["variant"]
    one_way = field["free_order"] or field["field"] == "exp" or (field["field"] == "block" and not rounds_p[key])
    one_way |= field["field"] == "lse" and (key in ranges or field["instead"] == "lse=libm")
    one_way |= field["instead"] == "tanh=libm"
    if field["state"] == "tested" and field["by"] == "model" and not one_way:
        groups[field["family"], field["example"], field["instead"]].append((field["variant"], field["field"]))

judged, missed = 0, []
for n, ((family, case, instead), variants) in enumerate(sorted(groups.items())):
    if n % parts != part - 1:
        continue
    changes = "".join(f"s/%20{name}%3D[a-z0-9_]*/%20{name}%3D{value}/;" for name, value in (w.split("=") for w in instead.split()))
    script = "".join(f"/^variant .* family={family} name={variant} /{{{changes}}};" for variant, _ in variants)
    with tempfile.NamedTemporaryFile() as out:
        run = subprocess.run(
            [attest, "verify", *(f"{family}/{variant}" for variant, _ in variants), "--case", case, "--quiet", "--jobs", "1", "--again", "1000000",
             "--runner", f"{runner} | sed -u '{script}'", "--json", out.name], capture_output=True, text=True, check=False)
        results = [json.loads(line) for line in open(out.name, encoding="utf-8")]
    wrong = {r["variant"] for r in results if r.get("state") == "WRONG"}
    if run.returncode != 1 and wrong or not results:
        sys.exit(f"{case}: exit {run.returncode}: {run.stderr}")
    for variant, field in variants:
        judged += 1
        if variant not in wrong:
            states = {r["state"] for r in results if r.get("variant") == variant}
            missed.append(f"{family}/{variant} declared {instead} (field {field}): {states} on {case}")
print("\n".join(missed))
print(f"{judged} wrong declarations of variants judged, {len(missed)} not seen")
sys.exit(1 if missed or not judged else 0)
