/* A recording against a second, slow evaluation of its definition: every count of every quantity, the mass, the zero
 * shares and the ledger, on small ragged cases; the same for any number of threads and tiles.
 * SPDX-License-Identifier: Apache-2.0 */
#include "attest/attention.h"
#include "attest/plain_math.h"
#include "tests/at_test.h"
#include "verify/record/dist_record.h"

/* ---- the definition, one value after the other ---- */

struct slow {
    const struct at_dist_recording *x;
    struct at_dist_layer *into;
    int64_t request, queries, keys;
    double *q, *k, *v;   /* decoded: [queries h d], [keys hk d] */
    unsigned char *live; /* [h queries keys] 1: p is not 0; 2: hidden */
};

static void count(struct slow *s, enum at_dist_what what, int64_t head, double x) {
    const struct at_dist_shape *shape = &s->into->shape;
    if (!at_dist_has(shape, what))
        return;
    struct at_dist_tally *tally = &s->into->tally[what][head];
    if (isnan(x)) {
        tally->nan++;
        return;
    }
    const uint16_t code = (uint16_t)at_encode(shape->bins, x);
    const int64_t bin = at_dist_bin_of(shape->bins, code), n = at_dist_bins(shape->bins);
    const int64_t classes = at_dist_classes(shape->bins), group = s->request % shape->n_groups;
    tally->overflow += isfinite(x) && isinf(at_decode(shape->bins, code));
    s->into->counts[what][head * n + bin]++;
    s->into->coarse[what][(head * shape->n_groups + group) * classes + at_dist_class_of(shape->bins, bin)]++;
}

static double slow_dot(const struct slow *s, const double *q, const double *k) {
    const int64_t d = s->x->source.d;
    double sum = 0, rest = 0, plain = 0;
    for (int64_t c = 0; c < d; c++) {
        const double h = q[c] * k[c], e = fma(q[c], k[c], -h), next = sum + h, z = next - sum;
        rest += ((sum - (next - z)) + (h - z)) + e;
        sum = next;
        plain += h;
    }
    return isfinite(sum + rest) ? sum + rest : plain;
}

static void note(struct slow *s, int stage, int64_t h, int64_t i, int64_t k, double x) {
    struct at_ledger ledger, more;
    const struct at_place place = { s->request, h, i, k, -1 };
    at_ledger_init(&ledger);
    at_ledger_init(&more);
    ledger.stage[0] = s->into->ledger[h * AT_DIST_STAGES + stage];
    at_ledger_note(&more, (enum at_stage)0, x, &place);
    at_ledger_merge(&ledger, &more);
    s->into->ledger[h * AT_DIST_STAGES + stage] = ledger.stage[0];
}

static void slow_mass(struct slow *s, int64_t h, int64_t i, int64_t t, double p) {
    const int64_t here = s->keys - s->queries + i, distance = here > t ? here - t : t - here;
    if (isfinite(p))
        s->into->mass[h * s->into->shape.n_distances + at_dist_distance_of(distance)] +=
            (uint64_t)llrint(fabs(p) * 16777216.0);
}

static void count_empty(struct slow *s, enum at_dist_what what, int64_t h) {
    if (at_dist_has(&s->into->shape, what))
        s->into->tally[what][h].n_empty++;
}

static void slow_statistics(struct slow *s, int64_t h, int64_t n, const double *scaled, const double *w) {
    double max = -(double)INFINITY, sum = 0, terms = 0;
    int has_nan = 0;
    for (int64_t t = 0; t < n; t++) {
        has_nan |= isnan(scaled[t]);
        max = scaled[t] > max ? scaled[t] : max;
        sum += w[t];
    }
    for (int64_t t = 0; t < n; t++)
        if (w[t] != 0)
            terms += w[t] * at_plain_log2(w[t]);
    if (n == 0) {
        count_empty(s, AT_DIST_row_max, h);
        count_empty(s, AT_DIST_row_sum, h);
    } else {
        count(s, AT_DIST_row_max, h, has_nan ? (double)NAN : max);
        count(s, AT_DIST_row_sum, h, sum);
    }
    if (n == 0 || sum == 0) {
        count_empty(s, AT_DIST_entropy, h);
        count_empty(s, AT_DIST_support, h);
        count_empty(s, AT_DIST_share0, h);
        return;
    }
    double entropy = at_plain_log2(sum) - terms / sum;
    if (entropy < 0)
        entropy = 0;
    count(s, AT_DIST_entropy, h, entropy);
    count(s, AT_DIST_support, h, at_plain_exp2(entropy));
    count(s, AT_DIST_share0, h, w[0] / sum);
}

static void slow_row(struct slow *s, int64_t h, int64_t i) {
    enum { MAX = 256 };
    const struct at_dist_recording *x = s->x;
    const int64_t d = x->source.d, kv = h / (x->source.h / x->source.hk);
    const struct at_asynct_head *head = &x->params.heads[h];
    int64_t n = x->params.causal ? s->keys - s->queries + i + 1 : s->keys;
    double raw[MAX], scaled[MAX], fir[MAX], p[MAX], e[MAX], max = -(double)INFINITY, sum = 0;
    n = n < 0 ? 0 : n;
    assert_true(n <= MAX);
    for (int64_t t = 0; t < n; t++)
        raw[t] = slow_dot(s, s->q + (i * x->source.h + h) * d, s->k + (t * x->source.hk + kv) * d);
    if (!x->params.softmax)
        at_asynct_gate_row(head, n, raw, scaled, fir, p);
    for (int64_t t = 0; t < n && x->params.softmax; t++) {
        scaled[t] = head->scale * raw[t];
        max = scaled[t] > max ? scaled[t] : max;
    }
    for (int64_t t = 0; t < n && x->params.softmax; t++) {
        e[t] = at_plain_exp(scaled[t] - (isinf(max) && max < 0 ? 0 : max));
        sum += e[t];
    }
    for (int64_t t = 0; t < n && x->params.softmax; t++)
        p[t] = e[t] / sum;
    const enum at_dist_what pairs[] = { AT_DIST_raw, AT_DIST_scaled, AT_DIST_fir, AT_DIST_p };
    for (int w = 0; w < 4; w++)
        if (at_dist_has(&s->into->shape, pairs[w]))
            s->into->tally[pairs[w]][h].masked += (uint64_t)(s->keys - n);
    for (int64_t t = 0; t < s->keys; t++) {
        s->live[(h * s->queries + i) * s->keys + t] = t >= n ? 2 : p[t] != 0;
        if (t >= n)
            continue;
        count(s, AT_DIST_raw, h, raw[t]);
        count(s, AT_DIST_scaled, h, scaled[t]);
        count(s, AT_DIST_p, h, p[t]);
        note(s, 0, h, i, t, raw[t]);
        note(s, 1, h, i, t, scaled[t]);
        if (!x->params.softmax) {
            count(s, AT_DIST_fir, h, fir[t]);
            note(s, 2, h, i, t, fir[t]);
        }
        note(s, 3, h, i, t, x->params.softmax ? e[t] : p[t]);
        slow_mass(s, h, i, t, p[t]);
    }
    slow_statistics(s, h, n, scaled, x->params.softmax ? e : p);
    for (int64_t c = 0; c < d; c++) {
        double o = 0;
        for (int64_t t = 0; t < n; t++)
            if (p[t] != 0)
                o = fma(x->params.softmax ? e[t] : head->gamma * p[t], s->v[(t * x->source.hk + kv) * d + c], o);
        if (x->params.softmax && n)
            o /= sum;
        count(s, AT_DIST_out, h, o);
        note(s, 4, h, i, -1, o);
        count(s, AT_DIST_q, h, s->q[(i * x->source.h + h) * d + c]);
    }
}

/* Elements of heads [h0, h1), queries [i0, i1), keys [t0, t1): one is visible, one is live. */
static void look(const struct slow *s, int64_t h0, int64_t h1, int64_t i0, int64_t i1, int64_t t0, int64_t t1,
                 int *visible, int *live) {
    *visible = *live = 0;
    for (int64_t h = h0; h < h1; h++)
        for (int64_t i = i0; i < i1 && i < s->queries; i++)
            for (int64_t t = t0; t < t1 && t < s->keys; t++) {
                const int is = s->live[(h * s->queries + i) * s->keys + t];
                *visible |= is != 2;
                *live |= is == 1;
            }
}

static void slow_zeros(struct slow *s) {
    const int64_t group = s->x->source.h / s->x->source.hk;
    const struct {
        enum at_dist_zero zero;
        int64_t heads, queries, keys;
    } kinds[] = { { AT_DIST_ZERO_element_zero, 1, 1, 1 },
                  { AT_DIST_ZERO_key_zero, group, 1, 1 },
                  { AT_DIST_ZERO_page_zero, group, 1, 16 },
                  { AT_DIST_ZERO_tile_zero, 1, 64, 16 } };
    for (int z = 0; z < 4; z++)
        for (int64_t h = 0; h < s->x->source.h; h += kinds[z].heads)
            for (int64_t i = 0; i < s->queries; i += kinds[z].queries)
                for (int64_t t = 0; t < s->keys; t += kinds[z].keys) {
                    int visible, live;
                    const int64_t at = at_dist_zero_is_kv(kinds[z].zero) ? h / group : h;
                    look(s, h, h + kinds[z].heads, i, i + kinds[z].queries, t, t + kinds[z].keys, &visible, &live);
                    s->into->zero[kinds[z].zero + 1][at] += (uint64_t)visible;
                    s->into->zero[kinds[z].zero][at] += (uint64_t)(visible && !live);
                }
}

static double *read_decoded(struct at_dist_recording *x, int64_t request, int tensor, int64_t rows) {
    const int64_t n = rows * (tensor == AT_DIST_Q ? x->source.h : x->source.hk) * x->source.d;
    void *codes = malloc((size_t)n * 8 + 1);
    double *values = malloc(((size_t)n + 1) * sizeof *values);
    at_assert_ok(at_dist_source_read(&x->source, 0, request, tensor, 0, rows, codes));
    at_decode_array(x->source.format, (size_t)n, codes, values);
    for (int64_t i = 0; i < n; i++)
        values[i] = at_round(x->dtype, values[i]);
    free(codes);
    return values;
}

static void slow_unit(struct at_dist_recording *x, int64_t request, struct at_dist_layer *into) {
    struct slow s = { .x = x, .into = into, .request = request };
    s.queries = at_dist_source_queries(&x->source, request);
    s.keys = at_dist_source_keys(&x->source, request);
    s.q = read_decoded(x, request, AT_DIST_Q, s.queries);
    s.k = read_decoded(x, request, AT_DIST_K, s.keys);
    s.v = read_decoded(x, request, AT_DIST_V, s.keys);
    s.live = malloc((size_t)(x->source.h * s.queries * s.keys) + 1);
    for (int64_t h = 0; h < x->source.h; h++)
        for (int64_t i = 0; i < s.queries; i++)
            slow_row(&s, h, i);
    for (int64_t i = 0; i < s.keys * x->source.hk * x->source.d; i++) {
        count(&s, AT_DIST_k, i / x->source.d % x->source.hk, s.k[i]);
        count(&s, AT_DIST_v, i / x->source.d % x->source.hk, s.v[i]);
    }
    slow_zeros(&s);
    free(s.q);
    free(s.k);
    free(s.v);
    free(s.live);
}

/* ---- comparison ---- */

static void assert_words(const char *line, const char *what, const uint64_t *got, const uint64_t *want, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        at_assert_true(got[i] == want[i], "%s: %s[%lld] is %llu, wanted %llu", line, what, (long long)i,
                       (unsigned long long)got[i], (unsigned long long)want[i]);
}

static void assert_same_sums(const char *line, const struct at_dist_layer *got, const struct at_dist_layer *want) {
    const struct at_dist_shape *s = &want->shape;
    for (int w = 0; w < AT_DIST_COUNT; w++) {
        const int64_t heads = at_dist_heads(s, (enum at_dist_what)w);
        const char *name = at_dist_name((enum at_dist_what)w);
        if (!at_dist_has(s, (enum at_dist_what)w))
            continue;
        assert_words(line, name, got->counts[w], want->counts[w], heads * at_dist_bins(s->bins));
        assert_words(line, name, got->coarse[w], want->coarse[w], heads * s->n_groups * at_dist_classes(s->bins));
        assert_words(line, name, (const uint64_t *)got->tally[w], (const uint64_t *)want->tally[w], heads * 4);
    }
    assert_words(line, "mass", got->mass, want->mass, s->h * s->n_distances);
    for (int z = 0; z < AT_DIST_ZERO_COUNT; z++)
        assert_words(line, at_dist_zero_name((enum at_dist_zero)z), got->zero[z], want->zero[z],
                     at_dist_zero_heads(s, (enum at_dist_zero)z));
    for (int64_t i = 0; i < s->h * AT_DIST_STAGES; i++) {
        const struct at_ledger_row *a = &got->ledger[i], *b = &want->ledger[i];
        const uint64_t x[] = { a->count,     a->zero,        a->nan,
                               a->inf,       a->above_65504, a->to_inf,
                               a->subnormal, a->flushed,     (uint64_t)a->has_first };
        const uint64_t y[] = { b->count,     b->zero,        b->nan,
                               b->inf,       b->above_65504, b->to_inf,
                               b->subnormal, b->flushed,     (uint64_t)b->has_first };
        assert_words(line, "ledger", x, y, 9);
        at_assert_same(a->max_abs, b->max_abs);
        if (a->has_first)
            assert_int_equal(at_place_compare(&a->first, &b->first), 0);
    }
}

/* ---- cases ---- */

static const struct {
    const char *line, *dtype, *bins;
} cases[] = {
    { "asynct_prefill b=3 h=4 hk=2 sq=5/70/1 sk=9/133/1 d=20 causal=1 dtype=f16 data=normal", NULL, NULL },
    { "asynct_prefill b=2 h=4 hk=1 sq=66/3 sk=66/40 d=8 causal=1 page=16 dtype=bf16 data=sparse70", NULL, NULL },
    { "asynct_prefill b=2 h=2 hk=2 sq=17 sk=33 d=65 causal=0 dtype=f32 data=normal sigma=0.5:2 gamma=3:0.25", NULL,
      NULL },
    { "asynct_prefill b=1 h=2 hk=1 sq=90 sk=70 d=16 causal=1 dtype=f16 data=heavy_tail edge=shrink window=4", NULL,
      NULL },
    { "asynct_prefill b=1 h=2 hk=1 sq=30 sk=30 d=16 causal=1 dtype=f16 data=normal taps=0.5:-0.25:-0.25 relu_pre=0 "
      "clip=-1:2",
      NULL, NULL },
    { "asynct_prefill b=1 h=2 hk=1 sq=30 sk=50 d=16 causal=1 dtype=bf16 data=nonfinite", NULL, NULL },
    { "asynct_prefill b=1 h=2 hk=1 sq=30 sk=50 d=64 dtype=f16 data=near_65504", NULL, NULL },
    { "asynct_prefill b=1 h=2 hk=1 sq=20 sk=30 d=64 dtype=bf16 data=overflow", NULL, "f16" },
    { "asynct_prefill b=1 h=2 hk=1 sq=20 sk=30 d=32 dtype=f32 data=normal", "bf16", NULL },
    { "asynct_decode b=5 h=4 hk=2 sk=1/200/16/17/0 d=32 page=16 dtype=f16 data=subnormal", NULL, NULL },
    { "softmax_prefill b=3 h=4 hk=2 sq=5/70/1 sk=9/133/1 d=20 causal=1 dtype=f16 data=normal", NULL, NULL },
    { "softmax_prefill b=1 h=2 hk=1 sq=90 sk=70 d=16 causal=1 dtype=bf16 data=outlier_channel", NULL, NULL },
    { "softmax_prefill b=1 h=2 hk=1 sq=30 sk=50 d=16 causal=1 dtype=f16 data=nonfinite", NULL, NULL },
    { "softmax_prefill b=1 h=2 hk=1 sq=30 sk=50 d=16 dtype=f16 data=random_bits", NULL, NULL },
};

static void open_case(int i, struct at_dist_recording *x) {
    const struct at_dist_request request = {
        .input = cases[i].line, .dtype = cases[i].dtype, .bins = cases[i].bins, .shards = 1
    };
    at_assert_ok(at_dist_recording_open(&request, x));
}

static void record_all(struct at_dist_recording *x, int threads, struct at_dist_layer *layer) {
    struct at_dist_workers *workers;
    struct at_dist_unit_row row;
    at_assert_ok(at_dist_workers_create(threads, &workers));
    for (int64_t r = 0; r < x->shape.requests; r++)
        at_assert_ok(at_dist_recording_unit(x, workers, 0, r, layer, &row, NULL, NULL));
    at_dist_workers_destroy(workers);
}

static void test_recount(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct at_dist_recording x;
        struct at_dist_layer got, want;
        open_case((int)i, &x);
        at_assert_ok(at_dist_layer_init(&x.shape, &got));
        at_assert_ok(at_dist_layer_init(&x.shape, &want));
        for (int64_t r = 0; r < x.shape.requests; r++)
            slow_unit(&x, r, &want);
        for (int threads = 1; threads <= 3; threads += 2) {
            at_dist_layer_clear(&got);
            record_all(&x, threads, &got);
            assert_same_sums(cases[i].line, &got, &want);
        }
        at_dist_layer_release(&got);
        at_dist_layer_release(&want);
        at_dist_recording_close(&x);
    }
}

/* Queries 64 at a time, and without BLAS, give the same. */
static void test_tiles(void **state) {
    (void)state;
    static const char line[] = "asynct_prefill b=1 h=4 hk=2 sq=700 sk=900 d=24 causal=1 dtype=f16 data=heavy_tail";
    const struct at_dist_request request = { .input = line, .shards = 1 };
    struct at_dist_recording x;
    struct at_dist_layer got, want;
    struct at_dist_workers *workers;
    at_assert_ok(at_dist_recording_open(&request, &x));
    at_assert_ok(at_dist_layer_init(&x.shape, &got));
    at_assert_ok(at_dist_layer_init(&x.shape, &want));
    record_all(&x, 2, &want);
    at_assert_ok(at_dist_workers_create(2, &workers));
    char *codes[AT_DIST_TENSORS];
    const int64_t rows[] = { 700, 900, 900 }, heads[] = { 4, 2, 2 };
    for (int i = 0; i < AT_DIST_TENSORS; i++) {
        codes[i] = malloc((size_t)(rows[i] * heads[i] * 24) * 2);
        at_assert_ok(at_dist_source_read(&x.source, 0, 0, i, 0, rows[i], codes[i]));
    }
    for (int without_blas = 0; without_blas < 2; without_blas++) {
        at_dist_layer_clear(&got);
        for (int64_t first = 0; first < 700; first += 64) {
            const struct at_dist_unit unit = { .queries = 700,
                                               .keys = 900,
                                               .first_query = first,
                                               .tile = 700 - first < 64 ? 700 - first : 64,
                                               .d = 24,
                                               .format = AT_F16,
                                               .q = codes[0] + first * 4 * 24 * 2,
                                               .k = codes[1],
                                               .v = codes[2],
                                               .causal = 1,
                                               .heads = x.params.heads,
                                               .without_blas = without_blas };
            at_assert_ok(at_dist_count_unit(workers, &unit, &got));
        }
        assert_same_sums(line, &got, &want);
    }
    for (int i = 0; i < AT_DIST_TENSORS; i++)
        free(codes[i]);
    at_dist_workers_destroy(workers);
    at_dist_layer_release(&got);
    at_dist_layer_release(&want);
    at_dist_recording_close(&x);
}

/* Pages hold the values that contiguous rows do. */
static void test_pages(void **state) {
    (void)state;
    static const char *const lines[] = {
        "asynct_prefill b=3 h=4 hk=2 sq=40/7/33 sk=70/90/33 d=16 causal=1 dtype=f16 data=normal",
        "asynct_prefill b=3 h=4 hk=2 sq=40/7/33 sk=70/90/33 d=16 causal=1 dtype=f16 data=normal page=16",
    };
    struct at_dist_recording x[2];
    struct at_dist_layer layer[2];
    for (int i = 0; i < 2; i++) {
        const struct at_dist_request request = { .input = lines[i], .shards = 1 };
        at_assert_ok(at_dist_recording_open(&request, &x[i]));
        at_assert_ok(at_dist_layer_init(&x[i].shape, &layer[i]));
        record_all(&x[i], 1, &layer[i]);
    }
    assert_same_sums(lines[1], &layer[1], &layer[0]);
    for (int i = 0; i < 2; i++) {
        at_dist_layer_release(&layer[i]);
        at_dist_recording_close(&x[i]);
    }
}

/* ---- requests that are refused ---- */

static void refuse(const struct at_dist_request *request, at_status status, const char *part) {
    struct at_dist_recording x;
    at_assert_fails(at_dist_recording_open(request, &x), status, part);
}

static void test_refused(void **state) {
    (void)state;
    const char *line = cases[0].line;
    refuse(&(struct at_dist_request){ .input = "nowhere", .shards = 1 }, AT_NOT_FOUND, "nowhere");
    refuse(&(struct at_dist_request){ .input = "gemm m=4 n=4 k=4", .shards = 1 }, AT_USAGE, "no attention");
    refuse(&(struct at_dist_request){ .input = line, .what = "raw,scored", .shards = 1 }, AT_USAGE, "scored");
    refuse(&(struct at_dist_request){ .input = line, .what = "", .shards = 1 }, AT_USAGE, "no quantity");
    refuse(&(struct at_dist_request){ .input = cases[10].line, .what = "fir", .shards = 1 }, AT_USAGE, "no fir");
    refuse(&(struct at_dist_request){ .input = line, .params = "sigma=2", .shards = 1 }, AT_USAGE, "--params");
    refuse(&(struct at_dist_request){ .input = line, .bins = "f32", .shards = 1 }, AT_USAGE, "f32");
    refuse(&(struct at_dist_request){ .input = line, .layers = "1..3", .shards = 1 }, AT_NOT_FOUND, "1..3");
    refuse(&(struct at_dist_request){ .input = "minilm", .params = "sigma=nan", .shards = 1 }, AT_USAGE, "sigma");
    refuse(&(struct at_dist_request){ .input = "minilm", .params = "h=3", .shards = 1 }, AT_USAGE, "h=3");
    refuse(&(struct at_dist_request){ .input = "minilm", .params = "sigma=1,2", .shards = 1 }, AT_USAGE, "one value");
    refuse(&(struct at_dist_request){ .input = "minilm", .attention = "softmax", .params = "sigma=1", .shards = 1 },
           AT_USAGE, "sigma");
    refuse(&(struct at_dist_request){ .input = "minilm", .attention = "linear", .shards = 1 }, AT_USAGE, "linear");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recount),
        cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
