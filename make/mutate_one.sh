#!/bin/bash
# One draw of `make mutate`: which of the variants that are made of the file it changes, whether it compiles there and to
# other code; if so an object with one global symbol, as of a patch, and the patch.
#   mutate_one.sh FOLDER 'NUMBER file line place kind old new variants'   (fields with tabs between; variants with spaces)
# FOLDER/drawn/NUMBER holds the mutated source; FOLDER/fate/NUMBER becomes the line with, instead of the variants, the fate
# (refused: does not compile; same: to the code of the original; mutant) and the patch.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
source "$(dirname "$0")/mutant_copy.sh"
folder=$1 plain=$PLAIN
# A tab is white space, of which `read` takes several for one: an empty field (nothing in a statement's place) would be lost.
IFS=$'\x1f' read -r number file line place kind old new variants <<< "${2//$'\t'/$'\x1f'}"
work=$folder/work.$number
trap 'rm -rf "$work"' EXIT

# The bodies of host variants and this one as they are, compiled once by whoever comes first.
host_parts() (
    exec 9> "$plain/lock"; flock 9
    for source in "$variant_source" kernels/host/*.c; do
        object=$plain/host/${source%.c}.o
        [[ ! -e "$object" ]] || continue
        mkdir -p "${object%/*}"
        # shellcheck disable=SC2086
        $CC $PLAIN_CFLAGS -w -c "$source" -o "$object"
    done
)
# The code that a variant's machine-independent part becomes, to compare: no debug information, no hooks of the SIMT machine,
# which keep apart what is the same. Of host variants without the functions that this variant does not call.
plain_code() { # WORK OBJECT
    if is_host; then
        host_parts
        # shellcheck disable=SC2086
        compile_host "$1" "$plain/host" $PLAIN_CFLAGS 2>/dev/null || return 1
        ld -r --gc-sections -u "at_kernel_${variant//\//_}" -o "$2" "${host_objects[@]}"
    else
        # shellcheck disable=SC2086
        compile_cuda "$1" "$2" $PLAIN_SIMT_FLAGS 2>/dev/null || return 1
    fi
    objcopy --strip-debug --remove-section=.comment "$2"
}
original() { # the plain code of the variant as it is, made once
    local object=$plain/$variant.o copy=$work.original
    [[ -e "$object" ]] || {
        mkdir -p "${object%/*}"
        copy_variant "$copy"
        plain_code "$copy" "$work.o" && mv "$work.o" "$object"
        rm -rf "$copy"
    }
    cmp -s "$object" "$work/plain.o"
}

fate=refused patch=''
for variant in $variants; do
    of_variant "$variant"
    rm -rf "$work"; copy_variant "$work"
    [[ -e "$work/$file" ]] || continue
    cp "$folder/drawn/$number" "$work/$file"
    plain_code "$work" "$work/plain.o" || { fate=refused; break; }
    fate=same
    [[ "$kind" != nothing ]] && original && continue
    family=${variant%%/*} name=m$(printf %04d "$number")_${variant#*/}
    [[ "$kind" != nothing ]] || name=nothing_${variant#*/}
    patch=$folder/$family/$name.patch
    mkdir -p "$folder/$family"
    { printf 'mutant-of: %s\nfault: %s:%s: %s: %s -> %s\n\n' "$variant" "$file" "$line" "$kind" "$old" "$new"
      diff -u --label "a/$file" --label "b/$file" "$file" "$folder/drawn/$number" || [[ $? == 1 ]]; } > "$patch"
    fate=mutant
    make/build_mutant.sh "$patch" "${patch%.patch}.o" "$BUILD" 2>"$work/log" || { rm -f "$patch"; fate=refused patch=; }
    break
done
mkdir -p "$folder/fate"
printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$number" "$file" "$line" "$place" "$kind" "$old" "$new" "$fate" "$patch" > "$folder/fate/$number"
