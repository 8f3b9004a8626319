/* Lightning decode problems for tests.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/lightning_problem.h"

#include <math.h>
#include <stdio.h>

static double random_sign(struct at_test_random *random) { return at_test_below(random, 2) ? -1 : 1; }

/* 1 to 2, times 2^low .. 2^(low + n - 1), either sign. */
static double wide(struct at_test_random *random, int low, int n) {
    return random_sign(random) * (1 + at_test_uniform(random)) * exp2((double)(low + at_test_below(random, n)));
}

static void bend(struct at_test_random *random, struct at_problem *p) {
    static const char *const names[] = { "q", "k", "v", "kv" };
    const int way = at_test_below(random, 6), odd = at_test_below(random, 12);
    for (int i = 0; i < 4; i++) {
        const struct at_tensor *t = &p->tensors[at_op_tensor_index(p->op, names[i])];
        const struct at_format_info *f = at_format_info(t->format);
        const int64_t n = at_tensor_count(t);
        for (int64_t at = 0; way == 0 && at < n; at++)
            at_test_set(p, names[i], at, wide(random, f->emin - f->precision, f->emax - f->emin + f->precision));
        for (int64_t at = 0; way == 1 && at < n; at++) /* products about the end of the range, and states there */
            at_test_set(p, names[i], at, wide(random, i == 3 ? 124 : f->emax / 2 - 2, 4));
        if (odd == i)
            at_test_set(p, names[i], (int64_t)(at_test_bits(random) % (uint64_t)n),
                        (double[]){ INFINITY, -INFINITY, NAN }[at_test_below(random, 3)]);
    }
    const int slopes = at_test_below(random, 4);
    for (int64_t h = 0; slopes < 3 && h < p->sizes.h; h++)
        at_test_set(p, "slope", h,
                    slopes == 0   ? wide(random, -8, 15)
                    : slopes == 1 ? 80 + 30 * at_test_uniform(random)
                                  : at_test_normal(random));
}

struct at_built_case at_test_lightning_draw(struct at_test_random *random, int max_d) {
    static const char *const data[] = { "normal",     "same_sign", "uniform",     "heavy_tail", "outlier_channel",
                                        "near_65504", "overflow",  "cancel",      "ties",       "subnormal",
                                        "nonfinite",  "exact",     "random_bits", "adversarial" };
    static const char *const formats[] = { "f32", "f16", "bf16" }, *const outer[] = { "exact", "rounded" };
    char line[256];
    snprintf(line, sizeof line, "lightning_decode b=%d h=%d d=%d e=%d steps=%d outer=%s dtype=%s data=%s seed=%d",
             1 + at_test_below(random, 2), 1 + at_test_below(random, 3),
             1 + at_test_below(random, at_test_below(random, 3) ? max_d : 3), 1 + at_test_below(random, 5),
             1 + at_test_below(random, 4), outer[at_test_below(random, 2)], formats[at_test_below(random, 3)],
             data[at_test_below(random, 14)], at_test_below(random, 1000000));
    struct at_built_case built = at_build_line(line);
    bend(random, &built.data.problem);
    return built;
}

struct at_numerics at_test_lightning_numerics(struct at_test_random *random) {
    static const int units[] = { AT_UNIT_F32, AT_UNIT_F32_FMA, AT_UNIT_F64 };
    static const int exponentials[] = { AT_EXP_LIBM, AT_EXP_EX2_APPROX, AT_EXP_EX2_APPROX_FTZ };
    struct at_numerics n = at_numerics_default();
    n.qk_unit = units[at_test_below(random, 3)];
    n.qk_lanes = 1 << at_test_below(random, 6);
    n.qk_run = at_test_below(random, 3);
    n.qk_tree = at_test_below(random, 2);
    n.fir_fma = at_test_below(random, 2);
    n.exp = exponentials[at_test_below(random, 3)];
    return n;
}
