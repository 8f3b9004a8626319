#!/bin/bash
# Gives a kernel's object the machine's names for the compiler's access hooks, and keeps one global symbol:
# simt_object.sh OBJECT PREFIX.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
object=$1 prefix=$2
names=$(mktemp); trap 'rm -f "$names"' EXIT
nm "$object" | sed -nE 's/.* (__(tsan|ubsan_handle)_([a-z0-9_]*))$/\1 at_mem_\3/p' | sort -u > "$names"
kernel=$(nm --defined-only "$object" | awk -v p="^$prefix" '$3 ~ p { print $3 }')
[[ $(wc -w <<< "$kernel") == 1 ]] || { echo "simt_object: $object: wanted one symbol $prefix*, found '$kernel'" >&2; exit 1; }
# Templates come in groups of which the linker would keep one for all objects: their hidden copies are no longer shared.
ld -r --force-group-allocation "$object" -o "$object.whole" && mv "$object.whole" "$object"
objcopy --redefine-syms="$names" --keep-global-symbol="$kernel" "$object"
