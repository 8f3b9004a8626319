#!/bin/bash
# What make help and the README promise exists.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
make=(make --no-print-directory BUILD="$scratch/build") # an empty folder: nothing of what was built is read
"${make[@]}" help > "$scratch/help" || fail "make help"
for target in doctor demo check check-fast mechanical mutate coverage-runner asan ubsan tsan fuzz lint format coverage help install uninstall bundle cuda resources; do
    grep -qE "make $target " "$scratch/help" || fail "make help does not list $target"
    grep -qE "^$target:" Makefile make/*.mk || fail "no target $target"
done
# CUDA's objects are compiled where they are used and nowhere else, and the demonstration compiles what it shows.
will() { "${make[@]}" -n DEPS=0 SIMT="$scratch/simt" "$@" 2> /dev/null; }
mkdir -p "$scratch/bin" && printf '#!/bin/sh\nexit 1\n' > "$scratch/bin/nvcc" && chmod +x "$scratch/bin/nvcc"
PATH=$scratch/bin:$PATH
will all tests-built > "$scratch/all" || fail "make -n all"
will cuda > "$scratch/cuda" || fail "make -n cuda"
will "$scratch/build/attest" "$scratch/build/attest-demo" > "$scratch/demo" || fail "make -n of the demonstration's programs"
steps() { sed -n "s/^printf .* '$1' '\(.*\)'\$/\1/p" "$2"; }
kernels=$(find kernels -name '[0-9][0-9]_*.cu' | wc -l)
[[ $(steps SIMT "$scratch/all" | wc -l) == "$kernels" ]] || fail "make does not compile every kernel for the SIMT machine"
[[ $(steps MUTANT "$scratch/all" | wc -l) == $(find tests/mutants -name '*.patch' | wc -l) ]] || fail "make does not make every mutant"
[[ -z "$(steps NVCC "$scratch/all")" ]] || fail "make compiles by nvcc"
[[ $(steps NVCC "$scratch/cuda" | wc -l) == "$kernels" ]] || fail "make cuda does not compile every kernel"
grep -q 'code=compute_80' "$scratch/cuda" && fail "make cuda compiles for what only a bundle wants"
diff <(tests/cli/demo.sh sources | grep -E 'cu$|patch$' | sort) <({ steps SIMT "$scratch/demo"; steps MUTANT "$scratch/demo"; } | sort) ||
    fail "the demonstration compiles something else than it shows"
[[ -z "$(steps NVCC "$scratch/demo")" ]] || fail "the demonstration compiles by nvcc"
"${make[@]}" doctor > "$scratch/doctor" || fail "make doctor"
grep -q libopenblas-dev "$scratch/doctor" || fail "make doctor does not name packages"
wants 2 "known sanitizers" "${make[@]}" SAN=adress help
# Every attest command the README shows is one that attest has, and every file it names is there.
{ grep -E '^(    |build/)' README.md; grep -oE '`[^`]+`' README.md | tr -d '`'; } | grep -oE '(^|[ /])attest [a-z]+' |
    awk '{print $2}' | sort -u | while read -r word; do
    "$attest" "$word" --help > /dev/null 2>&1 || echo "$word"
done > "$scratch/unknown"
[[ ! -s "$scratch/unknown" ]] || fail "README names commands attest does not have: $(tr '\n' ' ' < "$scratch/unknown")"
grep -oE '`(reference|kernels|verify|datasets|tests|notebooks_export)/[A-Za-z0-9_./-]+`' README.md | tr -d '`' | sort -u | while read -r path; do
    [[ -e "$path" ]] || echo "$path"
done > "$scratch/missing"
[[ ! -s "$scratch/missing" ]] || fail "README names files that are not there: $(tr '\n' ' ' < "$scratch/missing")"
