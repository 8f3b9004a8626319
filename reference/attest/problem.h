/* A problem: one operator's sizes, parameters and tensors. What a reference evaluates and a kernel
 * receives.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_PROBLEM_H
#define AT_PROBLEM_H

#include <stdint.h>

#include "attest/tensor.h"

struct at_op;

/* Sizes that families of operators share, by the names used everywhere (C, CUDA, case files, the wire, HDF5,
 * notebooks). A size that one operator alone has is in that operator's own table (op.h).
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
    X(channels,  "hidden size of a norm")
/* clang-format on */

struct at_sizes {
#define X(name, meaning) int64_t name;
    AT_SIZE_LIST(X)
#undef X
};

enum at_edge { AT_EDGE_ZERO, AT_EDGE_SHRINK };   /* FIR at key 0: divisor K, or min(t+1, K) */
enum at_fir_form { AT_FIR_POOLED, AT_FIR_TAPS }; /* taps from sigma, or given */
enum at_from { AT_FROM_ROUNDED, AT_FROM_EXACT }; /* pre-MLP norm reads res' rounded or not */

/* Scalar parameters that families of operators share; one operator's own are in its own table.
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
    X(int32_t, from,     0,    "enum at_from: 0 rounded, 1 exact")
/* clang-format on */

struct at_params {
#define X(type, name, value, meaning) type name;
    AT_PARAM_LIST(X)
#undef X
};

enum { AT_MAX_TENSORS = 16, AT_OWN_BYTES = 128 };

/* A view: owns nothing. tensors[i] is described by op->tensors[i]. */
struct at_problem {
    const struct at_op *op;
    struct at_sizes sizes;
    struct at_params params;
    int64_t own[AT_OWN_BYTES / 8]; /* the operator's own sizes and parameters: AT_OWN_STRUCT */
    enum at_format dtype;          /* of the activations */
    struct at_tensor tensors[AT_MAX_TENSORS];
};

/* Defaults of AT_PARAM_LIST. */
struct at_params at_params_default(void);

/* An operator's own sizes and parameters are a struct of int64_t (sizes), int32_t and float (parameters) of at most
 * AT_OWN_BYTES that lies at the beginning of problem->own. This defines NAME_of(problem), a copy of it, and
 * NAME_set(problem, &own). */
#define AT_OWN_STRUCT(name) \
    static inline struct name name##_of(const struct at_problem *problem) { \
        struct name own; \
        char fits[sizeof own <= AT_OWN_BYTES ? 1 : -1]; \
        (void)fits; \
        __builtin_memcpy(&own, problem->own, sizeof own); \
        return own; \
    } \
    static inline void name##_set(struct at_problem *problem, const struct name *own) { \
        __builtin_memcpy(problem->own, own, sizeof *own); \
    }

#endif
