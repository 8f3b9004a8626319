#!/bin/bash
# attest stack on the SIMT machine: verdicts of a right stack and of one with a wrong step in one layer, where its error enters, plans
# of the source's pairs, archives, what repeats, exit codes.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"

column() { # NAME FILE: that key of each row
    sed -n "s/.*\"$1\":\"\{0,1\}\([^,\"}]*\).*/\1/p" "$2"
}
rows() { # FILE: layer step tensor state entered_rms inherited_rms error_rms rms of each row
    paste -d' ' <(column layer "$1") <(column name "$1") <(column tensor "$1") <(column state "$1") <(column entered_rms "$1") \
        <(column inherited_rms "$1") <(column error_rms "$1") <(column rms "$1")
}

# every step of three layers in its declared arithmetic, to the bit
wants 0 'MODEL-EXACT 56 of 56' "$attest" stack asynct_3 --strict --json "$scratch/right.jsonl" --out "$scratch/right.h5"
[[ $(wc -l < "$scratch/right.jsonl") == 56 ]] || fail "not a row an output"
rows "$scratch/right.jsonl" > "$scratch/right"
awk '$4 != "PASS" || !($5 <= 0.01 * $8) || !($7 <= 0.1 * $8)' "$scratch/right" > "$scratch/odd"
[[ -s "$scratch/odd" ]] && { cat "$scratch/odd"; fail "a right step errs as bf16 does not"; }
# the same seed gives the same bytes, another one others
wants 0 '' "$attest" stack asynct_3 --quiet --json "$scratch/again.jsonl" --out "$scratch/again.h5"
same "$scratch/right.jsonl" "$scratch/again.jsonl"
same "$scratch/right.h5" "$scratch/again.h5"
wants 0 '' "$attest" stack asynct_3 --use '*=00_*' --quiet --seed 1 --json "$scratch/other.jsonl"
[[ $(rows "$scratch/other.jsonl" | head -n 1) != $(head -n 1 "$scratch/right") ]] || fail "another seed gives the same values"

# a filter that lacks a tap, in the attention of layer 1: WRONG there; every other step is right on what it got
wants 1 '55 PASS, 1 WRONG' "$attest" stack asynct_3 --also "$BUILD/attest-mutants" --use 'attention@1=05_tap_dropped' \
    --json "$scratch/wrong.jsonl"
grep -q 'looks like tap_dropped' "$scratch/out" || fail "the likely cause is not said"
grep -qF "repro attest stack asynct_3 --use 'attention@1=05_tap_dropped'" "$scratch/out" || fail "no line repeats it"
rows "$scratch/wrong.jsonl" > "$scratch/wrong"
[[ $(awk '$4 != "PASS" { print $1, $2, $3, $4 }' "$scratch/wrong") == '1 attention o WRONG' ]] || fail "other verdicts than that one"
# the run in double is the same; up to the step so are the errors; there one enters, of a tenth and more of the flow; from there on it
# is inherited, and no step enters another
cmp <(awk '{ print $1, $2, $3, $8 }' "$scratch/right") <(awk '{ print $1, $2, $3, $8 }' "$scratch/wrong") || fail "the run in double moved"
at=$(awk '$1 == 1 && $2 == "attention" { print NR }' "$scratch/wrong")
cmp <(head -n $((at - 1)) "$scratch/right") <(head -n $((at - 1)) "$scratch/wrong") || fail "steps before the wrong one moved"
awk -v at="$at" 'NR == at { ok = $5 >= 0.1 * $8 && $6 <= 0.1 * $8 } NR != at && !($5 <= 0.01 * $8) { bad = 1 } END { exit !ok || bad }' \
    "$scratch/wrong" || fail "the error does not enter at the wrong step alone"
paste -d' ' "$scratch/right" "$scratch/wrong" | awk -v at="$at" 'NR > at && $2 ~ /proj|peri|down|final/ && $2 !~ /^[kv]_/ && !($14 > 3 * $6)' \
    > "$scratch/odd"
[[ -s "$scratch/odd" ]] && { cat "$scratch/odd"; fail "a later step does not inherit the error"; }
# of a launch that ends the runner nothing is left: the exact value goes on in its place
wants 1 'RACY' "$attest" stack asynct_3 --layers 1 --also "$BUILD/attest-mutants" --use 'attention=11_no_barrier_before_gate' --json "$scratch/racy.jsonl"
grep '"name":"attention"' "$scratch/racy.jsonl" | grep '"stands_in":true' | grep -q '"state":"RACY"' || fail "nothing stands in"
grep '"name":"down"' "$scratch/racy.jsonl" | grep -q '"state":"PASS"' || fail "the rest was not judged"
wants 1 '19 PASS, 1 CRASHED' "$attest" stack asynct_3 --layers 1 --also "$BUILD/attest-mutants" --use 'attention=46_exits,*_proj=00_*'

# f16, its products summed in f16: smaller errors of storing, larger ones of products; the softmax twin; a whole prompt
wants 0 '56 PASS' "$attest" stack asynct_3 --dtype f16 --sums f16 --strict --quiet --json "$scratch/f16.jsonl"
wants 0 'PASS' "$attest" stack softmax_28 --strict --quiet --layers 1 \
    --set b=2,keys=40,pages=3,spare=2,hidden=128,h=2,hk=1,d=64,inter=192 --json "$scratch/soft.jsonl"
[[ $(column name "$scratch/soft.jsonl" | tr '\n' ' ') == *'q_norm k_norm rope'* ]] || fail "no norms of q and k apart"
wants 0 'PASS' "$attest" stack asynct_3 --set b=2,keys=20,pages=2,phase=prefill,peri=v1,qk_norm=apart --layers 1 --quiet --strict

# one launch for rotation and write: as every other step, so the cache and what attends to it are the same, but for where errors of
# keys enter
wants 0 'MODEL-EXACT 53 of 53' "$attest" stack asynct_3 --set kv_write=inline --strict --json "$scratch/inline.jsonl"
rows "$scratch/inline.jsonl" > "$scratch/inline"
cmp <(awk '$2 !~ /^(rope|kv_write)$/' "$scratch/right") <(awk '$2 != "rope"' "$scratch/inline") || fail "inline, other steps moved"
cmp <(awk '$2 == "kv_write" { print $1, $7, $8 }' "$scratch/right") <(awk '$3 ~ /_cache$/ { print $1, $7, $8 }' "$scratch/inline") ||
    fail "inline, the cache is another"
wants 0 'PASS' "$attest" stack asynct_3 --set b=2,keys=20,pages=2,phase=prefill,kv_write=inline --layers 1 --quiet --strict

# plans: norms and all launches of the pairs; nothing is judged
launches() { "$attest" stack asynct_35 --steps --set "$1" | tail -n 1; }
[[ $(launches qk_norm=apart) == 'launches by kind: norm 141, gemm 210, rotary 35, cache 35, attention 35, mlp 35, 491 in all' ]] || fail "apart: $(launches qk_norm=apart)"
[[ $(launches qk_norm=fused) == 'launches by kind: norm 106, gemm 210, rotary 35, cache 35, attention 35, mlp 35, 456 in all' ]] || fail "fused: $(launches qk_norm=fused)"
[[ $(launches kv_write=inline) == 'launches by kind: norm 106, gemm 210, rotary 35, attention 35, mlp 35, 421 in all' ]] || fail "inline: $(launches kv_write=inline)"
wants 0 '14 steps run on the host' "$attest" stack asynct_3 --steps --layers 1 --use '*=00_*'

# A step too large to be modelled whole: on drawn rows alone, which is not MODEL-EXACT; where sums may overflow all rows are.
cat > "$scratch/one.stack" <<'STACK'
input a [400,320] std=1
input w [320,320] std=1
layers 1
    step gemm p gemm/01_mma_f32_sum m=400 n=320 k=320 : a=a b=w -> d=y
end
STACK
wants 0 '1 modelled on drawn rows alone' "$attest" stack "$scratch/one.stack" --quiet --model-rows 2
grep -q 'MODEL-EXACT 0 of 1' "$scratch/out" || fail "a product that is modelled on two rows: $(grep MODEL "$scratch/out")"
cat > "$scratch/one.stack" <<'STACK'
set dtype = f16
input q [1000,1,64] std=200
input k [1000,1,64] std=200
input v [1000,1,64] std=1
layers 1
    step attention a asynct_prefill/04_mma_f16_sum b=1 h=1 hk=1 sq=1000 sk=1000 d=64 page=0 causal=1 : q=q k=k v=v -> o=o
end
STACK
wants 1 '1 LAUNDERED' "$attest" stack "$scratch/one.stack" --quiet
# A state that stays in f32 is a flow in double too; values that overflow leave no error that could be read as small.
cat > "$scratch/one.stack" <<'STACK'
set dtype = f32
input q [2,2,40] std=1
input k [2,2,40] std=1
input v [2,2,36] std=1
input s [2,2,40,36] std=1
layers 2
    step state ld lightning_decode/* b=2 h=2 d=40 e=36 : q=q k=k v=v kv=s -> o=y
end
STACK
wants 0 '4 PASS' "$attest" stack "$scratch/one.stack" --quiet --json "$scratch/state.jsonl"
grep -qE '^ +1 s +1\.[0-9]+ ' "$scratch/out" || fail "a state in double: $(grep -E '^ +1 s ' "$scratch/out")"
cat > "$scratch/one.stack" <<'STACK'
set dtype = f16
input g [4,64] std=60000
input u [4,64] std=60000
layers 1
    step mlp m silu_mul/* tokens=4 channels=64 halves=apart : gate=g up=u -> y=y
end
STACK
wants 1 'OVERFLOWED' "$attest" stack "$scratch/one.stack" --quiet
grep -qE '^m .*inf +-inf ' "$scratch/out" || fail "an overflow: $(grep -E '^m ' "$scratch/out")"

# archives
wants 0 'by layer' "$attest" show "$scratch/right.h5"
wants 0 '' "$attest" export "$scratch/right.h5" --to csv --out "$scratch/csv"
[[ $(wc -l < "$scratch/csv/right_studies_stack_steps.csv") == 57 ]] || fail "not a line a row"
wants 0 '1 file in' "$attest" export "$scratch/right.h5" --to svg --out "$scratch/svg"
# a panel an output of a layer, a mark a layer where anything enters (a copy adds nothing), and that of the legend
[[ $(grep -c '<circle' "$scratch/svg/right_stack_errors.svg") == $((3 * (18 - 2) + 1)) ]] || fail "not a point a layer"
/usr/bin/python3 -c 'import sys; sys.path.insert(0, "tests/python"); import svg_layout; svg_layout.check(sys.argv[1])' \
    "$scratch/svg/right_stack_errors.svg" || fail "the plot cannot be read"

# bad input
wants 2 'stacks/asynct_4.stack: No such file' "$attest" stack asynct_4
wants 2 '--set: found '\''way'\'', wanted a setting' "$attest" stack asynct_3 --set way=v1
wants 2 '--set: found peri=v3, wanted peri=v2|v1|apart' "$attest" stack asynct_3 --set peri=v3
wants 2 'wanted a variant that takes it; the last of 4 says: factors are e4m3 or e5m2' "$attest" stack asynct_3 --sums f16
wants 2 "--use: found 'attention@3=*', wanted a step" "$attest" stack asynct_3 --use 'attention@3=*'
wants 3 'cannot' "$attest" stack asynct_3 --out /nowhere/at/all.h5
wants 2 'wanted a whole number from 1 on' "$attest" stack asynct_3 --layers 0 --steps
wants 2 'wanted at most 4096' "$attest" stack asynct_3 --layers 99999999 --steps
{ echo 'let a0 = 1'
  for i in {1..14}; do echo "let a$i = $(printf "a$((i - 1))+%.0s" {1..20})1"; done
  echo 'input x [a14] std=1'; echo 'layers 1'; echo end; } > "$scratch/deep.stack"
wants 2 'an expression that comes to fewer settings' timeout 20 "$attest" stack "$scratch/deep.stack" --steps
{ echo 'layers 1'; printf 'step norm n uclip_norm/*%5000s: x=x -> y=y\n' ''; echo end; } > "$scratch/long.stack"
wants 2 'a line of at most 4094 characters' "$attest" stack "$scratch/long.stack" --steps
exit 0
