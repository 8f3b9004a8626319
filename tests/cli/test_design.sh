#!/bin/bash
# The committed cases by design: each array has what it says it has, every pair (or triple) of classes that a variant takes,
# and misses a line that is deleted; another search than the one that made it finds no pair that an array lacks. What an array lacks
# is added, and what it has stays.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
cases=datasets/cases
full=$([[ "${AT_EFFORT:-full}" == fast ]] || echo 1)

slow=' asynct_attention softmax_attention score_counts kv_write '

# has NAME FILE: 0 where FILE has as much of the operator or family as it says; what it says goes to $scratch/count.
has() {
    local options
    read -ra options <<< "$(sed -n 's/^# attest cases --design [^ ]*//p' "$2" | head -n 1)"
    "$attest" cases --design "$1" "${options[@]}" --count "$2" --stated > "$scratch/count" 2>&1
}
# Every line of an array was added for something, and lines are counted too.
misses_a_line() { # FAMILY FILE
    local last; last=$(grep "^$1 " "$2" | tail -n 1)
    grep -vxF -- "$last" "$2" > "$scratch/less"
    has "$1" "$scratch/less" && fail "$2: did not miss '$last'"
    grep -q 'lacks what it was made with' "$scratch/count" || { cat "$scratch/count"; fail "$2 without '$last': does not say so"; }
}

# ---- pairs: an array for each operator ----
arrays=0
while read -r family op; do
    file=$cases/pairs_$op.cases
    [[ -f "$file" ]] || fail "no $file"
    has "$family" "$file" || { cat "$scratch/count"; fail "$file lacks something of $family"; }
    [[ ! $full && "$slow" == *" $op "* ]] || misses_a_line "$family" "$file"
    arrays=$((arrays + 1))
done < <(grep -v '^#' kernels/families.txt | awk '{print $1, $2}')
[[ $arrays -ge 15 ]] || fail "only $arrays arrays of pairs"
# A line in the place of another: as many, but not as much.
file=$cases/pairs_uclip_norm.cases first=$(grep -m 1 '^uclip' "$cases/pairs_uclip_norm.cases") last=$(grep '^uclip' "$cases/pairs_uclip_norm.cases" | tail -n 1)
awk -v last="$last" -v first="$first" '{ print $0 == last ? first : $0 }' "$file" > "$scratch/less"
has uclip_norm "$scratch/less" && fail "did not miss '$last' where another line stands twice"

# ---- triples: of operators whose domains mark factors that meet in kernels ----
for file in "$cases"/triples_*.cases; do
    for family in $(grep -o '^[a-z][a-z0-9_]*' "$file" | sort -u); do
        [[ $full || $family == softmax_decode ]] || continue
        has "$family" "$file" || { cat "$scratch/count"; fail "$file lacks something of $family"; }
        [[ $family == softmax_decode ]] && misses_a_line "$family" "$file"
        arrays=$((arrays + 1))
    done
done
wants 2 'marks 0 factors that meet in kernels' "$attest" cases --design gemm --strength 3
wants 2 '--stated goes with --count' "$attest" cases --design gemm --stated
wants 2 'there is no operator or family' "$attest" cases --design no_such_operator

# ---- searched by another search, and kept ----
for op in $(grep -v '^#' kernels/families.txt | awk '{print $2}' | sort -u); do
    [[ ! $full && "$slow" == *" $op "* ]] && continue
    file=$cases/pairs_$op.cases
    "$attest" cases --design "$op" --seed 2 --count "$file" > "$scratch/count" || { cat "$scratch/count"; fail "$file lacks what a search finds"; }
    [[ "$op" == *_attention || "$op" == gemm ]] && continue # asked hard about new classes, which takes minutes
    "$attest" cases --design "$op" --keep "$file" > "$scratch/kept" || fail "no design of $op"
    cmp "$scratch/kept" "$file" || fail "$file: 'attest cases --design $op --keep $file' does not give it back"
done
# A line less: all other lines stay, in their order, and what went with it is had again.
sed '0,/^rope /{/^rope /d}' $cases/pairs_rope.cases > "$scratch/less"
"$attest" cases --design rope --keep "$scratch/less" > "$scratch/kept"
has rope "$scratch/kept" || { cat "$scratch/count"; fail "--keep: does not add what a line had"; }
had=$(sed -n 's/.*s \([0-9]*\) are had.*/\1/p' $cases/pairs_rope.cases)
grep -q "s $had are had" "$scratch/kept" || fail "--keep: $had pairs were had, now: $(grep ' are had' "$scratch/kept")"
diff <(grep '^rope ' "$scratch/less") <(grep '^rope ' "$scratch/kept") | grep -q '^<' && fail "--keep: a line that was there is gone"
wants 2 '--keep makes a file' "$attest" cases --design rope --keep "$scratch/less" --count "$scratch/less"
wants 2 'No such file' "$attest" cases --design rope --keep "$scratch/none"
wants 1 'missing: rope' "$attest" cases --design rope --count "$scratch/less"
echo "$arrays arrays have what they say, $(grep -ch . $cases/{pairs,triples}_*.cases | paste -sd+ | bc) lines by design"
