/* How small a uniform scale error may be and still be seen.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/judge/resolution.h"

#include <math.h>

/* From x away from zero until the modelled value would have been another one, with its interval. */
static double off_the_model(enum at_format format, double x, double limit, double model, double interval) {
    const double ulp = at_ulp(format, model), boundary = fabs(model) + ulp / 2;
    const double rest = fmax(0, limit - ulp / 2);
    const double crossing = fmax(0, boundary - fabs(x)) + rest;
    return (crossing < ulp ? crossing : ulp) + 2 * interval;
}

double at_resolution(const struct at_answer *a, const struct at_judgement *j, int t, double scale) {
    const enum at_format format = a->problem->tensors[t].format;
    double smallest = scale;
    for (int64_t i = 0; i < a->count[t]; i++) {
        const double x = a->value[t][i], limit = j->limit[t][i];
        const int modelled = j->has_model && (!j->modelled[t] || j->modelled[t][i]);
        if (!isfinite(x) || x == 0 || (modelled && !isfinite(j->model[t][i])))
            continue;
        const double seen = modelled ? off_the_model(format, x, limit, j->model[t][i], j->interval[t][i]) : 2 * limit;
        smallest = fmin(smallest, seen / fabs(x));
    }
    return smallest < INFINITY ? smallest : NAN;
}
