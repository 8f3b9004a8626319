/* Dot products in a declared unit and order.
 * SPDX-License-Identifier: Apache-2.0
 *
 * f32 units run on real float arithmetic (this file is compiled without contraction or excess precision),
 * tensor cores on at_fdpa, half-precision FMA on an exact sum rounded once. */
#include "tensor_core/accumulate.h"

#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "tensor_core/instruction.h"

/* The terms of one dot product and who watches. */
struct terms {
    const struct at_order *order;
    const double *a, *b;
    ptrdiff_t sa, sb;
    int64_t n, run;
    const struct at_watch *watch;
    int was_infinite; /* some step's value was */
};

struct at_order at_order_qk(const struct at_numerics *numerics) {
    return (struct at_order){
        .unit = (enum at_unit)numerics->qk_unit,
        .lanes = numerics->qk_lanes,
        .run = numerics->qk_run,
        .tree = (enum at_tree)numerics->qk_tree,
        .chunk = 0, /* whole blocks of the unit */
        .guard = (enum at_guard)numerics->guard,
        .input = AT_F64,
    };
}

struct at_order at_order_pv(const struct at_numerics *numerics) {
    return (struct at_order){
        .unit = (enum at_unit)numerics->pv_unit,
        .lanes = 1,
        .run = 0,
        .tree = AT_TREE_SEQUENTIAL,
        .chunk = numerics->pv_chunk,
        .guard = numerics->guard == AT_GUARD_SCORE ? AT_GUARD_NONE : (enum at_guard)numerics->guard,
        .input = (enum at_format)numerics->p,
    };
}

enum at_format at_unit_format(enum at_unit unit) {
    switch (unit) {
    case AT_UNIT_F64:
        return AT_F64;
    case AT_UNIT_TC_F16:
    case AT_UNIT_F16_FMA:
    case AT_UNIT_TC_FP8_BY_F16_F16:
        return AT_F16;
    case AT_UNIT_F32:
    case AT_UNIT_F32_FMA:
    case AT_UNIT_TC_F32:
    case AT_UNIT_TC_FP8:
    case AT_UNIT_TC_FP8_ADA:
    case AT_UNIT_TC_FP8_BY_F16:
    case AT_UNIT_TC_TF32:
    case AT_UNIT_TC_TF32_RNA:
        break;
    }
    return AT_F32;
}

/* Every sum asks: found by name once. Threads may find it at the same time, and find the same. */
static const struct at_tc_rule *found_once(_Atomic(const struct at_tc_rule *) *found, const char *name) {
    const struct at_tc_rule *rule = atomic_load_explicit(found, memory_order_relaxed);
    if (!rule) {
        rule = at_tc_rule_find(name);
        atomic_store_explicit(found, rule, memory_order_relaxed);
    }
    return rule;
}

const struct at_tc_rule *at_unit_rule(enum at_unit unit) {
    static _Atomic(const struct at_tc_rule *) f32, fp8, ada, f16, tf32;
    switch (unit) {
    case AT_UNIT_TC_F32:
    case AT_UNIT_TC_FP8_BY_F16: /* of one of its steps */
        return found_once(&f32, "hopper_f16_f32");
    case AT_UNIT_TC_FP8:
        return found_once(&fp8, "hopper_wgmma_fp8_f32");
    case AT_UNIT_TC_FP8_ADA:
        return found_once(&ada, "ada_fp8_f32");
    case AT_UNIT_TC_F16:
    case AT_UNIT_TC_FP8_BY_F16_F16:
        return found_once(&f16, "hopper_mma_f16_f16");
    case AT_UNIT_TC_TF32:
    case AT_UNIT_TC_TF32_RNA:
        return found_once(&tf32, "hopper_tf32_f32");
    default:
        return NULL;
    }
}

int at_unit_is_fp8_by_f16(enum at_unit unit) {
    return unit == AT_UNIT_TC_FP8_BY_F16 || unit == AT_UNIT_TC_FP8_BY_F16_F16;
}

int at_unit_is_tf32(enum at_unit unit) { return unit == AT_UNIT_TC_TF32 || unit == AT_UNIT_TC_TF32_RNA; }

double at_tf32_operand(enum at_unit unit, double x) {
    if (isnan(x))
        return x;
    const float single = (float)x;
    uint32_t bits;
    memcpy(&bits, &single, sizeof bits);
    /* half a last place more, and what is below it cut off: the carry goes into the exponent, at the end to infinity */
    bits = (unit == AT_UNIT_TC_TF32_RNA ? bits + 0x1000u : bits) & 0xffffe000u;
    float operand;
    memcpy(&operand, &bits, sizeof operand);
    return (double)operand;
}

/* Products of mma.sync's instruction of 8 bits. */
enum { FP8_STEP = 32 };

int at_order_chunk(const struct at_order *order) {
    const struct at_tc_rule *rule = at_unit_rule(order->unit);
    if (!rule)
        return 1;
    if (at_unit_is_fp8_by_f16(order->unit))
        return FP8_STEP;
    return order->chunk > 0 && order->chunk < rule->block ? order->chunk : rule->block;
}

/* Tells the ledger of one step. Called with the value before any guard; `finite`: the step's operands
 * and the value it started from were finite. */
static void watch_step(struct terms *t, int64_t step, double value, int finite) {
    if (!t->watch)
        return;
    t->was_infinite |= isinf(value);
    if (!t->watch->ledger || at_ledger_note_usual(t->watch->ledger, t->watch->stage, value))
        return;
    struct at_place place = t->watch->place;
    place.step = step;
    at_ledger_note(t->watch->ledger, t->watch->stage, value, &place);
    t->watch->ledger->inf_made += isinf(value) && finite;
}

double at_guarded(enum at_guard guard, double x) {
    if (guard == AT_GUARD_NONE || guard == AT_GUARD_SCORE)
        return x;
    if (isnan(x))
        return guard == AT_GUARD_NAN_SAFE ? 0.0 : x;
    const double largest = at_format_info(AT_F16)->max;
    return fabs(x) > largest ? copysign(largest, x) : x;
}

/* Terms of one lane in ascending order: i = first, first+1, ..., run of them, then `stride` further on. */
static double lane_f64(struct terms *t, int64_t first, int64_t stride, double acc) {
    for (int64_t start = first; start < t->n; start += stride)
        for (int64_t i = start; i < t->n && i < start + t->run; i++) {
            double x = t->a[i * t->sa], y = t->b[i * t->sb], old = acc;
            acc = old + x * y;
            watch_step(t, i, acc, isfinite(old) && isfinite(x) && isfinite(y));
        }
    return acc;
}

static double lane_f32(struct terms *t, int64_t first, int64_t stride, double start_value) {
    float acc = (float)start_value;
    const int fused = t->order->unit == AT_UNIT_F32_FMA;
    for (int64_t start = first; start < t->n; start += stride)
        for (int64_t i = start; i < t->n && i < start + t->run; i++) {
            float x = (float)t->a[i * t->sa], y = (float)t->b[i * t->sb], old = acc;
            float product = x * y;
            acc = fused ? fmaf(x, y, old) : old + product;
            watch_step(t, i, (double)acc, isfinite(old) && isfinite(x) && isfinite(y));
        }
    return (double)acc;
}

/* x*y + c rounded once to f16, for f16 values. The product is exact in double. So is the sum, unless the product,
 * of exponent e and lowest bit at or above 2^(e-21), lies 32 binades or more below c: then it is less than a quarter of
 * c's last f16 place, and c comes out whatever double makes of the sum. */
static double fma_f16(double x, double y, double c) { return at_round(AT_F16, x * y + c); }

static double lane_f16(struct terms *t, int64_t first, int64_t stride, double acc) {
    for (int64_t start = first; start < t->n; start += stride)
        for (int64_t i = start; i < t->n && i < start + t->run; i++) {
            double x = t->a[i * t->sa], y = t->b[i * t->sb], old = acc;
            acc = fma_f16(x, y, old);
            watch_step(t, i, acc, isfinite(old) && isfinite(x) && isfinite(y));
            acc = at_guarded(t->order->guard, acc);
        }
    return acc;
}

static double lane(struct terms *t, int index, double acc) {
    int64_t first = index * t->run, stride = t->order->lanes * t->run;
    switch (t->order->unit) {
    case AT_UNIT_F64:
        return lane_f64(t, first, stride, acc);
    case AT_UNIT_F16_FMA:
        return lane_f16(t, first, stride, acc);
    default:
        return lane_f32(t, first, stride, acc);
    }
}

/* Sum of two lanes' values in the unit's format; a step of its own, numbered n. */
static double join(struct terms *t, double x, double y) {
    double sum = x + y;
    enum at_format format = at_unit_format(t->order->unit);
    if (format == AT_F32)
        sum = (double)((float)x + (float)y);
    if (format == AT_F16)
        sum = at_round(AT_F16, sum); /* the sum of two f16 values is exact in double */
    watch_step(t, t->n, sum, isfinite(x) && isfinite(y));
    return format == AT_F16 ? at_guarded(t->order->guard, sum) : sum;
}

static double join_in_order(struct terms *t, double c) {
    double sum = lane(t, 0, c);
    for (int i = 1; i < t->order->lanes; i++)
        sum = join(t, sum, lane(t, i, 0.0));
    return sum;
}

/* What lane `index` holds after the shuffles with masks lanes/2 ... mask. */
static double join_butterfly(struct terms *t, int index, int mask, double c) {
    if (index >= t->order->lanes)
        return 0.0;
    if (mask >= t->order->lanes)
        return lane(t, index, index == 0 ? c : 0.0);
    double own = join_butterfly(t, index, 2 * mask, c);
    return join(t, own, join_butterfly(t, index + mask, 2 * mask, c));
}

static int block_is_finite(const struct terms *t, int64_t i, int n) {
    for (int j = 0; j < n; j++)
        if (!isfinite(t->a[(i + j) * t->sa]) || !isfinite(t->b[(i + j) * t->sb]))
            return 0;
    return 1;
}

/* n products, the rest zeros, by the instruction that makes two steps of f16 of them. */
static double fp8_by_f16(const struct terms *t, const struct at_tc_rule *rule, int64_t i, int n, double acc) {
    static const struct at_tc_instruction instruction = { .k = FP8_STEP, .order = AT_TC_FP8_BY_F16 };
    double a[FP8_STEP] = { 0 }, b[FP8_STEP] = { 0 };
    for (int j = 0; j < n; j++) {
        a[j] = t->a[(i + j) * t->sa];
        b[j] = t->b[(i + j) * t->sb];
    }
    return at_tc_multiply_add(&instruction, rule, a, b, acc);
}

/* n products of f32 as the tensor core reads it. */
static double tf32(const struct terms *t, const struct at_tc_rule *rule, int64_t i, int n, double acc) {
    enum { STEP = 8 };
    double a[STEP], b[STEP];
    for (int j = 0; j < n; j++) {
        a[j] = at_tf32_operand(t->order->unit, t->a[(i + j) * t->sa]);
        b[j] = at_tf32_operand(t->order->unit, t->b[(i + j) * t->sb]);
    }
    return at_fdpa(rule, AT_TF32, a, 1, b, 1, n, acc);
}

enum { THREADS_OF_ROW = 4, TERMS_OF_THREAD = 4 };

/* The terms of step `step` from threads that hold `run` consecutive terms each, gathered; how many. */
static int gather_runs(const struct terms *t, int64_t step, double *a, double *b) {
    const int64_t run = t->order->run, steps = run / TERMS_OF_THREAD,
                  first = step / steps * THREADS_OF_ROW * run + step % steps * TERMS_OF_THREAD;
    int n = 0;
    for (int thread = 0; thread < THREADS_OF_ROW; thread++)
        for (int j = 0; j < TERMS_OF_THREAD; j++) {
            const int64_t i = first + thread * run + j;
            if (i >= t->n)
                continue;
            a[n] = t->a[i * t->sa];
            b[n++] = t->b[i * t->sb];
        }
    return n;
}

/* Ascending over blocks of 4 run terms, of which a step takes four from each run. */
static double tensor_core_by_runs(struct terms *t, const struct at_tc_rule *rule, double acc) {
    const int64_t block = THREADS_OF_ROW * (int64_t)t->order->run;
    const int64_t steps = (t->n + block - 1) / block * (t->order->run / TERMS_OF_THREAD);
    for (int64_t step = 0; step < steps; step++) {
        double a[THREADS_OF_ROW * TERMS_OF_THREAD], b[THREADS_OF_ROW * TERMS_OF_THREAD];
        const int n = gather_runs(t, step, a, b);
        const double old = acc;
        acc = at_fdpa(rule, t->order->input, a, 1, b, 1, n, old);
        if (t->watch) {
            int finite = isfinite(old);
            for (int i = 0; i < n; i++)
                finite &= isfinite(a[i]) && isfinite(b[i]);
            watch_step(t, step, acc, finite);
        }
        acc = rule->out == AT_F16 ? at_guarded(t->order->guard, acc) : acc;
    }
    return acc;
}

static double tensor_core(struct terms *t, const struct at_tc_rule *rule, double acc) {
    const int half = rule->out == AT_F16;
    const int chunk = at_order_chunk(t->order), by_f16 = at_unit_is_fp8_by_f16(t->order->unit);
    const int of_f32 = at_unit_is_tf32(t->order->unit);
    for (int64_t i = 0, step = 0; i < t->n; i += chunk, step++) {
        int n = (int)(t->n - i < chunk ? t->n - i : chunk);
        double old = acc;
        acc = by_f16   ? fp8_by_f16(t, rule, i, n, old)
              : of_f32 ? tf32(t, rule, i, n, old)
                       : at_fdpa(rule, t->order->input, t->a + i * t->sa, t->sa, t->b + i * t->sb, t->sb, n, old);
        if (t->watch)
            watch_step(t, step, acc, isfinite(old) && block_is_finite(t, i, n));
        acc = half ? at_guarded(t->order->guard, acc) : acc;
    }
    return acc;
}

double at_accumulate(const struct at_order *order, int64_t n, const double *a, ptrdiff_t sa, const double *b,
                     ptrdiff_t sb, double c, const struct at_watch *watch) {
    struct terms t = { order, a, b, sa, sb, n, order->run, watch, 0 };
    if (t.run <= 0)
        t.run = n > 0 ? (n + order->lanes - 1) / order->lanes : 1;
    const struct at_tc_rule *rule = at_unit_rule(order->unit);
    double sum;
    if (rule)
        sum = order->run ? tensor_core_by_runs(&t, rule, c) : tensor_core(&t, rule, c);
    else if (order->tree == AT_TREE_BUTTERFLY)
        sum = join_butterfly(&t, 0, 1, c);
    else
        sum = join_in_order(&t, c);
    if (order->guard == AT_GUARD_SCORE && at_unit_format(order->unit) == AT_F16)
        sum = at_guarded(AT_GUARD_ISINF, sum);
    if (t.was_infinite && !isinf(sum) && watch->ledger)
        watch->ledger->inf_cancelled++;
    return sum;
}
