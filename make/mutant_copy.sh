# Copies of the sources that one variant is made of, and what the compiler makes of them: for mutants by patches
# (build_mutant.sh) and by draws (mutate_one.sh). Variables: CC, CFLAGS, CXX, SIMT_FLAGS.
# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=bash

# of_variant FAMILY/NN_idea: `variant_source`, and in `variant_folders` those whose headers and bodies it shares; 1: there is none.
of_variant() {
    if [[ -f "kernels/$1.c" ]]; then variant_source=kernels/$1.c variant_folders=(kernels/host)
    elif [[ -f "kernels/$1.cu" ]]; then
        variant_source=kernels/$1.cu variant_folders=(kernels/device kernels/attention kernels/norm kernels/gated kernels/rotation "kernels/${1%%/*}")
    else return 1; fi
}
is_host() { [[ "$variant_source" == *.c ]]; }

# copy_variant WORK: the sources as they are, to be changed there.
copy_variant() {
    local work=$1 folder
    mkdir -p "$work/${variant_source%/*}"
    for folder in "${variant_folders[@]}"; do
        mkdir -p "$work/$folder"
        find "$folder" -name '*.h' -exec cp -t "$work/$folder" {} +
    done
    ! is_host || cp kernels/host/*.c "$work/kernels/host/"
    cp "$variant_source" "$work/$variant_source"
}

# compile_cuda WORK OBJECT FLAG...: by g++, within the copy, where what was not copied is a link: sources have the names that
# they have in the tree (the tables of -fsanitize=bounds-strict keep them), so that the same code gives the same object.
# Wrong code may well have unused parts: warnings are not what a mutant is judged by. Files that flags name: by full paths.
compile_cuda() {
    local work object tree=$PWD folder
    work=$(realpath "$1") object=$(realpath -m "$2")
    shift 2
    for folder in reference kernels/*/; do
        folder=${folder%/}
        [[ -e "$work/$folder" ]] || ln -s "$tree/$folder" "$work/$folder"
    done
    (cd "$work" && $CXX "$@" -w -ffile-prefix-map="$work=$tree" -x c++ -c "$variant_source" -o "$object")
}

# compile_host WORK OBJECTS FLAG...: what was changed is compiled, and the rest taken from the folder OBJECTS; `host_objects`.
compile_host() {
    local work=$1 objects=$2 headers_changed file name object
    shift 2
    headers_changed=$(diff -rq kernels/host "$work/kernels/host" | grep -c '\.h ' || [[ $? == 1 ]])
    host_objects=()
    for file in "$work/$variant_source" "$work"/kernels/host/*.c; do
        name=${file#"$work"/} object="$work/$(basename "$file" .c).o"
        if cmp -s "$file" "$name" && [[ "$headers_changed" == 0 ]]; then
            object="$objects/${name%.c}.o" # untouched: the ordinary one
        else
            $CC "$@" -w -iquote "$work" -ffile-prefix-map="$work/=" -c "$file" -o "$object" || return 1
        fi
        host_objects+=("$object")
    done
}
