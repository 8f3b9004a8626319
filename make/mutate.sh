#!/bin/bash
# A sample of token-level mutants of the kernels, judged on the committed selection of cases: `make mutate`.
# N mutants that compile to other code than their original; what does not is drawn again. Each is one compilation (about a
# second), and all of them are one runner, so that the references of a case are computed once.
# Of the shuffled places, slot k of N has the k-th, then every N-th behind it until one is a mutant: no slot asks what became of
# another, so that SHARD=i/n, which takes every n-th slot, and MERGE=n, which joins n shards, give the sample of one process.
# SPDX-License-Identifier: Apache-2.0
set -euo pipefail
export LC_ALL=C
die() { echo "mutate: $*" >&2; exit 1; }
[[ "$N" =~ ^[1-9][0-9]*$ ]] || die "N=$N: wanted a whole number above 0"
[[ "$SEED" =~ ^[0-9]{1,18}$ ]] || die "SEED=$SEED: wanted a whole number"
whole=${MUTATE_DIR:-build/mutate}/$SEED mutate=$BUILD/tests/mutate/mutate
shard=1 shards=1 folder=$whole
if [[ -n "${SHARD:-}" ]]; then
    [[ "$SHARD" =~ ^([1-9][0-9]{0,5})/([1-9][0-9]{0,5})$ ]] || die "SHARD=$SHARD: wanted i/n"
    shard=${BASH_REMATCH[1]} shards=${BASH_REMATCH[2]} folder=$whole/$shard.of.$shards
    ((shard <= shards)) || die "SHARD=$SHARD: wanted 1/$shards to $shards/$shards"
fi
[[ -z "${MERGE:-}" || "$MERGE" =~ ^[1-9][0-9]{0,5}$ && -z "${SHARD:-}" ]] || die "MERGE=$MERGE: wanted a number of shards, and no SHARD"
[[ -z "${SHARD:-}${MERGE:-}" || -n "${SEED_GIVEN:-}" ]] || die "shards want the SEED said: today's date may change between them"
# Of a whole sample everything goes but shards, which a merge is to find.
mkdir -p "$folder"
find "$folder" -mindepth 1 -maxdepth 1 ! -name '*.of.*' -exec rm -rf {} +
mkdir -p "$folder/drawn" "$folder/fate"

# What kernels are made of, and which variants are made of it, by what the compiler read. Bodies of host variants are linked.
# shellcheck disable=SC2086
awk -v OFS='\t' 'FNR == 1 { variant = FILENAME; sub(/.*kernels\//, "", variant); sub(/\.d$/, "", variant) }
    variant ~ /\/39_dispatch$/ { next } # a dispatcher has no kernel: any choice of its is right, and what it costs is timed
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
echo "mutate: seed $SEED, $total places in ${#files[@]} files${SHARD:+, shard $SHARD}"
# What shards must agree on.
asked="N=$N SEED=$SEED ONLY=${ONLY:-} CASES=$CASES sources=$(cat "${files[@]}" | sha256sum | cut -c1-16)"

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

# Draws and compiles, the slots of this shard; what was drawn until each had its mutant goes to FOLDER/numbers. Few open slots
# try some places ahead, so that no processor waits; what is ahead of a mutant does not count.
compile() {
    local slots=() open slot number round=0 ahead i real=0
    for ((slot = shard; slot <= N; slot += shards)); do slots+=("$slot"); done
    while ((${#slots[@]} > 0)); do
        ahead=$(((JOBS + ${#slots[@]} - 1) / ${#slots[@]})) open=()
        for slot in "${slots[@]}"; do
            for ((i = round; i < round + ahead && slot + i * N <= total; i++)); do echo $((slot + i * N)); done
        done > "$folder/wanted"
        "$mutate" draw "$SEED" "$folder/drawn" "${files[@]}" < "$folder/wanted" > "$folder/draws"
        with_variants "$folder/draws" | each
        for slot in "${slots[@]}"; do
            for ((i = round; i < round + ahead; i++)); do
                number=$((slot + i * N))
                ((number <= total)) || continue 2
                echo "$number" >> "$folder/numbers"
                [[ $(cut -f8 "$folder/fate/$number") != mutant ]] || { real=$((real + 1)); continue 2; }
            done
            open+=("$slot")
        done
        slots=("${open[@]}") round=$((round + ahead))
    done
    sort -n -o "$folder/numbers" "$folder/numbers"
    echo "mutate: $real mutants of N=$N compiled after $SECONDS s"
}

# Controls: variants in which nothing but a comment was changed, those that the mutants of five slots are of. They must pass, or
# what the mutants get means nothing.
add_controls() {
    local variant file i slot number patch
    for ((i = 0; i < 5 && i < N; i++)); do
        slot=$((1 + i * N / 5))
        (((slot - shard) % shards == 0)) || continue
        patch=$(mutants | awk -F '\t' -v n="$N" -v slot="$slot" '$8 == "mutant" && ($1 - slot) % n == 0 { print $9 }')
        [[ -n "$patch" ]] || continue
        variant=$(sed -n 's/^mutant-of: *//p' "$patch") number=$((total + 1 + i))
        file=kernels/$variant.cu
        [[ -e "$file" ]] || file=kernels/$variant.c
        { cat "$file"; echo '/* nothing else */'; } > "$folder/drawn/$number"
        printf '%s\t%s\t1\t0\tnothing\t\t\t%s\n' "$number" "$file" "$variant"
        echo "$number" >> "$folder/controls"
    done | each
    cat "$folder/controls" >> "$folder/numbers"
}
mutants() { while read -r number; do cat "$folder/fate/$number"; done < "$folder/numbers"; } # with their fates
patches() { awk -F '\t' '$8 == "mutant" { print $9 }' "$@"; }

# FOLDER/attest-mutate: one program of all mutants until now.
link() {
    local list originals
    mapfile -t list < <(patches "$folder/mutants")
    make/write_tables.sh drawn "${list[@]}" > "$folder/table.c"
    mapfile -t originals < <(sed -n 's/^mutant-of: *//p' "${list[@]}" | sort -u | while read -r variant; do
        [[ -e "$SIMT/kernels/$variant.o" ]] && echo "$SIMT/kernels/$variant.o" || echo "$BUILD/kernels/$variant.o"; done)
    # shellcheck disable=SC2086
    $CC $CFLAGS -c "$folder/table.c" -o "$folder/table.o"
    # shellcheck disable=SC2086
    $CC $LINK_FLAGS $RUNNER_FRAME "${list[@]/%.patch/.o}" "${originals[@]}" "$folder/table.o" "$BUILD/libreference.a" \
        -o "$folder/attest-mutate" $RUNNER_LIBS
}

# What the judge says of the mutants of FILE goes to FOLDER/results.jsonl.
judge() { # FILE
    local code=0 list
    link
    mapfile -t list < <(patches "$1" | sed 's|.*/\([^/]*/[^/]*\)\.patch$|\1|')
    # All of what is this shard's: attest would take a shard of an array's task by itself.
    AT_OURS=1 "$BUILD/attest" verify "${list[@]}" --shard 1/1 --runner "$folder/attest-mutate" --cases "$CASES" --again 6 --first-failure \
        --strict --jobs "$JOBS" --json "$folder/new.jsonl" --quiet > "$folder/verify.log" || code=$?
    ((code <= 1 || code == 4)) || die "attest verify: exit $code, see $folder/verify.log"
    cat "$folder/new.jsonl" >> "$folder/results.jsonl"
    echo "mutate: judged $(patches "$1" | wc -l) after $SECONDS s"
}

# The shards' mutants, results and objects as those of one process.
merge() {
    local i part
    for ((i = 1; i <= MERGE; i++)); do
        part=$whole/$i.of.$MERGE
        [[ -e "$part/done" ]] || die "MERGE=$MERGE: shard $i/$MERGE is missing, or did not end: no $part/done"
        [[ "$(< "$part/done")" == "$asked" ]] || die "shard $i/$MERGE is of $(< "$part/done"); wanted $asked"
    done
    for ((i = 1; i <= MERGE; i++)); do
        part=$whole/$i.of.$MERGE
        awk -F '\t' -v OFS='\t' -v from="$part/" -v to="$whole/" 'index($9, from) == 1 { $9 = to substr($9, length(from) + 1) } { print }' \
            "$part/mutants" >> "$folder/mutants"
        cat "$part/results.jsonl" >> "$folder/results.jsonl"
        patches "$part/mutants" | while read -r patch; do
            mkdir -p "$(dirname "$whole/${patch#"$part"/}")"
            cp "$patch" "${patch%.patch}.o" "$(dirname "$whole/${patch#"$part"/}")/"
        done
    done
}
sample() {
    compile
    # A shard whose slots have no mutant has nothing to judge.
    if [[ -z "$(mutants | patches)" ]]; then
        [[ -n "${SHARD:-}" ]] || die "nothing that was drawn compiles to other code"
        mutants > "$folder/mutants"
        return
    fi
    add_controls
    mutants > "$folder/mutants"
    judge "$folder/mutants"
    # A mutant of what several variants are made of is seen when one of them fails, as `make check` would: survivors go into a
    # second and a third, one at a time since most die there, and then into eight more at once.
    for more in 1 1 8; do
        "$mutate" survivors "$folder" > "$folder/left"
        : > "$folder/more"
        for ((i = 1; i <= more; i++)); do
            rm -rf "$folder/into"; mkdir "$folder/into"
            FATES=$folder/into each < "$folder/left"
            tried "$folder/into" | awk -F '\t' '$8 == "mutant"' >> "$folder/more"
            tried "$folder/into" | awk -F '\t' -v OFS='\t' '$10 != "" { print $1, $2, $3, $4, $5, $6, $7, $10 }' > "$folder/left"
        done
        [[ -s "$folder/more" ]] || continue # the last round gets past what does not compile
        cat "$folder/more" >> "$folder/mutants"
        judge "$folder/more"
    done
}
tried() { find "$1" -type f -exec cat {} + | sort -n; }

: > "$folder/numbers"; : > "$folder/results.jsonl"; : > "$folder/controls"; : > "$folder/mutants"
if [[ -n "${MERGE:-}" ]]; then merge; else sample; fi
sort -s -n -k 1,1 -o "$folder/mutants" "$folder/mutants"
if [[ -n "${SHARD:-}" ]]; then
    echo "$asked" > "$folder/done"
    exit 0
fi
[[ -z "${MERGE:-}" ]] || link
[[ -z "${ONLY:-}" ]] || only=" ONLY='$ONLY'"
"$mutate" score "$folder" tests/mutants/equivalent.txt "make mutate N=$N SEED=$SEED${only:-}" "${MUTATE_MIN:-0}" > "$folder/score" ||
    { code=$?; cat "$folder/score"; exit $code; }
cat "$folder/score"
