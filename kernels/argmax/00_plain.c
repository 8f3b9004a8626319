/* The largest logit of each row: one after the other.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Numerically: values are compared, a NaN is above all; nothing is rounded.
 * Launch: one thread; no scratch.
 * Limits: none.
 * Source: ours. */
#include "argmax/argmax.h"

#include <math.h>

#include "attest/kernel.h"

static int32_t largest(const struct at_tensor *logits, int64_t first, int64_t n) {
    int32_t best = 0;
    double most = at_tensor_get(logits, first);
    for (int64_t i = 1; i < n && !isnan(most); i++) {
        const double x = at_tensor_get(logits, first + i);
        if (x > most || isnan(x))
            most = x, best = (int32_t)i;
    }
    return best;
}

static int launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const int64_t n = at_argmax_own_of(p).vocabulary;
    int32_t *index = p->tensors[AT_ARGMAX_INDEX].data;
    for (int64_t row = 0; row < p->sizes.tokens; row++)
        index[row] = largest(&p->tensors[AT_ARGMAX_LOGITS], row * n, n);
    return 0;
}

AT_KERNEL(argmax, 00_plain) = {
    .summary = "one logit after the other",
    .source = "ours",
    .numerics = {
        .qk_unit = AT_UNIT_F32,
        .qk_lanes = 1,
        .p = AT_F32,
        .pv_unit = AT_UNIT_F32,
        .pv_chunk = 1,
        .repeats = 1,
        .batch_invariant = 1,
    },
    .launch = launch,
};
