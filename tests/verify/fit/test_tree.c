/* Orders of sums from the sizes of common subtrees: chains, lanes, tensor cores, what is no tree, what two runs share.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "verify/fit/masks.h"
#include "verify/fit/tree.h"

enum { N = 64 };
static int lca[N * N], other[N * N], both[N * N];
static char text[2048];
static uint64_t signature;

/* Term j joins the sum of those before it; w terms at once. */
static void steps(int *out, int n, int w) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            const int last = i > j ? i : j, end = (last / w + 1) * w;
            out[i * n + j] = i == j ? 1 : end;
        }
}

/* Halves of halves. */
static void halves(int *out, int n) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            int size = 1;
            while (i / size != j / size)
                size *= 2;
            out[i * n + j] = size;
        }
}

/* Lanes take terms in turn, each a chain; then their sums, in order. */
static void lanes(int *out, int n, int l) {
    for (int i = 0; i < n; i++)
        for (int j = 0; j < n; j++) {
            const int a = i % l, b = j % l, last = (i > j ? i : j) / l, most = a > b ? a : b;
            out[i * n + j] = i == j ? 1 : a == b ? last + 1 : (most + 1) * (n / l);
        }
}

static uint64_t draws_as(int n, const char *want) {
    at_assert_ok(at_tree_draw(n, 1, lca, text, sizeof text, &signature));
    assert_string_equal(text, want);
    return signature;
}

static void orders_are_drawn(void **state) {
    (void)state;
    steps(lca, N, 1);
    lca[1] = lca[N] = 2; /* the first two are a step */
    const uint64_t chain = draws_as(N, "0..63");
    steps(lca, N, 16);
    const uint64_t core = draws_as(N, "{0..63 by 16}");
    steps(lca, N, N);
    draws_as(N, "{0..63}");
    halves(lca, 8);
    draws_as(8, "(0..1 + 2..3 + (4..5 + 6..7))");
    lanes(lca, 16, 4);
    draws_as(16, "(0..12/4 + 1..13/4 + 2..14/4 + 3..15/4)");
    assert_true(chain != core);
    lca[0] = 1;
    draws_as(1, "0");
    draws_as(0, "");
}

static void a_changed_order_has_another_signature(void **state) {
    (void)state;
    steps(lca, N, 1);
    at_assert_ok(at_tree_draw(N, 1, lca, text, sizeof text, &signature));
    const uint64_t before = signature;
    for (int i = 0; i < N; i++) /* terms 62 and 63 at once */
        lca[i * N + 62] = lca[62 * N + i] = i == 62 ? 1 : N;
    at_assert_ok(at_tree_draw(N, 1, lca, text, sizeof text, &signature));
    assert_string_equal(
        text, "{0..1}>2>3>4>5>6>7>8>9>10>11>12>13>14>15>16>17>18>19>20>21>22>23>24>25>26>27>28>29>30>31>32>"
              "33>34>35>36>37>38>39>40>41>42>43>44>45>46>47>48>49>50>51>52>53>54>55>56>57>58>59>60>61>{62..63}");
    assert_true(signature != before);
}

static void what_is_no_tree_is_refused(void **state) {
    (void)state;
    steps(lca, N, 16);
    lca[3 * N + 40] = lca[40 * N + 3] = 16; /* 3 and 40 closer than either is to its step */
    at_assert_fails(at_tree_draw(N, 1, lca, text, sizeof text, &signature), AT_UNSUPPORTED, "no tree: terms");
    for (int i = 0; i < N * N; i++)
        lca[i] = i % (N + 1) ? 2 : 1; /* nothing is swallowed, as in double */
    at_assert_fails(at_tree_draw(N, 1, lca, text, sizeof text, &signature), AT_UNSUPPORTED,
                    "no tree: terms 0 and 1 share a subtree of 2, among 64 terms");
}

static void two_runs_share_subtrees(void **state) {
    (void)state;
    /* Partial sums of four, added in order, and in the other order. */
    for (int i = 0; i < 12; i++)
        for (int j = 0; j < 12; j++) {
            const int a = i / 4, b = j / 4;
            lca[i * 12 + j] = i == j ? 1 : a == b ? 4 : (a > b ? a : b) == 1 ? 8 : 12;
            other[i * 12 + j] = i == j ? 1 : a == b ? 4 : (a < b ? a : b) == 1 ? 8 : 12;
        }
    at_assert_ok(at_tree_draw(12, 1, lca, text, sizeof text, &signature));
    assert_string_equal(text, "({0..3} + {4..7} + {8..11})");
    at_tree_shared(12, lca, other, both);
    memcpy(lca, both, sizeof both);
    draws_as(12, "{{0..3}, {4..7}, {8..11}}");
}

static void pairs_are_all_there(void **state) {
    (void)state;
    char seen[N][N] = { { 0 } };
    for (int c = 0; c < N * (N - 1) / 2; c++) {
        const struct at_pair p = at_pair_of(c);
        assert_true(p.i >= 0 && p.i < p.j && p.j < N && !seen[p.i][p.j]);
        seen[p.i][p.j] = 1;
    }
    for (int c = 0; c < 1000; c++) {
        const struct at_pair p = at_pair_some(c, 37);
        assert_true(p.i >= 0 && p.i < p.j && p.j < 37);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(orders_are_drawn),           cmocka_unit_test(a_changed_order_has_another_signature),
        cmocka_unit_test(what_is_no_tree_is_refused), cmocka_unit_test(two_runs_share_subtrees),
        cmocka_unit_test(pairs_are_all_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
