#!/bin/bash
# One mutant: copies the sources the variant is made of, applies the patch with no fuzz, compiles what it changed, and
# keeps one global symbol, so that many mutants of one file link into one program. Host variants are made with the shared
# host bodies, device variants with the headers of their family, for the SIMT machine.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
source "$(dirname "$0")/mutant_copy.sh"
patch=$1 out=$2 build=$3
die() { echo "build_mutant: $patch: $*" >&2; exit 1; }
of=$(sed -n 's/^mutant-of: *//p' "$patch" | head -n 1)
family=$(basename "$(dirname "$patch")"); fault=$(basename "$patch" .patch)
of_variant "$of" || die "mutant-of: $of, but there is no kernels/$of.c and no kernels/$of.cu"
[[ "${of%%/*}" == "$family" ]] || die "stands in $family/ and patches a variant of ${of%%/*}/"

# The same place each time: a compiler cache knows a mutant by the names of its sources too.
work=${out%.o}.work; rm -rf "$work"; trap 'rm -rf "$work"' EXIT
copy_variant "$work"
same() { # nothing of FOLDER is patched
    local file
    for file in "$work/$1"/*.[ch]; do [[ ! -e "$file" ]] || cmp -s "$file" "${file#"$work"/}" || return 1; done
}
all_same() { local folder; for folder in "${variant_folders[@]}"; do same "$folder" || return 1; done; }
patch --quiet -d "$work" -p1 -F0 --no-backup-if-mismatch < "$patch" > "$work/log" 2>&1 || { cat "$work/log" >&2; die "does not apply"; }
all_same && cmp -s "$variant_source" "$work/$variant_source" && die "changes nothing"
kernel="at_kernel_${of/\//_}" mutant="at_mutant_${family}_${fault}"

if is_host; then
    # shellcheck disable=SC2086
    compile_host "$work" "$build" ${CFLAGS//-Werror/}
    ld -r -o "$work/all.o" "${host_objects[@]}"
elif [[ -n "${NVCC_FLAGS:-}" ]]; then # by nvcc, for a device, which has no -iquote: the copies come first on the include path
    # shellcheck disable=SC2086
    (cd "$work" && "$NVCC" -I. $NVCC_FLAGS -I"$OLDPWD" -I"$OLDPWD/reference" -w -c "$variant_source" -o all.o)
    objcopy --redefine-sym "$kernel=$mutant" "$work/all.o" "$out"
    exit 0
else
    ! grep -qx 'instances: all' "$patch" || SIMT_FLAGS=${SIMT_FLAGS//-DAT_FEW_INSTANCES/}
    # By its .d it is made again when a source in the tree changes.
    # shellcheck disable=SC2086
    compile_cuda "$work" "$work/all.o" ${SIMT_FLAGS//-Werror/} -MMD -MP -MT "$out" -MF "$(realpath -m "${out%.o}.d")"
    make/simt_object.sh "$work/all.o" at_kernel_
fi
objcopy --redefine-sym "$kernel=$mutant" --keep-global-symbol="$mutant" "$work/all.o" "$out"
