/* Values of the modelled softmax, and intervals that hold every value another correct exponential leads to.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SOFTMAX_MODEL_H
#define AT_SOFTMAX_MODEL_H

#include "softmax_attention/internal.h"

/* mid: what the declared arithmetic gives with a correctly rounded exponential; low <= mid <= high. */
struct at_span {
    double low, mid, high;
};

/* The softmax arithmetic of a declaration. */
struct at_softmax_math {
    int f64;          /* else f32 */
    int approx;       /* ex2.approx */
    enum at_format p; /* P is rounded to this; AT_F64: not at all */
    enum at_format accumulator;
    struct at_order pv;
};
void at_softmax_math_init(const struct at_numerics *numerics, struct at_softmax_math *out);

/* x rounded to the softmax arithmetic. */
double at_softmax_round(const struct at_softmax_math *math, double x);
/* exp(a - b) of two values of the softmax arithmetic, each at most `reach` in magnitude. */
struct at_span at_softmax_exp(const struct at_softmax_math *math, double a, double b, double reach);
/* The weight as the operand of P V. */
struct at_span at_softmax_p(const struct at_softmax_math *math, struct at_span w);
/* x * factor rounded to `format`, factor >= 0. */
struct at_span at_span_scale(enum at_format format, struct at_span x, struct at_span factor);
/* x + y in softmax arithmetic. */
struct at_span at_softmax_add(const struct at_softmax_math *math, struct at_span x, struct at_span y);
/* acc + sum p_t v_t in the order of P V; v has stride sv. intervals = 0: only mid is right. */
struct at_span at_softmax_pv(const struct at_softmax_math *math, int64_t n, const struct at_span *p, const double *v,
                             int64_t sv, struct at_span acc, int intervals, const struct at_watch *watch);
/* acc / l, and m + log l, in softmax arithmetic. */
struct at_span at_softmax_divide(const struct at_softmax_math *math, struct at_span acc, struct at_span l);
struct at_span at_softmax_lse(const struct at_softmax_math *math, double m, struct at_span l);

#endif
