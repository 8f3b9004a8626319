/* max(gate, 0) * up: its definition, limits, model, decoys and descriptor.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The maximum is exact, so that limits are those of the product (gated/gated.c). A NaN that the declared clamp makes 0 has no
 * limit. */
#include "reglu/reglu.h"

#include <math.h>

/* clang-format off */
static const struct at_decoy_spec decoys[AT_REGLU_FAULTS] = {
    AT_GATED_DECOYS,
    [AT_REGLU_NOT_RECTIFIED] = { "not_rectified", "gate * up" },
    [AT_REGLU_UP_RECTIFIED]  = { "up_rectified", "gate * max(up, 0)" },
    [AT_REGLU_GATE_AS_MASK]  = { "gate_as_mask", "up where the gate is above 0, not times the gate" },
    [AT_REGLU_SIGN_LOST]     = { "sign_lost", "|gate| * up" },
};
/* clang-format on */

static double rectified(double x) { return x > 0 ? x : x <= 0 ? 0 : x; }

static struct at_gated_bounded activation(const struct at_numerics *n, double g) {
    const int laundered = n && n->clamp == AT_CLAMP_FMINMAX && isnan(g);
    return (struct at_gated_bounded){ rectified(g), laundered ? (double)INFINITY : 0 };
}

static double faulty(int fault, double g, double up) {
    switch (fault) {
    case AT_REGLU_NOT_RECTIFIED:
        return g * up;
    case AT_REGLU_UP_RECTIFIED:
        return g * rectified(up);
    case AT_REGLU_GATE_AS_MASK:
        return isnan(g) ? g : (g > 0) * up;
    case AT_REGLU_SIGN_LOST:
        return fabs(g) * up;
    default:
        return rectified(g) * up;
    }
}

static struct at_gated_model model_product(const struct at_numerics *n, float g, float up) {
    const float a = isnan(g) && n->clamp == AT_CLAMP_FMINMAX ? 0.0f : (float)rectified((double)g), y = a * up;
    return (struct at_gated_model){ y, y, y };
}

static const struct at_gated_function function = { activation, faulty, model_product };
AT_GATED_EVALUATIONS(function)

const struct at_op at_op_reglu = {
    .name = "reglu",
    .summary = "y = max(gate, 0) * up",
    .source = "000 §7.3",
    .decoys = decoys,
    .n_decoys = AT_REGLU_FAULTS,
    .declares = AT_DECLARES(clamp),
    AT_GATED_FUNCTIONS,
};
