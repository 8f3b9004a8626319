/* Data of several regimes in one tensor.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A kernel that looks at some of the values and takes a cheap path where they are of usual size is right on any data that
 * are alike everywhere. Here each block of rows of each request and head is normal, large, subnormal or cancelling, and the
 * seed draws which. */
#include "datasets/fill/families.h"

enum regime { NORMAL, LARGE, SMALL, CANCELLING, REGIMES };
enum { BLOCK = 8, NORM_BLOCK = 4 }; /* rows; pairs of keys that cancel are of one block */
static const double large_factor = 8, large_value = 64, small_factor = 0x1p-10;

static enum regime drawn(const struct at_data *data, const char *name, int64_t request, int64_t head, int64_t block) {
    const struct at_random random = at_data_random(data, name);
    return (enum regime)(at_random_bits(&random, (uint64_t)((request * 0x1000 + head) * 0x1000000 + block)) % REGIMES);
}

static void multiply(double factor, int64_t n, double *row) {
    for (int64_t c = 0; c < n; c++)
        row[c] *= factor;
}

AT_FAMILY_ROW(at_mixed_query) {
    const enum regime regime = drawn(data, "mixed q", request, head, i / BLOCK);
    (regime == CANCELLING ? at_cancel_query : at_normal_query)(data, request, i, head, row);
    multiply(regime == LARGE ? large_factor : regime == SMALL ? small_factor : 1, data->d, row);
}

AT_FAMILY_ROW(at_mixed_key) {
    static void (*const keys[REGIMES])(const struct at_data *, int64_t, int64_t, int64_t,
                                       double *) = { at_normal_key, at_normal_key, at_subnormal_key, at_cancel_key };
    const enum regime regime = drawn(data, "mixed k", request, head, i / BLOCK);
    keys[regime](data, request, i, head, row);
    multiply(regime == LARGE ? large_factor : 1, data->d, row);
}

AT_FAMILY_ROW(at_mixed_value) {
    static void (*const values[REGIMES])(const struct at_data *, int64_t, int64_t, int64_t,
                                         double *) = { at_normal_value, at_normal_value, at_subnormal_value,
                                                       at_cancel_value };
    const enum regime regime = drawn(data, "mixed v", request, head, i / BLOCK);
    values[regime](data, request, i, head, row);
    multiply(regime == LARGE ? large_value : 1, data->d, row);
}

/* x and its residual are of one regime: they share a stream. */
AT_FAMILY_NORM(at_norm_mixed) {
    static void (*const rows[REGIMES])(const struct at_data *, uint64_t, enum at_norm_part, int64_t, int64_t,
                                       double *) = { at_norm_normal, at_norm_normal, at_norm_subnormal,
                                                     at_norm_cancel };
    const struct at_random random = { data->seed, stream ^ at_random_stream("mixed", 0) };
    const enum regime regime = (enum regime)(at_random_bits(&random, (uint64_t)(row / NORM_BLOCK)) % REGIMES);
    rows[regime](data, stream, part, row, n, out);
    multiply(regime == LARGE ? large_value : 1, n, out);
}
