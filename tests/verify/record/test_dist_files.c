/* Recordings that were written before, and units whose queries are read in more than one tile.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"
#include "verify/record/dist_record.h"

/* Version 1.5.0: asynct_prefill b=2 h=2 hk=1 sq=5/9 d=4 causal=1 dtype=f16 data=normal, --what raw,p,entropy. */
static void test_golden(void **state) {
    (void)state;
    struct at_distributions d;
    uint64_t counts[63490], n = 0;
    at_assert_ok(at_distributions_open("tests/golden/distributions_v1.h5", &d));
    assert_int_equal(d.shape.what, 1u << AT_DIST_raw | 1u << AT_DIST_p | 1u << AT_DIST_entropy);
    assert_int_equal(d.shape.n_layers, 1);
    assert_int_equal(d.shape.h, 2);
    assert_int_equal(d.shape.hk, 1);
    assert_int_equal(d.shape.requests, 2);
    assert_int_equal(d.shape.n_distances, 5);
    assert_string_equal(d.attention, "asynct");
    assert_int_equal(d.n_units, 2);
    assert_string_equal(d.units[0].hash, "f35ac9badaf8be0d");
    assert_string_equal(d.units[1].hash, "742a179c7693857a");
    for (int64_t head = 0; head < 2; head++) { /* 1 + .. + 5 and 1 + .. + 9 pairs are visible */
        assert_int_equal(d.summary[AT_DIST_raw][head].n, 60);
        assert_int_equal(d.summary[AT_DIST_raw][head].masked, 25 + 81 - 60);
        at_assert_ok(at_distributions_counts(&d, AT_DIST_raw, 0, head, counts));
        n = 0;
        for (int i = 0; i < 63490; i++)
            n += counts[i];
        assert_int_equal(n, 60);
    }
    at_assert_same(d.summary[AT_DIST_raw][0].max, 4.35546875);
    at_assert_same(d.summary[AT_DIST_raw][0].mean, 0x1.5d0f888888889p-3);
    at_assert_same(d.summary[AT_DIST_entropy][1].max, 1.83203125);
    assert_int_equal(d.summary[AT_DIST_entropy][1].n, 12);
    assert_int_equal(d.summary[AT_DIST_entropy][1].n_empty, 2);
    assert_int_equal(d.mass[0], 72876426);
    assert_int_equal(d.mass[9], 1243707);
    assert_int_equal(d.zero[AT_DIST_ZERO_element_zero][1], 32);
    assert_int_equal(d.ledger[0].count, 60);
    at_distributions_close(&d);
}

/* The same recording today. */
static void test_golden_again(void **state) {
    (void)state;
    const struct at_dist_request request = {
        .input = "asynct_prefill b=2 h=2 hk=1 sq=5/9 d=4 causal=1 dtype=f16 data=normal",
        .what = "raw,p,entropy",
        .shards = 1
    };
    struct at_distributions d;
    struct at_dist_recording x;
    struct at_dist_workers *workers;
    struct at_dist_layer got, want;
    struct at_dist_unit_row row;
    at_assert_ok(at_distributions_open("tests/golden/distributions_v1.h5", &d));
    at_assert_ok(at_dist_recording_open(&request, &x));
    at_assert_ok(at_dist_workers_create(1, &workers));
    at_assert_ok(at_dist_layer_init(&x.shape, &got));
    at_assert_ok(at_dist_layer_init(&x.shape, &want));
    for (int64_t r = 0; r < 2; r++) {
        at_assert_ok(at_dist_recording_unit(&x, workers, 0, r, &got, &row, NULL, NULL));
        assert_string_equal(row.hash, d.units[r].hash);
    }
    at_assert_ok(at_distributions_add(&d, 0, &want));
    for (int w = 0; w < AT_DIST_COUNT; w++)
        if (want.counts[w]) {
            assert_memory_equal(got.counts[w], want.counts[w], 2 * 63490 * sizeof *want.counts[w]);
            assert_memory_equal(got.coarse[w], want.coarse[w], 2 * 2 * 250 * sizeof *want.coarse[w]);
        }
    assert_memory_equal(got.mass, want.mass, 2 * 5 * sizeof *want.mass);
    at_dist_layer_release(&got);
    at_dist_layer_release(&want);
    at_dist_workers_destroy(workers);
    at_dist_recording_close(&x);
    at_distributions_close(&d);
}

static void add_up(void *context, int64_t queries) {
    int64_t *sums = context;
    sums[0] += queries;
    sums[1]++;
}

/* More q than is read at once: all of it is counted, once. */
static void test_long_request(void **state) {
    (void)state;
    const struct at_dist_request request = {
        .input = "softmax_prefill b=1 h=64 hk=1 sq=1090 sk=4 d=512 dtype=bf16 data=uniform", .shards = 1
    };
    struct at_dist_recording x;
    struct at_dist_workers *workers;
    struct at_dist_layer layer;
    struct at_dist_unit_row row;
    int64_t sums[2] = { 0 };
    at_assert_ok(at_dist_recording_open(&request, &x));
    at_assert_ok(at_dist_workers_create(2, &workers));
    at_assert_ok(at_dist_layer_init(&x.shape, &layer));
    at_assert_ok(at_dist_recording_unit(&x, workers, 0, 0, &layer, &row, add_up, sums));
    assert_int_equal(sums[0], 1090);
    assert_int_equal(sums[1], 2);
    for (int64_t head = 0; head < 64; head++) {
        struct at_dist_summary q, k;
        const int64_t n = at_dist_bins(AT_BF16);
        at_dist_summarize(AT_BF16, layer.counts[AT_DIST_q] + head * n, &layer.tally[AT_DIST_q][head], &q);
        at_dist_summarize(AT_BF16, layer.counts[AT_DIST_raw] + head * n, &layer.tally[AT_DIST_raw][head], &k);
        assert_int_equal(q.n, 1090 * 512);
        assert_int_equal(k.n, 1090 * 4);
        assert_int_equal(layer.zero[AT_DIST_ZERO_tile_total][head], 18);
    }
    struct at_dist_summary k;
    at_dist_summarize(AT_BF16, layer.counts[AT_DIST_k], &layer.tally[AT_DIST_k][0], &k);
    assert_int_equal(k.n, 4 * 512);
    assert_int_equal(layer.zero[AT_DIST_ZERO_key_total][0], 1090 * 4);
    at_dist_layer_release(&layer);
    at_dist_workers_destroy(workers);
    at_dist_recording_close(&x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_golden_again),
        cmocka_unit_test(test_long_request),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
