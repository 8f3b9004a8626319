#!/bin/bash
# What make help and the README promise exists.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
make=(make --no-print-directory BUILD="$scratch/build") # an empty folder: nothing of what was built is read
"${make[@]}" help > "$scratch/help" || fail "make help"
for target in doctor demo check check-fast mechanical asan ubsan tsan fuzz lint format coverage help install; do
    grep -qE "make $target " "$scratch/help" || fail "make help does not list $target"
    grep -qE "^$target:" Makefile || fail "no target $target"
done
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
