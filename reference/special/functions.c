/* The functions by name, each with the unit's own shape.
 * SPDX-License-Identifier: Apache-2.0 */
#include "special/parts.h"

/* clang-format off */
const struct at_special_shape at_special_shapes[AT_SPECIAL_FUNCTIONS] = {
    [AT_SPECIAL_ex2]   = { at_special_ex2_rows,    64,  6114, AT_SPECIAL_COLUMNS },
    [AT_SPECIAL_rcp]   = { at_special_rcp_rows,   128,  2023, AT_SPECIAL_COLUMNS },
    [AT_SPECIAL_rsqrt] = { at_special_rsqrt_rows, 128, 16383, AT_SPECIAL_COLUMNS },
    [AT_SPECIAL_sqrt]  = { at_special_sqrt_rows,  128, 32767, AT_SPECIAL_COLUMNS },
    [AT_SPECIAL_lg2]   = { at_special_lg2_rows,    64,   837, AT_SPECIAL_COLUMNS },
    [AT_SPECIAL_sin]   = { at_special_sine_rows,   64,     0, AT_SPECIAL_COLUMNS },
    [AT_SPECIAL_cos]   = { at_special_sine_rows,   64,     0, AT_SPECIAL_COLUMNS },
    [AT_SPECIAL_tanh]  = { at_special_tanh_rows,   51,     0, AT_SPECIAL_COLUMNS },
};
/* clang-format on */

#define X(name, title) \
    uint32_t at_special_##name(uint32_t x, int ftz) { \
        return at_special_##name##_of(&at_special_shapes[AT_SPECIAL_##name], x, ftz); \
    }
AT_SPECIAL_LIST(X)
#undef X

double at_special_value(enum at_special_function function, int ftz, double x) {
    uint32_t code = at_special_code((float)x);
    at_special_each(function, NULL, ftz, 1, &code, &code);
    return (double)at_special_number(code);
}

void at_special_each(enum at_special_function function, const struct at_special_shape *shape, int ftz, int64_t n,
                     const uint32_t *x, uint32_t *y) {
    static at_special_result *const results[] = {
#define X(name, title) at_special_##name##_of,
        AT_SPECIAL_LIST(X)
#undef X
    };
    for (int64_t i = 0; i < n; i++)
        y[i] = results[function](shape ? shape : &at_special_shapes[function], x[i], ftz);
}

int at_special_row_of(enum at_special_function function, uint32_t x) {
    const uint32_t f = x & AT_SPECIAL_FRACTION;
    switch (function) {
    case AT_SPECIAL_ex2:
        return at_special_ex2_row(x);
    case AT_SPECIAL_rcp:
        return (int)(f >> 16);
    case AT_SPECIAL_rsqrt:
    case AT_SPECIAL_sqrt:
        return (x & AT_SPECIAL_LEAST_NORMAL ? 0 : 64) + (int)(f >> 17); /* odd exponents have an even code */
    case AT_SPECIAL_sin:
        return at_special_sin_row(x);
    case AT_SPECIAL_cos:
        return at_special_cos_row(x);
    case AT_SPECIAL_tanh:
        return at_special_tanh_row(x);
    default:
        return (int)(f >> 17);
    }
}

const char *at_special_name(enum at_special_function function) {
    static const char *const names[] = {
#define X(name, title) #name,
        AT_SPECIAL_LIST(X)
#undef X
    };
    return names[function];
}
