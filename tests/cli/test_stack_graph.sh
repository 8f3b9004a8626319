#!/bin/bash
# attest stack --graph without a GPU: the steps as one sequence leave the bits of the steps alone; a step that does otherwise only there
# is found; two sides; layers that are launched alone; runners that know no sequences.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"

hash_of() { sed -n 's/.* bits that the steps one by one left there, hash \([0-9a-f]*\)$/\1/p' "$scratch/out"; }

wants 0 'all end with the bits that the steps one by one left there' "$attest" stack asynct_3 --quiet --graph --out "$scratch/graph.h5"
grep -q '^40 kernels and 0 other nodes$' "$scratch/out" || fail "nodes: $(grep 'other nodes' "$scratch/out")"
grep -q '^by kind: norm 10, gemm 18, rotary 3, cache 3, attention 3, mlp 3$' "$scratch/out" || fail "kinds: $(grep 'by kind' "$scratch/out")"
whole=$(hash_of)
wants 0 'as one graph' "$attest" show "$scratch/graph.h5"
# flows that are read and replaced, replaced in place, and none: as the prompt, with f16, in place, in one launch
for set in b=2,keys=9,pages=1,phase=prefill,peri=v1,qk_norm=apart dtype=f16,sums=f16,peri=apart kv_write=inline; do
    wants 0 'all end with the bits' "$attest" stack asynct_3 --quiet --graph --layers 2 --set "$set"
done
# judged or not, the bits are the same; nothing is said of steps that were not
wants 0 '18 results: 18 PASS' "$attest" stack asynct_3 --quiet --graph --judge 1
[[ $(hash_of) == "$whole" ]] || fail "layers that are not judged have other bits: $(hash_of), $whole"
wants 0 'all end with the bits' "$attest" stack asynct_3 --quiet --graph --seed 1 --judge 1
[[ $(hash_of) != "$whole" ]] || fail "another seed has the same bits"
# on the pipes instead of shared memory: descriptor 3 is closed
wants 0 'all end with the bits' "$attest" stack asynct_3 --quiet --graph --judge 1 --runner "'$BUILD/attest-cpu' 3<&-"
[[ $(hash_of) == "$whole" ]] || fail "inline, other bits: $(hash_of), $whole"
# two sides
wants 0 'qk_norm=apart' "$attest" stack asynct_3 --quiet --graph --layers 2 --judge 1 --against qk_norm=apart
[[ $(grep -c 'all end with the bits' "$scratch/out") == 2 ]] || fail "not two graphs"
[[ $(grep -oE '^by kind: norm [0-9]+' "$scratch/out" | tr '\n' ' ') == 'by kind: norm 7 by kind: norm 9 ' ]] || fail "norms of the sides: $(grep 'by kind' "$scratch/out")"

cp datasets/stacks/softmax_28.stack "$scratch"
printf '%s\n' 'base softmax_28' 'set layers = 1' 'set b = 3' 'set keys = 40' 'set pages = 3' 'set spare = 2' 'set hidden = 128' 'set h = 2' \
    'set hk = 1' 'set d = 64' 'set inter = 192' > "$scratch/twin.stack"
wants 0 'stack twin: 1 layers' "$attest" stack asynct_3 --quiet --graph --layers 1 --against "$scratch/twin.stack"
# A runner whose held steps multiply by another variant than the steps alone: other bits, from its first product on.
of=$("$BUILD/attest-cpu" --list | grep -n '^gemm/03_wgmma_f32_sum ' | cut -d: -f1) to=$("$BUILD/attest-cpu" --list | grep -n '^gemm/02_mma_f16_sum ' | cut -d: -f1)
wants 1 'DIFFER from what the steps one by one left there, the first: layer 0, step kv_write, tensor' "$attest" stack asynct_3 --quiet --graph --judge 1 --dtype f16 --use k_proj=03_wgmma_f32_sum \
    --runner "sed -u '/ hold=1/s/ variant=$((of - 1)) / variant=$((to - 1)) /' | '$BUILD/attest-cpu'"
# a step that is left out; one that its variant declines there; a runner of another time
wants 1 'DIFFER' "$attest" stack asynct_3 --quiet --graph --judge 1 --runner "sed -u '/ op=rope /s/ hold=1/ ask=1/' | '$BUILD/attest-cpu'"
wants 1 'NOT RUN: step 5 of the sequence: ' "$attest" stack asynct_3 --quiet --graph --judge 1 \
    --runner "sed -u '/ op=rope .* hold=1/s/ size\.d=64 / size.d=63 /' | '$BUILD/attest-cpu'"
wants 1 'NOT RUN: step 39 of the sequence: the block has no room for what the steps took' "$attest" stack asynct_3 --quiet --graph --judge 1 \
    --runner "sed -u 's/ steps=[0-9]*/ steps=99999992/' | '$BUILD/attest-cpu'"
wants 2 'takes no sequences of jobs' "$attest" stack asynct_3 --quiet --graph --judge 1 --runner "'$BUILD/attest-cpu' | sed -u 's/ sequences=1//'"
wants 2 'wanted --graph with it' "$attest" stack asynct_3 --against qk_norm=apart
wants 3 'which was not judged: ' "$attest" stack asynct_3 --quiet --judge 1 --runner mutants --also cpu --use 'attention@1=11_no_barrier_before_gate'
exit 0
