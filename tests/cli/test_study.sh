#!/bin/bash
# study: the demonstrations say what theory and hardware logs say; equal runs give equal bytes on any number of threads;
# the archive and the plots that are exported from it hold together; what it refuses.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"

# ---- demonstrations
wants 0 demonstrations "$attest" study accumulate --demos
cp "$scratch/out" "$scratch/demos"
says() { grep -qF -- "$1" "$scratch/demos" || { cat "$scratch/demos"; fail "the demonstrations do not say '$1'"; }; }
says 'e8m13_k32 a = b = 1/16, 32 products a step: 62 after 496 steps, 64 after 512, still 64 after 4096; right: 512'
says 'f16_k16   a = b = 1/16, 16 products a step: 124 after 1984 steps, 128 after 2048, still 128 after 4096; right: 256'
says 'f16_k8    a = b = 1/16, 8 products a step: 62 after 1984 steps, 64 after 2048, still 64 after 4096; right: 128'
says 'f16_fma   a = b = 1/16, 1 product a step: 7.75 after 1984 steps, 8 after 2048, still 8 after 4096; right: 16'
says 'e8m13_k32_every128, a = b = 1/16: 512 after 4096 steps; right: 512'
says 'f16_k16: 65504 + 15 over 1 step: 65504; sum 65504; right: 65519'
says 'f16_k16: 65504 + 16 over 1 step: inf; sum inf; right: 65520'
says 'f16_k16: 60000 + 60000 - 60000 over 1 step: 60000; sum 60000; right: 60000'
says 'f16_k16: 60000 + 60000 - 60000 over 2 steps: inf, inf; sum inf; right: 60000'
says 'f16_k16_isinf: 60000 + 60000 - 60000 over 2 steps: inf, inf; guarded 65504; right: 60000'
says 'f16_k16_saturate: 60000 + 60000 - 60000 over 2 steps: inf, 5504; guarded 5504; right: 60000'
says 'f16_k16_block32: 60000 + 60000 - 60000 - 60000 over 4 steps: inf, inf, -inf, -inf; sum nan; right: 0'
# Attention: what is printed is counted, so look at relations: a share of the scores overflows, Inf in V spoils
# everything unless rows of p = 0 are skipped, the clamp leaves finite outputs of infinite scores, guards repair most.
number() { sed -n "s/.*$1.*/\\1/p" "$scratch/demos" | head -n 1; }
[[ $(number 'scores .*: largest |S| [0-9.]*, \([0-9]*\) of 1024 beyond 65504; with') == 0 ]] || fail "outlier_channel itself overflows"
[[ $(number 'scores .*largest [0-9]*, \([0-9]*\) of 1024 beyond') -gt 0 ]] || fail "no score beyond 65504"
[[ $(number 'scores .*beyond, \([0-9]*\) not finite') -gt 0 ]] || fail "no score overflows"
[[ $(number 'asynct, sparse70: V row 17 of 64 holds inf, rows of p = 0 multiplied: \([0-9]*\) of') == 2048 ]] || fail "Inf in V"
skipped=$(number 'asynct, sparse70: V row 17 of 64 holds inf, rows of p = 0 skipped: \([0-9]*\) of')
[[ $skipped -gt 0 && $skipped -lt 1024 ]] || fail "rows of p = 0 skipped: $skipped"
[[ $(number 'f16, no guard: \([0-9]*\) of 2048 scores') == 512 ]] || fail "every fourth score of overflow"
[[ $(number 'f16, no guard: .*: \([0-9]*\) of 512 outputs') == 0 ]] || fail "the clamp hides nothing"
[[ $(number 'f16, no guard: .* not finite, \([0-9]*\) wrong') -gt 400 ]] || fail "hidden outputs are right"
[[ $(number 'clamp keeps NaN: .*: \([0-9]*\) of 512 outputs') == 512 ]] || fail "NaN does not show"
[[ $(number 'isinf each step: .* not finite, \([0-9]*\) wrong') -lt 50 ]] || fail "the guard does not help"

# ---- a run: equal bytes on one and on three threads, table, progress on stderr alone
options=(--quick --sums 8 --modes '@(f16_k16|f16_k16_isinf|f32_k16|e8m13*)' --data '@(normal|same_sign|overflow|minilm/[01])'
    --lengths '0,1,33,200,256' --d '32,64')
rows=$((3 * 5 * 2 + 2)) # families x lengths x d, and layers
if [[ ${AT_EFFORT:-full} == fast ]]; then
    options=(--quick --sums 8 --modes '@(f16_k16|f16_k16_isinf|f32_k16|e8m13*)' --data '@(normal|same_sign|overflow|minilm/0)'
        --lengths '0,33,256' --d 64)
    rows=$((3 * 3 + 1))
fi
AT_THREADS=1 wants 0 'asynct pv; normal: 256 products, d 64' "$attest" study accumulate "${options[@]}" --out "$scratch/1.h5"
cp "$scratch/out" "$scratch/table"
AT_THREADS=3 wants 0 'softmax pv_unit; normal' "$attest" study accumulate "${options[@]}" --out "$scratch/3.h5"
same "$scratch/1.h5" "$scratch/3.h5"
diff "$scratch/table" "$scratch/out" || fail "tables differ"
wants 0 '' "$attest" study accumulate "${options[@]}" --seed 2 --out "$scratch/2.h5"
cmp -s "$scratch/table" "$scratch/out" && fail "another seed, the same table"
cmp -s "$scratch/1.h5" "$scratch/2.h5" && fail "another seed, the same archive"
wants 0 f16_k16_saturate "$attest" study modes

# ---- killed and gone on: the same bytes; another study's journal, and --resume without one, are refused
killed "$scratch/k.h5" 5 "$attest" study accumulate "${options[@]}" --out "$scratch/k.h5"
lines=$(wc -l < "$scratch/k.h5.jsonl")
echo -n '{"event":"rows","rows":[{"mode":"f16' >> "$scratch/k.h5.jsonl" # as if the last write was cut
wants 2 '--resume continues it' "$attest" study accumulate "${options[@]}" --out "$scratch/k.h5"
wants 2 'of another request: seed: 2 here, 1 there' "$attest" study accumulate "${options[@]}" --seed 2 --out "$scratch/k.h5" --resume
[[ $(grep -c . "$scratch/k.h5.jsonl") == $((lines + 1)) ]] || fail "a refused study changed the journal"
head -n "$lines" "$scratch/k.h5.jsonl" > "$scratch/before"
AT_THREADS=1 wants 0 'asynct pv; normal' "$attest" study accumulate "${options[@]}" --out "$scratch/k.h5" --resume
cmp "$scratch/before" <(head -n "$lines" "$scratch/k.h5.jsonl") || fail "what was done was done again"
same "$scratch/1.h5" "$scratch/k.h5"
wants 2 '--resume wants --out' "$attest" study accumulate --quick --resume
cp "$scratch/1.h5.jsonl" "$scratch/d.h5.jsonl"
sed -i '3s/"err_max":[^,]*/"err_max":"much"/' "$scratch/d.h5.jsonl"
wants 2 'key "err_max" is "much", wanted a number' "$attest" study accumulate "${options[@]}" --out "$scratch/d.h5" --resume

# ---- shown again from the archive: the table that was printed
wants 0 'asynct pv; normal: 256 products, d 64' "$attest" show "$scratch/1.h5"
diff <(sed -n '/^mean and bias/,$p' "$scratch/out") <(sed -n '/^mean and bias/,$p' "$scratch/table") || fail "show prints another table"

# ---- what it refuses
bad() { local says=$1; shift; wants 2 "$says" "$attest" study "$@"; grep -q '^attest: ' "$scratch/out" || fail "$*: no message"; }
bad "wanted one of accumulate, modes, tensor-core, special, zeros, ways, exp2" nonsense
bad "matches no mode; did you mean 'f16_k16'?" accumulate --modes f16k16
bad "did you mean 'same_sign'?" accumulate --data samesign
bad '--lengths: found "1,x", wanted whole numbers' accumulate --lengths 1,x
bad '--d: found "0"' accumulate --d 0
bad "--attention 'both of them', wanted" accumulate --attention 'both of them'
bad 'AT_MEMORY_LIMIT' accumulate --data normal --lengths 64,4194304 --d 64,4096
grep -qF 'demonstrations' "$scratch/out" && fail "work was done before a case was refused"
wants 3 'No such file' "$attest" study accumulate --quick --out "$scratch/none/s.h5"

# ---- captures of one's own, in a folder that AT_DATASETS names: a NaN is counted, a torn file is refused before any work
capture() { # file, value of one element of q
    python3 - "$1" "$2" <<'P'
import json, struct, sys
tokens, h, hk, d = 6, 2, 1, 8
head, body = {}, b""
def add(name, kind, shape, values, letter):
    global body
    start = len(body)
    body += struct.pack("<%d%s" % (len(values), letter), *values)
    head[name] = {"dtype": kind, "shape": shape, "data_offsets": [start, len(body)]}
for name, heads in (("q", h), ("k", hk), ("v", hk)):
    values = [((7 * i) % 13 - 6) / 8 for i in range(tokens * heads * d)]
    if name == "q":
        values[2 * h * d + 3] = float(sys.argv[2])
    add("layers.0." + name, "F32", [tokens, heads, d], values, "f")
add("query_start", "I32", [2], [0, tokens], "i")
text = json.dumps(head).encode()
open(sys.argv[1], "wb").write(struct.pack("<Q", len(text)) + text + body)
P
}
if command -v python3 > /dev/null; then
    mkdir -p "$scratch/data/activations"
    own=(study accumulate --data 'mine/*' --modes 'f16_k16' --attention asynct --sums 100000)
    lost() { sed -n 's/.*"product":"qk".*/&/p' "$1" | grep -o '"inputs_nonfinite":[0-9]*' | head -n 1; }
    capture "$scratch/data/activations/mine.safetensors" 0.5
    AT_DATASETS=$scratch/data wants 0 'mine/0' "$attest" "${own[@]}" --out "$scratch/whole.h5"
    grep -q '"inputs_nonfinite":[1-9]' "$scratch/whole.h5.jsonl" && fail "a NaN was counted where there is none"
    capture "$scratch/data/activations/mine.safetensors" nan
    AT_DATASETS=$scratch/data wants 0 'mine/0' "$attest" "${own[@]}" --out "$scratch/nan.h5"
    grep -q '"inputs_nonfinite":[1-9]' "$scratch/nan.h5.jsonl" || fail "a NaN in a capture was not counted"
    grep -q '"compared":[1-9]' "$scratch/nan.h5.jsonl" || fail "a NaN in one token spoilt all sums"
    head -c -9 "$scratch/data/activations/mine.safetensors" > "$scratch/data/activations/torn.safetensors"
    rm "$scratch/data/activations/mine.safetensors"
    AT_DATASETS=$scratch/data wants 2 'torn.safetensors' "$attest" "${own[@]/mine/torn}" --out "$scratch/torn.h5"
    [[ $(wc -l < "$scratch/out") == 1 && $(head -c 8 "$scratch/out") == 'attest: ' ]] || { cat "$scratch/out"; fail "more than one line"; }
    [[ ! -e "$scratch/torn.h5" && ! -e "$scratch/torn.h5.jsonl" ]] || fail "a torn capture left something"
else
    echo "no python3: captures were not tried"
fi
AT_DATASETS=$scratch wants 0 'going on without recorded activations' "$attest" study accumulate --quick --data normal --modes f32_fma

/usr/bin/python3 -c 'import h5py' 2> /dev/null || { echo "no h5py: the archive was written but not opened"; exit 77; }
wants 0 '1_accumulate_' "$attest" export "$scratch/1.h5" --to svg --out "$scratch/plots"
/usr/bin/python3 - "$scratch/1.h5" "$scratch/plots" $rows <<'P' || fail "archive or plots do not hold together"
import sys, glob, h5py, math, xml.dom.minidom
f = h5py.File(sys.argv[1])
s = f["studies/accumulate"]
assert s.attrs["encoding-type"] == "attest.study" and f["provenance"].attrs["tool"].startswith("attest")
text = {k: list(s[k].asstr()) for k in ("attention", "product", "mode", "data")}
col = {k: list(s[k][()]) for k in s if k not in text and k != "case_id"}
rows = range(len(text["mode"]))
pick = lambda **w: [i for i in rows if all((text[k][i] if k in text else col[k][i]) == v for k, v in w.items())]
assert len(pick(mode="f16_k16", product="pv", attention="asynct")) == int(sys.argv[3])
assert all(col["compared"][i] + col["result_inf"][i] + col["result_nan"][i] + col["inputs_nonfinite"][i] == col["sums"][i] for i in rows)
assert all(col["beyond_bound"][i] == 0 for i in rows)
assert all(not col["err_max"][i] > col["bound"][i] * 1.001 for i in rows if col["overflowed"][i] == 0 and col["length"][i])
for i in pick(length=0):
    assert col["err_max"][i] == 0 and col["additions"][i] == 0 and math.isnan(col["swamped_share"][i])
for i in pick(data="overflow", product="qk", mode="f16_k16"):
    assert col["result_inf"][i] > 0 and col["laundered"][i] == 0 and col["first_step"][i] >= 0 and col["first_k"][i] % 4 == 1
for i in pick(data="overflow", product="qk", mode="f16_k16_isinf"):
    assert col["result_inf"][i] == 0 and col["laundered"][i] == col["guarded"][i] == col["overflowed"][i] > 0
for i in pick(data="overflow", product="qk", mode="f32_k16"):
    assert col["overflowed"][i] > 0 and col["laundered"][i] == 0 and col["compared"][i] == col["sums"][i]
# sums that only grow: truncation loses in one direction, its error grows like n; promotion stops that
for i in pick(data="same_sign", product="pv", mode="e8m13_k32", attention="asynct"):
    if col["length"][i] > 1:
        assert math.isclose(col["bias"][i], -col["err_mean"][i], rel_tol=1e-9) and col["slope"][i] > 0.8
i, j = (pick(data="same_sign", product="pv", mode=m, attention="softmax", length=256, d=64)[0] for m in ("e8m13_k32", "e8m13_k32_every128"))
assert col["err_mean"][j] < 0.6 * col["err_mean"][i]
# plots: a share of the map is that of the rows, each row of a curve has its point; well-formed, no text on another, grey alone
plots = {p.rsplit("/1_accumulate_")[1]: p for p in glob.glob(sys.argv[2] + "/*.svg")}
wanted = {f"{what}asynct_{product}.svg" for what in ("", "swamped_", "worst_", "overflow_") for product in ("qk", "pv")}
wanted -= {"asynct_qk.svg", "swamped_asynct_qk.svg"} if len({col["d"][i] for i in pick(data="normal")}) == 1 else set()  # one length is no curve
assert wanted | {"swamped_softmax_pv_unit.svg"} <= set(plots), set(plots)
shapes = lambda name, tag: xml.dom.minidom.parse(plots[name]).getElementsByTagName(tag)
of = [pick(product="qk", attention="asynct", mode=m, data=d) for m in set(text["mode"]) for d in set(text["data"])]
shares = [100 * sum(col["overflowed"][i] for i in some) / sum(col["sums"][i] for i in some) for some in of if some]
cells = [t.firstChild.data for t in shapes("overflow_asynct_qk.svg", "text") if t.getAttribute("font-size") == "10"]
assert sorted(float(c) for c in cells if c != "-") == sorted(float("%.0f" % share) for share in shares) and max(shares) > 0
some = [i for i in pick(product="pv", attention="asynct", data="normal", d=64) if col["swamped_share"][i] >= 0 and col["length"][i]]
assert len(shapes("swamped_asynct_pv.svg", "circle")) == len(some) + 1 and len(some) > 4  # and that of the legend
sys.path.insert(0, "tests/python")
import svg_layout
for p in plots.values():
    svg_layout.check(p)
P

patterns=2010; [[ ${AT_EFFORT:-full} == fast ]] && patterns=510 # as many of each of 15 strata
# Tensor cores: the SIMT machine's instructions against the model, and the device's golden vectors, one of them altered.
wants 0 '64 probes, 0 not as predicted' "$attest" study tensor-core --runner cpu --patterns $patterns --out "$scratch/tc.h5"
cp "$scratch/out" "$scratch/printed"
wants 0 '64 probes, 0 not as predicted' "$attest" show "$scratch/tc.h5"
diff <(grep '^hopper' "$scratch/out") <(grep '^hopper' "$scratch/printed") || fail "show prints another table of instructions"
# An archive of before the column `c leads`: it says nothing there, and nothing else changes.
/usr/bin/python3 - "$scratch/tc.h5" "$scratch/older.h5" <<'P' || fail "the column cannot be taken away"
import sys, shutil, h5py
shutil.copy(sys.argv[1], sys.argv[2])
del h5py.File(sys.argv[2], "a")["studies/tensor_core/addend_leading"]
P
grep '^hopper' "$scratch/out" | awk '{ $11 = "-" } 1' > "$scratch/wanted"
wants 0 '64 probes, 0 not as predicted' "$attest" show "$scratch/older.h5"
diff <(grep '^hopper' "$scratch/out" | awk '{ $1 = $1 } 1') "$scratch/wanted" || fail "an older archive shows another table"
wants 3 'No such file' "$attest" study tensor-core --runner cpu --patterns $patterns --out "$scratch/none/tc.h5"
grep -q '^hopper' "$scratch/out" && fail "work was done before the place of the archive was refused"
mkdir -p "$scratch/folder"
wants 2 'is a folder, wanted the name of a file' "$attest" study tensor-core --runner cpu --patterns $patterns --out "$scratch/folder"
grep -q '^hopper' "$scratch/out" && fail "work was done before the place of the archive was refused"
wants 2 '--out wants --runner' "$attest" study tensor-core --golden datasets/measurements/h200_tensor_core.txt --out "$scratch/x.h5"
cp "$scratch/printed" "$scratch/out"
[[ $(grep -c "^hopper_.*mma_k.* $patterns *0 " "$scratch/out") == 23 ]] || fail "not 23 instructions without a mismatch"
head -n 6 datasets/measurements/h200_tensor_core.txt > "$scratch/golden"
wants 0 ', 0 differ' "$attest" study tensor-core --golden "$scratch/golden"
sed '5s/ \(.\)\(.......\)$/ \2\1/' "$scratch/golden" > "$scratch/altered"
wants 1 'DIFFERENT from the device' "$attest" study tensor-core --golden "$scratch/altered"
wants 2 'wants --runner R, or --golden FILE' "$attest" study tensor-core
wants 2 'no variant for an instruction' "$attest" study tensor-core --runner cpu --instructions 'volta_*'
wants 2 'no variant for an instruction' "$attest" study tensor-core --runner cpu --instructions 'cdna3_*'

# special: the C library's 2^x and the unit's over each 65,539th f32; the same on any number of threads; a kernel that is off is told.
sweep=("$attest" study special --step 65539)
AT_THREADS=1 wants 0 'exp2/00_libm: 65534 inputs, every 65539th code of f32' "${sweep[@]}" --out "$scratch/e1.h5"
cp "$scratch/out" "$scratch/printed"
AT_THREADS=3 wants 0 'exp2/02_ex2_approx_ftz: 65534 inputs' "${sweep[@]}" --runner cpu --out "$scratch/e3.h5"
diff "$scratch/printed" "$scratch/out" || fail "threads change what the study of exp2 says"
same "$scratch/e1.h5" "$scratch/e3.h5"
wants 0 "65534 inputs" "$attest" show "$scratch/e1.h5"
diff <(grep '^ ' "$scratch/out") <(grep '^ ' "$scratch/printed") || fail "show prints another table of exp2"
[[ $(awk '$1 ~ /^(normal|subnormal|underflow|overflow|zero|tiny|infinite|nan)$/ { n += $2; bad += $8 + $9 } END { print n, bad + 0 }' "$scratch/printed") == "196602 0" ]] ||
    { cat "$scratch/printed"; fail "classes do not add up"; }
wants 1 'beyond limit' "${sweep[@]}" --runner mutants
grep -q '^exp2/13_one_element_more: broke: ' "$scratch/out" || { cat "$scratch/out"; fail "a kernel that reads beyond its tensors ends the study, or passes"; }
[[ $(grep -c 'first at x' "$scratch/out") -ge 5 ]] || { cat "$scratch/out"; fail "wrong exponentials pass"; }
bad '--step' special --step 0
bad '--step' special --step 4294967296
wants 3 'No such file' "${sweep[@]}" --out "$scratch/none/e.h5"
wants 2 'is a folder' "${sweep[@]}" --out "$scratch/folder"
grep -q 'inputs' "$scratch/out" && fail "work was done before the place of the archive was refused"
wants 3 'runner nonsense' "${sweep[@]}" --runner nonsense

# The unit's model against hashes of a device, and what tells it from its neighbours.
[[ $("$attest" study exp2 --step 2000003 2>&1 > "$scratch/out") == *'is now `attest study special`'* ]] || fail "the old name says nothing"
golden=datasets/measurements/h200_special.txt
# The unit's instructions of a runner beside the model: plumbing alone on the SIMT machine, which has the model's bits; the same on any
# number of threads; a unit that is nearly it, results in each other's place and some that are not written are told.
measured=("$attest" study special --golden --step 65539)
AT_THREADS=1 wants 0 '23 instructions on some of their arguments, 0 differ' "${measured[@]}" --runner cpu
cp "$scratch/out" "$scratch/printed"
AT_THREADS=3 wants 0 '23 instructions on some of their arguments, 0 differ' "${measured[@]}" --runner cpu
diff "$scratch/printed" "$scratch/out" || fail "threads change what is measured"
[[ $(awk '$1 ~ /x2$/ { sub("x2$", "", $1); pair[$1] = $2 } $1 ~ /16$/ { one[$1] = $2 } END { for (i in one) same += one[i] == pair[i]; print same }' "$scratch/out") == 4 ]] ||
    { cat "$scratch/out"; fail "pairs have other results"; }
wants 1 'DIFFERENT from the model' "${measured[@]}" --runner mutants
for line in 'rcp.approx.f32 .*DIFFERENT from the model in 704 of 65534 results, first of 00200060: 7f800000, model 7f7ffd00' \
            'ex2.approx.f16 .*DIFFERENT from the model in 19415 of 65536 results, first of 11c5: 3c01, model 3c00' \
            'rsqrt.approx.f32 .*first of ff02fd00: ffffffff, model 7fffffff; 254 NaNs are not 7fffffff' 'tanh.approx.bf16x2 .*DIFFERENT' '21 differ$'; do
    grep -q "$line" "$scratch/out" || { cat "$scratch/out"; fail "not said: $line"; }
done
narrow=("$attest" study special --instructions '*16*' --golden)
wants 0 '8 instructions on all their arguments, 0 differ' "${narrow[@]}" "$scratch/narrow" --runner cpu
grep -q "unit of .*, 20[0-9-]*: the hash" "$scratch/narrow" || fail "the file does not say what it was measured on, and when"
wants 0 '8 instructions on all their arguments, 0 differ' "$attest" study special --golden "$scratch/narrow"
[[ $(grep -v '^#' "$scratch/narrow" | grep -cFf <(grep 16 "$golden")) == 5 ]] || fail "other hashes than those of an H200"
cp "$scratch/narrow" "$scratch/before"
wants 1 'differ' "${narrow[@]}" "$scratch/other" --runner mutants
wants 1 'DIFFERENT from the device' "$attest" study special --golden "$scratch/other"
wants 3 'No such file' "${narrow[@]}" "$scratch/none/golden" --runner cpu
grep -q 'approx' "$scratch/out" && fail "work was done before the place of the file was refused"
wants 3 'runner nonsense' "${narrow[@]}" "$scratch/narrow" --runner nonsense
bad 'no variant for an instruction' special --golden "$scratch/narrow" --runner cpu --instructions 'volta*'
same "$scratch/before" "$scratch/narrow"
bad 'a file of hashes is of all arguments' special --golden "$scratch/narrow" --runner cpu --step 3
bad 'no --out' special --golden --runner cpu --out "$scratch/x.h5"
bad '--step' special --golden --runner cpu --step 0
bad 'no --runner' special --neighbours --runner cpu
bad 'no --runner, --out, --step' special --golden --step 3
bad "matches 'volta*'" special --golden --instructions 'volta*'
bad "matches 'volta*'" special --neighbours --instructions 'volta*'
echo 'rcp.approx.f32 12 34' > "$scratch/odd"
bad 'odd:1: wanted an instruction and its hash' special --golden "$scratch/odd"
wants 3 'No such file' "$attest" study special --golden "$scratch/none"
wants 2 'wants the FILE to write' "$attest" study tensor-core --runner cpu --golden
wants 0 '5 instructions on all their arguments, 0 differ' "$attest" study special --golden --instructions '*16*'
# All f32 arguments of one instruction are in the example of verify/study/README.md, which test_examples.sh runs.
hash=$(awk '$1 == "tanh.approx.bf16" { print $2 }' "$golden")
printf '# a digit off\ntanh.approx.bf16 %s\nexp.approx.f32 0\n' "0${hash:1:14}f" > "$scratch/altered"
wants 1 "tanh.approx.bf16       $hash  DIFFERENT from the device" "$attest" study special --golden "$scratch/altered"
grep -q '^exp.approx.f32 .* no model$' "$scratch/out" || fail "what the model does not have is not named"
# --neighbours is one as well, with each neighbour that its arguments tell.

# ---- zeros
wants 0 'y: 49.99 % of 1572864 elements are 0' "$attest" study zeros --case 'reglu tokens=512 channels=3072 halves=together dtype=bf16'
grep -q 'of 98304 blocks of 1 x 16 0.00203 %; independent zeros: 0.00152 %' "$scratch/out" || { cat "$scratch/out"; fail "other blocks of 1 x 16"; }
grep -q 'of 6144 blocks of 16 x 16 0 %' "$scratch/out" || { cat "$scratch/out"; fail "other blocks of 16 x 16"; }
AT_THREADS=1 "$attest" study zeros --case 'reglu tokens=512 channels=3072 halves=together dtype=bf16' | cmp - "$scratch/out" || fail "zeros depend on the number of threads"
wants 0 'y: 100.00 % of 1400 elements are 0' "$attest" study zeros --case 'silu_mul tokens=40 channels=35 dtype=f16 data=subnormal'
bad 'wanted --case LINE' zeros
bad 'operator exp2, wanted one over rows' zeros --case 'exp2 n=4'
bad 'did you mean' zeros --case 'regul tokens=3'

# ---- ways: tokens by the kernel that a dispatcher takes, of the lengths in the scenarios' table, b x length: 32 x 64, 128 x 48,
# 32 x 256, 16 x 1024, 4 x 2048, and 6656 ragged ones
prefill='asynct_prefill h=8 hk=4 d=128 page=16 causal=1 dtype=bf16'
scenarios='scenario=decode_heavy_b32,large_batch_short_b128,balanced_b32,prefill_heavy_b16,long_prefill_b4,mixed_prefill_b32'
wants 0 'asynct_prefill/19_dispatch: 47616 tokens, 0 cases declined' "$attest" study ways --variants "*_prefill/19_dispatch" --case "$prefill $scenarios"
says_way() { grep -qE "^  $1 +$2 cases +$3 requests +$4 tokens +$5 %$" "$scratch/out" || { cat "$scratch/out"; fail "other tokens by $1"; }; }
says_way wgmma 5 116 41472 87.10
says_way mma.sync 1 128 6144 12.90
wants 0 '1 cases declined' "$attest" study ways --variants '*/19_dispatch' --case 'asynct_prefill b=1 sq=9 d=128 dtype=bf16,f16'
# What it says is what it launches: the accesses of the dispatcher's launch are those of the kernel that it names, and not the other's.
for sq_way in '64 wgmma 15_wgmma_gate_constants 04_mma' '63 mma.sync 04_mma 15_wgmma_gate_constants'; do
    read -r sq way same other <<< "$sq_way"
    wants 0 "/19_dispatch: $sq tokens" "$attest" study ways --variants "*_prefill/19_dispatch" --case "$prefill b=1 sq=$sq"
    says_way "$way" 1 1 "$sq" 100.00
    "$attest" verify "asynct_prefill/@(19_dispatch|$same|$other)" --case "$prefill b=1 sq=$sq" --counters --quiet --json "$scratch/counted" > /dev/null
    counts() { grep "\"variant\":\"$1\"" "$scratch/counted" | grep -oE '"counter_[a-z_]*":[0-9]+'; }
    [[ $(counts 19_dispatch | wc -l) == 9 ]] || fail "no counts of the dispatcher"
    cmp <(counts 19_dispatch) <(counts "$same") || fail "sq=$sq: says $way and launches something else than $same"
    cmp -s <(counts 19_dispatch) <(counts "$other") && fail "sq=$sq: $same and $other count alike, so nothing is told"
done
wants 0 'asynct_decode/19_dispatch: 4 tokens' "$attest" study ways --variants '*/19_dispatch' --case 'asynct_decode b=4 sk=4096 d=128 page=16 dtype=bf16'
says_way ranges,8-threads 1 4 4 100.00
wants 0 'asynct_decode/19_dispatch: 64 tokens' "$attest" study ways --variants '*/19_dispatch' --case 'asynct_decode b=64 sk=40 d=128 page=16 dtype=bf16'
says_way one-block,16-threads 1 64 64 100.00
wants 2 'that took a case of' "$attest" study ways --variants '*/04_mma' --case "$prefill b=1 sq=9"
bad 'exclude each other' ways --variants '*' --case 'asynct_prefill b=1 sq=9' --cases 'smoke:*'
bad 'wanted --variants' ways --cases 'smoke:*'
