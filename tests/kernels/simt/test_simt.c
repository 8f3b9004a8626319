/* The SIMT machine: who runs, what warp operations give, which uses of barriers and masks are faults.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "kernels/simt/machine.h"
#include "tests/support/simt_scene.h"

#define FULL 0xffffffffu

static int line_of; /* where the fault of the kernel below is */
#define NOTED (line_of = __LINE__)

static const char *at_line(void) {
    static char text[64];
    snprintf(text, sizeof text, "test_simt.c:%d:", line_of);
    return text;
}

static const char *also_line(int line) {
    static char text[64];
    snprintf(text, sizeof text, "test_simt.c:%d", line);
    return text;
}

/* ---- who runs ---- */

static void writes_where_it_is(void *unused) {
    (void)unused;
    const struct at_simt_self *s = at_simt_current;
    const struct at_dim3 t = s->thread, n = s->threads, b = s->block, g = s->blocks;
    const uint32_t block = b.x + g.x * (b.y + g.y * b.z), thread = t.x + n.x * (t.y + n.y * t.z);
    PUT(at_simt_scene.out[block * n.x * n.y * n.z + thread],
        t.x | t.y << 4 | t.z << 8 | b.x << 12 | b.y << 16 | b.z << 20 | (uint32_t)at_simt_lane() << 24);
}

/* 5 x 3 x 2 blocks, more than are resident, of 5 x 3 x 4 threads: each index is seen once and says where it is. */
static void test_indices(void **state) {
    (void)state;
    for (long seed = 0; seed < at_test_effort(10); seed++) {
        at_simt_scene_job((uint64_t)seed);
        at_simt_scene_launch(writes_where_it_is, (struct at_dim3){ 5, 3, 2 }, (struct at_dim3){ 5, 3, 4 }, 0);
        at_simt_scene_expect(AT_FINDING_NONE, NULL);
        for (uint32_t i = 0; i < 30 * 60; i++) {
            const uint32_t t = i % 60, b = i / 60;
            const uint32_t want =
                t % 5 | t / 5 % 3 << 4 | t / 15 << 8 | b % 5 << 12 | b / 5 % 3 << 16 | b / 15 << 20 | (t % 32) << 24;
            at_assert_true(at_simt_scene.out[i] == want, "element %u is %08x, wanted %08x", i, at_simt_scene.out[i],
                           want);
        }
    }
}

static void counts_itself(void *unused) {
    (void)unused;
    (void)at_simt_atomic_add_u32(&at_simt_scene.both[0], 1);
    STAY();
}

static void test_sizes(void **state) {
    (void)state;
    static const uint32_t sizes[] = { 1, 31, 32, 33, 128, 1000, 1024, 7 };
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        at_simt_scene_run(counts_itself, 9, sizes[i], i);
        at_simt_scene_expect(AT_FINDING_NONE, NULL);
        assert_int_equal(at_simt_scene.both[0], 9 * sizes[i]);
    }
}

static void test_launches_that_cannot_be(void **state) {
    (void)state;
    static const struct {
        struct at_dim3 grid, block;
        int64_t shared;
        int want;
    } rows[] = { { { 1, 1, 1 }, { 1025, 1, 1 }, 0, 9 },  { { 1, 1, 1 }, { 0, 1, 1 }, 0, 9 },
                 { { 0, 1, 1 }, { 1, 1, 1 }, 0, 9 },     { { 1, 65536, 1 }, { 1, 1, 1 }, 0, 9 },
                 { { 1, 1, 65536 }, { 1, 1, 1 }, 0, 9 }, { { 1, 1, 1 }, { 1, 1, 1 }, 227 * 1024 + 1, 1 },
                 { { 1, 1, 1 }, { 1, 1, 1 }, -1, 1 },    { { 1, 1, 1 }, { 32, 8, 4 }, 227 * 1024, 0 } };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        at_simt_scene_job(0);
        assert_int_equal(at_simt_launch(counts_itself, NULL, 0, rows[i].grid, rows[i].block, rows[i].shared, NULL),
                         rows[i].want);
        at_simt_scene_expect(AT_FINDING_NONE, NULL);
    }
}

/* ---- barriers ---- */

static void reverses_through_shared(void *unused) {
    (void)unused;
    SHARED(uint32_t, 96, row);
    for (int i = 0; i < 3; i++) {
        PUT(row[TID], (uint32_t)(1000 * i + TID));
        SYNC();
        PUT(at_simt_scene.out[(BID * 3 + i) * 96 + TID], GET(row[95 - TID]));
        SYNC();
    }
}

static void test_barriers(void **state) {
    (void)state;
    for (long seed = 1; seed <= at_test_effort(50); seed++) {
        at_simt_scene_run(reverses_through_shared, 7, 96, (uint64_t)seed);
        at_simt_scene_expect(AT_FINDING_NONE, NULL);
        for (int i = 0; i < 7 * 3 * 96; i++)
            assert_int_equal(at_simt_scene.out[i], 1000 * (i / 96 % 3) + 95 - i % 96);
    }
}

static void barrier_in_one_branch(void *unused) {
    (void)unused;
    if (TID < 40)
        NOTED, SYNC();
}

static int other_line;
static void barrier_in_each_branch(void *unused) {
    (void)unused;
    if (TID < 40)
        line_of = __LINE__, SYNC();
    else
        other_line = __LINE__, SYNC();
}

static int leaver;
static void leaves_before_barrier(void *unused) {
    (void)unused;
    if (TID == leaver)
        return;
    NOTED, SYNC();
}

static void test_divergent_barriers(void **state) {
    (void)state;
    const long seeds = 10 * at_test_effort(5);
    AT_SIMT_SCENE_SEEDS(seeds, barrier_in_one_branch, 2, 64, AT_FINDING_RACE, at_line(), "block", "thread",
                        "left without");
    for (leaver = 0; leaver < 32; leaver += 31) { /* the first to run, and the last */
        AT_SIMT_SCENE_SEEDS(seeds, leaves_before_barrier, 2, 32, AT_FINDING_RACE, at_line(), "block", "left without");
        AT_SIMT_SCENE_SEEDS(seeds, leaves_before_barrier, 2, 128, AT_FINDING_RACE, at_line(), "block", "left without");
    }
    for (long seed = 1; seed <= seeds; seed++) { /* either side may be the one that notices */
        const struct at_finding *f = at_simt_scene_run(barrier_in_each_branch, 2, 64, (uint64_t)seed);
        at_simt_scene_expect(AT_FINDING_RACE, "block", "thread", "is at this barrier while thread", NULL);
        at_assert_true(strstr(f->text, also_line(line_of)) && strstr(f->text, also_line(other_line)), "%s", f->text);
    }
}

/* ---- warp operations ---- */

static void shuffles(void *unused) {
    (void)unused;
    const int lane = at_simt_lane();
    uint32_t sum = (uint32_t)TID + 1;
    for (int with = 16; with > 0; with /= 2)
        sum += SHUFFLE(FULL, sum, lane ^ with);
    PUT(at_simt_scene.out[TID], sum);
    PUT(at_simt_scene.out[128 + TID], SHUFFLE(FULL, (uint32_t)TID * 3, (lane + 5) % 32));
    PUT(at_simt_scene.out[256 + TID], BALLOT(FULL, TID % 3 == 0));
}

static void test_shuffles(void **state) {
    (void)state;
    for (long seed = 1; seed <= at_test_effort(20); seed++) {
        at_simt_scene_run(shuffles, 1, 128, (uint64_t)seed);
        at_simt_scene_expect(AT_FINDING_NONE, NULL);
        for (uint32_t t = 0; t < 128; t++) {
            const uint32_t first = t / 32 * 32;
            uint32_t ballot = 0;
            for (uint32_t l = 0; l < 32; l++)
                ballot |= (uint32_t)((first + l) % 3 == 0) << l;
            assert_int_equal(at_simt_scene.out[t], 32 * first + 528);
            assert_int_equal(at_simt_scene.out[128 + t], (first + (t + 5) % 32) * 3);
            assert_int_equal(at_simt_scene.out[256 + t], ballot);
        }
    }
}

/* Groups of 4 lanes with masks of their own and 1 to 8 rounds each. */
static void groups_of_their_own(void *unused) {
    (void)unused;
    const int lane = at_simt_lane(), group = lane / 4;
    const uint32_t mask = 0xfu << group * 4;
    uint32_t x = (uint32_t)lane, votes = 0;
    for (int i = 0; i <= group; i++) {
        x = SHUFFLE(mask, x, group * 4 + (lane + 1) % 4);
        votes += (uint32_t)__builtin_popcount(BALLOT(mask, lane % 4 <= i % 4));
    }
    PUT(at_simt_scene.out[TID], x);
    PUT(at_simt_scene.out[64 + TID], votes);
}

static void test_groups(void **state) {
    (void)state;
    for (long seed = 1; seed <= at_test_effort(20); seed++) {
        at_simt_scene_run(groups_of_their_own, 1, 64, (uint64_t)seed);
        at_simt_scene_expect(AT_FINDING_NONE, NULL);
        for (int t = 0; t < 64; t++) {
            const int lane = t % 32, group = lane / 4;
            uint32_t votes = 0;
            for (int i = 0; i <= group; i++)
                votes += (uint32_t)(i % 4) + 1;
            assert_int_equal(at_simt_scene.out[t], group * 4 + (lane + group + 1) % 4);
            assert_int_equal(at_simt_scene.out[64 + t], votes);
        }
    }
}

static void left_out_of_own_mask(void *unused) {
    (void)unused;
    NOTED, SYNC_WARP(0xfffffff7u);
}

static void names_a_lane_that_left(void *unused) {
    (void)unused;
    if (TID == leaver)
        return;
    NOTED, (void)SHUFFLE(FULL, 1, at_simt_lane());
}

static void full_mask_uneven_loops(void *unused) {
    (void)unused;
    for (int i = 0; i <= TID / 8; i++)
        NOTED, (void)SHUFFLE(FULL, 1, at_simt_lane());
    other_line = __LINE__, SYNC_WARP(FULL);
}

static void same_place_other_masks(void *unused) {
    (void)unused;
    NOTED, (void)BALLOT(at_simt_lane() < 16 ? FULL : 0xfffffffeu, 1);
}

static void shuffle_from_outside(void *unused) {
    (void)unused;
    if (at_simt_lane() < 8)
        NOTED, (void)SHUFFLE(0xffu, 1, at_simt_lane() == 3 ? 8 : 0);
}

static void mask_past_the_block(void *unused) {
    (void)unused;
    NOTED, SYNC_WARP(FULL);
}

/* A ternary around a shuffle: the lane that needs no value does not take part. */
static void ternary_around_shuffle(void *unused) {
    (void)unused;
    const uint32_t before = at_simt_lane() == 0 ? 0 : (NOTED, SHUFFLE(FULL, (uint32_t)TID, at_simt_lane() - 1));
    other_line = __LINE__, SYNC();
    PUT(at_simt_scene.out[TID], before);
}

static void test_wrong_masks(void **state) {
    (void)state;
    const long seeds = 10 * at_test_effort(5);
    AT_SIMT_SCENE_SEEDS(seeds, left_out_of_own_mask, 1, 64, AT_FINDING_RACE, at_line(), "block 0", "fffffff7",
                        "leaves it out");
    for (leaver = 0; leaver < 32; leaver += 31)
        AT_SIMT_SCENE_SEEDS(seeds, names_a_lane_that_left, 1, 32, AT_FINDING_RACE, at_line(), "block 0",
                            leaver ? "lane 31," : "lane 0,", "left the kernel");
    AT_SIMT_SCENE_SEEDS(seeds, shuffle_from_outside, 1, 32, AT_FINDING_RACE, at_line(), "block 0: shuffle of thread 3",
                        "lane 8", "000000ff");
    AT_SIMT_SCENE_SEEDS(seeds, mask_past_the_block, 1, 40, AT_FINDING_RACE, at_line(), "block 0", "lane 8", "40");
    AT_SIMT_SCENE_SEEDS(seeds, same_place_other_masks, 1, 32, AT_FINDING_RACE, at_line(), "block 0", "ffffffff",
                        "fffffffe");
    for (long seed = 1; seed <= seeds; seed++) {
        const struct at_finding *f = at_simt_scene_run(full_mask_uneven_loops, 1, 32, (uint64_t)seed);
        at_simt_scene_expect(AT_FINDING_RACE, "block 0", "thread", NULL);
        at_assert_true(strstr(f->text, also_line(line_of)) && strstr(f->text, also_line(other_line)), "%s", f->text);
        f = at_simt_scene_run(ternary_around_shuffle, 1, 32, (uint64_t)seed);
        at_simt_scene_expect(AT_FINDING_RACE, "block 0", "thread", NULL);
        at_assert_true(strstr(f->text, also_line(line_of)) && strstr(f->text, also_line(other_line)), "%s", f->text);
    }
}

/* ---- deadlock ---- */

/* Each lane of a ring of three waits for the next, at one place. */
static void ring_of_three(void *unused) {
    (void)unused;
    if (TID < 3)
        NOTED, SYNC_WARP(1u << TID | 1u << (TID + 1) % 3);
}

static void lane_waits_for_one_in_barrier(void *unused) {
    (void)unused;
    if (TID == 5)
        line_of = __LINE__, SYNC_WARP(3u << 5);
    other_line = __LINE__, SYNC();
}

static void test_deadlocks(void **state) {
    (void)state;
    const long seeds = 5 * at_test_effort(10);
    AT_SIMT_SCENE_SEEDS(seeds, ring_of_three, 3, 32, AT_FINDING_DEADLOCK, at_line(), "block", "every thread waits");
    for (long seed = 1; seed <= seeds; seed++) {
        const struct at_finding *f = at_simt_scene_run(lane_waits_for_one_in_barrier, 2, 64, (uint64_t)seed);
        at_simt_scene_expect(AT_FINDING_RACE, "block", "every thread waits", "thread 5", NULL);
        at_assert_true(strstr(f->text, also_line(line_of)) && strstr(f->text, also_line(other_line)), "%s", f->text);
    }
}

/* ---- jobs ---- */

/* The first finding stands, later launches of the job do nothing, and the next job knows nothing of it. */
static void test_a_finding_ends_the_job(void **state) {
    (void)state;
    for (long i = 0; i < at_test_effort(20); i++) {
        at_simt_scene_run(ring_of_three, 9, 64, (uint64_t)i);
        at_simt_scene_launch(counts_itself, (struct at_dim3){ 1, 1, 1 }, (struct at_dim3){ 32, 1, 1 }, 0);
        at_simt_scene_expect(AT_FINDING_DEADLOCK, "every thread waits", NULL);
        assert_int_equal(at_simt_scene.both[0], 0);
        at_simt_scene_run(reverses_through_shared, 7, 96, (uint64_t)i);
        at_simt_scene_expect(AT_FINDING_NONE, NULL);
        assert_int_equal(at_simt_scene.out[0], 95);
    }
}

/* The count of synchronisations is 32 bits wide and goes on from job to job: it must not run over. */
static void test_count_does_not_run_over(void **state) {
    (void)state;
    for (uint32_t before = 0; before < 400; before += 7) {
        at_simt_machine.now = UINT32_MAX - before;
        at_simt_scene_run(reverses_through_shared, 7, 96, before);
        at_simt_scene_expect(AT_FINDING_NONE, NULL);
    }
}

static void order_of_atomics(void *unused) {
    (void)unused;
    for (int i = 0; i < 2; i++) {
        PUT(at_simt_scene.out[(BID * 64 + TID) * 2 + i], at_simt_atomic_add_u32(&at_simt_scene.both[0], 1));
        SYNC();
    }
}

/* One seed, one order; other seeds, other orders. */
static void test_seeds(void **state) {
    (void)state;
    static uint32_t first[64 * 2 * 6];
    int differ = 0;
    for (uint64_t seed = 1; seed <= 10; seed++)
        for (int again = 0; again < 2; again++) {
            at_simt_scene_run(order_of_atomics, 6, 64, seed);
            at_simt_scene_expect(AT_FINDING_NONE, NULL);
            if (again)
                assert_memory_equal(first, at_simt_scene.out, sizeof first);
            else if (seed > 1)
                differ += memcmp(first, at_simt_scene.out, sizeof first) != 0;
            memcpy(first, at_simt_scene.out, sizeof first);
        }
    at_assert_true(differ >= 8, "of 9 other seeds %d gave another order", differ);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_indices),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_launches_that_cannot_be),
        cmocka_unit_test(test_barriers),
        cmocka_unit_test(test_divergent_barriers),
        cmocka_unit_test(test_shuffles),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_wrong_masks),
        cmocka_unit_test(test_deadlocks),
        cmocka_unit_test(test_a_finding_ends_the_job),
        cmocka_unit_test(test_count_does_not_run_over),
        cmocka_unit_test(test_seeds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
