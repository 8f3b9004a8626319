/* Studies: the arithmetic of every mode of accumulation, its bounds, exact sums.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "datasets/fill/random.h"
#include "tensor_core/accumulate.h"
#include "verify/study/accumulate/study.h"

enum { MAX = 1 << 17 };
static double left[MAX], right[MAX];

static const struct at_study_mode *mode_of(const char *name) {
    const struct at_study_mode *mode = at_study_mode_find(name);
    at_assert_true(mode != NULL, "no mode %s", name);
    return mode;
}

static double sum_of(const char *name, int64_t n) { return at_study_add(mode_of(name), n, left, right, NULL, NULL); }

static void fill(double a, double b, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        left[i] = a;
        right[i] = b;
    }
}

/* ---- stalls ---- */

/* a = b = 1/16: a product is 2^-8. An accumulator whose last place is twice what a step adds stands still: E8M13 at
 * 2^6 (each of a step's products is cut away), f16 at 2^7, 2^6 and 2^3 where 16, 8 and 1 products are a tie to even. */
static void test_stalls(void **state) {
    (void)state;
    static const struct {
        const char *mode;
        int step;
        double end;
    } kinds[] = { { "e8m13_k32", 32, 64 }, { "f16_k16", 16, 128 }, { "f16_k8", 8, 64 }, { "f16_fma", 1, 8 } };
    fill(0.0625, 0.0625, MAX);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const double each = kinds[i].step * 0x1p-8;
        const int64_t last = (int64_t)(kinds[i].end / each); /* steps that still count */
        at_assert_same(sum_of(kinds[i].mode, (last - 1) * kinds[i].step), kinds[i].end - each);
        at_assert_same(sum_of(kinds[i].mode, last * kinds[i].step), kinds[i].end);
        at_assert_same(sum_of(kinds[i].mode, (last + 1) * kinds[i].step), kinds[i].end);
        at_assert_same(sum_of(kinds[i].mode, 2 * last * kinds[i].step), kinds[i].end);
    }
    at_assert_same(sum_of("e8m13_k32", 496 * 32), 62.0);
    at_assert_same(sum_of("e8m13_k32", 512 * 32), 64.0);
    /* promotion, blocks and f32 go on */
    at_assert_same(sum_of("e8m13_k32_every128", MAX), 512.0);
    at_assert_same(sum_of("e8m13_k32_every512", MAX), 512.0);
    at_assert_same(sum_of("f16_k16_block32", MAX), 512.0);
    at_assert_same(sum_of("f16_k16_block128", MAX), 512.0);
    at_assert_same(sum_of("f32_k16", MAX), 512.0);
    at_assert_same(sum_of("f32_fma", MAX), 512.0);
    /* bf16 has 8 bits: a chain of 2^-8 stands at 1, steps of 2^-4 at 16 */
    at_assert_same(sum_of("bf16_fma", MAX), 1.0);
    at_assert_same(sum_of("bf16_k16", MAX), 16.0);
}

struct seen {
    int64_t steps, products, swamped, last_n;
};

static void see(void *context, const struct at_study_step *step) {
    struct seen *seen = context;
    at_assert_true(step->index == seen->steps && step->first == seen->products, "step %lld", (long long)step->index);
    seen->steps++;
    seen->products += step->n;
    seen->last_n = step->n;
    seen->swamped += step->stored == step->before;
}

/* The observer sees every step once, in order, a last shorter one too; nothing for no products. */
static void test_observer(void **state) {
    (void)state;
    fill(0.0625, 0.0625, MAX);
    for (int m = 0; m < at_study_mode_count(); m++) {
        const struct at_study_mode *mode = at_study_mode_at(m);
        for (int64_t n = 0; n < 300; n += 1 + n / 3) {
            struct seen seen = { 0 };
            const struct at_study_observer observer = { see, &seen };
            const double sum = at_study_add(mode, n, left, right, &observer, NULL);
            at_assert_true(seen.products == n && seen.steps == (n + mode->step - 1) / mode->step, "%s, %lld products",
                           mode->name, (long long)n);
            at_assert_true(n == 0 || seen.last_n == (n - 1) % mode->step + 1, "%s", mode->name);
            if (n < 128)
                at_assert_same(sum, (double)n * 0x1p-8);
        }
    }
    struct seen seen = { 0 };
    const struct at_study_observer observer = { see, &seen };
    at_study_add(mode_of("f16_fma"), 4096, left, right, &observer, NULL);
    at_assert_true(seen.swamped == 2048, "%lld swamped", (long long)seen.swamped);
}

/* ---- the end of the range ---- */

static double sum_at(const char *name, int n, const double *x, int64_t *guarded) {
    for (int i = 0; i < n; i++) {
        left[i] = x[i];
        right[i] = 1;
    }
    return at_study_add(mode_of(name), n, left, right, NULL, guarded);
}

static void test_range(void **state) {
    (void)state;
    const double below[16] = { 65504, 15 }, at[16] = { 65504, 16 }, one[16] = { 60000, 60000, -60000 };
    double two[32] = { 60000, 60000 }, blocks[64] = { 60000, 60000 };
    int64_t guarded;
    two[16] = -60000;
    blocks[32] = blocks[33] = -60000;
    at_assert_same(sum_at("f16_k16", 16, below, NULL), 65504.0);
    at_assert_same(sum_at("f16_k16", 16, at, NULL), (double)INFINITY);
    at_assert_same(sum_at("f16_k16", 16, one, NULL), 60000.0);
    at_assert_same(sum_at("f16_k16", 32, two, NULL), (double)INFINITY);
    at_assert_same(sum_at("f16_fma", 16, one, NULL), (double)INFINITY);
    at_assert_same(sum_at("f32_k16", 32, two, NULL), 60000.0);
    /* guards: of the finished sum, or of each step, which then goes on from 65504 */
    at_assert_same(sum_at("f16_k16_isinf", 32, two, &guarded), 65504.0);
    at_assert_true(guarded == 1, "%lld", (long long)guarded);
    at_assert_same(sum_at("f16_k16_nan_safe", 32, two, &guarded), 65504.0);
    at_assert_same(sum_at("f16_k16_saturate", 32, two, &guarded), 5504.0);
    at_assert_true(guarded == 1, "%lld", (long long)guarded);
    at_assert_same(sum_at("f16_k16_isinf", 16, one, &guarded), 60000.0);
    at_assert_true(guarded == 0, "%lld", (long long)guarded);
    /* a NaN comes of infinite blocks, and of infinite operands */
    at_assert_same(sum_at("f16_k16", 64, blocks, NULL), (double)INFINITY);
    at_assert_same(sum_at("f16_k16_block32", 64, blocks, NULL), (double)NAN);
    blocks[0] = NAN;
    at_assert_same(sum_at("f16_k16_isinf", 64, blocks, &guarded), (double)NAN);
    at_assert_true(guarded == 0, "%lld", (long long)guarded);
    at_assert_same(sum_at("f16_k16_nan_safe", 64, blocks, &guarded), 0.0);
    at_assert_true(guarded == 1, "%lld", (long long)guarded);
}

/* ---- other arithmetic says the same ---- */

static void random_operands(enum at_format format, uint64_t stream, int64_t n) {
    const struct at_random random = { 5, stream };
    at_random_normals(&random, 0, n, left);
    at_random_normals(&random, (uint64_t)n, n, right);
    for (int64_t i = 0; i < n; i++) {
        left[i] = at_round(format, left[i]);
        right[i] = at_round(format, right[i] * (i % 7 ? 1 : 0x1p-12));
    }
}

/* The modes that a declared unit has: the same bits from the reference's own accumulation. */
static void test_units(void **state) {
    (void)state;
    static const struct {
        const char *mode;
        enum at_unit unit;
        int chunk;
    } kinds[] = { { "f32_fma", AT_UNIT_F32_FMA, 1 },
                  { "f32_k16", AT_UNIT_TC_F32, 16 },
                  { "f16_fma", AT_UNIT_F16_FMA, 1 },
                  { "f16_k8", AT_UNIT_TC_F16, 8 },
                  { "f16_k16", AT_UNIT_TC_F16, 16 } };
    for (int64_t n = 0; n < 40 * at_test_effort(10); n++) {
        random_operands(AT_F16, (uint64_t)n, n);
        for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
            const struct at_order order = {
                .unit = kinds[i].unit, .lanes = 1, .tree = AT_TREE_SEQUENTIAL, .chunk = kinds[i].chunk, .input = AT_F16
            };
            at_assert_same(sum_of(kinds[i].mode, n), at_accumulate(&order, n, left, 1, right, 1, 0, NULL));
            const double bound = at_accumulate_error(&order, n).e; /* and the same bound */
            at_assert_within(at_study_bound(mode_of(kinds[i].mode), n, 1).worst, bound, 1e-12 * bound);
        }
    }
}

/* One rounding to bf16, not two: 1 + 2^-8 is a tie, and 2^-60 beside it decides although no double holds the sum. */
static void test_bf16_rounds_once(void **state) {
    (void)state;
    left[0] = right[0] = right[1] = 1;
    left[1] = 0x1p-8;
    at_assert_same(sum_of("bf16_fma", 2), 1.0);
    const struct at_study_mode chain = { .operand = AT_F64, .step = 1, .stored = AT_BF16 };
    left[0] = 0x1p-60;
    left[1] = 1 + 0x1p-8;
    at_assert_same(at_study_add(&chain, 2, left, right, NULL, NULL), 1 + 0x1p-7);
    left[0] = -0x1p-60;
    at_assert_same(at_study_add(&chain, 2, left, right, NULL, NULL), 1.0);
}

/* ---- theory ---- */

/* No sum in range passes its bound. */
static void test_bounds_hold(void **state) {
    (void)state;
    for (int m = 0; m < at_study_mode_count(); m++) {
        const struct at_study_mode *mode = at_study_mode_at(m);
        for (int64_t n = 1; n < 2000; n += 1 + n * 2 / at_test_effort(3)) {
            double magnitude;
            random_operands(mode->operand, (uint64_t)(1000 * m + n), n);
            const double exact = at_study_exact(n, left, right, &magnitude), sum = sum_of(mode->name, n);
            const struct at_study_bound bound = at_study_bound(mode, n, 8);
            at_assert_within(sum, exact, bound.worst * magnitude + bound.eta);
            at_assert_true(bound.probable <= bound.worst * (1 + 1e-9), "%s", mode->name);
        }
    }
}

/* Inputs made to lose most: a bound of half the size would be broken. 1 and then products of `size` half last places,
 * which a chain rounds up, a step drops together, E8M13 and f32_k16 cut away one by one. */
static void test_bounds_are_met(void **state) {
    (void)state;
    static const struct {
        const char *mode;
        int n, period; /* 1 at multiples of the period */
        double product;
        double share; /* of the bound */
    } kinds[] = { { "f16_fma", 257, 257, 0x1p-11 * 1.015625, 0.8 },
                  { "bf16_fma", 33, 33, 0x1p-8 * 1.015625, 0.8 },
                  { "f32_fma", 257, 257, 0x1p-24 * 1.015625, 0.8 },
                  { "f32_k16", 16, 16, 0x1p-25 * 0.984375, 0.7 },
                  { "f16_k16", 16, 16, 0x1p-15 * 0.984375, 0.9 },
                  { "f16_k8", 8, 8, 0x1p-14 * 0.984375, 0.8 },
                  { "f16_k16_block32", 64, 32, 0x1p-15 * 0.984375, 0.9 },
                  { "f16_k16_block128", 256, 128, 0x1p-15 * 0.984375, 0.9 },
                  { "bf16_k16", 16, 16, 0x1p-12 * 0.984375, 0.9 },
                  { "e8m13_k32", 32, 32, 0x1p-13 * 0.9375, 0.8 },
                  { "e8m13_k32_every128", 256, 128, 0x1p-13 * 0.9375, 0.8 },
                  { "e8m13_k32_every512", 1024, 512, 0x1p-13 * 0.9375, 0.8 } };
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const int fp8 = mode_of(kinds[k].mode)->operand == AT_E4M3, half = ilogb(kinds[k].product) / 2 - fp8;
        double magnitude;
        for (int i = 0; i < kinds[k].n; i++) {
            left[i] = i % kinds[k].period ? ldexp(kinds[k].product, -half) : 1;
            right[i] = i % kinds[k].period ? ldexp(1, half) : 1;
            at_assert_same(at_round(mode_of(kinds[k].mode)->operand, left[i]), left[i]);
        }
        const struct at_study_bound bound = at_study_bound(mode_of(kinds[k].mode), kinds[k].n, 1);
        const double exact = at_study_exact(kinds[k].n, left, right, &magnitude);
        const double error = fabs(sum_of(kinds[k].mode, kinds[k].n) - exact) / magnitude;
        at_assert_true(error > kinds[k].share * bound.worst && error <= bound.worst, "%s: error %g, bound %g",
                       kinds[k].mode, error, bound.worst);
    }
}

/* The probable error grows with the root of the steps, the bound with the steps; promotion stops both. */
static void test_bounds_grow(void **state) {
    (void)state;
    for (int m = 0; m < at_study_mode_count(); m++) {
        const struct at_study_mode *mode = at_study_mode_at(m);
        const int64_t n = 4 * 512;
        const struct at_study_bound one = at_study_bound(mode, n, 1), sixteen = at_study_bound(mode, 16 * n, 1);
        if (mode->every) {
            at_assert_true(sixteen.worst < one.worst * 1.1 && sixteen.probable < one.probable * 1.1, "%s", mode->name);
            continue;
        }
        at_assert_within(sixteen.probable, 4 * one.probable, 1e-9 * one.probable);
        at_assert_true(sixteen.worst >= 15.9 * one.worst, "%s", mode->name);
    }
}

/* 2^53 - 1 + 1 - 2^53 and its like: doubles alone lose the 1. */
static void test_exact(void **state) {
    (void)state;
    double magnitude;
    const double a[4] = { 0x1p30, 1, -0x1p30, 0x1p-24 }, b[4] = { 0x1p30, 1, 0x1p30, 0x1p-24 };
    at_assert_same(at_study_exact(4, a, b, &magnitude), 1 + 0x1p-48);
    at_assert_same(magnitude, 0x1p61); /* 1 is lost beside it, which matters to nobody */
    at_assert_same(at_study_exact(0, a, b, &magnitude), 0.0);
    at_assert_same(magnitude, 0.0);
    const double infinite[1] = { INFINITY };
    at_assert_same(at_study_exact(1, infinite, b, &magnitude), (double)INFINITY);
}

static void test_to_e4m3(void **state) {
    (void)state;
    double x[4] = { 3.5, -0.1, 0, INFINITY }, zero[2] = { 0 }, end[1] = { 448 }, above[1] = { 449 },
           tiny[1] = { 0x1p-24 };
    at_assert_same(at_study_to_e4m3(4, x), 128.0); /* 3.5 * 128 is the end of e4m3 */
    at_assert_same(x[0], 448.0);
    at_assert_same(x[1], -13.0); /* 12.8 */
    at_assert_same(x[2], 0.0);
    at_assert_same(x[3], (double)INFINITY);
    at_assert_same(at_study_to_e4m3(2, zero), 1.0);
    at_assert_same(at_study_to_e4m3(1, end), 1.0);
    at_assert_same(end[0], 448.0);
    at_assert_same(at_study_to_e4m3(1, above), 0.5);
    at_assert_same(above[0], 224.0);
    at_assert_same(at_study_to_e4m3(1, tiny), 0x1p32);
    at_assert_same(tiny[0], 256.0);
}

/* The names of modes and fields are what archives are read by. */
static void test_names(void **state) {
    (void)state;
    for (int i = 0; i < at_study_mode_count(); i++) {
        const struct at_study_mode *mode = at_study_mode_at(i);
        at_assert_true(at_study_mode_find(mode->name) == mode, "%s", mode->name);
        at_assert_true(strlen(mode->name) < sizeof((struct at_study_row *)0)->mode, "%s", mode->name);
        at_assert_true(!mode->every || mode->every % mode->step == 0, "%s", mode->name);
        const char *every = strstr(mode->name, "every"), *block = strstr(mode->name, "block"),
                   *k = strstr(mode->name, "_k");
        const char *number = every ? every + 5 : block ? block + 5 : "0";
        at_assert_true(strtol(number, NULL, 10) == mode->every, "%s promotes every %d", mode->name, mode->every);
        at_assert_true((k ? strtol(k + 2, NULL, 10) : 1) == mode->step, "%s has steps of %d", mode->name, mode->step);
    }
    at_assert_true(at_study_mode_find("f16") == NULL && at_study_field(-1) == NULL && at_study_field(1000) == NULL, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stalls),
        cmocka_unit_test(test_observer),
        cmocka_unit_test(test_range),
        cmocka_unit_test(test_units),
        cmocka_unit_test(test_bf16_rounds_once),
        cmocka_unit_test(test_bounds_hold),
        cmocka_unit_test(test_bounds_are_met),
        cmocka_unit_test(test_bounds_grow),
        cmocka_unit_test(test_exact),
        cmocka_unit_test(test_to_e4m3),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
