#!/bin/bash
# The demonstration does what the README says: real activations pass, on host variants and on CUDA kernels; a wrong result and a
# race are named; archive and page are there; it ends with what to do next.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
cases='real:@(*_prefill*pad_d=0*|*_prefill*layer=3*pad_d=64*|*_decode*layer=5*)' layers='0 1 2 3 4 5'
[[ "${AT_EFFORT:-full}" == fast ]] && cases='real:@(*_prefill*layer=3*|*_decode*layer=5*)' layers=3
code=0
processor_seconds "$scratch/time" tests/cli/demo.sh run "$BUILD" "$scratch/demo" "$cases" > "$scratch/demo.txt" 2>&1 || code=$?
[[ $code == 0 ]] || { tail -n 40 "$scratch/demo.txt"; fail "demo: exit $code"; }
[[ $(grep -c '^WRONG ' "$scratch/demo.txt") == 1 ]] || fail "not one wrong result"
grep -q 'looks like last_key_dropped' "$scratch/demo.txt" || fail "the likely cause is not named"
grep -qE 'got .* want' "$scratch/demo.txt" || fail "the wrong element is not named"
[[ $(grep -c '^RACY ' "$scratch/demo.txt") == 1 ]] || fail "not one race"
place=$(sed -n 's/^ *cause \(kernels[^ ]*\.[a-z]*:[0-9]*\): .*/\1/p' "$scratch/demo.txt")
[[ -f "${place%:*}" ]] || fail "the race's file and line are not named: '$place'"
[[ -s "$scratch/demo/minilm.h5" ]] || fail "no archive"
grep -q '18_wgmma_q_pair_store' "$scratch/demo/report.html" || fail "the page does not show the CUDA kernels"
sed '/^== planted/,$d' "$scratch/demo.txt" > "$scratch/right"
for layer in $layers; do grep -q "layer=$layer" "$scratch/right" || fail "layer $layer is not in the table"; done
rows=$(grep '^PASS' "$scratch/right" | grep -c ' 00_')
[[ $rows -ge $((20 * $(wc -w <<< "$layers"))) ]] || fail "only $rows results of host variants passed"
for kernel in 07_split_k 18_wgmma_q_pair_store 03_fa3; do
    grep -E "^PASS +$kernel .*MODEL" "$scratch/right" > /dev/null || fail "$kernel is not right to the bit"
done
tail -n 4 "$scratch/demo.txt" > "$scratch/end"
grep -q '^== your own kernel:.*PROTOCOL.md' "$scratch/end" || fail "it does not say how to judge a kernel of one's own"
grep -q '^== next:' "$scratch/end" || fail "it does not say what to do next"
# The command that it prints is one that works.
command=$(sed -n "s|^ *build/\(attest verify --runner .*\)|\1|p" "$scratch/end")
[[ -n "$command" ]] || fail "no command for a kernel of one's own"
eval "wants 0 'no result fails the run' \"\$BUILD\"/$command"
[[ -n "${AT_SLOW_BUILD:-}" ]] || under 60 "$scratch/time"
