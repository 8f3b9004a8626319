/* The SIMT machine: what it counts, the order it runs lanes in, streams, and the hash of what was launched.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/simt_scene.h"

#define FULL 0xffffffffu

static int stride, width, times, lanes;

static struct at_counters counts_of(at_simt_scene_kernel *kernel, unsigned blocks, unsigned threads) {
    struct at_counters counts;
    at_simt_scene_job(0);
    at_simt_count(1);
    at_simt_scene_launch(kernel, (struct at_dim3){ blocks, 1, 1 }, (struct at_dim3){ threads, 1, 1 }, 48 * 1024);
    at_simt_scene_expect(AT_FINDING_NONE, NULL);
    at_simt_counters(&counts);
    return counts;
}

static void reads_global(void *unused) {
    (void)unused;
    for (int i = 0; i < times; i++)
        if (TID % 32 < lanes)
            READ(4, &at_simt_scene.in[TID * stride]);
}

static void test_sectors(void **state) {
    (void)state;
    times = 3;
    /* stride in words, lanes that read, sectors of one request */
    static const int shapes[][3] = {
        { 0, 32, 1 }, { 1, 32, 4 }, { 2, 32, 8 }, { 8, 32, 32 }, { 1, 8, 1 }, { 1, 9, 2 }
    };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        stride = shapes[i][0];
        lanes = shapes[i][1];
        const struct at_counters c = counts_of(reads_global, 2, 64);
        assert_int_equal(c.global_requests, 2 * 2 * times);
        assert_int_equal(c.global_sectors, 2 * 2 * times * shapes[i][2]);
        assert_int_equal(c.global_bytes, 2 * 2 * times * lanes * 4);
        assert_int_equal(c.lane_accesses, 2 * 2 * times * lanes);
        assert_int_equal(c.shared_requests, 0);
    }
}

static void writes_shared(void *unused) {
    uint8_t *memory = at_simt_shared_dynamic();
    (void)unused;
    uint8_t *mine = memory + (TID % 32) * stride;
    if (width == 2)
        WRITE(2, mine);
    else if (width == 4)
        WRITE(4, mine);
    else if (width == 8)
        WRITE(8, mine);
    else
        WRITE(16, mine);
}

/* Passes over the banks: words of one bank go one after another, equal words together, wide accesses by parts. */
static void test_bank_conflicts(void **state) {
    (void)state;
    /* bytes an access, bytes from lane to lane, passes */
    static const int shapes[][3] = { { 4, 4, 1 },    { 4, 8, 2 },   { 4, 16, 4 },   { 4, 128, 32 },
                                     { 4, 132, 1 },  { 2, 2, 1 },   { 2, 128, 32 }, { 8, 8, 2 },
                                     { 8, 128, 32 }, { 16, 16, 4 }, { 16, 256, 32 } };
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        width = shapes[i][0];
        stride = shapes[i][1];
        const struct at_counters c = counts_of(writes_shared, 1, 32);
        assert_int_equal(c.shared_requests, 1);
        at_assert_true(c.shared_wavefronts == shapes[i][2], "%d bytes, %d apart: %lld passes, wanted %d", width, stride,
                       (long long)c.shared_wavefronts, shapes[i][2]);
    }
}

/* All lanes want the same bytes, which lane 0 has written. */
static void reads_one_place(void *unused) {
    uint8_t *memory = at_simt_shared_dynamic();
    (void)unused;
    if (TID == 0)
        WRITE(16, memory);
    SYNC();
    if (width == 4)
        READ(4, memory);
    else if (width == 8)
        READ(8, memory);
    else
        READ(16, memory);
}

static void test_one_place_for_all(void **state) {
    (void)state;
    for (width = 4; width <= 16; width *= 2) {
        const struct at_counters c = counts_of(reads_one_place, 1, 32);
        assert_int_equal(c.shared_requests, 2);
        assert_int_equal(c.shared_wavefronts, 1 + width / 4);
    }
}

/* Lanes with other trip counts come together again at a barrier. */
static void barriers_and_others(void *unused) {
    (void)unused;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < TID % 3; i++)
            READ(4, &at_simt_scene.in[TID]);
        SYNC();
    }
    READ(4, &at_simt_scene.in[TID]);
    (void)SHUFFLE(FULL, 1, 0);
    (void)BALLOT(FULL, 1);
    (void)at_simt_atomic_add_u32(&at_simt_scene.both[0], 1);
    SYNC();
}

static void test_other_counts(void **state) {
    (void)state;
    const struct at_counters c = counts_of(barriers_and_others, 2, 64);
    assert_int_equal(c.barriers, 6);
    assert_int_equal(c.warp_operations, 2 * 2 * 2);
    assert_int_equal(c.atomics, 128);
    assert_int_equal(c.global_requests,
                     2 * 2 * (2 * 2 + 1 + 1)); /* two rounds of at most two trips, a read, the atomic */
    at_simt_scene_job(0);
    at_simt_scene_launch(barriers_and_others, (struct at_dim3){ 1, 1, 1 }, (struct at_dim3){ 64, 1, 1 }, 0);
    struct at_counters none;
    at_simt_counters(&none);
    assert_int_equal(none.lane_accesses, 0); /* nobody asked */
}

static int order[64], n_ran;
static void notes_order(void *unused) {
    (void)unused;
    order[n_ran++] = TID;
}

static void test_lane_order(void **state) {
    (void)state;
    int other = 0;
    for (uint64_t seed = 0; seed <= 20; seed++) {
        n_ran = 0;
        at_simt_scene_run(notes_order, 1, 32, seed);
        assert_int_equal(n_ran, 32);
        int ascending = 1;
        uint32_t seen = 0;
        for (int i = 0; i < 32; i++) {
            ascending &= order[i] == i;
            seen |= 1u << order[i];
        }
        assert_true(seen == FULL);
        assert_true(seed > 0 || ascending);
        other += !ascending;
    }
    at_assert_true(other >= 15, "only %d of 20 seeds had another order", other);
}

static void test_streams(void **state) {
    (void)state;
    const struct at_dim3 one = { 1, 1, 1 }, warp = { 32, 1, 1 };
    at_simt_scene_job(0);
    at_simt_expect_stream(&stride);
    assert_int_equal(at_simt_launch(notes_order, NULL, 0, one, warp, 0, &stride), 0);
    at_simt_scene_expect(AT_FINDING_NONE, NULL);
    n_ran = 0;
    assert_int_equal(at_simt_launch(notes_order, NULL, 0, one, warp, 0, NULL), 0);
    at_simt_scene_expect(AT_FINDING_RACE, "another stream", NULL);
    assert_int_equal(n_ran, 0);
}

static int64_t path_of(unsigned blocks, unsigned threads, int64_t shared) {
    at_simt_scene_job(0);
    n_ran = 0;
    at_simt_scene_launch(notes_order, (struct at_dim3){ blocks, 1, 1 }, (struct at_dim3){ threads, 1, 1 }, shared);
    return at_simt_path();
}

static void test_path(void **state) {
    (void)state;
    at_simt_scene_job(0);
    assert_true(at_simt_path() == 0);
    const int64_t path = path_of(1, 32, 0);
    assert_true(path != 0 && path == path_of(1, 32, 0));
    assert_true(path != path_of(2, 32, 0) && path != path_of(1, 16, 0) && path != path_of(1, 32, 16));
}

static void races(void *unused) {
    (void)unused;
    PUT(at_simt_scene.both[0], 1);
}

static void test_unchecked(void **state) {
    (void)state;
    at_simt_scene_run(races, 1, 32, 1);
    at_simt_scene_expect(AT_FINDING_RACE, "both", NULL);
    at_simt_scene_job(1);
    at_simt_unchecked(1);
    at_simt_scene_launch(races, (struct at_dim3){ 1, 1, 1 }, (struct at_dim3){ 32, 1, 1 }, 0);
    at_simt_scene_expect(AT_FINDING_NONE, NULL);
    at_simt_scene_run(races, 1, 32, 1); /* of that job alone */
    at_simt_scene_expect(AT_FINDING_RACE, "both", NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sectors),
        cmocka_unit_test(test_bank_conflicts),
        cmocka_unit_test(test_one_place_for_all),
        cmocka_unit_test(test_other_counts),
        cmocka_unit_test(test_lane_order),
        cmocka_unit_test(test_streams),
        cmocka_unit_test(test_path),
        cmocka_unit_test(test_unchecked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
