/* The case language: expansion, ids that read back as themselves, and one clear line for every kind of bad input.
 * SPDX-License-Identifier: Apache-2.0 */
#include <sys/stat.h>
#include <unistd.h>

#include "datasets/language/case.h"

#include "tests/at_test.h"

/* Parses a line that is to give n cases. */
static struct at_case_list parsed(const char *line, int64_t n) {
    struct at_case_list list = { 0 };
    at_assert_ok(at_case_parse(line, "line", "test:1", &list));
    at_assert_true(list.n == n, "%s: %lld cases, wanted %lld", line, (long long)list.n, (long long)n);
    return list;
}

static void assert_id(const char *line, const char *id) {
    struct at_case_list list = parsed(line, 1);
    assert_string_equal(list.items[0].id, id);
    at_case_list_release(&list);
}

/* Two lines for one problem. */
static void assert_same_id(const char *a, const char *b) {
    struct at_case_list one = parsed(a, 1), two = parsed(b, 1);
    assert_string_equal(one.items[0].id, two.items[0].id);
    assert_true(one.items[0].hash == two.items[0].hash);
    at_case_list_release(&one);
    at_case_list_release(&two);
}

static void test_defaults_are_filled_in(void **state) {
    (void)state;
    assert_id("asynct_decode", "asynct_decode b=1 h=8 hk=4 sk=256 d=128 pad_d=0 page=0 causal=0 dtype=bf16 data=normal "
                               "seed=1 scale=auto sigma=1 window=3 edge=zero relu_pre=1 clip=0:1 gamma=1");
    assert_id("softmax_prefill sq=5 h=3", "softmax_prefill b=1 h=3 hk=3 sq=5 sk=5 d=128 pad_d=0 page=0 causal=0 "
                                          "dtype=bf16 data=normal seed=1 scale=auto");
    assert_id("uclip_norm", "uclip_norm tokens=32 channels=1024 dtype=bf16 data=normal seed=1 lo=-1 hi=1");
    assert_id("add_rms_norm data=exact",
              "add_rms_norm tokens=32 channels=1024 dtype=bf16 data=exact seed=1 eps=0 from=rounded");
    assert_id("rms_norm", "rms_norm tokens=32 channels=1024 dtype=bf16 data=normal seed=1 eps=1e-06");
    assert_id("qk_uclip_norm d=64",
              "qk_uclip_norm h=8 hk=4 d=64 tokens=32 dtype=bf16 data=normal seed=1 lo=-1 hi=1 gamma_per=channel");
    assert_id("post_attn_pre_mlp_uclip",
              "post_attn_pre_mlp_uclip tokens=32 channels=1024 dtype=bf16 data=normal seed=1 "
              "lo=-1 hi=1 from=rounded");
    assert_id("tensor_core stratum=special",
              "tensor_core tokens=32 instruction=hopper_mma_k16_f16_f32 stratum=special seed=1");
    assert_id("exp2 n=0", "exp2 n=0 data=normal seed=1");
    assert_id("softmax_decode scenario=balanced_b32",
              "softmax_decode scenario=balanced_b32 step=128 h=8 hk=4 d=128 pad_d=0 "
              "page=16 causal=1 dtype=bf16 data=normal seed=1 scale=auto");
    assert_id(
        "kv_write scenario=balanced_b32 step=1 shrink=32",
        "kv_write scenario=balanced_b32 shrink=32 step=1 hk=4 d=128 page=16 padding=0 dtype=bf16 data=normal seed=1");
    assert_id("softmax_prefill dataset=minilm layer=3 dtype=f16",
              "softmax_prefill dataset=minilm layer=3 pad_d=0 page=0 causal=0 dtype=f16 seed=1 scale=auto");
}

static void test_one_problem_has_one_id(void **state) {
    (void)state;
    assert_same_id("asynct_decode b=2 sk=7/7", "asynct_decode sk=7 b=2 # comment");
    assert_same_id("asynct_decode b=4 sk=7/8/7/8", "asynct_decode b=4 sk=7/8");
    assert_same_id("asynct_prefill b=2 sq=3/4 prefix=5", "asynct_prefill b=2 sq=3/4 sk=8/9");
    assert_same_id("asynct_prefill b=6 sq=3/4 prefix=1/2/3", "asynct_prefill b=6 sq=3/4 sk=4/6/6/5/5/7");
    assert_same_id("asynct_decode prefix=9", "asynct_decode sk=10 sq=1");
    assert_same_id("asynct_decode b=4 sq=0/1/0/1 prefix=9", "asynct_decode b=4 sk=9/10 sq=0/1");
    assert_same_id("asynct_decode h=2 sigma=1:1 gamma=0.50:0.5", "asynct_decode h=2 gamma=5e-1");
    assert_same_id("asynct_decode taps=1:-0", "asynct_decode taps=1:0 window=2");
    assert_same_id("asynct_decode scale=0", "asynct_decode scale=auto");
    assert_same_id("asynct_decode hot=last_key,clip", "asynct_decode\thot=clip,last_key\r\n");
    assert_same_id("asynct_decode require=last_key,halo", "asynct_decode require=last_key_dropped,halo_forgotten");
    assert_same_id("asynct_decode sigma=0.1", "asynct_decode sigma=0.100000001");
}

static void test_products(void **state) {
    (void)state;
    struct at_case_list list = parsed("softmax_decode sk=1,3..5 dtype=bf16,f16", 8);
    static const char *const parts[8][2] = { { " sk=1 ", "bf16" }, { " sk=1 ", " f16" }, { " sk=3 ", "bf16" },
                                             { " sk=3 ", " f16" }, { " sk=4 ", "bf16" }, { " sk=4 ", " f16" },
                                             { " sk=5 ", "bf16" }, { " sk=5 ", " f16" } };
    for (int i = 0; i < 8; i++) {
        at_assert_true(strstr(list.items[i].id, parts[i][0]) != NULL, "%s", list.items[i].id);
        at_assert_true(strstr(list.items[i].id, parts[i][1] + (parts[i][1][0] == ' ')) != NULL, "%s", list.items[i].id);
    }
    at_case_list_release(&list);
    list = parsed("asynct_decode dataset=minilm layer=0..5 dtype=bf16,f16", 12);
    assert_non_null(strstr(list.items[11].id, "layer=5 "));
    assert_string_equal(list.items[11].data, "minilm");
    at_case_list_release(&list);
    list = parsed("   # nothing here", 0);
    at_case_list_release(&list);
    list = parsed("", 0);
    at_case_list_release(&list);
}

static void test_fields(void **state) {
    (void)state;
    struct at_case_list list =
        parsed("asynct_decode data=exact require=last_key,other_head expect=LAUNDERED seed=9223372036854775807", 1);
    const struct at_case *c = &list.items[0];
    assert_string_equal(c->role, "line");
    assert_string_equal(c->where, "test:1");
    assert_string_equal(c->family->name, "asynct_decode");
    assert_string_equal(c->op->name, "asynct_attention");
    assert_string_equal(c->data, "exact");
    assert_int_equal(c->exact, 1);
    assert_int_equal(c->n_require, 2);
    assert_string_equal(c->require[0], "last_key_dropped");
    assert_string_equal(c->require[1], "other_head");
    assert_string_equal(c->expect, "LAUNDERED");
    assert_non_null(strstr(c->id, "seed=9223372036854775807"));
    at_case_list_release(&list);
}

/* Every id, read as a line, gives one case with that id: over all case files of the suite. */
static void test_ids_are_fixpoints(void **state) {
    (void)state;
    char dir[4096];
    struct at_case_list list = { 0 }, again = { 0 };
    snprintf(dir, sizeof dir, "%s/cases", at_datasets_dir());
    at_assert_ok(at_case_load_dir(dir, &list));
    at_assert_true(list.n > 500, "%lld cases", (long long)list.n);
    for (int64_t i = 0; i < list.n; i++) {
        at_assert_ok(at_case_parse(list.items[i].id, "line", "id", &again));
        assert_int_equal(again.n, 1);
        assert_string_equal(again.items[0].id, list.items[i].id);
        assert_int_equal(again.items[0].n_require, list.items[i].n_require);
        at_case_list_release(&again);
        assert_true(i == 0 || strcmp(list.items[i].id, list.items[i - 1].id) != 0);
    }
    at_case_list_release(&list);
}

struct bad {
    const char *line, *part;
};

/* clang-format off */
static const struct bad bad_lines[] = {
    { "asynct_decoed", "did you mean asynct_decode?" },
    { "zzz b=1", "wanted a kernel family" },
    { "asynct_decode sgma=1", "did you mean 'sigma'" },
    { "asynct_decode b", "wanted key=value" },
    { "asynct_decode b=", "wanted key=value" },
    { "asynct_decode =1", "wanted key=value" },
    { "asynct_decode b=1 b=2", "b: stands there twice" },
    { "asynct_decode b=0", "b: found '0', wanted a whole number from 1" },
    { "asynct_decode b=-1", "b: found '-1'" },
    { "asynct_decode b=1x", "b: found '1x'" },
    { "asynct_decode b=1,,2", "b: found ''" },
    { "asynct_decode b=99999999999999999999", "b: found" },
    { "asynct_decode h=8 hk=3", "hk: found 3 with h=8, wanted a divisor" },
    { "asynct_decode h=0", "h: found '0'" },
    { "asynct_decode d=0", "d: found '0'" },
    { "asynct_decode d=5000", "d: found '5000'" },
    { "asynct_decode page=-1", "page: found '-1'" },
    { "asynct_decode sq=2", "sq: found 2, wanted 0 or 1" },
    { "asynct_decode sk=1/2/3 b=2", "sk: found 3 values for b=2" },
    { "asynct_decode sk=1//3 b=3", "sk: part 2" },
    { "asynct_decode sk=5..1", "sk: found 5..1" },
    { "asynct_decode sk=0..100000000", "sk: found 0..100000000" },
    { "asynct_decode sk=0..4000 seed=0..4000", "more than 4096 cases" },
    { "asynct_prefill sq=0", "sq: found 0 for every request" },
    { "asynct_decode prefix=3 sk=4", "prefix: given together with sk" },
    { "asynct_decode sigma=nan", "sigma: found 'nan', wanted a finite number" },
    { "asynct_decode sigma=inf", "sigma: found 'inf'" },
    { "asynct_decode scale=1e39", "scale: found '1e39'" },
    { "asynct_decode sigma=1:2:3", "sigma: found 3 values for h=8" },
    { "asynct_decode taps=1 sigma=1", "taps: given together with sigma" },
    { "asynct_decode taps=1:2 window=3", "window: found 3 beside 2 taps" },
    { "asynct_decode taps=1:2 edge=shrink", "edge: found shrink with taps" },
    { "asynct_decode window=17", "window: found '17'" },
    { "asynct_decode edge=shrnk", "did you mean 'shrink'" },
    { "asynct_decode clip=1:0", "clip: wanted two numbers" },
    { "asynct_decode clip=1", "clip: wanted two numbers" },
    { "asynct_decode clip=0:1:2", "clip: more than 2 parts" },
    { "asynct_decode dtype=fp16", "did you mean 'f16'" },
    { "asynct_decode dtype=e4m3", "wanted bf16, f16 or f32" },
    { "asynct_decode data=norml", "did you mean 'normal'" },
    { "asynct_decode hot=halos", "did you mean 'halo'" },
    { "asynct_decode hot=halo data=sink", "hot: found with data=sink" },
    { "softmax_decode hot=halo", "wanted last_key or hidden_key" },
    { "asynct_decode require=lats_key_dropped", "did you mean 'last_key_dropped'" },
    { "asynct_decode require=ro,zeros", "require: found 'ro'" },
    { "softmax_decode require=halo", "require: found 'halo'" },
    { "asynct_decode require=zeros,zeros", "stands there twice" },
    { "asynct_decode expect=WRONG", "wanted LAUNDERED, OVERFLOWED or LAUNDERED,OVERFLOWED" },
    { "asynct_decode expect=OVERFLOWED,LAUNDERED", "wanted LAUNDERED, OVERFLOWED or LAUNDERED,OVERFLOWED" },
    { "asynct_decode scenario=balanced_b3", "did you mean 'balanced_b32'" },
    { "asynct_decode scenario=balanced_b32 b=3", "b: given together with scenario" },
    { "asynct_decode step=1", "step: given without scenario" },
    { "asynct_prefill shrink=2", "shrink: given without scenario" },
    { "asynct_decode scenario=balanced_b32 step=129", "step: found 129, wanted 1 to 128: the decode steps of balanced_b32" },
    { "asynct_decode scenario=balanced_b32 step=0", "step: found 0, wanted 1 to 128" },
    { "asynct_prefill scenario=balanced_b32 shrink=32 step=5", "step: found 5, wanted 0 to 4" },
    { "rope scenario=balanced_b32 shrink=0", "shrink: found '0'" },
    { "asynct_decode dataset=minilm h=3", "h: given together with dataset" },
    { "asynct_decode dataset=../etc/passwd", "wanted a name of letters" },
    { "asynct_decode layer=3", "layer: given without dataset" },
    { "asynct_decode deal=capacity", "deal: found capacity with page=0, wanted pages to deal" },
    { "asynct_decode deal=page page=16", "deal" },
    { "asynct_decode pad_d=64", "pad_d: found 64 with d=128" },
    { "softmax_decode sigma=1", "softmax_decode does not take this key" },
    { "rms_norm b=1", "rms_norm does not take this key" },
    { "rms_norm lo=0", "rms_norm does not take this key" },
    { "uclip_norm eps=1", "uclip_norm does not take this key" },
    { "uclip_norm lo=2", "lo: found 2 above hi=1" },
    { "rms_norm eps=-1", "eps: found -1" },
    { "rms_norm data=sparse70", "wanted a family for norms" },
    { "exp2 dtype=bf16", "exp2 does not take this key" },
    { "exp2 data=sparse70", "wanted a family for elementwise functions" },
    { "exp2 n=-1", "n: found '-1'" },
    { "gemm n=-1", "n: found '-1'" },
    { "gemm layout=mk", "layout: found 'mk'" },
    { "gemm data=near_integer", "wanted a family for products" },
    { "tensor_core data=normal", "tensor_core does not take this key" },
    { "tensor_core instruction=hopper_mma_k16_f16f16", "did you mean 'hopper_mma_k16_f16_f16'" },
    { "tensor_core stratum=near_ties", "did you mean 'near_tie'" },
    { "rms_norm instruction=hopper_mma_k16_f16_f32", "rms_norm does not take this key" },
    { "rms_norm tokens=-1", "tokens: found '-1'" },
    { "asynct_decode data=exact sigma=1", "sigma: not exact" },
    { "asynct_decode data=exact scale=0.1", "scale: found 0.1 with exact data" },
    { "asynct_decode data=exact gamma=3", "gamma: found 3 with exact data" },
    { "asynct_decode data=exact clip=0:0.3", "with exact data" },
    { "asynct_decode data=exact window=7", "window: found 7 with exact data" },
    { "asynct_decode data=exact d=1024", "d: found 1024 with exact data" },
    { "softmax_decode data=exact scale=1", "scale: found 1 with exact softmax data" },
    { "rms_norm data=exact channels=100", "channels: found 100 with exact data" },
    { "uclip_norm data=exact hi=0.3", "with exact data" },
    { "asynct_decode b=65536 sk=67108864", "key slots, wanted at most 2147483647" },
    { "asynct_decode b=31 sk=67108864 h=4096 hk=4096 d=4096", "(AT_MEMORY_LIMIT)" },
    { "uclip_norm tokens=67108864 channels=16777216", "(AT_MEMORY_LIMIT)" },
    { "asynct_decode b=2\x01", "found byte 0x01" },
    { "asynct_decode \xc3\xa4=2", "found byte 0xc3" },
};
/* clang-format on */

static void test_bad_lines(void **state) {
    (void)state;
    struct at_case_list list = { 0 };
    at_assert_ok(at_case_parse("rms_norm", "line", "test:1", &list));
    for (size_t i = 0; i < sizeof bad_lines / sizeof *bad_lines; i++) {
        at_assert_fails(at_case_parse(bad_lines[i].line, "line", "some.cases:42", &list), AT_USAGE, bad_lines[i].part);
        at_assert_true(strncmp(at_error_message(), "some.cases:42: ", 15) == 0, "%s", at_error_message());
        at_assert_true(strchr(at_error_message(), '\n') == NULL, "%s", at_error_message());
        at_assert_true(list.n == 1, "%s left %lld cases", bad_lines[i].line, (long long)list.n);
    }
    at_case_list_release(&list);
}

static void test_memory_limit(void **state) {
    (void)state;
    struct at_case_list list = { 0 };
    const char *line = "softmax_decode b=1 h=1 hk=1 sk=1000 d=128 dtype=f32"; /* 1.03 MB */
    setenv("AT_MEMORY_LIMIT", "1M", 1);
    at_assert_ok(at_case_parse("softmax_decode b=1 h=1 hk=1 sk=1000 d=128 dtype=bf16", "line", "x", &list));
    at_assert_ok(at_case_parse(line, "line", "x", &list));
    setenv("AT_MEMORY_LIMIT", "1000K", 1);
    at_assert_fails(at_case_parse(line, "line", "x", &list), AT_USAGE, "wanted at most 1024000");
    static const char *const wrong[] = { "x", "1X", "1KK", "-1", "9999999999G", "99999999999999999999" };
    for (int i = 0; i < 6; i++) {
        setenv("AT_MEMORY_LIMIT", wrong[i], 1);
        at_assert_fails(at_case_parse(line, "line", "x", &list), AT_USAGE, "AT_MEMORY_LIMIT: found");
    }
    unsetenv("AT_MEMORY_LIMIT");
    at_case_list_release(&list);
}

/* Appends " key=" and value 32 times: first as given, then without the key. */
static void append_list(char *line, size_t size, const char *first, char between) {
    const char *equals = strchr(first, '='), *value = equals ? equals + 1 : first;
    for (int i = 0; i < 32; i++) {
        size_t used = strlen(line);
        if (i == 0)
            snprintf(line + used, size - used, "%s", first);
        else
            snprintf(line + used, size - used, "%c%s%d", between, value, i);
    }
}

/* Long lists make long ids; what does not fit is said, not cut. */
static void test_long_lines(void **state) {
    (void)state;
    struct at_case_list list = { 0 };
    char line[20000] = "asynct_prefill b=64 h=32 sq=";
    append_list(line, sizeof line, "1000000", '/');
    append_list(line, sizeof line, " sk=1000000", '/');
    append_list(line, sizeof line, " sigma=1.2345", ':');
    at_assert_fails(at_case_parse(line, "line", "x", &list), AT_USAGE, "wanted");
    append_list(line, sizeof line, "/1", '/');
    at_assert_fails(at_case_parse(line, "line", "x", &list), AT_USAGE, "wanted");
    memset(line, 'a', sizeof line - 1);
    line[sizeof line - 1] = 0;
    at_assert_fails(at_case_parse(line, "line", "x", &list), AT_USAGE, "the line has 19999 characters");
    at_case_list_release(&list);
}

static void write_file(const char *path, const char *text, size_t n) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static void test_files(void **state) {
    (void)state;
    char dir[] = "/tmp/attest-cases-XXXXXX", path[64], other[64];
    assert_non_null(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/night.cases", dir);
    snprintf(other, sizeof other, "%s/day.cases", dir);
    static const char text[] = "# head\n\nrms_norm tokens=1,2\nrms_norm tokens=2,3\n  uclip_norm # last, no newline";
    write_file(path, text, sizeof text - 1);
    write_file(other, "add_rms_norm\n", 13);
    struct at_case_list list = { 0 };
    at_assert_ok(at_case_load(path, &list));
    assert_int_equal(list.n, 4); /* tokens=2 once */
    assert_string_equal(list.items[3].role, "night");
    assert_non_null(strstr(list.items[2].where, "night.cases:4"));
    assert_non_null(strstr(list.items[2].id, "tokens=3"));
    at_case_list_release(&list);
    at_assert_ok(at_case_load_dir(dir, &list));
    assert_int_equal(list.n, 5);
    assert_string_equal(list.items[0].role, "day");
    at_case_list_release(&list);
    write_file(path, "rms_norm\0tokens=1\n", 18);
    at_assert_fails(at_case_load(path, &list), AT_USAGE, "night.cases:1: found a zero byte");
    write_file(path, "rms_norm\nrms_norm tokens=x\n", 27);
    at_assert_fails(at_case_load(path, &list), AT_USAGE, "night.cases:2: tokens");
    at_case_list_release(&list);
    unlink(path);
    unlink(other);
    at_assert_fails(at_case_load(path, &list), AT_NOT_FOUND, "night.cases");
    at_assert_fails(at_case_load("/dev/zero", &list), AT_USAGE, "regular file");
    at_assert_fails(at_case_load_dir(dir, &list), AT_NOT_FOUND, "found no file");
    rmdir(dir);
    at_assert_fails(at_case_load_dir(dir, &list), AT_NOT_FOUND, dir);
    at_case_list_release(&list);
}

static void test_help_ends(void **state) {
    (void)state;
    int keys = 0, families = 0, exact = 0;
    for (; at_case_key_help(keys); keys++)
        at_assert_true(strlen(at_case_key_help(keys)) > 15, "%s", at_case_key_help(keys));
    for (; at_case_data_help(families); families++)
        exact += strstr(at_case_data_help(families), "exact ") == at_case_data_help(families);
    assert_true(keys >= 40 && keys < 100);
    assert_int_equal(families, 26);
    assert_int_equal(exact, 1);
    assert_null(at_case_key_help(-1));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_are_filled_in),
        cmocka_unit_test(test_one_problem_has_one_id),
        cmocka_unit_test(test_products),
        cmocka_unit_test(test_fields),
        cmocka_unit_test(test_ids_are_fixpoints),
        cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_memory_limit),
        cmocka_unit_test(test_long_lines),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_help_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
