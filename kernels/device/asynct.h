/* What AsyncT kernels share: a problem's pointers as a kernel argument, paging, the gate.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DEVICE_ASYNCT_H
#define AT_DEVICE_ASYNCT_H

#include "asynct_attention/asynct_attention.h"
#include "attest/attention.h"
#include "attest/kernel.h"
#include "kernels/device/device.h"
#include "kernels/device/group.h"

/* A problem with activations of type T; every pointer in device memory. */
template <class T> struct at_asynct_view {
    const T *q, *k, *v;
    const int *query_start, *seq_lens, *key_start, *block_table;
    const float *sigma, *taps, *gamma;
    T *o;
    int h, hk, d, page, max_pages, n_taps, causal;
    /* Where keys lie, without a branch for either layout and with few instructions: key t of a request is key t % page
     * of page number rows[request * row_stride + t / page]; contiguous keys are one page, whose number is their first.
     */
    const int *rows;
    int row_stride, page_step, key_step; /* elements from one page, and from one key, to the next */
    uint32_t page_inverse;               /* 2^31 / page, rounded up; 0: contiguous */
    int pooled, shrink, relu_pre;
    float scale, clip_min, clip_max;

    static at_asynct_view of(const struct at_problem *p) {
        const struct at_tensor *t = p->tensors;
        at_asynct_view view{};
        view.q = static_cast<const T *>(t[AT_ATTN_Q].data);
        view.k = static_cast<const T *>(t[AT_ATTN_K].data);
        view.v = static_cast<const T *>(t[AT_ATTN_V].data);
        view.query_start = static_cast<const int *>(t[AT_ATTN_QUERY_START].data);
        view.seq_lens = static_cast<const int *>(t[AT_ATTN_SEQ_LENS].data);
        view.key_start = static_cast<const int *>(t[AT_ATTN_KEY_START].data);
        view.block_table = static_cast<const int *>(t[AT_ATTN_BLOCK_TABLE].data);
        view.sigma = static_cast<const float *>(t[AT_ASYNCT_SIGMA].data);
        view.taps = static_cast<const float *>(t[AT_ASYNCT_TAPS].data);
        view.gamma = static_cast<const float *>(t[AT_ASYNCT_GAMMA].data);
        view.o = static_cast<T *>(t[AT_ASYNCT_O].data);
        view.h = (int)p->sizes.h;
        view.hk = (int)p->sizes.hk;
        view.d = (int)p->sizes.d;
        view.page = (int)p->sizes.page;
        view.max_pages = (int)p->sizes.max_pages;
        view.rows = view.page ? view.block_table : view.key_start;
        view.row_stride = view.page ? view.max_pages : 1;
        view.key_step = view.hk * view.d;
        view.page_step = view.key_step * (view.page ? view.page : 1);
        view.page_inverse = view.page ? ((1u << 31) + (uint32_t)view.page - 1) / (uint32_t)view.page : 0;
        view.n_taps = (int)p->sizes.taps;
        view.causal = p->params.causal;
        view.pooled = p->params.fir_form == AT_FIR_POOLED;
        view.shrink = p->params.edge == AT_EDGE_SHRINK;
        view.relu_pre = p->params.relu_pre;
        view.scale = p->params.scale;
        view.clip_min = p->params.clip_min;
        view.clip_max = p->params.clip_max;
        return view;
    }

    /* t / page; 0 when contiguous. Exact while t * page < 2^30. */
    __device__ int page_of(int t) const { return (int)at_multiply_high(2 * (uint32_t)t, page_inverse); }
    /* First element of key t of kv head g of a request, in k and in v. */
    __device__ int64_t key(int request, int t, int g) const {
        const int column = page_of(t);
        return key_of_page(rows[request * row_stride + column], t - column * page, g);
    }
    /* The same of a page's n-th key where the page's number is known. */
    __device__ int64_t key_of_page(int number, int n, int g) const {
        return (int64_t)number * page_step + (n * key_step + g * d);
    }
    /* Keys that query i of a request sees: all, or when causal one less for every query after it. */
    __device__ int visible(int request, int i) const {
        const int keys = seq_lens[request], after = query_start[request + 1] - query_start[request] - 1 - i;
        if (!causal)
            return keys;
        return after < keys ? keys - after : 0;
    }
};

/* Reasons to decline that all kernels share: `bytes_per_key` of shared memory for a whole row of keys. */
static inline const char *at_asynct_declines(const struct at_problem *problem, int64_t bytes_per_key) {
    if (problem->dtype != AT_F16 && problem->dtype != AT_BF16)
        return "activations are f16 or bf16";
    const struct at_sizes *z = &problem->sizes;
    if (z->capacity * z->hk * z->d >= INT32_MAX || z->capacity * z->page >= 1 << 30) /* key_of_page, page_of */
        return "a request has more keys than 32-bit places reach";
    return z->capacity * bytes_per_key > 220 * 1024 ? "a request has more keys than shared memory holds" : nullptr;
}

/* A kernel for a problem's activations, unless there is nothing to do; `args` follow the view. */
template <class... P, class... A>
int at_asynct_launch(const struct at_launch *launch, void (*f16)(at_asynct_view<at_f16>, P...),
                     void (*bf16)(at_asynct_view<at_bf16>, P...), dim3 grid, int threads, int64_t shared, A... args) {
    const struct at_problem *p = launch->problem;
    const dim3 block{ (unsigned)threads, 1, 1 };
    if (p->sizes.tokens == 0 || grid.x == 0 || grid.y == 0 || grid.z == 0)
        return 0;
    if (p->dtype == AT_F16)
        return at_launch(f16, grid, block, shared, launch->stream, at_asynct_view<at_f16>::of(p), args...);
    return at_launch(bf16, grid, block, shared, launch->stream, at_asynct_view<at_bf16>::of(p), args...);
}

/* q.k of n channels by one thread: a chain of fmaf. Loads go ahead of it, eight channels at a time. */
template <class T> __device__ float at_chain(const T *q, const T *k, int n) {
    constexpr int AHEAD = 8;
    float sum = 0.0f;
    int i = 0;
    for (; i + AHEAD <= n; i += AHEAD) {
        T x[AHEAD], y[AHEAD];
        for (int j = 0; j < AHEAD; j++) {
            x[j] = q[i + j];
            y[j] = k[i + j];
        }
        for (int j = 0; j < AHEAD; j++)
            sum = fmaf(at_float(x[j]), at_float(y[j]), sum);
    }
    for (; i < n; i++)
        sum = fmaf(at_float(q[i]), at_float(k[i]), sum);
    return sum;
}

/* A lane's part of q.k when a group of GROUP neighbouring lanes shares it, each taking a run of d / GROUP channels; the
 * group has yet to add the parts. GROUP divides d. */
template <int GROUP, class T> __device__ float at_group_part(const T *q, const T *k, int d) {
    const int run = d / GROUP, first = at_lane() % GROUP * run;
    return at_chain(q + first, k + first, run);
}

/* The gate of one head: filter tap by tap with fmaf, clamp by fminf and fmaxf, then gamma. */
struct at_asynct_gate {
    const float *taps;
    float sigma, gamma, clip_min, clip_max;
    int n_taps, pooled, shrink;

    template <class T> __device__ static at_asynct_gate of(const at_asynct_view<T> &view, int head) {
        return { view.taps + head * view.n_taps,
                 view.sigma[head],
                 view.gamma[head],
                 view.clip_min,
                 view.clip_max,
                 view.n_taps,
                 view.pooled,
                 view.shrink };
    }

    /* p of key t; r points at its score (after the ReLU), the keys before it stand before it. */
    __device__ float operator()(const float *r, int t) const {
        const int reach = t < n_taps ? t : n_taps - 1;
        float z;
        if (pooled && shrink && t + 1 < n_taps) { /* a shorter window has taps of its own */
            const float share = sigma / (float)(t + 1);
            z = (1.0f - share) * r[0];
            for (int j = 1; j <= reach; j++)
                z = fmaf(-share, r[-j], z);
        } else {
            z = taps[0] * r[0];
            for (int j = 1; j <= reach; j++)
                z = fmaf(taps[j], r[-j], z);
        }
        return gamma * fmaxf(fminf(fmaxf(z, 0.0f), clip_max), clip_min);
    }
};

#endif
