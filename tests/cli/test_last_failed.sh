#!/bin/bash
# What people do with the runs of yesterday: judge again what failed, see what got worse, and leave a variant alone that crashes or hangs.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
cc=${CC:-gcc}
command -v "$cc" > /dev/null || { echo "no $cc"; exit 77; }

# Two variants whose second fails where WRONG, TRAP or SLEEP name the number of tokens, from it on with a + behind.
cat > "$scratch/faulty.c" << 'C'
#include <attest_launch.h>
#include <math.h>
#include <unistd.h>
ATTEST_DECLARATION("[uclip_norm/01_right]\nlaunch = right\ndtypes = f32\nnumerics = free_order=1 qk_unit=f32 pv_unit=f32 clamp=propagate\n"
                   "[uclip_norm/02_faulty]\nlaunch = faulty\ndtypes = f32\nnumerics = free_order=1 qk_unit=f32 pv_unit=f32 clamp=propagate\n");
static float *of(const struct attest_launch *l, const char *name) { return attest_find_tensor(l, name)->data; }
static int run(const struct attest_launch *l, double factor) {
    const int64_t c = attest_int(l, "channels");
    for (int64_t i = 0; i < attest_int(l, "tokens") * c; i++) {
        const double x = (double)of(l, "alpha")[i % c] * of(l, "x")[i];
        of(l, "y")[i] = (float)((of(l, "gamma")[i % c] * fmin(fmax(x, attest_real(l, "lo")), attest_real(l, "hi")) + of(l, "beta")[i % c]) * factor);
    }
    return 0;
}
static int is(const struct attest_launch *l, const char *name) {
    const char *text = getenv(name);
    const int64_t n = text ? atoi(text) : 0, tokens = attest_int(l, "tokens");
    return text && (strchr(text, '+') ? tokens >= n : tokens == n);
}
ATTEST_EXPORT int right(const struct attest_launch *l) { return run(l, 1); }
ATTEST_EXPORT int faulty(const struct attest_launch *l) {
    if (is(l, "TRAP")) abort();
    while (is(l, "SLEEP")) sleep(1);
    return run(l, is(l, "WRONG") ? 2 : 1);
}
C
"$cc" -std=c11 -D_GNU_SOURCE -O2 -ffp-contract=off -shared -fPIC -I kernels/runner "$scratch/faulty.c" -o "$scratch/faulty.so" -lm || fail "the library is not built"
case='uclip_norm tokens=1,2,3,4,5,6 channels=64 dtype=f32'
verify() { "$attest" verify 'uclip_norm/*' --runner "attest-so $scratch/faulty.so" --case "$case" --jobs 1 "$@"; }

# --last-failed: what failed in the archive before, and of it what failed in the one behind.
WRONG=3+ wants 1 '8 PASS, 4 WRONG' verify --out "$scratch/run.h5"
WRONG=3+ wants 1 '4 WRONG' verify --last-failed "$scratch/run.h5" --json "$scratch/r.jsonl"
[[ $(grep -o '"plan_index":[0-9]*' "$scratch/r.jsonl" | cut -d: -f2 | tr '\n' ' ') == '0 1 2 3 ' ]] || fail "places in the plan are not those of a run of its own"
grep -q 'PASS' "$scratch/out" && fail "what had passed is judged again"
WRONG=5+ wants 1 '2 PASS, 2 WRONG' verify --out "$scratch/two.h5" --last-failed "$scratch/run.h5"
WRONG=1+ wants 1 '2 WRONG' verify --out "$scratch/three.h5" --last-failed "$scratch/two.h5"
wants 0 '2 PASS' verify --out "$scratch/four.h5" --last-failed "$scratch/three.h5"
wants 4 'nothing failed in ' verify --last-failed "$scratch/four.h5"
wants 4 'nothing is selected; --cases and GLOBs as in that run' "$attest" verify 'uclip_norm/01*' --runner "attest-so $scratch/faulty.so" --case "$case" --last-failed "$scratch/run.h5"
wants 2 'run.h5' verify --out "$scratch/run.h5" --last-failed "$scratch/run.h5" # it would be overwritten before it is done with
wants 2 '--last-failed and shards exclude each other' verify --out "$scratch/x.h5" --last-failed "$scratch/run.h5" --shard 1/2
wants 2 'no.h5.jsonl' verify --last-failed "$scratch/no.h5"
# One that was killed goes on, from the same run alone.
WRONG=3+ SLEEP=5 killed "$scratch/part.h5" 3 "$attest" verify 'uclip_norm/*' --runner "attest-so $scratch/faulty.so" --case "$case" --jobs 1 --quiet --out "$scratch/part.h5" --last-failed "$scratch/run.h5"
wants 2 'part.h5.jsonl' verify --out "$scratch/part.h5" --last-failed "$scratch/two.h5" --resume
WRONG=6 wants 1 '1 PASS, 3 WRONG' verify --out "$scratch/part.h5" --last-failed "$scratch/run.h5" --resume

# compare: exit 1 where something got worse, with its cause and its line; what is gone only with --strict.
compare() { "$attest" compare "$scratch/$1.h5" "$scratch/$2.h5" "${@:3}"; }
wants 0 '12 PASS' verify --out "$scratch/good.h5"
WRONG=3 TRAP=4 wants 1 '1 CRASHED' verify --out "$scratch/bad.h5"
wants 0 '12 PASS' verify --limit-factor 4 --out "$scratch/loose.h5"
wants 0 'exit 0' "$attest" verify 'uclip_norm/01*' --runner "attest-so $scratch/faulty.so" --case "$case" --out "$scratch/half.h5"
WRONG=6 wants 1 '1 WRONG' "$attest" verify 'uclip_norm/02*' --runner "attest-so $scratch/faulty.so" --case "${case/,6/,6,7}" --out "$scratch/other.h5"
wants 0 '0 worse, 0 better, 12 as before, 0 gone, 0 new; fail in both: 0' compare good good
wants 1 '2 worse, 0 better, 10 as before, 0 gone, 0 new; fail in both: 0' compare good bad
for text in 'WORSE  uclip_norm/02_faulty: PASS -> WRONG' 'WORSE  uclip_norm/02_faulty: PASS -> CRASHED' 'cause ' "repro attest replay 'uclip_norm/02_faulty uclip_norm tokens=4"; do
    grep -q "$text" "$scratch/out" || { cat "$scratch/out"; fail "no '$text'"; }
done
wants 0 '0 worse, 2 better, 10 as before, 0 gone, 0 new; fail in both: 0' compare bad good
wants 0 '0 worse, 0 better, 12 as before, 0 gone, 0 new; fail in both: 2' compare bad bad
wants 1 '12 worse, 0 better, 0 as before' compare loose good
grep -q 'error over limit of y .* -> ' "$scratch/out" || fail "ratios are not compared"
grep -q 'asked for different things: limit_factor: 4.0 here, 1.0 there' "$scratch/out" || fail "what the runs differ in is not said"
wants 0 '12 better' compare good loose
wants 0 '0 worse' compare loose good --times 1000
wants 0 '0 worse, 0 better, 6 as before, 6 gone, 0 new' compare good half
wants 1 '6 gone' compare good half --strict
wants 1 '1 worse, 0 better, 0 as before, 6 gone, 6 new' compare half other
grep -q 'not there -> WRONG' "$scratch/out" || fail "a new failure is not worse"
wants 1 'WORSE ' compare half other --quiet
grep -q '^new\|^gone' "$scratch/out" && fail "--quiet lists what is not worse"
wants 2 'usage: attest compare A.h5 B.h5' "$attest" compare "$scratch/good.h5"
head -c 3000 "$scratch/good.h5" > "$scratch/cut.h5"
wants 2 'cut.h5' compare good cut

# --set-aside: after so many crashes or hangs the rest is SKIPPED, said and counted; the other variant goes on.
TRAP=2+ wants 1 '7 PASS, 5 CRASHED' verify
TRAP=2+ wants 1 '7 PASS, 2 CRASHED, 3 SKIPPED' verify --set-aside 2 --out "$scratch/aside.h5" --jsonl "$scratch/r.jsonl"
grep -q 'set aside: uclip_norm/02_faulty, 3 jobs not run: CRASHED or HUNG in 2 jobs' "$scratch/out" || { cat "$scratch/out"; fail "the report does not say who is set aside"; }
grep -q 'attest: uclip_norm/02_faulty is set aside: CRASHED or HUNG in 2 jobs (--set-aside), last CRASHED: ' "$scratch/out" || fail "the run does not say it at once"
[[ $(grep -c '"cause":"set aside: .*"state":"SKIPPED"' "$scratch/r.jsonl") == 3 ]] || fail "not each job says why it was not run"
SLEEP=1+ wants 1 '6 PASS, 1 HUNG, 5 SKIPPED' verify --set-aside 1 --timeout 0.2
TRAP=2+ wants 1 '7 PASS, 5 CRASHED' verify --set-aside 6
WRONG=1+ wants 1 '6 PASS, 6 WRONG' verify --set-aside 1
wants 2 '--set-aside: found "0"' verify --set-aside 0
# A run that goes on counts what had crashed before.
TRAP=2+ killed "$scratch/go.h5" 9 "$attest" verify 'uclip_norm/*' --runner "attest-so $scratch/faulty.so" --case "${case/,6/,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30}" --jobs 1 --quiet --set-aside 3 --out "$scratch/go.h5"
TRAP=2+ wants 1 '3 CRASHED, 26 SKIPPED' "$attest" verify 'uclip_norm/*' --runner "attest-so $scratch/faulty.so" --case "${case/,6/,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30}" --jobs 1 --set-aside 3 --out "$scratch/go.h5" --resume
