/* Decoys: which of them count, which are rejected, on which rows they are tried, and that one variant's decoys do not
 * depend on another's.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "attest/attention.h"
#include "tests/support/built_case.h"
#include "verify/judge/decoys.h"

/* ---- an operator of our own: rows of `channels` elements, one output ---- */

enum { X, Y, TENSORS };

static const struct at_tensor_spec specs[TENSORS] = {
    { "x", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_channels }, "input" },
    { "y", AT_OUT, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_channels }, "output" },
};

static const struct at_decoy_spec own[] = { { "first", "its split" }, { "second", "twice its split" } };

static int64_t own_rows(const struct at_problem *p) { return p->sizes.tokens; }
static double heavy_work(const struct at_problem *p, int64_t row) {
    (void)row;
    return p->sizes.h ? 1e6 : 1; /* h: work is heavy */
}

static void own_span(const struct at_problem *p, int tensor, int64_t row, int64_t *first, int64_t *count) {
    (void)tensor;
    *first = row * p->sizes.channels;
    *count = p->sizes.channels;
}

static at_status own_value(const struct at_problem *p, const struct at_numerics *n, int64_t row0, int64_t row1,
                           struct at_eval *eval) {
    (void)n;
    for (int64_t i = row0 * p->sizes.channels; i < row1 * p->sizes.channels; i++)
        eval->value[Y][i] = (double)(i + 1);
    return AT_OK;
}

/* What a decoy is given is seen in its values: the row, the decoy, the split, the number of splits, the exponential and p's format. */
static at_status own_decoy(const struct at_problem *p, const struct at_numerics *n, int decoy, int64_t row0,
                           int64_t row1, struct at_eval *eval) {
    for (int64_t i = row0 * p->sizes.channels; i < row1 * p->sizes.channels; i++)
        eval->value[Y][i] =
            (double)(1000 * i + 100 * n->p + n->split * (decoy + 1)) + 0.25 * n->exp + 0.0625 * n->splits;
    return AT_OK;
}

static const struct at_op op = { .name = "test",
                                 .tensors = specs,
                                 .n_tensors = TENSORS,
                                 .decoys = own,
                                 .n_decoys = 2,
                                 .rows = own_rows,
                                 .row_span = own_span,
                                 .row_work = heavy_work,
                                 .evaluate = own_value,
                                 .decoy = own_decoy };

/* ---- trying decoys on values given by hand ---- */

enum { ROWS = 3, WIDTH = 16, COUNT = ROWS * WIDTH };

struct trial {
    struct at_problem problem;
    struct at_answer answer;
    double value[COUNT], decoy[COUNT], limit[COUNT], model[COUNT], interval[COUNT];
    int64_t sample[ROWS];
};

/* Every value 4 (so a row's rms is 4), every row sampled, one decoy equal to the values, limits and intervals 0.25. */
static void set_up(struct trial *t, enum at_format format) {
    memset(t, 0, sizeof *t);
    t->problem = (struct at_problem){ .op = &op, .sizes = { .tokens = ROWS, .channels = WIDTH }, .dtype = format };
    at_problem_shape(&t->problem);
    t->answer.problem = &t->problem;
    t->answer.n_outputs = 1;
    t->answer.outputs[0] = Y;
    t->answer.value[Y] = t->value;
    t->answer.count[Y] = COUNT;
    t->answer.rows = ROWS;
    t->answer.sample = t->sample;
    t->answer.n_sample = ROWS;
    t->answer.n_decoys = 1;
    t->answer.decoys[0] = (struct at_decoy){ "one", "a fault", { [Y] = t->decoy } };
    for (int r = 0; r < ROWS; r++)
        t->sample[r] = r;
    for (int i = 0; i < COUNT; i++) {
        t->value[i] = t->decoy[i] = t->model[i] = 4;
        t->limit[i] = t->interval[i] = 0.25;
    }
}

enum by { BY_LIMIT, BY_MODEL, BY_NOTHING };

static char fate(struct trial *t, enum by by) {
    struct at_decoy_report report;
    at_decoys_count(&t->answer, Y);
    at_decoys_try(&t->answer, NULL, Y, by == BY_LIMIT ? t->limit : NULL, by == BY_MODEL ? t->model : NULL,
                  by == BY_MODEL ? t->interval : NULL, NULL, &report);
    assert_int_equal(report.n, 1);
    const char f = report.fate[0];
    assert_int_equal(report.fate[1], 0);
    assert_int_equal(report.counted, f != AT_DECOY_INERT);
    assert_int_equal(report.rejected, f == AT_DECOY_REJECTED);
    assert_int_equal(report.passed, f == AT_DECOY_PASSED);
    return f;
}

static void expect_fate(struct trial *t, enum by by, char want) {
    const char got = fate(t, by);
    at_assert_true(got == want, "fate %c, wanted %c", got, want);
}

/* A quarter of the row's rms, or 16 units in the last place of the output: what exceeds both changes something. */
static void counts_beyond_the_threshold(void **state) {
    (void)state;
    struct trial t;
    set_up(&t, AT_F32);
    expect_fate(&t, BY_LIMIT, AT_DECOY_INERT);
    t.decoy[20] = 5; /* rms / 4 away */
    expect_fate(&t, BY_LIMIT, AT_DECOY_INERT);
    t.decoy[20] = 3;
    expect_fate(&t, BY_LIMIT, AT_DECOY_INERT);
    t.decoy[20] = 5 + 1e-9;
    expect_fate(&t, BY_LIMIT, AT_DECOY_REJECTED);
    t.decoy[20] = 3 - 1e-9;
    expect_fate(&t, BY_LIMIT, AT_DECOY_REJECTED);
    /* one value of 1 in a row of zeros: rms / 4 is 1/16, 16 ulp of bf16 at 1 are 1/8 */
    set_up(&t, AT_BF16);
    for (int i = WIDTH; i < 2 * WIDTH; i++)
        t.value[i] = t.decoy[i] = i == 20;
    t.decoy[20] = 1.125;
    expect_fate(&t, BY_LIMIT, AT_DECOY_INERT);
    t.decoy[20] = 1.126;
    expect_fate(&t, BY_LIMIT, AT_DECOY_PASSED);
    /* each row has its own rms: what is nothing beside a 4 is much in a row of small values */
    set_up(&t, AT_F32);
    for (int i = WIDTH; i < 2 * WIDTH; i++)
        t.value[i] = t.decoy[i] = 0.25;
    t.decoy[5] = 4.5;
    expect_fate(&t, BY_NOTHING, AT_DECOY_INERT);
    t.decoy[20] = 0.75;
    expect_fate(&t, BY_NOTHING, AT_DECOY_PASSED);
}

static void counts_by_class(void **state) {
    (void)state;
    static const struct {
        double value, decoy;
        char fate;
    } rows[] = {
        { 4, NAN, AT_DECOY_REJECTED },        { NAN, 4, AT_DECOY_REJECTED },
        { NAN, NAN, AT_DECOY_INERT },         { INFINITY, INFINITY, AT_DECOY_INERT },
        { INFINITY, 4, AT_DECOY_REJECTED },   { 4, -INFINITY, AT_DECOY_REJECTED },
        { INFINITY, NAN, AT_DECOY_REJECTED }, { -INFINITY, INFINITY, AT_DECOY_REJECTED },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int by = BY_LIMIT; by <= BY_MODEL; by++) {
            struct trial t;
            set_up(&t, AT_F32);
            t.value[20] = t.model[20] = rows[i].value;
            t.decoy[20] = rows[i].decoy;
            const char got = fate(&t, (enum by)by);
            at_assert_true(got == rows[i].fate, "%g for %g: fate %c, wanted %c", rows[i].decoy, rows[i].value, got,
                           rows[i].fate);
        }
    /* a row's rms is of its finite values */
    struct trial t;
    set_up(&t, AT_F32);
    t.value[16] = t.decoy[16] = INFINITY;
    t.decoy[20] = 4.9;
    expect_fate(&t, BY_LIMIT, AT_DECOY_INERT);
    t.decoy[20] = 5.1;
    expect_fate(&t, BY_LIMIT, AT_DECOY_REJECTED);
}

/* A wrong kernel rounds as well: only what is more than twice the limit away, or off the model by more than twice the
 * interval, is rejected; one such element is enough. */
static void rejected_beyond_twice_the_limit(void **state) {
    (void)state;
    struct trial t;
    set_up(&t, AT_F32);
    t.decoy[20] = 8;
    t.limit[20] = t.interval[20] = 2;
    expect_fate(&t, BY_LIMIT, AT_DECOY_PASSED);
    expect_fate(&t, BY_MODEL, AT_DECOY_PASSED);
    t.decoy[20] = 8 + 1e-9;
    expect_fate(&t, BY_LIMIT, AT_DECOY_REJECTED);
    expect_fate(&t, BY_MODEL, AT_DECOY_REJECTED);
    t.model[20] = 4.5; /* the model decides by its own values */
    expect_fate(&t, BY_MODEL, AT_DECOY_PASSED);
    expect_fate(&t, BY_NOTHING, AT_DECOY_PASSED);
    t.limit[20] = INFINITY;
    expect_fate(&t, BY_LIMIT, AT_DECOY_PASSED);
    t.decoy[3] = 4.75; /* too little to count, enough to be rejected */
    expect_fate(&t, BY_LIMIT, AT_DECOY_REJECTED);
    t.decoy[20] = 4; /* now nothing counts: inert, not rejected */
    expect_fate(&t, BY_LIMIT, AT_DECOY_INERT);
    t.limit[20] = NAN; /* a limit that is no number excuses nothing */
    t.decoy[20] = 8;
    expect_fate(&t, BY_LIMIT, AT_DECOY_REJECTED);
}

/* Decoys have values on sampled rows alone, limits and values on all. */
static void tried_on_sampled_rows(void **state) {
    (void)state;
    struct trial t;
    set_up(&t, AT_F32);
    t.answer.n_sample = 2;
    t.sample[1] = 2;
    for (int i = WIDTH; i < 2 * WIDTH; i++)
        t.value[i] = 1000; /* the row that is left out */
    expect_fate(&t, BY_LIMIT, AT_DECOY_INERT);
    for (int i = 2 * WIDTH; i < COUNT; i++)
        t.value[i] = 1;
    expect_fate(&t, BY_LIMIT, AT_DECOY_REJECTED);
    for (int i = 2 * WIDTH; i < COUNT; i++)
        t.limit[i] = 1.5; /* of the same elements, 3 away */
    expect_fate(&t, BY_LIMIT, AT_DECOY_PASSED);
    assert_int_equal(at_sample_index(&t.answer, Y, 0, 5), 5);
    assert_int_equal(at_sample_index(&t.answer, Y, 1, 5), 2 * WIDTH + 5);
}

/* ---- making them ---- */

static void open_answer(const struct at_problem *p, struct at_answer *a) {
    at_assert_ok(at_answer_open(p, 1, 1, a));
    struct at_numerics n = at_numerics_default();
    at_assert_ok(at_answer_decoys(a, &n, 1));
}

static const struct at_decoy *named(const struct at_answer *a, const char *name) {
    for (int d = 0; d < a->n_decoys; d++)
        if (strcmp(a->decoys[d].name, name) == 0)
            return &a->decoys[d];
    fail_msg("no decoy %s", name);
    return NULL;
}

/* Element (token, head, channel) of a whole output [tokens h d] under each general decoy. */
static void general_decoys_are_what_they_say(void **state) {
    (void)state;
    struct at_built_case built = at_build_line("asynct_prefill b=2 h=3 hk=1 sq=3/2 sk=4/9 d=5 dtype=f32");
    const struct at_problem *p = &built.data.problem;
    struct at_answer a;
    open_answer(p, &a);
    const int o = at_op_tensor_index(p->op, "o");
    enum { H = 3, D = 5, TOKENS = 5, N = TOKENS * H * D };
    assert_int_equal(a.count[o], N);
    assert_int_equal(a.n_sample, TOKENS * H);
    double mean = 0, best = -1;
    int lost = -1;
    for (int row = 0; row < TOKENS * H; row++) {
        double sum = 0;
        for (int c = 0; c < D; c++) {
            mean += a.value[o][row * D + c] / N;
            sum += a.value[o][row * D + c] * a.value[o][row * D + c];
        }
        if (sum > best)
            best = sum, lost = row;
    }
    for (int i = 0; i < N; i++) {
        const int row = i / D, c = i % D, head = row % H, token = row / H;
        const double x = a.value[o][i];
        at_assert_same(named(&a, "zeros")->value[o][i], 0);
        at_assert_same(named(&a, "sign")->value[o][i], -x);
        at_assert_within(named(&a, "mean")->value[o][i], mean, 1e-12);
        at_assert_same(named(&a, "previous_row")->value[o][i], row ? a.value[o][i - D] : x);
        at_assert_same(named(&a, "other_head")->value[o][i], a.value[o][(token * H + (head + 1) % H) * D + c]);
        at_assert_same(named(&a, "scaled")->value[o][i], x + x / 256);
        at_assert_same(named(&a, "row_zeroed")->value[o][i], row == lost ? 0 : x);
        at_assert_same(named(&a, "batch_zeroed")->value[o][i], (token < 3) == (lost / H < 3) ? 0 : x);
    }
    at_answer_close(&a);
    at_drop_case(&built);
}

/* Light work: all rows. Heavy work: an even spread and each request's last row; the operator is asked for these only.
 */
static void sampled_rows_are_spread(void **state) {
    (void)state;
    struct at_problem p = { .op = &op, .sizes = { .tokens = 1000, .channels = 2, .max_sk = 100 }, .dtype = AT_F32 };
    struct at_answer a;
    at_problem_shape(&p);
    open_answer(&p, &a);
    assert_int_equal(a.n_sample, 1000);
    assert_int_equal(a.sample_count[Y], 2000);
    at_answer_close(&a);
    p.sizes.h = 1;
    open_answer(&p, &a);
    assert_int_equal(a.n_sample, 41); /* 1e9 of 4e7: every 25th, and the last */
    for (int i = 0; i < 41; i++)
        assert_int_equal(a.sample[i], i < 40 ? 25 * i : 999);
    assert_int_equal(a.sample_count[Y], 82);
    for (int i = 0; i < 82; i++) {
        const int64_t at = at_sample_index(&a, Y, i / 2, i % 2);
        at_assert_same(named(&a, "sign")->value[Y][i], -(double)(at + 1));
        at_assert_same(named(&a, "previous_row")->value[Y][i], (double)(at < 2 ? at + 1 : at - 1));
        at_assert_same(named(&a, "first")->value[Y][i], (double)(1000 * at + 100 * at_numerics_default().p));
    }
    at_answer_close(&a);
    struct at_built_case built =
        at_build_line("asynct_decode b=300 h=4 hk=1 sk=900/1100/1 d=64 dtype=bf16"); /* 4e7 and more */
    open_answer(&built.data.problem, &a);
    assert_true(a.n_sample < a.rows && a.n_sample >= 300);
    int64_t s = 0;
    for (int64_t r = 0; r < 300; r++) { /* one query a request: its last row is that of its last head */
        while (s < a.n_sample && a.sample[s] < 4 * r + 3)
            s++;
        at_assert_true(s < a.n_sample && a.sample[s] == 4 * r + 3, "the last row of request %lld is left out",
                       (long long)r);
    }
    at_answer_close(&a);
    at_drop_case(&built);
}

static double *values_of(const struct at_answer *a, int t, int64_t *n) {
    *n = a->n_decoys * a->sample_count[t];
    double *all = malloc((size_t)*n * sizeof *all);
    assert_non_null(all);
    for (int d = 0; d < a->n_decoys; d++)
        memcpy(all + d * a->sample_count[t], a->decoys[d].value[t], (size_t)a->sample_count[t] * sizeof *all);
    return all;
}

/* Whatever variants were judged before: the decoys of a split and an exponential are those of a fresh start with them. */
static void assert_independent(const struct at_problem *p, int t) {
    static const int splits[] = { 0, 16, 64, 16, 0, 1 << 20, 32 };
    struct at_answer walked;
    at_assert_ok(at_answer_open(p, 1, 1, &walked));
    for (size_t i = 0; i < sizeof splits / sizeof *splits; i++) {
        struct at_answer fresh;
        struct at_numerics n = at_numerics_default(), other = n;
        int64_t n_walked, n_fresh;
        n.split = other.split = splits[i];
        n.splits = other.splits = i < 2 ? 0 : 2;
        n.exp = other.exp = i % 3 ? AT_EXP_EX2_APPROX_FTZ : AT_EXP_LIBM;
        other.p = AT_BF16;
        other.qk_unit = AT_UNIT_TC_F16;
        at_assert_ok(at_answer_open(p, 1, 1, &fresh));
        at_assert_ok(at_answer_decoys(&walked, i % 2 ? &n : &other, 1));
        at_assert_ok(at_answer_decoys(&fresh, i % 2 ? &other : &n, 3));
        double *a = values_of(&walked, t, &n_walked), *b = values_of(&fresh, t, &n_fresh);
        assert_int_equal(n_walked, n_fresh);
        for (int64_t k = 0; k < n_walked; k++)
            at_assert_same(a[k], b[k]);
        free(a);
        free(b);
        at_answer_close(&fresh);
    }
    at_answer_close(&walked);
}

static void decoys_do_not_depend_on_the_variant_before(void **state) {
    (void)state;
    struct at_problem p = { .op = &op, .sizes = { .tokens = 9, .channels = 2, .max_sk = 100 }, .dtype = AT_F32 };
    at_problem_shape(&p);
    assert_independent(&p, Y);
    /* the split does reach the operator, unless no row is long enough for it */
    struct at_answer a;
    struct at_numerics n = at_numerics_default();
    at_assert_ok(at_answer_open(&p, 1, 1, &a));
    for (int split = 16; split <= 160; split += 72) { /* 16, 88, 160 */
        n.split = split;
        at_assert_ok(at_answer_decoys(&a, &n, 1));
        assert_int_equal(a.n_decoys, AT_DECOY_GENERAL + 2);
        const double base = 100 * at_numerics_default().p, reached = split < 100 ? split : 0;
        at_assert_same(named(&a, "first")->value[Y][0], base + reached);
        at_assert_same(named(&a, "second")->value[Y][0], base + 2 * reached);
    }
    /* and so does the exponential, after another one at the same split */
    n.exp = AT_EXP_EX2_APPROX;
    at_assert_ok(at_answer_decoys(&a, &n, 1));
    at_assert_same(named(&a, "first")->value[Y][0], 100 * at_numerics_default().p + 0.25 * AT_EXP_EX2_APPROX);
    at_answer_close(&a);
    struct at_built_case built = at_build_line("asynct_decode b=2 h=2 hk=1 sk=70/33 d=8 dtype=bf16");
    assert_independent(&built.data.problem, at_op_tensor_index(built.data.problem.op, "o"));
    at_drop_case(&built);
}

/* It counts where its case requires it, however little it changes; rejected by an element, or by sums that see less. */
static void scaled_counts_by_the_case(void **state) {
    (void)state;
    struct trial t;
    struct at_decoy_report report;
    set_up(&t, AT_BF16);
    t.answer.decoys[0].is_scaled = 1;
    for (int i = 0; i < COUNT; i++)
        t.decoy[i] = t.value[i] * (1 + AT_DECOY_SCALE); /* 1/64 away */
    expect_fate(&t, BY_LIMIT, AT_DECOY_INERT);
    t.answer.wants_scaled = 1;
    expect_fate(&t, BY_LIMIT, AT_DECOY_PASSED);
    at_decoys_try(&t.answer, NULL, Y, t.limit, NULL, NULL, NULL, &report);
    at_decoys_try_scale(&t.answer, AT_DECOY_SCALE, &report);
    assert_int_equal(report.fate[0], AT_DECOY_PASSED);
    at_decoys_try_scale(&t.answer, AT_DECOY_SCALE / 2, &report);
    assert_int_equal(report.fate[0], AT_DECOY_REJECTED);
    assert_int_equal(report.rejected, 1);
    assert_int_equal(report.passed, 0);
    t.limit[30] = 1.0 / 256;
    expect_fate(&t, BY_LIMIT, AT_DECOY_REJECTED);
    memset(t.value, 0, sizeof t.value); /* nothing to scale */
    expect_fate(&t, BY_LIMIT, AT_DECOY_INERT);
}

/* Names that a case may require: the parser of case lines has a list of its own, and it is this one. */
static void general_names_are_known_to_cases(void **state) {
    (void)state;
    int n = 0;
    for (; at_general_decoy(n); n++) {
        const struct at_decoy_spec *d = at_general_decoy(n);
        struct at_case_list list = { 0 };
        char line[128];
        snprintf(line, sizeof line, "asynct_decode sk=5 d=8 require=%s", d->name);
        at_assert_ok(at_case_parse(line, "line", "test", &list));
        at_case_list_release(&list);
        const struct at_op *attention = at_op_find("asynct_attention"), *norm = at_op_find("rms_norm");
        /* heads, requests, or weights whose rounding can hide it */
        const int needs_heads = strcmp(d->name, "other_head") == 0 || strcmp(d->name, "batch_zeroed") == 0 ||
                                strcmp(d->name, "scaled") == 0;
        assert_int_equal(at_decoy_applies(attention, n), 1);
        assert_int_equal(at_decoy_applies(norm, n), !needs_heads);
        assert_int_equal(at_decoy_known(attention, d->name), 1);
        assert_int_equal(at_decoy_known(norm, d->name), !needs_heads);
        assert_true(d->meaning[0]);
    }
    assert_int_equal(n, AT_DECOY_GENERAL);
    assert_null(at_general_decoy(-1));
    assert_int_equal(at_decoy_known(&op, "second"), 1);
    assert_int_equal(at_decoy_known(&op, "third"), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_beyond_the_threshold),
        cmocka_unit_test(counts_by_class),
        cmocka_unit_test(rejected_beyond_twice_the_limit),
        cmocka_unit_test(tried_on_sampled_rows),
        cmocka_unit_test(general_decoys_are_what_they_say),
        cmocka_unit_test(sampled_rows_are_spread),
        cmocka_unit_test(decoys_do_not_depend_on_the_variant_before),
        cmocka_unit_test(scaled_counts_by_the_case),
        cmocka_unit_test(general_names_are_known_to_cases),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
