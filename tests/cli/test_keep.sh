#!/bin/bash
# --keep: the tensors of judged jobs in the archive; the same bytes however the run was cut up, and nothing lost to a kill.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
cases='smoke:*'
# C baselines of every kind of tensors: not of the family with outputs of 50 MB, of those that have the tensors of another, and
# by BLAS and on the model of tensor cores, which differ in values alone (test_repeat_shards_resume.sh has them); and one on the
# SIMT machine.
variants=('!(score_counts|*_prefill|gemv)/00_!(blas_p*|tc_*)' 'asynct_decode/07_*')
[[ "${AT_EFFORT:-full}" == fast ]] && variants=('asynct_decode/00_split_k' 'asynct_decode/00_blas_*' 'softmax_prefill/00_blas_p32' 'softmax_prefill/00_split_k') &&
    cases='smoke:@(asynct_decode|softmax_prefill)*' # one output, and two
again=12 # one job in so many also by further launches, which are most of the time
run() { # out.h5, options
    local out=$1; shift
    "$attest" verify "${variants[@]}" --cases "$cases" --again "$again" --quiet --out "$out" "$@" > "$scratch/log" 2>&1
    local code=$?
    [[ $code == 0 || $code == 1 ]] || { tail -n 5 "$scratch/log"; fail "verify: exit $code"; }
}
line='asynct_decode b=2 h=4 hk=2 sk=33 d=32 dtype=bf16'
wants 2 'wants --out' "$attest" verify --case "$line" --keep all
wants 2 'wanted never, wrong or all' "$attest" verify --case "$line" --keep some --out "$scratch/x.h5"
wants 0 '--keep WHEN' "$attest" verify --help

# Equal runs give equal bytes: repeated, with one job and two, merged from shards, killed and resumed.
run "$scratch/a.h5" --keep all --jobs 1
run "$scratch/b.h5" --keep all --jobs 2
same "$scratch/a.h5" "$scratch/b.h5"
for i in 1 2 3; do run "$scratch/s$i.h5" --keep all --shard $i/3; done
cp "$scratch/s1.h5" "$scratch/before.h5"
touch "$scratch/s1.h5.witness/999999_another.plan.h5" "$scratch/s1.h5.witness/notes.txt"
run "$scratch/s1.h5" --keep all --shard 1/3 # in the place of the run before
[[ ! -e "$scratch/s1.h5.witness/999999_another.plan.h5" ]] || fail "a file of another run was left"
[[ -e "$scratch/s1.h5.witness/notes.txt" ]] || fail "somebody else's file was deleted"
same "$scratch/before.h5" "$scratch/s1.h5"
wants 0 shards "$attest" merge "$scratch/s3.h5" "$scratch/s1.h5" "$scratch/s2.h5" --out "$scratch/m.h5"
same "$scratch/a.h5" "$scratch/m.h5"
jobs=$(wc -l < "$scratch/a.h5.jsonl")
verify_killed "$scratch/k.h5" $((jobs / 3)) "${variants[@]}" --cases "$cases" --again "$again" --keep all
cp -r "$scratch/k.h5.witness" "$scratch/kept"
touch "$scratch/k.h5.witness/000000_half.written.h5.1.tmp"
wants 2 'keep: "wrong" here, "all" there' "$attest" verify "${variants[@]}" --cases "$cases" --again "$again" --quiet --keep wrong --out "$scratch/k.h5" --resume
run "$scratch/k.h5" --keep all --resume
same "$scratch/a.h5" "$scratch/k.h5"
[[ -z "$(find "$scratch/k.h5.witness" -name '*.tmp')" ]] || fail "something half-written was left"
for f in "$scratch"/kept/*.h5; do # what the journal had been told of was not made again
    [[ "$f" != *.tmp ]] && same "$f" "$scratch/k.h5.witness/$(basename "$f")"
done

# A file that the journal counts on and that is gone: named, by merge and by --resume.
gone=$(find "$scratch/s2.h5.witness" -name '*.h5' | sort | head -n 1)
mv "$gone" "$scratch/gone.h5"
wants 2 "$gone is missing" "$attest" merge "$scratch/s1.h5" "$scratch/s2.h5" "$scratch/s3.h5" --out "$scratch/n.h5"
head -c 3000 "$scratch/gone.h5" > "$gone"
wants 2 "$gone" "$attest" merge "$scratch/s1.h5" "$scratch/s2.h5" "$scratch/s3.h5" --out "$scratch/n.h5"
rm "$gone"
wants 2 "$gone is missing" "$attest" verify "${variants[@]}" --cases "$cases" --again "$again" --quiet --keep all --shard 2/3 --out "$scratch/s2.h5" --resume
mv "$scratch/gone.h5" "$gone"
run "$scratch/s2.h5" --keep all --shard 2/3 --resume
[[ ! -e "$scratch/n.h5" ]] || fail "a refused merge left a file"

part=2/9; [[ "${AT_EFFORT:-full}" == fast ]] && part=2/3 # of few cases
# never, which is the default, keeps nothing; nor does wrong when all is well; VACUOUS counts as wrong.
run "$scratch/never.h5" --keep never --shard $part
run "$scratch/default.h5" --shard $part
same "$scratch/never.h5" "$scratch/default.h5"
[[ ! -e "$scratch/never.h5.witness" ]] || fail "--keep never made a folder"
vacuous='asynct_decode b=2 h=4 hk=2 sk=2048 d=128 dtype=bf16'
wants 0 PASS "$attest" verify 'asynct_decode/00_blas_pbf16' --case "$vacuous" --keep wrong --out "$scratch/pass.h5"
wants 0 VACUOUS "$attest" verify 'asynct_decode/00_blas_pbf16' --case "$vacuous" --keep wrong --out "$scratch/vacuous.h5" --limit-factor 10

# A wrong kernel's witness; jobs that were never judged have none.
wants 1 WRONG "$attest" verify 'asynct_prefill/@(01|16)_*' --runner mutants --cases 'smoke:asynct_prefill*' --keep wrong --out "$scratch/wrong.h5"
wants 1 WRONG "$attest" show "$scratch/wrong.h5"
[[ $(grep -c '"kept":true' "$scratch/wrong.h5.jsonl") == $(grep -c '"state":"WRONG"' "$scratch/wrong.h5.jsonl") ]] || fail "kept, but not WRONG"
/usr/bin/python3 -c 'import h5py' 2> /dev/null || { echo "no h5py: witnesses were written but not opened"; exit 77; }
/usr/bin/python3 tests/python/witness_opens.py "$scratch" || fail "a witness does not hold together"
