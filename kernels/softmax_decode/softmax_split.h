/* Softmax decode with the keys of a row in ranges: the part that a range leaves, and the kernel that joins parts.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A part is D + 2 floats: D sums of weights times V, the maximum score m_j, the sum of weights l_j; the weights are
 * relative to the part's own maximum. The parts of a row lie one after the other, in shared memory or in a workspace.
 * With m the largest m_j, the join weights a part's sums of V and of weights by e^(m_j - m) (softmax_exp.h). That is the merge by
 * e^(lse_j - lse) of outputs that are already divided, without a logarithm's rounding in every weight. */
#ifndef AT_SOFTMAX_SPLIT_H
#define AT_SOFTMAX_SPLIT_H

#include "kernels/attention/softmax.h"

/* Floats of a part for head size d. */
__host__ __device__ inline int64_t at_softmax_part(int64_t d) { return d + 2; }

/* Part `part` of up to `parts` of a query head in a workspace. */
template <class T>
__device__ float *at_softmax_part_of(const at_softmax_view<T> &a, int request, int head, float *workspace, int parts,
                                     int part) {
    return workspace + (((int64_t)request * a.h + head) * parts + part) * at_softmax_part(a.d);
}

/* o and lse of a query from its `parts` parts, joined in ascending order; by all threads of the block. */
template <class Exp, class T>
__device__ void at_softmax_join(const at_softmax_query<T> &query, const float *from, int parts) {
    const Exp exp(query.a.scale);
    const int d = query.a.d;
    const auto part = [=](int i) { return from + i * at_softmax_part(d); };
    float max = -INFINITY;
    for (int i = 0; i < parts; i++)
        max = fmaxf(max, part(i)[d]);
    for (int c = (int)threadIdx.x; c < d; c += (int)blockDim.x) {
        float o = 0.0f, sum = 0.0f;
        for (int i = 0; i < parts; i++) {
            const float weight = exp.factor(part(i)[d], max), scaled = part(i)[c] * weight;
            o = i > 0 ? o + scaled : scaled;
            sum += part(i)[d + 1] * weight;
        }
        query.put(c, parts > 0 ? exp.quotient(o, exp.divisor(sum)) : 0.0f);
        if (c == 0)
            query.put_lse(exp.lse(max, sum));
    }
}

/* The second launch: joins the parts that ranges of RANGE keys left in the workspace. */
template <class T, int RANGE, class Exp>
static __global__ void __launch_bounds__(AT_DECODE_THREADS, AT_DECODE_BLOCKS)
    at_softmax_join_ranges(at_softmax_view<T> a, float *workspace, int max_ranges) {
    const at_softmax_query<T> query(a);
    if (query.absent())
        return;
    at_softmax_join<Exp>(query, at_softmax_part_of(a, query.request, query.head, workspace, max_ranges, 0),
                         at_split_ranges<RANGE>(query.keys));
}

/* Bytes for as many ranges as a request's pages hold. The lengths at the launch must not decide: a captured graph keeps
 * the grid while lengths grow. */
template <int RANGE> int64_t at_softmax_split_workspace(const struct at_problem *problem) {
    const struct at_sizes *z = &problem->sizes;
    return z->b * z->h * at_split_ranges<RANGE>(z->capacity) * at_softmax_part(z->d) * (int64_t)sizeof(float);
}

/* Launches a kernel on grid (x, requests, ranges that the longest request can have), then the join. */
template <int RANGE, class Exp = at_softmax_natural, class T>
int at_softmax_split_launch(const struct at_launch *launch, void (*kernel)(at_softmax_view<T>, float *), int64_t x,
                            int64_t shared) {
    const struct at_problem *problem = launch->problem;
    const struct at_sizes *z = &problem->sizes;
    const int ranges = at_split_ranges<RANGE>(z->capacity);
    const dim3 grid{ (unsigned)x, (unsigned)z->b, (unsigned)ranges }, rows{ (unsigned)z->h, (unsigned)z->b, 1 };
    const dim3 block{ AT_DECODE_THREADS, 1, 1 };
    const auto view = at_softmax_view<T>::of(problem);
    float *workspace = static_cast<float *>(launch->workspace);
    if (z->tokens == 0)
        return 0;
    const int code = ranges ? at_launch(kernel, grid, block, shared, launch->stream, view, workspace) : 0;
    return code ? code
                : at_launch(at_softmax_join_ranges<T, RANGE, Exp>, rows, block, 0, launch->stream, view, workspace,
                            ranges);
}

#endif
