/* UClip norm of q and k in one launch, its parameters known at compile time as a deployed model fixes them.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: as 01_two_launches: f32; alpha * x, fmaxf and fminf (a NaN becomes lo), gamma * c; one rounding to the
 * format of the activations.
 * Launch: a block of 128 threads for 1024 elements of q or of k, 8 of them a thread by one access of 16 bytes; the head
 * size is a constant, the clamp is to -1 .. 1, there is no beta, so that nothing is decided at run time but the tensor,
 * a block at a time.
 * Limits: activations f16 or bf16; d 64 or 128; lo = -1, hi = 1.
 * Source: 000 section 6.9, where gamma is one number; here it is one a channel, as the operator has it. */
#include "qk_uclip_norm/qk_uclip_norm.h"
#include "kernels/norm/norm.h"

namespace {

constexpr int THREADS = 128, PIECE = 8;

/* One of the two tensors. */
template <class T> struct side {
    const float *alpha, *gamma;
    int64_t elements;
    const T *x;
    T *y;
};

template <class T, int D> __global__ void __launch_bounds__(THREADS) normalise(side<T> q, side<T> k, int q_blocks) {
    const bool is_q = (int)blockIdx.x < q_blocks;
    const side<T> &s = is_q ? q : k;
    const int64_t block = is_q ? blockIdx.x : blockIdx.x - q_blocks, at = (block * THREADS + threadIdx.x) * PIECE;
    if (at >= s.elements)
        return;
    T piece[PIECE];
    at_load16(&s.x[at], piece);
    for (int i = 0; i < PIECE; i++) {
        const int channel = (int)(at % D) + i;
        const float clamped = fminf(fmaxf(s.alpha[channel] * at_float(piece[i]), -1.0f), 1.0f);
        piece[i] = at_round_to<T>(s.gamma[channel] * clamped);
    }
    at_store16(&s.y[at], piece);
}

template <class T> int launch_as(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const struct at_sizes *z = &p->sizes;
    const auto floats = [p](int t) { return static_cast<const float *>(p->tensors[t].data); };
    const auto blocks = [](int64_t n) { return (n + THREADS * PIECE - 1) / (THREADS * PIECE); };
    const side<T> q{ floats(AT_QK_UCLIP_ALPHA_Q), floats(AT_QK_UCLIP_GAMMA_Q), z->tokens * z->h * z->d,
                     at_activations<T>(p, AT_QK_UCLIP_Q), at_activations<T>(p, AT_QK_UCLIP_Q_OUT) };
    const side<T> k{ floats(AT_QK_UCLIP_ALPHA_K), floats(AT_QK_UCLIP_GAMMA_K), z->tokens * z->hk * z->d,
                     at_activations<T>(p, AT_QK_UCLIP_K), at_activations<T>(p, AT_QK_UCLIP_K_OUT) };
    const dim3 grid{ (unsigned)(blocks(q.elements) + blocks(k.elements)), 1, 1 };
    return at_launch(z->d == 64 ? normalise<T, 64> : normalise<T, 128>, grid, dim3{ THREADS, 1, 1 }, 0, launch->stream,
                     q, k, (int)blocks(q.elements));
}

int launch(const struct at_launch *launch) {
    if (launch->problem->sizes.tokens == 0)
        return 0;
    return launch->problem->dtype == AT_F16 ? launch_as<at_f16>(launch) : launch_as<at_bf16>(launch);
}

const char *declines(const struct at_problem *p) {
    if (p->dtype != AT_F16 && p->dtype != AT_BF16)
        return "activations are f16 or bf16";
    if (p->sizes.d != 64 && p->sizes.d != 128)
        return "the head size is 64 or 128";
    return p->params.lo != -1.0f || p->params.hi != 1.0f ? "the clamp is to -1 .. 1" : nullptr;
}

} // namespace

AT_KERNEL(qk_uclip_norm, 03_constants) = {
    .summary = "one launch, head size and clamp known when compiled",
    .source = "000 6.9",
    .numerics = {
        .qk_unit = AT_UNIT_F32,
        .qk_lanes = 1,
        .p = AT_F32,
        .clamp = AT_CLAMP_FMINMAX,
        .pv_unit = AT_UNIT_F32,
        .pv_chunk = 1,
        .repeats = 1,
        .batch_invariant = 1,
    },
    .supports = declines,
    .workspace = nullptr,
    .launch = launch,
};
