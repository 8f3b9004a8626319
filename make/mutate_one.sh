#!/bin/bash
# One draw of `make mutate`: into which of the variants that are made of the changed file it goes, whether it compiles there and
# to other code; if so an object with one global symbol, as of a patch, and the patch.
#   mutate_one.sh FOLDER 'NUMBER file line place kind old new variants'   (tabs between fields, spaces between variants)
# FOLDER/drawn/NUMBER holds the mutated source. FOLDER/fate/NUMBER becomes the line with, instead of the variants, the fate
# (refused: does not compile; same: to the code of the original; mutant), the patch, and the variants that were not tried.
# FATES names another folder than fate.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
source "$(dirname "$0")/mutant_copy.sh"
folder=$1 line=$2 plain=$PLAIN
# A tab is white space, of which `read` takes several for one: an empty field (nothing in a statement's place) would be lost.
IFS=$'\x1f' read -r number file at place kind old new variants <<< "${line//$'\t'/$'\x1f'}"
work=$folder/work.$number
trap 'rm -rf "$work"' EXIT

copy_mutated() { # of the variant: its sources with the mutated one among them; 1: it is not made of that
    of_variant "$variant"
    rm -rf "$work"; copy_variant "$work"
    [[ -e "$work/$file" ]] && cp "$folder/drawn/$number" "$work/$file"
}

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
# The code of the copy in WORK without debug information, and without what this variant does not call.
host_code() { # WORK OBJECT
    host_parts
    # shellcheck disable=SC2086
    compile_host "$1" "$plain/host" $PLAIN_CFLAGS 2> /dev/null || return 1
    ld -r --gc-sections -u "at_kernel_${variant//\//_}" -o "$2" "${host_objects[@]}"
    objcopy --strip-debug "$2"
}
same_host_code() { # 2: does not compile
    copy_variant "$work/original"
    host_code "$work/original" "$work/original.o"
    host_code "$work" "$work/mutated.o" || return 2
    cmp -s "$work/original.o" "$work/mutated.o"
}
# By the object that the SIMT machine runs, which the build has of the variant as it is.
same_object() { # OBJECT
    objcopy --strip-debug --redefine-sym "at_mutant_${family}_$name=at_kernel_${variant//\//_}" "$1" "$work/mutated.o"
    objcopy --strip-debug "$SIMT/kernels/$variant.o" "$work/original.o"
    cmp -s "$work/mutated.o" "$work/original.o"
}

write_patch() {
    mkdir -p "$folder/$family"
    printf 'mutant-of: %s\nfault: %s:%s: %s: %s -> %s\n\n' "$variant" "$file" "$at" "$kind" "$old" "$new"
    diff -u --label "a/$file" --label "b/$file" "$file" "$folder/drawn/$number" || [[ $? == 1 ]]
}
try_variant() { # sets fate, and patch for a mutant
    local code=0
    if is_host && [[ $kind != nothing ]]; then
        same_host_code || code=$?
        ((code != 0)) || { fate=same; return; }
        ((code != 2)) || { fate=refused; return; }
    fi
    family=${variant%%/*} name=m$(printf %04d "$number")_${variant#*/}
    [[ "$kind" != nothing ]] || name=nothing${number}_${variant#*/}
    patch=$folder/$family/$name.patch fate=mutant
    mkdir -p "$folder/$family"
    write_patch > "$patch"
    if ! make/build_mutant.sh "$patch" "${patch%.patch}.o" "$BUILD" 2> "$work/log"; then fate=refused
    elif ! is_host && [[ $kind != nothing ]] && same_object "${patch%.patch}.o"; then fate=same; fi
    [[ $fate == mutant ]] || { rm -f "$patch" "${patch%.patch}".{o,d}; patch=''; }
}

fate=refused patch=''
read -ra left <<< "$variants"
while ((${#left[@]} > 0)); do
    variant=${left[0]} left=("${left[@]:1}")
    copy_mutated || continue
    try_variant
    [[ $fate == same ]] || break
done
printf '%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n' "$number" "$file" "$at" "$place" "$kind" "$old" "$new" "$fate" "$patch" "${left[*]}" \
    > "${FATES:-$folder/fate}/$number"
