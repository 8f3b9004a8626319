/* A problem: one operator's sizes, parameters and tensors. What a reference evaluates and a kernel
 * receives.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_PROBLEM_H
#define AT_PROBLEM_H

#include <stdint.h>

#include "attest/tensor.h"

struct at_op;

/* Sizes, by the names used everywhere (C, CUDA, case files, the wire, HDF5, notebooks).
 * name, meaning */
/* clang-format off */
#define AT_SIZE_LIST(X)                                                                     \
    X(b,         "requests")                                                                \
    X(h,         "query heads")                                                             \
    X(hk,        "key/value heads; divides h; head x reads key/value head x / (h/hk)")      \
    X(d,         "head size")                                                               \
    X(tokens,    "query tokens of all requests (attention), rows (norms)")                  \
    X(slots,     "rows of the k and v tensors: sum of sk, or pages * page")                 \
    X(page,      "keys per page; 0: contiguous k and v")                                    \
    X(max_pages, "columns of the block table; 0: contiguous")                               \
    X(max_sq,    "most query tokens of one request")                                        \
    X(max_sk,    "most keys of one request now")                                            \
    X(capacity,  "most keys that one may come to have without a new launch (CUDA graphs)")  \
    X(taps,      "K, length of the FIR filter")                                             \
    X(channels,  "hidden size of a norm")                                                   \
    X(m,         "rows of a product")                                                       \
    X(n,         "columns of a product")                                                    \
    X(k,         "products that one element of a product sums")                             \
    X(quantities, "score_counts: quantities of query heads that are counted")               \
    X(kv_quantities, "score_counts: quantities of key/value heads that are counted")
/* clang-format on */

struct at_sizes {
#define X(name, meaning) int64_t name;
    AT_SIZE_LIST(X)
#undef X
};

/* A dimension of a tensor, as an operator's table names it. */
enum at_dim {
    AT_DIM_NONE,
#define X(name, meaning) AT_DIM_##name,
    AT_SIZE_LIST(X)
#undef X
        AT_DIM_b_plus_1,
    AT_DIM_code_slots, /* of score_counts, fixed: a slot a code of 16 bits, sums of a head and of a key/value head */
    AT_DIM_head_sums,
    AT_DIM_kv_sums
};
enum { AT_CODE_SLOTS = 65536, AT_HEAD_SUMS = 190, AT_KV_SUMS = 2 };

enum at_edge { AT_EDGE_ZERO, AT_EDGE_SHRINK };   /* FIR at key 0: divisor K, or min(t+1, K) */
enum at_fir_form { AT_FIR_POOLED, AT_FIR_TAPS }; /* taps from sigma, or given */
enum at_from { AT_FROM_ROUNDED, AT_FROM_EXACT }; /* pre-MLP norm reads res' rounded or not */

/* Scalar parameters: one list makes the struct, the wire names, the case keys and the help.
 * C type, name, default, meaning. Floats are f32 values: a kernel receives exactly these. */
/* clang-format off */
#define AT_PARAM_LIST(X)                                                                    \
    X(float,   scale,    0.0f, "of scores; 0 in a case: 1/sqrt(d) rounded to f32; of a product") \
    X(int32_t, causal,   0,    "1: key t is visible to query i when t <= sk - sq + i")      \
    X(int32_t, relu_pre, 1,    "1: scores pass max(s,0) before the FIR")                    \
    X(int32_t, edge,     0,    "enum at_edge: 0 zero, 1 shrink")                            \
    X(int32_t, fir_form, 0,    "enum at_fir_form: 0 pooled from sigma, 1 given taps")       \
    X(float,   clip_min, 0.0f, "lower end of the gate")                                     \
    X(float,   clip_max, 1.0f, "upper end of the gate")                                     \
    X(float,   lo,      -1.0f, "UClip: lower end")                                          \
    X(float,   hi,       1.0f, "UClip: upper end")                                          \
    X(float,   eps,      1e-6f, "RMSNorm: added to the mean square")                        \
    X(int32_t, from,     0,    "enum at_from: 0 rounded, 1 exact")                             \
    X(int32_t, instruction, 0, "dot_product_add: place in the table of tensor-core instructions") \
    X(int32_t, out,      AT_F32, "gemm: enum at_format of the product: f32, f16 or bf16")   \
    X(int32_t, softmax,  0,    "score_counts: 0 AsyncT, 1 softmax")                         \
    X(int32_t, bins,     AT_F16, "score_counts: enum at_format whose codes are counted: f16 or bf16") \
    X(int32_t, what,     0,    "score_counts: bit i: quantity i is counted")                \
    X(int32_t, behind,   0,    "score_counts: queries of the request behind those at hand")
/* clang-format on */

struct at_params {
#define X(type, name, value, meaning) type name;
    AT_PARAM_LIST(X)
#undef X
};

enum { AT_MAX_TENSORS = 16 };

/* A view: owns nothing. tensors[i] is described by op->tensors[i]. */
struct at_problem {
    const struct at_op *op;
    struct at_sizes sizes;
    struct at_params params;
    enum at_format dtype; /* of the activations: f32, f16 or bf16; gemm: e4m3 and e5m2 too */
    struct at_tensor tensors[AT_MAX_TENSORS];
};

/* Defaults of AT_PARAM_LIST. */
struct at_params at_params_default(void);

#endif
