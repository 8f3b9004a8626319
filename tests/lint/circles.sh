#!/bin/bash
# No circles: a file and its header are one module, and no module of these rooms includes another that includes it, by
# whatever way. With --self-test it plants a circle.
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 3

pairs() { # files... -> MODULE MODULE for each include of the tree's own
    local file name module
    while IFS=: read -r file name; do
        name=${name#*\"} name=${name%%\"*} module=${file%.*}
        [[ -e "$name" ]] || name=reference/$name
        [[ "${name%.*}" == "$module" ]] || printf '%s %s\n' "$module" "${name%.*}"
    done < <(grep -HE '^ *# *include *"' "$@")
}
check() { # files...
    local out
    out=$(pairs "$@" | tsort 2>&1 > /dev/null)
    [[ -z "$out" ]] || { echo "$out" | sed 's/^tsort: -: //; s/^tsort: /    /'; return 1; }
}

if [[ "${1:-}" == --self-test ]]; then
    planted=$(mktemp -d); trap 'rm -rf "$planted"' EXIT
    echo "#include \"$planted/b.h\"" > "$planted/a.c"; echo "#include \"$planted/c.h\"" > "$planted/b.h"; touch "$planted/c.h" "$planted/a.h"
    check "$planted"/* || exit 1
    echo "#include \"$planted/a.h\"" > "$planted/c.h"
    if check "$planted"/* > /dev/null; then echo "circles: did not see a, b, c, a"; exit 1; fi
    exit 0
fi
mapfile -t files < <(git ls-files 'reference/*.[ch]' 'datasets/fill/*.[ch]' 'datasets/language/*.[ch]' 'kernels/simt/*.[ch]' 'kernels/host/*.[ch]' 'notebooks_export/plots/*.[ch]')
check "${files[@]}"
