#!/bin/bash
# The demonstration prints what the README shows of it: real activations pass, on host variants and on CUDA kernels; a wrong result
# and a race are named; archive and page are there; it ends with what to do next. What its command leaves out of the recorded layers
# passes, too.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
source tests/cli/examples.sh
code=0
processor_seconds "$scratch/time" tests/cli/demo.sh run "$BUILD" "$scratch/demo" > "$scratch/demo.txt" 2> "$scratch/err" || code=$?
[[ $code == 0 ]] || { tail -n 40 "$scratch/demo.txt" "$scratch/err"; fail "demo: exit $code"; }
# The example of the README, which test_examples.sh leaves to this test.
mkdir "$scratch/readme" && examples_of README.md "$scratch/readme"
example=$(grep -lx 'make demo' "$scratch"/readme/*.command) || fail "the README has no example of make demo"
shown_is_printed "${example%.command}.shown" "$scratch/demo.txt" > "$scratch/why" || { cat "$scratch/why"; fail "README.md: make demo"; }
[[ $(grep -c '^WRONG ' "$scratch/demo.txt") == 1 ]] || fail "not one wrong result"
grep -q 'looks like last_key_dropped' "$scratch/demo.txt" || fail "the likely cause is not named"
grep -qE 'got .* want' "$scratch/demo.txt" || fail "the wrong element is not named"
[[ $(grep -c '^RACY ' "$scratch/demo.txt") == 1 ]] || fail "not one race"
place=$(sed -n 's/^ *cause \(kernels[^ ]*\.[a-z]*:[0-9]*\): .*/\1/p' "$scratch/demo.txt")
[[ -f "${place%:*}" ]] || fail "the race's file and line are not named: '$place'"
[[ -s "$scratch/demo/minilm.h5" ]] || fail "no archive"
grep -q '18_wgmma_q_pair_store' "$scratch/demo/report.html" || fail "the page does not show the CUDA kernels"
# A layer's results of host variants in a table, at the least so many.
passed() { # TABLE LEAST LAYER...
    local table=$1 least=$2 layer; shift 2
    for layer in "$@"; do grep -q "layer=$layer" "$table" || fail "layer $layer is not in the table"; done
    [[ $(grep '^PASS' "$table" | grep -c ' 00_') -ge $((least * $#)) ]] || { cat "$table"; fail "too few results of host variants passed"; }
}
sed '/^== planted/,$d' "$scratch/demo.txt" > "$scratch/right"
passed "$scratch/right" 20 3
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

# The other layers, in one format each: the variants that take heads of 32 channels.
[[ "${AT_EFFORT:-full}" == fast ]] && exit 0
mapfile -t variants < <(tests/cli/demo.sh sources | sed -n 's|^kernels/\([a-z]*_prefill/.*\)\.cu\{0,1\}$|\1|p' | grep -v /03_fa3)
[[ ${#variants[@]} == 11 ]] || fail "${#variants[@]} variants of prompts in the demonstration"
"$attest" verify "${variants[@]}" --runner demo --strict --cases 'real:*_prefill*@(layer=[024]*pad_d=0*dtype=bf16|layer=[15]*pad_d=0*dtype=f16)*' > "$scratch/others" 2> "$scratch/err" ||
    { tail -n 40 "$scratch/others"; fail "the other layers"; }
passed "$scratch/others" 12 0 1 2 4 5
