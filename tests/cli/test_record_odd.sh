#!/bin/bash
# record, show, drift, merge and export on odd sizes, odd values, odd names, and outputs that are inputs.
# SPDX-License-Identifier: Apache-2.0
# shellcheck source=tests/cli/lib.sh
source "$(dirname "$0")/lib.sh"
/usr/bin/python3 -c 'import numpy, h5py' 2> /dev/null || { echo "numpy or h5py is missing: python3-h5py brings them"; exit 77; }
# At fast effort: fewer quantities where none of them is looked at, softmax where it has no row to add up to 1.
wide=512 softmax='*' few=()
[[ ${AT_EFFORT:-full} == fast ]] && wide=320 softmax='@(no_keys|request_without_keys|nan|inf|half_nan)' few=(--what 'k,raw,scaled,p,out')
/usr/bin/python3 tests/python/odd_captures.py "$scratch" $wide || fail "no captures"
golden=$PWD/tests/golden
cd "$scratch" || exit 3
says() { grep -qE -- "$1" out || { cat out; fail "does not say '$1'"; }; }
one_line() { [[ $(grep -c . out) == 1 ]] || { cat out; fail "wanted one line"; }; }
lies() { [[ ! -e $1 ]] || fail "$1 was made"; }

# ---- odd sizes and values: recorded with either attention, shown, compared with themselves, merged, exported
for name in least no_keys no_queries nothing empty_requests request_without_keys more_queries nan inf zero huge last_layer half_nan; do
    for attention in asynct softmax; do
        # shellcheck disable=SC2053 # a pattern
        [[ $attention == asynct || $name == $softmax ]] || continue
        f=${name}_$attention.h5 what=("${few[@]}")
        [[ $name == least || $name == half_nan ]] && what=()
        wants 0 units "$attest" record $name.safetensors --attention $attention --params causal=1 "${what[@]}" --out "$f"
        mv out table
        wants 0 "$(tail -n 1 table)" "$attest" show "$f"
        code=0; [[ $name == nothing ]] && code=4 # nothing was judged
        wants $code ' 0 beyond their limits' "$attest" drift "$f" "$f"
        wants 0 '1 shards' "$attest" merge "$f" --out again.h5
        same "$f" again.h5
    done
    wants 0 html "$attest" export ${name}_asynct.h5 --to html --out x
done
row() { wants 0 units "$attest" show "$1"; grep -qE "$2" <(tail -n 1 out) || { cat out; fail "$1: wanted '$2'"; }; }
# headroom: none without a value, "nan" of NaNs alone, none left beside an infinity, all of it beside zeros
row nan_asynct.h5 '^ +0 +nan +- +nan +- '
for name in no_keys no_queries nothing; do row ${name}_asynct.h5 '^ +0 +- +- +- +- '; done
row inf_asynct.h5 '^ +0 +-inf +0 +-inf +inf '
row zero_asynct.h5 '^ +0 +inf +0 +inf +0\.000 +100\.0 '
row half_nan_asynct.h5 '^ +0 +1[0-9]\.[0-9] +1 '
row last_layer_asynct.h5 '^2147483647 '
# values against none, and values against NaNs: a drift, also where there are too few requests for a permutation test
wants 1 'beyond their limits' "$attest" drift zero_asynct.h5 nan_asynct.h5 --paired
wants 1 'beyond their limits' "$attest" drift zero_asynct.h5 nan_asynct.h5 --unpaired
grep -q 'nothing was judged' out && fail "rows failed, and nothing was judged"

# ---- layers that would be left out
for name in beyond padded; do
    wants 2 'wanted numbers from 0 to 2147483647 without a 0 before them' "$attest" record ${name}_layer.safetensors --out no.h5
    one_line
done
wants 0 '1 of 1 units' "$attest" record no_layer.safetensors --attention asynct --out some.h5

# ---- memory: heads that hold little take little (the counts of 512 heads would take 260 MB, of 320 162)
if [[ -z "${AT_SLOW_BUILD:-}" ]]; then
    peak=$(/usr/bin/python3 - "$attest" << 'END'
import resource, subprocess, sys
subprocess.run([sys.argv[1], "record", "wide.safetensors", "--attention", "asynct", "--what", "raw", "--out", "wide.h5"], check=True, stdout=subprocess.DEVNULL)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1024)
END
    ) || fail "$wide heads"
    [[ $peak -lt 120 ]] || fail "$wide heads took $peak MiB, wanted less than 120"
fi

# ---- an output that is an input
/usr/bin/python3 - << 'END' || exit 1
import h5py, numpy
with h5py.File("tensors.h5", "w") as f:
    for name in "qkv":
        f[name] = numpy.ones((8, 2, 4), numpy.float16)
END
cp tensors.h5 kept.h5; cp least_asynct.h5 a.h5; cp zero_asynct.h5 b.h5; cp b.h5 kept_b.h5; ln a.h5 link.h5; ln -s tensors.h5 soft.h5
for out in tensors.h5 ./tensors.h5 soft.h5; do
    wants 2 'are one file' "$attest" record tensors.h5 --attention asynct --out $out; one_line
done
lies tensors.h5.jsonl; lies soft.h5.parts
same tensors.h5 kept.h5
wants 2 'are one file' "$attest" merge b.h5 a.h5 --out link.h5; one_line
wants 2 'are one file' "$attest" merge "$golden/run_v1.h5" b.h5 --out b.h5; one_line
echo '{}' > limits.json
for option in --json --junit; do
    for file in b.h5 link.h5 limits.json; do
        wants 2 'are one file' "$attest" drift a.h5 b.h5 --limits limits.json $option $file; one_line
    done
    wants 3 'nowhere/x' "$attest" drift a.h5 a.h5 $option nowhere/x; one_line # said before the work
done
wants 2 'are one file' "$attest" drift a.h5 a.h5 --json both --junit both; one_line
lies both
same a.h5 least_asynct.h5; same b.h5 kept_b.h5; same kept.h5 tensors.h5

# ---- outputs that are no files
mkdir clean; cd clean || exit 3
wants 2 'found an empty name' "$attest" record ../least.safetensors --attention asynct --out ''
wants 2 'found an empty name' "$attest" merge ../a.h5 --out ''
wants 2 'found an empty name' "$attest" drift ../a.h5 ../a.h5 --json ''
[[ -z $(ls -A) ]] || { ls -A; fail "files of an empty name"; }
mkfifo pipe
for command in "record ../least.safetensors --attention asynct" "verify exp2/00* --case exp2~n=4"; do
    IFS=' ' read -ra words <<< "$command"
    wants 2 'is no regular file' timeout 30 "$attest" "${words[@]//\~/ }" --out pipe
done
[[ $(ls -A) == pipe ]] || { ls -A; fail "files beside a pipe"; }
cd .. || exit 3

# ---- odd names: what steers a terminal is not shown, what is no text is refused
cp least.safetensors $'esc\e[31m\nx.safetensors'
wants 0 'esc?[31m?x.safetensors: asynct' "$attest" record $'esc\e[31m\nx.safetensors' --attention asynct --out esc.h5
wants 0 'esc?[31m?x.safetensors: asynct' "$attest" show esc.h5
[[ $(wc -l < out) == 4 ]] || { cat -v out; fail "show: wanted 4 lines"; }
long=x$(printf 'é%.0s' {1..100}).safetensors # 80 bytes of it end within a letter
cp least.safetensors "$long"
wants 0 "x$(printf 'é%.0s' {1..39}): asynct" "$attest" record "$long" --attention asynct --out long.h5
cp least.safetensors $'bad\xff.safetensors'
wants 2 'no text in UTF-8' "$attest" record $'bad\xff.safetensors' --attention asynct --out no.h5
wants 3 'File name too long' "$attest" record least.safetensors --attention asynct --out "$(printf 'x%.0s' {1..253})"
lies no.h5; lies no.h5.jsonl

# ---- shards by themselves: empty ones are shown and exported, drift says what they are
for i in 1 2 3; do
    wants 0 units "$attest" record empty_requests.safetensors --attention asynct --shard $i/3 --out s$i.h5
    wants 0 csv "$attest" export s$i.h5 --to csv --out x
done
"$attest" drift s1.h5 s2.h5 > out 2>&1
says '^A is a shard: [0-4] of 5 units'; says '^B is a shard: [0-4] of 5 units'
"$attest" drift a.h5 a.h5 > out 2>&1
grep -q 'is a shard' out && fail "a whole recording is called a shard"
wants 0 '3 shards' "$attest" merge s1.h5 s2.h5 s3.h5 --out whole.h5
# a file of the same name and sizes that holds something else, or whose requests start elsewhere
for other in other starts; do
    mkdir $other; cp ${other}_requests.safetensors $other/empty_requests.safetensors
    wants 0 units "$attest" record $other/empty_requests.safetensors --attention asynct --shard 1/3 --out $other.h5
    wants 2 'are of different requests: fingerprint' "$attest" merge $other.h5 s2.h5 s3.h5 --out no.h5; one_line
done
lies no.h5
echo "ok: sizes, values, layers, memory, outputs, names, shards"
