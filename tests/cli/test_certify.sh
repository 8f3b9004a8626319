#!/bin/bash
# attest certify: each property has kernels that break it, which are told where from, and honest ones; declarations that the bits
# contradict, launches that break, archive, exports and reports.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
line() { grep -qE "^$1: $2\$" "$scratch/out" || { cat "$scratch/out"; fail "$1: wanted '$2'"; }; }
from=' [(](from [a-z0-9 ]+ on|with [a-z ]+): [1-9][0-9]* of [1-9][0-9]* elements, worst [1-9][0-9]* ulp[)]'
unsaid='[(]the same bits, but the runner does not say what it launches[)]'

# The project's own: ways over capacities, one pass, atomics, another order with pages of 64 (of which bf16 shows nothing here, and
# the declaration says it).
decode='b=3 h=2 hk=1 sk=40/7/600 d=64 page=16 capacity=1024 dtype=bf16 seed=3'
wants 0 "0 against the declaration" "$attest" certify asynct_decode/07_split_k asynct_decode/05_streaming \
    --case "asynct_decode $decode" --counts --out "$scratch/cert.h5" --json "$scratch/cert.jsonl" --junit "$scratch/cert.xml"
line asynct_decode/07_split_k 'invariant: batch split page pad; n/a: chunk [(]a request has one query[)]'
line asynct_decode/05_streaming 'invariant: batch page pad; n/a: split [(]declares one pass .*[)], chunk [(]a request has one query[)]'
# More capacity is more shared memory here, which is another launch and no other way through the keys.
wants 0 'n/a: split (declares one pass' "$attest" certify asynct_decode/01_sequential_qk --case "asynct_decode $decode" --properties batch,split
"$attest" certify asynct_decode/07_split_k --case "asynct_decode $decode" --counts > "$scratch/out" 2> /dev/null
grep -qE '^  split  yes  [1-9][0-9]* elements, 7 settings, 1 case, 5 ways; declares an order of sums, batch_invariant=1$' "$scratch/out" ||
    { cat "$scratch/out"; fail "ways and claims of 07_split_k"; }
"$attest" certify softmax_decode/05_paged_atomic --case "softmax_decode $decode" > "$scratch/out" 2>&1
grep -q 'invariant:' "$scratch/out" && { cat "$scratch/out"; fail "bits that do not repeat are certified"; }
grep -q "chunk (a request has one query)" "$scratch/out" || { cat "$scratch/out"; fail "05_paged_atomic has chunks"; }
prefill='b=2 h=2 hk=1 sq=5/33 prefix=97/40 d=64 page=16 causal=1 capacity=256 seed=1'
wants 0 'not: page (from pages of 64 on: ' "$attest" certify asynct_prefill/30_persistent_wgmma_tma --properties page \
    --case "asynct_prefill $prefill dtype=bf16 data=swamped"
wants 0 'invariant: batch pad; n/a: split chunk page (no attention)' "$attest" certify rms_norm/01_warp_per_row
wants 4 'split chunk page (its outputs belong to no query), pad (its rows write to places that they share)' "$attest" certify score_counts/00_plain --case 'score_counts h=2 hk=1 sq=20 sk=30 d=32 causal=1 dtype=f16'

# What is wanted and not there fails; so does a declaration that the bits contradict, and a launch that breaks.
wants 1 '1 wanted and not certified' "$attest" certify asynct_decode/05_streaming --case "asynct_decode $decode" --want split,page
wants 0 'invariant: batch page' "$attest" certify asynct_decode/05_streaming --case "asynct_decode $decode" --want batch,page --properties batch,page
wants 1 'DISAGREES batch: declares an order of sums, batch_invariant=1' "$attest" certify asynct_prefill/19_batch_dependent \
    --runner "$BUILD/attest-mutants" --case "asynct_prefill $prefill dtype=bf16" --junit "$scratch/bad.xml" --properties batch,page
grep -q '<failure type="WRONG" message="not invariant: bits differ, with a request alone, of ' "$scratch/bad.xml" || { cat "$scratch/bad.xml"; fail "no failure in JUnit"; }
wants 1 'failed: batch split chunk page pad (the case itself: ' "$attest" certify softmax_decode/49_splits_of_the_capacity \
    --runner "$BUILD/attest-mutants" --case "softmax_decode $decode"

# Nothing that could differ is no proof.
wants 4 'exact data: every order gives the same bits' "$attest" certify asynct_decode/07_split_k --case 'asynct_decode b=2 h=2 hk=1 sk=40/9 d=64 page=16 dtype=bf16 data=exact'
wants 4 'declines the case' "$attest" certify asynct_prefill/16_wgmma_contiguous --case "asynct_prefill $prefill dtype=bf16"

# Archive, exports, JSON, JUnit; not a byte depends on the number of jobs.
wants 0 'asynct_decode/07_split_k: invariant: batch split page pad' "$attest" show "$scratch/cert.h5"
"$attest" certify asynct_decode/07_split_k asynct_decode/05_streaming --case "asynct_decode $decode" --jobs 1 --out "$scratch/one.h5" > /dev/null 2>&1
same "$scratch/cert.h5" "$scratch/one.h5"
wants 0 '' "$attest" export "$scratch/cert.h5" --to csv --out "$scratch"
grep -qE '^[0-9]+,asynct_decode,07_split_k,.*,split,,yes,,1,7,0,5,' "$scratch/cert_certificates.csv" || { cat "$scratch"/cert_*.csv; fail "not in the CSV"; }
wants 0 '' "$attest" export "$scratch/cert.h5" --to html --out "$scratch"
grep -q 'It holds 10 certificates' "$scratch/cert.html" || fail "the page does not say what it has"
grep -q '07_split_k' "$scratch/cert.html" || fail "the page has no certificates"
wants 0 '' "$attest" export "$scratch/cert.h5" --to ipynb --out "$scratch"
[[ $(grep -c '"property":"split".*"value":"yes"' "$scratch/cert.jsonl") == 1 && $(wc -l < "$scratch/cert.jsonl") == 10 ]] || fail "JSON lines"
grep -q 'tests="10" failures="0" errors="0" skipped="3"' "$scratch/cert.xml" || { cat "$scratch/cert.xml"; fail "JUnit"; }
if command -v xmllint > /dev/null; then
    xmllint --noout --schema tests/golden/junit.xsd "$scratch/cert.xml" "$scratch/bad.xml" || fail "JUnit is not what its schema says"
fi

# Bad input.
wants 2 "did you mean 'batch'" "$attest" certify '*' --properties bacth
wants 2 'wanted some of' "$attest" certify '*' --want ''
wants 2 'that is not looked at' "$attest" certify '*' --want row
wants 2 '--properties row wants --with' "$attest" certify '*' --properties row
wants 2 'ascending' "$attest" certify '*' --pages 16,8
wants 2 'ascending' "$attest" certify '*' --capacities 1
wants 2 'exclude each other' "$attest" certify '*' --case 'x' --cases 'y:*'
wants 2 'computes another operator' "$attest" certify 'asynct_decode/05*' --with softmax_prefill/01_naive
wants 2 'names several variants' "$attest" certify 'asynct_decode/05*' --with 'asynct_prefill/*'
wants 2 'no variant of the runner' "$attest" certify 'asynct_decode/05*' --with 'asynct_prefill/nobody'
wants 2 'found 0 arguments; usage: attest certify GLOB' "$attest" certify

# A kernel for each property that breaks it, and honest ones beside.
python=/usr/bin/python3
$python -c 'import numpy' 2> /dev/null || { echo "no numpy for $python: kernels that break one property each are not tried"; exit 77; }
export PYTHONPATH=$PWD/kernels/runner/python PYTHONDONTWRITEBYTECODE=1
runner="$python tests/python/varying_runner.py"
decode='softmax_decode b=3 h=2 hk=1 sk=40/7/90 d=16 page=16 capacity=128 dtype=f32 seed=3'
prefill='softmax_prefill b=3 h=2 hk=1 sq=9/1/4 prefix=30/12/1 d=16 page=16 causal=1 capacity=128 dtype=f32 seed=3'
wants 1 '1 against the declaration' "$attest" certify 'softmax_prefill/*' --runner "$runner" --case "$prefill"
line softmax_prefill/01_honest "invariant: batch chunk page pad; n/a: split $unsaid"
line softmax_prefill/02_by_batch "invariant: chunk page pad; not: batch$from; n/a: split $unsaid"
line softmax_prefill/03_by_capacity "invariant: batch chunk page; not: split$from, pad$from"
line softmax_prefill/04_by_piece "invariant: batch page pad; not: chunk$from; n/a: split $unsaid"
line softmax_prefill/05_by_page "invariant: batch chunk pad; not: page$from; n/a: split $unsaid"
line softmax_prefill/06_by_padding "invariant: batch chunk page; not: split$from, pad$from"
line softmax_prefill/07_backwards "invariant: batch chunk page pad; n/a: split $unsaid"
grep -q 'DISAGREES batch: declares batch_invariant=1' "$scratch/out" || fail "08_batch_undeclared agrees"
grep -q '03_by_capacity: .*split (from capacity 256 on' "$scratch/out" || fail "03_by_capacity: from another capacity on"
grep -q '04_by_piece: .*chunk (from 2 pieces on' "$scratch/out" || fail "04_by_piece: from another number of pieces on"
wants 0 'softmax_decode/01_honest: invariant: row' "$attest" certify 'softmax_decode/0[17]*' --runner "$runner" --case "$decode" \
    --properties row --with softmax_prefill/01_honest
grep -q '07_backwards: not: row (beside softmax_prefill/01_honest: ' "$scratch/out" || fail "another order is not seen beside a prompt"
wants 1 '1 wanted and not certified' "$attest" certify 'softmax_prefill/0[17]*' --runner "$runner" --case "$prefill" --want row --with softmax_decode/01_honest
line softmax_prefill/01_honest "invariant: batch chunk page pad row; n/a: split $unsaid"
exit 0
