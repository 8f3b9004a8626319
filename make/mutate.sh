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

# Up to three variants for a header (all for a host body, which costs a link each), from one on that the draw chooses.
with_variants() {
    awk -F '\t' -v OFS='\t' -v seed="$SEED" '
        FILENAME == ARGV[1] { users[$1] = users[$1] " " $2; next }
        FILENAME == ARGV[2] { held[$1] = held[$1] " " $2; next }
        { most = $2 ~ /^kernels\/host\// ? 1000 : 3; n = 0; text = ""; split("", taken)
          for (pass = 0; pass < 2; pass++) {
              m = split(pass == 0 ? held[$2 ":" $3] : users[$2], list, " ")
              for (i = 0; i < m && n < most; i++) {
                  v = list[1 + (i + $1 * 7919 + seed) % m]
                  if (!taken[v]++) { text = text " " v; n++ }
              } }
          print $0, substr(text, 2) }' "$folder/users" "$folder/held" "$1"
}
export BUILD PLAIN PLAIN_CFLAGS PLAIN_SIMT_FLAGS CC CFLAGS CXX SIMT_FLAGS
compile_drawn() { # FILE of draws
    with_variants "$1" | tr '\n' '\0' | xargs -0 -r -n 1 -P "$JOBS" make/mutate_one.sh "$folder"
}

# The originals' code, kept while nothing that it is made of changes.
PLAIN=${MUTATE_DIR:-build/mutate}/plain
stamp=$( { echo "$CC $PLAIN_CFLAGS $CXX $PLAIN_SIMT_FLAGS"; find kernels reference -name '*.[ch]*' -exec sha256sum {} + | sort; } | sha256sum)
[[ -e "$PLAIN/stamp" && "$(< "$PLAIN/stamp")" == "$stamp" ]] || { rm -rf "$PLAIN"; mkdir -p "$PLAIN"; echo "$stamp" > "$PLAIN/stamp"; }
start=$SECONDS first=1 real=0
while ((real < N && first <= total)); do
    count=$(((N - real) * 3 / 2 + 4))
    "$mutate" draw "$SEED" "$first" "$count" "$folder/drawn" "${files[@]}" > "$folder/draws"
    compile_drawn "$folder/draws"
    while IFS=$'\t' read -r number _; do
        fate=$(cut -f8 "$folder/fate/$number")
        if ((real >= N)); then # more than were asked for: as if they had not been drawn
            patch=$(cut -f9 "$folder/fate/$number")
            [[ -z "$patch" ]] || rm -f "$patch" "${patch%.patch}".{o,d}
            continue
        fi
        cat "$folder/fate/$number" >> "$folder/mutants"
        [[ "$fate" != mutant ]] || real=$((real + 1))
    done < "$folder/draws"
    first=$((first + count))
    echo "mutate: $real of $N mutants compiled in $((SECONDS - start)) s"
done

: > "$folder/nothing"
# Controls: variants that nothing was changed in but a comment. They must pass, or what the mutants get means nothing.
cut -f9 "$folder/mutants" | sed -n 's/.*\/\([^/]*\/\)m[0-9]*_\(.*\)\.patch$/\1\2/p' | sort -u | awk '{ v[NR] = $0 }
    END { for (i = 0; i < 5 && i < NR; i++) print v[1 + int(i * NR / (NR < 5 ? NR : 5))] }' | while read -r variant; do
    number=$((total + 1 + $(wc -l < "$folder/nothing")))
    file=kernels/$variant.cu; [[ -e "$file" ]] || file=kernels/$variant.c
    { cat "$file"; echo '/* nothing else */'; } > "$folder/drawn/$number"
    printf '%s\t%s\t1\t0\tnothing\t\t\t%s\n' "$number" "$file" "$variant" >> "$folder/nothing"
    make/mutate_one.sh "$folder" "$(tail -n 1 "$folder/nothing")"
    cat "$folder/fate/$number" >> "$folder/mutants"
done

mapfile -t patches < <(cut -f9 "$folder/mutants" | grep .)
[[ ${#patches[@]} != 0 ]] || die "nothing that was drawn compiles to other code"
make/write_tables.sh kernels "${patches[@]}" > "$folder/table.c"
# shellcheck disable=SC2086
$CC $CFLAGS -c "$folder/table.c" -o "$folder/table.o"
# shellcheck disable=SC2086
$CC $LINK_FLAGS $RUNNER_FRAME "${patches[@]/%.patch/.o}" "$folder/table.o" "$BUILD/libreference.a" -o "$folder/attest-mutate" $RUNNER_LIBS
echo "mutate: judging"
code=0
"$BUILD/attest" verify --runner "$folder/attest-mutate" --cases "$CASES" --first-failure --timeout "$TIMEOUT" --jobs "$JOBS" \
    --json "$folder/results.jsonl" --quiet > "$folder/verify.log" || code=$?
((code <= 1)) || die "attest verify: exit $code, see $folder/verify.log"
echo "mutate: judged in $((SECONDS - start)) s, compiling included"
[[ -z "${ONLY:-}" ]] || only=" ONLY='$ONLY'"
"$mutate" score "$folder" tests/mutants/equivalent.txt "make mutate N=$N SEED=$SEED${only:-}" "${MUTATE_MIN:-0}"
