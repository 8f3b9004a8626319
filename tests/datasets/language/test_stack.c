/* The language of stacks: what good files say, and what is said of bad ones.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "datasets/language/stack.h"

static at_status parse(const char *text, struct at_stack *stack) {
    FILE *file = tmpfile();
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0 && fseek(file, 0, SEEK_SET) == 0);
    const at_status status = at_stack_parse(file, "dir/t.stack", stack);
    fclose(file);
    return status;
}

static double number(const struct at_stack *stack, const char *expression) {
    double value;
    at_assert_ok(at_stack_number(stack, 1, expression, &value));
    return value;
}

static const char good[] = "set layers = 3   # three\n"
                           "set b = 4\n"
                           "set way = near | far\n"
                           "\n"
                           "let twice = 2*b\n"
                           "let width = twice+1 when way=near\n"
                           "let width = (b+1)*b/2 when way=far\n"
                           "input x [b, width] std=0.5\n"
                           "layers layers\n"
                           "  weight w [width, 8] fan=8 when way=near\n"
                           "  cache c [b, 8] std=2\n"
                           "  step norm one rms_norm/*_{way} tokens={b} \\\n"
                           "     channels={width} : x=x -> y=x\n"
                           "  step norm two rms_norm/00_fp32 : x=x -> y=z when way=far|near\n"
                           "end\n"
                           "step norm last rms_norm/* : x=x -> y=y\n";

static void test_good(void **state) {
    (void)state;
    struct at_stack s;
    char text[128];
    int holds;
    int64_t whole;
    at_assert_ok(parse(good, &s));
    assert_string_equal(s.name, "t");
    assert_int_equal(s.n_settings, 6);
    assert_int_equal(s.n_inputs, 3);
    assert_int_equal(s.n_steps, 3);
    assert_int_equal(s.steps[0].line, 12);
    assert_string_equal(s.steps[0].keys, " tokens={b} channels={width}");
    assert_int_equal(s.steps[0].n_in, 1);
    assert_int_equal(s.steps[0].n_bound, 2);
    assert_string_equal(s.steps[0].bound[1].tensor, "y");
    assert_string_equal(s.steps[0].bound[1].flow, "x");
    assert_int_equal(s.steps[1].part, AT_STACK_LAYERS);
    assert_int_equal(s.steps[2].part, AT_STACK_BEHIND);
    assert_int_equal(s.inputs[1].is_weight, 1);
    assert_int_equal(s.inputs[1].is_cache, 0);
    assert_int_equal(s.inputs[2].is_weight, 0);
    assert_int_equal(s.inputs[2].is_cache, 1);
    at_assert_same(number(&s, "width"), 9);
    at_assert_same(number(&s, "1 + 2*3 - 8/4/2"), 6);
    at_assert_same(number(&s, "(1+2) * (b-1)"), 9);
    at_assert_ok(at_stack_expand(&s, 1, "a={b} {way}/{width*2}.", text, sizeof text));
    assert_string_equal(text, "a=4 near/18.");
    at_assert_ok(at_stack_set(&s, "way=far", "--set"));
    at_assert_same(number(&s, "width"), 10);
    at_assert_ok(at_stack_holds(&s, 1, s.inputs[1].condition, &holds));
    assert_int_equal(holds, 0);
    at_assert_ok(at_stack_holds(&s, 1, s.steps[1].condition, &holds));
    assert_int_equal(holds, 1);
    at_assert_ok(at_stack_holds(&s, 1, "way=far b=5", &holds));
    assert_int_equal(holds, 0);
    at_assert_ok(at_stack_holds(&s, 1, "b=5 way=far", &holds));
    assert_int_equal(holds, 0);
    at_assert_ok(at_stack_whole(&s, 9, s.layers, 0, &whole));
    assert_int_equal(whole, 3);
    at_stack_release(&s);
}

/* Line 1 is bad, unless it says otherwise. */
static const struct {
    const char *text, *says;
} bad[] = {
    { "sett a = 1\n", "dir/t.stack:1: found 'sett', wanted set, let, input, weight, cache, step, layers, end or base" },
    { "set a 1\n", "dir/t.stack:1: found 'a 1', wanted NAME = VALUE" },
    { "set 1a = 1\n", "dir/t.stack:1: found '1a', wanted a name" },
    { "set a =\n", "wanted a value" },
    { "set a = "
      "w00|w01|w02|w03|w04|w05|w06|w07|w08|w09|w10|w11|w12|w13|w14|w15|w16|w17|w18|w19|w20|w21|w22|w23|w24|w25|w26|w27|"
      "w28|w29|w30|w31|w32|w33|w34|w35|w36|w37|w38|w39|w40|w41|w42|w43|w44|w45|w46|w47|w48|w49|w50|w51|w52|w53|w54|w55|"
      "w56|w57|w58|w59|w60|w61|w62|w63|w64\n",
      "wanted words of at most 255 bytes in all" },
    { "set a = 1\n\nset a = 2\n", "dir/t.stack:3: found a again, wanted each setting once; line 1 has it" },
    { "input x std=1\n", "dir/t.stack:1: found 'x std=1', wanted NAME [SIZE, SIZE]" },
    { "input x [] std=1\n", "wanted 1 to 4 sizes" },
    { "input x [1,2,3,4,5] std=1\n", "wanted at most 4 sizes" },
    { "input x [1] fan=1\n", "found 'fan=1', wanted std=STANDARD DEVIATION" },
    { "weight x [1] std=1\n", "found 'std=1', wanted fan=" },
    { "step norm one\n", "wanted KIND NAME FAMILY/VARIANT" },
    { "step norm one rms_norm/* tokens\n", "found 'tokens', wanted KEY=VALUE" },
    { "step norm one rms_norm/* : x\n", "found 'x', wanted TENSOR=FLOW" },
    { "step norm one rms_norm/* -> y=y : x=x\n", "found ':', wanted keys, ':' and inputs, '->' and outputs" },
    { "step norm one rms_norm/* tokens=1\n", "found 'no tensors', wanted inputs behind ':'" },
    { "step norm one / : x=x\n", "wanted a family" },
    { "layers 2\nlayers 2\n", "dir/t.stack:2: found 'layers', wanted one block of layers" },
    { "end\n", "dir/t.stack:1: found 'end', wanted it behind the lines of layers" },
    { "layers 2\n", "dir/t.stack:1: found the end of the file, wanted layers N, and end" },
    { "set a = 1\nbase other\n", "dir/t.stack:2: found 'other', wanted the name of another stack, in the first line" },
    { "base other\n", "dir/other.stack: No such file" },
};

static void test_bad_lines(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct at_stack s;
        at_assert_fails(parse(bad[i].text, &s), strstr(bad[i].says, "No such") ? AT_NOT_FOUND : AT_USAGE, bad[i].says);
    }
}

static void test_bad_values(void **state) {
    (void)state;
    struct at_stack s;
    double value;
    int64_t whole;
    int holds;
    char text[16];
    at_assert_ok(parse("set way = near | far\nset count = 3\nlet loop = loop+1\nlayers 1\nend\n", &s));
    at_assert_fails(at_stack_set(&s, "way=up", "--set"), AT_USAGE,
                    "--set: found way=up, wanted way=near|far, as dir/t.stack:1");
    at_assert_fails(at_stack_set(&s, "cuont=1", "--set"), AT_USAGE, "did you mean 'count'?");
    at_assert_fails(at_stack_set(&s, "loop=1", "--set"), AT_USAGE, "wanted a setting of dir/t.stack");
    at_assert_fails(at_stack_set(&s, "count", "--set"), AT_USAGE, "found 'count', wanted SETTING=VALUE");
    at_assert_fails(at_stack_number(&s, 7, "cuont", &value), AT_USAGE,
                    "dir/t.stack:7: found 'cuont', wanted a setting");
    at_assert_fails(at_stack_number(&s, 7, "2*(count", &value), AT_USAGE, "wanted a closing parenthesis");
    at_assert_fails(at_stack_number(&s, 7, "2 count", &value), AT_USAGE,
                    "found \"count\" at column 3 of \"2 count\", wanted an operation");
    at_assert_fails(at_stack_number(&s, 7, "2+", &value), AT_USAGE,
                    "found \"the end\" at column 3 of \"2+\", wanted a number");
    at_assert_fails(at_stack_number(&s, 7, "way", &value), AT_USAGE, "found way = near, wanted a number");
    at_assert_fails(at_stack_number(&s, 7, "loop", &value), AT_USAGE,
                    "wanted settings that are not made of themselves");
    at_assert_fails(at_stack_number(&s, 7, "1/(count-3)", &value), AT_USAGE, "wanted a finite number");
    at_assert_fails(at_stack_whole(&s, 7, "count/2", 0, &whole), AT_USAGE,
                    "found count/2 = 1.5, wanted a whole number");
    at_assert_fails(at_stack_whole(&s, 7, "count-3", 1, &whole), AT_USAGE, "wanted a whole number from 1 on");
    at_assert_fails(at_stack_expand(&s, 7, "a={count", text, sizeof text), AT_USAGE,
                    "wanted a short expression and '}'");
    at_assert_fails(at_stack_expand(&s, 7, "0123456789{count}abcdef", text, sizeof text), AT_USAGE,
                    "wanted a shorter one");
    at_assert_fails(at_stack_holds(&s, 7, "way", &holds), AT_USAGE, "found 'way' behind when, wanted SETTING=WORD");
    at_assert_fails(at_stack_holds(&s, 7, "wya=far", &holds), AT_USAGE, "did you mean 'way'?");
    at_stack_release(&s);
    at_assert_fails(at_stack_load("nothing_of_this_name", &s), AT_NOT_FOUND, "nothing_of_this_name.stack");
}

/* The shipped ones; one of them is another with other sizes. */
static void test_shipped(void **state) {
    (void)state;
    struct at_stack big, small, soft;
    at_assert_ok(at_stack_load("asynct_35", &big));
    at_assert_ok(at_stack_load("asynct_3", &small));
    at_assert_ok(at_stack_load("softmax_28", &soft));
    assert_string_equal(small.name, "asynct_3");
    assert_string_equal(small.path, "stacks/asynct_35.stack"); /* where its lines are */
    assert_int_equal(small.n_steps, big.n_steps);
    at_assert_same(number(&big, "layers*tokens"), 35 * 32);
    at_assert_same(number(&small, "layers*tokens"), 9);
    at_assert_same(number(&soft, "slots"), (32 * 16 + 64) * 16);
    at_assert_ok(at_stack_set(&big, "phase=prefill", "--set"));
    at_assert_same(number(&big, "tokens"), 32 * 256);
    at_stack_release(&big);
    at_stack_release(&small);
    at_stack_release(&soft);
}

/* What stands behind `base` may change settings and nothing else. */
static void test_base(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } rows[] = { { "base good\nset b = 5\n", NULL },
                 { "base good\nset way = up\n", "bad.stack:2: found way=up, wanted way=near|far" },
                 { "base good\nlet a = 1\n", "bad.stack:2: found 'let', wanted set behind base, and nothing else" },
                 { "base based\n", "based.stack:1: found a base of a base, wanted one step" } };
    char dir[] = "/tmp/at_stack_XXXXXX", path[64];
    struct at_stack s;
    assert_non_null(mkdtemp(dir));
    for (int i = -2; i < 4; i++) {
        snprintf(path, sizeof path, "%s/%s.stack", dir, i == -2 ? "good" : i == -1 ? "based" : "bad");
        FILE *file = fopen(path, "w");
        assert_non_null(file);
        fputs(i == -2 ? good : i == -1 ? "base good\n" : rows[i].text, file);
        fclose(file);
        if (i < 0)
            continue;
        if (rows[i].says) {
            at_assert_fails(at_stack_load(path, &s), AT_USAGE, rows[i].says);
            continue;
        }
        at_assert_ok(at_stack_load(path, &s));
        at_assert_same(number(&s, "twice"), 10);
        at_stack_release(&s);
    }
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/%s.stack", dir, i == 0 ? "good" : i == 1 ? "based" : "bad");
        remove(path);
    }
    remove(dir);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),    cmocka_unit_test(test_bad_lines), cmocka_unit_test(test_bad_values),
        cmocka_unit_test(test_shipped), cmocka_unit_test(test_base),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
