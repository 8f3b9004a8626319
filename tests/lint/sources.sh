#!/bin/bash
# Every citation of a source resolves: numbers in `.source = "..."`, and 000, 001, ... with their sections in comments and
# documents, stand in datasets/SOURCES.md. With --self-test it plants unknown ones and must see each.
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 3
key=datasets/SOURCES.md

# A citation in prose: a key that is no part of a longer number, and the sections named behind it, over line ends.
gap='(?:\s+(?:\* )?)'
section='(?!0\d\d\b)§?\d+(?:\.\d+)*'
prose="(?<![\w.,#+%-])0\d\d(?![\w%]|[.,]\d)(?:,?${gap}sections?$gap$section(?:(?:,|${gap}and|${gap}to)$gap$section)*)?"

resolves() { # what, number, its section or nothing
    grep -qE "^\| ${2}${3:+ ${3//./\\.}} \|" "$key" || { echo "$1: \"$2${3:+ $3}\" is not in $key"; return 1; }
}
check_prose() { # files...
    local bad=0 file cite part
    while IFS= read -r -d '' cite; do
        file=${cite%%:*} cite=${cite#*:}
        resolves "$file" "${cite:0:3}" '' || bad=1
        while read -r part; do resolves "$file" "${cite:0:3}" "$part" || bad=1; done < <(grep -oE '[0-9]+(\.[0-9]+)*' <<< "${cite:3}")
    done < <(grep -zoPH -- "$prose" "$@")
    return $bad
}
check_field() { # files...: .source = "000 §1.3, §3.2", "003, 004", "ours", ...; a section without a number is of the one before
    local bad=0 file text part number
    while IFS= read -r text; do
        file=${text%%:*} text=${text#*\"} text=${text%\"} number=''
        while read -r part; do
            if [[ "$part" =~ ^(0[0-9][0-9])(\ §?([0-9.]+))?$ ]]; then
                number=${BASH_REMATCH[1]}; resolves "$file" "$number" "${BASH_REMATCH[3]}" || bad=1
            elif [[ "$part" =~ ^§?([0-9]+(\.[0-9]+)*)$ ]]; then
                resolves "$file" "${number:-a section of no source}" "${BASH_REMATCH[1]}" || bad=1
            elif [[ -z "$part" || "$part" =~ [0-9] ]]; then
                echo "$file: cannot read the source \"$part\" of \"$text\""; bad=1
            fi
        done < <(tr ',;' '\n\n' <<< "$text" | sed 's/^ *//; s/ *$//')
    done < <(grep -oHE '\.source = "[^"]*"' "$@")
    return $bad
}

if [[ "${1:-}" == --self-test ]]; then
    planted=$(mktemp -d); trap 'rm -rf "$planted"' EXIT
    for try in 'prose|Source: 005.' 'prose|Source: 000 section 1.9.' 'prose|Source: 000 sections 5.2, 6.12 and 7.2' 'prose|as source 009 has it' \
               'field|.source = "005"' 'field|.source = "000 1.1, 6.12"' 'field|.source = "ours, 3.1"' 'field|.source = "000 1.1 and 1.3"'; do
        printf '/* A kernel.\n * %s */\n' "${try#*|}" > "$planted/any.c"
        if "check_${try%%|*}" "$planted/any.c" > /dev/null; then echo "sources: did not see ${try#*|}"; exit 1; fi
    done
    printf '/* A kernel for 13,000 keys, #000, 0.001; 0644 bytes.\n * Source: 000 sections 5.2, 6.11 and\n * 7.2; 004 for sums. */\n.source = "000 §1.3, §3.2; ours"\n' > "$planted/good.c"
    check_prose "$planted/good.c" && check_field "$planted/good.c"
    exit $?
fi
failed=0
mapfile -t files < <(git ls-files 'reference/*' 'kernels/*' 'datasets/*' 'verify/*' 'notebooks_export/*' README.md | grep -E '\.(c|h|cu|md)$|source_times')
check_prose "${files[@]}" || failed=1
mapfile -t files < <(git ls-files 'reference/*.[ch]' 'kernels/*.[ch]' 'kernels/*.cu')
check_field "${files[@]}" || failed=1
exit $failed
