#!/bin/bash
# The table of datasets/SOURCES.md and the claims of datasets/bench/claims.txt hold together: every claim stands in a row of its own
# source and section, every id of a row is a claim, every path exists, every state is one of four and says why it is not `here`.
# With --self-test it plants what it must refuse.
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 3

rows() { # page -> SECTION TAB WHERE TAB STATE TAB CLAIMS for each row of the table
    awk -F' *[|] *' -v OFS='\t' '/^## /{ inside = /^## What of each source is where/ } inside && NF == 8 && $2 ~ /^0[0-9][0-9] / { print $2, $5, $6, $7 }' "$1"
}
claims() { awk '$1 == "claim" { id = $2 } $1 == "source" { print id, $2, $3 }' "$1"; } # file -> ID KEY SECTION
names() { grep -oE '`[^`]+`' <<< "$1" | tr -d '\140'; }

check() { # page, file of claims
    local bad=0 section where state ids id key part name hits n=0
    declare -A of=() seen=()
    while read -r id key part; do of[$id]="$key $part"; done < <(claims "$2")
    while IFS=$'\t' read -r section where state ids; do
        n=$((n + 1))
        [[ "$state" == here || "$state" =~ ^(half|missing|outside):\ [^\ ] ]] || { echo "$1: $section: state \"$state\", wanted here, or half, missing or outside with the reason"; bad=1; }
        [[ "$state" != here || "$where" != - ]] || { echo "$1: $section: is here, but nowhere"; bad=1; }
        while read -r name; do
            [[ -z "$name" ]] || compgen -G "$name" > /dev/null || { echo "$1: $section: $name is not in the tree"; bad=1; }
        done < <(names "$where")
        while read -r name; do
            [[ -n "$name" ]] || continue
            hits=0
            for id in "${!of[@]}"; do
                # shellcheck disable=SC2053 # a glob is meant
                [[ "$id" == $name ]] || continue
                hits=$((hits + 1)) seen[$id]=1
                [[ "${of[$id]}" == "$section" ]] || { echo "$1: $section: $id is a claim of ${of[$id]}"; bad=1; }
            done
            ((hits)) || { echo "$1: $section: $name is no claim of $2"; bad=1; }
        done < <(names "$ids")
    done < <(rows "$1")
    ((n)) || { echo "$1: no table of what is where"; bad=1; }
    for id in "${!of[@]}"; do [[ -v seen[$id] ]] || { echo "$2: $id stands in no row of $1"; bad=1; }; done
    return $bad
}

if [[ "${1:-}" == --self-test ]]; then
    planted=$(mktemp -d); trap 'rm -rf "$planted"' EXIT
    head='## What of each source is where'
    good='| 000 1.1 | a | 1 | `README.md`, `verify/reproduce/*.c` | here | `one`, `two-*` |'
    printf 'claim %s\nsource 000 1.1\n' one two-a two-b > "$planted/claims"
    for try in "${good/one/other}" "${good/, \`two-\*\`/}" "${good/README.md/READ.md}" "${good/here/there}" "${good/here/half}" "${good/000 1.1/000 1.2}" \
               "${good/\`README.md\`, \`verify\/reproduce\/\*.c\`/-}" ''; do
        [[ "$try" != "$good" ]] || { echo "claims: nothing planted"; exit 1; }
        printf '%s\n%s\n' "$head" "$try" > "$planted/page"
        if check "$planted/page" "$planted/claims" > /dev/null; then echo "claims: did not see $try"; exit 1; fi
    done
    printf '%s\n%s\n' "$head" "$good" > "$planted/page"
    check "$planted/page" "$planted/claims"
    exit $?
fi
check datasets/SOURCES.md datasets/bench/claims.txt
