#!/bin/bash
# No right variant is accused: random cases of every operator's domain, one in ten far out, one in four near to the ordinary.
# One job in twelve is launched again elsewhere, which takes several launches more: some hundreds are.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
cases=400
[[ "${AT_EFFORT:-full}" == fast ]] && cases=80
judge() { # number, least results, variants...
    local n=$1 least=$2 code judged; shift 2
    "$attest" verify "$@" --random "$n" --seed 20261121 --again 12 --quiet --json "$scratch/out.jsonl" > "$scratch/out" 2> "$scratch/err"
    code=$?
    [[ $code == 0 ]] || { tail -n 40 "$scratch/out"; tail -n 3 "$scratch/err"; fail "exit $code: a right variant was accused, or a case refused"; }
    judged=$(grep -cE '"state":"(PASS|VACUOUS|OVERFLOWED|LAUNDERED)"' "$scratch/out.jsonl")
    echo "$n random cases, $judged results judged, none accused"
    [[ $judged -ge $least ]] || fail "only $judged results were judged"
}
judge "$cases" $((cases * 4))
# A case's own line draws it again.
line=$(grep -o '"case_id":"[^"]*"' "$scratch/out.jsonl" | head -n 1 | cut -d'"' -f4)
"$attest" verify --case "$line" --quiet > /dev/null || fail "$line does not replay"
# How near sums over the errors of right variants come to what they may be: not beyond half.
sums_in_bound() {
    grep -oE '"aggregate_ratio":[0-9.e-]+' "$scratch/out.jsonl" | cut -d: -f2 | sort -g > "$scratch/ratios"
    echo "$(wc -l < "$scratch/ratios") results with sums, the largest $(tail -n 1 "$scratch/ratios") of its bound"
    awk 'END { exit !(NR > 20 && $1 <= 0.5) }' "$scratch/ratios" || fail "a sum beyond half of its bound, or few were tested"
}
sums_in_bound
