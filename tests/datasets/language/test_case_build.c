/* Building cases: layouts, poison, the same bits on any number of threads, scenarios, recorded datasets, and decoys
 * that count where a case requires them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "attest/attention.h"
#include "attest/buffer.h"
#include "datasets/language/case.h"
#include "datasets/readers/reader.h"

#include "tests/at_test.h"

struct built {
    struct at_case_list list;
    struct at_case_data data;
};

static struct built build(const char *line) {
    struct built built = { 0 };
    at_assert_ok(at_case_parse(line, "line", "test", &built.list));
    assert_int_equal(built.list.n, 1);
    at_assert_ok(at_case_build(&built.list.items[0], &built.data));
    if (built.data.problem.op->check)
        at_assert_ok(built.data.problem.op->check(&built.data.problem));
    return built;
}

static void drop(struct built *built) {
    at_case_data_release(&built->data);
    at_case_list_release(&built->list);
}

/* Bytes of all tensors that have data. */
static uint64_t checksum(const struct at_problem *problem) {
    uint64_t hash = AT_HASH_START;
    for (int i = 0; i < problem->op->n_tensors; i++)
        if (problem->tensors[i].data)
            hash = at_hash_bytes(problem->tensors[i].data, (size_t)at_tensor_bytes(&problem->tensors[i]), hash);
    return hash;
}

static void test_threads_do_not_matter(void **state) {
    (void)state;
    static const char *const lines[] = {
        "asynct_prefill b=3 h=4 hk=2 sq=40/7/90 prefix=3 d=64 page=16 causal=1 hot=last_key,hidden_key,halo,clip",
        "asynct_decode b=5 sk=300/1/129 d=96 data=heavy_tail page=8",
        "softmax_decode b=2 sk=500 d=64 data=exact",
        "asynct_decode b=2 sk=500 d=64 data=sparse70",
        "add_rms_norm tokens=300 channels=96 data=nonfinite",
        "qk_uclip_norm tokens=200 data=random_bits dtype=f16",
        "tensor_core instruction=hopper_wgmma_k32_e4m3_f32 tokens=500 stratum=near_tie",
        "exp2 n=40000 data=whole_range",
        "exp2 n=20001 data=nonfinite",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        uint64_t hash[3];
        for (int threads = 1; threads <= 3; threads++) {
            char text[8];
            snprintf(text, sizeof text, "%d", threads);
            setenv("AT_THREADS", text, 1);
            struct built built = build(lines[i]);
            hash[threads - 1] = checksum(&built.data.problem);
            drop(&built);
        }
        at_assert_true(hash[0] == hash[1] && hash[0] == hash[2], "%s", lines[i]);
    }
    unsetenv("AT_THREADS");
}

/* The seed makes the data; what a case asks of a verdict does not. */
static void test_seed_matters(void **state) {
    (void)state;
    struct built one = build("asynct_decode sk=50 seed=1"), two = build("asynct_decode sk=50 seed=2");
    assert_true(checksum(&one.data.problem) != checksum(&two.data.problem));
    drop(&one);
    drop(&two);
    one = build("asynct_decode sk=50 require=zeros expect=LAUNDERED");
    two = build("asynct_decode sk=50");
    assert_true(checksum(&one.data.problem) == checksum(&two.data.problem));
    drop(&one);
    drop(&two);
}

/* The paged problem holds the contiguous one's rows, every page once, and NaN everywhere else. */
static void test_paged_layout(void **state) {
    (void)state;
    struct built paged = build("asynct_decode b=5 h=4 hk=2 sk=0/1/300/17/160 d=32 page=16");
    struct built plain = build("asynct_decode b=5 h=4 hk=2 sk=0/1/300/17/160 d=32");
    const struct at_problem *p = &paged.data.problem, *c = &plain.data.problem;
    const struct at_sizes *sizes = &p->sizes;
    assert_int_equal(sizes->max_pages, 19);
    assert_int_equal(c->sizes.slots, 478);
    assert_null(c->tensors[AT_ATTN_BLOCK_TABLE].data);
    assert_null(p->tensors[AT_ATTN_KEY_START].data);
    int64_t pages = sizes->slots / 16, used = 0, owned = 0;
    int *taken = calloc((size_t)pages, sizeof *taken);
    char *live = calloc((size_t)sizes->slots, 1);
    assert_true(taken && live);
    for (int64_t r = 0; r < 5; r++) {
        int64_t keys = at_tensor_i32(&p->tensors[AT_ATTN_SEQ_LENS], r), previous = -2;
        for (int64_t column = 0; column < sizes->max_pages; column++) {
            int64_t page = at_tensor_i32(&p->tensors[AT_ATTN_BLOCK_TABLE], r * sizes->max_pages + column);
            if (column >= (keys + 15) / 16) {
                assert_int_equal(page, -1);
                continue;
            }
            assert_in_range(page, 0, pages - 1);
            assert_int_equal(taken[page]++, 0);
            assert_true(page != previous + 1);
            previous = page;
            used++;
        }
        for (int64_t t = 0; t < keys; t++, owned++) {
            live[at_attn_slot(p, r, t)] = 1;
            for (int tensor = AT_ATTN_K; tensor <= AT_ATTN_V; tensor++)
                for (int64_t head = 0; head < 2; head++)
                    assert_memory_equal((uint16_t *)p->tensors[tensor].data + at_attn_kv_index(p, r, t, head),
                                        (uint16_t *)c->tensors[tensor].data + at_attn_kv_index(c, r, t, head), 64);
        }
    }
    assert_int_equal(owned, 478);
    assert_true(pages - used >= 2);
    for (int64_t slot = 0; slot < sizes->slots; slot++)
        for (int64_t i = 0; !live[slot] && i < 64; i++) {
            assert_true(isnan(at_tensor_get(&p->tensors[AT_ATTN_K], slot * 64 + i)));
            assert_true(isnan(at_tensor_get(&p->tensors[AT_ATTN_V], slot * 64 + i)));
        }
    assert_memory_equal(p->tensors[AT_ATTN_Q].data, c->tensors[AT_ATTN_Q].data,
                        (size_t)at_tensor_bytes(&c->tensors[AT_ATTN_Q]));
    free(taken);
    free(live);
    drop(&paged);
    drop(&plain);
}

static void test_starts_and_outputs(void **state) {
    (void)state;
    struct built built = build("softmax_prefill b=4 h=2 hk=1 sq=0/33/1/18 sk=7/40/0/18 d=64 causal=1");
    const struct at_problem *p = &built.data.problem;
    static const int32_t queries[] = { 0, 0, 33, 34, 52 }, keys[] = { 0, 7, 47, 47, 65 };
    assert_memory_equal(p->tensors[AT_ATTN_QUERY_START].data, queries, sizeof queries);
    assert_memory_equal(p->tensors[AT_ATTN_KEY_START].data, keys, sizeof keys);
    assert_int_equal(p->sizes.tokens, 52);
    assert_int_equal(p->sizes.max_sq, 33);
    assert_int_equal(p->sizes.max_sk, 40);
    at_assert_same((double)p->params.scale, 0.125);
    int o = at_op_tensor_index(p->op, "o");
    assert_null(p->tensors[o].data);
    assert_int_equal(p->tensors[o].shape[0], 52);
    drop(&built);
    built = build("asynct_decode b=2 h=2 hk=1 sk=0 d=64"); /* no key at all: no k, no v */
    assert_null(built.data.problem.tensors[AT_ATTN_K].data);
    assert_int_equal(at_tensor_count(&built.data.problem.tensors[AT_ATTN_K]), 0);
    drop(&built);
}

static void test_parameters_reach_the_tensors(void **state) {
    (void)state;
    struct built built = build("asynct_decode h=2 hk=1 sk=3 d=32 sigma=0.75:1.5 gamma=2 clip=-1:0.5 relu_pre=0 "
                               "edge=shrink scale=0.25 causal=1");
    const struct at_problem *p = &built.data.problem;
    static const float sigma[] = { 0.75f, 1.5f }, gamma[] = { 2, 2 },
                       taps[] = { 0.75f, -0.25f, -0.25f, 0.5f, -0.5f, -0.5f };
    assert_memory_equal(p->tensors[at_op_tensor_index(p->op, "sigma")].data, sigma, sizeof sigma);
    assert_memory_equal(p->tensors[at_op_tensor_index(p->op, "gamma")].data, gamma, sizeof gamma);
    assert_memory_equal(p->tensors[at_op_tensor_index(p->op, "taps")].data, taps, sizeof taps);
    assert_true(p->params.clip_min == -1 && p->params.clip_max == 0.5f && p->params.relu_pre == 0);
    assert_true(p->params.edge == AT_EDGE_SHRINK && p->params.scale == 0.25f && p->params.causal == 1);
    assert_int_equal(p->params.fir_form, AT_FIR_POOLED);
    drop(&built);
    built = build("asynct_decode h=2 hk=1 sk=3 d=32 taps=0.5:-1");
    p = &built.data.problem;
    static const float given[] = { 0.5f, -1, 0.5f, -1 };
    assert_memory_equal(p->tensors[at_op_tensor_index(p->op, "taps")].data, given, sizeof given);
    assert_int_equal(p->params.fir_form, AT_FIR_TAPS);
    assert_int_equal(p->sizes.taps, 2);
    drop(&built);
}

static void test_padding(void **state) {
    (void)state;
    struct built padded = build("asynct_prefill b=2 h=2 hk=1 sq=5 d=32 pad_d=64 page=4");
    struct built plain = build("asynct_prefill b=2 h=2 hk=1 sq=5 d=32 page=4");
    const struct at_problem *p = &padded.data.problem, *q = &plain.data.problem;
    assert_int_equal(padded.data.d_valid, 32);
    assert_int_equal(plain.data.d_valid, 32);
    assert_int_equal(p->sizes.d, 64);
    at_assert_same((double)p->params.scale, (double)q->params.scale);
    for (int tensor = AT_ATTN_Q; tensor <= AT_ATTN_V; tensor++)
        for (int64_t i = 0; i < at_tensor_count(&q->tensors[tensor]); i++) {
            int64_t row = i / 32, channel = i % 32;
            at_assert_same(at_tensor_get(&p->tensors[tensor], row * 64 + channel),
                           at_tensor_get(&q->tensors[tensor], i));
            double rest = at_tensor_get(&p->tensors[tensor], row * 64 + 32 + channel);
            if (isnan(at_tensor_get(&q->tensors[tensor], i)))
                assert_true(isnan(rest)); /* poison is not padded */
            else
                at_assert_same(rest, 0.0);
        }
    drop(&padded);
    drop(&plain);
}

static void test_scenarios(void **state) {
    (void)state;
    struct built built = build("asynct_decode scenario=mixed_prefill_b32 h=1 hk=1 d=16");
    static const int32_t prompts[] = { 32, 64, 96, 128, 192, 256, 384, 512 };
    for (int r = 0; r < 32; r++)
        assert_int_equal(at_tensor_i32(&built.data.problem.tensors[AT_ATTN_SEQ_LENS], r), prompts[r % 8] + 64);
    assert_int_equal(built.data.problem.sizes.page, 16);
    assert_int_equal(built.data.problem.sizes.tokens, 32);
    drop(&built);
    built = build("softmax_prefill scenario=mixed_prefill_b32 h=1 hk=1 d=16");
    assert_int_equal(built.data.problem.sizes.tokens, 4 * 1664);
    assert_int_equal(built.data.problem.params.causal, 1);
    assert_int_equal(at_tensor_i32(&built.data.problem.tensors[AT_ATTN_SEQ_LENS], 9), 64);
    drop(&built);
    static const struct {
        const char *name;
        int b, sk;
    } decode[] = { { "decode_heavy_b32", 32, 320 }, { "large_batch_short_b128", 128, 112 },
                   { "balanced_b32", 32, 384 },     { "prefill_heavy_b16", 16, 1040 },
                   { "long_prefill_b4", 4, 2056 },  { "long_decode_b32", 32, 2048 } };
    for (int i = 0; i < 6; i++) {
        char line[128];
        snprintf(line, sizeof line, "softmax_decode scenario=%s h=1 hk=1 d=8", decode[i].name);
        built = build(line);
        assert_int_equal(built.data.problem.sizes.b, decode[i].b);
        assert_int_equal(built.data.problem.sizes.max_sk, decode[i].sk);
        drop(&built);
    }
    /* shorter, one step after the other, and a prompt of which one token stays */
    for (int step = 0; step <= 2; step++) {
        char line[128];
        snprintf(line, sizeof line,
                 "asynct_prefill scenario=mixed_prefill_b32 shrink=32 step=%d capacity=40 h=1 hk=1 d=8", step);
        built = build(line);
        assert_int_equal(built.data.problem.sizes.tokens, step ? 32 : 4 * 52);
        assert_int_equal(built.data.problem.sizes.capacity, 48); /* whole pages */
        for (int r = 0; r < 32; r++)
            assert_int_equal(at_tensor_i32(&built.data.problem.tensors[AT_ATTN_SEQ_LENS], r),
                             prompts[r % 8] / 32 + step);
        drop(&built);
    }
    built = build("softmax_decode scenario=large_batch_short_b128 shrink=64 h=1 hk=1 d=8");
    assert_int_equal(built.data.problem.sizes.max_sk, 2);
    drop(&built);
}

/* Values of the file, rounded once, in the right rows. */
static void test_recorded_dataset(void **state) {
    (void)state;
    char path[4096];
    struct at_reader *reader = NULL;
    snprintf(path, sizeof path, "%s/activations/minilm.safetensors", at_datasets_dir());
    at_assert_ok(at_reader_open(path, &reader));
    int k = at_reader_find(reader, "layers.2.k"), q = at_reader_find(reader, "layers.2.q");
    const struct at_file_tensor *facts = at_reader_tensor(reader, k);
    struct built prefill = build("asynct_prefill dataset=minilm layer=2 dtype=f16 pad_d=64 page=16");
    struct built decode = build("softmax_decode dataset=minilm layer=2 dtype=bf16");
    const struct at_problem *p = &prefill.data.problem, *one = &decode.data.problem;
    assert_int_equal(p->sizes.tokens, facts->shape[0]);
    assert_int_equal(p->sizes.hk, facts->shape[1]);
    assert_int_equal(prefill.data.d_valid, facts->shape[2]);
    assert_int_equal(one->sizes.tokens, p->sizes.b);
    at_assert_same((double)p->params.scale, (double)(float)(1 / sqrt((double)facts->shape[2])));
    int64_t row = facts->shape[1] * facts->shape[2], d = facts->shape[2];
    double *values = malloc((size_t)row * sizeof *values);
    assert_non_null(values);
    for (int64_t r = 0; r < p->sizes.b; r++) {
        int64_t first = at_tensor_i32(&p->tensors[AT_ATTN_QUERY_START], r);
        int64_t last = at_tensor_i32(&p->tensors[AT_ATTN_QUERY_START], r + 1) - 1;
        assert_int_equal(at_tensor_i32(&p->tensors[AT_ATTN_SEQ_LENS], r), last + 1 - first);
        at_assert_ok(at_reader_read_f64(reader, k, last * row, row, values));
        for (int64_t i = 0; i < row; i++) {
            int64_t at = at_attn_kv_index(p, r, last - first, i / d) + i % d;
            at_assert_same(at_tensor_get(&p->tensors[AT_ATTN_K], at), at_round(AT_F16, values[i]));
            at = at_attn_kv_index(one, r, last - first, i / d) + i % d;
            at_assert_same(at_tensor_get(&one->tensors[AT_ATTN_K], at), at_round(AT_BF16, values[i]));
        }
        at_assert_ok(at_reader_read_f64(reader, q, last * row, row, values));
        for (int64_t i = 0; i < row; i++) {
            at_assert_same(at_tensor_get(&one->tensors[AT_ATTN_Q], r * row + i), at_round(AT_BF16, values[i]));
            at_assert_same(at_tensor_get(&p->tensors[AT_ATTN_Q], (last * row + i) / d * 64 + i % d),
                           at_round(AT_F16, values[i]));
        }
    }
    free(values);
    drop(&prefill);
    drop(&decode);
    at_reader_close(reader);
}

static void test_failures(void **state) {
    (void)state;
    struct at_case_list list = { 0 };
    struct at_case_data data;
    at_assert_ok(at_case_parse("asynct_decode dataset=minilm layer=77", "line", "x:3", &list));
    at_assert_fails(at_case_build(&list.items[0], &data), AT_USAGE, "x:3: layer: dataset minilm has no tensor");
    at_case_list_release(&list);
    at_assert_ok(at_case_parse("asynct_decode dataset=minilm pad_d=8", "line", "x:3", &list));
    at_assert_fails(at_case_build(&list.items[0], &data), AT_USAGE, "x:3: pad_d: found 8");
    at_case_list_release(&list);
    at_assert_ok(at_case_parse("asynct_decode dataset=nowhere", "line", "x:3", &list));
    at_assert_true(at_case_build(&list.items[0], &data) != AT_OK, "a dataset that is not there was built");
    assert_non_null(strstr(at_error_message(), "nowhere.safetensors"));
    at_case_list_release(&list);
    at_assert_ok(at_case_parse("asynct_decode sk=2000", "line", "x:3", &list));
    setenv("AT_MEMORY_LIMIT", "1M", 1);
    at_assert_fails(at_case_build(&list.items[0], &data), AT_NO_MEMORY, "x:3: its tensors need");
    unsetenv("AT_MEMORY_LIMIT");
    assert_null(data.memory);
    at_case_list_release(&list);
}

/* ---- decoys ---- */

/* Does the decoy change some element by more than 16 ulp and a quarter of its row's rms? */
static int counts(const struct at_problem *p, int tensor, int64_t d, const double *right, const double *wrong) {
    for (int64_t row = 0; row < at_tensor_count(&p->tensors[tensor]) / d; row++) {
        double squares = 0;
        for (int64_t c = 0; c < d; c++)
            squares += right[row * d + c] * right[row * d + c];
        for (int64_t c = 0; c < d; c++) {
            double ulps = 16 * at_ulp(p->dtype, right[row * d + c]), quarter = sqrt(squares / (double)d) / 4;
            if (fabs(wrong[row * d + c] - right[row * d + c]) > (ulps > quarter ? ulps : quarter))
                return 1;
        }
    }
    return 0;
}

static int decoy_index(const struct at_op *op, const char *name) {
    for (int i = 0; i < op->n_decoys; i++)
        if (strcmp(op->decoys[i].name, name) == 0)
            return i;
    return -1;
}

/* How many of the decoys of its attention that the case requires count in it; *looked of them there are. */
static int counting(const struct at_case *c, int *looked) {
    struct at_case_data data;
    int counted = 0, o = at_op_tensor_index(c->op, "o");
    at_assert_ok(at_case_build(c, &data));
    const struct at_problem *p = &data.problem;
    struct at_eval right = { 0 }, wrong = { 0 };
    for (int t = 0; t < c->op->n_tensors; t++) {
        if (c->op->tensors[t].role != AT_OUT)
            continue;
        right.value[t] = calloc((size_t)at_tensor_count(&p->tensors[t]), sizeof(double));
        wrong.value[t] = calloc((size_t)at_tensor_count(&p->tensors[t]), sizeof(double));
        assert_true(right.value[t] && wrong.value[t]);
    }
    at_assert_ok(c->op->evaluate(p, NULL, 0, c->op->rows(p), &right));
    for (int i = 0; i < c->n_require; i++) {
        int decoy = decoy_index(c->op, c->require[i]);
        if (decoy < 0)
            continue; /* one of the general ones */
        at_assert_ok(c->op->decoy(p, NULL, decoy, 0, c->op->rows(p), &wrong));
        int is = 0;
        for (int t = 0; t < c->op->n_tensors; t++) /* o, and lse: one a row */
            is |= right.value[t] && counts(p, t, t == o ? p->sizes.d : 1, right.value[t], wrong.value[t]);
        counted += is;
        ++*looked;
    }
    for (int t = 0; t < c->op->n_tensors; t++) {
        free(right.value[t]);
        free(wrong.value[t]);
    }
    at_case_data_release(&data);
    return counted;
}

static void test_required_decoys_count(void **state) {
    (void)state;
    static const char *const files[] = { "smoke", "exact", "edge" };
    struct at_case_list list = { 0 };
    int looked = 0, counted = 0;
    for (int i = 0; i < 3; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/cases/%s.cases", at_datasets_dir(), files[i]);
        at_assert_ok(at_case_load(path, &list));
    }
    for (int64_t i = 0; i < list.n; i++) {
        const struct at_op *op = list.items[i].op;
        if (list.items[i].n_require && op->kind == AT_KIND_ATTENTION && at_op_tensor_index(op, "o") >= 0)
            counted += counting(&list.items[i], &looked);
        at_assert_true(counted == looked, "a decoy that it requires is inert in %s", list.items[i].id);
    }
    at_assert_true(looked >= 30, "%d required decoys in the case files", looked);
    at_case_list_release(&list);
}

/* hot= is what makes them count: the same line without it leaves the last key and the halo without weight. */
static void test_hot_keys_are_needed(void **state) {
    (void)state;
    static const char *const lines[] = {
        "asynct_decode b=1 h=1 hk=1 sk=2048 d=64 seed=3 require=last_key",
        "softmax_decode b=1 h=1 hk=1 sk=2048 d=64 seed=3 require=last_key",
        "asynct_decode b=1 h=1 hk=1 sk=2048 d=64 seed=3 require=halo",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        char hot[256];
        int looked = 0;
        snprintf(hot, sizeof hot, "%s hot=%s", lines[i], strrchr(lines[i], '=') + 1);
        struct at_case_list list = { 0 };
        at_assert_ok(at_case_parse(lines[i], "line", "cold", &list));
        at_assert_ok(at_case_parse(hot, "line", "hot", &list));
        at_assert_true(counting(&list.items[0], &looked) == 0, "counts unaided: %s", lines[i]);
        at_assert_true(counting(&list.items[1], &looked) == 1, "inert: %s", hot);
        assert_int_equal(looked, 2);
        at_case_list_release(&list);
    }
}

/* Every case of the quick files builds, and its operator takes it. */
static void test_case_files_build(void **state) {
    (void)state;
    static const char *const files[] = { "smoke", "exact", "edge", "nonfinite", "shapes" };
    struct at_case_list list = { 0 };
    for (int i = 0; i < 5; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/cases/%s.cases", at_datasets_dir(), files[i]);
        at_assert_ok(at_case_load(path, &list));
    }
    long step = at_test_effort(3) == 1 ? 3 : 1;
    for (int64_t i = 0; i < list.n; i += step) {
        struct at_case_data data;
        at_assert_ok(at_case_build(&list.items[i], &data));
        at_assert_true(data.problem.op->check(&data.problem) == AT_OK, "%s: %s", list.items[i].id, at_error_message());
        at_case_data_release(&data);
    }
    at_case_list_release(&list);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_do_not_matter),
        cmocka_unit_test(test_seed_matters),
        cmocka_unit_test(test_paged_layout),
        cmocka_unit_test(test_starts_and_outputs),
        cmocka_unit_test(test_parameters_reach_the_tensors),
        cmocka_unit_test(test_padding),
        cmocka_unit_test(test_scenarios),
        cmocka_unit_test(test_recorded_dataset),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_required_decoys_count),
        cmocka_unit_test(test_hot_keys_are_needed),
        cmocka_unit_test(test_case_files_build),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
