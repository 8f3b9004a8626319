#!/bin/bash
# The suite's own score: every mutant killed, every decoy counts somewhere; and a survivor would be seen.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
n=$(find tests/mutants -name '*.patch' | wc -l)
[[ $n -ge 25 ]] || fail "only $n mutants"
copy_programs attest # looks for the list and the runners beside itself
ln -s "$BUILD/attest-cpu" "$BUILD/attest-mutants" "$scratch/"
if [[ "${AT_EFFORT:-full}" == fast ]]; then
    # One in thirty, less the one that takes longest, and the first of every other state that a mutant must get.
    awk -F '\t' '($1 ~ /\/[1357]5_/ && $1 !~ /^score_counts\/35/) { keep[NR]; seen[$3] = 1 } { line[NR] = $0; state[NR] = $3 }
        END { for (i = 1; i <= NR; i++) if (i in keep || !seen[state[i]]++) print line[i] }' "$BUILD/mutants.tsv" > "$scratch/mutants.tsv"
    diff <(cut -f3 "$BUILD/mutants.tsv" | sort -u) <(cut -f3 "$scratch/mutants.tsv" | sort -u) || fail "a state is not tried"
    n=$(wc -l < "$scratch/mutants.tsv")
    [[ $n -ge 12 ]] || fail "only $n of the mutants"
    wants 0 "$n of $n mutants killed (100.0 %)" "$scratch/attest" selftest --mutants '*' # without the count of decoys
else
    "$attest" selftest > "$scratch/all" 2>&1
    code=$?
    if [[ $code != 0 ]] || ! grep -qxF "$n of $n mutants killed (100.0 %); every decoy counts somewhere" "$scratch/all"; then
        grep -v '^killed ' "$scratch/all" # the last thing that it says, not the first thirty lines
        fail "selftest: exit $code, wanted 0, every mutant killed and every decoy counted"
    fi
fi
# Every case of a mutant, not the first that kills it.
wants 0 'mutants killed (100.0 %)' "$attest" selftest --all --mutants '@(rms)_norm/*'
# A right kernel in a mutant's place survives, and that is an error.
sed 's/\tWRONG\t/\tHUNG\t/' "$BUILD/mutants.tsv" > "$scratch/mutants.tsv"
wants 1 SURVIVED "$scratch/attest" selftest --mutants 'asynct_prefill/01_*'
# Its runners list the kernel that is judged, and no other; a name that none has is an error, not an empty list.
[[ $(AT_ONLY_KERNEL=argmax/01_last_of_ties "$attest" list kernels --runner mutants | grep -c '^argmax/') == 1 ]] || fail "one kernel was wanted"
AT_ONLY_KERNEL=argmax/01 wants 3 "AT_ONLY_KERNEL=argmax/01: no such kernel" "$attest" list kernels --runner mutants
# A case that a selection leaves to some variants is for mutants of those, and for no others, though they say so by their runner alone.
mkdir -p "$scratch/data/cases"
echo 'argmax tokens=3 vocabulary=2 data=level dtype=f32' > "$scratch/data/cases/one.cases"
for of in 01 02; do
    printf 'one:*\nonly argmax/%s* one:*\n' $of > "$scratch/data/cases/left.selection"
    AT_DATASETS=$scratch/data "$attest" verify 'argmax/*' --runner mutants --cases @left --quiet --json "$scratch/left.jsonl" > "$scratch/out" 2>&1
    diff <(sed -n "s/.*\"variant\":\"\([^\"]*\)\".*/argmax\/\1/p" "$scratch/left.jsonl" | sort -u) \
        <(awk -F '\t' -v of="argmax/$of" '$1 ~ /^argmax\// && index($2, of) == 1 { print $1 }' "$BUILD/mutants.tsv" | sort) ||
        { cat "$scratch/out"; fail "mutants judged on what is left to argmax/$of (<), and those of it (>)"; }
done
