#!/bin/bash
# record: equal recordings are equal to the byte, on any number of threads, in shards, and after a kill; show prints the
# table again; what it refuses is refused in one line.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
few_heads
data=${AT_DATASETS:-$PWD/datasets}/activations/minilm.safetensors golden=$PWD/tests/golden
cd "$scratch" || exit 3
fast=''; [[ ${AT_EFFORT:-full} == fast ]] && fast=yes
# Two layers, and the quantities that cost least, where nothing else is asked for.
few=(minilm --layers '2..3' --params 'causal=1 sigma=0.5' --what 'raw,p,k,entropy')

# ---- all of a capture, in time; with the rest of its layers it is the example of verify/record/README.md, which test_examples.sh runs
layers=2 only=(--layers 0..1)
processor_seconds time "$attest" record minilm "${only[@]}" --out all.h5 > table 2> err || { cat err; fail "minilm was not recorded"; }
grep -q "$((7 * layers)) of $((7 * layers)) units" table || fail "not every unit was counted"
[[ -n "${AT_SLOW_BUILD:-}" ]] || under 60 time
[[ -e all.h5.jsonl && ! -e all.h5.parts ]] || fail "the journal or the parts of all.h5"
[[ $(tail -n +3 table | wc -l) == "$layers" ]] || fail "wanted a line for each of $layers layers"
wants 0 '"attention":"asynct"' "$attest" show all.h5
diff <(tail -n +2 out) table || fail "show prints another table"

# ---- equal bytes: again, on three threads, in five shards
wants 0 'asynct' "$attest" record "${few[@]}" --threads 1 --out 1.h5
wants 0 'asynct' "$attest" record "${few[@]}" --threads 3 --out 3.h5
same 1.h5 3.h5
shards=()
for i in 1 2 3 4 5; do
    wants 0 'units' "$attest" record "${few[@]}" --shard $i/5 --out "s$i.h5"
    shards+=("s$i.h5")
done
wants 0 '5 shards' "$attest" merge "${shards[@]}" --out merged.h5
same 1.h5 merged.h5
wants 0 '1 shards' "$attest" merge merged.h5 --out again.h5
same 1.h5 again.h5
wants 2 'is missing' "$attest" merge s1.h5 s2.h5 s3.h5 s5.h5 --out no.h5
wants 2 'is there twice' "$attest" merge "${shards[@]}" s3.h5 --out no.h5
wants 2 'is there twice' "$attest" merge 1.h5 s3.h5 --out no.h5
wants 0 'asynct' "$attest" record "${few[@]/sigma=0.5/sigma=0.25}" --shard 1/5 --out other.h5
wants 2 'params: ' "$attest" merge other.h5 "${shards[@]:1}" --out no.h5
wants 0 'softmax' "$attest" record minilm --layers 2..3 --what raw,p,k,entropy --attention softmax --shard 1/5 --out soft.h5
wants 2 'attention: ' "$attest" merge soft.h5 "${shards[@]:1}" --out no.h5
wants 2 'distributions' "$attest" merge "${shards[@]:0:4}" "$golden/run_v1.h5" --out no.h5
[[ ! -e no.h5 ]] || fail "a refused merge wrote a file"
cmp -s 1.h5 other.h5 && fail "other parameters, the same archive"

# ---- killed and gone on: the same bytes; a journal of something else is refused
slow=(minilm --layers 0..3 --params causal=1 --what 'raw,scaled,fir,p,out') enough=2 # lines before the kill
[[ -n $fast ]] && slow=(minilm --layers 0..3 --params causal=1 --what 'raw,fir,p')
AT_DATASETS='' wants 0 'units' "$attest" record "${slow[@]}" --out whole.h5
AT_DATASETS='' killed k.h5 "$enough" "$attest" record "${slow[@]}" --out k.h5
lines=$(wc -l < k.h5.jsonl)
echo -n '{"event":"units","units":[{"layer":' >> k.h5.jsonl # as if the last write was cut
AT_DATASETS='' wants 2 '--resume continues it' "$attest" record "${slow[@]}" --out k.h5
AT_DATASETS='' wants 2 'params: ' "$attest" record "${slow[@]/causal=1/causal=0}" --out k.h5 --resume
AT_DATASETS='' wants 2 'shard' "$attest" record "${slow[@]}" --shard 1/2 --out k.h5 --resume
rm k.h5.parts/layer_000000.h5 # a lost part is counted again
touch k.h5.parts/layer_000003.h5.123.tmp # as if the kill came while a part was written
AT_DATASETS='' wants 0 'units' "$attest" record "${slow[@]}" --out k.h5 --resume
same k.h5 whole.h5
[[ $(wc -l < k.h5.jsonl) -gt $lines ]] || fail "the journal did not grow"
[[ ! -e k.h5.parts ]] || fail "the parts of k.h5 are left"
AT_DATASETS='' wants 0 'units' "$attest" record "${slow[@]}" --out k.h5 --resume # of one that had ended
same k.h5 whole.h5

# ---- sources: a plain file, a case, a case of the same dataset; rounding to a dtype
cp "$data" mine.safetensors
wants 0 'mine.safetensors' "$attest" record mine.safetensors --attention asynct --layers '@(2|3)' --what q --out f.h5
wants 0 'asynct_prefill' "$attest" record 'asynct_prefill b=2 h=2 hk=1 sq=20/3 d=16 causal=1 dtype=bf16' --out c.h5
wants 0 'bins of bf16' "$attest" show c.h5
wants 0 'softmax_decode' "$attest" record 'softmax_decode b=2 h=2 hk=1 sk=20/3 d=16' --out c.h5
wants 0 'bins of bf16' "$attest" record minilm --layers 0 --what q --dtype bf16 --out b.h5
wants 0 'recording' "$attest" record --help
wants 0 'attest record minilm' "$attest" record --help

# ---- what counting costs; memory does not grow with the scores (a matrix of these would take 268 MB)
AT_THREADS=2 wants 0 'million scores a second with 2 threads' "$attest" bench record --rounds 1 --case 'asynct_prefill h=8 hk=2 sq=2048 d=32 dtype=f16'
if [[ -z "${AT_SLOW_BUILD:-}" ]]; then
    peak=$(sed -n 's/^peak memory \([0-9]*\) MiB$/\1/p' out)
    [[ -n "$peak" && $peak -lt 160 ]] || { cat out; fail "peak memory: '$peak' MiB, wanted less than 160"; }
fi
wants 1 'wanted 5000.0 %' "$attest" bench record --rounds 1 --case 'asynct_prefill h=1 hk=1 sq=64 d=32 dtype=f16' --min-share 50

# ---- what it refuses: one line, and nothing written
refused() { # CODE TEXT arguments...
    local code=$1 text=$2; shift 2
    wants "$code" "$text" "$attest" record "$@" --out no.h5
    [[ $(grep -c . out) == 1 ]] || { cat out; fail "wanted one line"; }
    [[ ! -e no.h5 && ! -e no.h5.jsonl && ! -e no.h5.parts ]] || fail "record $*: wrote something"
}
# a safetensors file: header, and so many bytes of zeros
capture() {
    local n=${#2} b
    { for b in 0 8 16 24 32 40 48 56; do printf "\\x$(printf %02x $((n >> b & 255)))"; done
      printf %s "$2"; head -c "$3" /dev/zero; } > "$1"
}
t() { printf '"%s":{"dtype":"%s","shape":[%s],"data_offsets":[%s]}' "$1" "$2" "$3" "$4"; }
q=$(t layers.0.q F16 2,2,4 0,32) k=$(t layers.0.k F16 2,1,4 32,48) v=$(t layers.0.v F16 2,1,4 48,64)
capture good.safetensors "{$q,$k,$v}" 64
wants 0 '1 of 1 units' "$attest" record good.safetensors --attention asynct --out g.h5
refused 2 'wanted --attention asynct or --attention softmax' good.safetensors # a capture does not say what its q and k are for
capture no_k.safetensors "{$q,$(t layers.0.v F16 2,1,4 32,48)}" 48
refused 2 'there is no tensor layers.0.k' no_k.safetensors
capture mixed.safetensors "{$q,$k,$(t layers.0.v F32 2,1,4 48,80)}" 80
refused 2 'layers.0.v has type F32' mixed.safetensors
capture shape.safetensors "{$q,$k,$(t layers.0.v F16 3,1,4 48,72)}" 72
refused 2 'layers.0.v is [3 1 4]' shape.safetensors
capture heads.safetensors "{$(t q F16 2,3,4 0,48),$(t k F16 2,2,4 48,80),$(t v F16 2,2,4 80,112)}" 112
refused 2 'of k a divisor' heads.safetensors
capture rank.safetensors "{$(t q F16 4,4 0,32),$k,$v}" 64
refused 2 'wanted one or the other' rank.safetensors
capture rank.safetensors "{$(t q F16 4,4 0,32),$(t k F16 2,1,4 32,48),$(t v F16 2,1,4 48,64)}" 64
refused 2 'rank 2' rank.safetensors
capture starts.safetensors "{$q,$k,$v,$(t query_start I32 3 64,76)}" 76
refused 2 'query_start[2] is 0' starts.safetensors
capture none.safetensors "{$(t x F16 4 0,8)}" 8
refused 2 'found 0 layers' none.safetensors
capture large.safetensors "{$(t q F16 1,1,128 0,256),$(t k F16 2200000,1,128 256,563200256),$(t v F16 2200000,1,128 563200256,1126400256)}" 0
truncate -s +1126400256 large.safetensors
refused 2 'wanted at most 16777216 and 1024 MiB' large.safetensors --attention asynct
head -c 100000 "$data" > cut.safetensors
refused 2 'cut.safetensors' cut.safetensors
refused 2 'nowhere.safetensors' nowhere.safetensors
refused 2 "did you mean 'scaled'" minilm --what scaledd
refused 2 'sigma' minilm --params sigma=nan
refused 2 'sigma' minilm --params sigma=0.1:0.2:0.3
refused 2 'wanted causal, scale' minilm --params dtype=f16
refused 2 'f8' minilm --bins f8
refused 2 "--attention 'linear'" minilm --attention linear
refused 2 'none of the 6 layers' minilm --layers 7..9
refused 2 'says its attention' 'asynct_prefill sq=4 d=16' --params causal=1
refused 2 '--shard' minilm --shard 3/2
mkdir folder.h5
wants 2 'folder.h5 is a folder' "$attest" record "${few[@]}" --out folder.h5
[[ $(grep -c . out) == 1 ]] || fail "a folder as --out: wanted one line"
wants 2 'wants --out' "$attest" record minilm

# ---- a full disk: one line, the parts that were finished stay, and resuming gives the same bytes
mkdir disk
cat > small.sh << 'SMALL'
mount -t tmpfs -o size=400k none disk || exit 99
"$@" --out disk/k.h5 > log 2>&1
code=$?
ls -R disk > left
cp -r disk kept
exit $code
SMALL
AT_DATASETS='' unshare --mount bash small.sh "$attest" record "${slow[@]}" 2> err
code=$?
if [[ ! -e left ]]; then # not root: a user namespace may do
    AT_DATASETS='' unshare --map-root-user --mount bash small.sh "$attest" record "${slow[@]}" 2>> err
    code=$?
fi
if [[ -e left ]]; then
    [[ $code == 3 ]] || { cat log; fail "exit $code on a full disk, wanted 3"; }
    [[ $(grep -c '^attest: ' log) == 1 ]] || { cat log; fail "wanted one clear line"; }
    grep -qE '\.h5\.[^/]*tmp|\.h5$' <(grep -v '^layer_' left) && { cat left; fail "something half-written was left"; }
    AT_DATASETS='' wants 0 'units' "$attest" record "${slow[@]}" --out kept/k.h5 --resume
    same kept/k.h5 whole.h5
else
    echo "no small file system can be mounted here: $(tail -n 1 err)"
fi
exit 0
