/* The error bound of every accumulation unit: nothing lies beyond it, and half of it would not do.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include <mpfr.h>

#include "tensor_core/accumulate.h"
#include "tensor_core/fdpa.h"
#include "tests/support/splitmix.h"

enum { MAX_TERMS = 160, MPFR_BITS = 400 };

struct subject {
    const char *name;
    struct at_order order;
    enum at_format in;
};

static const struct subject subjects[] = {
    { "f64", { AT_UNIT_F64, 1, 0, AT_TREE_SEQUENTIAL, 16, AT_GUARD_NONE, AT_F64 }, AT_F64 },
    { "f32", { AT_UNIT_F32, 1, 0, AT_TREE_SEQUENTIAL, 16, AT_GUARD_NONE, AT_F32 }, AT_F32 },
    { "f32 4 lanes", { AT_UNIT_F32, 4, 0, AT_TREE_SEQUENTIAL, 16, AT_GUARD_NONE, AT_F32 }, AT_F32 },
    { "f32_fma", { AT_UNIT_F32_FMA, 1, 0, AT_TREE_SEQUENTIAL, 16, AT_GUARD_NONE, AT_F32 }, AT_F32 },
    { "f32_fma 32 lanes", { AT_UNIT_F32_FMA, 32, 1, AT_TREE_BUTTERFLY, 16, AT_GUARD_NONE, AT_F32 }, AT_F32 },
    { "tc_f32 f16", { AT_UNIT_TC_F32, 1, 0, AT_TREE_SEQUENTIAL, 16, AT_GUARD_NONE, AT_F16 }, AT_F16 },
    { "tc_f32 bf16", { AT_UNIT_TC_F32, 1, 0, AT_TREE_SEQUENTIAL, 16, AT_GUARD_NONE, AT_BF16 }, AT_BF16 },
    { "tc_f32 f16 k8", { AT_UNIT_TC_F32, 1, 0, AT_TREE_SEQUENTIAL, 8, AT_GUARD_NONE, AT_F16 }, AT_F16 },
    { "tc_f16", { AT_UNIT_TC_F16, 1, 0, AT_TREE_SEQUENTIAL, 16, AT_GUARD_NONE, AT_F16 }, AT_F16 },
    { "f16_fma", { AT_UNIT_F16_FMA, 1, 0, AT_TREE_SEQUENTIAL, 16, AT_GUARD_NONE, AT_F16 }, AT_F16 },
    { "tc_fp8 e4m3", { AT_UNIT_TC_FP8, 1, 0, AT_TREE_SEQUENTIAL, 0, AT_GUARD_NONE, AT_E4M3 }, AT_E4M3 },
    { "tc_fp8 e5m2", { AT_UNIT_TC_FP8, 1, 0, AT_TREE_SEQUENTIAL, 0, AT_GUARD_NONE, AT_E5M2 }, AT_E5M2 },
    { "tc_fp8_ada e4m3", { AT_UNIT_TC_FP8_ADA, 1, 0, AT_TREE_SEQUENTIAL, 0, AT_GUARD_NONE, AT_E4M3 }, AT_E4M3 },
    { "tc_fp8_ada e5m2", { AT_UNIT_TC_FP8_ADA, 1, 0, AT_TREE_SEQUENTIAL, 0, AT_GUARD_NONE, AT_E5M2 }, AT_E5M2 },
    { "tc_fp8_by_f16 e4m3", { AT_UNIT_TC_FP8_BY_F16, 1, 0, AT_TREE_SEQUENTIAL, 0, AT_GUARD_NONE, AT_E4M3 }, AT_E4M3 },
    { "tc_fp8_by_f16 e5m2", { AT_UNIT_TC_FP8_BY_F16, 1, 0, AT_TREE_SEQUENTIAL, 0, AT_GUARD_NONE, AT_E5M2 }, AT_E5M2 },
    { "tc_fp8_by_f16_f16 e4m3",
      { AT_UNIT_TC_FP8_BY_F16_F16, 1, 0, AT_TREE_SEQUENTIAL, 0, AT_GUARD_NONE, AT_E4M3 },
      AT_E4M3 },
    { "tc_fp8_by_f16_f16 e5m2",
      { AT_UNIT_TC_FP8_BY_F16_F16, 1, 0, AT_TREE_SEQUENTIAL, 0, AT_GUARD_NONE, AT_E5M2 },
      AT_E5M2 },
    { "tc_tf32", { AT_UNIT_TC_TF32, 1, 0, AT_TREE_SEQUENTIAL, 0, AT_GUARD_NONE, AT_F32 }, AT_F32 },
    { "tc_tf32_rna", { AT_UNIT_TC_TF32_RNA, 1, 0, AT_TREE_SEQUENTIAL, 0, AT_GUARD_NONE, AT_F32 }, AT_F32 },
    { "tc_tf32 k4", { AT_UNIT_TC_TF32, 1, 0, AT_TREE_SEQUENTIAL, 4, AT_GUARD_NONE, AT_F32 }, AT_F32 },
};
static int is_of_13_bits(enum at_unit unit) { return unit == AT_UNIT_TC_FP8 || unit == AT_UNIT_TC_FP8_ADA; }

enum { SUBJECTS = sizeof subjects / sizeof subjects[0] };

struct input {
    int n;
    double a[MAX_TERMS], b[MAX_TERMS], c;
};

/* What one evaluation showed. */
struct outcome {
    double error, size, largest; /* |got - exact|, |c| + sum |a b|, largest operand */
    int finite;
};

/* --- exact sums ------------------------------------------------------------------------------- */

/* |got - exact| for formats up to f32: products are exact in double, the sum is kept in two doubles
 * (relative error n^2 2^-106, far below any bound here). */
static double error_in_two_doubles(const struct input *in, double got) {
    double high = in->c, low = 0;
    for (int i = 0; i < in->n; i++) {
        double p = in->a[i] * in->b[i], sum = high + p, part = sum - high;
        low += (high - (sum - part)) + (p - part);
        high = sum;
    }
    return fabs((got - high) - low);
}

static double error_in_mpfr(const struct input *in, double got) {
    mpfr_t sum, x, y;
    mpfr_inits2(MPFR_BITS, sum, x, y, (mpfr_ptr)0);
    mpfr_set_d(sum, in->c, MPFR_RNDN);
    for (int i = 0; i < in->n; i++) {
        mpfr_set_d(x, in->a[i], MPFR_RNDN);
        mpfr_set_d(y, in->b[i], MPFR_RNDN);
        mpfr_fma(sum, x, y, sum, MPFR_RNDN);
    }
    mpfr_sub_d(sum, sum, got, MPFR_RNDN);
    double error = fabs(mpfr_get_d(sum, MPFR_RNDA));
    mpfr_clears(sum, x, y, (mpfr_ptr)0);
    return error;
}

static struct outcome evaluate(const struct subject *s, const struct input *in) {
    struct outcome o = { 0, fabs(in->c), 0, 0 };
    for (int i = 0; i < in->n; i++) {
        o.size += fabs(in->a[i] * in->b[i]);
        o.largest = fmax(o.largest, fmax(fabs(in->a[i]), fabs(in->b[i])));
    }
    double got = at_accumulate(&s->order, in->n, in->a, 1, in->b, 1, in->c, NULL);
    o.finite = isfinite(got) && isfinite(o.size);
    if (o.finite)
        o.error = s->in == AT_F64 ? error_in_mpfr(in, got) : error_in_two_doubles(in, got);
    return o;
}

/* --- random inputs ---------------------------------------------------------------------------- */

static double uniform(struct splitmix *r) { return (double)(splitmix_next(r) >> 11) * 0x1p-53; }

static double either_sign(struct splitmix *r, double x) { return splitmix_next(r) & 1 ? -x : x; }

static int between(struct splitmix *r, int low, int high) {
    return low + (int)(splitmix_next(r) % (uint64_t)(high - low + 1));
}

enum stratum { ORDINARY, POSITIVE, WIDE, CANCELLING, HALF_ULPS, SUBNORMAL, STRATA };

static void fill_term(struct splitmix *r, const struct subject *s, enum stratum stratum, struct input *in, int i) {
    const struct at_format_info *f = at_format_info(s->in);
    double u = is_of_13_bits(s->order.unit) ? 0x1p-14 : at_format_info(at_unit_format(s->order.unit))->u;
    double x = 2 * uniform(r) - 1, y = 2 * uniform(r) - 1;
    int reach = s->in == AT_F16 || s->in == AT_E5M2 ? 5
                : s->in == AT_E4M3                  ? 4
                                                    : 40,
        low = s->in == AT_F64 ? -1060 : f->emin - f->precision;
    if (stratum == POSITIVE) {
        x = fabs(x);
        y = fabs(y);
    } else if (stratum == WIDE) {
        x = ldexp(x, between(r, -reach, reach));
        y = ldexp(y, between(r, -reach, reach));
    } else if (stratum == HALF_ULPS) { /* sums near 1 with steps of about half a last place */
        x = ldexp(1 + uniform(r) * (splitmix_next(r) & 1), -between(r, 5, 8));
        y = u / x * (0.5 + uniform(r) * between(r, 0, 2)) * (s->order.unit == AT_UNIT_TC_F32 ? 0.5 : 1.0);
        x = between(r, 0, 7) ? x : -x;
    } else if (stratum == SUBNORMAL) {
        x = ldexp(x, low + between(r, 0, 2 * f->precision));
        y = either_sign(r, ldexp(1 + fabs(y), between(r, 0, 1) ? f->emin + between(r, -4, s->in == AT_E4M3 ? 12 : 20)
                                                               : between(r, 0, 8)));
    }
    in->a[i] = at_round(s->in, x);
    in->b[i] = at_round(s->in, y);
    if (stratum == CANCELLING && i % 2) {
        in->a[i] = -in->a[i - 1];
        in->b[i] = splitmix_next(r) & 1 ? in->b[i - 1] : at_round(s->in, in->b[i - 1] * (1 + 0.01 * y));
    }
}

static void fill(struct splitmix *r, const struct subject *s, enum stratum stratum, struct input *in) {
    static const int lengths[] = { 1, 2, 3, 5, 8, 15, 16, 17, 31, 33, 64, 128 };
    in->n = lengths[splitmix_next(r) % (sizeof lengths / sizeof lengths[0])];
    for (int i = 0; i < in->n; i++)
        fill_term(r, s, stratum, in, i);
    enum at_format out = at_unit_format(s->order.unit);
    double c = stratum == HALF_ULPS   ? 1 + (between(r, 0, 3) ? 0 : uniform(r))
               : stratum == SUBNORMAL ? ldexp(uniform(r), at_format_info(out)->emin)
                                      : either_sign(r, 4 * uniform(r));
    in->c = at_round(out, between(r, 0, 3) ? c : 0);
    if (is_of_13_bits(s->order.unit)) /* an f32 of which 13 fraction bits are kept */
        in->c = at_tc_convert(at_unit_rule(s->order.unit), in->c);
}

/* 10^6 evaluations over all units, strata and lengths; those that overflow are not claimed. */
static void test_nothing_beyond(void **state) {
    (void)state;
    struct splitmix random = { 3 };
    const long each = 170 * at_test_effort(100);
    for (int u = 0; u < SUBJECTS; u++) {
        const struct subject *s = &subjects[u];
        double worst = 0;
        long claimed = 0, total = 0;
        for (int k = 0; k < STRATA; k++)
            for (long i = 0; i < each; i++) {
                struct input in;
                fill(&random, s, (enum stratum)k, &in);
                struct outcome o = evaluate(s, &in);
                total++;
                if (!o.finite)
                    continue;
                claimed++;
                struct at_sum_error e = at_accumulate_error_within(&s->order, in.n, o.largest);
                double bound = e.e * o.size + e.eta;
                if (!(o.error <= bound))
                    fail_msg("%s, stratum %d, n %d: error %.17g beyond %.17g (sum of magnitudes %g)", s->name, k, in.n,
                             o.error, bound, o.size);
                worst = fmax(worst, o.error / bound);
            }
        print_message("%-18s %ld of %ld claimed, largest error/bound %.3f\n", s->name, claimed, total, worst);
        at_assert_true(claimed * 20 >= total * 19, "%s: %ld of %ld overflowed", s->name, total - claimed, total);
    }
}

/* --- adversaries ------------------------------------------------------------------------------ */

static void repeat(struct input *in, int first, int n, double a, double b) {
    for (int i = first; i < first + n; i++) {
        in->a[i] = a;
        in->b[i] = b;
    }
    in->n = in->n > first + n ? in->n : first + n;
}

/* Every rounding of the unit at its worst, all in one direction. */
static struct input worst_rounding(const struct subject *s) {
    struct input in = { 0 };
    double below_two = 2 - ldexp(1, 1 - at_format_info(s->in)->precision);
    switch (s->order.unit) {
    case AT_UNIT_F64: /* the product is a tie, then the sum is one; both go down */
        in.c = 0x1p-53;
        repeat(&in, 0, 1, 1 + 0x1p-26, 1 + 0x1p-27);
        break;
    case AT_UNIT_F32:
        in.c = 0x1p-24;
        repeat(&in, 0, 1, 1 + 0x1p-12, 1 + 0x1p-12);
        break;
    case AT_UNIT_F32_FMA: /* ties to even: each term is lost entirely */
        in.c = 1;
        repeat(&in, 0, 96, 0x1p-12, 0x1p-12);
        break;
    case AT_UNIT_F16_FMA:
        in.c = 1;
        repeat(&in, 0, 12, 0x1p-5, 0x1p-6);
        break;
    case AT_UNIT_TC_F16: /* one tie a step; the last step is a partial one */
        in.c = 1;
        for (int i = 0; i < 65; i += 16)
            repeat(&in, i, 1, 0x1p-5, 0x1p-6);
        break;
    case AT_UNIT_TC_F32: { /* each product loses almost 2^-25, and 3 * 2^-25 go at the conversion */
        int chunk = at_order_chunk(&s->order);
        in.c = 1;
        for (int i = 0; i < 8 * chunk; i += chunk) {
            repeat(&in, i, 3, below_two * 0x1p-13, below_two * 0x1p-13);
            repeat(&in, i + 3, chunk - 3, below_two * 0x1p-13, 0x1p-13);
        }
        break;
    }
    case AT_UNIT_TC_FP8: /* all products of a step are lost entirely */
    case AT_UNIT_TC_FP8_ADA:
        in.c = 16;
        repeat(&in, 0, at_order_chunk(&s->order), below_two * 0x1p-5, below_two * 0x1p-6);
        break;
    case AT_UNIT_TC_TF32: /* all that is dropped is nearly a last place, or half of one, of both operands */
        repeat(&in, 0, 8, 1 + 0x1p-10 - 0x1p-23, 1 + 0x1p-10 - 0x1p-23);
        break;
    case AT_UNIT_TC_TF32_RNA:
        repeat(&in, 0, 8, 1 + 0x1p-11 - 0x1p-23, 1 + 0x1p-11 - 0x1p-23);
        break;
    case AT_UNIT_TC_FP8_BY_F16:
    case AT_UNIT_TC_FP8_BY_F16_F16:
        break;
    }
    return in;
}

/* Underflow at its worst: what eta has to cover. */
static struct input worst_underflow(const struct subject *s) {
    struct input in = { 0 };
    const struct at_format_info *f = at_format_info(s->in);
    double below_two = 2 - ldexp(1, 1 - f->precision);
    switch (s->order.unit) {
    case AT_UNIT_F64: /* lost entirely; no double is as small as this error, it is measured rounded up */
        repeat(&in, 0, 1, 0x1p-538, 0x1p-538);
        break;
    case AT_UNIT_F32:
    case AT_UNIT_F32_FMA:
        repeat(&in, 0, 8, 0x1p-75, 0x1p-75);
        break;
    case AT_UNIT_F16_FMA:
        repeat(&in, 0, 8, 0x1p-12, 0x1p-13);
        break;
    case AT_UNIT_TC_F16: /* half the smallest subnormal in each of two steps */
        repeat(&in, 0, 1, 0x1p-12, 0x1p-13);
        repeat(&in, 16, 1, 0x1p-12, 0x1p-13);
        break;
    case AT_UNIT_TC_F32: /* a subnormal beside the largest value sets an exponent of 1; the others are cut there */
        repeat(&in, 0, at_order_chunk(&s->order), below_two * 0x1p-13, 0x1p-12);
        repeat(&in, 0, 1, ldexp(1, f->emin - f->precision + 1), f->max);
        break;
    case AT_UNIT_TC_FP8: /* the same; the exponent is that of the least normal number times the largest */
    case AT_UNIT_TC_FP8_ADA:
        repeat(&in, 0, at_order_chunk(&s->order), below_two * 0x1p-6, ldexp(1, f->emin + f->emax - 8));
        repeat(&in, 0, 1, ldexp(1, f->emin - f->precision + 1), f->max);
        break;
    case AT_UNIT_TC_TF32: /* subnormal operands that go entirely, beside large ones */
        repeat(&in, 0, 8, 0x1p-136 - 0x1p-149, 0x1p127);
        break;
    case AT_UNIT_TC_TF32_RNA:
        repeat(&in, 0, 8, 0x1p-137 - 0x1p-149, 0x1p127);
        break;
    case AT_UNIT_TC_FP8_BY_F16:
    case AT_UNIT_TC_FP8_BY_F16_F16:
        break;
    }
    return in;
}

/* Shares of its bound that an input's error takes, and of the part e alone. */
static void measure(const struct subject *s, const struct input *in, double *share, double *without_eta) {
    struct outcome o = evaluate(s, in);
    at_assert_true(o.finite, "%s: the adversary overflows", s->name);
    struct at_sum_error e = at_accumulate_error_within(&s->order, in->n, o.largest);
    struct at_sum_error any = at_accumulate_error(&s->order, in->n);
    at_assert_true(any.e == e.e && any.eta >= e.eta, "%s: known inputs have a wider bound", s->name);
    *share = o.error / (e.e * o.size + e.eta);
    *without_eta = o.error / (e.e * o.size);
    at_assert_true(*share <= 1, "%s: the adversary's error %g is beyond its bound", s->name, o.error);
}

/* Error above half the bound with e and eta as they are: with any u halved, test_nothing_beyond's
 * condition would be broken by this input. */
static void test_half_would_not_do(void **state) {
    (void)state;
    for (int u = 0; u < SUBJECTS; u++) {
        const struct subject *s = &subjects[u];
        if (at_unit_is_fp8_by_f16(s->order.unit))
            continue; /* two steps and an addition, each at its worst: no products do that to all three */
        if (s->order.lanes > 1)
            continue; /* n u is reached by chains; a term of a tree passes fewer roundings */
        struct input in = worst_rounding(s);
        double share, without_eta;
        measure(s, &in, &share, &without_eta);
        print_message("%-18s rounding: %.3f of the bound\n", s->name, share);
        at_assert_true(share > 0.5, "%s: e is slack", s->name);
    }
}

/* What rna rounds to infinity has no limit; the number below it has one, and so has what tf32 cuts. */
static void test_rounded_to_infinity(void **state) {
    (void)state;
    struct at_order order = { .unit = AT_UNIT_TC_TF32_RNA, .lanes = 1, .input = AT_F32 };
    const double first = 0x1.ffep127, below = 0x1.ffdffep127;
    assert_true(isinf(at_tf32_operand(order.unit, first)) && isfinite(at_tf32_operand(order.unit, below)));
    assert_true(at_accumulate_error_within(&order, 8, first).eta > at_format_info(AT_F32)->max);
    assert_true(at_accumulate_error_within(&order, 8, below).eta < at_format_info(AT_F32)->max);
    order.unit = AT_UNIT_TC_TF32;
    assert_true(at_accumulate_error_within(&order, 8, at_format_info(AT_F32)->max).eta < at_format_info(AT_F32)->max);
}

/* One term: a fused step rounds once, a product and its addition twice. */
static void test_one_term(void **state) {
    (void)state;
    for (int u = 0; u < SUBJECTS; u++) {
        enum at_unit unit = subjects[u].order.unit;
        if (at_unit_rule(unit))
            continue;
        int roundings = unit == AT_UNIT_F32_FMA || unit == AT_UNIT_F16_FMA ? 1 : 2;
        at_assert_same(at_accumulate_error(&subjects[u].order, 1).e,
                       roundings * at_format_info(at_unit_format(unit))->u);
    }
}

static void test_half_eta_would_not_do(void **state) {
    (void)state;
    for (int u = 0; u < SUBJECTS; u++) {
        const struct subject *s = &subjects[u];
        if (at_unit_is_fp8_by_f16(s->order.unit))
            continue; /* products of e4m3 do not underflow in f16, and of e5m2 too few do */
        struct input in = worst_underflow(s);
        double share, without_eta;
        measure(s, &in, &share, &without_eta);
        print_message("%-18s underflow: %.3f of the bound\n", s->name, share);
        at_assert_true(share > 0.5, "%s: eta is slack", s->name);
        at_assert_true(without_eta > 1, "%s: the input does not need eta", s->name);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_beyond),
        cmocka_unit_test(test_half_would_not_do),
        cmocka_unit_test(test_one_term),
        cmocka_unit_test(test_rounded_to_infinity),
        cmocka_unit_test(test_half_eta_would_not_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
