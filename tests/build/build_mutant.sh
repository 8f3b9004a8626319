#!/bin/bash
# One mutant: copies kernels/, applies the patch with no fuzz, compiles the variant it names together with the
# shared host bodies, and keeps one global symbol, so that many mutants of one file link into one program.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
patch=$1 out=$2 build=$3
die() { echo "build_mutant: $patch: $*" >&2; exit 1; }
of=$(sed -n 's/^mutant-of: *//p' "$patch" | head -n 1)
family=$(basename "$(dirname "$patch")"); fault=$(basename "$patch" .patch)
[[ -f "kernels/$of.c" ]] || die "mutant-of: $of, but there is no kernels/$of.c"
[[ "${of%%/*}" == "$family" ]] || die "stands in $family/ and patches a variant of ${of%%/*}/"

work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
mkdir -p "$work/kernels/host" "$work/kernels/$family" "$(dirname "$out")"
cp kernels/host/*.[ch] "$work/kernels/host/"
cp "kernels/$of.c" "$work/kernels/$family/"
patch --quiet -d "$work" -p1 -F0 --no-backup-if-mismatch < "$patch" > "$work/log" 2>&1 || { cat "$work/log" >&2; die "does not apply"; }
diff -rq kernels/host "$work/kernels/host" > /dev/null && cmp -s "kernels/$of.c" "$work/kernels/$of.c" && die "changes nothing"

headers_changed=$(diff -rq kernels/host "$work/kernels/host" | grep -c '\.h ' || [[ $? == 1 ]])
objects=()
for source in "$work/kernels/$of.c" "$work"/kernels/host/*.c; do
    name=${source#"$work"/}
    if cmp -s "$source" "$name" && [[ "$headers_changed" == 0 ]]; then
        objects+=("$build/${name%.c}.o") # untouched: the ordinary object
    else
        object="$work/$(basename "$name" .c).o"
        # Wrong code may well have unused parts: warnings are not what a mutant is judged by.
        # shellcheck disable=SC2086
        $CC ${CFLAGS//-Werror/} -w -iquote "$work" -c "$source" -o "$object"
        objects+=("$object")
    fi
done
ld -r -o "$work/all.o" "${objects[@]}"
kernel="at_kernel_${of/\//_}"
objcopy --redefine-sym "$kernel=at_mutant_${family}_${fault}" --keep-global-symbol="at_mutant_${family}_${fault}" "$work/all.o" "$out"
