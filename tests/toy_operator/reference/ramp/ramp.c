/* The toy operator: its definition, limits, decoys and descriptor.
 * SPDX-License-Identifier: Apache-2.0 */
#include "ramp/ramp.h"

#include <math.h>

enum { LINES, PLACES, SLOPE, SCALARS };
enum { RIGHT = -1, NO_RAMP, NEXT_PLACE };

#define PLACE_OF(member) AT_OWN_PLACE(at_ramp_own, member)

/* clang-format off */
static const struct at_scalar own[SCALARS] = {
    [LINES]  = { "lines", AT_SCALAR_SIZE, PLACE_OF(lines), 4, "lines of x", "lines", 1, 1 << 20, .word = "line" },
    [PLACES] = { "places", AT_SCALAR_SIZE, PLACE_OF(places), 8, "places of a line", "places", 1, 1 << 20, .word = "place" },
    [SLOPE]  = { "slope", AT_SCALAR_FLOAT, PLACE_OF(slope), 0.5, "added for each place", "slope", -8, 8 },
};
static const char *const keys[] = { "lines", "places", "slope", "dtype", "data", "seed", "require", "expect", NULL };
static const struct at_tensor_spec tensors[] = {
    { "x", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_OWN(LINES), AT_DIM_OWN(PLACES) }, "values", AT_FILL_ROWS },
    { "y", AT_OUT, AT_FORMAT_DTYPE, { AT_DIM_OWN(LINES), AT_DIM_OWN(PLACES) }, "values on a ramp" },
};
static const struct at_decoy_spec decoys[] = {
    [NO_RAMP]    = { "no_ramp", "nothing is added" },
    [NEXT_PLACE] = { "next_place", "what belongs to the next place is added" },
};
/* clang-format on */

static double exact(const struct at_problem *p, int fault, int64_t i) {
    const struct at_ramp_own z = at_ramp_own_of(p);
    const int64_t place = i % z.places + (fault == NEXT_PLACE);
    return at_tensor_get(&p->tensors[AT_RAMP_X], i) + (fault == NO_RAMP ? 0 : (double)z.slope * (double)place);
}

/* The roundings of the product, of the sum and of y, and the reference's own. */
static double limit(const struct at_problem *p, int64_t i, double value) {
    const struct at_ramp_own z = at_ramp_own_of(p);
    const struct at_format_info *f32 = at_format_info(AT_F32), *out = at_format_info(p->dtype);
    const double product = fabs((double)z.slope) * (double)(i % z.places) * f32->u + f32->eta;
    const double sum = product + (fabs(value) + product) * f32->u;
    const double all = sum + (fabs(value) + sum) * out->u + out->eta + 0x1p-52 * fabs(value);
    return fabs(value) + all <= out->max ? all : (double)INFINITY;
}

static at_status rows_of(const struct at_problem *p, int fault, int64_t row0, int64_t row1, struct at_eval *eval) {
    const int64_t n = at_ramp_own_of(p).places;
    for (int64_t i = row0 * n; i < row1 * n; i++) {
        const double value = exact(p, fault, i);
        if (eval->value[AT_RAMP_Y])
            eval->value[AT_RAMP_Y][i] = value;
        if (eval->limit[AT_RAMP_Y])
            eval->limit[AT_RAMP_Y][i] = isfinite(value) ? limit(p, i, value) : 0;
    }
    return AT_OK;
}

static at_status evaluate(const struct at_problem *p, const struct at_numerics *numerics, int64_t row0, int64_t row1,
                          struct at_eval *eval) {
    (void)numerics;
    return rows_of(p, RIGHT, row0, row1, eval);
}

static at_status decoy(const struct at_problem *p, const struct at_numerics *numerics, int which, int64_t row0,
                       int64_t row1, struct at_eval *eval) {
    (void)numerics;
    return rows_of(p, which, row0, row1, eval);
}

static at_status model(const struct at_problem *p, const struct at_numerics *numerics, int64_t row0, int64_t row1,
                       struct at_eval *eval) {
    const struct at_ramp_own z = at_ramp_own_of(p);
    if (numerics->free_order)
        return AT_FAIL(AT_UNSUPPORTED, "free_order=1: the variant declares no arithmetic to follow");
    for (int64_t i = row0 * z.places; i < row1 * z.places; i++) {
        const float product = z.slope * (float)(i % z.places);
        const float sum = (float)at_tensor_get(&p->tensors[AT_RAMP_X], i) + product;
        if (eval->value[AT_RAMP_Y])
            eval->value[AT_RAMP_Y][i] = at_round(p->dtype, (double)sum);
        if (eval->limit[AT_RAMP_Y])
            eval->limit[AT_RAMP_Y][i] = 0;
    }
    return AT_OK;
}

static at_status check(const struct at_problem *p) {
    const struct at_ramp_own z = at_ramp_own_of(p);
    const struct at_tensor *x = &p->tensors[AT_RAMP_X];
    if (z.lines < 1 || z.places < 1 || z.lines > 1 << 20 || z.places > 1 << 20 || !isfinite((double)z.slope))
        return AT_FAIL(AT_USAGE, "ramp: lines, places, slope are %lld, %lld, %g", (long long)z.lines,
                       (long long)z.places, (double)z.slope);
    if (at_tensor_count(x) != z.lines * z.places || x->format != p->dtype || !x->data)
        return AT_FAIL(AT_USAGE, "ramp: tensor x has %lld elements, wanted %lld with data",
                       (long long)at_tensor_count(x), (long long)(z.lines * z.places));
    return AT_OK;
}

static int64_t rows(const struct at_problem *p) { return at_ramp_own_of(p).lines; }

static void row_span(const struct at_problem *p, int tensor, int64_t row, int64_t *first, int64_t *count) {
    (void)tensor;
    *count = at_ramp_own_of(p).places;
    *first = row * *count;
}

static double row_work(const struct at_problem *p, int64_t row) {
    (void)row;
    return (double)at_ramp_own_of(p).places;
}

const struct at_op at_op_ramp = {
    .name = "ramp",
    .summary = "y = x + slope * place",
    .source = "ours",
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .decoys = decoys,
    .n_decoys = sizeof decoys / sizeof *decoys,
    .kind = AT_KIND_ROWS,
    .own = own,
    .n_own = SCALARS,
    .keys = keys,
    .batch = AT_DIM_OWN(LINES),
    .check = check,
    .rows = rows,
    .row_span = row_span,
    .row_work = row_work,
    .evaluate = evaluate,
    .model = model,
    .decoy = decoy,
};
