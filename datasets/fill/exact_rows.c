/* Rows of q, k and v for the families exact and ties; the construction is described in exact.c.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "datasets/fill/exact.h"
#include "datasets/fill/families.h"

static double odd_of(const struct at_data *data) {
    return data->pooled ? (double)at_exact_odd(data->window, data->edge) : 1;
}

static void uniforms(const struct at_data *data, const char *name, uint64_t row_number, double *row) {
    struct at_random random = at_data_random(data, name);
    at_random_uniforms(&random, row_number * (uint64_t)data->d, data->d, row);
}

static void signs(const struct at_data *data, uint64_t row_number, double *row) {
    uniforms(data, "exact q", row_number, row);
    for (int64_t c = 0; c < data->d; c++)
        row[c] = row[c] < 0.5 ? -1 : 1;
}

/* ---- AsyncT, exact ---- */

/* A dozen channels of a key are not 0: scores of a few units either side of 0. */
static void sparse_key(const struct at_data *data, uint64_t row_number, double *row) {
    double share = 12.0 / (double)data->d, odd = odd_of(data);
    uniforms(data, "exact k", row_number, row);
    for (int64_t c = 0; c < data->d; c++)
        row[c] = row[c] < share / 2 ? odd : row[c] < share ? -odd : 0;
}

/* As many channels as the score needs, with the signs of the query of the group's first head. */
static void hot_key(const struct at_data *data, int64_t request, int64_t kv_head, const struct at_hot_target *target,
                    uint64_t row_number, double *row) {
    struct at_random random = at_data_random(data, "exact hot");
    double query[AT_DATA_MAX_D], odd = odd_of(data);
    int64_t n = (int64_t)rint(target->score / (odd * data->scale));
    n = n < 1 ? 1 : n > data->d ? data->d : n;
    int64_t first = at_random_below(&random, row_number, data->d);
    signs(data, at_data_query_row(data, request, target->query, kv_head * (data->h / data->hk)), query);
    for (int64_t c = 0; c < data->d; c++)
        row[c] = (c - first + data->d) % data->d < n ? odd * query[c] : 0;
}

static void asynct_key(const struct at_data *data, int64_t request, int64_t t, int64_t kv_head, double *row) {
    struct at_hot_target target;
    uint64_t row_number = at_data_key_row(data, request, t, kv_head);
    if (at_hot_find(data, request, t, &target))
        hot_key(data, request, kv_head, &target, row_number, row);
    else
        sparse_key(data, row_number, row);
}

/* Largest |v| and the keys between two that a channel uses, so that sum |p v| <= 2^11 g. */
static void value_grid(const struct at_data *data, int64_t keys, int *most, int64_t *stride) {
    double low = fabs(data->clip_min), high = fabs(data->clip_max), p = low > high ? low : high;
    double budget = p > 0 ? ldexp(1, 11 - at_exact_gate_bits(data)) / p : (double)keys * 3;
    *most = budget >= 3 ? 3 : 1;
    int64_t used = (int64_t)(budget / *most);
    used = used < 1 ? 1 : used;
    *stride = (keys + used - 1) / used;
    *stride = *stride < 1 ? 1 : *stride;
}

static void asynct_value(const struct at_data *data, int64_t request, int64_t t, int64_t kv_head, double *row) {
    struct at_random shift = at_data_random(data, "exact v shift");
    int64_t stride, first = at_random_below(&shift, (uint64_t)(request * data->hk + kv_head), 1 << 20);
    int most;
    value_grid(data, at_data_sk(data, request), &most, &stride);
    uniforms(data, "exact v", at_data_key_row(data, request, t, kv_head), row);
    for (int64_t c = 0; c < data->d; c++) {
        int size = 1 + (int)(row[c] * most * 2) % most; /* the half gives the sign, its place the size */
        row[c] = (t + c + first) % stride ? 0 : row[c] < 0.5 ? size : -size;
    }
}

/* ---- softmax, exact ---- */

enum { FULL_STEPS = 60 }; /* so that heights stay below 63 */

/* Channel c's staircase for a request with `keys` keys: step j is key c % period + j * period. */
struct stairs {
    int64_t period, first, group; /* group: steps of one height */
};

static struct stairs stairs_of(int64_t keys, int64_t c) {
    static const int64_t groups[] = { 2, 4, 1 };
    struct stairs stairs = { .group = groups[c % 3] };
    int64_t least = keys / FULL_STEPS + 1;
    stairs.period = (least > 7 ? least : 7) + c * 7 % 13;
    stairs.first = c % stairs.period;
    return stairs;
}

/* How many of the first n keys are steps of the greatest height among them; 0 when there is no step. */
static int64_t highest(const struct stairs *stairs, int64_t n) {
    if (n <= stairs->first)
        return 0;
    int64_t steps = (n - 1 - stairs->first) / stairs->period + 1;
    return (steps - 1) % stairs->group + 1;
}

static int fits(const struct stairs *stairs, int64_t visible) {
    int64_t n = highest(stairs, visible);
    return n == 1 || n == 2 || n == 4;
}

static int is_step(const struct stairs *stairs, int64_t t) {
    return t >= stairs->first && (t - stairs->first) % stairs->period == 0;
}

/* The channel a query looks at: for every second query (all, with hot=last_key) one where its last key is a
 * step; else, or when there is none, any that fits. Channel 0 always does: its first step is key 0, its groups
 * are of 2. */
static int64_t channel_for(const struct at_data *data, int64_t request, int64_t i, int64_t head) {
    struct at_random random = at_data_random(data, "exact channel");
    uint64_t row = at_data_query_row(data, request, i, head);
    int64_t keys = at_data_sk(data, request), visible = at_data_visible(data, request, i);
    int64_t start = at_random_below(&random, 2 * row, data->d);
    int want_last = data->hot & AT_HOT_LAST_KEY || at_random_bits(&random, 2 * row + 1) & 1;
    for (int pass = want_last ? 0 : 1; pass < 2; pass++)
        for (int64_t n = 0; n < data->d; n++) {
            int64_t c = (start + n) % data->d;
            struct stairs stairs = stairs_of(keys, c);
            if (fits(&stairs, visible) && (pass == 1 || is_step(&stairs, visible - 1)))
                return c;
        }
    return 0;
}

static void softmax_key(const struct at_data *data, int64_t request, int64_t t, int64_t kv_head, double *row) {
    uniforms(data, "exact k", at_data_key_row(data, request, t, kv_head), row);
    for (int64_t c = 0; c < data->d; c++) {
        struct stairs stairs = stairs_of(at_data_sk(data, request), c);
        if (is_step(&stairs, t)) {
            int64_t step = (t - stairs.first) / stairs.period / stairs.group;
            row[c] = 1 + (double)step;
        } else {
            row[c] = 0 - floor(row[c] * 4); /* never -0 */
        }
    }
}

static void integers(const struct at_data *data, int64_t request, int64_t t, int64_t kv_head, int most, double *row) {
    uniforms(data, "exact v", at_data_key_row(data, request, t, kv_head), row);
    for (int64_t c = 0; c < data->d; c++)
        row[c] = floor(row[c] * (2 * most + 1)) - most;
}

/* ---- the family's rows ---- */

AT_FAMILY_ROW(at_exact_query) {
    if (data->asynct) {
        signs(data, at_data_query_row(data, request, i, head), row);
        return;
    }
    int64_t channel = channel_for(data, request, i, head);
    for (int64_t c = 0; c < data->d; c++)
        row[c] = c == channel;
}

AT_FAMILY_ROW(at_exact_key) {
    if (data->asynct)
        asynct_key(data, request, i, head, row);
    else
        softmax_key(data, request, i, head, row);
}

AT_FAMILY_ROW(at_exact_value) {
    if (data->asynct)
        asynct_value(data, request, i, head, row);
    else
        integers(data, request, i, head, 15, row);
}

/* ---- ties: as exact, but the grid of p is one bit finer than the narrow formats of P (2^-9 for bf16, 2^-12
 * for f16, by the default scale and sigma), so that many p lie half-way between two of them, and a conversion
 * that rounds half away from zero or truncates differs from round-to-even in many places at once. Softmax: keys
 * repeat every four, so maxima and weights come in many equal copies. ---- */

AT_FAMILY_ROW(at_ties_query) { signs(data, at_data_query_row(data, request, i, head), row); }

AT_FAMILY_ROW(at_ties_key) {
    if (!data->asynct) {
        struct at_random random = at_data_random(data, "k");
        uint64_t copy = (uint64_t)((request * data->hk + head) * 4 + i % 4);
        at_random_normals(&random, copy * (uint64_t)data->d, data->d, row);
        return;
    }
    /* dot products of about 1/scale: sqrt(d) * most / sqrt(3) * L = 1/scale */
    double odd = odd_of(data), most = rint(1.7 / (data->scale * odd * sqrt((double)data->d)));
    most = most < 1 ? 1 : most > 100 ? 100 : most;
    if (data->dtype == AT_BF16 && most * odd > 255)
        most = floor(255 / odd); /* integers that bf16 holds */
    uniforms(data, "exact k", at_data_key_row(data, request, i, head), row);
    for (int64_t c = 0; c < data->d; c++)
        row[c] = odd * (floor(row[c] * (2 * most + 1)) - most);
}

AT_FAMILY_ROW(at_ties_value) { integers(data, request, i, head, 15, row); }
