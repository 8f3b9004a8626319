/* The norms a second time, in 300-bit arithmetic.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Written from the formulas, one output element at a time. A format is (width, p, emin): its numbers are decoded from
 * sign, exponent and fraction, and a number is rounded to it as an integer multiple of the last place that its size
 * allows. Infinities and NaN go through MPFR's own arithmetic. */
#include "tests/oracle/norm_mpfr.h"

#include <math.h>
#include <string.h>

#include <mpfr.h>

#include "attest/op.h"

enum { BITS = 300 }; /* squares of f32 numbers span 2^-298 to 2^256; a row's sum is exact but for 2^-300 of itself */

struct layout {
    int width, precision, least; /* bits, significand bits with the hidden one, exponent of the last place at 0 */
};

static struct layout layout_of(enum at_format format) {
    if (format == AT_F16)
        return (struct layout){ 16, 11, -24 };
    return format == AT_BF16 ? (struct layout){ 16, 8, -133 } : (struct layout){ 32, 24, -149 };
}

static double decoded(const struct at_tensor *t, int64_t i) {
    const struct layout l = layout_of(t->format);
    uint32_t code = 0;
    memcpy(&code, (const char *)t->data + l.width / 8 * i, (size_t)l.width / 8); /* little-endian, as the machine */
    const uint32_t hidden = 1u << (l.precision - 1), fraction = code & (hidden - 1);
    const uint32_t largest = (1u << (l.width - l.precision)) - 1, exponent = code >> (l.precision - 1) & largest;
    double size = exponent ? ldexp(fraction + hidden, l.least + (int)exponent - 1) : ldexp(fraction, l.least);
    if (exponent == largest)
        size = fraction ? (double)NAN : (double)INFINITY;
    return code >> (l.width - 1) ? -size : size;
}

static double input(const struct at_problem *problem, const char *name, int64_t i) {
    for (int t = 0; t < problem->op->n_tensors; t++)
        if (strcmp(problem->op->tensors[t].name, name) == 0)
            return decoded(&problem->tensors[t], i);
    return NAN; /* no such tensor: nothing will compare equal */
}

/* The parameter of a channel; one alone is that of all. */
static double parameter(const struct at_problem *problem, const char *name, int64_t channel) {
    for (int t = 0; t < problem->op->n_tensors; t++)
        if (strcmp(problem->op->tensors[t].name, name) == 0 && problem->tensors[t].shape[0] == 1)
            channel = 0;
    return input(problem, name, channel);
}

static int has(const struct at_problem *problem, const char *name) {
    for (int t = 0; t < problem->op->n_tensors; t++)
        if (strcmp(problem->op->tensors[t].name, name) == 0)
            return 1;
    return 0;
}

/* x to the nearest number of the activations' format, ties to even. */
static void round_to_activation(const struct at_problem *problem, mpfr_t x) {
    const struct layout l = layout_of(problem->dtype);
    if (!mpfr_regular_p(x))
        return;
    long place = mpfr_get_exp(x) - l.precision; /* of the last bit; 2^(exp-1) <= |x| < 2^exp */
    place = place > l.least ? place : l.least;
    mpfr_mul_2si(x, x, -place, MPFR_RNDN);
    mpfr_roundeven(x, x);
    mpfr_mul_2si(x, x, place, MPFR_RNDN);
    if (mpfr_regular_p(x) && mpfr_get_exp(x) > (problem->dtype == AT_F16 ? 16 : 128))
        mpfr_set_inf(x, mpfr_sgn(x));
}

/* x := gamma * clamp(alpha * x, lo, hi) + beta, the parameters' names ending in `suffix`. */
static void uclip(const struct at_problem *problem, const char *suffix, int64_t channel, mpfr_t x) {
    char alpha[32] = "alpha", gamma[32] = "gamma", beta[32] = "beta";
    strncat(alpha, suffix, 16), strncat(gamma, suffix, 16), strncat(beta, suffix, 16);
    mpfr_mul_d(x, x, input(problem, alpha, channel), MPFR_RNDN);
    if (!mpfr_nan_p(x) && mpfr_cmp_d(x, (double)problem->params.lo) < 0)
        mpfr_set_d(x, (double)problem->params.lo, MPFR_RNDN);
    if (!mpfr_nan_p(x) && mpfr_cmp_d(x, (double)problem->params.hi) > 0)
        mpfr_set_d(x, (double)problem->params.hi, MPFR_RNDN);
    mpfr_mul_d(x, x, parameter(problem, gamma, channel), MPFR_RNDN);
    if (has(problem, beta))
        mpfr_add_d(x, x, input(problem, beta, channel), MPFR_RNDN);
}

/* What goes into the norm that makes y: x itself; the residual sum; or, with `stored`, that sum as res_out has it,
 * before it is rounded. */
static void norm_input(const struct at_problem *problem, int64_t i, int stored, mpfr_t x) {
    mpfr_set_d(x, input(problem, has(problem, "a") ? "a" : "x", i), MPFR_RNDN);
    if (has(problem, "a")) {
        uclip(problem, "_post", i % problem->sizes.channels, x);
        round_to_activation(problem, x);
    }
    if (has(problem, "res")) {
        mpfr_add_d(x, x, input(problem, "res", i), MPFR_RNDN);
        if (!stored && problem->params.from == AT_FROM_ROUNDED)
            round_to_activation(problem, x);
    }
}

/* x_i gamma_i / sqrt(mean + eps): one division and one root of the quotient of the squares, not a product with an
 * inverse root. */
static void rms(const struct at_problem *problem, int64_t i, mpfr_t y) {
    const int64_t n = problem->sizes.channels, first = i - i % n;
    mpfr_t x, sum;
    mpfr_inits2(BITS, x, sum, (mpfr_ptr)NULL);
    mpfr_set_zero(sum, 1);
    for (int64_t c = 0; c < n; c++) {
        norm_input(problem, first + c, 0, x);
        mpfr_sqr(x, x, MPFR_RNDN);
        mpfr_add(sum, sum, x, MPFR_RNDN);
    }
    mpfr_div_ui(sum, sum, (unsigned long)n, MPFR_RNDN);
    mpfr_add_d(sum, sum, (double)problem->params.eps, MPFR_RNDN);
    mpfr_sqrt(sum, sum, MPFR_RNDN);
    norm_input(problem, i, 0, y);
    mpfr_div(y, y, sum, MPFR_RNDN);
    mpfr_mul_d(y, y, input(problem, "gamma", i % n), MPFR_RNDN);
    mpfr_clears(x, sum, (mpfr_ptr)NULL);
}

double at_norm_mpfr(const struct at_problem *problem, const char *output, int64_t i, double value, double *off) {
    mpfr_t y;
    mpfr_init2(y, BITS);
    if (strcmp(output, "q_out") == 0 || strcmp(output, "k_out") == 0) {
        const char q_or_k[2] = { output[0], 0 }, suffix[3] = { '_', output[0], 0 };
        mpfr_set_d(y, input(problem, q_or_k, i), MPFR_RNDN);
        uclip(problem, suffix, i % problem->sizes.d, y);
    } else if (strcmp(output, "res_out") == 0 || strcmp(output, "res") == 0) {
        norm_input(problem, i, 1, y);
    } else if (!has(problem, "alpha") && !has(problem, "alpha_pre")) {
        rms(problem, i, y);
    } else {
        norm_input(problem, i, 0, y);
        uclip(problem, has(problem, "a") ? "_pre" : "", i % problem->sizes.channels, y);
    }
    double want = mpfr_get_d(y, MPFR_RNDN);
    if (off) {
        mpfr_sub_d(y, y, value, MPFR_RNDA);
        *off = isfinite(want) && isfinite(value) ? fabs(mpfr_get_d(y, MPFR_RNDA)) : (double)NAN;
    }
    mpfr_clear(y);
    return want;
}
