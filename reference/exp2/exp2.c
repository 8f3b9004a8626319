/* 2^x: its definition, its limits, its decoys and its descriptor.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Limit of |kernel - y|. One unit in the last place for libm. ex2.approx is within two units of what y rounds to, which
 * is within half a unit of y; the former's are twice as long where y rounds up to a power of two. The unit is that of
 * f32, 2^-149 below 2^-126. With flushing, what the kernel has before it is within that; where it can be below 2^-126 the
 * result may be 0, which is y away. The model of ex2.approx is the unit's own bits, and its limit 0.
 *
 * The reference's own error: a C library's exp2 of double is within one unit, 2^-52 of y, and within 2^-1074 where y
 * underflows in double. It is 0 where x is a whole number within double's range, and where x is not finite. From 1024 on
 * y is +inf as a double; there, and where y rounds to infinity in f32, the comparison knows what to expect. */
#include "exp2/exp2.h"

#include <math.h>
#include <string.h>

#include "special/special.h"

static const double least_normal = 0x1p-126, last_place = 0x1p-149;

/* clang-format off */
static const struct at_scalar own[] = {
    { "n", AT_SCALAR_SIZE, AT_OWN_PLACE(at_exp2_own, n), 64, "elements", "n", 0, 1 << 24, .word = "column" },
};
static const char *const keys[] = { "n", "data", "seed", "require", "expect", NULL };
/* Not few: a kernel that flushes subnormal results makes all of a few of them 0, and nothing is shown. Edge cases have 1. */
static const struct at_factor length = { .name = "n", .meaning = "about a block", .classes = AT_CLASSES("n=600", "n=33", "n=255,256,257", "n=1023,1024,1025"), .far = AT_CLASSES("n=0", "n=4097,10000"), .any = "n=33..600" };
static const struct at_factor values = { .name = "data", .meaning = "what the arguments look like", .classes = AT_CLASSES("data=normal", "data=whole_range", "data=near_integer", "data=subnormal", "data=overflow,random_bits expect=OVERFLOWED") };
static const struct at_factor *const domain[] = { &length, &values, NULL };
static const struct at_tensor_spec tensors[] = {
    { "x", AT_IN, AT_FORMAT_F32, { AT_DIM_OWN(0) }, "exponents", AT_FILL_ELEMENTS },
    { "y", AT_OUT, AT_FORMAT_F32, { AT_DIM_OWN(0) }, "powers of two" },
};
static const struct at_decoy_spec decoys[AT_EXP2_FAULTS] = {
    [AT_EXP2_BASE_E]       = { "base_e", "e^x in place of 2^x" },
    [AT_EXP2_NO_FRACTION]  = { "no_fraction", "the whole part of x alone" },
    [AT_EXP2_RECIPROCAL]   = { "reciprocal", "the sign of x is lost: 2^-x" },
    [AT_EXP2_NEXT_ELEMENT] = { "next_element", "each element is the next one" },
    [AT_EXP2_FLUSHED]      = { "flushed", "subnormal results are 0, where that is not declared" },
};
/* clang-format on */

static double own_error(double x, double value) {
    if (!isfinite(value) || (x == floor(x) && value >= 0x1p-1022))
        return 0;
    return isfinite(x) ? 0x1p-52 * value + 0x1p-1074 : 0;
}

/* The unit in the last place of f32 at a value of 0 or more that f32 holds; the same as at_ulp, but 2^32 are asked for. */
static double unit_at(double value) {
    uint64_t bits;
    if (value < least_normal)
        return last_place;
    memcpy(&bits, &value, sizeof bits);
    bits = (bits & 0x7ff0000000000000u) - ((uint64_t)23 << 52);
    memcpy(&value, &bits, sizeof bits);
    return value;
}

/* How far what a kernel computes may be from y, before any flushing, and from what y rounds to. */
static double spread(const struct at_numerics *numerics, double value) {
    if (numerics->exp == AT_EXP_LIBM)
        return unit_at(value);
    return 2 * unit_at((double)(float)value) + unit_at(value) / 2;
}

static int flushes(const struct at_numerics *numerics) { return numerics && numerics->exp == AT_EXP_EX2_APPROX_FTZ; }

/* x is not NaN or infinite: those results are certain. */
static double limit(const struct at_numerics *numerics, double x, double value) {
    if (!isfinite(x) || !isfinite(value))
        return 0;
    if (!numerics || value >= at_format_info(AT_F32)->end)
        return own_error(x, value);
    const double error = spread(numerics, value);
    return (flushes(numerics) && value - error < least_normal ? fmax(error, value) : error) + own_error(x, value);
}

static double at(const struct at_problem *p, int64_t i) { return at_tensor_get(&p->tensors[AT_EXP2_X], i); }

static void put(struct at_eval *eval, int64_t i, double value, double off) {
    if (eval->value[AT_EXP2_Y])
        eval->value[AT_EXP2_Y][i] = value;
    if (eval->limit[AT_EXP2_Y])
        eval->limit[AT_EXP2_Y][i] = off;
}

static at_status check_exponential(const struct at_numerics *numerics) {
    if (numerics && numerics->exp == AT_EXP_TANH_APPROX)
        return AT_FAIL(AT_UNSUPPORTED, "exp2 with exp=tanh_approx, which is no exponential");
    return AT_OK;
}

static at_status evaluate(const struct at_problem *p, const struct at_numerics *numerics, int64_t row0, int64_t row1,
                          struct at_eval *eval) {
    AT_TRY(check_exponential(numerics));
    for (int64_t i = row0; i < row1; i++) {
        const double x = at(p, i), value = exp2(x);
        put(eval, i, value, limit(numerics, x, value));
        if (eval->ledger)
            at_ledger_note(eval->ledger, AT_STAGE_out, value, &(struct at_place){ .q = i, .step = -1 });
    }
    return AT_OK;
}

/* The bits where a unit is declared; else the correctly rounded value and how far from it is allowed. */
static void model_element(const struct at_numerics *numerics, double x, double *value, double *off) {
    *off = 0;
    if (numerics->exp != AT_EXP_LIBM) {
        *value = at_special_value(AT_SPECIAL_ex2, flushes(numerics), x);
        return;
    }
    *value = at_round(AT_F32, exp2(x));
    if (isfinite(x) && isfinite(*value))
        *off = unit_at(*value);
}

static at_status model(const struct at_problem *p, const struct at_numerics *numerics, int64_t row0, int64_t row1,
                       struct at_eval *eval) {
    double value, off;
    AT_TRY(check_exponential(numerics));
    if (numerics->free_order)
        return AT_FAIL(AT_UNSUPPORTED, "free_order=1: the variant declares no exponential to follow");
    for (int64_t i = row0; i < row1; i++) {
        model_element(numerics, at(p, i), &value, &off);
        put(eval, i, value, off);
        if (eval->ledger)
            at_ledger_note(eval->ledger, AT_STAGE_out, value, &(struct at_place){ .q = i, .step = -1 });
    }
    return AT_OK;
}

static double faulty(const struct at_problem *p, const struct at_numerics *numerics, enum at_exp2_fault fault,
                     int64_t i) {
    const double x = at(p, i), value = exp2(x);
    switch (fault) {
    case AT_EXP2_BASE_E:
        return exp(x);
    case AT_EXP2_NO_FRACTION:
        return exp2(trunc(x));
    case AT_EXP2_RECIPROCAL:
        return exp2(-x);
    case AT_EXP2_NEXT_ELEMENT:
        return exp2(at(p, i + 1 < at_exp2_own_of(p).n ? i + 1 : 0));
    case AT_EXP2_FLUSHED:
        return value < least_normal && !flushes(numerics) ? 0 : value;
    default:
        return value;
    }
}

static at_status decoy(const struct at_problem *p, const struct at_numerics *numerics, int which, int64_t row0,
                       int64_t row1, struct at_eval *eval) {
    for (int64_t i = row0; i < row1; i++)
        put(eval, i, faulty(p, numerics, (enum at_exp2_fault)which, i), 0);
    return AT_OK;
}

static at_status check(const struct at_problem *p) {
    const struct at_tensor *x = &p->tensors[AT_EXP2_X];
    const int64_t n = at_exp2_own_of(p).n, found = at_tensor_count(x);
    if (n < 0)
        return AT_FAIL(AT_USAGE, "exp2: n is %lld, wanted 0 or more", (long long)n);
    if (found != n || x->format != AT_F32 || (n > 0 && !x->data))
        return AT_FAIL(AT_USAGE, "exp2: tensor x has %lld elements of %s, wanted %lld of f32 with data",
                       (long long)found, at_format_info(x->format)->name, (long long)n);
    return AT_OK;
}

/* An element is a row. */
static int64_t rows(const struct at_problem *p) { return at_exp2_own_of(p).n; }

static void row_span(const struct at_problem *p, int tensor, int64_t row, int64_t *first, int64_t *count) {
    (void)p, (void)tensor;
    *first = row;
    *count = 1;
}

static double row_work(const struct at_problem *p, int64_t row) {
    (void)p, (void)row;
    return 10;
}

const struct at_op at_op_exp2 = {
    .name = "exp2",
    .summary = "y = 2^x, element by element",
    .source = "ours",
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .decoys = decoys,
    .n_decoys = AT_EXP2_FAULTS,
    .kind = AT_KIND_ELEMENTS,
    .own = own,
    .n_own = sizeof own / sizeof *own,
    .keys = keys,
    .domain = domain,
    .declares = AT_DECLARES(exp),
    .check = check,
    .rows = rows,
    .row_span = row_span,
    .row_work = row_work,
    .evaluate = evaluate,
    .model = model,
    .decoy = decoy,
};
