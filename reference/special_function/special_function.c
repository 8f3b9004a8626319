/* One instruction of the special-function unit: its exact value, its limits, its decoys and its descriptor.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Limit of |y - f(x)|. In f32 the unit's own error (`spreads`); a form in f16 or bf16 also cuts that towards 0, by less than a unit
 * in the last place. Where what is computed can be below 2^-126 and is flushed, 0 is f(x) away. tests/reference/special_function
 * holds the unit to it, and the reference's own error to MPFR: a C library's functions of double are within two units. */
#include "special_function/special_function.h"

#include <math.h>

static const double least_normal = 0x1p-126;

static const char *instruction_name(int i) {
    return i >= 0 && i < at_special_instruction_count() ? at_special_instruction_at(i)->name : NULL;
}

enum { N, INSTRUCTION, SCALARS };
enum { RIGHT = -1, SIGN_LOST, NO_FRACTION, NEXT_ELEMENT, FLUSHED, FAULTS };
#define PLACE_OF(member) AT_OWN_PLACE(at_special_function_own, member)

/* clang-format off */
static const struct at_scalar own[SCALARS] = {
    [N]           = { "n", AT_SCALAR_SIZE, PLACE_OF(n), 64, "elements", "n", 0, 1 << 24, .word = "column" },
    [INSTRUCTION] = { "instruction", AT_SCALAR_CHOICE, PLACE_OF(instruction), 0,
                      "of the special-function unit, as PTX names it; default ex2.approx.f32", "instruction", .text = instruction_name },
};
static const char *const keys[] = { "n", "instruction", "data", "seed", "require", "expect", NULL };
static const struct at_factor length = { .name = "n", .meaning = "about a block", .classes = AT_CLASSES("n=600", "n=255,256,257", "n=1023,1024,1025"), .far = AT_CLASSES("n=0", "n=4097,10000") };
static const struct at_factor of_instruction = { .name = "instruction", .meaning = "all there are", .classes = AT_CLASSES("instruction=ex2.approx.f32", "instruction=ex2.approx.ftz.f32", "instruction=rcp.approx.f32", "instruction=rcp.approx.ftz.f32", "instruction=rsqrt.approx.f32", "instruction=rsqrt.approx.ftz.f32", "instruction=sqrt.approx.f32", "instruction=sqrt.approx.ftz.f32", "instruction=lg2.approx.f32", "instruction=lg2.approx.ftz.f32", "instruction=sin.approx.f32", "instruction=sin.approx.ftz.f32", "instruction=cos.approx.f32", "instruction=cos.approx.ftz.f32", "instruction=tanh.approx.f32", "instruction=ex2.approx.f16", "instruction=ex2.approx.f16x2", "instruction=ex2.approx.ftz.bf16", "instruction=ex2.approx.ftz.bf16x2", "instruction=tanh.approx.f16", "instruction=tanh.approx.f16x2", "instruction=tanh.approx.bf16", "instruction=tanh.approx.bf16x2") };
/* Results beyond the format's range are infinite: OVERFLOWED, of some instructions. */
static const struct at_factor values = { .name = "data", .meaning = "what the arguments look like", .classes = AT_CLASSES("data=normal", "data=whole_range,near_integer expect=OVERFLOWED", "data=random_bits expect=OVERFLOWED") };
static const struct at_factor *const domain[] = { &length, &of_instruction, &values, NULL };
static const struct at_tensor_spec tensors[] = {
    { "x", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_OWN(N) }, "arguments", AT_FILL_ELEMENTS },
    { "y", AT_OUT, AT_FORMAT_DTYPE, { AT_DIM_OWN(N) }, "results" },
};
static const struct at_decoy_spec decoys[FAULTS] = {
    [SIGN_LOST]    = { "sign_lost", "f(|x|)" },
    [NO_FRACTION]  = { "no_fraction", "the whole part of x alone" },
    [NEXT_ELEMENT] = { "next_element", "each element is the next one" },
    [FLUSHED]      = { "flushed", "subnormal results are 0, where that is not the instruction's" },
};

/* What the unit's errors stay within, over all arguments: `units` in the last place of f(x) in f32, `absolute` more, and `slope` |x|
 * for what sin and cos lose in the argument: 2^-24.6 of it in 1 / (2 pi), 2^-23 where turns are cut to f32. Beside them what
 * was found: the largest error in units, of lg2 where |lg2(x)| < 1, of sin and cos where |x| < 1. */
static const struct { double units, absolute, slope; } spreads[AT_SPECIAL_FUNCTIONS] = {
    [AT_SPECIAL_ex2]   = { 2.4 },                      /* 2.3834 */
    [AT_SPECIAL_rcp]   = { 0.99 },                     /* 0.9848 */
    [AT_SPECIAL_rsqrt] = { 1.52 },                     /* 1.5145 */
    [AT_SPECIAL_sqrt]  = { 0.95 },                     /* 0.9438 */
    [AT_SPECIAL_lg2]   = { 1, 0x1.dp-23 },             /* 2^-22.148 */
    [AT_SPECIAL_sin]   = { 0, 0x1.8p-22, 0x1.6p-23 },  /* 2^-21.457 */
    [AT_SPECIAL_cos]   = { 0, 0x1.8p-22, 0x1.6p-23 },
    [AT_SPECIAL_tanh]  = { 134 },                      /* 133.953 */
};
/* clang-format on */

const struct at_special_instruction *at_special_function_instruction(const struct at_problem *p) {
    const int i = at_special_function_own_of(p).instruction;
    return i >= 0 && i < at_special_instruction_count() ? at_special_instruction_at(i) : NULL;
}

static enum at_format format_of(const struct at_special_instruction *t) {
    return t->format == AT_SPECIAL_F16 ? AT_F16 : t->format == AT_SPECIAL_BF16 ? AT_BF16 : AT_F32;
}

static double exact(const struct at_special_instruction *t, double x) {
    if (t->ftz && fabs(x) < least_normal)
        x = copysign(0, x);
    switch (t->function) {
    case AT_SPECIAL_ex2:
        return exp2(x);
    case AT_SPECIAL_rcp:
        return 1 / x;
    case AT_SPECIAL_rsqrt:
        return 1 / sqrt(x);
    case AT_SPECIAL_sqrt:
        return sqrt(x);
    case AT_SPECIAL_lg2:
        return log2(x);
    case AT_SPECIAL_sin:
        return sin(x);
    case AT_SPECIAL_cos:
        return cos(x);
    default:
        return tanh(x);
    }
}

/* What is expected of a value that is not finite, or rounds to infinity, is certain. */
static double limit(const struct at_special_instruction *t, double x, double value) {
    const double size = fabs(value), own_error = 0x1p-51 * size + 0x1p-1074;
    if (!isfinite(x) || !isfinite(value))
        return 0;
    if (isinf(at_round(format_of(t), value)))
        return own_error;
    double error = spreads[t->function].units * at_ulp(AT_F32, value) + spreads[t->function].absolute +
                   spreads[t->function].slope * fabs(x);
    if (spreads[t->function].slope > 0)
        error = fmin(error, 1 + size); /* nothing is beyond 1 */
    if (t->narrow)
        error += at_ulp(format_of(t), size + error);
    if (t->ftz && size - error < least_normal)
        error = fmax(error, size);
    return error + own_error;
}

static double at(const struct at_problem *p, int64_t i) { return at_tensor_get(&p->tensors[AT_SPECIAL_FUNCTION_X], i); }

static void put(struct at_eval *eval, int64_t i, double value, double off) {
    if (eval->value[AT_SPECIAL_FUNCTION_Y])
        eval->value[AT_SPECIAL_FUNCTION_Y][i] = value;
    if (eval->limit[AT_SPECIAL_FUNCTION_Y])
        eval->limit[AT_SPECIAL_FUNCTION_Y][i] = off;
}

static at_status evaluate(const struct at_problem *p, const struct at_numerics *numerics, int64_t row0, int64_t row1,
                          struct at_eval *eval) {
    (void)numerics;
    const struct at_special_instruction *t = at_special_function_instruction(p);
    for (int64_t i = row0; i < row1; i++) {
        const double x = at(p, i), value = exact(t, x);
        put(eval, i, value, limit(t, x, value));
    }
    return AT_OK;
}

static at_status model(const struct at_problem *p, const struct at_numerics *numerics, int64_t row0, int64_t row1,
                       struct at_eval *eval) {
    (void)numerics;
    const struct at_special_instruction *t = at_special_function_instruction(p);
    for (int64_t i = row0; i < row1; i++) {
        uint32_t code = (uint32_t)at_encode(p->dtype, at(p, i));
        at_special_results(t, 1, &code, &code);
        put(eval, i, at_decode(p->dtype, code), 0);
    }
    return AT_OK;
}

static double faulty(const struct at_problem *p, int fault, int64_t i) {
    const struct at_special_instruction *t = at_special_function_instruction(p);
    const double x = at(p, i), value = exact(t, x);
    switch (fault) {
    case SIGN_LOST:
        return exact(t, fabs(x));
    case NO_FRACTION:
        return exact(t, trunc(x));
    case NEXT_ELEMENT:
        return exact(t, at(p, i + 1 < at_special_function_own_of(p).n ? i + 1 : 0));
    case FLUSHED:
        return fabs(value) < least_normal && !t->ftz ? 0 : value;
    default:
        return value;
    }
}

static at_status decoy(const struct at_problem *p, const struct at_numerics *numerics, int which, int64_t row0,
                       int64_t row1, struct at_eval *eval) {
    (void)numerics;
    for (int64_t i = row0; i < row1; i++)
        put(eval, i, faulty(p, which, i), 0);
    return AT_OK;
}

static at_status check(const struct at_problem *p) {
    const struct at_special_function_own z = at_special_function_own_of(p);
    const struct at_special_instruction *t = at_special_function_instruction(p);
    const struct at_tensor *x = &p->tensors[AT_SPECIAL_FUNCTION_X];
    if (!t)
        return AT_FAIL(AT_USAGE, "special_function: instruction is %d, wanted 0 to %d", (int)z.instruction,
                       at_special_instruction_count() - 1);
    if (z.n < 0)
        return AT_FAIL(AT_USAGE, "special_function: n is %lld, wanted 0 or more", (long long)z.n);
    if (at_tensor_count(x) != z.n || x->format != format_of(t) || p->dtype != x->format || (z.n > 0 && !x->data))
        return AT_FAIL(AT_USAGE, "special_function: %s: tensor x has %lld elements of %s, wanted %lld of %s with data",
                       t->name, (long long)at_tensor_count(x), at_format_info(x->format)->name, (long long)z.n,
                       at_format_info(format_of(t))->name);
    return AT_OK;
}

/* The instruction says what x is made of. */
static void complete(struct at_problem *p, unsigned given) {
    (void)given;
    p->dtype = format_of(at_special_function_instruction(p));
}

/* An element is a row. */
static int64_t rows(const struct at_problem *p) { return at_special_function_own_of(p).n; }

static void row_span(const struct at_problem *p, int tensor, int64_t row, int64_t *first, int64_t *count) {
    (void)p, (void)tensor;
    *first = row;
    *count = 1;
}

static double row_work(const struct at_problem *p, int64_t row) {
    (void)p, (void)row;
    return 10;
}

const struct at_op at_op_special_function = {
    .name = "special_function",
    .summary = "one instruction of the special-function unit, element by element",
    .source = "ours",
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .decoys = decoys,
    .n_decoys = FAULTS,
    .kind = AT_KIND_ELEMENTS,
    .own = own,
    .n_own = SCALARS,
    .keys = keys,
    .domain = domain,
    .complete = complete,
    .batch = AT_DIM_OWN(N),
    .check = check,
    .rows = rows,
    .row_span = row_span,
    .row_work = row_work,
    .evaluate = evaluate,
    .model = model,
    .decoy = decoy,
};
