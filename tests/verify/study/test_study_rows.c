/* Studies: the operands of attention, what becomes of a sample of sums, the fits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "verify/bench/bench.h"
#include "verify/study/accumulate/study_journal.h"
#include "verify/study/accumulate/study_plan.h"
#include "verify/result/table.h"

#include <unistd.h>

static double left[4096], right[4096];

static const struct at_study_mode *mode_of(const char *name) {
    const struct at_study_mode *mode = at_study_mode_find(name);
    at_assert_true(mode != NULL, "no mode %s", name);
    return mode;
}

/* ---- operands ---- */

/* Every sum of a small case once; their exact values are the reference's scores and outputs. */
static void test_sums_are_those_of_attention(void **state) {
    (void)state;
    static const char *const lines[] = {
        "asynct_decode b=2 h=4 hk=2 sk=5/9 d=8 dtype=f16 data=normal seed=3",
        "softmax_prefill b=2 h=2 hk=1 sq=3 sk=7 d=4 causal=1 dtype=f16 data=normal seed=3",
    };
    for (int l = 0; l < 2; l++) {
        struct at_study_input input;
        at_assert_ok(at_study_input_open(lines[l], &input));
        const struct at_problem *p = &input.data.problem;
        const int o = at_op_tensor_index(p->op, "o");
        const int64_t n = input.rows * p->sizes.d;
        struct at_eval eval = { 0 };
        double *value = eval.value[o] = calloc((size_t)n, sizeof *value);
        char *hit = calloc((size_t)n, 1);
        at_assert_ok(p->op->evaluate(p, NULL, 0, input.rows, &eval));
        at_assert_true(at_study_sum_count(&input, AT_STUDY_pv) == n, "count");
        at_assert_true(at_study_sum_count(&input, AT_STUDY_pv_unit) == (l ? n : 0), "count");
        for (int64_t i = 0; i < n; i++) {
            struct at_study_sum sum;
            double magnitude;
            at_study_sum_at(&input, AT_STUDY_pv, i, left, right, &sum);
            /* place: (request, head, query, channel) */
            int64_t token = l ? sum.place.b * 3 + sum.place.q : sum.place.b;
            const int64_t at = (token * p->sizes.h + sum.place.h) * p->sizes.d + sum.place.k;
            at_assert_true(at >= 0 && at < n && !hit[at], "element %lld", (long long)at);
            hit[at] = 1;
            for (int64_t t = 0; t < sum.n; t++)
                at_assert_same(at_round(AT_F16, left[t]), left[t]);
            const double got = at_study_exact(sum.n, left, right, &magnitude) / sum.divisor;
            at_assert_within(got, value[at], 0x1p-10 * magnitude / sum.divisor);
        }
        free(hit);
        free(value);
        at_study_input_release(&input);
    }
}

static void test_inputs_refuse(void **state) {
    (void)state;
    struct at_study_input input;
    at_assert_fails(at_study_input_open("asynct_decode b=1 h=1 hk=1 sk=4,5 d=8 dtype=f16", &input), AT_USAGE,
                    "wanted one");
    at_study_input_release(&input);
    at_assert_fails(at_study_input_open("asynct_decode b=1 h=1 hk=1 sk=4 d=8 dtype=bf16", &input), AT_USAGE,
                    "wanted f16");
    at_study_input_release(&input);
    at_assert_fails(at_study_input_open("uclip_norm tokens=2 channels=8 dtype=f16", &input), AT_USAGE,
                    "wanted an attention");
    at_study_input_release(&input);
    struct at_study_sizes sizes;
    at_assert_ok(at_study_sizes_parse("--lengths", "64,0,64,7", 0, 100, &sizes));
    at_assert_true(sizes.n == 3 && sizes.value[0] == 0 && sizes.value[1] == 7 && sizes.value[2] == 64, "sizes");
    static const char *const bad[] = { "", "1,", ",1", "x", "1;2", "101", "-1", "1 2", "99999999999999999999" };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        at_assert_fails(at_study_sizes_parse("--lengths", bad[i], 0, 100, &sizes), AT_USAGE, "--lengths: found");
}

/* ---- rows ---- */

static void measure(const char *line, enum at_study_product product, const char *mode, int64_t sums,
                    struct at_study_rows *rows) {
    struct at_study_input input;
    const struct at_study_mode *modes[] = { mode_of(mode) };
    at_assert_ok(at_study_input_open(line, &input));
    at_assert_ok(at_study_measure(&input, product, input.softmax ? "softmax" : "asynct", "data", modes, 1, sums, rows));
    at_study_input_release(&input);
}

/* overflow: every fourth key has a score beyond f16 whose products all have one sign. */
static void test_rows(void **state) {
    (void)state;
    static const char line[] = "asynct_decode b=1 h=1 hk=1 sk=64 d=64 dtype=f16 data=overflow seed=1";
    struct at_study_rows rows = { 0 };
    measure(line, AT_STUDY_qk, "f16_k16", 1000, &rows);
    measure(line, AT_STUDY_qk, "f16_k16_isinf", 1000, &rows);
    measure(line, AT_STUDY_qk, "f32_k16", 1000, &rows);
    const struct at_study_row *plain = &rows.items[0], *isinf_row = &rows.items[1], *f32 = &rows.items[2];
    at_assert_true(plain->sums == 64 && plain->overflowed == 16 && plain->result_inf == 16 && plain->compared == 48,
                   "%lld sums, %lld over, %lld infinite", (long long)plain->sums, (long long)plain->overflowed,
                   (long long)plain->result_inf);
    at_assert_true(plain->laundered == 0 && plain->guarded == 0 && isnan(plain->guarded_err_max), "nothing guarded");
    at_assert_true(isinf_row->result_inf == 0 && isinf_row->laundered == 16 && isinf_row->guarded == 16, "guarded");
    /* 65504 where 1.5 to 4 times that is right */
    at_assert_true(isinf_row->guarded_err_max > 0.3 && isinf_row->guarded_err_max < 0.8, "%g",
                   isinf_row->guarded_err_max);
    at_assert_true(f32->result_inf == 0 && f32->overflowed == 16 && f32->laundered == 0 && f32->compared == 64, "f32");
    at_assert_true(plain->ledger.has_first && plain->ledger.first.k == 1, "first at key %lld",
                   (long long)plain->ledger.first.k);
    at_assert_true(plain->earliest_step >= 1 && plain->earliest_step <= plain->ledger.first.step, "steps");
    for (int i = 0; i < 3; i++)
        at_assert_true(rows.items[i].beyond_bound == 0, "row %d", i);
    at_study_rows_release(&rows);
    /* all of V is in [0.5, 1.5]: truncation makes every sum too short, rounding to nearest does not */
    static const char same_sign[] = "asynct_decode b=1 h=2 hk=2 sk=512 d=32 dtype=f16 data=same_sign seed=1";
    measure(same_sign, AT_STUDY_pv, "f32_k16", 64, &rows);
    measure(same_sign, AT_STUDY_pv, "f32_fma", 64, &rows);
    at_assert_within(rows.items[0].bias, -rows.items[0].err_mean, 1e-9 * rows.items[0].err_mean);
    at_assert_true(fabs(rows.items[1].bias) < 0.5 * rows.items[1].err_mean, "bias %g", rows.items[1].bias);
    /* every step of 16 adds something, and f32 takes it; bf16 does not take most of what single products add */
    measure(same_sign, AT_STUDY_pv, "bf16_fma", 64, &rows);
    at_assert_true(rows.items[0].additions == 64 * 32 && rows.items[0].swamped == 0, "%lld of %lld swamped",
                   (long long)rows.items[0].swamped, (long long)rows.items[0].additions);
    at_assert_true(rows.items[2].swamped_share > 0.1 && rows.items[2].swamped_share < 0.9, "%g",
                   rows.items[2].swamped_share);
    at_assert_within(rows.items[2].swamped_share, (double)rows.items[2].swamped / (double)rows.items[2].additions, 0);
    measure(same_sign, AT_STUDY_pv, "f16_fma", 64, &rows);
    const struct at_study_row *half = &rows.items[3];
    at_assert_true(half->ulp_p50 < half->ulp_p99 && half->ulp_p50 * 2 <= half->ulp_max &&
                       half->ulp_p99 == half->ulp_max,
                   "ulp %d %d %d", (int)half->ulp_p50, (int)half->ulp_p99, (int)half->ulp_max);
    at_study_rows_release(&rows);
    /* no keys: sums of nothing are right */
    measure("softmax_decode b=1 h=1 hk=1 sk=0 d=8 dtype=f16 data=normal", AT_STUDY_pv, "f16_k16", 10, &rows);
    at_assert_true(rows.items[0].sums == 8 && rows.items[0].compared == 8 && rows.items[0].length == 0, "no keys");
    at_assert_same(rows.items[0].err_max, 0.0);
    at_assert_true(isnan(rows.items[0].swamped_share), "no additions");
    at_study_rows_release(&rows);
    /* infinite operands are counted and left out */
    measure("softmax_decode b=2 h=1 hk=1 sk=64 d=8 dtype=f16 data=nonfinite", AT_STUDY_qk, "f16_k16", 1000, &rows);
    at_assert_true(rows.items[0].inputs_nonfinite > 0 && rows.items[0].result_nan == 0 && rows.items[0].result_inf == 0,
                   "%lld left out", (long long)rows.items[0].inputs_nonfinite);
    at_study_rows_release(&rows);
}

/* Operands of E8M13 are scaled: what is said of the sums is in their own units. */
static void test_e4m3_rows(void **state) {
    (void)state;
    struct at_study_rows rows = { 0 };
    measure("asynct_decode b=2 h=1 hk=1 sk=40/9 d=64 dtype=f16 data=normal", AT_STUDY_qk, "e8m13_k32", 64, &rows);
    measure("asynct_decode b=2 h=1 hk=1 sk=40/9 d=64 dtype=f16 data=normal", AT_STUDY_pv, "e8m13_k32", 1000, &rows);
    at_assert_true(rows.items[0].ledger.max_abs > 1 && rows.items[0].ledger.max_abs < 100, "%g",
                   rows.items[0].ledger.max_abs);
    at_assert_true(rows.items[0].overflowed == 0 && rows.items[0].earliest_step == -1, "nothing beyond 65504");
    at_assert_true(rows.items[0].ulp_max > 0 && rows.items[0].ulp_max < 10000, "%d ulp", (int)rows.items[0].ulp_max);
    at_assert_true(rows.items[0].length == 64 && rows.items[0].length_min == 64, "q.k has d products");
    /* scaled, these scores are beyond f16, and infinity is no place from infinity */
    measure("asynct_decode b=2 h=1 hk=1 sk=40/9 d=1024 dtype=f16 data=near_65504", AT_STUDY_qk, "e8m13_k32", 64, &rows);
    at_assert_true(rows.items[2].ulp_max > 0 && rows.items[2].ledger.max_abs > 50000, "%d ulp",
                   (int)rows.items[2].ulp_max);
    at_assert_true(rows.items[1].length == 40 && rows.items[1].length_min == 9 && rows.items[1].sums == 2 * 64, "p.v");
    at_study_rows_release(&rows);
}

static void first_infinity(void *context, const struct at_study_step *step) {
    int64_t *first = context;
    if (*first < 0 && isinf(step->computed))
        *first = step->index;
}

/* The least step of all sums, and whether that is of another sum than the first that overflows. */
static int earliest_is_not_first(const char *line, int64_t *least) {
    struct at_study_input input;
    int64_t met_first = -1;
    *least = -1;
    at_assert_ok(at_study_input_open(line, &input));
    for (int64_t i = 0; i < at_study_sum_count(&input, AT_STUDY_qk); i++) {
        struct at_study_sum sum;
        int64_t first = -1;
        const struct at_study_observer observer = { first_infinity, &first };
        at_study_sum_at(&input, AT_STUDY_qk, i, left, right, &sum);
        at_study_add(mode_of("f16_k16"), sum.n, left, right, &observer, NULL);
        met_first = met_first < 0 ? first : met_first;
        *least = first >= 0 && (*least < 0 || first < *least) ? first : *least;
    }
    at_study_input_release(&input);
    return *least < met_first;
}

static void test_earliest_step(void **state) {
    (void)state;
    struct at_study_rows rows = { 0 };
    int64_t least;
    int others = 0;
    for (int seed = 1; seed <= 6; seed++) {
        char line[128];
        snprintf(line, sizeof line, "asynct_decode b=1 h=2 hk=2 sk=64 d=128 dtype=f16 data=overflow seed=%d", seed);
        others += earliest_is_not_first(line, &least);
        measure(line, AT_STUDY_qk, "f16_k16", 1000, &rows);
        at_assert_true(least >= 0 && rows.items[seed - 1].earliest_step == least, "seed %d: %lld, wanted %lld", seed,
                       (long long)rows.items[seed - 1].earliest_step, (long long)least);
    }
    at_assert_true(others > 0, "in every case the first sum is the earliest: nothing was tested");
    at_study_rows_release(&rows);
}

/* One head size is one series of p.v; q.k has a product a channel, so its head sizes are its lengths. */
static void test_series(void **state) {
    (void)state;
    struct at_study_row items[4] = { 0 };
    struct at_study_rows rows = { .items = items, .n = 4 };
    for (int qk = 0; qk < 2; qk++) {
        for (int i = 0; i < 4; i++) {
            snprintf(items[i].product, sizeof items[i].product, qk ? "qk" : "pv");
            items[i].d = i < 2 ? 64 : 128;
            items[i].length = i % 2 ? 32 : 16;
            items[i].err_mean = i % 2 == 0 ? 1 : i < 2 ? 2 : 0.5; /* slopes 1 and -1 */
        }
        at_assert_ok(at_study_fit(&rows));
        for (int i = 0; i < 4; i++) {
            at_assert_within(items[i].slope, qk ? 0 : i < 2 ? 1 : -1, 1e-12);
            at_assert_true(items[i].slope_points == (qk ? 4 : 2) && isnan(items[i].slope_error) == !qk, "row %d", i);
        }
    }
}

/* Errors of 2^-20 n^0.75 at four lengths: slope 0.75, and nothing of the other series mixes in. */
static void test_fit(void **state) {
    (void)state;
    struct at_study_row items[8] = { 0 };
    struct at_study_rows rows = { .items = items, .n = 8 };
    for (int i = 0; i < 8; i++) {
        snprintf(items[i].attention, sizeof items[i].attention, "asynct");
        snprintf(items[i].product, sizeof items[i].product, "pv");
        snprintf(items[i].mode, sizeof items[i].mode, i < 4 ? "f16_k16" : "f32_k16");
        snprintf(items[i].data, sizeof items[i].data, "normal");
        items[i].length = 64 << 2 * (i % 4);
        items[i].err_mean = i < 4 ? 0x1p-20 * pow((double)items[i].length, 0.75) : i == 5 ? 0 : 0x1p-24;
    }
    at_assert_ok(at_study_fit(&rows));
    for (int i = 0; i < 4; i++) {
        at_assert_within(items[i].slope, 0.75, 1e-12);
        at_assert_within(items[i].slope_error, 0, 1e-7);
        at_assert_true(items[i].slope_points == 4 && items[4 + i].slope_points == 3, "points");
        at_assert_within(items[4 + i].slope, 0, 1e-12);
    }
    /* (0, 0), (1, 1), (2, 1): slope 1/2, its standard error sqrt(1/12) */
    rows.n = 3;
    for (int i = 0; i < 3; i++) {
        items[i].length = 1 << i;
        items[i].err_mean = i ? 2 : 1;
    }
    at_assert_ok(at_study_fit(&rows));
    at_assert_within(items[0].slope, 0.5, 1e-12);
    at_assert_within(items[0].slope_error, sqrt(1.0 / 12), 1e-12);
    rows.n = 1; /* one length has no slope */
    at_assert_ok(at_study_fit(&rows));
    at_assert_true(isnan(items[0].slope) && items[0].slope_points == 1, "slope %g", items[0].slope);
}

/* ---- files ---- */

/* A row with another value in every field: text, counts, measures, one NaN, one infinity, the ledger and its place. */
static void fill_row(struct at_study_row *row, int seed) {
    const struct at_field *field;
    *row = (struct at_study_row){ .ledger.has_first = 1 };
    for (int part = 0; part < 2; part++)
        for (int i = 0; (field = part ? at_ledger_row_field(i) : at_study_field(i)); i++) {
            void *at = part ? at_field_at(field, &row->ledger) : at_field_at(field, row);
            const int value = seed + 3 * i + 100 * part;
            if (field->kind == AT_FIELD_TEXT)
                snprintf(at, field->size, "t%d", value % 1000);
            else if (field->kind == AT_FIELD_INT)
                *(int *)at = value;
            else if (field->kind == AT_FIELD_F64)
                *(double *)at = value % 7 == 0 ? (double)NAN : value % 7 == 1 ? -INFINITY : value + 0x1p-40;
            else if (field->kind != AT_FIELD_BOOL)
                *(int64_t *)at = value;
        }
    row->ledger.has_first = seed % 2;
    if (row->ledger.has_first)
        row->ledger.first = (struct at_place){ .b = seed, .h = 2, .q = 3, .k = 4, .step = 5 };
}

static void assert_rows_equal(const struct at_study_rows *got, const struct at_study_row *want, int64_t n) {
    assert_int_equal(got->n, n);
    for (int64_t i = 0; i < n; i++)
        assert_memory_equal(&got->items[i], &want[i], sizeof *want);
}

/* Whatever a row holds comes back to the bit, from the journal and from the archive. */
static void test_files_give_rows_back(void **state) {
    (void)state;
    char folder[] = "/tmp/at_study_XXXXXX", journal_path[64], archive[64];
    struct at_study_row rows[5];
    struct at_study_rows got = { 0 };
    struct at_run_record record;
    struct at_journal *journal;
    at_run_record_init(&record);
    record.request = strdup("{\"a\":1}");
    record.provenance = strdup("{\"device\":\"none\"}");
    assert_non_null(mkdtemp(folder));
    snprintf(journal_path, sizeof journal_path, "%s/s.h5.jsonl", folder);
    snprintf(archive, sizeof archive, "%s/s.h5", folder);
    for (int i = 0; i < 5; i++)
        fill_row(&rows[i], 1 + i);
    at_assert_ok(at_study_journal_open(journal_path, &record, 0, &got, &journal));
    assert_int_equal(at_journal_lines(journal), 0);
    at_assert_ok(at_study_journal_append(journal, rows, 3));
    at_assert_ok(at_study_journal_append(journal, rows, 0));
    at_assert_ok(at_study_journal_append(journal, rows + 3, 2));
    at_journal_abandon(journal);
    at_assert_ok(at_study_journal_open(journal_path, &record, 1, &got, &journal));
    assert_int_equal(at_journal_lines(journal), 3);
    assert_rows_equal(&got, rows, 5);
    at_journal_abandon(journal);

    const struct at_table_rows out = { &at_study_table_accumulate, rows, 5 };
    struct at_table_rows in[] = { { .table = &at_bench_table_kernels }, { .table = &at_study_table_accumulate } };
    struct at_run_record read;
    at_run_record_init(&read);
    at_assert_ok(at_archive_write_tables(&out, 1, &record, archive));
    at_assert_ok(at_archive_read_tables(archive, in, 2, &read));
    assert_int_equal(in[0].n, -1);
    assert_rows_equal(&(struct at_study_rows){ .items = in[1].rows, .n = in[1].n }, rows, 5);
    assert_string_equal(read.request, record.request);
    assert_string_equal(read.provenance, record.provenance);
    free(in[1].rows);
    at_run_record_release(&read);
    at_run_record_release(&record);
    at_study_rows_release(&got);
    unlink(archive);
    unlink(journal_path);
    assert_int_equal(rmdir(folder), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_are_those_of_attention),
        cmocka_unit_test(test_inputs_refuse),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_e4m3_rows),
        cmocka_unit_test(test_earliest_step),
        cmocka_unit_test(test_series),
        cmocka_unit_test(test_fit),
        cmocka_unit_test(test_files_give_rows_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
