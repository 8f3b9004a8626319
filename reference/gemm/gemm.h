/* A product of matrices: d = round(f * (a b^T) + bias), or of a matrix and weights, d = round(f * (a w) + bias).
 * SPDX-License-Identifier: Apache-2.0
 *
 * a [m k] and the second factor hold f32, f16, bf16, e4m3 or e5m2, one format for both; d [m n] is f32, f16 or bf16
 * (out). The second factor is b [n k], the summed dimension innermost (layout nk), or w [k n], as weights of a decoder are
 * stored (layout kn): the other one is absent. b below is either, by columns of the product. m, n and k may be 0: a sum of
 * nothing is 0.
 *
 * What follows the sum is what products of 8 bits have (source 004, 1.2, whose kernel is an example of CUTLASS; cuBLASLt's
 * descriptors have the same scales, bias and maximum):
 *   f       scale * scale_a * scale_b. scale comes with the call; scale_a and scale_b are the scales of the two factors, each an
 *           f32 that the kernel reads; absent without them (scales = 0), and then 1.
 *   bias    [n], one a column, in the format of d or f32; added to the scaled sum; absent: nothing is added.
 *   amax    max |f sum + bias| over all of d, one f32, of the values before they are rounded to the format of d: that is what the
 *           source's kernel takes, and where a scale of an 8-bit d is applied behind it. A NaN in d makes it NaN; of
 *           nothing it is 0. An output of its own, absent unless it is asked for.
 *
 * Declared arithmetic (the fields of at_numerics that are read):
 *   qk_unit, qk_lanes, qk_run, qk_tree   how the k products of an element, in ascending order, are summed
 *   split    products of one partial sum, which starts from 0; partial sums are added in ascending order in f32 (f64
 *            beside qk_unit=f64), to nearest: what promotion of an accumulator with few bits is; 0: one sum
 *   guard    of an f16 accumulator
 *   the sum is f32 from there on (f64 beside qk_unit=f64). f is scale * scale_a, then * scale_b; one rounding each, one for
 *   the product with f, one for the addition of bias, one for d
 *
 * Rows of the descriptor: those of d, then one more that is amax, where it is asked for.
 *
 * Ledger: stages score (the sum before the scale), qk_acc (each step of a partial sum; step counts from its beginning)
 * and out; element (i, j) is that of query i and key j. */
#ifndef AT_GEMM_H
#define AT_GEMM_H

#include "attest/op.h"
#include "tensor_core/accumulate.h"

enum { AT_GEMM_A, AT_GEMM_B, AT_GEMM_W, AT_GEMM_SCALE_A, AT_GEMM_SCALE_B, AT_GEMM_BIAS, AT_GEMM_D, AT_GEMM_AMAX };
enum at_gemm_layout { AT_GEMM_NK, AT_GEMM_KN };
enum at_gemm_bias { AT_GEMM_BIAS_NONE, AT_GEMM_BIAS_OUT, AT_GEMM_BIAS_F32 };

/* Sizes and parameters of its own. */
struct at_gemm_own {
    int64_t m, n, k;           /* rows, columns, products of an element */
    int64_t b_rows, w_columns; /* n or 0, by the layout: at_gemm_stored */
    int64_t scales, amax;      /* 1: there are scale_a and scale_b; there is amax */
    int64_t bias_columns;      /* n or 0, by the bias: at_gemm_stored */
    int32_t out, layout, bias; /* enum at_format of d; enum at_gemm_layout; enum at_gemm_bias */
    float scale_a, scale_b;    /* what a case fills the tensors with: kernels read those */
};
AT_OWN_STRUCT(at_gemm_own)

/* Its b_rows, w_columns and bias_columns follow from n, the layout and the bias. */
static inline struct at_gemm_own at_gemm_stored(struct at_gemm_own z) {
    z.b_rows = z.layout == AT_GEMM_NK ? z.n : 0;
    z.w_columns = z.layout == AT_GEMM_KN ? z.n : 0;
    z.bias_columns = z.bias != AT_GEMM_BIAS_NONE ? z.n : 0;
    return z;
}

/* Nothing follows the sum but scale: no scale_a and scale_b, no bias, no amax. */
static inline int at_gemm_is_plain(const struct at_problem *problem) {
    const struct at_gemm_own z = at_gemm_own_of(problem);
    return !z.scales && z.bias == AT_GEMM_BIAS_NONE && !z.amax;
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
    AT_GEMM_NO_SCALE_A,
    AT_GEMM_NO_SCALE_B,
    AT_GEMM_SCALE_A_FOR_B,
    AT_GEMM_SCALE_B_FOR_A,
    AT_GEMM_NO_BIAS,
    AT_GEMM_NEXT_BIAS,
    AT_GEMM_BIAS_BY_ROW,
    AT_GEMM_BIAS_SCALED,
    AT_GEMM_AMAX_ROUNDED,
    AT_GEMM_AMAX_SIGNED,
    AT_GEMM_AMAX_OF_NEGATIVES,
    AT_GEMM_AMAX_BEFORE_BIAS,
    AT_GEMM_AMAX_LAST_ROW_LEFT_OUT,
    AT_GEMM_FAULTS
};

/* scale * scale_a * scale_b, and what is added to column j, in double. */
double at_gemm_factor(const struct at_problem *problem);
double at_gemm_addend(const struct at_problem *problem, int64_t j);

/* An element of column j in double, its sum before the scale, and that of the magnitudes of its finite products, without the
 * scale too. a, b: the decoded rows of the factors, k values each. */
struct at_gemm_element {
    double value, sum, size, addend;
    int vanishing; /* an infinity is multiplied by a number that tf32 has as 0, or may have */
};
struct at_gemm_element at_gemm_element(const struct at_problem *problem, const double *a, const double *b, int64_t j);

/* Elements of as many neighbouring columns at once: the bits of at_gemm_element, several times as fast. */
enum { AT_GEMM_ABREAST = 8 };
/* The columns from j on side by side, abreast[l * AT_GEMM_ABREAST + c]; 0 behind the last. b: all columns. */
void at_gemm_lay_abreast(const struct at_problem *problem, const double *b, int64_t j, double *abreast);
/* out[c]: of row a and column j + c, as far as there are so many. */
void at_gemm_elements(const struct at_problem *problem, const double *a, const double *b, const double *abreast,
                      int64_t j, struct at_gemm_element out[AT_GEMM_ABREAST]);

/* An element's sum and value go into the ledger. */
void at_gemm_note(struct at_ledger *ledger, int64_t i, int64_t j, double sum, double value);

/* The constants of a declaration. */
struct at_gemm_declared {
    struct at_order order;
    int64_t length, parts; /* products of a partial sum, partial sums */
    enum at_format wide;   /* of the joined sum and of what the scale and the bias make of it */
    double factor;         /* scale * scale_a * scale_b as that arithmetic has it */
};
/* AT_UNSUPPORTED where the unit does not take the problem's format. */
at_status at_gemm_declare(const struct at_problem *problem, const struct at_numerics *numerics,
                          struct at_gemm_declared *out);

/* How far a kernel's value may be from the exact element before it is rounded to the format of d, and d itself; largest: of
 * both rows' magnitudes. declared NULL: the reference's own error. */
double at_gemm_error(const struct at_problem *problem, const struct at_gemm_declared *declared,
                     const struct at_gemm_element *element, double largest);
double at_gemm_limit(const struct at_problem *problem, const struct at_gemm_declared *declared,
                     const struct at_gemm_element *element, double largest);

/* The largest magnitude so far. A NaN stays; begins with all 0. */
struct at_gemm_most {
    double value;        /* max |x| */
    double least, upper; /* where it can be by the elements' errors: max (|x| - e), max (|x| + e) */
    int unlimited;       /* some element has no limit */
};
void at_gemm_raise(struct at_gemm_most *most, double value, double error);
/* How far amax may be from most->value. */
double at_gemm_amax_limit(const struct at_gemm_declared *declared, const struct at_gemm_most *most);

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
