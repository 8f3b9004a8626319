/* Gated products a second time, in 300-bit arithmetic.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Other means than the reference's: SiLU(g) up as g up over 1 + e^-g, the product first; max(g, 0) as a choice by sign. Halves that
 * lie together are found from the byte where a row begins. Infinities and NaN go through MPFR's own arithmetic. */
#include "tests/oracle/gated_mpfr.h"

#include <math.h>
#include <string.h>

#include <mpfr.h>

#include "attest/op.h"

enum { BITS = 300 };
static const double far_out =
    1e6; /* e^far_out stands for e^-g of a g that is further out: y is below 10^-434000 either way */

/* A number of f32, f16 or bf16 at a byte, by sign, exponent and fraction. */
static double decoded(enum at_format format, const char *at) {
    const int wide = format == AT_F32, half = format == AT_F16, fraction_bits = wide ? 23 : half ? 10 : 7;
    const int least = wide ? -149 : half ? -24 : -133;
    uint32_t code = 0;
    memcpy(&code, at, wide ? 4 : 2);
    const uint32_t top = code >> fraction_bits & (half ? 31u : 255u), rest = code & ((1u << fraction_bits) - 1);
    double size = top ? ldexp(rest + (1u << fraction_bits), least + (int)top - 1) : ldexp(rest, least);
    if (top == (half ? 31u : 255u))
        size = rest ? (double)NAN : (double)INFINITY;
    return code >> (wide ? 31 : 15) ? -size : size;
}

static const char *bytes_of(const struct at_problem *problem, const char *name) {
    for (int t = 0; t < problem->op->n_tensors; t++)
        if (strcmp(problem->op->tensors[t].name, name) == 0)
            return problem->tensors[t].data;
    return NULL;
}

static void find(const struct at_problem *problem, int64_t i, double *gate, double *up) {
    const int64_t size = problem->dtype == AT_F32 ? 4 : 2, row = problem->sizes.channels * size, at = i * size;
    const char *both = bytes_of(problem, "gate_up");
    if (both) {
        const char *begin = both + at / row * (row + row);
        *gate = decoded(problem->dtype, begin + at % row);
        *up = decoded(problem->dtype, begin + row + at % row);
    } else {
        *gate = decoded(problem->dtype, bytes_of(problem, "gate") + at);
        *up = decoded(problem->dtype, bytes_of(problem, "up") + at);
    }
}

double at_gated_mpfr(const struct at_problem *problem, int64_t i, double value, double *off) {
    double gate, up, want;
    mpfr_t y, e;
    mpfr_inits2(BITS, y, e, (mpfr_ptr)NULL);
    find(problem, i, &gate, &up);
    if (strcmp(problem->op->name, "reglu") == 0) {
        mpfr_set_d(y, gate, MPFR_RNDN);
        if (!mpfr_nan_p(y) && mpfr_sgn(y) <= 0)
            mpfr_set_zero(y, 1);
        mpfr_mul_d(y, y, up, MPFR_RNDN);
    } else {
        mpfr_set_d(y, gate, MPFR_RNDN);
        mpfr_mul_d(y, y, up, MPFR_RNDN);
        mpfr_set_d(e, isfinite(gate) && gate < -far_out ? far_out : -gate, MPFR_RNDN);
        mpfr_exp(e, e, MPFR_RNDN);
        mpfr_add_ui(e, e, 1, MPFR_RNDN);
        mpfr_div(y, y, e, MPFR_RNDN);
    }
    want = mpfr_get_d(y, MPFR_RNDN);
    if (off) {
        mpfr_sub_d(y, y, value, MPFR_RNDA);
        *off = isfinite(want) && isfinite(value) ? fabs(mpfr_get_d(y, MPFR_RNDA)) : (double)NAN;
    }
    mpfr_clears(y, e, (mpfr_ptr)NULL);
    return want;
}
