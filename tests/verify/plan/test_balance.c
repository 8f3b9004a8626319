/* Dealing work to shards: each item once, the largest load near the mean, the same for the same items.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"
#include "tests/support/splitmix.h"
#include "verify/plan/balance.h"

enum { ITEMS = 4000 };

static struct at_balance_item items[ITEMS];
static int shard[ITEMS], again[ITEMS];

static double largest_over_mean(int n, int shards) {
    double load[64] = { 0 }, sum = 0, most = 0;
    at_assert_ok(at_balance(items, n, shards, shard));
    for (int i = 0; i < n; i++) {
        at_assert_true(shard[i] >= 0 && shard[i] < shards, "item %d is of shard %d of %d", i, shard[i], shards);
        load[shard[i]] += items[i].cost;
        sum += items[i].cost;
    }
    for (int s = 0; s < shards; s++)
        most = load[s] > most ? load[s] : most;
    return most * shards / sum;
}

/* Costs over six powers of ten, none above a fifth of a share: list scheduling by size is then within a fifth of the mean. */
static void loads_are_near_the_mean(void **state) {
    (void)state;
    struct splitmix random = { 7 };
    for (int shards = 2; shards <= 64; shards *= 2) {
        double sum = 0;
        for (int i = 0; i < ITEMS; i++) {
            const int power = (int)(splitmix_next(&random) % 6);
            items[i] = (struct at_balance_item){ .cost = 1 + (double)(splitmix_next(&random) % 10), .kind = i % 7 };
            for (int k = 0; k < power; k++)
                items[i].cost *= 10;
            sum += items[i].cost;
        }
        for (int i = 0; i < ITEMS; i++)
            items[i].cost = items[i].cost > sum / shards / 5 ? sum / shards / 5 : items[i].cost;
        const double ratio = largest_over_mean(ITEMS, shards);
        at_assert_true(ratio <= 1.2, "%d shards: the largest is %.3f of the mean", shards, ratio);
    }
}

/* Each kind by itself is spread, so that an estimate that is wrong for all of a kind is wrong for all shards alike. */
static void every_kind_is_spread(void **state) {
    (void)state;
    int count[3][8] = { { 0 } };
    for (int i = 0; i < 2400; i++)
        items[i] = (struct at_balance_item){ .cost = i % 3 == 0 ? 100 : i % 3 == 1 ? 1 : 10, .kind = i % 3 };
    at_assert_ok(at_balance(items, 2400, 8, shard));
    for (int i = 0; i < 2400; i++)
        count[i % 3][shard[i]]++;
    for (int k = 0; k < 3; k++)
        for (int s = 0; s < 8; s++)
            at_assert_true(count[k][s] >= 90 && count[k][s] <= 110, "kind %d: shard %d has %d of 800", k, s,
                           count[k][s]);
}

static void edges(void **state) {
    (void)state;
    at_assert_ok(at_balance(items, 0, 3, shard));
    for (int i = 0; i < 5; i++)
        items[i] = (struct at_balance_item){ .cost = 1 + i };
    at_assert_ok(at_balance(items, 5, INT32_MAX, shard)); /* more shards than items take no memory */
    for (int i = 0; i < 5; i++)
        assert_int_equal(shard[i], 4 - i);
    at_assert_ok(at_balance(items, 5, 1, shard));
    for (int i = 0; i < 5; i++)
        assert_int_equal(shard[i], 0);
    for (int i = 0; i < 40; i++)
        items[i] = (struct at_balance_item){ .cost = 3, .kind = 1 };
    at_assert_ok(at_balance(items, 40, 8, shard));
    at_assert_ok(at_balance(items, 40, 8, again));
    assert_memory_equal(shard, again, 40 * sizeof *shard);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(loads_are_near_the_mean),
                                        cmocka_unit_test(every_kind_is_spread), cmocka_unit_test(edges) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
