/* The fused dot-product-add against its independent second implementation, to the bit, by stratum.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/oracle/fdpa_mpfr.h"
#include "tests/oracle/fdpa_strata.h"
#include "tensor_core/fdpa.h"

static const struct oracle_format f16 = { 5, 10 }, bf16 = { 8, 7 }, f32 = { 8, 23 };

struct pairing {
    const char *rule;
    enum at_format in;
    struct oracle_fdpa oracle;
};

static struct pairing pairings[4];

static int setup(void **state) {
    (void)state;
    pairings[0] = (struct pairing){ "hopper_f16_f32", AT_F16, { f16, f32, 25, 0, -133 } };
    pairings[1] = (struct pairing){ "hopper_bf16_f32", AT_BF16, { bf16, f32, 25, 0, -133 } };
    pairings[2] = (struct pairing){ "hopper_mma_f16_f16", AT_F16, { f16, f16, 25, 1, -22 } };
    pairings[3] = (struct pairing){ "hopper_wgmma_f16_f16", AT_F16, { f16, f16, 25, 1, -133 } };
    return 0;
}

/* What a batch met, so that a stratum that misses its purpose is noticed. */
struct seen {
    long compared, zero, subnormal, infinite, nan;
};

static void compare_one(const struct pairing *p, struct fdpa_random *random, enum fdpa_stratum stratum,
                        struct seen *seen) {
    uint16_t a[16], b[16];
    uint32_t c;
    double x[16], y[16];
    int n = fdpa_next(random) % 4 ? 16 : 1 + (int)(fdpa_next(random) % 16);
    const struct at_tc_rule *rule = at_tc_rule_find(p->rule);
    fdpa_fill(random, stratum, &p->oracle, n, a, b, &c);
    at_decode_array(p->in, (size_t)n, a, x);
    at_decode_array(p->in, (size_t)n, b, y);
    double got = at_fdpa(rule, p->in, x, 1, y, 1, n, at_decode(rule->out, c));
    uint32_t code = oracle_fdpa(&p->oracle, n, a, b, c);
    double want = at_decode(rule->out, code);
    if (at_encode(rule->out, got) != code && !(isnan(got) && isnan(want)))
        fail_msg("%s, stratum %d, input %ld, n %d: %a, second implementation %a", p->rule, (int)stratum, seen->compared,
                 n, got, want);
    seen->compared++;
    seen->zero += want == 0;
    seen->subnormal += want != 0 && fabs(want) < ldexp(1, at_format_info(rule->out)->emin);
    seen->infinite += isinf(want) != 0;
    seen->nan += isnan(want) != 0;
}

static void test_equal_to_second_implementation(void **state) {
    (void)state;
    struct fdpa_random random = { 11 };
    struct seen total = { 0 };
    const long each = 1000 * at_test_effort(4);
    for (size_t i = 0; i < sizeof pairings / sizeof pairings[0]; i++) {
        struct seen seen = { 0 };
        for (int s = 0; s < FDPA_STRATA; s++)
            for (long k = 0; k < each; k++)
                compare_one(&pairings[i], &random, (enum fdpa_stratum)s, &seen);
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
