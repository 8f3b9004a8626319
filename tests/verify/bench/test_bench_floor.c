/* The least time of a launch: what is needed of a case, ceilings by name, and no time that was measured on an H200 below it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include <dirent.h>
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/built_case.h"
#include "verify/bench/bench.h"

static const struct at_ceiling small = { "small", 1e9, 1e9, 2e9, 0 };

static double needed(const char *line) {
    struct at_built_case built = at_build_line(line);
    const double bytes = at_bench_needed_bytes(&built.data.problem);
    at_drop_case(&built);
    return bytes;
}

static double least(const char *line, const struct at_ceiling *ceiling, int copies) {
    struct at_built_case built = at_build_line(line);
    const double seconds = at_bench_floor(&built.data.problem, ceiling, copies);
    at_drop_case(&built);
    return seconds;
}

static void test_needed(void **state) {
    (void)state;
    const double with = needed("softmax_decode b=2 h=4 hk=2 sk=64 d=32 dtype=bf16");
    const double v = 2.0 * 2 * 64 * 2 * 32;
    at_assert_true(with > 2 * v && with < 3 * v, "softmax reads K and V: %g of %g", with, v);
    const double gate = needed("asynct_decode b=2 h=4 hk=2 sk=64 d=32 dtype=bf16");
    at_assert_true(gate > v && gate < 2 * v, "a gate may leave V alone: %g of %g", gate, v);
    at_assert_same(needed("softmax_prefill b=2 h=4 hk=2 sq=0/8 sk=64/64 d=32 causal=0 dtype=bf16"), 0);
    at_assert_same(needed("gemm m=8 n=72 k=40 dtype=bf16 data=normal"), 2.0 * (8 * 40 + 40 * 72 + 8 * 72));
}

static void test_floor(void **state) {
    static const char gemm[] = "gemm m=64 n=64 k=64 dtype=bf16 data=normal";
    const double bytes = 3 * 2.0 * 64 * 64, flops = 2.0 * 64 * 64 * 64;
    struct at_ceiling c = small;
    (void)state;
    at_assert_true(fabs(least(gemm, &c, 1) / (0.98 * flops / 1e9) - 1) < 1e-12, "operations");
    c.flops = c.flops_of_bytes = 1e15;
    at_assert_true(fabs(least(gemm, &c, 1) / (0.98 * bytes / 1e9) - 1) < 1e-12, "bytes");
    c.cache = bytes;
    at_assert_true(fabs(least(gemm, &c, 4) / (0.98 * bytes * 0.75 / 1e9) - 1) < 1e-12, "a quarter stays in the cache");
    at_assert_same(least(gemm, &c, 1), 0.98 * 1e-9);
    c = small;
    at_assert_true(fabs(least("gemm m=64 n=64 k=64 dtype=e4m3 out=f32 data=normal", &c, 1) / (0.98 * flops / 2e9) - 1) <
                       1e-12,
                   "factors of one byte");
}

static struct at_ceilings load(void) {
    struct at_ceilings all;
    char path[1024];
    snprintf(path, sizeof path, "%s/bench/ceilings.txt", at_datasets_dir());
    at_assert_ok(at_ceilings_load(path, &all));
    return all;
}

static void test_names(void **state) {
    (void)state;
    struct at_ceilings all = load();
    assert_string_equal(at_ceiling_find(&all, "NVIDIA H200, sm_90, driver 13.0, runtime 13.0")->device, "NVIDIA H200");
    assert_string_equal(at_ceiling_find(&all, "NVIDIA H100 80GB HBM3, sm_90")->device, "NVIDIA H100 80GB HBM3");
    assert_string_equal(at_ceiling_find(&all, "NVIDIA H100 NVL")->device, "*");
    assert_string_equal(at_ceiling_find(&all, "Python 3.11, numpy 1.24")->device, "*");
    at_ceilings_release(&all);
}

static void check_text(const char *text, at_status wanted) {
    char path[] = "/tmp/attest-ceilings-XXXXXX";
    struct at_ceilings all;
    FILE *file = fdopen(mkstemp(path), "w");
    fputs(text, file);
    fclose(file);
    const at_status status = at_ceilings_load(path, &all);
    at_assert_true(status == wanted, "%s: status %d", text, (int)status);
    at_ceilings_release(&all);
    remove(path);
}

static void test_refused(void **state) {
    struct at_ceiling c;
    (void)state;
    check_text("1 2 3 4 *\n", AT_OK);
    check_text("1 2 3 4 Some Device\n", AT_USAGE);
    check_text("1 2 3 *\n", AT_USAGE);
    check_text("1 0 3 4 *\n", AT_USAGE);
    check_text("1 nan 3 4 *\n", AT_USAGE);
    at_assert_ok(at_ceiling_parse("1e12:2e13", &c));
    at_assert_true(c.bytes == 1e12 && c.flops_of_bytes == 2e13 && c.cache == 0, "two numbers");
    at_assert_ok(at_ceiling_parse("1e12:2e13:5e7", &c));
    at_assert_same(c.cache, 5e7);
    assert_int_equal(at_ceiling_parse("1e12", &c), AT_USAGE);
    assert_int_equal(at_ceiling_parse("1e12:0", &c), AT_USAGE);
    assert_int_equal(at_ceiling_parse("1e12:1e13:1e6:1", &c), AT_USAGE);
}

/* Timed rows of an archive, and those below the floor by a device's ceiling and by half of it. */
struct seen {
    int n, accused, by_half;
};

/* The rows of a case follow each other, and its outline may be gigabytes of zeros: larger ones are left out. */
static void look(const char *path, const struct at_ceiling *ceiling, struct seen *seen) {
    static const int64_t most_bytes = (int64_t)256 << 20;
    struct at_table_rows table = { &at_bench_table_kernels, NULL, 0 };
    struct at_run_record record;
    struct at_ceiling half = *ceiling;
    half.bytes /= 2;
    half.flops /= 2;
    half.flops_of_bytes /= 2;
    at_run_record_init(&record);
    at_assert_ok(at_archive_read_tables(path, &table, 1, &record));
    const struct at_bench_row *rows = table.rows;
    for (int64_t i = 0, end; i < table.n; i = end) {
        struct at_case_list list = { 0 };
        struct at_case_data data;
        end = i + 1;
        while (end < table.n && strcmp(rows[end].case_id, rows[i].case_id) == 0)
            end++;
        if (rows[i].bytes > (double)most_bytes || at_case_parse(rows[i].case_id, "bench", "an archive", &list) != AT_OK)
            continue;
        at_assert_ok(at_case_outline(&list.items[0], &data));
        for (int64_t r = i; r < end; r++) {
            if (!rows[r].timed)
                continue;
            seen->n++;
            seen->accused += !(rows[r].cold >= at_bench_floor(&data.problem, ceiling, rows[r].copies));
            seen->by_half += !(rows[r].cold >= at_bench_floor(&data.problem, &half, rows[r].copies));
        }
        at_case_data_release(&data);
        at_case_list_release(&list);
    }
    free(table.rows);
    at_run_record_release(&record);
}

/* Of kernels and libraries whose outputs were right; a ceiling of half of the device's would accuse some of them. */
static void test_measured(void **state) {
    char folder[1000], path[2000];
    struct seen seen = { 0 };
    (void)state;
    struct at_ceilings all = load();
    const struct at_ceiling *h200 = at_ceiling_find(&all, "NVIDIA H200");
    snprintf(folder, sizeof folder, "%s/measurements", at_datasets_dir());
    DIR *dir = opendir(folder);
    assert_non_null(dir);
    for (const struct dirent *entry; (entry = readdir(dir));) {
        if (fnmatch("h200_bench*.h5", entry->d_name, 0) != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        look(path, h200, &seen);
    }
    closedir(dir);
    at_ceilings_release(&all);
    at_assert_true(seen.n >= 100, "%d rows", seen.n);
    at_assert_true(seen.accused == 0, "%d of %d measured times are below their floor", seen.accused, seen.n);
    at_assert_true(seen.by_half > 0, "half of the ceiling accuses none of %d", seen.n);
    printf("%d measured times, none below; half of the ceiling accuses %d\n", seen.n, seen.by_half);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_needed), cmocka_unit_test(test_floor),
                                        cmocka_unit_test(test_names), cmocka_unit_test(test_refused),
                                        cmocka_unit_test(test_measured) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
