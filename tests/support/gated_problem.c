/* Problems of gated products for tests.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/gated_problem.h"

#include <math.h>
#include <stdlib.h>

#include "attest/op.h"

void at_test_gated_problem(const char *op, enum at_halves halves, enum at_format dtype, int64_t tokens,
                           int64_t channels, struct at_test_problem *out) {
    struct at_problem *p = &out->problem;
    at_problem_init(p, at_op_find(op), dtype);
    p->sizes.tokens = tokens;
    p->sizes.channels = channels;
    at_scalar_set(p, at_op_scalar(p->op, "halves"), halves);
    p->op->complete(p, 0);
    at_problem_shape(p);
    char *next = out->memory = calloc((size_t)(2 * tokens * channels) + 1, 4);
    if (!next)
        abort();
    for (int t = 0; t < AT_GATED_Y; t++) {
        p->tensors[t].data = p->tensors[t].rank ? next : NULL;
        next += at_tensor_bytes(&p->tensors[t]);
    }
}

void at_test_gated_set(struct at_problem *p, int64_t i, double gate, double up) {
    const int64_t n = p->sizes.channels, row = i / n, c = i % n;
    if (at_gated_own_of(p).halves == AT_HALVES_APART) {
        at_test_set(p, "gate", i, gate);
        at_test_set(p, "up", i, up);
    } else {
        at_test_set(p, "gate_up", 2 * row * n + c, gate);
        at_test_set(p, "gate_up", (2 * row + 1) * n + c, up);
    }
}

double at_test_gated_draw(struct at_test_random *random) {
    const double sign = at_test_below(random, 2) ? -1 : 1, x = 1 + at_test_uniform(random);
    switch (at_test_below(random, 8)) {
    case 0: /* around the ends of f32's exponential */
        return sign * 100 * at_test_uniform(random);
    case 1: /* every exponent of f32 */
        return sign * ldexp(x, at_test_below(random, 277) - 149);
    case 2: {
        static const double odd[] = { 0, (double)INFINITY, (double)NAN, 0x1p-149, 65504, 0x1p-24 };
        return sign * odd[at_test_below(random, 6)];
    }
    default:
        return sign * 4 * at_test_normal(random);
    }
}
