#!/bin/bash
# Sequences: prompts and decode steps of one stack on one cache, each step's verdict; caches that go from turn to turn, inputs that do
# not; slots and samplers as steps; what is refused.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"

column() { # NAME FILE: that key of each row
    sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$2"
}

# every step of three turns in its declared arithmetic, to the bit; the same seed gives the same bytes. All five turns, and top_k in the
# place of argmax, are examples of verify/stack/README.md, which test_examples.sh runs. The keys of turn 2 begin a second page.
serve=(asynct_serve --set 'turns=2,prompt=15')
wants 0 'MODEL-EXACT 123 of 123' "$attest" stack "${serve[@]}" --strict --quiet --json "$scratch/right.jsonl" --out "$scratch/right.h5"
[[ $(column turn "$scratch/right.jsonl" | sort -n | uniq -c | tr -s ' ') == $' 41 0\n 41 1\n 41 2' ]] || fail "not a row an output a turn"
[[ $(grep -c '^turn' "$scratch/out") == 3 ]] || fail "not a table a turn"
wants 0 'PASS' "$attest" stack asynct_serve --set turns=1,prompt=15 --quiet --json "$scratch/again.jsonl"
grep -E '"turn":[01],' "$scratch/right.jsonl" > "$scratch/first.jsonl"
same "$scratch/first.jsonl" "$scratch/again.jsonl"
# turn 0 has all tokens of the prompts, later ones a token a request
[[ $(grep '"name":"sample"' "$scratch/right.jsonl" > "$scratch/sampled"; column elements "$scratch/sampled" | tr '\n' ' ') == '45 3 3 ' ]] ||
    fail "places: $(column elements "$scratch/sampled" | tr '\n' ' ')"
wants 0 '82 results: 82 PASS' "$attest" stack asynct_serve --set turns=1,prompt=20 --dtype f16 --sums f16 --strict --quiet
wants 0 'turn 2' "$attest" show "$scratch/right.h5"
wants 0 'argmax' "$attest" stack asynct_serve --steps
grep -q 'asynct_prefill/' "$scratch/out" || fail "the plan is not that of the prompts"

# What is in a cache goes on, in both runs: a sum of normal numbers grows by 1 a turn. Of an input it does not.
sums() { # WORD: mean squares of the sum by turn
    printf '%s\n' 'set turns = 3' 'set turn = 0' "$1 sum [64, 256] std=1" 'layers 2' "    $1 mine [64, 256] std=1" \
        '    input x [64, 256] std=1' \
        '    step norm add add_uclip_norm/* tokens=64 channels=256 : x=x res=mine -> res_out=mine y=y' 'end' \
        'input z [64, 256] std=1' \
        'step norm last add_uclip_norm/* tokens=64 channels=256 : x=z res=sum -> res_out=sum y=w' > "$scratch/sums.stack"
    wants 0 '24 PASS' "$attest" stack "$scratch/sums.stack" --strict --quiet --json "$scratch/sums.jsonl"
    for layer in 0 1 -1; do
        grep "\"layer\":$layer,.*\"tensor\":\"res_out\"" "$scratch/sums.jsonl" > "$scratch/rows"
        column rms "$scratch/rows" | awk '{ printf "%.0f ", $1 * $1 }'
    done
}
[[ $(sums input) == '2 2 2 2 2 2 2 2 2 2 2 2 ' ]] || fail "inputs: $(sums input)"
[[ $(sums cache) == '2 3 4 5 2 3 4 5 2 3 4 5 ' ]] || fail "caches: $(sums cache)"
# and inputs differ from turn to turn
[[ $(column rms "$scratch/rows" | sort -u | wc -l) == 4 ]] || fail "inputs of turns are the same"

# a sequence without turns behind the first; what has no meaning
wants 0 '23 results: 23 PASS' "$attest" stack asynct_serve --set turns=0 --layers 1 --strict --quiet
grep -q '^turn' "$scratch/out" && fail "a table a turn of one"
# As one graph of all turns, whose caches go on: judged or not the same bits; a write to the cache that the graph leaves out is found.
hash_of() { sed -n 's/.* bits that the steps one by one left there, hash \([0-9a-f]*\)$/\1/p' "$scratch/out"; }
wants 0 'all end with the bits' "$attest" stack asynct_serve --graph --quiet --set turns=2 --out "$scratch/graph.h5"
grep -q '^90 kernels and 0 other nodes$' "$scratch/out" || fail "nodes: $(grep 'other nodes' "$scratch/out")"
whole=$(hash_of)
wants 0 'by kind: cache 9, norm 21' "$attest" show "$scratch/graph.h5"
wants 0 '41 results: 41 PASS' "$attest" stack asynct_serve --graph --quiet --set turns=2 --judge 1
[[ $(hash_of) == "$whole" && -n $whole ]] || fail "turns that are not judged have other bits: $(hash_of), $whole"
of=$("$BUILD/attest-cpu" --list | grep -n '^asynct_decode/19_dispatch ' | cut -d: -f1) to=$("$BUILD/attest-cpu" --list | grep -n '^asynct_decode/00_blas_pbf16 ' | cut -d: -f1)
wants 1 'DIFFER from what the steps one by one left there, the first: turn 1, ' "$attest" stack asynct_serve --graph --quiet --set turns=2 --judge 1 \
    --runner "sed -u '/ hold=1/s/ variant=$((of - 1)) / variant=$((to - 1)) /' | '$BUILD/attest-cpu'"
# a step that is left out ends the sequence before it
wants 1 'the first: turn 0, step slot_mapping, tensor' "$attest" stack asynct_serve --graph --quiet --set turns=2 --judge 1 \
    --runner "sed -u '/ op=kv_write /s/ hold=1/ ask=1/' | '$BUILD/attest-cpu'"
# The benchmark's scenarios: all of them can be planned at their own sizes; short ones of both attentions, chosen two ways.
for path in datasets/stacks/scenario_*.stack; do
    name=${path##*/}
    wants 0 'launches by kind: attention 1, 1 in all' "$attest" stack "${name%.stack}" --steps
done
[[ $(ls datasets/stacks/scenario_*.stack | wc -l) == 7 ]] || fail "not seven scenarios"
small=shrink=8,turns=7,pages=5,h=2,hk=1,d=64
wants 0 '16 results: 16 PASS' "$attest" stack scenario_mixed_prefill_b32 --graph --quiet --set $small,attention=softmax --against decode=03_flash_decoding
[[ $(grep -c 'all end with the bits' "$scratch/out") == 2 ]] || fail "not two graphs"
grep -q 'turns 2 to 6: not shown' "$scratch/out" || fail "turns in between are not said"
wants 0 '8 kernels and 0 other nodes' "$attest" stack scenario --graph --quiet --judge 1 --set $small,prefill=19_dispatch --against decode=19_dispatch
wants 2 "turns: found 'turn', wanted a setting" "$attest" stack <(printf '%s\n' 'set turns = 1' 'input x [1, 8] std=1' 'layers 1' 'end') --quiet
printf '%s\n' 'set turns = 1' 'set turn = 0' 'let n = 2+turn' 'cache c [n, 8] std=1' 'layers 1' \
    '    step norm one rms_norm/* tokens={n} channels=8 : x=c -> y=y' 'end' > "$scratch/grows.stack"
wants 2 'cache c has 24 elements in turn 1, 16 in the one before' "$attest" stack "$scratch/grows.stack" --quiet
wants 2 'set, let, input, weight, cache, step' "$attest" stack <(printf 'cach x\n') --quiet

# A turn with more steps than the first: the archived plan is that of the first.
printf '%s\n' 'set turns = 1' 'set turn = 0' 'set phase = prefill | decode' 'input x [4, 8] std=1' 'layers 1' \
    '    step norm one rms_norm/00_* tokens=4 channels=8 : x=x -> y=y' \
    '    step norm two rms_norm/00_* tokens=4 channels=8 : x=y -> y=z when phase=decode' \
    '    step norm three rms_norm/00_* tokens=4 channels=8 : x=y -> y=w when phase=decode' 'end' > "$scratch/grows.stack"
wants 0 '' "$attest" stack "$scratch/grows.stack" --quiet --out "$scratch/grows.h5"
wants 0 ' 1 steps run on the host' "$attest" show "$scratch/grows.h5"
