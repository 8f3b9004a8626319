#!/bin/bash
# Files that comments and documents name are in the tree: sources and pages by path, by the end of one, or by a glob.
# Names with a part in capitals (NAME.md, kernels/FAMILY/NN_idea.cu) stand for any. With --self-test it plants lost ones.
# SPDX-License-Identifier: Apache-2.0
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 3
made='build_info.h|build/.*|mechanical.tsv|mutants.tsv|kernels/(device/any|simt/any_simt).h' # what the build writes, and tests
outside='my_runner.py|mine.py|file.c|hdf5.h|cblas.h|size.h' # a reader's own in examples, libraries', a field of the protocol
words='SKIP|ISA|README|PROTOCOL|AT_[A-Z_]*' # what else may say something in capitals

prose() { # files... -> FILE:TEXT, a line each: comments of sources, pages without their code blocks
    local file
    # shellcheck disable=SC2046 # lists of files are meant to be split
    grep -zoPH '(?s)/\*.*?\*/' $(printf '%s\n' "$@" | grep -E '\.(c|h|cu)$') /dev/null | tr '\n\0' ' \n'
    for file in $(printf '%s\n' "$@" | grep -vE '\.(c|h|cu)$'); do
        if [[ "$file" == *.md ]]; then sed '/^ *```/,/^ *```/d' "$file"; else grep -hE '^ *#' "$file"; fi | tr '\n' ' ' | sed "s|^|$file:|"
        echo
    done
}
named() { # FILE:TEXT -> FILE NAME for each file that the text names, FILE !NAME for each document that says something
    awk '{
        colon = index($0, ":"); file = substr($0, 1, colon - 1); text = substr($0, colon + 1)
        for (rest = text; match(rest, /[A-Za-z0-9_{},*.\/<-]*[A-Za-z0-9_*}]\.(cuh|cu|cpp|c|h|md|mk|sh|py)/); rest = substr(rest, RSTART + RLENGTH)) {
            name = substr(rest, RSTART, RLENGTH); next2 = substr(rest, RSTART + RLENGTH, 2)
            if (next2 ~ /^([A-Za-z0-9_\/(-]|\.[A-Za-z0-9])/ || name ~ /^</) continue
            sub(/^[,.-]*\/?/, "", name)
            print file, name
        }
        for (rest = text; match(rest, /[A-Z][A-Z_]*[A-Z] (says|describes|has it|lists them)[^a-z]/); rest = substr(rest, RSTART + RLENGTH)) {
            split(substr(rest, RSTART, RLENGTH), word, " "); print file, "!" word[1]
        }
    }' | sort -u
}
# Field accesses read like headers: one or two letters, or a lower-case word with a dot before it.
no_file='^([a-z]{1,2}|[a-z_]+\.[a-z_]+|view|work|sizes|shape)\.[ch]$'
there() { # name: in the tree?
    local name=${1#./} part
    [[ "$name" =~ ^($made|$outside)$ || "$name" =~ $no_file || "$name" =~ (^|[/_.])[A-Z]{2,}[_./] && ! -v tree[$name] && ! "$name" =~ ^[A-Z_]+\.md$ ]] && return 0
    [[ "$name" =~ ^(NAME|ANY|PAGE)\.md$ || -v tree[$name] || -v ends[$name] ]] && return 0
    [[ "$name" == *[*\{]* ]] || return 1
    name=${name//\{/@(}; name=${name//\}/)}; [[ "$name" == *@\(* ]] && name=${name//,/|}
    shopt -s extglob
    # shellcheck disable=SC2053 # a glob is meant
    for part in "${!ends[@]}"; do [[ "$part" == $name ]] && return 0; done
    return 1
}
check() { # files...
    local bad=0 file name
    while read -r file name; do
        if [[ "$name" == !* ]]; then [[ "$name" =~ ^!($words)$ ]] || { echo "$file: ${name#!}: a document that is not in the tree"; bad=1; }; continue; fi
        there "$name" || [[ -e "${file%/*}/$name" ]] || { echo "$file: names $name, which is not in the tree"; bad=1; }
    done < <(prose "$@" | named)
    return $bad
}

declare -A tree ends
while read -r file; do
    tree[$file]=1
    while ends[$file]=1; [[ "$file" == */* ]]; do file=${file#*/}; done
done < <(git ls-files)
if [[ "${1:-}" == --self-test ]]; then
    planted=$(mktemp -d); trap 'rm -rf "$planted"' EXIT
    for try in 'As VERDICTS.md has it.' 'See kernels/device/lost.h.' 'As CASES says.' 'In (lost_file.cu), again.' 'Read by *_lost.h alone.' 'verify/lost/{a,b}.c'; do
        printf '/* A file.\n * %s */\nint x;\n' "$try" > "$planted/any.c"
        if check "$planted/any.c" > /dev/null; then echo "names: did not see: $try"; exit 1; fi
        printf '# A page\n%s\n' "$try" > "$planted/any.md"
        if check "$planted/any.md" > /dev/null; then echo "names: did not see on a page: $try"; exit 1; fi
    done
    printf '/* Good.\n * kernels/simt/simt.h, PROTOCOL.md, kernels/simt/*_simt.h, NN_idea.cu, a.h and kernels/FAMILY/NAME.cu; x.y.c */\n' > "$planted/good.c"
    check "$planted/good.c"; exit $?
fi
mapfile -t files < <(git ls-files 'reference/*' 'kernels/*' 'datasets/*' 'verify/*' 'notebooks_export/*' 'tests/*' 'make/*' '*.md' Makefile |
    grep -E '(\.(c|h|cu|sh|md|mk)|Makefile)$' | grep -vE '^CHANGELOG.md|^tests/(lint|mutants)/')
check "${files[@]}"
