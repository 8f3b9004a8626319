/* The states and answers that declared arithmetic gives, to the bit.
 * SPDX-License-Identifier: Apache-2.0
 *
 * All but the decay is one value, and so is the decay by ex2 (special/special.h). libm's exponential is within one unit in the
 * last place of the exact one, so a kernel has the correctly rounded decay or a neighbour of it, the same one wherever it
 * decays the same head: the steps are made with each, and the interval (eval->limit) holds what they give. */
#include <math.h>
#include <stdlib.h>

#include "lightning_decode/lightning_decode.h"
#include "special/special.h"

enum { DECAYS = 4 };

/* Decays that a kernel may have, the modelled one first. */
static int decays_of(const struct at_lightning_declared *declared, double slope, float out[DECAYS]) {
    const float x = -(float)slope;
    int n = 0, exponent;
    if (declared->exp != AT_EXP_LIBM) {
        const int ftz = declared->exp == AT_EXP_EX2_APPROX_FTZ;
        out[n++] = (float)at_special_value(AT_SPECIAL_ex2, ftz, (double)(x * 0x1.715476p0f));
        return n;
    }
    const float near = (float)exp((double)x);
    out[n++] = near;
    if (x == 0 || !isfinite(x) || x < -120.0f || x > 89.0f) /* 2^-173 is 0, and 2^128.4 infinite, for every libm */
        return n;
    out[n++] = nextafterf(near, INFINITY);
    const float below = nextafterf(near, 0);
    if (near > 0)
        out[n++] = below;
    if (frexpf(near, &exponent) == 0.5f) /* units below a power of two are half as long */
        out[n++] = nextafterf(below, 0);
    return n;
}

/* What the kernel has of a head. */
struct run {
    const struct at_problem *problem;
    const struct at_lightning_declared *declared;
    struct at_eval *eval;
    double *x; /* [d] a column of the state */
};

/* The first decay gives values, the others widen the interval about them. */
static void keep(const struct run *run, int first, int tensor, int64_t i, double x) {
    double *value = run->eval->value[tensor], *limit = run->eval->limit[tensor];
    if (first) {
        if (value)
            value[i] = x;
        if (limit)
            limit[i] = 0;
    } else if (value && limit && isfinite(value[i])) {
        const double off = isfinite(x) ? fabs(x - value[i]) : (double)INFINITY;
        limit[i] = fmax(limit[i], off);
    }
}

static float step(const struct at_lightning_declared *declared, float decay, float x, float t) {
    return declared->fused ? fmaf(decay, x, t) : decay * x + t;
}

static void column(const struct run *run, const struct at_lightning_head *a, float decay, int first, int64_t j) {
    double *x = run->x;
    const enum at_format format = run->problem->dtype;
    for (int64_t i = 0; i < a->d; i++)
        x[i] = a->state[i * a->e + j];
    for (int64_t s = 0; s < a->steps; s++) {
        const double v = a->v[s * a->e + j];
        for (int64_t i = 0; i < a->d; i++) {
            const double t = at_lightning_product_declared(run->problem, a->k[s * a->d + i], v);
            x[i] = (double)step(run->declared, decay, (float)x[i], (float)t);
        }
        const double sum = at_accumulate(&run->declared->order, a->d, a->q + s * a->d, 1, x, 1, 0, NULL);
        keep(run, first, AT_LIGHTNING_O, (a->row * a->steps + s) * a->e + j, at_round(format, sum));
    }
    for (int64_t i = 0; i < a->d; i++)
        keep(run, first, AT_LIGHTNING_KV, (a->row * a->d + i) * a->e + j, x[i]);
}

at_status at_lightning_model(const struct at_problem *p, const struct at_numerics *numerics, int64_t row0, int64_t row1,
                             struct at_eval *eval) {
    at_status status = AT_OK;
    struct at_lightning_declared declared;
    struct at_lightning_head a;
    float decay[DECAYS];
    AT_TRY(at_lightning_declare(p, numerics, &declared));
    if (numerics->free_order)
        return AT_FAIL(AT_UNSUPPORTED, "free_order=1: the variant declares no order of summation to follow");
    AT_TRY(at_lightning_head_init(p, &a));
    struct run run = { p, &declared, eval, calloc((size_t)a.d, sizeof *run.x) };
    if (!run.x)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for a column of %lld", (long long)a.d);
    for (int64_t row = row0; row < row1; row++) {
        at_lightning_load(p, row, AT_LIGHTNING_RIGHT, &a);
        const int n = decays_of(&declared, a.slope, decay);
        for (int i = 0; i < n; i++)
            for (int64_t j = 0; j < a.e; j++)
                column(&run, &a, decay[i], i == 0, j);
    }
out:
    free(run.x);
    at_lightning_head_release(&a);
    return status;
}
