#!/bin/bash
# Equal runs give equal bytes: repeated, with one job and two, in shards merged, and after a kill -9 and --resume.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
cases='@(smoke:*|edge:softmax*)'
# C baselines of every family but the one with outputs of 50 MB, of three families of attention without those by BLAS and on the
# model of tensor cores, which differ from the fourth's in values alone; and one on the SIMT machine.
variants=('!(score_counts)/00_!(blas_p*|tc_*)' '@(asynct_decode|gemm)/00_*' 'asynct_decode/07_*') alone='*/00_split_k'
[[ "${AT_EFFORT:-full}" == fast ]] && cases='smoke:*' && variants=('asynct_decode/00_*' '*norm/*') alone='asynct_decode/00_split_k'
again=12 # one job in so many also by further launches, which are most of the time
run() { # out.h5, options
    local out=$1; shift
    "$attest" verify "${variants[@]}" --cases "$cases" --again "$again" --quiet --out "$out" "$@" > "$scratch/log" 2>&1
    local code=$?
    [[ $code == 0 || $code == 1 ]] || { tail -n 5 "$scratch/log"; fail "verify: exit $code"; }
}
run "$scratch/a.h5" --jobs 1 --json "$scratch/a.jsonl"
run "$scratch/b.h5" --jobs 2
same "$scratch/a.h5" "$scratch/b.h5"
jobs=$(wc -l < "$scratch/a.h5.jsonl")

for i in 1 2 3; do run "$scratch/s$i.h5" --shard $i/3; done
wants 0 'shards' "$attest" merge "$scratch/s3.h5" "$scratch/s1.h5" "$scratch/s2.h5" --out "$scratch/merged.h5"
same "$scratch/a.h5" "$scratch/merged.h5"
wants 2 'shard 2/3 is missing' "$attest" merge "$scratch/s1.h5" "$scratch/s3.h5" --out "$scratch/m.h5"
wants 2 'given twice' "$attest" merge "$scratch/s1.h5" "$scratch/s1.h5" "$scratch/s2.h5" --out "$scratch/m.h5"
wants 2 'whole run' "$attest" merge "$scratch/a.h5" --out "$scratch/m.h5"
"$attest" verify "${variants[@]}" --cases "$cases" --again "$again" --quiet --seed 5 --shard 2/3 --out "$scratch/other.h5" > /dev/null 2>&1
wants 2 'seed' "$attest" merge "$scratch/s1.h5" "$scratch/other.h5" "$scratch/s3.h5" --out "$scratch/m.h5"
[[ ! -e "$scratch/m.h5" ]] || fail "a refused merge left a file"

# Killed in the middle: whatever the journal holds is whole, nothing half-written stands beside it, and the resumed run
# ends in the same bytes.
verify_killed "$scratch/k.h5" $((jobs / 3)) "${variants[@]}" --cases "$cases" --again "$again"
before=$(wc -l < "$scratch/k.h5.jsonl")
[[ $before -ge 5 ]] || fail "the journal held only $before lines"
wants 2 '--resume' "$attest" verify "${variants[@]}" --cases "$cases" --again "$again" --quiet --out "$scratch/k.h5"
wants 2 'seed' "$attest" verify "${variants[@]}" --cases "$cases" --again "$again" --quiet --seed 9 --out "$scratch/k.h5" --resume
run "$scratch/k.h5" --resume
same "$scratch/a.h5" "$scratch/k.h5"
# The last line cut, too: of a run that had nearly ended, so that little is left to do.
head -n $((jobs - 2)) "$scratch/a.h5.jsonl" | head -c -7 > "$scratch/torn.h5.jsonl"
run "$scratch/torn.h5" --resume
same "$scratch/a.h5" "$scratch/torn.h5"

# The reports of a record, and the archive read back.
wants 0 'compared' "$attest" show "$scratch/a.h5" --worst 3

# A result does not depend on which other variants of its case were judged before it.
lines() { grep '"variant":"00_split_k"' "$1" | sed -E 's/"(plan_index|seconds)":[^,}]*//g' | sort; }
"$attest" verify "$alone" --cases "$cases" --again "$again" --quiet --json "$scratch/alone.jsonl" > /dev/null 2>&1
lines "$scratch/a.jsonl" > "$scratch/of_all"
lines "$scratch/alone.jsonl" > "$scratch/of_one"
[[ -s "$scratch/of_one" ]] || fail "nothing was judged alone"
same "$scratch/of_all" "$scratch/of_one"
