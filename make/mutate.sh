#!/bin/bash
# A sample of token-level mutants of the kernels, judged on the committed selection of cases: `make mutate`.
# N mutants that compile to other code than their original; what does not is drawn again. Each is one compilation (about a
# second), and all of them are one runner, so that the references of a case are computed once.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
export LC_ALL=C
die() { echo "mutate: $*" >&2; exit 1; }
[[ "$N" =~ ^[1-9][0-9]*$ ]] || die "N=$N: wanted a whole number above 0"
[[ "$SEED" =~ ^[0-9]{1,18}$ ]] || die "SEED=$SEED: wanted a whole number"
folder=${MUTATE_DIR:-build/mutate}/$SEED mutate=$BUILD/tests/mutate/mutate
rm -rf "$folder"; mkdir -p "$folder/drawn" "$folder/fate"

# What kernels are made of, and which variants are made of it, by what the compiler read. Bodies of host variants are linked.
# shellcheck disable=SC2086
awk -v OFS='\t' 'FNR == 1 { variant = FILENAME; sub(/.*kernels\//, "", variant); sub(/\.d$/, "", variant) }
    { for (i = 1; i <= NF; i++) {
          file = $i; sub(/:$/, "", file)
          if (file ~ /^kernels\/.*\.(c|cu|h)$/ && file !~ /^kernels\/(simt|runner)\/|_cuda\.h$/ && !seen[file, variant]++) print file, variant
      } }' ${VARIANT_OBJECTS//.o/.d} > "$folder/users"
for source in kernels/host/*.c; do
    awk -F '\t' -v source="$source" '$2 ~ /\/00_/ && !seen[$2]++ { print source "\t" $2 }' "$folder/users"
done > "$folder/users.host"
cat "$folder/users.host" >> "$folder/users"
files=()
while read -r file; do
    # shellcheck disable=SC2053
    [[ -n "${ONLY:-}" && "$file" != $ONLY ]] || files+=("$file")
done < <(cut -f1 "$folder/users" | sort -u)
[[ ${#files[@]} != 0 ]] || die "ONLY=$ONLY: no kernel's source matches"

# The lines of headers of which a variant's object has code: a mutant goes into a variant that uses the line.
printf '%s\n' "${files[@]}" | awk -F '\t' 'FILENAME == "-" { drawn[$1]; next }
    $1 ~ /\.h$/ && $1 in drawn && !seen[$2]++ { print $2 }' - "$folder/users" | sort | while read -r variant; do
    [[ -e "kernels/$variant.cu" ]] || continue
    objdump --dwarf=decodedline "$SIMT/kernels/$variant.o" | awk -v v="$variant" '/^CU: |^[^ ]*:$/ { file = $0; sub(/^CU: /, "", file); sub(/:$/, "", file); sub(/^\.\//, "", file); next }
        $2 ~ /^[0-9]+$/ && file ~ /^kernels\/.*\.h$/ && !seen[file, $2]++ { print file ":" $2 "\t" v }'
done > "$folder/held"

total=$("$mutate" sites "${files[@]}" | wc -l)
echo "mutate: seed $SEED, $total places in ${#files[@]} files"

# Which variants to try, in turn: those that have code of the line, then all that are made of the file, in steps that take
# neighbours, which are alike, far from each other, and of each family one before any has its second.
with_variants() {
    awk -F '\t' -v OFS='\t' -v seed="$SEED" '
        function divisor(a, b) { return b ? divisor(b, a % b) : a }
        function family(v) { sub(/\/.*/, "", v); return v }
        function take(all,    m, list, step, i, n, order, seen, v) {
            m = split(all, list, " ")
            for (step = int(0.382 * m) + 1; m && divisor(step, m) != 1; step++) ;
            for (i = 0; i < m; i++) {
                v = list[1 + (i * step + first) % m]
                if (!taken[v]++) order[++n] = v
            }
            while (n > 0) {
                split("", seen); m = 0
                for (i = 1; i <= n; i++)
                    if (family(order[i]) in seen) order[++m] = order[i]
                    else { seen[family(order[i])]; text = text " " order[i] }
                n = m
            } }
        FILENAME == ARGV[1] { users[$1] = users[$1] " " $2; next }
        FILENAME == ARGV[2] { held[$1] = held[$1] " " $2; next }
        { text = ""; split("", taken); first = $1 * 7919 + seed
          take(held[$2 ":" $3]); take(users[$2])
          print $0, substr(text, 2) }' "$folder/users" "$folder/held" "$1"
}
export PLAIN BUILD SIMT PLAIN_CFLAGS CC CFLAGS CXX SIMT_FLAGS
each() { tr '\n' '\0' | xargs -0 -r -n 1 -P "$JOBS" make/mutate_one.sh "$folder"; } # of the lines of stdin

PLAIN=$folder/plain; mkdir "$PLAIN" # parts of host variants, to compare

# Draws and compiles until there are N mutants; all that was drawn until then goes to FOLDER/numbers, in the order of the draw.
first=1 real=0
compile() {
    local count number
    while ((real < N && first <= total)); do
        count=$(((N - real) * 3 / 2 + 4))
        "$mutate" draw "$SEED" "$first" "$count" "$folder/drawn" "${files[@]}" > "$folder/draws"
        with_variants "$folder/draws" | each
        while ((real < N && count > 0 && first <= total)); do
            echo "$first" >> "$folder/numbers"
            [[ $(cut -f8 "$folder/fate/$first") != mutant ]] || real=$((real + 1))
            first=$((first + 1)) count=$((count - 1))
        done
    done
    echo "mutate: $real of $N mutants compiled after $SECONDS s"
}

# Controls: variants in which nothing but a comment was changed. They must pass, or what the mutants get means nothing.
add_controls() {
    local number=$total variant file
    mutants | patches | sed -n 's/.*\/\([^/]*\/\)m[0-9]*_\(.*\)\.patch$/\1\2/p' | sort -u |
        awk '{ v[NR] = $0 } END { n = NR < 5 ? NR : 5; for (i = 0; i < n; i++) print v[1 + int(i * NR / n)] }' > "$folder/controls"
    while read -r variant; do
        file=kernels/$variant.cu number=$((number + 1))
        [[ -e "$file" ]] || file=kernels/$variant.c
        { cat "$file"; echo '/* nothing else */'; } > "$folder/drawn/$number"
        printf '%s\t%s\t1\t0\tnothing\t\t\t%s\n' "$number" "$file" "$variant" | each
        echo "$number" >> "$folder/numbers"
    done < "$folder/controls"
}
mutants() { while read -r number; do cat "$folder/fate/$number"; done < "$folder/numbers"; } # with their fates
patches() { awk -F '\t' '$8 == "mutant" { print $9 }' "$@"; }

# One program of all mutants until now. What the judge says of those of FILE goes to FOLDER/results.jsonl.
judge() { # FILE
    local code=0 list originals
    mapfile -t list < <(patches "$folder/mutants")
    make/write_tables.sh drawn "${list[@]}" > "$folder/table.c"
    mapfile -t originals < <(sed -n 's/^mutant-of: *//p' "${list[@]}" | sort -u | while read -r variant; do
        [[ -e "$SIMT/kernels/$variant.o" ]] && echo "$SIMT/kernels/$variant.o" || echo "$BUILD/kernels/$variant.o"; done)
    # shellcheck disable=SC2086
    $CC $CFLAGS -c "$folder/table.c" -o "$folder/table.o"
    # shellcheck disable=SC2086
    $CC $LINK_FLAGS $RUNNER_FRAME "${list[@]/%.patch/.o}" "${originals[@]}" "$folder/table.o" "$BUILD/libreference.a" \
        -o "$folder/attest-mutate" $RUNNER_LIBS
    mapfile -t list < <(patches "$1" | sed 's|.*/\([^/]*/[^/]*\)\.patch$|\1|')
    "$BUILD/attest" verify "${list[@]}" --runner "$folder/attest-mutate" --cases "$CASES" --again 6 --first-failure --strict \
        --jobs "$JOBS" --json "$folder/new.jsonl" --quiet > "$folder/verify.log" || code=$?
    ((code <= 1 || code == 4)) || die "attest verify: exit $code, see $folder/verify.log"
    cat "$folder/new.jsonl" >> "$folder/results.jsonl"
    echo "mutate: judged $(patches "$1" | wc -l) after $SECONDS s"
}

: > "$folder/numbers"; : > "$folder/results.jsonl"
compile
[[ -n "$(mutants | patches)" ]] || die "nothing that was drawn compiles to other code"
add_controls
mutants > "$folder/mutants"
judge "$folder/mutants"
# A mutant of what several variants are made of is seen when one of them fails, as `make check` would: survivors go into a
# second and a third, one at a time since most die there, and then into eight more at once.
tried() { find "$1" -type f -exec cat {} + | sort -n; }
for more in 1 1 8; do
    "$mutate" survivors "$folder" > "$folder/left"
    : > "$folder/more"
    for ((i = 1; i <= more; i++)); do
        rm -rf "$folder/into"; mkdir "$folder/into"
        FATES=$folder/into each < "$folder/left"
        tried "$folder/into" | awk -F '\t' '$8 == "mutant"' >> "$folder/more"
        tried "$folder/into" | awk -F '\t' -v OFS='\t' '$10 != "" { print $1, $2, $3, $4, $5, $6, $7, $10 }' > "$folder/left"
    done
    [[ -s "$folder/more" ]] || break
    cat "$folder/more" >> "$folder/mutants"
    judge "$folder/more"
done
[[ -z "${ONLY:-}" ]] || only=" ONLY='$ONLY'"
"$mutate" score "$folder" tests/mutants/equivalent.txt "make mutate N=$N SEED=$SEED${only:-}" "${MUTATE_MIN:-0}"
