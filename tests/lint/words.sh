#!/bin/bash
# Words that the project does not use, tests/lint/words.txt, in sources, pages and scripts. With --self-test every one of
# them is planted and must be seen.
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 3
list=tests/lint/words.txt

check() { # files...
    local bad=0 word instead
    while IFS=$'\t' read -r word instead; do
        [[ "$word" == \#* ]] && continue
        grep -nHP -- "$word" "$@" && { echo "  write: $instead"; bad=1; }
    done < "$list"
    return $bad
}

if [[ "${1:-}" == --self-test ]]; then
    planted=$(mktemp -d); trap 'rm -rf "$planted"' EXIT
    seen=0
    while read -r try; do
        printf '/* A kernel: %s. */\n' "$try" > "$planted/any.c"
        if check "$planted/any.c" > /dev/null; then echo "words: did not see: $try"; exit 1; fi
        seen=$((seen + 1))
    done < tests/lint/words_planted.txt
    [[ $seen -ge $(grep -cv '^#' "$list") ]] || { echo "words: $seen plants for $(grep -cv '^#' "$list") words"; exit 1; }
    printf '/* At most one query; persistent blocks take the most work; named barriers, AT_BLOCK_MAX. */\n' > "$planted/good.c"
    check "$planted/good.c"; exit $?
fi
mapfile -t files < <(git ls-files '*.c' '*.h' '*.cu' '*.md' '*.sh' '*.mk' '*.py' Makefile | grep -vE '^CHANGELOG.md|^tests/lint/')
check "${files[@]}"
