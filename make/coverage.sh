#!/bin/bash
# Line coverage of reference/, verify/, datasets/ and notebooks_export/, each by itself, from a COVERAGE=1 build; exit 1
# where one is under the aim of 90 % of lines. Files that no program ran count as lines that none ran.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
build=${1:-build/cpu-coverage} aim=${AT_COVERAGE_AIM:-90}
for folder in reference verify datasets notebooks_export; do
    find "$build/$folder" -name '*.gcno' -print0 | xargs -0 gcov --json-format --stdout 2>/dev/null |
        python3 -c '
import json, os, sys
folder, aim = sys.argv[1], float(sys.argv[2])
lines = {}
for text in sys.stdin:
    for f in json.loads(text)["files"]:
        if f["file"].startswith(folder + "/") and os.path.exists(f["file"]):
            for l in f["lines"]:
                key = (f["file"], l["line_number"])
                lines[key] = lines.get(key, 0) + l["count"]
hit = sum(1 for n in lines.values() if n)
worst = {}
for (name, _), n in lines.items():
    a, b = worst.get(name, (0, 0))
    worst[name] = (a + (n > 0), b + 1)
for name, (a, b) in sorted(worst.items(), key=lambda x: x[1][0] / x[1][1])[:12]:
    print(f"    {100 * a / b:5.1f} %  {a:4d} of {b:4d}  {name}")
share = 100 * hit / max(1, len(lines))
print(f"{folder}: {share:.1f} % of {len(lines)} lines")
sys.exit(not share >= aim)' "$folder" "$aim" || failed=1
done
exit "${failed:-0}"
