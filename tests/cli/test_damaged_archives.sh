#!/bin/bash
# Damaged archives through show, export, merge, drift, reproduce and compare: none crashes, none takes more than 5 s of processor time (and 2 for each MB), each is
# answered or refused by its name, and nothing half written stays behind. AT_DAMAGED=N: so many files instead of 100, and one in 25 of a large archive beside them.
# SPDX-License-Identifier: Apache-2.0
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"
[[ -z "${AT_SLOW_BUILD:-}" ]] || { echo "a sanitizer reports what the HDF5 library does: make fuzz tells whose fault it is"; exit 77; }
files=100 seed=1
[[ ${AT_EFFORT:-full} == fast ]] && files=30
files=${AT_DAMAGED:-$files}
good=("$scratch/few.h5" "$scratch/one.h5" "$scratch/more.h5" "$scratch/two.h5")
"$BUILD/tests/support/make_archive" "${good[0]}" 3 && "$BUILD/tests/support/make_distributions" "${good[1]}" 1 1 1 &&
    "$BUILD/tests/support/make_archive" "${good[2]}" 26 && "$BUILD/tests/support/make_distributions" "${good[3]}" 1 2 1 ||
    fail "no good archives"

# What is done to the damaged ones works on these.
wants 0 'layer' "$attest" show "${good[1]}"
for kind in csv ipynb svg html; do
    wants 0 'in ' "$attest" export "${good[0]}" --to $kind --out "$scratch/exported"
    wants 0 'in ' "$attest" export "${good[1]}" --to $kind --out "$scratch/exported"
done
wants 0 'distributions of 1 shards' "$attest" merge "${good[1]}" --out "$scratch/merged.h5"
wants 0 ' 0 beyond their limits' "$attest" drift "${good[1]}" "${good[1]}"
wants 0 '0 worse, 0 better' "$attest" compare "${good[0]}" "${good[0]}"

# give FIRST STEP END: to the commands, in a folder of its own
give() {
    mkdir -p "$scratch/$1"
    "$BUILD/tests/support/make_damaged" "$attest" "$scratch/$1" $seed "$1" "$2" "$3" "${good[@]}"
}
give 0 2 "$files" > "$scratch/even" & even=$!
give 1 2 "$files" > "$scratch/odd"; odd=$?
wait $even && [[ $odd == 0 ]] || { grep -h '^fault' "$scratch"/{even,odd}; fail "damaged archives that are not as they must be"; }
read -r runs answered refused died late <<< "$(awk '$1 == "sums" { r += $2; a += $4; f += $6; d += $8; l += $13 }
    END { print r, a, f, d, l }' "$scratch/even" "$scratch/odd")"
echo "$files files: $runs runs, $answered answered, $refused refused, $died died in the HDF5 library, $late did not come back"
((runs == 6 * files && answered > 0 && refused > 0 && answered + refused + died + late == runs)) || fail "these do not add up"

# Large enough that show and export go through it in pieces.
"$BUILD/tests/support/make_archive" "$scratch/large.h5" 10400 || fail "no large archive"
large=$(((files + 24) / 25))
(good=("$scratch/large.h5") && give 0 1 $large) > "$scratch/large" || { grep -h '^fault' "$scratch/large"; fail "damaged large archives that are not as they must be"; }
grep -q "^sums $((6 * large)) runs, [1-9][0-9]* answered, [1-9]" "$scratch/large" || { cat "$scratch/large"; fail "all answered, or all refused"; }

# Refused, and the library (1.10.8) then died where the process takes leave of it.
seed=2 give 3778 1 3779 > "$scratch/out" || { cat "$scratch/out"; fail "a refusal that is not the end of it"; }

# Refused for what the whole of it lacks, not one column: still by its name.
seed=1 give 7007 1 7008 > "$scratch/out" || { cat "$scratch/out"; fail "a refusal that names no file"; }

# Those which the library did not survive end attest where nothing is between them: this test would see it.
n=0
while read -r _ number command _; do
    AT_GUARD=off AT_DAMAGED_COMMAND=$command give "$number" 1 $((number + 1)) > "$scratch/out" &&
        { cat "$scratch/out"; fail "file $number: $command dies in a process of its own, and not in attest's"; }
    grep -q "^fault $number $command died" "$scratch/out" || { cat "$scratch/out"; fail "file $number: without the process, $command does not die"; }
    ((++n == 3)) && break
done < <(grep -h '^killer.* died$' "$scratch"/{even,odd})
[[ $n -gt 0 ]] || echo "none of them kills this HDF5 library"
exit 0
