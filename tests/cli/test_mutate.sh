#!/bin/bash
# `make mutate`: what is drawn, that right kernels survive and wrong ones do not, that what is the same code is no mutant, and
# that nothing is excused that is a fault.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
source tests/cli/mutate_command.sh
mutate=$BUILD/tests/mutate/mutate
[[ -e "$BUILD/mechanical.tsv" ]] || { echo "mutants are drawn in the plain build alone: the others hold the same kernels"; exit 77; }

# --- sites: every kind, each text; what a kernel declares is no site ---
cat > "$scratch/all.cu" <<'CU'
#define NOT_HERE (1 + 2)
static_assert(sizeof(int) == 4);
const int table[] = { 1, 2 };
/* 1 + 2 */ const char *supports(const struct p *p) { return p->d % 8 ? "3 < 4" : nullptr; }
static void f(int n, int m) {
    for (int i = 0; i < n; i++)
        x[i][n] += g<4>(i, m) - 0.5f;
    if (p->h && p->hk) at_sync();
    y = fminf(p->h, 0x10u) >> 1; /* whose arguments are in no order */
    const T *q = a > b ? c : d;
}
AT_KERNEL(any, 01_all) = { .pv_chunk = 16 + 1 };
CU
cat > "$scratch/want" <<'SITES'
6 condition i < n|!(i < n)
6 integer 0|1
6 relation <|<=|>=|>
6 step ++|--
7 deletion x[i][n] += g<4>(i, m) - 0.5f|
7 swap [i][n]|[n][i]
7 assignment +=|-=|=
7 integer 4|5|3
7 swap i, m|m, i
7 arithmetic -|+|*
7 real 0.5f|0x1p+0f|0x1p-2f|0.0f
8 condition p->h && p->hk|!(p->h && p->hk)
8 member h|d|hk
8 logic &&|||
8 member hk|d|h
8 deletion at_sync()|
9 deletion y = fminf(p->h, 0x10u) >> 1|
9 extreme fminf|fmaxf
9 member h|d|hk
9 integer 0x10u|0x11u|0xfu
9 bits >>|<<
9 integer 1|2|0
10 condition a > b|!(a > b)
10 relation >|>=|<=|<
SITES
"$mutate" sites "$scratch/all.cu" > "$scratch/sites" || fail "mutate sites"
awk -F '\t' '{ text = $5; for (i = 6; i <= NF; i++) text = text "|" $i; print $2, $4, text }' "$scratch/sites" > "$scratch/got"
diff <(sort "$scratch/want") <(sort "$scratch/got") || fail "sites (wanted <, found >)"
printf 'void f() { g(1]; }\n' > "$scratch/odd.c"
wants 2 "odd.c:1: ']' closes nothing" "$mutate" sites "$scratch/odd.c"

# --- draws: by the seed alone, each place once, with as many lines as before ---
mapfile -t sources < <(ls kernels/device/exp.h kernels/exp2/*.cu kernels/rms_norm/*.cu kernels/rms_norm/*.h)
draw() { # SEED FIRST N NAME
    mkdir -p "$scratch/$4"
    seq "$2" $(($2 + $3 - 1)) | "$mutate" draw "$1" "$scratch/$4" "${sources[@]}" > "$scratch/$4.tsv" || fail "mutate draw"
}
draw 5 1 40 one; draw 5 1 40 again; draw 6 1 40 other; draw 5 31 10 tail
same "$scratch/one.tsv" "$scratch/again.tsv"
cmp -s "$scratch/one.tsv" "$scratch/other.tsv" && fail "two seeds draw the same"
diff <(tail -n 10 "$scratch/one.tsv") "$scratch/tail.tsv" || fail "a later draw depends on how many came before at once"
[[ $(cut -f2,4,5 "$scratch/one.tsv" | sort -u | wc -l) == 40 ]] || fail "a place is drawn twice"
while IFS=$'\t' read -r number file _; do
    [[ $(wc -l < "$scratch/one/$number") == $(wc -l < "$file") ]] || fail "draw $number has other lines than $file"
    cmp -s "$scratch/one/$number" "$file" && fail "draw $number changes nothing"
done < "$scratch/one.tsv"

# --- a sample by the script itself: the command of the Makefile, with the folder of this test ---
[[ "${AT_EFFORT:-full}" == fast ]] && n=3 || n=5
settings=(mutate JOBS=2 ONLY='kernels/rms_norm/*.h' CASES='smoke:*' N="$n" SEED=3)
mutate_command "${settings[@]}" > "$scratch/command"
[[ -s "$scratch/command" ]] || fail "no command of make mutate"
export MUTATE_DIR=$scratch/mutate
sample() { bash "$scratch/command"; }
wants 0 "make mutate N=$n SEED=3" sample
tail -n 1 "$scratch/out" | grep -qE ": [0-9]+ of $n killed, raw score [0-9.]+ %\$" || fail "the last line is no score"
folder=$MUTATE_DIR/3
controls=$(awk -F '\t' '$5 == "nothing"' "$folder/mutants" | wc -l)
[[ $controls -ge 1 ]] || fail "no control"
grep -q " $controls controls passed\$" "$scratch/out" || fail "a control did not pass"
killed=$(sed -n 's/.*: \([0-9]*\) of '"$n"' killed, raw.*/\1/p' "$scratch/out")
[[ "$killed" -ge $((n / 2)) ]] || fail "only $killed of $n mutants of a small kernel are killed"
# The patch is all of a mutant, and applies to the sources.
patch=$(find "$folder" -name 'm*.patch' | sort | head -n 1)
patch --dry-run -p1 < "$patch" > /dev/null || fail "$patch does not apply"

# --- shards: joined they are the sample of one process, and what was not drawn alike is refused ---
shard() { mutate_command "${settings[@]}" "$@" > "$scratch/shard"; bash "$scratch/shard"; } # settings
cp "$folder/score" "$folder/mutants" "$scratch/"
wants 1 'shards want the SEED said' bash <(mutate_command mutate N="$n" SHARD=1/2)
wants 1 'SHARD=3/2: wanted 1/2 to 2/2' shard SHARD=3/2
wants 0 'shard 2/2' shard SHARD=2/2
wants 1 'MERGE=2: shard 1/2 is missing' shard MERGE=2
wants 0 'shard 1/2' shard SHARD=1/2
wants 1 "shard 1/2 is of N=$n SEED=3 ONLY=kernels/rms_norm/" shard MERGE=2 ONLY='kernels/rms_norm/*'
wants 0 "make mutate N=$n SEED=3" shard MERGE=2
same "$scratch/score" "$folder/score"
same "$scratch/mutants" "$folder/mutants"
"$attest" verify "${variant_of_first:=$(cut -f9 "$folder/mutants" | sed -n '/./{s|.*/\([^/]*/[^/]*\)\.patch$|\1|p;q}')}" --runner "$folder/attest-mutate" \
    --case 'rms_norm tokens=2 channels=8 dtype=bf16' > "$scratch/out" 2>&1; [[ $? -le 1 ]] || { cat "$scratch/out"; fail "the merged runner does not run $variant_of_first"; }

# --- fates: what does not compile, what is the same code, what is a mutant ---
fate() { # NUMBER 'sed command'
    sed "$2" kernels/rms_norm/warp_per_row.h > "$folder/drawn/$1"
    printf '%s\tkernels/rms_norm/warp_per_row.h\t1\t0\tswap\ta\tb\trms_norm/01_warp_per_row' "$1" > "$scratch/line"
    sed "s|make/mutate.sh\$|make/mutate_one.sh '$folder' \"\$(cat '$scratch/line')\"|" "$scratch/command" > "$scratch/single"
    PLAIN=$folder/plain bash "$scratch/single" || fail "make/mutate_one.sh"
    cut -f8 "$folder/fate/$1"
}
[[ $(fate 9001 's/int launch(/int launch((/') == refused ]] || fail "what does not compile is no mutant"
[[ $(fate 9002 's/threadIdx.x/(1 * threadIdx.x + 0)/') == same ]] || fail "the same code is no mutant"

# --- the score: what is excused, what must not be ---
score() { "$mutate" score "$folder" "$scratch/equivalent" 'make mutate' "$1"; }
: > "$scratch/equivalent"
wants 0 'raw score' score 0
wants 1 'below MUTATE_MIN=101' score 101
name=$(awk -F '\t' '$8 == "mutant" && $2 ~ /rms_norm/ && length($7) && $6 !~ /\047/ { print $9; exit }' "$folder/mutants")
IFS=$'\t' read -r _ file _ place _ old new _ < <(grep -F "$name" "$folder/mutants")
text=$(tail -c "+$((place + 1))" "$file" | tr -s '[:space:]' ' ' | cut -c1-60)
text=${text%%\'*}
variant=${name#"$folder/"}; variant=${variant%.patch}
results() { grep -v "\"variant\":\"${variant#*/}\"" "$folder/all.jsonl"; grep "\"variant\":\"${variant#*/}\"" "$folder/all.jsonl" | sed "s/\"state\":\"[A-Z]*\"/\"state\":\"$1\"/"; }
cp "$folder/results.jsonl" "$folder/all.jsonl"
results PASS > "$folder/results.jsonl"
wants 0 "SURVIVED   $file:" score 0
# In a second variant it fails: then it is killed, and counted once.
cp "$folder/mutants" "$scratch/mutants"
grep -F "$name" "$folder/mutants" | sed "s|$name|${name%.patch}_again.patch|" >> "$folder/mutants"
results WRONG | grep "\"variant\":\"${variant#*/}\"" | sed "s/\"variant\":\"${variant#*/}\"/\"variant\":\"${variant#*/}_again\"/" >> "$folder/results.jsonl"
wants 0 " of $n killed, raw score" score 0
grep -q "^SURVIVED   $file:.* $old -> $new\$" "$scratch/out" && fail "a mutant that one of its variants shows has survived"
cp "$scratch/mutants" "$folder/mutants"
results PASS > "$folder/results.jsonl"
echo "$file '$text' '$old' -> '$new' : as planted by this test" > "$scratch/equivalent"
wants 0 'of those not equivalent (1 of tests' score 0
grep -q "^equivalent $file:" "$scratch/out" || fail "the equivalent mutant is not named"
results WRONG > "$folder/results.jsonl"
wants 1 'DISPROVED' score 0
for bad in "$file '$text as it was' '$old' -> '$new' : as planted by this test" "$file '(' '(' -> ')' : as planted by this test"; do
    echo "$bad" > "$scratch/equivalent"
    wants 2 'wanted one' score 0
done
echo "$file is right anyway" > "$scratch/equivalent"
wants 2 "equivalent:1: wanted FILE 'text" score 0
# A control that is killed says that a verdict here means nothing.
: > "$scratch/equivalent"
sed -i "s|\t[a-z]*\t\([^\t]*\t[^\t]*\tmutant\t$name\t.*\)\$|\tnothing\t\1|" "$folder/mutants"
wants 1 'which nothing is wrong with, was killed' score 0
# The list in the tree fits the sources of today.
cp tests/mutants/equivalent.txt "$scratch/equivalent"
score 0 > "$scratch/out" 2>&1; [[ $? -le 1 ]] || { cat "$scratch/out"; fail "tests/mutants/equivalent.txt"; }
