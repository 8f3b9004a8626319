#!/bin/bash
# Runners that cheat: each gets the state of its head, honest ones pass, and what the judge's checks are for is seen without them.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
python=/usr/bin/python3
"$python" -c 'import numpy' 2> /dev/null || { echo "no numpy for $python"; exit 77; }
cheats=$(grep -lE '^cheat: [0-9]' tests/cheats/[0-9][0-9]_*.py | wc -l)
honest=$(grep -l '^cheat: honest' tests/cheats/[0-9][0-9]_*.py | wc -l)
[[ $cheats -ge 30 && $honest -ge 4 ]] || fail "only $cheats cheats and $honest honest runners"
for file in tests/cheats/[0-9][0-9]_*.py; do
    name=$(basename "$file" .py)
    grep -qF "| \`$name\` | $(sed -n 's/^cheat: //p' "$file") | $(sed -n 's/^expect: //p' "$file") |" tests/cheats/README.md || fail "tests/cheats/README.md lacks $name"
done
# What this system's sandbox lacks cannot be shown here.
wants 0 'sandbox: no new privileges' "$attest" verify '*/*' --runner "$python tests/cheats/62_honest_inline.py" --case 'uclip_norm tokens=9 channels=64 dtype=bf16' --sandbox
whole=1
grep -q 'not to be had here' "$scratch/out" && { whole=''; grep '^sandbox' "$scratch/out"; }
if [[ ${AT_EFFORT:-full} == fast ]]; then
    wants 0 ' caught' "$attest" selftest --cheats --mutants '@(10|18|33|43|54|55|66)_*'
    [[ ! $whole ]] || grep -qx '6 of 6 caught' "$scratch/out" || fail "one of six was not tried"
else
    "$attest" selftest --cheats > "$scratch/all" 2> "$scratch/box" || { grep -vE '^(caught|right)' "$scratch/all"; fail "selftest --cheats"; }
    while read -r name; do
        if grep -q '^cheat: honest' "tests/cheats/$name.py"; then honest=$((honest - 1)); else cheats=$((cheats - 1)); fi
    done < <(awk '$1 == "untried" { print $2 }' "$scratch/all")
    grep -qx "$cheats of $cheats caught" "$scratch/all" || fail "$(tail -n 1 "$scratch/all")"
    grep -qx "0 of $((honest + 2)) honest runners accused" "$scratch/all" || fail "honest runners: $(tail -n 3 "$scratch/all")"
    grep -q '^sandbox: no new privileges' "$scratch/box" || fail "nothing is said of the sandbox"
fi

# What wants a GPU is not tried without, whatever it is, and says why.
wants 0 "untried  71_kept_by_device_pointer        WRONG          env CUDA_VISIBLE_DEVICES= $python has no PyTorch that sees a CUDA device" \
    "$attest" selftest --cheats --mutants '@(03|71|92)_*' --python "env CUDA_VISIBLE_DEVICES= $python"
grep -q '^untried  92_honest' "$scratch/out" || fail "an honest runner was tried without a GPU"
grep -qx '2 not tried, for what this system does not have' "$scratch/out" || fail "the untried are not counted"
grep -qx '1 of 1 caught' "$scratch/out" || fail "the untried count as caught"

# A cheat in the place of an honest runner is accused, an honest one in the place of a cheat is missed: both are errors.
mkdir "$scratch/cheats"
copy_programs attest
cp tests/cheats/cheat.py "$scratch/cheats"
ln -s "$PWD/kernels" "$scratch/kernels"
export PYTHONPATH=$PWD/kernels/runner/python
sed 's/^cheat: .*/cheat: honest/; s/^expect: .*/expect: PASS/' tests/cheats/03_zeros.py > "$scratch/cheats/03_zeros.py"
sed 's/^cheat: .*/cheat: 1 no cheat/; s/^expect: .*/expect: WRONG/' tests/cheats/62_honest_inline.py > "$scratch/cheats/62_no_cheat.py"
cheat() { "$scratch/attest" selftest --cheats --mutants "$@"; }
sed -i "s|os.path.join(here, \"../python\")|\"$PYTHONPATH\"|" "$scratch/cheats/cheat.py"
wants 1 ACCUSED cheat '03*'
grep -qx '1 of 1 honest runners accused' "$scratch/out" || fail "the accused are not counted"
wants 1 MISSED cheat '62*'
grep -qx '0 of 1 caught' "$scratch/out" || fail "the missed are not counted"
# What fails a strict run though its results pass is seen in both.
sed 's/sk=8,20,70,80/sk=8,70,80/' tests/cheats/68_honest_by_problem.py > "$scratch/cheats/68_honest_by_problem.py"
sed 's/sk=8,70,80/sk=8,20,70/; s/1.05/1.0/' tests/cheats/55_tight_on_one_case.py > "$scratch/cheats/55_no_cheat.py"
wants 1 'ACCUSED  68_honest_by_problem             PASS           6 PASS, 1 UNTESTED' cheat '68*'
wants 1 'MISSED   55_no_cheat                      UNTESTED       6 PASS ' cheat '55*'
sed -i 's/dtype=f16/dtype=bf16/; s/kernel("softmax_prefill",/& dtypes="f16",/' "$scratch/cheats/55_no_cheat.py" # declines all
wants 1 'MISSED   55_no_cheat                      UNTESTED       3 UNSUPPORTED ' cheat '55*'
printf '"""No head."""\n' > "$scratch/cheats/70_no_head.py"
wants 2 'its head lacks' cheat '70*'
wants 2 "no cheat matches 'x*'" cheat 'x*'
rm -r "$scratch/cheats"
mkdir "$scratch/datasets_alone"
wants 3 'the cheats are not installed' env AT_DATASETS="$scratch/datasets_alone" "$scratch/attest" selftest --cheats
wants 3 'no Python with numpy' "$attest" selftest --cheats --python /bin/false

# A command of one program is the process that may name its threads, as CUDA does; with words for its environment, too.
for before in '' 'MINE=1 '; do
    wants 0 'PASS' "$attest" verify '*/*' --runner "$before$python tests/cheats/67_honest_thread_names.py" --case 'uclip_norm tokens=9 channels=64 dtype=f32' --sandbox
done

# What catches a cheat, left out: then it passes.
passes() { # STATE CHEAT options
    local state=$1 name=$2; shift 2
    "$attest" verify '*/*' --runner "$python tests/cheats/$name.py" --json "$scratch/r.jsonl" --quiet "$@" > "$scratch/out" 2>&1
    grep -q "\"state\":\"$state\"" "$scratch/r.jsonl" || { cat "$scratch/out"; fail "$name $*: wanted $state"; }
}
case=(--case 'uclip_norm tokens=9 channels=64 dtype=bf16')
passes WRONG 10_cached_by_pointer "${case[@]}"
passes PASS 10_cached_by_pointer "${case[@]}" --again 1000000 # but for one job in so many
[[ ! $whole ]] || passes WRONG 44_leaves_files "${case[@]}" --sandbox
passes PASS 44_leaves_files "${case[@]}"
ls /tmp/attest-cheat-* 2> /dev/null && fail "a cheat has left a file"
passes PASS 20_magnitude_sniffed --case 'rms_norm tokens=48 channels=64 dtype=bf16 data=normal'
passes PASS 20_magnitude_sniffed --case 'rms_norm tokens=48 channels=64 dtype=bf16 data=subnormal'
passes WRONG 20_magnitude_sniffed --case 'rms_norm tokens=48 channels=64 dtype=bf16 data=mixed seed=3'

# Rows of big shapes: evenly spaced ones are right, and others are looked at; which, is said where they are wrong.
bench() { "$attest" bench 'softmax_prefill/*' --runner "$python tests/cheats/21_evenly_spaced_rows.py" --case 'softmax_prefill b=1 h=8 hk=8 sq=1024 d=64 causal=0 dtype=bf16' "$@"; }
wants 1 'elements of 64 rows (--rows-seed ' bench
seed=$(sed -n 's/.*(--rows-seed \([0-9]*\)).*/\1/p' "$scratch/out")
found=$(grep -o 'WRONG: .*' "$scratch/out")
wants 1 "$found" bench --rows-seed "$seed"

# A TMPDIR that there is no room for is refused, not cut off.
wants 3 'cannot make a scratch folder: TMPDIR has 3001 bytes' env TMPDIR="/tmp/$(printf '%02996d' 0)" "$attest" verify '*/*' --runner "$python tests/cheats/62_honest_inline.py" "${case[@]}" --sandbox
# The sandbox is said, kept in the archive, and gone with what was written there.
mkdir "$scratch/tmp"
TMPDIR=$scratch/tmp wants 0 'exit 0' "$attest" verify '*/*' --runner "$python tests/cheats/62_honest_inline.py" "${case[@]}" --sandbox --out "$scratch/run.h5"
grep -q '^sandbox: no new privileges' "$scratch/out" || fail "nothing is said of the sandbox"
[[ -z "$(ls -A "$scratch/tmp")" ]] || fail "the scratch folder is still there"
grep -qa '"sandbox":"no new privileges' "$scratch/run.h5" || fail "the archive does not say that there was a sandbox"
