#!/bin/bash
# No right variant is accused: random cases over every family, sizes, layouts, formats and data; at full effort 10,000 for
# the C baselines and more than 300 for the CUDA variants.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
cases=10000 cuda_cases=200
[[ "${AT_EFFORT:-full}" == fast ]] && cases=60 cuda_cases=6
mkdir -p "$scratch/cases"
ln -s "$PWD/datasets/activations" "$scratch/activations"
# The lines are the same in every run and by every awk: the numbers come from Park and Miller's generator.
awk -v cases=$cases -v cuda_cases=$cuda_cases -v folder="$scratch/cases" '
function below(n) { state = state * 16807 % 2147483647; return int(state / 2147483647 * n) }
function pick(list,   parts, n) { n = split(list, parts, ","); return parts[below(n) + 1] }
function seeded(words) { return words " seed=" below(32768) }
function gate(data) { return data == "exact" ? "" : " " pick(gates) }
function norm(  line) {
    line = pick(norms) " tokens=" below(5) + 1
    line = line " channels=" below(200) + 1
    line = line " dtype=" pick(formats)
    return seeded(line " data=" pick(norm_data))
}
function cache_write(  line) {
    line = "kv_write b=2 sq=" below(9) + 1
    line = line "/" below(40)
    line = line " prefix=" below(50)
    line = line " hk=" below(4) + 1
    line = line " d=" pick(sizes)
    line = line " " pick(layouts)
    line = line " padding=" below(4)
    line = line " dtype=" pick(formats)
    return seeded(line " data=" pick(norm_data))
}
function product(  line) {
    line = "gemm m=" below(70)
    line = line " n=" below(70) + 1
    line = line " k=" below(150) + 1
    line = line " dtype=" pick(factors)
    line = line " out=" pick(formats)
    return seeded(line " data=" pick(product_data))
}
function count(  line, what, attention) {
    what = pick(counted); attention = pick(attentions)
    if (attention != "") sub(/fir:/, "", what)
    line = "score_counts " pick(heads)
    line = line " sq=" below(140) + 1
    line = line " sk=" below(200) + 1
    line = line " behind=" 9 * below(2)
    line = line " d=" pick(sizes)
    line = line " causal=" below(2)
    line = line " dtype=" pick(formats)
    line = seeded(line " what=" what " data=" pick(norm_data))
    return line " " pick(gates) " " attention
}
function case_of_any(  line, kind, x) {
    x = pick(data); kind = below(23)
    if (kind < 8) {
        line = "asynct_decode b=" below(3) + 3
        line = line " " pick(heads)
        line = line " sk=" below(70)
        line = line "/" below(300)
        line = line "/" below(20)
    } else if (kind < 12) {
        line = "asynct_prefill b=2 " pick(heads)
        line = line " sq=" below(9) + 1
        line = line "/" below(20) + 1
        line = line " prefix=" below(40)
        line = line " causal=" below(2)
    } else if (kind < 16) {
        if (below(2) == 0) {
            line = "softmax_decode b=2 sk=" below(200) + 1
            line = line "/" below(30)
        } else {
            line = "softmax_prefill b=2 sq=" below(12) + 1
            line = line " prefix=" below(40)
            line = line " causal=" below(2)
        }
        line = line " " pick(heads)
    } else if (kind < 20)
        return norm()
    else if (kind == 20)
        return cache_write()
    else if (kind == 21)
        return product()
    else {
        line = "exp2 n=" below(600)
        return seeded(line " data=" pick(exponents))
    }
    line = line " d=" pick(sizes)
    line = line " " pick(layouts)
    line = line " dtype=" pick(formats)
    line = seeded(line " data=" x)
    return kind < 12 ? line gate(x) : line
}
function on_cuda(line, x) { # a decode for the CUDA variants
    line = line " b=2 " pick(heads)
    line = line " sk=" below(300)
    line = line "/" below(40)
    line = line " d=" pick(cuda_sizes)
    line = line " " pick(cuda_layouts)
    line = line " dtype=" pick(cuda_formats)
    return seeded(line " data=" x)
}
BEGIN {
    state = 20261121
    heads = "h=1 hk=1,h=2 hk=1,h=4 hk=2,h=8 hk=1,h=3 hk=3,h=6 hk=2"
    sizes = "8,16,32,40,64"; formats = "f32,f16,bf16"; layouts = ",page=1,page=4,page=16"
    data = "normal,same_sign,uniform,heavy_tail,outlier_channel,sink,cancel,ties,subnormal,sparse70,exact"
    norm_data = "normal,same_sign,uniform,heavy_tail,outlier_channel,ties,subnormal"
    gates = ",sigma=0,sigma=3,edge=shrink,gamma=0.5,clip=0.125:0.75,taps=0.5:-0.25:0.125,relu_pre=0"
    norms = "uclip_norm,add_uclip_norm,post_attn_pre_mlp_uclip,rms_norm,add_rms_norm"
    product_data = "normal,same_sign,uniform,outlier_channel,cancel,ties,subnormal,exact"
    factors = "f32,f16,bf16,e4m3,e5m2"; exponents = "normal,whole_range,near_integer,subnormal"
    counted = "raw:p,scaled:fir:p:out,p:row_max:row_sum:entropy,k:v:raw,q:p:support:share0"
    attentions = ",,attention=softmax"
    cuda_sizes = "64,128"; cuda_formats = "f16,bf16"; cuda_layouts = ",page=16,page=16,page=8"
    for (made = 0; made < cases; made++)
        print case_of_any() > (folder "/random.cases")
    # The CUDA variants, which run on the SIMT machine, take fewer shapes and more time.
    for (made = 0; made < cuda_cases; made++) {
        x = pick(data)
        line = on_cuda("asynct_decode", x)
        print line gate(x) > (folder "/cuda.cases")
        if (made % 4 == 0) print norm() > (folder "/cuda.cases")
        if (made % 8 == 1) print cache_write() > (folder "/cuda.cases")
        if (made % 4 == 3) print product() > (folder "/cuda.cases")
        if (made % 8 == 5) print count() > (folder "/cuda.cases")
        if (made % 4 == 2) print on_cuda("softmax_decode", x) > (folder "/cuda.cases")
    }
}' || fail "no cases"
cut -d' ' -f1 "$scratch"/cases/*.cases | sort | uniq -c > "$scratch/families"
cat "$scratch/families"
[[ $(wc -l < "$scratch/families") == 13 ]] || fail "not every family has a case"

judge() { # case file, least results a case, variants...
    local file=$1 least=$2 code judged n; shift 2
    AT_DATASETS=$scratch "$attest" verify "$@" --cases "$file:*" --quiet --json "$scratch/$file.jsonl" > "$scratch/out" 2> "$scratch/err"
    code=$?
    [[ $code == 0 ]] || { tail -n 40 "$scratch/out"; tail -n 3 "$scratch/err"; fail "exit $code: a right variant was accused, or a case refused"; }
    judged=$(grep -cE '"state":"(PASS|VACUOUS|OVERFLOWED|LAUNDERED)"' "$scratch/$file.jsonl")
    n=$(wc -l < "$scratch/cases/$file.cases")
    echo "$n random cases, $judged results judged, none accused"
    [[ $judged -ge $((n * least)) ]] || fail "only $judged results were judged"
}
# Sums over the errors of right variants stay within half of what they may be, or the bound's assumptions do not hold.
sums_in_bound() { # case file
    grep -oE '"aggregate_ratio":[0-9.e-]+' "$scratch/$1.jsonl" | cut -d: -f2 | sort -g > "$scratch/ratios"
    echo "$(wc -l < "$scratch/ratios") results with sums, the largest $(tail -n 1 "$scratch/ratios") of its bound"
    awk 'END { exit !(NR > 20 && $1 <= 0.5) }' "$scratch/ratios" || fail "a sum came too near its bound, or few were tested"
}
judge random 3 '*/00_*'
sums_in_bound random
judge cuda 5 '*/0[1-9]_*' '*/[12][0-9]_*'
