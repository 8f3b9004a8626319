/* The SIMT machine: barriers of some warps, by name.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/simt_scene.h"

#define BARRIER(id, threads) at_simt_named_barrier(id, threads, HERE_PLACE)

static int fault_line;
static char line_text[64];
static const char *at_fault(void) {
    snprintf(line_text, sizeof line_text, "test_simt_named_barrier.c:%d:", fault_line);
    return line_text;
}

/* Two halves of a block, each with a barrier and rounds of its own; then each warp with its neighbour, in a chain. */
static void halves(void *unused) {
    (void)unused;
    SHARED(uint32_t, 128, row);
    const int half = TID / 64;
    for (int i = 0; i <= half * 2; i++) {
        PUT(row[TID], (uint32_t)(100 * i + TID));
        BARRIER(half + 1, 64);
        PUT(at_simt_scene.out[BID * 128 + TID], GET(row[half * 64 + 63 - TID % 64]));
        BARRIER(half + 1, 64);
    }
    if (TID / 32 != 3)
        BARRIER(11 + TID / 32, 64);
    if (TID / 32 != 0)
        BARRIER(10 + TID / 32, 64);
    if (TID == 0)
        PUT(row[127], 1); /* warp 1 came after 2, which came after 3 */
}
static void whole_block(void *unused) {
    (void)unused;
    SHARED(uint32_t, 40, row);
    PUT(row[TID], (uint32_t)TID);
    BARRIER(15, 64); /* 40 threads: the second warp counts as a whole one */
    PUT(at_simt_scene.out[BID * 40 + TID], GET(row[39 - TID]));
}
static void test_halves(void **state) {
    (void)state;
    for (long seed = 1; seed <= at_test_effort(20); seed++) {
        at_simt_scene_run(halves, 6, 128, (uint64_t)seed);
        at_simt_scene_expect(AT_FINDING_NONE, NULL);
        for (int i = 0; i < 6 * 128; i++)
            assert_int_equal(at_simt_scene.out[i], (i / 64 % 2 ? 264 : 0) + 63 - i % 64);
        at_simt_scene_run(whole_block, 6, 40, (uint64_t)seed);
        at_simt_scene_expect(AT_FINDING_NONE, NULL);
        for (int i = 0; i < 6 * 40; i++)
            assert_int_equal(at_simt_scene.out[i], 39 - i % 40);
    }
}

/* Orders those that take part and no others. */
static int reader;
static void warps_0_and_1(void *unused) {
    (void)unused;
    SHARED(uint32_t, 1, row);
    if (TID == 3)
        PUT(row[0], 1);
    if (TID < 64)
        BARRIER(1, 64);
    else
        BARRIER(2, 32);
    if (TID == reader)
        PUT(row[0], 2);
}
static void test_order(void **state) {
    (void)state;
    static const int readers[] = { 3, 9, 40, 70 };
    for (int i = 0; i < 4; i++) {
        reader = readers[i];
        AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), warps_0_and_1, 2, 96, i < 3 ? AT_FINDING_NONE : AT_FINDING_RACE,
                            "writes byte 0", "without an order");
    }
}

/* ---- misuse ---- */

static int id, threads;
static void one_barrier(void *unused) {
    (void)unused;
    fault_line = __LINE__ + 1;
    BARRIER(id, threads);
}
static void counts_differ(void *unused) {
    (void)unused;
    BARRIER(4, TID < 32 ? 64 : 96);
}
static void lane_leaves(void *unused) {
    (void)unused;
    if (TID == reader)
        return;
    fault_line = __LINE__ + 1;
    BARRIER(4, 64);
}
static void lanes_part(void *unused) {
    (void)unused;
    if (TID % 32 < 16)
        BARRIER(4, 64);
    else
        BARRIER(5, 64);
}
static void lanes_part_by_id(void *unused) {
    (void)unused;
    BARRIER(TID % 32 < 16 ? 4 : 5, 64);
}
static void lanes_part_by_place(void *unused) {
    (void)unused;
    if (TID % 32 < 16)
        BARRIER(4, 64);
    else
        BARRIER(4, 64);
}
/* Lanes of a warp that wait for each other elsewhere: three warps stand half at the barrier. */
static void warps_in_halves(void *unused) {
    (void)unused;
    if (TID % 32 < 16)
        SYNC_WARP(0xffffu);
    else
        (void)BALLOT(0xffff0000u, 1);
    BARRIER(4, 64);
}
static void test_misuse(void **state) {
    (void)state;
    static const struct {
        int id, threads;
        const char *say;
    } rows[] = { { 0, 64, "is at barrier 0; there are 1 to 15" },
                 { 16, 64, "is at barrier 16; there are" },
                 { -1, 64, "is at barrier -1; there are" },
                 { 1, 0, "for 0 threads; wanted a multiple of 32, at most 64" },
                 { 1, 48, "for 48 threads; wanted" },
                 { 1, 96, "for 96 threads; wanted" } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        id = rows[i].id;
        threads = rows[i].threads;
        AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), one_barrier, 2, 64, AT_FINDING_RACE, at_fault(), rows[i].say);
    }
    id = 1;
    threads = 64; /* of three warps */
    AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), one_barrier, 2, 96, AT_FINDING_RACE, at_fault(),
                        "is at barrier 1, a warp too many for 64 threads");
    AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), warps_in_halves, 2, 96, AT_FINDING_RACE, "a warp too many");
    AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), counts_differ, 2, 96, AT_FINDING_RACE, "is at barrier 4 for",
                        "waits there for");
    AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), lanes_part, 2, 64, AT_FINDING_RACE, "of its warp is at barrier");
    AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), lanes_part_by_place, 2, 64, AT_FINDING_RACE,
                        "of its warp is at barrier 4");
    AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), lanes_part_by_id, 2, 64, AT_FINDING_RACE, "of its warp is at barrier");
    for (reader = 0; reader < 32; reader += 31) { /* lanes run in order: the first to come, and the last */
        at_simt_scene_run(lane_leaves, 2, 64, 0);
        at_simt_scene_expect(AT_FINDING_RACE, at_fault(), "of its warp has left", NULL);
    }
    for (reader = 0; reader < 64; reader += 21)
        AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), lane_leaves, 2, 64, AT_FINDING_RACE, at_fault(),
                            "of its warp has left");
}

/* ---- deadlock ---- */

static void waits_crosswise(void *unused) {
    (void)unused;
    if (TID < 32) {
        BARRIER(3, 64);
        BARRIER(7, 64);
    } else {
        BARRIER(7, 64);
        BARRIER(3, 64);
    }
}
static void with_the_block(void *unused) {
    (void)unused;
    if (TID < 32)
        BARRIER(3, 64);
    else
        SYNC();
}
static void last_warp_left(void *unused) {
    (void)unused;
    if (TID >= 32)
        return;
    fault_line = __LINE__ + 1;
    BARRIER(3, 64);
}
static void test_deadlock(void **state) {
    (void)state;
    AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), waits_crosswise, 2, 64, AT_FINDING_DEADLOCK, "every thread waits",
                        "; at barrier 3 32 threads of 64; at barrier 7 32 threads of 64");
    AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), with_the_block, 2, 64, AT_FINDING_DEADLOCK,
                        "at barrier 3 32 threads of 64");
    AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), last_warp_left, 2, 64, AT_FINDING_DEADLOCK, at_fault(),
                        "at barrier 3 32 threads of 64");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_halves),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_deadlock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
