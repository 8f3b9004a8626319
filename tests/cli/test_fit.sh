#!/bin/bash
# attest fit: finds the declarations of kernels without reading them, draws the order of their sums, and names the field of a
# declaration that is not true.
# SPDX-License-Identifier: Apache-2.0
source "$(dirname "$0")/lib.sh"

says() { grep -qF -- "$1" "$scratch/out" || { cat "$scratch/out"; fail "does not say '$1'"; }; }

# Found from outputs alone: the greeting says nothing of arithmetic.
mute="$BUILD/attest-cpu | sed -u 's/ numerics=[^ ]*/ numerics=free_order%3D1/'"
wants 0 '3 fit, 0 that no declaration fits, 1 without an order' "$attest" fit gemm/07_mma_skinny_f32_sum gemv/05_cluster_ring \
    gemv/03_split_atomic asynct_prefill/04_mma_f16_sum --runner "$mute" --quiet
says 'numerics="qk_unit=tc_f32 split=256"'
says 'order of the sum, 64 terms: {0..63 by 16}  signature '
says 'numerics="qk_lanes=64 qk_run=8 qk_tree=butterfly"'
says 'not told apart, q.k: qk_unit=f32' # products of f16 are exact in f32
says ': (0..7 + 32..39 + (16..23 + 48..55) + (8..15 + 40..47 + (24..31 + 56..63)))  signature '
says 'numerics="free_order=1"'
says 'numerics="qk_unit=tc_f16 fir_fma=1 p=f16 pv_unit=tc_f16 pv_chunk=16"'
grep -q '^  not told apart, guard' "$scratch/out" && fail "sums that overflow do not tell guards apart"
grep -q 'declared' <(grep -v 'variants:' "$scratch/out") && fail "nobody asked about declarations"

# A declaration that is true of the kernel is in the class; one wrong field is named with the value that fits.
wrongly() { # VARIANT FIELD=WRONG FIELD=RIGHT: declared so, the fit names the right one
    local variant=$1 wrong=$2 right=$3
    local change="s/%20${wrong%%=*}%3D[a-z0-9_]*/%20${wrong%%=*}%3D${wrong#*=}/"
    wants 1 '1 declared wrongly' "$attest" fit "$variant" --check --no-trees --quiet \
        --runner "$BUILD/attest-cpu | sed -u '/ family=${variant%%/*} name=${variant#*/} /{$change}'"
    grep -E "declared: fits in: .*$right" "$scratch/out" > /dev/null || { cat "$scratch/out"; fail "$variant declared $wrong: $right is not named"; }
}
wants 0 'declared: fits' "$attest" fit gemm/03_wgmma_f16_sum --check --no-trees --quiet
wrongly gemm/01_mma_f32_sum qk_unit=tc_f16 qk_unit=tc_f32
wrongly gemm/03_wgmma_f16_sum qk_unit=tc_f32 qk_unit=tc_f16
wrongly gemm/05_wgmma_fp8_promoted split=256 split=128
wrongly gemm/09_mma_tf32 qk_unit=tc_tf32_rna qk_unit=tc_tf32
wrongly gemm/09_mma_tf32_rounded qk_unit=f32_fma qk_unit=tc_tf32_rna
# Of norms, functions, rotations and states: what each says is in the class, and one wrong field of each is named.
rest='@(uclip_norm|add_uclip_norm|qk_uclip_norm|post_*|rms_norm|add_rms_norm|exp2|silu_mul|reglu|lightning_decode|rope|rope_kv_write|top_k)/*'
variants=$("$BUILD/attest-cpu" --list | grep -cE '^(uclip_norm|add_uclip_norm|qk_uclip_norm|post_[a-z_]*|rms_norm|add_rms_norm|exp2|silu_mul|reglu|lightning_decode|rope|rope_kv_write|top_k)/')
((variants >= 57)) || fail "found $variants of their variants"
wants 0 "$variants fit, 0 that no declaration fits, 0 without an order, 0 declared wrongly; 0 not probed" "$attest" fit "$rest" --check --quiet
wrongly rms_norm/01_warp_per_row qk_tree=sequential qk_tree=butterfly
wrongly rms_norm/03_rsqrt_approx_ftz rsqrt=rsqrt_approx rsqrt=rsqrt_approx_ftz
wrongly add_rms_norm/02_rsqrt_approx rsqrt=libm rsqrt=rsqrt_approx
wrongly uclip_norm/01_block_per_row clamp=propagate clamp=fminmax
wrongly add_uclip_norm/01_block_per_row fir_fma=0 fir_fma=1
wrongly qk_uclip_norm/02_one_launch clamp=propagate clamp=fminmax
wrongly exp2/02_ex2_approx_ftz exp=ex2_approx exp=ex2_approx_ftz
wrongly silu_mul/03_rcp_approx divide=division divide=rcp_approx
wrongly reglu/03_nan_kept clamp=fminmax clamp=propagate
wrongly rope/02_16_bytes fir_fma=0 fir_fma=1
wrongly lightning_decode/05_state_in_registers qk_lanes=16 qk_lanes=32
wrongly top_k/01_block_per_row exp=libm exp=ex2_approx
if [[ ${AT_EFFORT:-full} == full ]]; then
    wrongly gemv/04_split_ordered split=0 split=256
    wrongly gemv/05_cluster_ring qk_lanes=32 qk_lanes=64
    wrongly gemv/06_tma_ring qk_tree=sequential qk_tree=butterfly
    wrongly asynct_prefill/02_multi_q p=f16 p=f32
    wrongly asynct_prefill/09_mma_bk_8 pv_chunk=16 pv_chunk=8
    wrongly asynct_prefill/23_mma_q_rounded scale_on=score scale_on=q_rounded
    wrongly asynct_decode/11_split_k_of_512 split=256 split=512
    wrongly asynct_decode/06_lane_interleaved_qk qk_run=0 qk_run=1
fi

# Such a kernel is WRONG, and its cause has the declaration that its bits are those of.
hints() { # VARIANT FIELD=WRONG CASE 'text': declared so, the cause has the text
    wants 1 "$4" "$attest" verify "$1" --case "$3" --quiet \
        --runner "$BUILD/attest-cpu | sed -u '/ family=${1%%/*} name=${1#*/} /{s/%20${2%%=*}%3D[a-z0-9_]*/%20${2%%=*}%3D${2#*=}/}'"
}
hints gemm/01_mma_f32_sum qk_unit=tc_f16 'gemm m=8 n=16 k=200 dtype=f16 out=f32' 'hint: its bits are those of qk_unit=tc_f32'
hints softmax_prefill/01_naive p=f16 'softmax_prefill b=1 h=2 hk=1 sq=4 sk=40 d=64 dtype=f16' 'hint: its bits are those of p=f32'
# Of the wrong kernels of gemm just those two that are declared wrongly compute what another declaration says.
"$attest" verify 'gemm/*' --case 'gemm m=9 n=24 k=104 dtype=f16 seed=7 scale=0.37' --jobs 1 --quiet --runner "$BUILD/attest-mutants" \
    --json "$scratch/mutants" > /dev/null
[[ $(grep -c '"state":"WRONG"' "$scratch/mutants") -ge 10 ]] || fail "hardly a mutant is WRONG"
hinted=$(grep 'hint: its bits are those of' "$scratch/mutants" | sed 's/.*"variant":"\([^"]*\)".*/\1/' | sort | paste -sd' ')
[[ "$hinted" == '01_f16_sum_where_f32_is_declared 48_f32_sums_where_f16_are_declared' ]] ||
    fail "said to be declared wrongly: '$hinted'"

# One format alone, as one object.
wants 0 '"state":"fits"' "$attest" fit gemm/01_mma_f32_sum --dtype bf16 --json --no-trees --quiet
says '"dtype":"bf16"'
says '"declared_fits":null'

wants 2 "nearest is 'gemm/*'" "$attest" fit 'gemn/*'
wants 2 'did you mean "f16"' "$attest" fit gemm/01_mma_f32_sum --dtype f15
wants 4 'leaves nothing of the arithmetic to be declared' "$attest" fit kv_write/01_block_per_token --quiet
wants 4 'takes no probing problem of f32' "$attest" fit gemm/01_mma_f32_sum --dtype f32 --quiet

# Functions of a stranger who does not know: four lanes of a sum, in f16 alone, or in all formats, and a sum in double.
python=/usr/bin/python3
$python -c 'import numpy' 2> /dev/null || { echo "no numpy for $python"; exit 77; }
cat > "$scratch/mine.py" << 'PY'
import numpy as np
from attest_runner import kernel, serve, requests, encode, f64, put, Unsupported
F = np.float32
def add(a, b, d, lanes):
    x, y = F(f64(a)), F(f64(b))
    part = np.zeros((4, x.shape[0], y.shape[0]), F)
    for k in range(x.shape[1]):
        part[k % lanes] += np.outer(x[:, k], y[:, k])
    put(d, part[0] + part[2] + (part[1] + part[3]))
@kernel("gemm", dtypes="f16 bf16")
def four_lanes(a, b, d, *, scale):
    add(a, b, d, 4)
@kernel("gemm", dtypes="f16 bf16")
def by_format(a, b, d, *, scale):
    add(a, b, d, 4 if a.format == "f16" else 1)
@kernel("gemm", dtypes="f16")
def doubles_of_parts(a, b, d, *, scale):
    x, y, n = f64(a), f64(b), a.shape[1] // 3
    put(d, F(x[:, :n] @ y[:, :n].T) + F(x[:, n:] @ y[:, n:].T))
@kernel("asynct_decode", dtypes="f16 bf16", numerics="qk_unit=f32 p=input pv_unit=f32")
def p_in_their_format(job, *, scale, taps, gamma, relu_pre, fir_form, clip_min, clip_max):
    if fir_form:
        raise Unsupported("taps alone")
    for r in requests(job):
        k, v = (np.repeat(F(f64(t)), r.group, axis=1) for t in (r.k, r.v))
        for i, n in enumerate(r.seen):
            s, o, q = np.zeros((n, len(r.q[i])), F), np.zeros(r.q[i].shape, F), F(f64(r.q[i]))
            for c in range(q.shape[1]):
                s += q[:, c] * k[:n, :, c]
            s *= F(scale)
            s = np.maximum(s, 0) if relu_pre else s
            z = taps[:, 0] * s
            for j in range(1, taps.shape[1]):
                z[j:] += taps[:, j] * s[:n - j]
            codes = encode(r.q.format, gamma * np.clip(z, F(clip_min), F(clip_max)))
            p = F(codes) if r.q.format == "f16" else (codes.astype(np.uint32) << 16).view(F)
            for t in range(n):
                o += p[t][:, None] * v[t]
            put(r.o[i], o)
serve()
PY
export PYTHONPATH=$PWD/kernels/runner/python PYTHONDONTWRITEBYTECODE=1
mine="$python $scratch/mine.py"
wants 0 'numerics="qk_lanes=4 qk_run=1 qk_tree=butterfly"' "$attest" fit gemm/01_four_lanes --runner "$mine" --quiet
says ': (0..60/4 + 2..62/4 + (1..61/4 + 3..63/4))  signature '
grep -q 'alone' "$scratch/out" && fail "one declaration fits all formats, and it says otherwise"
wants 0 'of f16 alone: with its other formats no declaration fits' "$attest" fit gemm/02_by_format --runner "$mine" --quiet --no-trees
says 'numerics="qk_lanes=4 qk_run=1 qk_tree=butterfly"'
wants 0 'numerics=""' "$attest" fit gemm/02_by_format --dtype bf16 --runner "$mine" --quiet --no-trees
# P in the format of the inputs: one declaration for both, as found and as declared.
wants 0 'declared: fits' "$attest" fit asynct_decode/01_p_in_their_format --check --runner "$mine" --quiet --no-trees
says 'p=input'
grep -q 'alone' "$scratch/out" && fail "p=input fits both formats, and it says otherwise"
wants 1 'none fits; the nearest: ' "$attest" fit gemm/03_doubles_of_parts --runner "$mine" --quiet
says 'not seen: '
