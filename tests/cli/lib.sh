# Helpers of the command-line tests: a scratch folder, and checks that print what they saw.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 3
BUILD=${BUILD:-$PWD/build}
attest=$BUILD/attest
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
fail() { echo "FAIL: $*"; exit 1; }

# The ends of a long output: what a command is about comes first, what went wrong last.
ends_of() { if [[ $(wc -l < "$1") -le 40 ]]; then cat "$1"; else head -n 10 "$1"; echo '[...]'; tail -n 30 "$1"; fi; }

# wants CODE 'text in stdout or stderr' command...
wants() {
    local code=$1 text=$2 got said; shift 2
    "$@" > "$scratch/out" 2>&1 < /dev/null; got=$?
    [[ $got == "$code" ]] || { ends_of "$scratch/out"; fail "$*: exit $got, wanted $code"; }
    IFS= read -rd '' said < "$scratch/out" # starts no process, of which a run has a thousand of these
    [[ "$said" == *"$text"* ]] || { ends_of "$scratch/out"; fail "$*: does not say '$text'"; }
}
same() { cmp "$1" "$2" || fail "$1 and $2 differ"; }

# Programs of the build in the scratch folder, where they find this tree's data, and of runners and lists what a test puts there.
copy_programs() {
    local name
    for name in "$@"; do cp "$BUILD/$name" "$scratch/" || fail "no $name"; done
    ln -s "$PWD/datasets" "$scratch/datasets"
}

# processor_seconds FILE command...: FILE gets the processor time it took, which other work on the machine leaves as it is.
processor_seconds() {
    local file=$1 code TIMEFORMAT='%U %S'; shift
    { time "$@" 2>&3; } 3>&2 2> "$file"; code=$?
    return $code
}
under() { # SECONDS FILE
    awk -v most="$1" '{ n++; ok = $1 + $2 > 0 && $1 + $2 < most } END { exit !(n == 1 && ok) }' "$2" ||
        fail "took $(< "$2") s of processor time in the program and in the kernel, wanted less than $1 together"
}

# At fast effort minilm is that of its first two heads: the price of a recording is that of its heads. `AT_DATASETS=''` in
# front of a command gives it all of them.
few_heads() {
    [[ ${AT_EFFORT:-full} == fast ]] && /usr/bin/python3 -c 'import numpy' 2> /dev/null || return 0
    mkdir -p "$scratch/few/activations"
    /usr/bin/python3 tests/python/few_heads.py datasets/activations/minilm.safetensors "$scratch/few/activations/minilm.safetensors" 2 ||
        fail "no activations of two heads"
    export AT_DATASETS=$scratch/few
}

# killed OUT.h5 LINES command...: a run that is killed without warning when its journal has LINES lines. Where it was quicker
# than this shell, which a busy machine makes late, it begins anew.
killed() {
    local out=$1 lines=$2 pid; shift 2
    for _ in 1 2 3 4 5; do
        "$@" > /dev/null 2>&1 &
        pid=$!
        while kill -0 $pid 2> /dev/null; do
            [[ -e "$out.jsonl" && $(wc -l < "$out.jsonl") -ge $lines ]] && break
            sleep 0.01
        done
        kill -9 $pid 2> /dev/null; wait $pid 2> /dev/null
        [[ -e "$out" ]] || return 0
        rm -rf "$out" "$out".*
    done
    fail "$*: had ended before it was killed, five times"
}
# verify_killed OUT.h5 LINES options...: a run with two jobs.
verify_killed() {
    local out=$1 lines=$2; shift 2
    killed "$out" "$lines" "$attest" verify "$@" --quiet --jobs 2 --out "$out"
}
