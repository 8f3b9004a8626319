/* A product of matrices: d = round(scale * (a b^T)), or of a matrix and weights, d = round(scale * (a w)).
 * SPDX-License-Identifier: Apache-2.0
 *
 * a [m k] and the second factor hold f32, f16, bf16, e4m3 or e5m2, one format for both; d [m n] is f32, f16 or bf16
 * (out). The second factor is b [n k], the summed dimension innermost (layout nk), or w [k n], as weights of a decoder are
 * stored (layout kn): the other one is absent. b below is either, by columns of the product. scale multiplies the
 * finished sum: for factors of 8 bits it is the product of their per-tensor scales. m, n and k may be 0: a sum of nothing
 * is 0.
 *
 * Declared arithmetic (the fields of at_numerics that are read):
 *   qk_unit, qk_lanes, qk_run, qk_tree   how the k products of an element, in ascending order, are summed
 *   split    products of one partial sum, which starts from 0; partial sums are added in ascending order in f32 (f64
 *            beside qk_unit=f64), to nearest: what promotion of an accumulator with few bits is; 0: one sum
 *   guard    of an f16 accumulator
 *   the sum is f32 from there on (f64 beside qk_unit=f64): one rounding for the scale, one for d
 *
 * Ledger: stages score (the sum before the scale), qk_acc (each step of a partial sum; step counts from its beginning)
 * and out; element (i, j) is that of query i and key j. */
#ifndef AT_GEMM_H
#define AT_GEMM_H

#include "attest/op.h"
#include "tensor_core/accumulate.h"

enum { AT_GEMM_A, AT_GEMM_B, AT_GEMM_W, AT_GEMM_D };
enum at_gemm_layout { AT_GEMM_NK, AT_GEMM_KN };

/* Sizes and parameters of its own. */
struct at_gemm_own {
    int64_t m, n, k;           /* rows, columns, products of an element */
    int64_t b_rows, w_columns; /* n or 0, by the layout: at_gemm_stored */
    int32_t out, layout;       /* enum at_format of d; enum at_gemm_layout */
};
AT_OWN_STRUCT(at_gemm_own)

/* Its b_rows and w_columns follow from n and the layout. */
static inline struct at_gemm_own at_gemm_stored(struct at_gemm_own z) {
    z.b_rows = z.layout == AT_GEMM_NK ? z.n : 0;
    z.w_columns = z.layout == AT_GEMM_KN ? z.n : 0;
    return z;
}

/* Ways of being wrong, in the order of the operator's decoys. */
enum at_gemm_fault {
    AT_GEMM_RIGHT = -1,
    AT_GEMM_LAST_K_DROPPED,
    AT_GEMM_K_TAIL_DROPPED,
    AT_GEMM_HIDDEN_K_ADDED,
    AT_GEMM_NEXT_COLUMN,
    AT_GEMM_B_ROWS_SWAPPED,
    AT_GEMM_B_TRANSPOSED,
    AT_GEMM_LAST_COLUMN_ZEROED,
    AT_GEMM_NO_SCALE,
    AT_GEMM_SCALE_TWICE,
    AT_GEMM_FAULTS
};

/* An element in double, its sum before the scale, and that of the magnitudes of its finite products, without the scale
 * too. a, b: the decoded rows of the factors, k values each. */
struct at_gemm_element {
    double value, sum, size;
};
struct at_gemm_element at_gemm_element(const struct at_problem *problem, const double *a, const double *b);

/* An element's sum and value go into the ledger. */
void at_gemm_note(struct at_ledger *ledger, int64_t i, int64_t j, double sum, double value);

/* The constants of a declaration. */
struct at_gemm_declared {
    struct at_order order;
    int64_t length, parts; /* products of a partial sum, partial sums */
    enum at_format wide;   /* of the joined sum and of what the scale makes of it */
};
/* AT_UNSUPPORTED where the unit does not take the problem's format. */
at_status at_gemm_declare(const struct at_problem *problem, const struct at_numerics *numerics,
                          struct at_gemm_declared *out);

/* How far d may be from the exact element; largest: of both rows' magnitudes. declared NULL: the reference's own
 * error. */
double at_gemm_limit(const struct at_problem *problem, const struct at_gemm_declared *declared,
                     const struct at_gemm_element *element, double largest);

at_status at_gemm_model(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0,
                        int64_t row1, struct at_eval *eval);
at_status at_gemm_decoy(const struct at_problem *problem, const struct at_numerics *numerics, int decoy, int64_t row0,
                        int64_t row1, struct at_eval *eval);

/* Rows [first, first + count) of the first factor, all columns of the product in the second: k doubles each, at least one
 * element; free() it. NULL: no memory. */
double *at_gemm_rows(const struct at_problem *problem, int64_t first, int64_t count);
double *at_gemm_columns(const struct at_problem *problem);

extern const struct at_op at_op_gemm;

#endif
