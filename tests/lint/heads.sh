#!/bin/bash
# The head of every variant says what it computes, how it is launched, what it refuses and where it comes from: one line,
# then Numerically:, Launch:, Limits: and Source:, each once, in this order, beginning a line. With --self-test it plants
# heads that lack one.
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 3

check() { # files...
    awk '
        function report(what) { print file ": " what; bad = 1 }
        function finish() { if (file != "" && found != "Numerically Launch Limits Source ") report("the head has [" found "], wanted Numerically, Launch, Limits, Source") }
        FNR == 1 { finish(); file = FILENAME; found = ""; head = 1 }
        head {
            line = $0
            if (match(line, /^ \* (Numerically|Launch|Limits|Source): [^ ]/)) {
                field = substr(line, 4); sub(/:.*/, "", field); found = found field " "
                line = substr(line, 4 + length(field) + 1)
            }
            if (match(line, /(^|[ .])(Numerically|Launch|Limits|Source):/)) report("line " FNR ": a field within a line")
            if ($0 ~ /\*\//) head = 0
        }
        END { finish(); exit bad }' "$@"
}

if [[ "${1:-}" == --self-test ]]; then
    planted=$(mktemp -d); trap 'rm -rf "$planted"' EXIT
    good='/* A kernel.\n * SPDX\n *\n * Numerically: so.\n * Launch: a block\n * a row.\n * Limits: none.\n * Source: ours. */\nint x;\n'
    # shellcheck disable=SC2059 # the text is the format
    printf "$good" > "$planted/01_any.cu"; check "$planted/01_any.cu" || exit 1
    for fault in 's/ \* Limits: none.//' 's/ \* Limits:/ * No. Limits:/' 's/Source: ours/From: us/' 's/ \* Launch: a/ * a/' 's/a row\./a row. Source: ours./' 's/Limits: none/Launch: none/'; do
        # shellcheck disable=SC2059
        printf "$good" | sed "$fault" > "$planted/01_any.cu"
        if check "$planted/01_any.cu" > /dev/null; then echo "heads: did not see $fault"; exit 1; fi
    done
    exit 0
fi
mapfile -t files < <(git ls-files 'kernels/*/[0-9][0-9]_*.c' 'kernels/*/[0-9][0-9]_*.cu')
check "${files[@]}"
