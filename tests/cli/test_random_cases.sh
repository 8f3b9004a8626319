#!/bin/bash
# No right variant is accused: random cases over every family, sizes, layouts, formats and data; at full effort 10,000 for
# the C baselines and more than 300 for the CUDA variants.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"
cases=10000 cuda_cases=200
[[ "${AT_EFFORT:-full}" == fast ]] && cases=80 cuda_cases=6
RANDOM=20261120
pick() { local -n from=$1; echo "${from[RANDOM % ${#from[@]}]}"; }
# shellcheck disable=SC2034
heads=('h=1 hk=1' 'h=2 hk=1' 'h=4 hk=2' 'h=8 hk=1' 'h=3 hk=3' 'h=6 hk=2')
# shellcheck disable=SC2034
sizes=(8 16 32 40 64) formats=(f32 f16 bf16) layouts=('' page=1 page=4 page=16)
# shellcheck disable=SC2034
data=(normal same_sign uniform heavy_tail outlier_channel sink cancel ties subnormal sparse70 exact)
# shellcheck disable=SC2034
norm_data=(normal same_sign uniform heavy_tail outlier_channel ties subnormal)
# shellcheck disable=SC2034
gates=('' 'sigma=0' 'sigma=3' 'edge=shrink' 'gamma=0.5' 'clip=0.125:0.75' 'taps=0.5:-0.25:0.125' 'relu_pre=0')
# shellcheck disable=SC2034
cuda_sizes=(64 128) cuda_formats=(f16 bf16) cuda_layouts=('' page=16 page=16 page=8)
# shellcheck disable=SC2034
norms=(uclip_norm add_uclip_norm post_attn_pre_mlp_uclip rms_norm add_rms_norm)
cache_write() {
    echo "kv_write b=2 sq=$((RANDOM % 9 + 1))/$((RANDOM % 40)) prefix=$((RANDOM % 50)) hk=$((RANDOM % 4 + 1)) d=$(pick sizes) $(pick layouts) padding=$((RANDOM % 4)) dtype=$(pick formats) data=$(pick norm_data) seed=$RANDOM"
}
# shellcheck disable=SC2034
product_data=(normal same_sign uniform outlier_channel cancel ties subnormal exact) factors=(f32 f16 bf16 e4m3 e5m2)
product() {
    echo "gemm m=$((RANDOM % 70)) n=$((RANDOM % 70 + 1)) k=$((RANDOM % 150 + 1)) dtype=$(pick factors) out=$(pick formats) data=$(pick product_data) seed=$RANDOM"
}
# shellcheck disable=SC2034
exponents=(normal whole_range near_integer subnormal)
counted=(raw:p scaled:fir:p:out p:row_max:row_sum:entropy k:v:raw q:p:support:share0) attentions=('' '' attention=softmax)
count() {
    local what attention gate; what=$(pick counted) attention=$(pick attentions) gate=$(pick gates)
    [[ -n $attention ]] && what=${what/fir:/}
    echo "score_counts $(pick heads) sq=$((RANDOM % 140 + 1)) sk=$((RANDOM % 200 + 1)) behind=$((RANDOM % 2 * 9)) d=$(pick sizes) causal=$((RANDOM % 2)) dtype=$(pick formats) what=$what data=$(pick norm_data) seed=$RANDOM $gate $attention"
}
mkdir -p "$scratch/cases"
ln -s "$PWD/datasets/activations" "$scratch/activations"
{
    for ((made = 0; made < cases; made++)); do
        d=$(pick sizes) f=$(pick formats) x=$(pick data) seed=$RANDOM
        case $((RANDOM % 23)) in
            [0-7]) gate=$(pick gates); [[ $x == exact ]] && gate=
                   lengths=$((RANDOM % 70))/$((RANDOM % 300))/$((RANDOM % 20))
                   echo "asynct_decode b=$((RANDOM % 3 + 3)) $(pick heads) sk=$lengths d=$d $(pick layouts) dtype=$f data=$x seed=$seed $gate" ;;
            8 | 9 | 10 | 11) gate=$(pick gates); [[ $x == exact ]] && gate=
               echo "asynct_prefill b=2 $(pick heads) sq=$((RANDOM % 9 + 1))/$((RANDOM % 20 + 1)) prefix=$((RANDOM % 40)) d=$d causal=$((RANDOM % 2)) $(pick layouts) dtype=$f data=$x seed=$seed $gate" ;;
            12 | 13 | 14 | 15) family=$([[ $((RANDOM % 2)) == 0 ]] && echo "softmax_decode b=2 sk=$((RANDOM % 200 + 1))/$((RANDOM % 30))" ||
                   echo "softmax_prefill b=2 sq=$((RANDOM % 12 + 1)) prefix=$((RANDOM % 40)) causal=$((RANDOM % 2))")
               echo "$family $(pick heads) d=$d $(pick layouts) dtype=$f data=$x seed=$seed" ;;
            16 | 17 | 18 | 19) echo "$(pick norms) tokens=$((RANDOM % 5 + 1)) channels=$((RANDOM % 200 + 1)) dtype=$f data=$(pick norm_data) seed=$seed" ;;
            20) cache_write ;;
            21) product ;;
            22) echo "exp2 n=$((RANDOM % 600)) data=$(pick exponents) seed=$seed" ;;
        esac
    done
} > "$scratch/cases/random.cases"
# The CUDA variants, which run on the SIMT machine, take fewer shapes and more time.
{
    for ((made = 0; made < cuda_cases; made++)); do
        x=$(pick data) gate=$(pick gates); [[ $x == exact ]] && gate=
        echo "asynct_decode b=2 $(pick heads) sk=$((RANDOM % 300))/$((RANDOM % 40)) d=$(pick cuda_sizes) $(pick cuda_layouts) dtype=$(pick cuda_formats) data=$x seed=$RANDOM $gate"
        [[ $((made % 4)) == 0 ]] &&
            echo "$(pick norms) tokens=$((RANDOM % 5 + 1)) channels=$((RANDOM % 200 + 1)) dtype=$(pick formats) data=$(pick norm_data) seed=$RANDOM"
        [[ $((made % 8)) == 1 ]] && cache_write
        [[ $((made % 4)) == 3 ]] && product
        [[ $((made % 8)) == 5 ]] && count
        [[ $((made % 4)) == 2 ]] &&
            echo "softmax_decode b=2 $(pick heads) sk=$((RANDOM % 300))/$((RANDOM % 40)) d=$(pick cuda_sizes) $(pick cuda_layouts) dtype=$(pick cuda_formats) data=$x seed=$RANDOM"
    done
} > "$scratch/cases/cuda.cases"

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
judge random 3 '*/00_*'
judge cuda 5 '*/0[1-9]_*' '*/[12][0-9]_*'
