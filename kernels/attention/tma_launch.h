/* The launch of attention kernels by TMA: tensor maps of q, K and V, the grid, what is declined.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_TMA_LAUNCH_H
#define AT_TMA_LAUNCH_H

#include "kernels/attention/attention_tma.h"

/* A tensor of rows of D channels for each of `heads`, and a box of `box` rows of one head. */
template <class T> at_tensor_box at_tma_rows(const T *base, int64_t d, int64_t heads, int64_t rows, int box) {
    return { .base = base,
             .rank = 3,
             .element_bytes = (int)sizeof(T),
             .size = { d, heads, rows },
             .stride = { 0, d * (int64_t)sizeof(T), d * heads * (int64_t)sizeof(T) },
             .box = { AT_TMA_CHANNELS, 1, box },
             .swizzle = AT_TMA_ROW };
}

/* Launches kernel.operator()<D>() for the head size D. A kernel takes the view, the tensor maps of q, k and v, the
 * number of keys that one copy loads, the number of rows of K and V, and `more`. */
template <class View, template <class, int> class Room = at_tma_room, class Kernel, class... More>
int at_tma_launch_grid(const struct at_launch *launch, dim3 grid, Kernel kernel, More... more) {
    const struct at_problem *problem = launch->problem;
    const struct at_sizes *z = &problem->sizes;
    const auto a = View::of(problem);
    int rows = AT_TMA_KEYS;
    while (z->page && z->page % rows)
        rows /= 2;                                     /* no copy reaches over the end of a page */
    const int64_t slots = z->slots > 0 ? z->slots : 1; /* without any, nothing is copied */
    at_tensor_map q{}, k{}, v{};
    at_tensor_box boxes[3] = { at_tma_rows(a.q, z->d, z->h, z->tokens, AT_TMA_QUERIES),
                               at_tma_rows(z->slots > 0 ? a.k : a.q, z->d, z->hk, slots, rows),
                               at_tma_rows(z->slots > 0 ? a.v : a.q, z->d, z->hk, slots, rows) };
    int code = at_tensor_map_encode(&q, &boxes[0]);
    code = code ? code : at_tensor_map_encode(&k, &boxes[1]);
    code = code ? code : at_tensor_map_encode(&v, &boxes[2]);
    if (code)
        return code;
    const auto with_head_size = [&]<int D>() {
        return at_launch(kernel.template operator()<D>(), grid, dim3{ AT_TMA_THREADS, 1, 1 }, Room<at_bf16, D>::bytes(),
                         launch->stream, a, q, k, v, rows, (int)slots, more...);
    };
    return z->d == 64 ? with_head_size.template operator()<64>() : with_head_size.template operator()<128>();
}
/* The same with a block for each tile of queries. */
template <class View, class Kernel> int at_tma_launch(const struct at_launch *launch, Kernel kernel) {
    const dim3 grid = at_mma_grid(&launch->problem->sizes, AT_TMA_QUERIES);
    return grid.y ? at_tma_launch_grid<View>(launch, grid, kernel) : 0;
}

/* Reasons to decline other than the format of activations. */
static inline const char *at_tma_declines(const struct at_problem *problem) {
    const struct at_sizes *z = &problem->sizes;
    if (z->d != 64 && z->d != 128)
        return "d is neither 64 nor 128";
    /* not reached: K and V of as many rows have 512 GiB */
    if (z->slots + z->tokens >= INT32_MAX)
        return "more rows than a copy's 32-bit places reach";
    return at_attention_declines(problem, 0, AT_TMA_QUERIES);
}

#endif
