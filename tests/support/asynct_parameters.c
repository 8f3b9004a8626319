/* Random parameters and random declarations for tests of AsyncT attention.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/asynct_parameters.h"

#include <math.h>

#include "asynct_attention/declared.h"

static void set_taps(struct at_problem *problem, int64_t head) {
    const int64_t taps = problem->sizes.taps;
    double sigma = at_test_get(problem, "sigma", head);
    for (int64_t j = 0; j < taps; j++)
        at_test_set(problem, "taps", head * taps + j, (j == 0) - sigma / (double)taps);
}

void at_test_asynct_sigma(struct at_problem *problem, double sigma) {
    at_test_set_all(problem, "sigma", sigma);
    for (int64_t h = 0; h < problem->sizes.h; h++)
        set_taps(problem, h);
}

void at_test_asynct_parameters(struct at_test_random *random, struct at_problem *problem) {
    static const float ends[][2] = { { 0, 1 },     { 0, 0.25f },      { 0.125f, 2 },
                                     { -1, 0.5f }, { -0.5f, -0.25f }, { 0, INFINITY } };
    const int gate = at_test_below(random, 6);
    struct at_params *params = &problem->params;
    params->relu_pre = at_test_below(random, 2);
    params->fir_form = at_test_below(random, 2);
    params->edge = params->fir_form == AT_FIR_POOLED && at_test_below(random, 2);
    params->clip_min = ends[gate][0];
    params->clip_max = ends[gate][1];
    for (int64_t h = 0; h < problem->sizes.h; h++) {
        at_test_set(problem, "sigma", h, 3 * at_test_uniform(random) - 0.5);
        at_test_set(problem, "gamma", h, at_test_below(random, 3) ? at_test_normal(random) : 1.0);
        set_taps(problem, h);
        for (int64_t j = 0; params->fir_form == AT_FIR_TAPS && j < problem->sizes.taps; j++)
            at_test_set(problem, "taps", h * problem->sizes.taps + j, at_test_normal(random));
    }
}

static struct at_numerics drawn(struct at_test_random *random, enum at_format dtype) {
    static const int p[] = { AT_F32, AT_F32, AT_F16, AT_BF16, AT_BF16, AT_TF32, AT_E4M3, AT_F64 };
    struct at_numerics n = at_numerics_default();
    /* f16 has units that the others lack: it gets more of those */
    const int units = AT_UNIT_F16_FMA + 1, narrow = dtype == AT_F16 && at_test_below(random, 2) ? AT_UNIT_TC_F32 : 0;
    n.qk_unit = narrow + at_test_below(random, units - narrow);
    n.pv_unit = narrow + at_test_below(random, units - narrow);
    if (dtype == AT_F32 && at_test_below(random, 2))
        n.qk_unit = at_test_below(random, 2) ? AT_UNIT_TC_TF32 : AT_UNIT_TC_TF32_RNA;
    if (dtype == AT_F32 && at_test_below(random, 2))
        n.pv_unit = at_test_below(random, 2) ? AT_UNIT_TC_TF32 : AT_UNIT_TC_TF32_RNA;
    const int qk_tensor = at_unit_rule(n.qk_unit) != NULL, pv_tensor = at_unit_rule(n.pv_unit) != NULL;
    if (!qk_tensor) {
        n.qk_lanes = 1 << at_test_below(random, 4);
        n.qk_run = at_test_below(random, 3);
        n.qk_tree = at_test_below(random, 2);
    }
    if (qk_tensor && !at_unit_is_tf32(n.qk_unit) && at_test_below(random, 2))
        n.qk_run = 8;
    n.pv_chunk = pv_tensor ? 8 << at_test_below(random, 2) : 1;
    n.split = n.pv_chunk * at_test_below(random, 3);
    n.pv_zero = pv_tensor ? AT_PV_ZERO_MULTIPLIED : at_test_below(random, 2);
    n.pv_spread = n.pv_chunk == 16 && !at_unit_is_tf32(n.pv_unit) && !n.split && at_test_below(random, 2)
                      ? 32 << at_test_below(random, 2)
                      : 0;
    n.scale_on = at_test_below(random, AT_SCALE_ON_TAPS + 1);
    n.fir_order = at_test_below(random, 2);
    n.fir_fma = at_test_below(random, 2);
    n.p = at_test_below(random, 2) ? (int)dtype : p[at_test_below(random, 8)];
    n.gamma_on = at_test_below(random, 3);
    n.clamp = at_test_below(random, 2);
    n.splits = n.split ? at_test_below(random, 4) : 0;
    return n;
}

struct at_numerics at_test_asynct_numerics(struct at_test_random *random, const struct at_problem *problem) {
    for (;;) {
        struct at_numerics n = drawn(random, problem->dtype);
        struct at_asynct_formats formats;
        if (at_asynct_declared(problem, &n, &formats) == AT_OK)
            return n;
        at_error_clear();
    }
}
