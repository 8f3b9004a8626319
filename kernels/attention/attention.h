/* What attention kernels share: q, k and v of a problem as a kernel argument, paging, which query sees which keys.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ATTENTION_VIEW_H
#define AT_ATTENTION_VIEW_H

#include "attest/attention.h"
#include "attest/kernel.h"
#include "kernels/device/device.h"

/* The tensors that all operators have, activations of type T; every pointer in device memory. */
template <class T> struct at_attention_view {
    const T *q, *k, *v;
    const int *query_start, *seq_lens, *key_start, *block_table;
    int h, hk, d, page, max_pages, causal;
    /* Where keys lie, without a branch for either layout and with few instructions: key t of a request is key t % page
     * of page number rows[request * row_stride + t / page]; contiguous keys are one page, whose number is their first.
     */
    const int *rows;
    int row_stride, page_step, key_step; /* elements from one page, and from one key, to the next */
    uint32_t page_inverse;               /* 2^31 / page, rounded up; 0: contiguous */

    void attend_to(const struct at_problem *p) {
        const struct at_tensor *t = p->tensors;
        q = static_cast<const T *>(t[AT_ATTN_Q].data);
        k = static_cast<const T *>(t[AT_ATTN_K].data);
        v = static_cast<const T *>(t[AT_ATTN_V].data);
        query_start = static_cast<const int *>(t[AT_ATTN_QUERY_START].data);
        seq_lens = static_cast<const int *>(t[AT_ATTN_SEQ_LENS].data);
        key_start = static_cast<const int *>(t[AT_ATTN_KEY_START].data);
        block_table = static_cast<const int *>(t[AT_ATTN_BLOCK_TABLE].data);
        h = (int)p->sizes.h;
        hk = (int)p->sizes.hk;
        d = (int)p->sizes.d;
        page = (int)p->sizes.page;
        max_pages = (int)p->sizes.max_pages;
        causal = p->params.causal;
        rows = page ? block_table : key_start;
        row_stride = page ? max_pages : 1;
        key_step = hk * d;
        page_step = key_step * (page ? page : 1);
        page_inverse = page ? ((1u << 31) + (uint32_t)page - 1) / (uint32_t)page : 0;
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

/* Reasons to decline that all kernels share but for what scores are: `bytes_per_key` of shared memory for a whole row of keys;
 * a block along z for each `queries` queries of the longest request, by default none. CUDA's grids have at most 65535 blocks
 * along y and z. */
static inline const char *at_attention_sizes_decline(const struct at_problem *problem, int64_t bytes_per_key,
                                                     int64_t queries = INT32_MAX) {
    if (problem->dtype != AT_F16 && problem->dtype != AT_BF16)
        return "activations are f16 or bf16";
    const struct at_sizes *z = &problem->sizes;
    if (z->max_sq > 65535 * queries)
        return "a request has more queries than a grid has blocks for";
    /* not reached: as many requests take the SIMT machine minutes */
    if (z->b > 65535)
        return "more requests than a grid has blocks for";
    if (z->capacity * z->hk * z->d >= INT32_MAX || z->capacity * z->page >= 1 << 30) /* key_of_page, page_of */
        return "a request has more keys than 32-bit places reach";
    return z->capacity * bytes_per_key > 220 * 1024 ? "a request has more keys than shared memory holds" : nullptr;
}

/* Of kernels whose scores are scale q.k alone. */
static inline const char *at_attention_declines(const struct at_problem *problem, int64_t bytes_per_key,
                                                int64_t queries = INT32_MAX) {
    const char *reason = at_attention_sizes_decline(problem, bytes_per_key, queries);
    if (!reason && problem->op->beyond_scale)
        reason = problem->op->beyond_scale(problem);
    return reason;
}

/* A kernel for a problem's activations, unless there is nothing to do; `args` follow the view. */
template <template <class> class View, class... P, class... A>
int at_attention_launch(const struct at_launch *launch, void (*f16)(View<at_f16>, P...),
                        void (*bf16)(View<at_bf16>, P...), dim3 grid, int threads, int64_t shared, A... args) {
    const struct at_problem *p = launch->problem;
    const dim3 block{ (unsigned)threads, 1, 1 };
    if (p->sizes.tokens == 0 || grid.z == 0) /* no query, or no range of keys */
        return 0;
    if (p->dtype == AT_F16)
        return at_launch(f16, grid, block, shared, launch->stream, View<at_f16>::of(p), args...);
    return at_launch(bf16, grid, block, shared, launch->stream, View<at_bf16>::of(p), args...);
}

#endif
