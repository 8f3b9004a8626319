/* The fused dot-product-add against its independent second implementation, to the bit, by stratum.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "datasets/fill/tc_patterns.h"
#include "tests/oracle/fdpa_mpfr.h"
#include "tensor_core/fdpa.h"

static const struct oracle_format f16 = { 5, 10, 0 }, bf16 = { 8, 7, 0 }, f32 = { 8, 23, 0 }, tf32 = { 8, 10, 0 };
static const struct oracle_format e5m2 = { 5, 2, 0 };

struct pairing {
    const char *rule;
    enum at_format in;
    struct oracle_fdpa oracle;
};

enum { PAIRINGS = 9 };
static struct pairing pairings[PAIRINGS];

static struct pairing pairing(const char *rule, enum at_format in, struct oracle_format format,
                              struct oracle_format out, int kept, int to_nearest, int floor) {
    const struct oracle_fdpa oracle = {
        .a = format, .b = format, .out = out, .kept = kept, .to_nearest = to_nearest, .floor = floor
    };
    return (struct pairing){ rule, in, oracle };
}

static int setup(void **state) {
    (void)state;
    pairings[0] = pairing("hopper_f16_f32", AT_F16, f16, f32, 25, 0, -133);
    pairings[1] = pairing("hopper_bf16_f32", AT_BF16, bf16, f32, 25, 0, -133);
    pairings[2] = pairing("hopper_mma_f16_f16", AT_F16, f16, f16, 25, 1, -21);
    pairings[3] = pairing("hopper_wgmma_f16_f16", AT_F16, f16, f16, 25, 1, -21);
    pairings[4] = pairing("hopper_tf32_f32", AT_TF32, tf32, f32, 25, 0, -133);
    pairings[5] = pairing("hopper_wgmma_fp8_f16", AT_E5M2, e5m2, f16, 13, 1, -133);
    pairings[6] = pairing("volta_f16_f32", AT_F16, f16, f32, 23, 0, -131);
    pairings[7] = pairing("ampere_f16_f16", AT_F16, f16, f16, 24, 1, -21);
    pairings[8] = pairing("blackwell_f8f6f4_f32", AT_E5M2, e5m2, f32, 25, 0, -133);
    return 0;
}

/* What a batch met, so that a stratum that misses its purpose is noticed. */
struct seen {
    long compared, zero, subnormal, infinite, nan;
};

/* The oracle takes a code's own bits; tf32 is stored in the upper 19 of 32. */
static uint32_t own_bits(enum at_format in, uint32_t code) { return in == AT_TF32 ? code >> 13 : code; }

static void compare_one(const struct pairing *p, enum at_tc_stratum stratum, long index, struct seen *seen) {
    const struct at_tc_rule *rule = at_tc_rule_find(p->rule);
    const struct at_tc_target target = {
        p->in, p->in, rule->out, rule->kept_bits, rule->zero_exponent, rule->rounding
    };
    uint32_t a[AT_TC_BLOCK_MAX], b[AT_TC_BLOCK_MAX];
    double x[AT_TC_BLOCK_MAX], y[AT_TC_BLOCK_MAX], c;
    const int n = index % 4 ? rule->block : 1 + (int)(index / 4 % rule->block);
    at_tc_pattern(&target, stratum, 11, index, n, a, b, &c);
    for (int i = 0; i < n; i++) {
        x[i] = at_decode(p->in, a[i]);
        y[i] = at_decode(p->in, b[i]);
        a[i] = own_bits(p->in, a[i]);
        b[i] = own_bits(p->in, b[i]);
    }
    double got = at_fdpa(rule, p->in, x, 1, y, 1, n, c);
    uint32_t code = oracle_fdpa(&p->oracle, n, a, b, (uint32_t)at_encode(rule->out, c));
    double want = at_decode(rule->out, code);
    if (at_encode(rule->out, got) != code && !(isnan(got) && isnan(want)))
        fail_msg("%s, %s, input %ld, n %d: %a, second implementation %a", p->rule, at_tc_stratum_name(stratum), index,
                 n, got, want);
    seen->compared++;
    seen->zero += want == 0;
    seen->subnormal += want != 0 && fabs(want) < ldexp(1, at_format_info(rule->out)->emin);
    seen->infinite += isinf(want) != 0;
    seen->nan += isnan(want) != 0;
}

static void test_equal_to_second_implementation(void **state) {
    (void)state;
    struct seen total = { 0 };
    const long each = 1000 * at_test_effort(4);
    for (int i = 0; i < PAIRINGS; i++) {
        struct seen seen = { 0 };
        for (int s = 0; s < AT_TC_STRATA; s++)
            for (long k = 0; k < each; k++)
                compare_one(&pairings[i], (enum at_tc_stratum)s, k, &seen);
        print_message("%s: %ld compared, %ld zero, %ld subnormal, %ld infinite, %ld NaN\n", pairings[i].rule,
                      seen.compared, seen.zero, seen.subnormal, seen.infinite, seen.nan);
        at_assert_true(seen.infinite > seen.compared / 100, "%s met few infinities", pairings[i].rule);
        at_assert_true(seen.nan > seen.compared / 100, "%s met few NaNs", pairings[i].rule);
        total.compared += seen.compared;
        total.subnormal += seen.subnormal;
        total.zero += seen.zero;
    }
    at_assert_true(total.subnormal > total.compared / 100, "%ld subnormal results", total.subnormal);
    at_assert_true(total.zero > 100, "%ld zero results", total.zero);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal_to_second_implementation),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
