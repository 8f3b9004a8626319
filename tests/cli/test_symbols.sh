#!/bin/bash
# No name of a function or variable stands in two objects of the project: libraries would let the linker take whichever comes
# first, without a word, and a caller would get the other one.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
twice() { # of the objects named on stdin: each such name, with its objects
    xargs -d '\n' nm -A --defined-only -g | awk '{ object = $1; sub(/:[^:]*$/, "", object) }
        $2 ~ /^[TDBRV]$/ && $3 !~ /^(main$|_)/ { n[$3]++; where[$3] = where[$3] " " object }
        END { for (name in n) if (n[name] > 1) print name ":" where[name] }'
}
for f in one two; do echo 'int at_planted(void) { return 0; }' > "$scratch/$f.c"; ${CC:-gcc} -c "$scratch/$f.c" -o "$scratch/$f.o"; done
[[ "$(printf '%s\n' "$scratch"/{one,two}.o | twice)" == at_planted:* ]] || fail "a name in two objects is not seen"

for room in reference datasets verify notebooks_export kernels/{launch,runner,simt,host,device}; do
    find "$BUILD/$room" -name '*.o' > "$scratch/room"
    [[ -s "$scratch/room" ]] || fail "no object of $room"
    cat "$scratch/room" >> "$scratch/objects"
done
twice < "$scratch/objects" > "$scratch/found"
[[ ! -s "$scratch/found" ]] || { cat "$scratch/found"; fail "names that stand in two objects"; }
