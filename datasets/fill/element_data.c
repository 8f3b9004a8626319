/* Arguments of elementwise functions: what 2^x is asked for, where its results change their nature.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every function writes elements [first, first + n) of the tensor; an element depends on the seed and its own number
 * alone. Values are rounded to the tensor's format where they are stored. */
#include <math.h>

#include "datasets/fill/families.h"

static void uniforms(const struct at_data *data, const char *name, int64_t first, int64_t n, double *out) {
    const struct at_random random = at_data_random(data, name);
    at_random_uniforms(&random, (uint64_t)first, n, out);
}

AT_FAMILY_ELEMENTS(at_elements_normal) {
    const struct at_random random = at_data_random(data, "x");
    at_random_normals(&random, (uint64_t)first, n, out);
}

/* Results of every exponent that f32 has, subnormal ones included, alike. */
AT_FAMILY_ELEMENTS(at_elements_whole_range) {
    uniforms(data, "whole range", first, n, out);
    for (int64_t i = 0; i < n; i++)
        out[i] = -150 + 278 * out[i];
}

/* Whole numbers from -126 to 127 and their neighbours in f32, three to each side: argument reduction changes there. */
AT_FAMILY_ELEMENTS(at_elements_near_integer) {
    const struct at_random random = at_data_random(data, "near integer");
    for (int64_t i = 0; i < n; i++) {
        const uint32_t bits = at_random_bits(&random, (uint64_t)(first + i));
        const double whole = (double)(int)(bits % 254) - 126;
        out[i] = whole + ((double)(int)((bits >> 16) % 7) - 3) * at_ulp(AT_F32, whole);
    }
}

/* Results between 2^-151, which rounds to 0, and 2^-125; every eighth argument is itself subnormal. */
AT_FAMILY_ELEMENTS(at_elements_subnormal) {
    uniforms(data, "subnormal", first, n, out);
    for (int64_t i = 0; i < n; i++)
        out[i] = (first + i) % 8 == 5 ? ldexp(out[i] - 0.5, -126) : -151 + 26 * out[i];
}

/* About the end of f32's range: half of the results are infinite, some from arguments that are huge. */
AT_FAMILY_ELEMENTS(at_elements_overflow) {
    uniforms(data, "overflow", first, n, out);
    for (int64_t i = 0; i < n; i++)
        out[i] = (first + i) % 8 == 5 ? ldexp(1, (int)(8 + 119 * out[i])) : 127 + 2 * out[i];
}

/* NaN and infinities in every eighth element, the others N(0,1). */
AT_FAMILY_ELEMENTS(at_elements_nonfinite) {
    at_elements_normal(data, first, n, out);
    for (int64_t i = 0; i < n; i++)
        if ((first + i) % 8 == 3)
            out[i] = at_nonfinite((uint64_t)(first + i) / 8);
}

/* Any finite code of the format: of f32 a quarter of the arguments is tiny, a quarter beyond the range of 2^x on either side. */
AT_FAMILY_ELEMENTS(at_elements_random_bits) {
    const struct at_random random = at_data_random(data, "random bits");
    const uint32_t infinity = (uint32_t)at_encode(data->dtype, (double)INFINITY),
                   upper = data->dtype == AT_F32 ? 1u << 30 : 1u << 14;
    for (int64_t i = 0; i < n; i++) {
        const uint32_t code = at_random_bits(&random, (uint64_t)(first + i)) & (4 * upper - 1);
        out[i] = at_decode(data->dtype, (code & infinity) == infinity ? code & ~upper : code);
    }
}
