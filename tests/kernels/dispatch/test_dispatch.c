/* Dispatchers: the nearest shape's kernel, the next where it declines, the last resort, and what the committed tables name.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include <stdio.h>
#include <string.h>

#include "kernels/dispatch/dispatch.h"

static const char *takes(const struct at_problem *problem) {
    (void)problem;
    return NULL;
}
static const char *wants_pages(const struct at_problem *problem) { return problem->sizes.page ? NULL : "no pages"; }
static const char *declines(const struct at_problem *problem) {
    (void)problem;
    return "never";
}

static const struct at_kernel any = { .supports = takes }, paged = { .supports = wants_pages },
                              none = { .supports = declines };
static const struct at_kernel_entry kernels[] = { { "f", "short", "", &any, "" },
                                                  { "f", "paged", "", &paged, "" },
                                                  { "g", "long", "", &none, "" },
                                                  { "f", "long", "", &any, "" },
                                                  { "f", "none", "", &none, "" } };
static const struct at_kernel_entry *kernel_at(int i) { return &kernels[i]; }
enum { N_KERNELS = sizeof kernels / sizeof *kernels };

static const struct at_dispatch_row rows[] = {
    { AT_BF16, 4, 8, 4, 128, 16, 1, 256, "short" },    { AT_BF16, 4, 8, 4, 128, 16, 1, 4096, "long" },
    { AT_BF16, 64, 8, 4, 128, 16, 1, 256, "missing" }, { AT_BF16, 4, 8, 4, 64, 16, 1, 256, "none" },
    { AT_BF16, 4, 8, 2, 128, 16, 1, 256, "paged" },
};
static const struct at_dispatch_table table = { "f", rows, sizeof rows / sizeof *rows, "long" };

static struct at_problem problem_of(int64_t b, int64_t h, int64_t hk, int64_t d, int64_t page, int64_t keys) {
    struct at_problem p = { .dtype = AT_BF16 };
    p.sizes.b = b;
    p.sizes.h = h;
    p.sizes.hk = hk;
    p.sizes.d = d;
    p.sizes.page = page;
    p.sizes.max_sq = 1;
    p.sizes.capacity = keys;
    return p;
}

static const char *chosen(const struct at_dispatch_table *of, const struct at_problem *problem, const char **reason) {
    *reason = NULL;
    const struct at_kernel_entry *entry = at_dispatch_among(of, N_KERNELS, kernel_at, problem, reason);
    assert_true(!entry == !!*reason);
    if (entry)
        assert_string_equal(entry->family, "f");
    return entry ? entry->name : "";
}

static void check(int64_t b, int64_t h, int64_t hk, int64_t d, int64_t page, int64_t keys, const char *wanted) {
    const struct at_problem p = problem_of(b, h, hk, d, page, keys);
    const char *reason;
    assert_string_equal(chosen(&table, &p, &reason), wanted);
}

static void test_nearest(void **state) {
    (void)state;
    check(4, 8, 4, 128, 16, 256, "short");
    check(4, 8, 4, 128, 16, 4096, "long");
    check(4, 8, 4, 128, 16, 1000, "short"); /* a hair below the middle of 256 and 4096 by powers of two */
    check(4, 8, 4, 128, 16, 1050, "long");
    check(2, 16, 8, 128, 16, 256, "short"); /* as many rows of keys */
    check(60, 8, 4, 128, 16, 256, "short"); /* the nearest row's kernel is not of this program */
    check(4, 8, 4, 64, 16, 256, "short");   /* ... or declines */
    check(4, 16, 4, 128, 16, 300, "paged"); /* as many query heads a kv head */
    check(4, 16, 4, 128, 0, 300, "short");  /* which wants pages */
    check(1, 8, 4, 128, 16, 1 << 20, "long");
    check(0, 8, 4, 128, 16, 0, "short"); /* nothing to do is some shape, too */
}

/* What a graph is captured with is no length. */
static void test_lengths_decide_nothing(void **state) {
    (void)state;
    struct at_problem p = problem_of(4, 8, 4, 128, 16, 4096);
    const char *reason;
    for (int64_t keys = 0; keys <= 4096; keys += 128) {
        p.sizes.max_sk = keys;
        assert_string_equal(chosen(&table, &p, &reason), "long");
    }
}

static void test_last_resort(void **state) {
    (void)state;
    const struct at_dispatch_row never[] = { { AT_BF16, 4, 8, 4, 128, 16, 1, 256, "none" } };
    const struct at_dispatch_table tables[] = { { "f", never, 1, "long" },
                                                { "f", never, 1, "none" },
                                                { "f", never, 1, "gone" } };
    const struct at_problem p = problem_of(4, 8, 4, 128, 16, 256);
    const char *reason;
    assert_string_equal(chosen(&tables[0], &p, &reason), "long");
    assert_string_equal(chosen(&tables[1], &p, &reason), "");
    assert_string_equal(reason, "never");
    assert_string_equal(chosen(&tables[2], &p, &reason), "");
    assert_string_equal(reason, "this program does not have the kernel that would take it");
}

static void test_distance(void **state) {
    (void)state;
    struct at_problem p = problem_of(4, 8, 4, 128, 16, 256);
    at_assert_same(at_dispatch_distance(&rows[0], &p), 0);
    at_assert_same(at_dispatch_distance(&rows[1], &p), 4);
    at_assert_same(at_dispatch_distance(&rows[2], &p), 4);
    at_assert_same(at_dispatch_distance(&rows[3], &p), 8);
    at_assert_same(at_dispatch_distance(&rows[4], &p), 4 + 1); /* of half as many kv heads, too */
    p.dtype = AT_F16;
    p.sizes.page = 0;
    p.sizes.max_sq = 4;
    at_assert_same(at_dispatch_distance(&rows[0], &p), 1 + 2 + 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_lengths_decide_nothing),
        cmocka_unit_test(test_last_resort),
        cmocka_unit_test(test_distance),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
