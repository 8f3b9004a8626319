/* Peers: the case that they get, which of them count, medians, and archives from before there were any.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/built_case.h"
#include "verify/bench/bench.h"

static struct at_case_list parsed(const char *line) {
    struct at_case_list list = { 0 };
    at_assert_ok(at_case_parse(line, "line", "a test", &list));
    assert_int_equal(list.n, 1);
    return list;
}

/* The family and the id of the case that peers get beside a line's. */
static void check_case(const char *line, const char *wanted) {
    struct at_case_list ours = parsed(line), theirs = { 0 }, want = parsed(wanted);
    const struct at_family *family = at_bench_peer_family(&ours.items[0]);
    assert_non_null(family);
    at_assert_ok(at_bench_peer_case(&ours.items[0], family, &theirs));
    assert_int_equal(theirs.n, 1);
    assert_string_equal(theirs.items[0].id, want.items[0].id);
    at_case_list_release(&ours);
    at_case_list_release(&theirs);
    at_case_list_release(&want);
}

static void test_cases(void **state) {
    (void)state;
    check_case("asynct_decode b=3 h=4 hk=2 sk=9/1/0 d=16 page=16 capacity=32 dtype=bf16 taps=0.5:0.25 "
               "clip=0:2 gamma=2",
               "softmax_decode b=3 h=4 hk=2 sk=9/1/0 d=16 page=16 capacity=32 dtype=bf16");
    check_case("asynct_prefill b=1 h=4 hk=2 sq=5 prefix=3 d=16 causal=1 dtype=f16 data=sparse70 seed=7 scale=0.5",
               "softmax_prefill b=1 h=4 hk=2 sq=5 prefix=3 d=16 causal=1 dtype=f16 data=sparse70 seed=7 scale=0.5");
    check_case("asynct_decode b=1 h=1 hk=1 sk=9 d=8 dtype=f16 require=last_key_dropped expect=OVERFLOWED",
               "softmax_decode b=1 h=1 hk=1 sk=9 d=8 dtype=f16");
}

static void test_families_without(void **state) {
    static const char *const lines[] = { "softmax_decode b=1 h=1 hk=1 sk=9 d=8 dtype=f16",
                                         "score_counts h=2 hk=2 sq=64 sk=64 d=128 dtype=f16 what=raw data=normal",
                                         "uclip_norm tokens=1 channels=8 dtype=f16" };
    (void)state;
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        struct at_case_list list = parsed(lines[i]);
        assert_null(at_bench_peer_family(&list.items[0]));
        at_case_list_release(&list);
    }
}

static struct at_bench_row row(const char *variant, int peer, double cold) {
    struct at_bench_row r = {
        .peer = peer, .cold = cold, .timed = !isnan(cold), .compared = 8, .peer_cold = (double)NAN
    };
    snprintf(r.variant, sizeof r.variant, "%s", variant);
    return r;
}

static void test_who_counts(void **state) {
    struct at_bench_row rows[] = { row("01_ours", 0, 1.0),          row("90_slow", 1, 6.0),
                                   row("91_right", 1, 4.0),         row("92_wrong", 1, 2.0),
                                   row("93_never", 1, (double)NAN), row("94_not_compared", 1, 3.0),
                                   row("02_ours", 0, (double)NAN) };
    const int n = sizeof rows / sizeof *rows;
    (void)state;
    rows[3].wrong = 1;
    rows[5].compared = 0;
    at_bench_compare_peers(rows, n);
    at_assert_same(rows[0].peer_cold, 4.0);
    assert_string_equal(rows[0].fastest_peer, "91_right");
    at_assert_same(rows[6].peer_cold, 4.0);
    for (int i = 1; i < 6; i++)
        assert_true(isnan(rows[i].peer_cold) && !rows[i].fastest_peer[0]);
    struct at_bench_row none[] = { row("01_ours", 0, 1.0), row("92_wrong", 1, 2.0) };
    none[1].wrong = 1;
    at_bench_compare_peers(none, 2);
    assert_true(isnan(none[0].peer_cold) && !none[0].fastest_peer[0]);
}

static void test_medians(void **state) {
    double one[] = { 3 }, two[] = { 5, 2 }, three[] = { 4, 8, 6 };
    (void)state;
    at_assert_same(at_bench_median(one, 1), 3.0);
    at_assert_same(at_bench_median(two, 2), 5.0);
    at_assert_same(at_bench_median(three, 3), 6.0);
}

static void test_older_archive(void **state) {
    struct at_table_rows table = { .table = &at_bench_table_kernels };
    struct at_run_record record;
    char path[1200];
    (void)state;
    at_run_record_init(&record);
    snprintf(path, sizeof path, "%s/measurements/h200_bench.h5", at_datasets_dir());
    at_assert_ok(at_archive_read_tables(path, &table, 1, &record));
    assert_true(table.n > 0);
    const struct at_bench_row *rows = table.rows;
    for (int64_t i = 0; i < table.n; i++) {
        assert_true(!rows[i].peer && rows[i].turns == 0 && !rows[i].beside[0] && !rows[i].fastest_peer[0]);
        assert_true(isnan(rows[i].peer_cold) && isnan(rows[i].cold_low) && isnan(rows[i].cold_high));
    }
    free(table.rows);
    at_run_record_release(&record);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),   cmocka_unit_test(test_families_without), cmocka_unit_test(test_who_counts),
        cmocka_unit_test(test_medians), cmocka_unit_test(test_older_archive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
