/* Sums in a declared order: lanes, trees, chunks, guards, and what the ledger is told.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/attention_problem.h"

#include "tensor_core/accumulate.h"
#include "tensor_core/fdpa.h"
#include "tensor_core/instruction.h"

static struct at_order order_of(enum at_unit unit, int lanes, int run, enum at_tree tree) {
    return (struct at_order){ .unit = unit, .lanes = lanes, .run = run, .tree = tree, .chunk = 16, .input = AT_F16 };
}

static double sum_of(struct at_order order, int n, const double *a, const double *b, double c) {
    return at_accumulate(&order, n, a, 1, b, 1, c, NULL);
}

static const double ones[64] = { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 };

/* Terms 2^24, 1, -2^24, 1: which of them meet first decides what is left. */
static void test_lanes_and_runs(void **state) {
    (void)state;
    const double a[4] = { 0x1p24, 1, -0x1p24, 1 };
    /* one chain: 2^24 + 1 is lost, then 0 + 1 */
    at_assert_same(sum_of(order_of(AT_UNIT_F32_FMA, 1, 0, AT_TREE_SEQUENTIAL), 4, a, ones, 0), 1.0);
    /* run 1: lane 0 has terms 0 and 2, lane 1 has 1 and 3 */
    at_assert_same(sum_of(order_of(AT_UNIT_F32_FMA, 2, 1, AT_TREE_SEQUENTIAL), 4, a, ones, 0), 2.0);
    /* run 0 is n / lanes = 2: (2^24 + 1) + (-2^24 + 1) = 2^24 + (-2^24 + 1) */
    at_assert_same(sum_of(order_of(AT_UNIT_F32_FMA, 2, 0, AT_TREE_SEQUENTIAL), 4, a, ones, 0), 1.0);
    /* run 0 of 3 terms is ceil(3 / 2) = 2: (2^24 + 1) - 2^24 */
    at_assert_same(sum_of(order_of(AT_UNIT_F32_FMA, 2, 0, AT_TREE_SEQUENTIAL), 3, a, ones, 0), 0.0);
    /* runs of 2 in turn: lane 0 has terms 0, 1, 4 and 5, lane 1 has 2, 3 and 6 */
    static const enum at_unit units[] = { AT_UNIT_F64, AT_UNIT_F32, AT_UNIT_F32_FMA, AT_UNIT_F16_FMA };
    for (int i = 0; i < 4; i++) {
        const double large = ldexp(1, at_format_info(at_unit_format(units[i]))->precision);
        const double turns[7] = { large, 0, 1, 0, -large, 0, 1 };
        at_assert_same(sum_of(order_of(units[i], 2, 2, AT_TREE_SEQUENTIAL), 7, turns, ones, 0), 2.0);
    }
    /* c starts lane 0: the lanes hold 2^24 + 1 = 2^24, then -2^24 */
    const double b[2] = { 1, -0x1p24 };
    at_assert_same(sum_of(order_of(AT_UNIT_F32_FMA, 2, 1, AT_TREE_SEQUENTIAL), 2, b, ones, 0x1p24), 0.0);
    /* more lanes than terms: the others hold +0 */
    at_assert_same(sum_of(order_of(AT_UNIT_F32, 8, 1, AT_TREE_BUTTERFLY), 2, a, ones, 0), 0x1p24);
}

/* Four lanes of one term: in order ((x0 + x1) + x2) + x3; the butterfly (x0 + x2) + (x1 + x3). */
static void test_trees(void **state) {
    (void)state;
    const double a[4] = { 0x1p24, 1, -0x1p24, 1 };
    at_assert_same(sum_of(order_of(AT_UNIT_F32, 4, 1, AT_TREE_SEQUENTIAL), 4, a, ones, 0), 1.0);
    at_assert_same(sum_of(order_of(AT_UNIT_F32, 4, 1, AT_TREE_BUTTERFLY), 4, a, ones, 0), 2.0);
    at_assert_same(sum_of(order_of(AT_UNIT_F64, 4, 1, AT_TREE_SEQUENTIAL), 4, a, ones, 0), 2.0);
}

/* x = 1 + 2^-12: x^2 = 1 + 2^-11 + 2^-24; minus (1 + 2^-11) leaves 2^-24 when the product is not rounded. */
static void test_fused_or_not(void **state) {
    (void)state;
    const double a[1] = { 1 + 0x1p-12 };
    at_assert_same(sum_of(order_of(AT_UNIT_F32_FMA, 1, 0, AT_TREE_SEQUENTIAL), 1, a, a, -(1 + 0x1p-11)), 0x1p-24);
    at_assert_same(sum_of(order_of(AT_UNIT_F32, 1, 0, AT_TREE_SEQUENTIAL), 1, a, a, -(1 + 0x1p-11)), 0.0);
}

/* 683 * 48 = 2^15 + 16 is half way between two f16 values: one rounding, after c was added. */
static void test_f16_fma_rounds_once(void **state) {
    (void)state;
    const struct at_order order = order_of(AT_UNIT_F16_FMA, 1, 0, AT_TREE_SEQUENTIAL);
    const double a[1] = { 683 }, b[1] = { 48 };
    at_assert_same(sum_of(order, 1, a, b, 0), 0x1p15);
    at_assert_same(sum_of(order, 1, a, b, 0x1p-24), 0x1p15 + 32);
    at_assert_same(sum_of(order, 1, a, b, -0x1p-24), 0x1p15);
    const double tiny[1] = { 0x1p-24 }; /* 2^-48 beside 1 */
    at_assert_same(sum_of(order, 1, tiny, tiny, 1), 1.0);
}

/* Lanes of an f16 unit are joined in f16: 2048 + 1 is a tie, 60000 + 60000 is beyond the range. */
static void test_f16_lanes_join_in_f16(void **state) {
    (void)state;
    const double tie[2] = { 2048, 1 }, big[2] = { 60000, 60000 };
    for (int tree = AT_TREE_SEQUENTIAL; tree <= AT_TREE_BUTTERFLY; tree++) {
        struct at_order order = order_of(AT_UNIT_F16_FMA, 2, 1, (enum at_tree)tree);
        at_assert_same(sum_of(order, 2, tie, ones, 0), 2048.0);
        at_assert_same(sum_of(order, 2, big, ones, 0), (double)INFINITY);
        order.guard = AT_GUARD_ISINF;
        at_assert_same(sum_of(order, 2, big, ones, 0), 65504.0);
    }
}

/* 2^-25 is a tie at half the smallest f16, which 2^-48 decides only where the exponent's floor is below -22. */
static void test_f16_tensor_core_is_mma(void **state) {
    (void)state;
    const double a[2] = { 0x1p-14, 0x1p-24 }, b[2] = { 0x1p-11, 0x1p-24 };
    at_assert_same(sum_of(order_of(AT_UNIT_TC_F16, 1, 0, AT_TREE_SEQUENTIAL), 2, a, b, 0), 0.0);
}

static void test_chunks_and_strides(void **state) {
    (void)state;
    double a[40], b[40];
    for (int i = 0; i < 40; i++) {
        a[i] = at_round(AT_F16, 1 + i * 0.37);
        b[i] = at_round(AT_F16, i % 3 - 0.9);
    }
    struct at_order order = order_of(AT_UNIT_TC_F32, 1, 0, AT_TREE_SEQUENTIAL);
    const struct at_tc_rule *rule = at_unit_rule(AT_UNIT_TC_F32);
    for (order.chunk = 8; order.chunk <= 32; order.chunk *= 2) {
        const int chunk = order.chunk < 16 ? order.chunk : 16; /* larger ones are several instructions */
        double want = 3;
        for (int i = 0; i < 20; i += chunk) {
            int n = 20 - i < chunk ? 20 - i : chunk;
            want = at_fdpa(rule, AT_F16, a + 2 * i, 2, b + 39 - i, -1, n, want);
        }
        at_assert_true(at_order_chunk(&order) == chunk, "chunk %d", at_order_chunk(&order));
        at_assert_same(at_accumulate(&order, 20, a, 2, b + 39, -1, 3, NULL), want);
    }
    order.chunk = 0; /* none said: the whole instruction */
    at_assert_true(at_order_chunk(&order) == 16, "chunk %d", at_order_chunk(&order));
    order.unit = AT_UNIT_F32;
    at_assert_true(at_order_chunk(&order) == 1, "chunk %d", at_order_chunk(&order));
}

static void test_guards(void **state) {
    (void)state;
    static const double want[5][2] = {
        { INFINITY, NAN }, { 65504, NAN }, { 65504, 0 }, { 65504, NAN }, { 65504, NAN }
    };
    for (int unit = AT_UNIT_TC_F16; unit <= AT_UNIT_F16_FMA; unit++)
        for (int guard = AT_GUARD_NONE; guard <= AT_GUARD_SCORE; guard++) {
            struct at_order order = order_of((enum at_unit)unit, 1, 0, AT_TREE_SEQUENTIAL);
            order.guard = (enum at_guard)guard;
            const double big[1] = { 60000 }, two[1] = { 2 }, nan[1] = { NAN };
            at_assert_same(sum_of(order, 1, big, two, 0), want[guard][0]);
            const double minus[1] = { -60000 };
            at_assert_same(sum_of(order, 1, minus, two, 0), -want[guard][0]);
            at_assert_same(sum_of(order, 1, nan, two, 0), want[guard][1]);
        }
}

/* A guard of the finished score leaves what becomes of an infinity on the way, and P V. */
static void test_guard_of_a_score(void **state) {
    (void)state;
    struct at_numerics numerics = at_numerics_default();
    numerics.qk_unit = numerics.pv_unit = AT_UNIT_TC_F16;
    numerics.pv_chunk = 16;
    numerics.guard = AT_GUARD_SCORE;
    at_assert_ok(at_numerics_check(&numerics));
    const struct at_order qk = at_order_qk(&numerics), pv = at_order_pv(&numerics);
    double a[17] = { 40000, 40000 };
    at_assert_same(sum_of(qk, 17, a, ones, 0), 65504.0);
    at_assert_same(sum_of(pv, 17, a, ones, 0), (double)INFINITY);
    a[16] = -40000; /* no way back from infinity, which a guard of each step has */
    at_assert_same(sum_of(qk, 17, a, ones, 0), 65504.0);
    a[16] = -INFINITY;
    at_assert_same(sum_of(qk, 17, a, ones, 0), (double)NAN);
}

/* Two chunks, 40000 + 40000, then -40000: infinite and staying so, or guarded and back in range. */
static void test_ledger(void **state) {
    (void)state;
    double a[17] = { 40000, 40000 };
    a[16] = -40000;
    for (int guarded = 0; guarded < 2; guarded++) {
        struct at_order order = order_of(AT_UNIT_TC_F16, 1, 0, AT_TREE_SEQUENTIAL);
        order.guard = guarded ? AT_GUARD_ISINF : AT_GUARD_NONE;
        struct at_ledger ledger;
        at_ledger_init(&ledger);
        struct at_watch watch = { .ledger = &ledger, .stage = AT_STAGE_qk_acc, .place = { .b = 2, .k = 7 } };
        double sum = at_accumulate(&order, 17, a, 1, ones, 1, 0, &watch);
        at_assert_same(sum, guarded ? 25504.0 : (double)INFINITY);
        const struct at_ledger_row *row = &ledger.stage[AT_STAGE_qk_acc];
        at_assert_true(row->count == 2, "%llu steps noted", (unsigned long long)row->count);
        at_assert_true(row->inf == (guarded ? 1u : 2u), "%llu infinite", (unsigned long long)row->inf);
        at_assert_true(row->has_first && row->first.step == 0 && row->first.b == 2 && row->first.k == 7, "first place");
        /* the second step starts from infinity: it makes none */
        at_assert_true(ledger.inf_made == 1, "%llu made", (unsigned long long)ledger.inf_made);
        at_assert_true(ledger.inf_cancelled == (uint64_t)guarded, "%llu cancelled",
                       (unsigned long long)ledger.inf_cancelled);
    }
}

/* 40000 + 40000: the step at which the infinity is seen, before the guard takes it away. */
static void test_place_of_overflow(void **state) {
    (void)state;
    static const struct {
        enum at_unit unit;
        int lanes, second; /* index of the second term */
        int64_t step;
        uint64_t count;
    } kinds[] = { { AT_UNIT_F16_FMA, 1, 1, 1, 2 },
                  { AT_UNIT_F16_FMA, 2, 1, 2, 3 }, /* the join is a step of its own, numbered n */
                  { AT_UNIT_TC_F16, 1, 16, 1, 2 } };
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        double a[17] = { 40000 };
        a[kinds[i].second] = 40000;
        struct at_order order = order_of(kinds[i].unit, kinds[i].lanes, kinds[i].lanes - 1, AT_TREE_SEQUENTIAL);
        order.guard = AT_GUARD_ISINF;
        struct at_ledger ledger;
        at_ledger_init(&ledger);
        struct at_watch watch = { .ledger = &ledger, .stage = AT_STAGE_pv_acc };
        at_assert_same(at_accumulate(&order, kinds[i].second + 1, a, 1, ones, 1, 0, &watch), 65504.0);
        const struct at_ledger_row *row = &ledger.stage[AT_STAGE_pv_acc];
        at_assert_true(row->count == kinds[i].count && row->inf == 1, "%zu: %llu steps, %llu infinite", i,
                       (unsigned long long)row->count, (unsigned long long)row->inf);
        at_assert_true(row->has_first && row->first.step == kinds[i].step, "%zu: step %lld", i,
                       (long long)row->first.step);
        at_assert_true(ledger.inf_made == 1 && ledger.inf_cancelled == 1, "%zu", i);
    }
}

/* An infinity that ends as NaN is cancelled; a NaN that was never infinite is not. */
static void test_nan_and_cancelled(void **state) {
    (void)state;
    const double both[2] = { INFINITY, -INFINITY }, nan[2] = { NAN, 1 };
    for (int unit = AT_UNIT_F64; unit <= AT_UNIT_F32_FMA; unit++)
        for (int infinite = 0; infinite < 2; infinite++) {
            struct at_order order = order_of((enum at_unit)unit, 1, 0, AT_TREE_SEQUENTIAL);
            struct at_ledger ledger;
            at_ledger_init(&ledger);
            struct at_watch watch = { .ledger = &ledger, .stage = AT_STAGE_qk_acc };
            at_assert_same(at_accumulate(&order, 2, infinite ? both : nan, 1, ones, 1, 0, &watch), (double)NAN);
            at_assert_true(ledger.inf_cancelled == (uint64_t)infinite, "unit %d: %llu cancelled", unit,
                           (unsigned long long)ledger.inf_cancelled);
        }
}

/* An infinite operand is nobody's overflow, whichever it is. */
static void test_infinite_operand_is_not_made(void **state) {
    (void)state;
    const double a[2] = { INFINITY, 1 };
    for (int unit = AT_UNIT_F64; unit <= AT_UNIT_F16_FMA; unit++) {
        struct at_order order = order_of((enum at_unit)unit, 1, 0, AT_TREE_SEQUENTIAL);
        struct at_ledger ledger;
        at_ledger_init(&ledger);
        struct at_watch watch = { .ledger = &ledger, .stage = AT_STAGE_pv_acc };
        at_assert_same(at_accumulate(&order, 2, a, 1, ones, 1, 0, &watch), (double)INFINITY);
        at_assert_same(at_accumulate(&order, 2, ones, 1, a, 1, 0, &watch), (double)INFINITY);
        at_assert_same(at_accumulate(&order, 2, ones, 1, ones, 1, INFINITY, &watch), (double)INFINITY);
        at_assert_true(ledger.inf_made == 0 && ledger.inf_cancelled == 0, "unit %d", unit);
    }
}

/* Threads that hold `run` neighbours: the sum is that of the terms laid out anew, step by step. */
static void test_runs_of_a_tensor_core(void **state) {
    (void)state;
    enum { MAX_TERMS = 100 };
    static const int runs[] = { 4, 8, 12, 16 };
    int differ = 0;
    for (uint64_t seed = 0; seed < 200; seed++) {
        struct at_test_random random = { seed };
        const int run = runs[seed % 4], n = 1 + (int)at_test_below(&random, MAX_TERMS), block = 4 * run;
        double a[MAX_TERMS], b[MAX_TERMS], a_new[2 * MAX_TERMS] = { 0 }, b_new[2 * MAX_TERMS] = { 0 };
        for (int i = 0; i < n; i++) {
            a[i] = at_round(AT_BF16, at_test_uniform(&random) - 0.5);
            b[i] = at_round(AT_BF16, at_test_uniform(&random) - 0.5);
            const int within = i % block, thread = within / run, step = within % run / 4;
            a_new[i - within + 16 * step + 4 * thread + within % 4] = a[i];
            b_new[i - within + 16 * step + 4 * thread + within % 4] = b[i];
        }
        struct at_order order = order_of(AT_UNIT_TC_F32, 1, run, AT_TREE_SEQUENTIAL), plain = order;
        plain.run = 0;
        struct at_ledger ledger;
        at_ledger_init(&ledger);
        struct at_watch watch = { .ledger = &ledger, .stage = AT_STAGE_qk_acc };
        const double got = at_accumulate(&order, n, a, 1, b, 1, 0.25, &watch);
        at_assert_same(got, at_accumulate(&plain, (n + block - 1) / block * block, a_new, 1, b_new, 1, 0.25, NULL));
        differ += got != at_accumulate(&plain, n, a, 1, b, 1, 0.25, NULL);
        assert_true(ledger.inf_made == 0);
    }
    at_assert_true(differ > 8, "%d of 200 sums differ from those in order", differ);
    const struct at_order order = order_of(AT_UNIT_TC_F32, 1, 8, AT_TREE_SEQUENTIAL);
    const double inf[2] = { 1, INFINITY };
    struct at_ledger ledger;
    at_ledger_init(&ledger);
    struct at_watch watch = { .ledger = &ledger, .stage = AT_STAGE_qk_acc };
    at_assert_same(at_accumulate(&order, 2, inf, 1, ones, 1, 0, &watch), (double)INFINITY);
    assert_true(ledger.inf_made == 0);
}

static void test_orders_from_numerics(void **state) {
    (void)state;
    struct at_numerics numerics = at_numerics_default();
    numerics.qk_unit = AT_UNIT_F32;
    numerics.qk_lanes = 4;
    numerics.qk_run = 2;
    numerics.qk_tree = AT_TREE_BUTTERFLY;
    numerics.pv_unit = AT_UNIT_TC_F16;
    numerics.pv_chunk = 32;
    numerics.p = AT_F16;
    numerics.guard = AT_GUARD_SATURATE;
    struct at_order qk = at_order_qk(&numerics), pv = at_order_pv(&numerics);
    at_assert_true(qk.unit == AT_UNIT_F32 && qk.lanes == 4 && qk.run == 2 && qk.tree == AT_TREE_BUTTERFLY, "qk");
    at_assert_true(pv.unit == AT_UNIT_TC_F16 && pv.lanes == 1 && pv.chunk == 32 && pv.input == AT_F16, "pv");
    at_assert_true(qk.guard == AT_GUARD_SATURATE && pv.guard == AT_GUARD_SATURATE, "guard");
    at_assert_true(at_unit_format(AT_UNIT_F64) == AT_F64 && at_unit_format(AT_UNIT_TC_F32) == AT_F32 &&
                       at_unit_format(AT_UNIT_F16_FMA) == AT_F16,
                   "formats");
}

/* Every exponent with bits around a tie: the nearest of the two neighbours in tf32, away from 0 from halfway on; or the
 * lower one. */
static void test_tf32_operands(void **state) {
    (void)state;
    const struct at_format_info *tf32 = at_format_info(AT_TF32);
    struct at_test_random random = { 11 };
    for (int exponent = 0; exponent < 255; exponent++)
        for (int i = 0; i < 400; i++) {
            static const uint32_t low[] = { 0, 1, 0xfff, 0x1000, 0x1001, 0x1fff };
            const uint32_t drawn = (uint32_t)at_test_bits(&random);
            const uint32_t last = i % 8 < 6 ? low[i % 8] : drawn & 0x1fff,
                           above = i < 40 ? (i & 8 ? 0x7fe000u : 0) : drawn & 0x7fe000u;
            const double x = at_decode(AT_F32, (uint32_t)exponent << 23 | above | last);
            const double place = ldexp(1, (exponent ? exponent - 127 : tf32->emin) - 10);
            const double lower = floor(x / place) * place, upper = lower + place;
            const double nearest = x - lower >= place / 2 ? upper : lower;
            for (int sign = -1; sign <= 1; sign += 2) {
                at_assert_same(at_tf32_operand(AT_UNIT_TC_TF32, sign * x), sign * lower);
                at_assert_same(at_tf32_operand(AT_UNIT_TC_TF32_RNA, sign * x),
                               nearest > tf32->max ? sign * (double)INFINITY : sign * nearest);
            }
        }
    for (int unit = AT_UNIT_TC_TF32; unit <= AT_UNIT_TC_TF32_RNA; unit++) {
        at_assert_same(at_tf32_operand((enum at_unit)unit, -(double)INFINITY), -(double)INFINITY);
        assert_true(isnan(at_tf32_operand((enum at_unit)unit, (double)NAN)));
    }
}

/* Sums of f32 are those of the instruction on operands that were cut or rounded before; a run of strides and a last step that
 * is not full. */
static void test_tf32_sums(void **state) {
    (void)state;
    const struct at_tc_instruction *t = at_tc_instruction_find("hopper_mma_k8_tf32_f32");
    struct at_test_random random = { 12 };
    assert_non_null(t);
    for (int unit = AT_UNIT_TC_TF32; unit <= AT_UNIT_TC_TF32_RNA; unit++) {
        const struct at_order order = { .unit = (enum at_unit)unit, .lanes = 1, .input = AT_F32 };
        at_assert_true(at_order_chunk(&order) == 8 && at_unit_format(order.unit) == AT_F32, "steps of 8 in f32");
        for (int run = 0; run < 2000; run++) {
            double a[3 * 29], b[29], want = at_round(AT_F32, at_test_uniform(&random));
            const double c = want;
            const int n = 1 + at_test_below(&random, 29);
            for (int i = 0; i < n; i++) {
                a[3 * i] =
                    at_round(AT_F32, (2 * at_test_uniform(&random) - 1) * ldexp(1, at_test_below(&random, 40) - 20));
                b[i] = at_round(AT_F32, 2 * at_test_uniform(&random) - 1);
            }
            for (int i = 0; i < n; i += 8) {
                double x[8] = { 0 }, y[8] = { 0 };
                for (int j = 0; j < 8 && i + j < n; j++) {
                    x[j] = at_tf32_operand(order.unit, a[3 * (i + j)]);
                    y[j] = at_tf32_operand(order.unit, b[i + j]);
                }
                want = at_tc_multiply_add(t, NULL, x, y, want);
            }
            at_assert_same(at_accumulate(&order, n, a, 3, b, 1, c, NULL), want);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lanes_and_runs),
        cmocka_unit_test(test_trees),
        cmocka_unit_test(test_fused_or_not),
        cmocka_unit_test(test_f16_fma_rounds_once),
        cmocka_unit_test(test_f16_lanes_join_in_f16),
        cmocka_unit_test(test_f16_tensor_core_is_mma),
        cmocka_unit_test(test_chunks_and_strides),
        cmocka_unit_test(test_guards),
        cmocka_unit_test(test_guard_of_a_score),
        cmocka_unit_test(test_ledger),
        cmocka_unit_test(test_place_of_overflow),
        cmocka_unit_test(test_nan_and_cancelled),
        cmocka_unit_test(test_infinite_operand_is_not_made),
        cmocka_unit_test(test_runs_of_a_tensor_core),
        cmocka_unit_test(test_orders_from_numerics),
        cmocka_unit_test(test_tf32_operands),
        cmocka_unit_test(test_tf32_sums),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
