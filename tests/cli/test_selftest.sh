#!/bin/bash
# The suite's own score: every mutant killed, every decoy counts somewhere; and a survivor would be seen.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
n=$(find tests/mutants -name '*.patch' | wc -l)
[[ $n -ge 25 ]] || fail "only $n mutants"
if [[ "${AT_EFFORT:-full}" == fast ]]; then
    n=$(find tests/mutants -name '[1357]5_*.patch' | wc -l) # one in thirty
    wants 0 "$n of $n mutants killed (100.0 %)" "$attest" selftest --mutants '*/[1357]5_*'
else
    wants 0 "$n of $n mutants killed (100.0 %); every decoy counts somewhere" "$attest" selftest
fi
# Every case of a mutant, not the first that kills it.
wants 0 'mutants killed (100.0 %)' "$attest" selftest --all --mutants 'rms_norm/*'
# A right kernel in a mutant's place survives, and that is an error.
sed 's/\tWRONG\t/\tHUNG\t/' "$BUILD/mutants.tsv" > "$scratch/mutants.tsv"
cp "$BUILD/attest" "$BUILD/attest-cpu" "$BUILD/attest-mutants" "$scratch/"
wants 1 SURVIVED "$scratch/attest" selftest --mutants 'asynct_prefill/01_*'
