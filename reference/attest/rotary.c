/* Cosines and sines of rotary positions in plain double arithmetic.
 * SPDX-License-Identifier: Apache-2.0
 *
 * angle = n pi/2 + r, |r| <= pi/4: pi/2 stands in three parts, of which the first two have 26 bits, so that n times them is
 * exact for n below 2^26, and so is the first difference. Then Taylor's series: the rests, r^19/19! and r^18/18!, are below
 * 2^-58. */
#include "attest/rotary.h"

#include "attest/plain_math.h"

double at_rotary_frequency(double base, int64_t rot, int64_t pair) {
    const double share = (double)(2 * pair) / (double)rot;
    return at_plain_exp2(-(share * at_plain_log2(base)));
}

static double sine_of(double r) {
    const double z = r * r;
    double q = 1.0 / 355687428096000.0; /* 1/17! */
    q = q * z - 1.0 / 1307674368000.0;
    q = q * z + 1.0 / 6227020800.0;
    q = q * z - 1.0 / 39916800.0;
    q = q * z + 1.0 / 362880.0;
    q = q * z - 1.0 / 5040.0;
    q = q * z + 1.0 / 120.0;
    q = q * z - 1.0 / 6.0;
    return r + r * (z * q);
}

static double cosine_of(double r) {
    const double z = r * r;
    double q = 1.0 / 20922789888000.0; /* 1/16! */
    q = q * z - 1.0 / 87178291200.0;
    q = q * z + 1.0 / 479001600.0;
    q = q * z - 1.0 / 3628800.0;
    q = q * z + 1.0 / 40320.0;
    q = q * z - 1.0 / 720.0;
    q = q * z + 1.0 / 24.0;
    return 1.0 - (0.5 * z - z * (z * q));
}

void at_rotary_cos_sin(double angle, double *cosine, double *sine) {
    const double first = 0x1.921fb5p0, second = 0x1.110b46p-26, third = 0x1.1a62633145c07p-54;
    const int64_t n = (int64_t)(angle * 0x1.45f306dc9c883p-1 + 0.5);
    const double turns = (double)n, r = ((angle - turns * first) - turns * second) - turns * third;
    const double s = sine_of(r), c = cosine_of(r);
    *cosine = n % 4 == 0 ? c : n % 4 == 1 ? -s : n % 4 == 2 ? -c : s;
    *sine = n % 4 == 0 ? s : n % 4 == 1 ? c : n % 4 == 2 ? -s : -c;
}

double at_rotary_entry(double base, int64_t rot, int64_t position, int64_t column) {
    const int64_t pairs = rot / 2;
    double cosine, sine;
    at_rotary_cos_sin((double)position * at_rotary_frequency(base, rot, column % pairs), &cosine, &sine);
    return column < pairs ? cosine : sine;
}
