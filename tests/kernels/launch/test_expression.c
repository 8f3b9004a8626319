/* Integer expressions of launch files: values, precedence, what is refused and with which words.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "attest/op.h"
#include "kernels/launch/expression.h"

static struct at_launch_expression_scope scope;
static struct at_problem problem;

static void prepare(void) {
    scope = (struct at_launch_expression_scope){ .op = at_op_find("softmax_attention"),
                                                 .n = 2,
                                                 .named = { "tile", "n_tiles" } };
    at_problem_init(&problem, scope.op, AT_BF16);
    problem.sizes.b = 3;
    problem.sizes.h = 8;
    problem.sizes.hk = 2;
    problem.sizes.d = 64;
    problem.sizes.max_sq = 100;
    problem.sizes.max_sk = 300;
    problem.sizes.capacity = 320;
    problem.params.causal = 1;
}

static int64_t value_of(const char *text) {
    const struct at_launch_expression_values values = { .problem = &problem, .sms = 132, .named = { 16, 7 } };
    struct at_launch_expression e;
    int64_t value = -12345;
    at_assert_ok(at_launch_expression_parse(text, &scope, &e));
    at_assert_true(strcmp(e.text, text) == 0, "kept \"%s\" of \"%s\"", e.text, text);
    at_assert_ok(at_launch_expression_value(&e, &values, &value));
    return value;
}

static void test_values(void **state) {
    static const struct {
        const char *text;
        int64_t want;
    } all[] = {
        { "7", 7 },
        { " b * h ", 24 },
        { "1 + 2 * 3", 7 },
        { "(1 + 2) * 3", 9 },
        { "10 - 3 - 2", 5 },
        { "100 / 7 / 2", 7 },
        { "7 / 2", 3 },
        { "-7 / 2", -4 },
        { "7 / -2", -4 },
        { "-7 % 4", 1 },
        { "cdiv(sq, 64)", 2 },
        { "cdiv(128, 64)", 2 },
        { "cdiv(0, 64)", 0 },
        { "cdiv(-7, 2)", -3 },
        { "min(b, h) + max(b, h)", 11 },
        { "min(sms, cdiv(sq, tile) * h)", 56 },
        { "sq + max_sq - 2 * sq", 0 },
        { "sk", 300 },
        { "capacity - sk", 20 },
        { "d * dtype_bytes", 128 },
        { "n_tiles + tile", 23 },
        { "causal", 1 },
        { "b == 3", 1 },
        { "b != 3", 0 },
        { "b < 3", 0 },
        { "b <= 3", 1 },
        { "b > 3", 0 },
        { "b >= 3", 1 },
        { "d == 64 && h % hk == 0", 1 },
        { "d == 64 && page != 0", 0 },
        { "d == 65 || page == 0", 1 },
        { "1 || 1 && 0", 1 },
        { "!causal", 0 },
        { "!!causal + 1", 2 },
        { "--3", 3 },
        { "1 + 2 == 3", 1 },
        { "9223372036854775807", INT64_MAX },
    };
    (void)state;
    prepare();
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        const int64_t got = value_of(all[i].text);
        at_assert_true(got == all[i].want, "\"%s\" is %lld, wanted %lld", all[i].text, (long long)got,
                       (long long)all[i].want);
    }
}

static void test_refused(void **state) {
    static const struct {
        const char *text, *part;
    } all[] = {
        { "", "at place 1, found the end, wanted a number, a name or (" },
        { "b *", "at place 4, found the end" },
        { "b * )", "at place 5, found ), wanted a number, a name or (" },
        { "(b", "wanted )" },
        { "b h", "at place 3, found h, wanted an operation or the end" },
        { "min(b)", "wanted , and the second argument" },
        { "min b", "wanted ( and two arguments" },
        { "cdiv(b, 2, 3)", "wanted )" },
        { "capacty", "nothing is called capacty; did you mean capacity; names are tile n_tiles b h hk d tokens" },
        { "heads", "nothing is called heads" },
        { "scale", "scale is no whole number; f32:scale passes it to a kernel" },
        { "taps", "nothing is called taps" },
        { "99999999999999999999", "a number of 64 bits" },
        { "1.5", "at place 2, found .5" },
        { "b & 1", "at place 3" },
    };
    struct at_launch_expression e;
    char deep[AT_EXPRESSION_TEXT * 2];
    (void)state;
    prepare();
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        at_assert_fails(at_launch_expression_parse(all[i].text, &scope, &e), AT_USAGE, all[i].part);
    memset(deep, '(', 60);
    deep[60] = 0;
    at_assert_fails(at_launch_expression_parse(deep, &scope, &e), AT_USAGE, "nested more than 24 deep");
    memset(deep, '1', sizeof deep - 1);
    deep[sizeof deep - 1] = 0;
    at_assert_fails(at_launch_expression_parse(deep, &scope, &e), AT_USAGE, "has 239 letters, wanted at most 119");
    for (int i = 0; i < 100; i += 2)
        memcpy(deep + i, "1+", 2);
    memcpy(deep + 100, "1", 2);
    at_assert_fails(at_launch_expression_parse(deep, &scope, &e), AT_USAGE,
                    "more than 48 numbers, names and operations");
}

static void test_without_value(void **state) {
    static const struct {
        const char *text, *part;
    } all[] = {
        { "b / page", "\"b / page\" divides by 0" },
        { "b % page", "divides by 0" },
        { "cdiv(b, page)", "divides by 0" },
        { "9223372036854775807 + b", "does not fit in 64 bits" },
        { "-9223372036854775807 - b", "does not fit in 64 bits" },
        { "9223372036854775807 * b", "does not fit in 64 bits" },
        { "(-9223372036854775807 - 1) / (0 - 1)", "does not fit in 64 bits" },
    };
    const struct at_launch_expression_values values = { .problem = &problem };
    struct at_launch_expression e;
    int64_t value;
    (void)state;
    prepare();
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        at_assert_ok(at_launch_expression_parse(all[i].text, &scope, &e));
        at_assert_fails(at_launch_expression_value(&e, &values, &value), AT_USAGE, all[i].part);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_without_value),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
