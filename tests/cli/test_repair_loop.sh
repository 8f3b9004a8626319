#!/bin/bash
# A program that reads nothing but the JSON lines of `attest verify --jsonl -` repairs a kernel with three faults, and every repro line
# gives its verdict again; lines come while the run goes on, and with --resume those of before come first.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
python=/usr/bin/python3
$python -c 'import numpy' 2> /dev/null || { echo "no numpy for $python"; exit 77; }
export PYTHONPATH=$PWD/kernels/runner/python PYTHONDONTWRITEBYTECODE=1

# Faults that hide each other: of what is not written nothing is known; beside a key left out everywhere one token more is nothing.
printf '%s\n' 'unwritten lse' 'last_key_dropped 1' 'bad_token 7' > "$scratch/faults"
$python tests/python/repair_loop.py "$attest" "$scratch/faults" 'softmax_prefill b=2 h=2 hk=1 sq=9/4 sk=12/7 d=32 causal=1 dtype=bf16 data=normal' \
    'softmax_prefill b=1 h=3 hk=3 sq=11 sk=30 d=64 page=16 dtype=f32 data=normal' > "$scratch/turns" 2>&1 || { cat "$scratch/turns"; fail "the loop"; }
for line in 'turn 1: DIRTY unwritten: ' 'turn 2: WRONG last_key_dropped: ' 'turn 3: WRONG bad_token 7: ' 'turn 4: exit 0, 4 results'; do
    grep -q "^$line" "$scratch/turns" || { cat "$scratch/turns"; fail "no '$line'"; }
done
[[ ! -s "$scratch/faults" ]] || fail "faults are left: $(< "$scratch/faults")"
# What no rule names is not repaired for ever.
echo 'bad_token 400' > "$scratch/faults"
wants 0 'turn 1: exit 0' $python tests/python/repair_loop.py "$attest" "$scratch/faults" 'softmax_prefill b=1 h=1 hk=1 sq=3 sk=3 d=32 dtype=f32 data=normal'

# A line is there before the next job has ended: the second waits for a file that is made when the first line has come.
cat > "$scratch/waits.py" << 'PY'
import os, sys, time
from attest_runner import kernel, serve, f64, put
import numpy as np
@kernel("uclip_norm", numerics="free_order=1 qk_unit=f64 pv_unit=f64 clamp=propagate")
def waits(x, alpha, gamma, beta, y, *, lo, hi, tokens):
    while tokens == 2 and not os.path.exists(sys.argv[1]):
        time.sleep(0.01)
    put(y, f64(gamma) * np.clip(f64(alpha) * f64(x), lo, hi) + f64(beta))
serve()
PY
uclip() { "$attest" verify 'uclip_norm/*' --runner "$python $scratch/waits.py $scratch/go" --case 'uclip_norm tokens=1,2,3 channels=8 dtype=f32' --jobs 1 "$@"; }
mkfifo "$scratch/lines"
uclip --timeout 120 --jsonl - > "$scratch/lines" 2> "$scratch/table" < /dev/null & pid=$!
exec 7< "$scratch/lines"
IFS= read -r -t 100 first <&7 || fail "no line while the second job runs"
touch "$scratch/go"
cat <&7 > "$scratch/rest"; exec 7<&-
wait $pid || { cat "$scratch/table"; fail "the run that streams"; }
[[ "$first" == '{"fails":false,"place":'*'"state":"PASS"'* && $(wc -l < "$scratch/rest") == 2 ]] || fail "first line: $first, and $(wc -l < "$scratch/rest") more"
grep -q 'exit 0' "$scratch/table" || fail "the table is not on stderr"
# Into a file: the same lines in the order of their jobs, which are those of --json with two fields more; the table stays on stdout.
uclip --jsonl "$scratch/r.jsonl" --json "$scratch/r.json" > "$scratch/table" 2> /dev/null || fail "--jsonl FILE"
grep -q 'exit 0' "$scratch/table" || fail "the table is not on stdout"
sed 's/^{"fails":false,"place":"[^"]*",/{/; s/"seconds":[^,]*,//' "$scratch/r.jsonl" > "$scratch/a"; sed 's/"seconds":[^,]*,//' "$scratch/r.json" > "$scratch/b"
same "$scratch/a" "$scratch/b"
# A run that was killed goes on: what it had comes first, and all is there once.
killed "$scratch/run.h5" 2 "$attest" verify 'uclip_norm/*' --runner "$python $scratch/waits.py $scratch/never" --case 'uclip_norm tokens=1,2,3 channels=8 dtype=f32' --jobs 1 --quiet --out "$scratch/run.h5"
sed -i "s|sys.argv\[1\]|'$scratch/go'|" "$scratch/waits.py"
wants 0 'exit 0' "$attest" verify 'uclip_norm/*' --runner "$python $scratch/waits.py $scratch/never" --case 'uclip_norm tokens=1,2,3 channels=8 dtype=f32' --jobs 1 --out "$scratch/run.h5" --resume --jsonl "$scratch/r.jsonl"
[[ $(grep -o '"case_id":"uclip_norm tokens=[0-9]' "$scratch/r.jsonl" | grep -o '[0-9]$' | tr -d '\n') == 123 ]] || fail "resumed: $(cat "$scratch/r.jsonl")"
wants 2 '--github and --jsonl - both want standard output' uclip --jsonl - --github
wants 3 'cannot write' uclip --jsonl "$scratch/no/such.jsonl"
wants 3 'standard output: cannot be written' bash -c "'$attest' verify 'uclip_norm/*' --runner '$python $scratch/waits.py' --case 'uclip_norm tokens=1 channels=8 dtype=f32' --jsonl - > /dev/full"
