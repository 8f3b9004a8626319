/* Results of an exponential beside 2^x, class by class, over threads.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Errors are measured from 2^x as double has it, which is within one unit of double's last place: 2^-29 of a unit of
 * f32, which no figure here shows (maxima are kept as f32, so that the last bits of one C library or another do not
 * show either). Only whether a result is the nearest needs more, where 2^x lies about half-way between two numbers of
 * f32: there 80 bits decide. 2^x is never exactly half-way, but for x = -150, where the value is exact in double. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attest/env.h"
#include "verify/study/special/study_exp2.h"
#include "verify/study/special/study_special.h"

enum { PIECE = 1 << 16 };

void at_exp2_rows_init(const char *variant, int64_t step, struct at_exp2_row rows[AT_EXP2_CLASSES]) {
    static const char *const names[] = {
#define X(name, meaning) #name,
        AT_EXP2_CLASS_LIST(X)
#undef X
    };
    for (int c = 0; c < AT_EXP2_CLASSES; c++) {
        rows[c] = (struct at_exp2_row){ .step = step,
                                        .max_ulp = NAN,
                                        .max_ulp_x = NAN,
                                        .max_relative = NAN,
                                        .max_relative_x = NAN,
                                        .first_bad_x = NAN };
        snprintf(rows[c].variant, sizeof rows[c].variant, "%s", variant);
        snprintf(rows[c].name, sizeof rows[c].name, "%s", names[c]);
    }
}

static enum at_exp2_class class_of(uint32_t code, float x) {
    const uint32_t magnitude = code & 0x7fffffffu;
    if (magnitude >= 0x7f800000u)
        return magnitude > 0x7f800000u ? AT_EXP2_nan : AT_EXP2_infinite;
    if (magnitude < 0x00800000u)
        return magnitude ? AT_EXP2_tiny : AT_EXP2_zero;
    if (x >= 128)
        return AT_EXP2_overflow;
    if (x <= -150)
        return AT_EXP2_underflow;
    return x < -126 ? AT_EXP2_subnormal : AT_EXP2_normal;
}

float at_exp2_nearest(float x, double value, int64_t *undecided) {
    const float nearest = (float)value;
    const float low = (float)(value * (1 - 0x1p-50)), high = (float)(value * (1 + 0x1p-50));
    if (low == high || !isfinite(x) || x == floorf(x))
        return nearest; /* whole numbers have exact powers, or ones far beyond either end */
#if LDBL_MANT_DIG >= 64
    const long double more = exp2l((long double)x);
    const float below = (float)(more * (1 - 0x1p-61L)), above = (float)(more * (1 + 0x1p-61L));
    if (below == above)
        return below;
#endif
    ++*undecided;
    return nearest;
}

/* As at_ulp has it for f32, 2^x >= 0. */
static double unit_at(double value) {
    uint64_t bits;
    if (value < 0x1p-126)
        return 0x1p-149;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits & 0x7ff0000000000000u) - ((uint64_t)23 << 52);
    memcpy(&value, &bits, sizeof bits);
    return value;
}

static uint64_t mixed(uint32_t code, float got) {
    uint32_t result;
    memcpy(&result, &got, sizeof result);
    return at_special_mixed(code, result);
}

/* The larger of two maxima with its place, of equal ones the first: what comes later has larger codes. */
static void keep_larger(double error, double x, double *most, double *most_x) {
    if (isnan(*most) || error > *most) {
        *most = error;
        *most_x = x;
    }
}

static void note_bad(struct at_exp2_row *row, double x) {
    if (isnan(row->first_bad_x))
        row->first_bad_x = x;
}

static int class_differs(float got, float nearest) {
    return isnan(got) != isnan(nearest) || isinf(got) != isinf(nearest) || (isinf(got) && got != nearest);
}

/* One result with its exact value. */
static void look(struct at_exp2_row *row, float x, float got, double value, double limit) {
    const float nearest = at_exp2_nearest(x, value, &row->undecided);
    row->inputs++;
    if (class_differs(got, nearest)) {
        row->wrong_class++;
        note_bad(row, (double)x);
        return;
    }
    if (!isfinite(nearest))
        return;
    const double error = fabs((double)got - value);
    if (!(error <= limit)) {
        row->beyond_limit++;
        note_bad(row, (double)x);
    }
    row->not_nearest += got != nearest;
    if (got == 0 && nearest != 0) {
        row->flushed++;
        return;
    }
    keep_larger((double)(float)(error / unit_at(value)), (double)x, &row->max_ulp, &row->max_ulp_x);
    if (value > 0)
        keep_larger((double)(float)(error / value), (double)x, &row->max_relative, &row->max_relative_x);
}

/* Codes of positive numbers ascend with them, those of negative ones descend. */
static int descends(uint32_t before, uint32_t code, float y_before, float y) {
    if ((before ^ code) >> 31)
        return 0;
    return code >> 31 ? y > y_before : y < y_before;
}

/* Rows of each piece, put together in the order of the pieces when all threads are done: what is the first of equal
 * maxima hangs on no thread. */
struct work {
    const struct at_exp2_chunk *chunk;
    struct piece {
        struct at_exp2_row rows[AT_EXP2_CLASSES];
        uint64_t hash;
    } * pieces;
};

/* Adds counts and keeps maxima and places of what comes later. */
static void add(struct at_exp2_row *to, const struct at_exp2_row *from) {
    to->inputs += from->inputs;
    to->not_nearest += from->not_nearest;
    to->flushed += from->flushed;
    to->wrong_class += from->wrong_class;
    to->beyond_limit += from->beyond_limit;
    to->descents += from->descents;
    to->undecided += from->undecided;
    if (!isnan(from->max_ulp))
        keep_larger(from->max_ulp, from->max_ulp_x, &to->max_ulp, &to->max_ulp_x);
    if (!isnan(from->max_relative))
        keep_larger(from->max_relative, from->max_relative_x, &to->max_relative, &to->max_relative_x);
    note_bad(to, from->first_bad_x);
}

static at_status compare_piece(void *context, int64_t begin, int64_t end, int worker) {
    const struct work *w = context;
    const struct at_exp2_chunk *c = w->chunk;
    struct piece *piece = &w->pieces[begin / PIECE];
    (void)worker;
    at_exp2_rows_init("", 0, piece->rows);
    for (int64_t i = begin; i < end; i++) {
        const int64_t at = (c->first + i) * c->step;
        const uint32_t code = (uint32_t)at;
        float x;
        memcpy(&x, &code, sizeof x);
        struct at_exp2_row *row = &piece->rows[class_of(code, x)];
        look(row, x, c->got[i], c->value[i], c->limit[i]);
        if (i > 0 || c->has_before)
            row->descents += descends((uint32_t)(at - c->step), code, i > 0 ? c->got[i - 1] : c->before, c->got[i]);
        piece->hash += mixed(code, c->got[i]);
    }
    return AT_OK;
}

at_status at_exp2_compare(const struct at_exp2_chunk *chunk, int threads, struct at_exp2_row *rows) {
    const int64_t n = (chunk->n + PIECE - 1) / PIECE;
    struct work w = { .chunk = chunk, .pieces = calloc((size_t)n + 1, sizeof *w.pieces) };
    if (!w.pieces)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %lld results", (long long)chunk->n);
    const at_status status = at_parallel(chunk->n, PIECE, threads, compare_piece, &w);
    for (int64_t i = 0; i < n && status == AT_OK; i++)
        for (int k = 0; k < AT_EXP2_CLASSES; k++) {
            add(&rows[k], &w.pieces[i].rows[k]);
            rows[k].hash += w.pieces[i].hash;
        }
    free(w.pieces);
    return status;
}
