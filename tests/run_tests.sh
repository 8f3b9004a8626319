#!/bin/bash
# Runs test programs and scripts, two levels of counting: cmocka programs by their own tests, scripts as one test
# each. Exit 77 of a script is a skip, its last line the reason. The last line printed is "N passed, N failed, N skipped".
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail
passed=0 failed=0 skipped=0
logs=$(mktemp -d); trap 'rm -rf "$logs"' EXIT
limit=${AT_TEST_LIMIT:-1500}
jobs=${AT_TEST_JOBS:-$(nproc)}
colour_fail='' colour_off=''
[[ -t 1 ]] && colour_fail=$'\e[31m' colour_off=$'\e[0m'

run_one() { # path: writes $logs/NAME.{out,rc,s} and, of each process that a sanitizer has found fault with, NAME.report.*
    local name start; name=$(tr '/' '_' <<< "$1"); start=$(date +%s.%N)
    if [[ -n "${AT_SLOW_BUILD:-}" ]]; then
        local own="log_path=$logs/$name.report:log_exe_name=1"
        export ASAN_OPTIONS="${ASAN_OPTIONS:-}:$own" TSAN_OPTIONS="${TSAN_OPTIONS:-}:$own"
        export UBSAN_OPTIONS="${UBSAN_OPTIONS:-}:$own:print_stacktrace=1"
    fi
    case "$1" in
        *.py) timeout "$limit" /usr/bin/python3 "$1" ;;
        *) timeout "$limit" "$1" ;;
    esac > "$logs/$name.out" 2>&1 < /dev/null
    echo $? > "$logs/$name.rc"
    echo "$start $(date +%s.%N)" | awk '{ printf "%.1f", $2 - $1 }' > "$logs/$name.s"
}
export -f run_one; export logs limit

judge_one() {
    local name rc text report n_ok n_bad n_skip seconds; name=$(tr '/' '_' <<< "$1")
    rc=$(< "$logs/$name.rc"); seconds=$(< "$logs/$name.s"); text="$logs/$name.out"
    n_ok=$(grep -ac '^\[       OK \]' "$text"); n_skip=$(grep -ac '^\[  SKIPPED \]' "$text")
    n_bad=$(sed -n 's/^ *\([0-9]*\) FAILED TEST.*/\1/p' "$text" | tail -n 1)
    n_bad=${n_bad:-0}
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
        printf 'ok    %-58s %4d tests %8s s\n' "${1#"$PWD"/}" "$n_ok" "$seconds"
    fi
}

# At most `jobs` at a time; results are printed in the order of their beginning, as soon as they are there.
# Tests named *_alone measure time or memory and get the machine to themselves, after the others.
alone=() scripts=() programs=()
for t in "$@"; do
    if [[ "$t" == *_alone* ]]; then alone+=("$t"); continue; fi
    if [[ "$t" == *.sh ]]; then scripts+=("$t"); else programs+=("$t"); fi
done
# Scripts take longest and begin first, so that short programs fill the end.
queue=("${scripts[@]}" "${programs[@]}")
printf '%s\0' "${queue[@]}" | xargs -0 -r -P "$jobs" -I{} bash -c 'run_one "$1"' _ {} &
workers=$!
for t in "${queue[@]}"; do
    name=$(tr '/' '_' <<< "$t")
    until [[ -s "$logs/$name.s" ]]; do
        kill -0 $workers 2> /dev/null || [[ -s "$logs/$name.s" ]] || { echo 1 > "$logs/$name.rc"; echo 0 > "$logs/$name.s"; : >> "$logs/$name.out"; }
        sleep 0.05
    done
    judge_one "$t"
done
wait $workers
for t in "${alone[@]}"; do run_one "$t"; judge_one "$t"; done
echo
echo "$passed passed, $failed failed, $skipped skipped"
[[ $failed == 0 && $passed -gt 0 ]]
