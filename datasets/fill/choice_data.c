/* Rows of logits of which one place is chosen: where the largest lies, how many equal it, what else is there.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Rows take turns: row i is of kind i mod the number of kinds. */
#include <math.h>

#include "datasets/fill/data.h"
#include "datasets/fill/families.h"

/* A row's own sequence: places are drawn from it. */
static struct at_random row_random(const struct at_data *data, uint64_t stream, const char *name, int64_t row) {
    return (struct at_random){ data->seed, stream ^ at_random_stream(name, (uint64_t)row) };
}

static void fill_row(int64_t n, double value, double *out) {
    for (int64_t c = 0; c < n; c++)
        out[c] = value;
}

AT_FAMILY_NORM(at_norm_level) {
    const double most = at_format_info(data->dtype)->max;
    const double values[] = { 0, 0, -INFINITY, NAN, INFINITY, -most, most, 1.5 };
    enum { KINDS = sizeof values / sizeof *values, BOTH_ZEROS = 1 };
    (void)stream, (void)part;
    fill_row(n, values[row % KINDS], out);
    for (int64_t c = 0; row % KINDS == BOTH_ZEROS && c < n; c += 3)
        out[c] = -0.0;
}

AT_FAMILY_NORM(at_norm_peaks) {
    enum { KINDS = 6 };
    const struct at_random place = row_random(data, stream, "peaks", row);
    const int64_t a = at_random_below(&place, 0, n), b = at_random_below(&place, 1, n);
    const double most = 8, less = most - at_ulp(data->dtype, most) / 2; /* below a power of two the grid is finer */
    at_norm_normal(data, stream, part, row, n, out);
    switch (row % KINDS) {
    case 0:
        out[0] = most;
        return;
    case 1:
        out[n - 1] = most;
        return;
    case 2:
        out[a] = out[b] = most;
        return;
    case 3:
        out[a < b ? a : b] = less;
        out[a < b ? b : a] = most;
        return;
    case 4:
        for (int64_t c = a % 33; c < n; c += 33)
            out[c] = most;
        return;
    default:
        out[n - 1] = out[n > 1 ? n - 2 : 0] = most;
    }
}

AT_FAMILY_NORM(at_norm_specials) {
    enum { KINDS = 8 };
    const struct at_random place = row_random(data, stream, "specials", row);
    const int64_t a = at_random_below(&place, 0, n), b = at_random_below(&place, 1, n), kind = row % KINDS;
    at_norm_normal(data, stream, part, row, n, out);
    if (kind >= 4)
        fill_row(n, -INFINITY, out);
    switch (kind) {
    case 0: /* of two NaNs the first */
        out[a] = out[b] = NAN;
        return;
    case 1: /* a NaN behind or before an infinity */
        out[a] = INFINITY;
        out[b] = NAN;
        return;
    case 2:
        out[n - 1] = copysign(NAN, -1);
        return;
    case 3:
        out[a] = out[b] = INFINITY;
        return;
    case 4:
        out[a] = -1;
        return;
    case 5:
        out[a] = NAN;
        return;
    case 6:
        out[a] = out[b] = -at_format_info(data->dtype)->max;
        return;
    default:
        out[n - 1] = 0;
    }
}

void at_choice_uniforms(const struct at_data *data, int64_t n, float *out) {
    const struct at_random random = at_data_random(data, "uniform");
    const double unit = 0x1p24;
    for (int64_t i = 0; i < n; i++) {
        const double u = floor(at_random_uniform(&random, (uint64_t)i) * unit) / unit;
        const double turn[8] = { u, 0.5, u, 0, 0.25, u, 1 - 1 / unit, u };
        out[i] = (float)turn[i % 8];
    }
}
