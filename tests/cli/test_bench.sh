#!/bin/bash
# bench: nothing is timed that was not verified in the same run, by any runner that times; and what it says when it cannot.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
python=$(command -v python3) || { echo "no python3: the runner that stands in for a GPU does not start"; exit 77; }
runner="$python tests/python/runner_client.py"
line='asynct_decode b=1 h=1 hk=1 sk=3,4 d=8 dtype=f16'
wants 0 'within its limits' "$attest" bench 'asynct_decode/*' --runner "$runner" --case "${line/,4/}" --replays 3 --out "$scratch/b.h5"
[[ $(grep -c '^  70_python .* within' "$scratch/out") == 1 ]] || fail "no row for the one variant"
cp "$scratch/out" "$scratch/printed"
wants 0 'within its limits' "$attest" show "$scratch/b.h5"
diff <(grep '^  ' "$scratch/out") <(grep '^  ' "$scratch/printed") || fail "show prints another table"
wants 0 '70_python' "$attest" bench 'asynct_decode/*' --runner "$runner --transports inline" --case "${line/,4/}"
# The source's time for a variant stands beside it, and its share of ours.
echo '70_python 1 3 1000000 9.9' > "$scratch/times"
wants 0 '1000000.00   0.00   0.00' "$attest" bench 'asynct_decode/*' --runner "$runner" --case "${line/,4/}" --beside "$scratch/times"
echo '70_python 1 three 5 9.9' > "$scratch/times"
wants 2 "$scratch/times:1: found" "$attest" bench 'asynct_decode/*' --runner "$runner" --case "$line" --beside "$scratch/times"
wants 2 "$scratch/none" "$attest" bench 'asynct_decode/*' --runner "$runner" --case "$line" --beside "$scratch/none"
# A wrong kernel, one that dies and one that cannot be timed have no times.
wants 1 'WRONG: 1 of' "$attest" bench '*/99_*' --runner "$runner --misbehave wrong_result" --case "$line"
grep -q nan "$scratch/out" && fail "a number where nothing was timed"
wants 1 'while running' "$attest" bench '*/99_*' --runner "$runner --misbehave crash" --case "$line"
wants 4 'nothing was timed' "$attest" bench 'asynct_decode/02_*' --runner cpu --case 'asynct_decode b=1 h=1 hk=1 sk=3 d=8 dtype=f16'
grep -q 'this runner has no clock worth reading' "$scratch/out" || fail "it does not say why"
wants 4 'UNSUPPORTED' "$attest" bench 'asynct_decode/02_*' --runner cpu --case 'asynct_decode b=1 h=1 hk=1 sk=3 d=8 dtype=f32'
wants 2 'no variant' "$attest" bench everything --runner cpu
wants 2 "no case matches 'nothing:" "$attest" bench '*/*' --runner cpu --cases 'nothing:*'
wants 2 'no case meets' "$attest" bench 'gemm/*' --runner cpu --cases 'norms:*'
# Timed launches: a runner of before, which brings no outputs of theirs back, has times that --strict does not take. What a cheat
# does there, tests/cheats says. A time below what is given for the hardware is none.
old="$python tests/golden/runner_client_v5.py"
wants 0 'within its limits, not judged when timed' "$attest" bench 'asynct_decode/*' --runner "$old" --case "${line/,4/}" --replays 3
wants 1 'not judged when timed' "$attest" bench 'asynct_decode/*' --runner "$old" --case "${line/,4/}" --replays 3 --strict
wants 0 'within its limits' "$attest" bench 'asynct_decode/*' --runner "$runner" --case "${line/,4/}" --replays 3 --strict
grep -q 'not judged' "$scratch/out" && fail "its timed launches were judged"
wants 1 ' us (--ceiling: 1e+03 byte/s, 1e+12 flop/s)' \
    "$attest" bench 'asynct_decode/*' --runner "$runner" --case "${line/,4/}" --replays 3 --ceiling 1e3:1e12
grep -q 'IMPOSSIBLE: cold .* us, and no launch takes less than ' "$scratch/out" || fail "it is not called IMPOSSIBLE"
grep -q 'nothing was timed' "$scratch/out" || fail "an impossible time is a time"
wants 0 'within its limits' "$attest" bench 'asynct_decode/*' --runner "$runner" --case "${line/,4/}" --replays 3 --ceiling 1e3:1e12:1e6
wants 2 'wanted BYTES:FLOPS' "$attest" bench 'asynct_decode/*' --runner "$runner" --case "$line" --ceiling fast
copy_programs attest attest-cpu # no attest-cuda beside them
wants 3 attest-cuda "$scratch/attest" bench '*/*'

# The SIMT machine; how fast it is, test_speed_alone.sh says.
wants 2 'wanted one' "$attest" bench simt --case "$line"

# The tensor-core model: timed where it makes the device's results again, and not where it does not.
awk '/^#/ || strata++ < 3' datasets/measurements/h200_tensor_core.txt > "$scratch/golden"
results=$(awk '/^hopper/ { all += $4 } END { print all }' "$scratch/golden")
wants 0 "$results results as on the device" "$attest" bench tensor-core --rounds 3 --golden "$scratch/golden"
cat "$scratch/out"
[[ $(awk '/^hopper/ { print ($2 > 0) ($3 > 0) }' "$scratch/out") == 11 ]] || fail "not one line with two rates"
wants 1 'slower than asked for' "$attest" bench tensor-core --rounds 1 --golden "$scratch/golden" --min-rate 1e8
sed '/ any_code /s/ \(.\)\(.......\)$/ \2\1/' "$scratch/golden" > "$scratch/altered"
wants 1 'not timed: 1 of 3 strata differ' "$attest" bench tensor-core --rounds 1 --golden "$scratch/altered"
wants 0 'hopper_wgmma_k16_f16_f16' "$attest" bench tensor-core '*wgmma_k16_f16_f16' --rounds 1
wants 2 "matches 'volta_*'" "$attest" bench tensor-core 'volta_*'
wants 2 '--min-rate' "$attest" bench tensor-core --min-rate fast
wants 3 "$scratch/none" "$attest" bench tensor-core --golden "$scratch/none"

# Peers: judged and timed in turns with ours.
wants 3 'no such runner' "$attest" bench 'softmax_decode/*' --runner "$runner" --case "softmax_${line#*_}" --peer 'echo no such runner >&2; exit 5'
wants 2 '--turns' "$attest" bench 'softmax_decode/*' --runner "$runner" --case "$line" --turns 0
/usr/bin/python3 -c 'import numpy' 2> /dev/null || { echo "no numpy: peers with times of their own were not tried"; exit 77; }
peers() { # CODE TEXT 'NAMES of peers' [option...]: ours and peers on one case, the order of timings in the log
    local code=$1 text=$2 names=$3 made="/usr/bin/python3 tests/python/runner_peers.py $scratch/log"; shift 3
    rm -f "$scratch/log"
    PYTHONPATH=kernels/runner/python PYTHONDONTWRITEBYTECODE=1 wants "$code" "$text" "$attest" bench 'softmax_decode/*' \
        --runner "$made ours" --peer "$made $names" --case 'softmax_decode b=1 h=2 hk=1 sk=3 d=8 dtype=f16' --out "$scratch/p.h5" "$@"
}
says() { grep -qE -- "$1" "$scratch/out" || { cat "$scratch/out"; fail "does not say '$1'"; }; }
ours='^  10_ours +12.00 +6.00 .*' # behind it xPEER and the verdict
peers 0 'peers: made-up times of right slow; timed in turns with ours, medians over 3 rounds' 'right slow'
[[ "$(tr '\n' ' ' < "$scratch/log")" == "ours right slow ours right slow ours right slow ours ours " ]] || fail "not in turns, and ours twice again by attest's clock: $(< "$scratch/log")"
says "$ours 2.00  within its limits" # over 6 us, the median of 4, 8 and 6
says '^  peer 10_right +6.00 +3.00 .* -  within its limits'
says '^  peer 20_slow +20.00 '
grep '^  ' "$scratch/out" > "$scratch/printed"
wants 0 xPEER "$attest" show "$scratch/p.h5"
diff <(grep '^  ' "$scratch/out") "$scratch/printed" || fail "show prints another table of peers"
cp "$scratch/p.h5" "$scratch/peers.h5"
peers 0 'medians over 2 rounds' 'slow' --turns 2
says "$ours 0.60  within"
# Not a peer: a wrong one, which would be the fastest, one that is not for timings, one that dies at once or in a later round.
peers 0 'WRONG: ' 'wrong right'
says "$ours 2.00  within"
grep -q wrong "$scratch/log" && fail "timed, though wrong"
for names in wrong declines dies dies_later returns; do
    peers 0 xPEER $names
    says "$ours -  within"
    grep -qE '^  peer .* [0-9.]+ +[0-9.]+%' "$scratch/out" && fail "a time of $names"
    [[ $(grep -c ours "$scratch/log") == 5 ]] || fail "ours was not timed three times, and twice by attest's clock, beside $names"
done
peers 0 'not timed: this function is not for timings' declines
peers 0 xPEER dies; says '^  peer 10_dies +runner .*exit code 9.*'
peers 0 xPEER dies_later; says '^  peer 10_dies_later +not timed: runner .*exit code 9'
[[ $(grep -c dies_later "$scratch/log") == 2 ]] || fail "timed again after it had died: $(< "$scratch/log")"
PYTHONPATH=kernels/runner/python wants 2 'no variant of it is of the family' "$attest" bench 'uclip_norm/*' --runner "$runner" \
    --case 'uclip_norm tokens=1 channels=4 dtype=f32' --peer "/usr/bin/python3 tests/python/runner_peers.py $scratch/log right"
peers 0 xPEER 'gone right'; says "$ours -  within"; says '^  peer 20_right +.*gone for good' # and the run goes on
peers 0 'peer 10_unfit               UNSUPPORTED: not this one' unfit
peers 0 'peer 20_right' 'unfit right'
grep -q unfit <(grep '^  ' "$scratch/out") && fail "a line for what another peer takes"
# Ours dies while it is timed: a result, and an error. Interrupted: the cases that were through stay.
made="/usr/bin/python3 tests/python/runner_peers.py $scratch/log"
rm -f "$scratch/log"
PYTHONPATH=kernels/runner/python wants 1 'not timed: runner' "$attest" bench 'softmax_decode/*' --runner "$made dies_later ours" \
    --case 'softmax_decode b=1 h=2 hk=1 sk=3 d=8 dtype=f16' --turns 2
says '^  20_ours +12.00 '
# One that fails when it is timed is an error, too.
PYTHONPATH=kernels/runner/python wants 1 'not timed: TypeError: for bench=N wanted a dict' "$attest" bench 'softmax_decode/*' --runner "$made returns ours" \
    --case 'softmax_decode b=1 h=2 hk=1 sk=3 d=8 dtype=f16'
says '^  20_ours +12.00 '
rm -f "$scratch/log"
PYTHONPATH=kernels/runner/python "$attest" bench 'softmax_decode/*' --runner "$made lingers" --out "$scratch/i.h5" \
    --case 'softmax_decode b=1 h=2 hk=1 sk=3 d=8 dtype=f16,bf16' > "$scratch/out" 2> "$scratch/err" & bench=$!
until [[ $(grep -c lingers "$scratch/log" 2> /dev/null) == 4 ]]; do kill -0 $bench || { cat "$scratch/err"; fail "it ended by itself"; }; sleep 0.05; done
kill -TERM $bench
/bin/true # a moment: of two signals that wait to be delivered one is left
kill -TERM $bench # as timeout(1) does
wait $bench
code=$?
[[ $code == 143 ]] || fail "interrupted: exit $code, wanted 143"
grep -q 'interrupted: there are 1 rows' "$scratch/err" || fail "it does not say what there is"
[[ $(grep -c '^  10_lingers' "$scratch/out") == 1 && $(grep -c 'dtype=f16' "$scratch/out") == 1 ]] || fail "not the one case that was through"
wants 0 '10_lingers' "$attest" show "$scratch/i.h5"

# Beside asynct the same shapes of softmax.
rm -f "$scratch/log"
PYTHONPATH=kernels/runner/python wants 0 'a peer of softmax_decode has the same shapes and another operator: it reads all of V' "$attest" bench \
    'asynct_decode/*' --runner "$runner" --case "${line/,4/}" --peer "/usr/bin/python3 tests/python/runner_peers.py $scratch/log right" --out "$scratch/a.h5"
says '^  70_python .* [0-9.]+  within its limits$'
says '^  peer 10_right +6.00 .* -  within its limits, softmax_decode$'
[[ $(grep -c '^asynct_decode\|^softmax_decode' "$scratch/out") == 1 ]] || fail "the peer stands under a case of its own"
PYTHONPATH=kernels/runner/python wants 0 'no case for it: command line, for peers: hot: found' "$attest" bench 'asynct_decode/*' --runner "$runner" \
    --case "${line/,4/} hot=clip" --peer "/usr/bin/python3 tests/python/runner_peers.py $scratch/log right"
says '^  70_python .* -  within its limits$'

/usr/bin/python3 -c 'import h5py' 2> /dev/null || { echo "no h5py: the archive was written but not opened"; exit 77; }
/usr/bin/python3 - "$scratch/b.h5" "$scratch/peers.h5" "$scratch/a.h5" <<'P' || fail "the archive does not hold together"
import sys, h5py
f = h5py.File(sys.argv[1])
b = f["bench"]
assert b.attrs["encoding-type"] == "attest.bench" and b["cold"].attrs["units"] == "s" and len(b["cold"]) == 1
assert b["timed"][0] == 1 and b["wrong"][0] == 0 and b["compared"][0] == 8 and b["cold"][0] > 0
assert b["variant"].asstr()[0] == "70_python" and b["bytes"][0] > 0 and f["provenance"].attrs["tool"].startswith("attest")
assert b["state"].asstr()[0] == "PASS" and b["timed_compared"][0] == 8 and b["floor"][0] > 0 and b["ceiling"].asstr()[0] == "*"
assert b["peer"][0] == 0 and b["turns"][0] == 1 and b["peer_cold"][0] != b["peer_cold"][0]
p = h5py.File(sys.argv[2])["bench"]
assert list(p["peer"]) == [0, 1, 1] and list(p["turns"]) == [3, 3, 3] and p["fastest_peer"].asstr()[0] == "10_right"
assert abs(p["peer_cold"][0] - 6e-6) < 1e-12 and abs(p["cold_low"][1] - 4e-6) < 1e-12 and abs(p["cold_high"][1] - 8e-6) < 1e-12
assert [d.split()[-1] for d in p["device"].asstr()[:]] == ["ours", "slow", "slow"]
a = h5py.File(sys.argv[3])["bench"]
assert a["case_id"].asstr()[1].startswith("softmax_decode ") and a["beside"].asstr()[1] == a["case_id"].asstr()[0]
P
