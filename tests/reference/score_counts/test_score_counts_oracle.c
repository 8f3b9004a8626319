/* score_counts against the counting of recordings, which was written without it: every count, zero share, mass and row
 * of the ledger of random requests, both attentions, whole and 64 queries at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "score_counts/score_counts.h"
#include "tests/at_test.h"
#include "tests/support/attention_problem.h"
#include "verify/record/dist_device.h"
#include "verify/record/dist_record.h"

/* ---- one unit by the operator's definition ---- */

/* Values of an evaluation in the tensors that a kernel would have filled. */
static void to_tensors(const struct at_problem *p, const struct at_test_eval *eval, struct at_tensor *tensors) {
    for (int t = AT_COUNTS_COUNTS; t <= AT_COUNTS_KV_SUMS; t++) {
        const int64_t n = at_tensor_count(&p->tensors[t]);
        tensors[t] = p->tensors[t];
        tensors[t].data = calloc((size_t)n + 1, at_format_info(tensors[t].format)->bytes);
        assert_non_null(tensors[t].data);
        at_encode_array(tensors[t].format, (size_t)n, eval->eval.value[t], tensors[t].data);
    }
}

static void count_by_definition(const struct at_dist_unit *unit, struct at_dist_layer *layer) {
    struct at_dist_problem x;
    struct at_test_eval eval;
    struct at_tensor tensors[AT_MAX_TENSORS] = { 0 };
    at_assert_ok(at_dist_problem_make(unit, &layer->shape, &x));
    at_assert_ok(at_test_eval_init(&x.problem, 0, &eval));
    at_assert_ok(x.problem.op->evaluate(&x.problem, NULL, 0, x.problem.op->rows(&x.problem), &eval.eval));
    to_tensors(&x.problem, &eval, tensors);
    at_assert_ok(at_dist_outputs_add(unit, &x.problem, tensors, layer));
    for (int t = AT_COUNTS_COUNTS; t <= AT_COUNTS_KV_SUMS; t++)
        free(tensors[t].data);
    at_test_eval_release(&eval);
    at_dist_problem_release(&x);
}

/* ---- two layers ---- */

static void same_words(const char *line, const char *name, const uint64_t *got, const uint64_t *want, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (got[i] != want[i])
            fail_msg("%s: %s[%lld] is %llu, wanted %llu", line, name, (long long)i, (unsigned long long)got[i],
                     (unsigned long long)want[i]);
}

static void same_ledger(const char *line, const struct at_ledger_row *a, const struct at_ledger_row *b) {
    const uint64_t x[] = { a->count,     a->zero,        a->nan,
                           a->inf,       a->above_65504, a->to_inf,
                           a->subnormal, a->flushed,     (uint64_t)a->has_first };
    const uint64_t y[] = { b->count,     b->zero,        b->nan,
                           b->inf,       b->above_65504, b->to_inf,
                           b->subnormal, b->flushed,     (uint64_t)b->has_first };
    same_words(line, "ledger", x, y, (int64_t)(sizeof x / sizeof *x));
    at_assert_same(a->max_abs, b->max_abs);
    if (a->has_first)
        assert_int_equal(at_place_compare(&a->first, &b->first), 0);
}

static void same_layer(const char *line, const struct at_dist_layer *got, const struct at_dist_layer *want) {
    const struct at_dist_shape *s = &want->shape;
    for (int w = 0; w < AT_DIST_COUNT; w++) {
        const enum at_dist_what what = (enum at_dist_what)w;
        const int64_t heads = at_dist_heads(s, what);
        if (!at_dist_has(s, what))
            continue;
        same_words(line, at_dist_name(what), got->counts[w], want->counts[w], heads * at_dist_bins(s->bins));
        same_words(line, at_dist_name(what), got->coarse[w], want->coarse[w],
                   heads * s->n_groups * at_dist_classes(s->bins));
        for (int64_t i = 0; i < heads; i++) {
            const struct at_dist_tally *a = &got->tally[w][i], *b = &want->tally[w][i];
            const uint64_t x[] = { a->nan, a->masked, a->overflow, a->n_empty };
            const uint64_t y[] = { b->nan, b->masked, b->overflow, b->n_empty };
            same_words(line, at_dist_name(what), x, y, 4);
        }
    }
    same_words(line, "mass", got->mass, want->mass, s->h * s->n_distances);
    for (int z = 0; z < AT_DIST_ZERO_COUNT; z++)
        same_words(line, at_dist_zero_name((enum at_dist_zero)z), got->zero[z], want->zero[z],
                   at_dist_zero_heads(s, (enum at_dist_zero)z));
    for (int64_t i = 0; i < s->h * AT_DIST_STAGES; i++)
        same_ledger(line, &got->ledger[i], &want->ledger[i]);
}

/* ---- requests ---- */

static const char *choose(struct at_test_random *random, const char *const *names, int n) {
    return names[at_test_below(random, n)];
}

static void random_line(struct at_test_random *r, char *line, size_t size) {
    static const char *const data[] = { "normal",     "nonfinite", "subnormal",  "sparse70",
                                        "heavy_tail", "overflow",  "random_bits" };
    static const char *const dtypes[] = { "f16", "bf16", "f32" };
    static const char *const filters[] = { "sigma=1",           "sigma=0.5:2 window=5", "edge=shrink window=4",
                                           "taps=0.5:-0.25:-1", "relu_pre=0 window=1",  "relu_pre=0 clip=-1:1.5" };
    const int softmax = at_test_below(r, 3) == 0, hk = 1 + at_test_below(r, 2);
    int used = snprintf(line, size, "%s b=2 h=2 hk=%d sq=%d/%d sk=%d/%d d=%d causal=%d dtype=%s data=%s seed=%d",
                        softmax ? "softmax_prefill" : "asynct_prefill", hk, 1 + at_test_below(r, 140),
                        at_test_below(r, 70), at_test_below(r, 90), 1 + at_test_below(r, 150), 1 + at_test_below(r, 40),
                        at_test_below(r, 2), choose(r, dtypes, 3), choose(r, data, 7), at_test_below(r, 1000));
    if (!softmax)
        snprintf(line + used, size - (size_t)used, " %s gamma=%s", choose(r, filters, 6),
                 at_test_below(r, 2) ? "1" : "3:-0.25");
}

/* A request of a recording in memory. */
static struct at_dist_unit load(struct at_dist_recording *x, int64_t request, char *codes[AT_DIST_TENSORS]) {
    const int64_t queries = at_dist_source_queries(&x->source, request);
    const int64_t keys = at_dist_source_keys(&x->source, request);
    for (int i = 0; i < AT_DIST_TENSORS; i++) {
        const int64_t rows = i == AT_DIST_Q ? queries : keys, heads = i == AT_DIST_Q ? x->shape.h : x->shape.hk;
        codes[i] = malloc((size_t)(rows * heads * x->source.d) * at_format_info(x->dtype)->bytes + 1);
        assert_non_null(codes[i]);
        at_assert_ok(at_dist_source_read(&x->source, 0, request, i, 0, rows, codes[i]));
    }
    return (struct at_dist_unit){ .request = request,
                                  .queries = queries,
                                  .keys = keys,
                                  .tile = queries,
                                  .d = x->source.d,
                                  .format = x->dtype,
                                  .q = codes[AT_DIST_Q],
                                  .k = codes[AT_DIST_K],
                                  .v = codes[AT_DIST_V],
                                  .softmax = x->params.softmax,
                                  .causal = x->params.causal,
                                  .heads = x->params.heads };
}

/* By both, the definition on `step` queries at a time. spoiled: a query whose last head begins with a code of ones and
 * zeros, the infinity of f16; -1: none. */
static void compare(const char *line, struct at_dist_recording *x, struct at_dist_workers *workers, int64_t step,
                    int64_t spoiled) {
    struct at_dist_layer got, want;
    at_assert_ok(at_dist_layer_init(&x->shape, &got));
    at_assert_ok(at_dist_layer_init(&x->shape, &want));
    for (int64_t r = 0; r < x->shape.requests; r++) {
        char *codes[AT_DIST_TENSORS];
        struct at_dist_unit unit = load(x, r, codes);
        if (spoiled >= 0)
            at_store_code(unit.format, codes[AT_DIST_Q], (size_t)(((spoiled + 1) * x->shape.h - 1) * unit.d), 0x7c00);
        at_assert_ok(at_dist_count_unit(workers, &unit, &want));
        for (int64_t first = 0; unit.keys > 0 && first < unit.queries; first += step) {
            struct at_dist_unit part = unit;
            part.first_query = first;
            part.tile = unit.queries - first < step ? unit.queries - first : step;
            part.q = codes[AT_DIST_Q] + (size_t)(first * x->shape.h * unit.d) * at_format_info(unit.format)->bytes;
            count_by_definition(&part, &got);
        }
        if (unit.keys == 0 || unit.queries == 0)
            at_assert_ok(at_dist_count_unit(workers, &unit, &got)); /* as at_dist_device_count() does */
        for (int i = 0; i < AT_DIST_TENSORS; i++)
            free(codes[i]);
    }
    same_layer(line, &got, &want);
    at_dist_layer_release(&got);
    at_dist_layer_release(&want);
}

static void test_random_requests(void **state) {
    (void)state;
    struct at_test_random random = { 20 };
    struct at_dist_workers *workers;
    at_assert_ok(at_dist_workers_create(2, &workers));
    for (int i = 0, n = (int)at_test_effort(60); i < n; i++) {
        char line[512];
        struct at_dist_recording x;
        random_line(&random, line, sizeof line);
        const struct at_dist_request request = { .input = line, .bins = i % 2 ? "bf16" : "f16", .shards = 1 };
        at_assert_ok(at_dist_recording_open(&request, &x));
        compare(line, &x, workers, i % 3 ? 1 << 20 : AT_DIST_TILE, -1);
        at_dist_recording_close(&x);
    }
    at_dist_workers_destroy(workers);
}

/* What is not asked for is not counted, but stands in the ledger all the same. */
static void test_few_quantities(void **state) {
    (void)state;
    static const char line[] = "asynct_prefill b=1 h=2 hk=1 sq=70 sk=90 d=16 causal=1 dtype=f16 data=normal";
    static const char *const what[] = { "raw", "p,row_sum", "k,entropy", "q,v,out" };
    struct at_dist_workers *workers;
    at_assert_ok(at_dist_workers_create(1, &workers));
    for (size_t i = 0; i < sizeof what / sizeof *what; i++) {
        const struct at_dist_request request = { .input = line, .what = what[i], .shards = 1 };
        struct at_dist_recording x;
        at_assert_ok(at_dist_recording_open(&request, &x));
        compare(what[i], &x, workers, AT_DIST_TILE, -1);
        at_dist_recording_close(&x);
    }
    at_dist_workers_destroy(workers);
}

/* The first place beyond f16 lies in a later tile, and is told by its number in the request. */
static void test_first_place(void **state) {
    (void)state;
    static const char line[] = "asynct_prefill b=1 h=2 hk=1 sq=140 sk=20 d=8 dtype=f16 data=normal";
    const struct at_dist_request request = { .input = line, .shards = 1 };
    struct at_dist_workers *workers;
    struct at_dist_recording x;
    at_assert_ok(at_dist_workers_create(1, &workers));
    at_assert_ok(at_dist_recording_open(&request, &x));
    compare(line, &x, workers, AT_DIST_TILE, 100);
    at_dist_recording_close(&x);
    at_dist_workers_destroy(workers);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_requests),
        cmocka_unit_test(test_few_quantities),
        cmocka_unit_test(test_first_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
