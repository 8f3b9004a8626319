/* What a study adds up: the products of q.k and of p.v, taken from cases.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_STUDY_INPUTS_H
#define AT_STUDY_INPUTS_H

#include "datasets/language/case.h"

/* name, meaning */
/* clang-format off */
#define AT_STUDY_PRODUCT_LIST(X)                                                                        \
    X(qk,      "q.k, before the scale: d products")                                                     \
    X(pv,      "p.v: a product a key; softmax: p = exp(s - max), the sum is divided by sum p at its end") \
    X(pv_unit, "softmax's p.v with p = exp(s - max) / sum p: divided before it is rounded")
/* clang-format on */
enum at_study_product {
#define X(name, meaning) AT_STUDY_##name,
    AT_STUDY_PRODUCT_LIST(X)
#undef X
        AT_STUDY_PRODUCTS
};
const char *at_study_product_name(enum at_study_product product);

/* A built case, with the weights p of every row. */
struct at_study_input {
    struct at_case_list cases;
    struct at_case_data data;
    int softmax;
    int64_t rows;     /* query tokens x heads */
    int64_t max_keys; /* most that a row sees */
    double *p;        /* [rows max_keys], as the definition has them: softmax's add up to 1 */
    double *weight;   /* softmax: [rows max_keys], exp(s - max); NULL otherwise */
    double *total;    /* softmax: [rows], sum of a row's weights */
    double score_max; /* largest finite |q.k| */
};

/* Builds the one case of `line` (dtype f16) and evaluates its weights exactly. */
at_status at_study_input_open(const char *line, struct at_study_input *input);
void at_study_input_release(struct at_study_input *input);

/* Is there such a product: pv_unit belongs to softmax alone. */
int at_study_has(const struct at_study_input *input, enum at_study_product product);
/* Different sums there are: rows x keys of q.k, rows x channels of p.v. */
int64_t at_study_sum_count(const struct at_study_input *input, enum at_study_product product);
/* Most products of one sum: room that a and b need. */
int64_t at_study_sum_length(const struct at_study_input *input, enum at_study_product product);

/* One sum of f16 operands. */
struct at_study_sum {
    int64_t n;
    double divisor; /* what the finished sum is divided by; 1 unless the weights are softmax's and not normalised */
    struct at_place place; /* k: the key (qk) or the channel (pv) */
};
/* Sum i, 0 <= i < count, into a and b (n values each). Neighbouring i are far apart in the problem: the first few make
 * a sample. */
void at_study_sum_at(const struct at_study_input *input, enum at_study_product product, int64_t i, double *a, double *b,
                     struct at_study_sum *sum);

/* sum a b as if exact, rounded to double: products of 16-bit and narrower formats are exact, their sum is compensated.
 * *magnitude: sum |a b|. Both NaN or infinite when an operand is. */
double at_study_exact(int64_t n, const double *a, const double *b, double *magnitude);
/* Rounds `values` to e4m3 after multiplying them with the power of two that brings the largest into (224, 448], as
 * quantised inputs are; gives that power. Values that are not finite stay so; all zero: 1. */
double at_study_to_e4m3(int64_t n, double *values);

#endif
