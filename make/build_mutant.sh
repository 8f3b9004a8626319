#!/bin/bash
# One mutant: copies the sources the variant is made of, applies the patch with no fuzz, compiles what it changed, and
# keeps one global symbol, so that many mutants of one file link into one program. Host variants are made with the shared
# host bodies, device variants with the headers of their family, for the SIMT machine.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
patch=$1 out=$2 build=$3
die() { echo "build_mutant: $patch: $*" >&2; exit 1; }
of=$(sed -n 's/^mutant-of: *//p' "$patch" | head -n 1)
family=$(basename "$(dirname "$patch")"); fault=$(basename "$patch" .patch)
if [[ -f "kernels/$of.c" ]]; then source=kernels/$of.c shared=(kernels/host)
elif [[ -f "kernels/$of.cu" ]]; then source=kernels/$of.cu shared=(kernels/device kernels/attention kernels/norm "kernels/$family")
else die "mutant-of: $of, but there is no kernels/$of.c and no kernels/$of.cu"; fi
[[ "${of%%/*}" == "$family" ]] || die "stands in $family/ and patches a variant of ${of%%/*}/"

# The same place each time: a compiler cache knows a mutant by the names of its sources too.
work=${out%.o}.work; rm -rf "$work"; trap 'rm -rf "$work"' EXIT
mkdir -p "$work/kernels/$family"
for folder in "${shared[@]}"; do
    mkdir -p "$work/$folder"
    find "$folder" -name '*.h' -exec cp -t "$work/$folder" {} +
done
[[ ${shared[0]} != kernels/host ]] || cp kernels/host/*.c "$work/kernels/host/"
cp "$source" "$work/$source"
same() { # nothing of FOLDER is patched
    local file
    for file in "$work/$1"/*.[ch]; do [[ ! -e "$file" ]] || cmp -s "$file" "${file#"$work"/}" || return 1; done
}
all_same() { local folder; for folder in "${shared[@]}"; do same "$folder" || return 1; done; }
patch --quiet -d "$work" -p1 -F0 --no-backup-if-mismatch < "$patch" > "$work/log" 2>&1 || { cat "$work/log" >&2; die "does not apply"; }
all_same && cmp -s "$source" "$work/$source" && die "changes nothing"
kernel="at_kernel_${of/\//_}" mutant="at_mutant_${family}_${fault}"

# Wrong code may well have unused parts: warnings are not what a mutant is judged by.
if [[ ${shared[0]} != kernels/host ]]; then
    # Messages name the source as it is known, not the copy: the same change gives the same object.
    if [[ -n "${NVCC_FLAGS:-}" ]]; then # by nvcc, for a device
        # nvcc has no -iquote: the copies come first on the include path.
        # shellcheck disable=SC2086
        (cd "$work" && "$NVCC" -I. $NVCC_FLAGS -I"$OLDPWD" -I"$OLDPWD/reference" -w -c "$source" -o all.o)
        objcopy --redefine-sym "$kernel=$mutant" "$work/all.o" "$out"
        exit 0
    fi
    maps=(-ffile-prefix-map="$work/=") # the last that fits counts
    for folder in "${shared[@]}"; do maps+=(-ffile-prefix-map="$work/$folder/=./$folder/"); done
    # shellcheck disable=SC2086
    $CXX ${SIMT_FLAGS//-Werror/} -w -iquote "$work" "${maps[@]}" -ffile-prefix-map="$work/$source=$source" -x c++ -c "$work/$source" \
        -MMD -MP -MT "$out" -MF "$work/all.d" -o "$work/all.o"
    sed "s|$work/||g" "$work/all.d" > "${out%.o}.d" # made again when a source in the tree changes
    make/simt_object.sh "$work/all.o" at_kernel_
else
    headers_changed=$(diff -rq kernels/host "$work/kernels/host" | grep -c '\.h ' || [[ $? == 1 ]])
    objects=()
    for file in "$work/$source" "$work"/kernels/host/*.c; do
        name=${file#"$work"/}
        if cmp -s "$file" "$name" && [[ "$headers_changed" == 0 ]]; then
            objects+=("$build/${name%.c}.o") # untouched: the ordinary object
        else
            object="$work/$(basename "$name" .c).o"
            # shellcheck disable=SC2086
            $CC ${CFLAGS//-Werror/} -w -iquote "$work" -c "$file" -o "$object"
            objects+=("$object")
        fi
    done
    ld -r -o "$work/all.o" "${objects[@]}"
fi
objcopy --redefine-sym "$kernel=$mutant" --keep-global-symbol="$mutant" "$work/all.o" "$out"
