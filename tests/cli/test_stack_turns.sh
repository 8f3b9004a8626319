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
wants 2 'found --graph with asynct_serve, a sequence of turns' "$attest" stack asynct_serve --graph
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
