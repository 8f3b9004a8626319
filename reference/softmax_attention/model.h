/* Values of the modelled softmax, and intervals that hold every value another correct exponential leads to.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SOFTMAX_MODEL_H
#define AT_SOFTMAX_MODEL_H

#include "softmax_attention/internal.h"

/* mid: what the declared arithmetic gives, with exp and log correctly rounded where they are libm's; low <= mid <= high. */
struct at_span {
    double low, mid, high;
};

/* The softmax arithmetic of a declaration. */
struct at_softmax_math {
    int f64;          /* else f32 */
    int ordered;      /* the order of the sum of weights is declared */
    enum at_format p; /* P is rounded to this; AT_F64: not at all */
    enum at_format accumulator;
    struct at_order pv;
    const struct at_numerics *numerics;
    int bent;                /* scores are more than a product: they are whole before the exponential's argument */
    double score_scale;      /* of sums over q.k, before the maximum */
    float scale, log2_scale; /* of what the maximum is of, and times log2(e): exp_arg = fma */
    double cap, to_cap;      /* softcap; what makes a sum over q.k the argument of tanh */
};
void at_softmax_math_init(const struct at_problem *problem, const struct at_numerics *numerics,
                          struct at_softmax_math *out);

/* x rounded to the softmax arithmetic. */
double at_softmax_round(const struct at_softmax_math *math, double x);
/* What the sum over q.k of a key becomes before the maximum: scaled and rounded, or itself where the exponential's argument
 * has the scale; capped and biased, key t of the form's row. A range where the cap's tanh is libm's. */
struct at_span at_softmax_score(const struct at_softmax_math *math, const struct at_softmax_form *form, double dot,
                                int64_t t);
/* The larger of two maxima; a NaN does not raise one. */
struct at_span at_softmax_larger(struct at_span m, struct at_span s);
/* The weight of score s, the i-th of its split, beside the maximum m, which is no less; m = -inf: beside 0. */
struct at_span at_softmax_weight(const struct at_softmax_math *math, struct at_span s, struct at_span m, int64_t i);
/* What rescales sums beside the maximum `old` when it becomes `now`; exactly 1 while it stays. */
struct at_span at_softmax_factor(const struct at_softmax_math *math, struct at_span old, struct at_span now);
/* That factor as sums of P V take it. */
struct at_span at_softmax_sum_factor(const struct at_softmax_math *math, struct at_span factor);
/* The weight as the operand of P V. */
struct at_span at_softmax_p(const struct at_softmax_math *math, struct at_span w);
/* x * factor rounded to `format`, factor >= 0. */
struct at_span at_span_scale(enum at_format format, struct at_span x, struct at_span factor);
/* x * factor and x + y in softmax arithmetic, factor >= 0. Of sums of weights whose order is not declared the ends stay
 * as they are in double: at_softmax_any_order() rounds them once. */
struct at_span at_softmax_scale_sum(const struct at_softmax_math *math, struct at_span x, struct at_span factor);
struct at_span at_softmax_add_sum(const struct at_softmax_math *math, struct at_span x, struct at_span y);
/* A sum of weights that went through `depth` additions and rescalings in some order. */
struct at_span at_softmax_any_order(const struct at_softmax_math *math, struct at_span sum, int64_t depth);
/* x + y in softmax arithmetic. */
struct at_span at_softmax_add(const struct at_softmax_math *math, struct at_span x, struct at_span y);
/* acc + sum p_t v_t in the order of P V; v has stride sv. intervals = 0: only mid is right. */
struct at_span at_softmax_pv(const struct at_softmax_math *math, int64_t n, const struct at_span *p, const double *v,
                             int64_t sv, struct at_span acc, int intervals, const struct at_watch *watch);
/* acc / l, and m + log l, as declared. */
struct at_span at_softmax_divide(const struct at_softmax_math *math, struct at_span acc, struct at_span l);
struct at_span at_softmax_lse(const struct at_softmax_math *math, struct at_span m, struct at_span l);

#endif
