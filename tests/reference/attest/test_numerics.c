/* Declared numerics as text, what may stand together, and names suggested for misspelt ones.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "attest/names.h"
#include "attest/numerics.h"

/* The defaults as one text: the wire and the archive hold exactly this, so its form is fixed here. */
static const char default_text[] =
    "free_order=0 qk_unit=f32_fma qk_lanes=1 qk_run=0 qk_tree=sequential scale_on=score fir_order=taps fir_fma=0 p=f32 "
    "gamma_on=p clamp=fminmax exp=libm tanh=libm exp_arg=difference ex2_poly3=0 l_lanes=0 l_run=0 l_tree=sequential "
    "divide=division lse=libm rsqrt=libm "
    "block=0 rescale=factor pv_unit=f32_fma pv_chunk=1 pv_spread=0 split=0 splits=0 guard=none repeats=1 "
    "batch_invariant=0 "
    "tail=unread pv_zero=multiplied";

/* Every word that a field may hold, in the order of its enum; integers give two. */
static const struct {
    const char *field, *words;
} choices[] = {
    { "free_order", "0 1" },
    { "qk_unit",
      "f64 f32 f32_fma tc_f32 tc_f16 f16_fma tc_fp8 tc_fp8_ada tc_fp8_by_f16 tc_fp8_by_f16_f16 tc_tf32 tc_tf32_rna" },
    { "qk_lanes", "1 2147483647" },
    { "qk_run", "0 -2147483648" },
    { "qk_tree", "sequential butterfly" },
    { "scale_on", "score q q_rounded taps" },
    { "fir_order", "taps pooled" },
    { "fir_fma", "0 1" },
    { "p", "f64 f32 tf32 f16 bf16 e4m3 e5m2 input" },
    { "gamma_on", "p after_p output" },
    { "clamp", "fminmax propagate" },
    { "exp", "libm ex2_approx ex2_approx_ftz tanh_approx" },
    { "tanh", "libm tanh_approx ex2_rcp" },
    { "exp_arg", "difference fma" },
    { "ex2_poly3", "0 8" },
    { "l_lanes", "0 4" },
    { "l_run", "0 2" },
    { "l_tree", "sequential butterfly" },
    { "divide", "division reciprocal reciprocal_f16 rcp_approx rcp_approx_ftz" },
    { "lse", "libm lg2_approx lg2_approx_ftz" },
    { "rsqrt", "libm rsqrt_approx rsqrt_approx_ftz" },
    { "block", "0 128" },
    { "rescale", "factor f16" },
    { "pv_unit",
      "f64 f32 f32_fma tc_f32 tc_f16 f16_fma tc_fp8 tc_fp8_ada tc_fp8_by_f16 tc_fp8_by_f16_f16 tc_tf32 tc_tf32_rna" },
    { "pv_chunk", "1 16" },
    { "pv_spread", "0 64" },
    { "split", "0 512" },
    { "splits", "0 16" },
    { "guard", "none isinf nan_safe saturate score" },
    { "repeats", "0 1" },
    { "batch_invariant", "0 1" },
    { "tail", "unread finite" },
    { "pv_zero", "skipped multiplied" },
};
enum { FIELDS = sizeof choices / sizeof choices[0] };

static int same(const struct at_numerics *a, const struct at_numerics *b) {
#define X(kind, name, value, meaning) \
    if (a->name != b->name) \
        return 0;
    AT_NUMERICS_LIST(X)
#undef X
    return 1;
}

static void test_defaults(void **state) {
    (void)state;
    struct at_numerics numerics = at_numerics_default(), parsed;
    char text[640];
#define X(kind, name, value, meaning) assert_int_equal(numerics.name, value);
    AT_NUMERICS_LIST(X)
#undef X
    at_assert_ok(at_numerics_format(&numerics, text, sizeof text));
    assert_string_equal(text, default_text);
    at_assert_ok(at_numerics_check(&numerics));
    memset(&parsed, 0x5a, sizeof parsed);
    at_assert_ok(at_numerics_parse("", &parsed));
    assert_true(same(&parsed, &numerics));
    memset(&parsed, 0x5a, sizeof parsed);
    at_assert_ok(at_numerics_parse(" \n\t ", &parsed));
    assert_true(same(&parsed, &numerics));
}

/* Each word of each field parses to its place in the enum and is written back the same. */
static void test_every_word(void **state) {
    (void)state;
    for (int f = 0; f < FIELDS; f++) {
        char words[128];
        snprintf(words, sizeof words, "%s", choices[f].words);
        char *rest = words;
        for (const char *word; (word = strsep(&rest, " "));) {
            struct at_numerics numerics, again;
            char given[160], text[640];
            snprintf(given, sizeof given, "%s=%s", choices[f].field, word);
            at_assert_ok(at_numerics_parse(given, &numerics));
            at_assert_ok(at_numerics_format(&numerics, text, sizeof text));
            at_assert_true(strstr(text, given) != NULL, "\"%s\" is not in \"%s\"", given, text);
            at_assert_ok(at_numerics_parse(text, &again));
            assert_true(same(&numerics, &again));
        }
    }
    struct at_numerics numerics;
    at_assert_ok(at_numerics_parse(
        "p=bf16 qk_unit=tc_f32\tpv_unit=f16_fma  guard=saturate\nexp=ex2_approx rsqrt=rsqrt_approx_ftz pv_zero=skipped "
        "scale_on=q_rounded gamma_on=after_p clamp=propagate qk_lanes=8",
        &numerics));
    assert_int_equal(numerics.p, AT_BF16);
    assert_int_equal(numerics.qk_unit, AT_UNIT_TC_F32);
    assert_int_equal(numerics.pv_unit, AT_UNIT_F16_FMA);
    assert_int_equal(numerics.guard, AT_GUARD_SATURATE);
    assert_int_equal(numerics.exp, AT_EXP_EX2_APPROX);
    assert_int_equal(numerics.rsqrt, AT_RSQRT_APPROX_FTZ);
    assert_int_equal(numerics.pv_zero, AT_PV_ZERO_SKIPPED);
    assert_int_equal(numerics.scale_on, AT_SCALE_ON_Q_ROUNDED);
    assert_int_equal(numerics.gamma_on, AT_GAMMA_AFTER_P);
    assert_int_equal(numerics.clamp, AT_CLAMP_PROPAGATE);
    assert_int_equal(numerics.qk_lanes, 8);
    assert_int_equal(numerics.repeats, 1);
}

/* The longest text of all fits the record's field, and no size writes past its end. */
static void test_format_sizes(void **state) {
    (void)state;
    struct at_numerics numerics = at_numerics_default();
    char text[700];
    size_t need = sizeof default_text;
    for (size_t size = 0; size <= need + 3; size++) {
        memset(text, '#', sizeof text);
        if (size >= need) {
            at_assert_ok(at_numerics_format(&numerics, text, size));
            assert_string_equal(text, default_text);
        } else {
            at_assert_fails(at_numerics_format(&numerics, text, size), AT_USAGE, "bytes");
        }
        for (size_t i = size; i < sizeof text; i++)
            assert_int_equal(text[i], '#');
    }
    at_assert_ok(at_numerics_parse(
        "qk_unit=f32_fma qk_lanes=-2147483648 qk_run=-2147483648 qk_tree=sequential "
        "scale_on=q_rounded fir_order=pooled gamma_on=after_p clamp=propagate "
        "exp=ex2_approx_ftz tanh=tanh_approx exp_arg=difference ex2_poly3=-2147483648 l_lanes=-2147483648 "
        "l_run=-2147483648 l_tree=sequential divide=rcp_approx_ftz lse=lg2_approx_ftz "
        "rsqrt=rsqrt_approx_ftz "
        "block=-2147483648 pv_unit=f32_fma pv_chunk=-2147483648 "
        "split=-2147483648 splits=-2147483648 guard=nan_safe tail=unread pv_zero=multiplied p=bf16",
        &numerics));
    at_assert_ok(at_numerics_format(&numerics, text, 640));
}

static void test_bad_text(void **state) {
    (void)state;
    static const struct {
        const char *text, *message;
    } bad[] = {
        { "qk_units=f32", "unknown field \"qk_units\", did you mean \"qk_unit\"?" },
        { "QK_UNIT=f32", "did you mean \"qk_unit\"?" },
        { "chunk=1", "unknown field \"chunk\"" },
        { "zebra=1", "unknown field \"zebra\"; wanted one of free_order qk_unit" },
        { "p=fp16", "unknown value of p \"fp16\", did you mean \"f16\"?" },
        { "p=i32", "unknown value of p \"i32\"" },
        { "qk_unit=f32fma", "did you mean \"f32_fma\"?; wanted one of f64 f32 f32_fma tc_f32 tc_f16 f16_fma tc_fp8 "
                            "tc_fp8_ada tc_fp8_by_f16 tc_fp8_by_f16_f16 tc_tf32 tc_tf32_rna" },
        { "qk_unit=", "unknown value of qk_unit \"\"; wanted one of" },
        { "repeats=2", "unknown value of repeats \"2\"" },
        { "repeats=yes", "wanted one of 0 1" },
        { "qk_lanes=eight", "qk_lanes is \"eight\", wanted a whole number" },
        { "qk_lanes=", "qk_lanes is \"\"" },
        { "qk_lanes=8x", "qk_lanes is \"8x\"" },
        { "qk_lanes=+8", "qk_lanes is \"+8\"" },
        { "qk_lanes=-", "qk_lanes is \"-\"" },
        { "qk_lanes=1.5", "qk_lanes is \"1.5\"" },
        { "qk_lanes=2147483648", "qk_lanes is \"2147483648\"" },
        { "qk_lanes=-2147483649", "wanted a whole number" },
        { "qk_lanes=99999999999999999999999", "wanted a whole number" },
        { "qk_lanes=0x10", "qk_lanes is \"0x10\"" },
        { "p", "found \"p\", wanted field=value" },
        { "=f32", "unknown field \"\"" },
        { "p=f16 p=f16", "p is given twice" },
        { "p = f16", "found \"p\", wanted field=value" },
        { "p=f16=f16", "unknown value of p \"f16=f16\"" },
        { "p=f16,split=3", "unknown value of p" },
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct at_numerics numerics, before;
        memset(&numerics, 0x5a, sizeof numerics);
        before = numerics;
        at_assert_fails(at_numerics_parse(bad[i].text, &numerics), AT_USAGE, bad[i].message);
        assert_true(same(&numerics, &before)); /* nothing half parsed gets out */
    }
    char longest[400];
    struct at_numerics numerics;
    memset(longest, 'x', sizeof longest - 1);
    longest[sizeof longest - 1] = 0;
    at_assert_fails(at_numerics_parse(longest, &numerics), AT_USAGE, "a word of 399 letters");
}

static void test_check(void **state) {
    (void)state;
    static const struct {
        const char *text, *message; /* "" : accepted */
    } rules[] = {
        { "qk_lanes=0", "qk_lanes is 0, wanted at least 1" },
        { "qk_lanes=-4", "qk_lanes is -4" },
        { "qk_run=-1", "qk_run is -1, wanted at least 0" },
        { "qk_lanes=3 qk_tree=butterfly", "wanted a power of two" },
        { "qk_lanes=3 qk_tree=sequential", "" },
        { "qk_lanes=32 qk_tree=butterfly qk_run=4", "" },
        { "qk_unit=tc_f32", "" },
        { "qk_unit=tc_f32 qk_lanes=2", "wanted qk_lanes=1" },
        { "qk_unit=tc_f16 qk_run=16", "" },
        { "qk_unit=tc_f32 qk_run=8", "" },
        { "qk_unit=tc_f32 qk_run=6", "qk_unit=tc_f32 with qk_run=6, wanted 0, or a multiple of the four terms" },
        { "qk_unit=tc_fp8 qk_run=8", "qk_unit=tc_fp8 with qk_run=8" },
        { "pv_chunk=0", "pv_chunk is 0, wanted at least 1" },
        { "pv_chunk=16", "pv_unit=f32_fma with pv_chunk=16, wanted 1" },
        { "pv_unit=tc_f32", "pv_chunk=1, wanted a multiple of its block of 16" },
        { "pv_unit=tc_f32 pv_chunk=24", "pv_chunk=24" },
        { "pv_unit=tc_f32 pv_chunk=16", "" },
        { "pv_unit=tc_f32 pv_chunk=8", "" },
        { "pv_unit=tc_f32 pv_chunk=4", "pv_chunk=4, wanted a multiple of its block of 16, or half of it" },
        { "pv_unit=tc_f16 pv_chunk=64", "" },
        { "pv_unit=tc_f32 pv_chunk=16 pv_zero=skipped", "multiplies whole blocks" },
        { "pv_unit=f32 pv_zero=skipped", "" },
        { "split=-1", "split is -1" },
        { "split=100", "" },
        { "pv_unit=tc_f32 pv_chunk=16 split=100", "whole chunks" },
        { "pv_unit=tc_f32 pv_chunk=16 split=96 block=64", "" },
        { "pv_unit=tc_f32 pv_chunk=32 block=48", "whole chunks" },
        { "block=-1", "block is -1" },
        { "pv_spread=-1", "pv_spread is -1" },
        { "pv_spread=64", "wanted steps of 16 keys" },
        { "pv_unit=tc_f32 pv_chunk=16 pv_spread=40", "wanted steps of 16 keys" },
        { "pv_unit=tc_tf32 pv_chunk=16 pv_spread=64", "wanted steps of 16 keys" },
        { "pv_unit=tc_f32 pv_chunk=16 pv_spread=64 split=32", "whole groups in a range" },
        { "pv_unit=tc_f32 pv_chunk=16 pv_spread=64 split=128", "" },
        { "splits=-1", "splits is -1, wanted at least 0" },
        { "splits=4", "splits=4 with split=0" },
        { "splits=4 split=16", "" },
        { "rescale=f16", "rescale=f16 with block=0" },
        { "rescale=f16 block=16", "" },
        { "divide=reciprocal_f16", "" },
        { "block=1", "" },
        { "guard=isinf", "wanted an f16 accumulator to guard" },
        { "guard=saturate qk_unit=f16_fma", "" },
        { "guard=nan_safe pv_unit=tc_f16 pv_chunk=16", "" },
        { "guard=none pv_unit=tc_f16 pv_chunk=16", "" },
        { "guard=score qk_unit=tc_f16", "" },
        { "guard=score pv_unit=tc_f16 pv_chunk=16", "guard=score with qk_unit=f32_fma" },
        { "guard=isinf qk_unit=tc_f32", "guard=isinf with qk_unit=tc_f32 pv_unit=f32_fma" },
        { "l_lanes=-1", "l_lanes is -1, wanted at least 0" },
        { "l_lanes=4", "l_run is 0, wanted at least 1" },
        { "l_lanes=4 l_run=2 l_tree=butterfly", "" },
        { "l_lanes=3 l_run=1", "" },
        { "l_lanes=3 l_run=1 l_tree=butterfly", "l_tree=butterfly with l_lanes=3, wanted a power of two" },
        { "l_lanes=1024 l_run=1", "" },
        { "l_lanes=1025 l_run=1", "l_lanes is 1025, wanted at most 1024" },
        { "exp=ex2_approx ex2_poly3=-1", "ex2_poly3 is -1" },
        { "exp=ex2_approx ex2_poly3=32", "" },
        { "exp=ex2_approx ex2_poly3=33", "ex2_poly3 is 33, wanted at most 32" },
        { "exp=libm ex2_poly3=8", "wanted ex2 for either" },
        { "exp=tanh_approx ex2_poly3=8", "wanted ex2 for either" },
        { "exp=tanh_approx", "" },
        { "exp=libm exp_arg=fma", "exp=libm with exp_arg=fma" },
        { "exp=ex2_approx_ftz exp_arg=fma", "" },
        { "exp=ex2_approx_ftz exp_arg=fma scale_on=q", "wanted scale_on=score" },
        { "batch_invariant=1 repeats=0", "batch_invariant=1 with repeats=0" },
        { "batch_invariant=1", "" },
        { "rsqrt=rsqrt_approx qk_unit=f64", "rsqrt=rsqrt_approx with qk_unit=f64, wanted f32" },
        { "rsqrt=rsqrt_approx_ftz qk_unit=f32_fma", "" },
        { "rsqrt=libm qk_unit=f64", "" },
        { "repeats=0 free_order=1", "" },
    };
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++) {
        struct at_numerics numerics;
        at_assert_ok(at_numerics_parse(rules[i].text, &numerics));
        if (rules[i].message[0])
            at_assert_fails(at_numerics_check(&numerics), AT_USAGE, rules[i].message);
        else
            at_assert_ok(at_numerics_check(&numerics));
    }
}

/* A number that is in no enum is refused by check and by format: a kernel's table is hand-written. */
static void test_out_of_range(void **state) {
    (void)state;
    for (int f = 0; f < FIELDS; f++) {
        if (strstr("qk_lanes qk_run ex2_poly3 l_lanes l_run block pv_chunk pv_spread split splits", choices[f].field))
            continue;
        int words = 1;
        for (const char *at = choices[f].words; *at; at++)
            words += *at == ' ';
        const int values[] = { -1, words, 1000000, -2147483647 - 1 };
        for (int i = 0; i < 4; i++) {
            struct at_numerics numerics = at_numerics_default();
            char text[640], message[64];
#define X(kind, name, value, meaning) \
    if (strcmp(#name, choices[f].field) == 0) \
        numerics.name = values[i];
            AT_NUMERICS_LIST(X)
#undef X
            snprintf(message, sizeof message, "%s is %d", choices[f].field, values[i]);
            at_assert_fails(at_numerics_check(&numerics), AT_USAGE, message);
            at_assert_fails(at_numerics_format(&numerics, text, sizeof text), AT_USAGE, message);
        }
    }
}

static void test_nearest_name(void **state) {
    (void)state;
    static const char *const names[] = { "normal", NULL, "uniform", "exact", "sparse", "", "norm", "b", "causal" };
    enum { N = sizeof names / sizeof names[0] };
    static const struct {
        const char *wanted, *nearest;
    } cases[] = {
        { "normal", "normal" },   { "nromal", "normal" }, { "Normal", "normal" },
        { "norml", "normal" },    { "norma", "normal" },  { "norn", "norm" },
        { "unifrom", "uniform" }, { "uni", NULL },        { "spares", "sparse" },
        { "sprse", "sparse" },    { "casual", "causal" }, { "exacttt", "exact" },
        { "exatc", "exact" },     { "c", NULL },          { "bb", "b" },
        { "xyzzy", NULL },        { "", NULL },           { "uniformuniformuniform", NULL },
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *nearest = at_nearest_name(cases[i].wanted, names, N);
        at_assert_true(nearest == cases[i].nearest ||
                           (nearest && cases[i].nearest && !strcmp(nearest, cases[i].nearest)),
                       "\"%s\" suggests %s, wanted %s", cases[i].wanted, nearest ? nearest : "nothing",
                       cases[i].nearest ? cases[i].nearest : "nothing");
    }
    assert_null(at_nearest_name("normal", names, 0));
    char longest[200];
    memset(longest, 'n', 199);
    longest[199] = 0;
    const char *const one[] = { longest };
    assert_null(at_nearest_name(longest, one, 1)); /* no misspelt name is that long */
}

static void p_in_the_format_of_the_activations(void **state) {
    (void)state;
    struct at_numerics declared, on;
    at_assert_ok(at_numerics_parse("p=input split=512", &declared));
    at_assert_ok(at_numerics_check(&declared));
    for (int dtype = 0; dtype < AT_I32; dtype++) {
        on = at_numerics_on(&declared, (enum at_format)dtype);
        assert_int_equal(on.p, dtype);
        on.p = AT_P_INPUT;
        assert_true(same(&on, &declared));
    }
    declared.p = AT_F16;
    on = at_numerics_on(&declared, AT_BF16);
    assert_true(same(&on, &declared));
}

static void only_what_differs(void **state) {
    (void)state;
    const struct at_numerics usual = at_numerics_default();
    struct at_numerics declared, back;
    char text[64], brief[8];
    at_numerics_difference(&usual, &usual, text, sizeof text);
    assert_string_equal(text, "");
    at_assert_ok(at_numerics_parse("p=input split=512 free_order=1", &declared));
    at_numerics_difference(&declared, &usual, text, sizeof text);
    assert_string_equal(text, "free_order=1 p=input split=512");
    at_assert_ok(at_numerics_parse(text, &back));
    assert_true(same(&back, &declared));
    at_numerics_difference(&usual, &declared, text, sizeof text);
    assert_string_equal(text, "free_order=0 p=f32 split=0");
    at_numerics_difference(&declared, &usual, brief, sizeof brief);
    assert_string_equal(brief, "free_or");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_what_differs),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_every_word),
        cmocka_unit_test(test_format_sizes),
        cmocka_unit_test(test_bad_text),
        cmocka_unit_test(test_check),
        cmocka_unit_test(test_out_of_range),
        cmocka_unit_test(test_nearest_name),
        cmocka_unit_test(p_in_the_format_of_the_activations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
