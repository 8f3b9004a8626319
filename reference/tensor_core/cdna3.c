/* One group of a CDNA3 matrix core.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Exact in double until the one rounding: a product has 22 bits, cut ones are below 2^(F+2), and 64 of them with 7 bits
 * more stay below 2^39, as c does; finite products and addends have e in [-126, 127]. */
#include "tensor_core/cdna3.h"

#include <math.h>
#include <string.h>

/* An xf32 operand: the upper 19 bits of an f32. */
static double cut_operand(enum at_format in, double x) {
    uint64_t bits;
    if (in != AT_TF32 || isnan(x))
        return x;
    if (fabs(x) < at_tc_power_of_two(-126))
        return trunc(x * at_tc_power_of_two(136)) * at_tc_power_of_two(-136);
    memcpy(&bits, &x, sizeof bits);
    bits &= ~((UINT64_C(1) << 42) - 1);
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* Of a value other than 0. */
static int exponent_of(double x, int emin) {
    const int e = ilogb(x);
    return e > emin ? e : emin;
}

static double round_once(const struct at_tc_rule *rule, double sum) {
    if (rule->rounding == AT_TC_RZ) /* a neighbour */
        return at_tc_convert(rule, sum);
    return sum == 0 ? 0.0 : at_round(rule->out, sum);
}

double at_cdna3_multiply_add(const struct at_tc_rule *rule, enum at_format in, const double *a, const double *b, int n,
                             double c) {
    const int emin = at_format_info(in)->emin;
    double product[AT_TC_BLOCK_MAX], special = c;
    int e_p = -2 * 1023;
    for (int i = 0; i < n; i++) {
        const double x = cut_operand(in, a[i]), y = cut_operand(in, b[i]), p = x * y;
        product[i] = fabs(p) >= at_tc_power_of_two(128) ? copysign(INFINITY, p) : p;
        special += product[i];
        const int e = p == 0 || !isfinite(p) ? rule->zero_exponent : exponent_of(x, emin) + exponent_of(y, emin);
        e_p = e > e_p ? e : e_p;
    }
    if (!isfinite(special)) /* finite terms are below 2^128, and so few do not leave the range of double */
        return special;
    const int e_c = c == 0 ? rule->addend_exponent : exponent_of(c, rule->addend_exponent), e = e_p > e_c ? e_p : e_c;
    double sum = 0;
    for (int i = 0; i < n; i++)
        sum += trunc(product[i] * at_tc_power_of_two(rule->kept_bits - e_p));
    sum = floor(sum * at_tc_power_of_two(AT_CDNA3_SUM_BITS - rule->kept_bits + e_p - e));
    const double addend = floor(c * at_tc_power_of_two(rule->kept_bits - e));
    sum += addend * at_tc_power_of_two(AT_CDNA3_SUM_BITS - rule->kept_bits);
    return round_once(rule, sum * at_tc_power_of_two(e - AT_CDNA3_SUM_BITS));
}
