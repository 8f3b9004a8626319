/* The second group of a CDNA3 matrix core: exact numbers of 1200 bits, rounded by MPFR's own modes.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Shares nothing with reference/tensor_core: no doubles, no table, no encoder. */
#include "tests/oracle/mfma_mpfr.h"

#include <mpfr.h>

enum { PRECISION = 1200, LEAST = -126, ZERO = -126, FEW = -5000, F32_FRACTION = 23 };
static const uint32_t INFINITE = 0x7f800000u, NO_NUMBER = 0x7fffffffu, MINUS = 0x80000000u;

/* A code as an exact number and the exponent that the unit counts it with. */
struct number {
    mpfr_t value;
    int exponent;
};

static void unpack(struct oracle_format format, uint32_t code, struct number *x) {
    const int ones = (1 << format.exponent_bits) - 1, bias = ones >> 1;
    const uint32_t fraction = code & ((1u << format.fraction_bits) - 1);
    const int biased = (int)(code >> format.fraction_bits) & ones;
    const int negative = (int)(code >> (format.exponent_bits + format.fraction_bits)) & 1;
    mpfr_init2(x->value, PRECISION);
    x->exponent = (biased ? biased : 1) - bias;
    if (biased == ones && fraction)
        mpfr_set_nan(x->value);
    else if (biased == ones)
        mpfr_set_inf(x->value, 1);
    else
        mpfr_set_ui_2exp(x->value, fraction + (biased ? 1u << format.fraction_bits : 0),
                         x->exponent - format.fraction_bits, MPFR_RNDN);
    mpfr_setsign(x->value, x->value, negative, MPFR_RNDN);
}

/* To a multiple of 2^grain. */
static void round_to(mpfr_t x, int grain, mpfr_rnd_t direction) {
    mpfr_div_2si(x, x, grain, MPFR_RNDN);
    mpfr_rint(x, x, direction);
    mpfr_mul_2si(x, x, grain, MPFR_RNDN);
}

/* The f32 code of a number, from the count of its smallest steps. */
static uint32_t pack(mpfr_t x, mpfr_rnd_t direction) {
    const uint32_t sign = mpfr_signbit(x) ? MINUS : 0;
    if (mpfr_nan_p(x))
        return NO_NUMBER;
    if (mpfr_inf_p(x))
        return INFINITE | sign;
    if (mpfr_zero_p(x))
        return 0;
    mpfr_abs(x, x, MPFR_RNDN);
    int step = (int)mpfr_get_exp(x) - 1 - F32_FRACTION;
    step = step < LEAST - F32_FRACTION ? LEAST - F32_FRACTION : step;
    mpfr_div_2si(x, x, step, MPFR_RNDN);
    const uint64_t code =
        ((uint64_t)(step - (LEAST - F32_FRACTION)) << F32_FRACTION) + mpfr_get_ui(x, direction); /* carries walk up */
    return (code < INFINITE ? (uint32_t)code : INFINITE) | sign;
}

/* Exact product and its exponent; the two factors are released. */
static void multiply(enum mfma_doubt doubt, struct number *x, struct number *y, struct number *product) {
    mpfr_init2(product->value, PRECISION);
    mpfr_mul(product->value, x->value, y->value, MPFR_RNDN);
    product->exponent = x->exponent + y->exponent;
    const int number = mpfr_regular_p(product->value);
    if (number && mpfr_get_exp(product->value) > 128 && doubt != MFMA_FINITE_PRODUCTS)
        mpfr_set_inf(product->value, mpfr_sgn(product->value));
    if (!number)
        product->exponent = doubt == MFMA_ZERO_IGNORED ? FEW : ZERO;
    if (number && doubt == MFMA_RENORMALISED && mpfr_regular_p(product->value) &&
        mpfr_get_exp(product->value) - 1 > product->exponent)
        product->exponent++;
    mpfr_clears(x->value, y->value, (mpfr_ptr)0);
}

uint32_t oracle_mfma(struct oracle_format in, enum mfma_doubt doubt, int n, const uint32_t *a, const uint32_t *b,
                     uint32_t c) {
    const int kept = doubt == MFMA_KEPT_LESS ? 23 : doubt == MFMA_KEPT_MORE ? 25 : 24;
    const int sum_kept = doubt == MFMA_SUM_LESS          ? 30
                         : doubt == MFMA_SUM_MORE        ? 32
                         : doubt == MFMA_SUM_AS_PRODUCTS ? 24
                                                         : 31;
    const struct oracle_format f32 = { 8, F32_FRACTION, 0 };
    struct number products[64], addend;
    mpfr_t sum;
    int top = FEW;
    unpack(f32, c, &addend);
    for (int i = 0; i < n; i++) {
        struct number x, y;
        unpack(in, a[i], &x);
        unpack(in, b[i], &y);
        multiply(doubt, &x, &y, &products[i]);
        top = products[i].exponent > top ? products[i].exponent : top;
    }
    const int both = top > addend.exponent ? top : addend.exponent;
    const int grain = (doubt == MFMA_C_IN_ALIGNMENT ? both : top) - kept;
    mpfr_init2(sum, PRECISION);
    mpfr_set_zero(sum, 1);
    for (int i = 0; i < n; i++) {
        round_to(products[i].value, grain, doubt == MFMA_PRODUCTS_DOWN ? MPFR_RNDD : MPFR_RNDZ);
        mpfr_add(sum, sum, products[i].value, MPFR_RNDN);
        mpfr_clear(products[i].value);
    }
    round_to(sum, both - sum_kept, doubt == MFMA_SUM_CUT ? MPFR_RNDZ : MPFR_RNDD);
    round_to(addend.value, both - kept, doubt == MFMA_C_CUT ? MPFR_RNDZ : MPFR_RNDD);
    mpfr_add(sum, sum, addend.value, MPFR_RNDN);
    const uint32_t code = pack(sum, doubt == MFMA_RESULT_CUT ? MPFR_RNDZ : MPFR_RNDN);
    mpfr_clears(sum, addend.value, (mpfr_ptr)0);
    return code;
}
