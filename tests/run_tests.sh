#!/bin/bash
# Runs test programs and scripts, two levels of counting: cmocka programs by their own tests, scripts as one test
# each. Exit 77 of a script is a skip, its last line the reason. The last line printed is "N passed, N failed, N skipped".
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail
passed=0 failed=0 skipped=0
logs=$(mktemp -d); trap 'rm -rf "$logs"' EXIT
limit=${AT_TEST_LIMIT:-1500} # seconds of processor time for each process of a test; by the clock, for one that waits, four times as many
jobs=${AT_TEST_JOBS:-$(($(nproc) + 1))} # one waits for a child or a clock
colour_fail='' colour_off=''
[[ -t 1 ]] && colour_fail=$'\e[31m' colour_off=$'\e[0m'

run_one() { # path: writes $logs/NAME.{out,rc,s,cpu} and, of each process that a sanitizer has found fault with, NAME.report.*
    local name=${1//\//_} start=${EPOCHREALTIME/[.,]/} took TIMEFORMAT='%U %S'
    if [[ -n "${AT_SLOW_BUILD:-}" ]]; then
        local own="log_path=$logs/$name.report:log_exe_name=1"
        export ASAN_OPTIONS="${ASAN_OPTIONS:-}:$own" TSAN_OPTIONS="${TSAN_OPTIONS:-}:$own"
        export UBSAN_OPTIONS="${UBSAN_OPTIONS:-}:$own:print_stacktrace=1"
    fi
    { time { (
        ulimit -S -t "$limit"
        case "$1" in
            *.py) exec timeout $((4 * limit)) /usr/bin/python3 "$1" ;;
            *) exec timeout $((4 * limit)) "$1" ;;
        esac
    ) > "$logs/$name.out" 2>&1 < /dev/null; }; } 2> "$logs/$name.cpu"
    echo $? > "$logs/$name.rc"
    took=$(((${EPOCHREALTIME/[.,]/} - start) / 100000))
    echo "$((took / 10)).$((took % 10))" > "$logs/$name.new" && mv "$logs/$name.new" "$logs/$name.s"
}
export -f run_one; export logs limit

judge_one() {
    local name=${1//\//_} rc text report n_ok n_bad n_skip seconds cpu
    rc=$(< "$logs/$name.rc"); seconds=$(< "$logs/$name.s"); text="$logs/$name.out"
    cpu=$(awk 'END { printf "%.1f", $1 + $2 }' "$logs/$name.cpu" 2> /dev/null) # of it and of what it started
    [[ -z "$times" ]] || printf '%s %s\n' "${1#"$PWD"/}" "$seconds" >> "$logs/times"
    read -r n_ok n_skip n_bad < <(LC_ALL=C awk '/^\[       OK \]/ { ok++ } /^\[  SKIPPED \]/ { skip++ }
        /^ *[0-9]+ FAILED TEST/ { bad = $1 } END { print ok + 0, skip + 0, bad + 0 }' "$text")
    # A test may want a process to fail, or not look at how it ends: what a sanitizer reports fails the test all the same.
    for report in "$logs/$name.report."*; do
        [[ -s "$report" && "$report" != *.report.attest-mutants.* ]] || continue # wrong kernels may well crash
        { echo "sanitizer: ${report##*.report.}"; cat "$report"; } >> "$text"
        [[ $rc != 0 && $rc != 77 ]] || rc="$rc, with reports"
    done
    if [[ "$1" == *.sh || "$1" == *.py ]]; then
        case $rc in
            0) n_ok=1 n_bad=0 n_skip=0 ;;
            77) n_ok=0 n_bad=0 n_skip=1; echo "skip  $1: $(tail -n 1 "$text")" ;;
            *) n_ok=0 n_bad=1 n_skip=0 ;;
        esac
    elif [[ $rc != 0 && $n_bad == 0 ]]; then
        n_bad=1 # died, timed out, or a sanitizer ended it
    elif [[ $rc == 0 && $((n_ok + n_skip)) == 0 ]]; then
        n_bad=1; echo "$1 ran no test" >> "$text"
    fi
    passed=$((passed + n_ok)) failed=$((failed + n_bad)) skipped=$((skipped + n_skip))
    if [[ $n_bad != 0 ]]; then
        echo "${colour_fail}FAIL${colour_off}  $1 (exit $rc, ${seconds} s)"
        grep -avE '^\[( RUN      |       OK |==========)' "$text" | tail -n 60 | sed 's/^/      /'
    else
        printf 'ok    %-58s %4d tests %8s s, %7s of a processor\n' "${1#"$PWD"/}" "$n_ok" "$seconds" "$cpu"
    fi
}

# At most `jobs` at a time; results are printed in the order of their beginning, as soon as they are there.
# Tests named *_alone measure time or memory and get the machine to themselves, after the others.
alone=() scripts=() programs=()
for t in "$@"; do
    if [[ "$t" == *_alone* ]]; then alone+=("$t"); continue; fi
    if [[ "$t" == *.sh ]]; then scripts+=("$t"); else programs+=("$t"); fi
done
# What took longest in the last run begins first, so that no long test ends alone. Where there was none: as tests/longest.txt
# has it, then other scripts, and then programs, which fill the end.
times=${BUILD:+$BUILD/test_seconds.${AT_EFFORT:-full}}
mapfile -t queue < <(printf '%s\n' "${scripts[@]}" "${programs[@]}" | awk -v root="$PWD/" -v table="${times:-/dev/null}" '
    BEGIN { while ((getline line < "tests/longest.txt") > 0) if (line !~ /^#/) took[line] = 99999 - n++
        while ((getline line < table) > 0) { split(line, part, " "); took[part[1]] = part[2] } }
    NF { name = $0; if (index(name, root) == 1) name = substr(name, length(root) + 1)
        print (name in took ? took[name] : name ~ /\.sh$/ ? 9999 : 0) "\t" $0 }' | sort -s -t $'\t' -k1,1gr | cut -f2)
printf '%s\0' "${queue[@]}" | xargs -0 -r -P "$jobs" -I{} bash -c 'run_one "$1"' _ {} &
workers=$!
exec {never}<> <(:)
for t in "${queue[@]}"; do
    name=$(tr '/' '_' <<< "$t")
    until [[ -s "$logs/$name.s" ]]; do
        kill -0 $workers 2> /dev/null || [[ -s "$logs/$name.s" ]] || { echo 1 > "$logs/$name.rc"; echo 0 > "$logs/$name.s"; : >> "$logs/$name.out"; }
        read -rt 0.1 -u "$never" # a pause that starts no process
    done
    judge_one "$t"
done
wait $workers
for t in "${alone[@]}"; do run_one "$t"; judge_one "$t"; done
if [[ -n "$times" && -s "$logs/times" ]]; then # those that did not run keep the time they had
    touch "$times"
    awk '{ line[$1] = $0 } END { for (name in line) print line[name] }' "$times" "$logs/times" > "$logs/table" && mv "$logs/table" "$times"
fi
echo
echo "$passed passed, $failed failed, $skipped skipped"
[[ $failed == 0 && $passed -gt 0 ]]
