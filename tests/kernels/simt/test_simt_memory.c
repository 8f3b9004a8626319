/* The SIMT machine: races, and reads of what nobody wrote.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "kernels/simt/machine.h"
#include "tests/support/simt_scene.h"

#define FULL 0xffffffffu

static int line_of, other_line;
static char line_text[64];
static const char *at_line(int line) {
    snprintf(line_text, sizeof line_text, "test_simt_memory.c:%d:", line);
    return line_text;
}

/* One access by each of two threads, and what stands between them: a table of these is the test of the order rules. */
enum act { R, W, A, X };
enum between { NOTHING, BARRIER, WARP_SYNC, SHUFFLED };
enum where { SHARED_MEMORY, GLOBAL, GLOBAL_2_BLOCKS };

static struct {
    enum act first, second;
    enum between between;
    enum where where;
    int thread_1, thread_2; /* within the block */
    int bytes_1, bytes_2, at_1, at_2;
} play;

static void touch(enum act act, const uint8_t *address, int bytes, int *line) {
    *line = __LINE__ + 1; /* the lines of the accesses below, by kind and width */
    if (act == A)
        (void)at_simt_atomic_add_u32((uint32_t *)(uintptr_t)address, 1); /* NOLINT(performance-no-int-to-ptr) */
    else if (act == X)
        (void)at_simt_atomic_exchange_u32((uint32_t *)(uintptr_t)address, 1); /* NOLINT(performance-no-int-to-ptr) */
    else if (act == R && bytes == 16)
        at_mem_read16(address);
    else if (act == R && bytes == 4)
        at_mem_read4(address);
    else if (act == R && bytes == 2)
        at_mem_read2(address);
    else if (act == R)
        at_mem_read1(address);
    else if (bytes == 16)
        at_mem_write16(address);
    else if (bytes == 4)
        at_mem_write4(address);
    else if (bytes == 2)
        at_mem_write2(address);
    else
        at_mem_write1(address);
    STAY();
}

static void plays(void *unused) {
    (void)unused;
    SHARED(uint32_t, 64, shared);
    if (play.where == SHARED_MEMORY && TID < 64) {
        PUT(shared[TID], 0);
        SYNC();
    }
    uint8_t *base = play.where == SHARED_MEMORY ? (uint8_t *)shared : (uint8_t *)at_simt_scene.both;
    if (TID == play.thread_1 && BID == 0)
        touch(play.first, base + play.at_1, play.bytes_1, &line_of);
    if (play.between == BARRIER)
        SYNC();
    if (play.between == WARP_SYNC)
        SYNC_WARP(FULL);
    if (play.between == SHUFFLED)
        (void)SHUFFLE(FULL, 1, at_simt_lane());
    if (TID == play.thread_2 && (play.where != GLOBAL_2_BLOCKS || BID == 1))
        touch(play.second, base + play.at_2, play.bytes_2, &other_line);
}

static void expect_play(enum at_finding_kind kind) {
    for (long seed = 1; seed <= 5 * at_test_effort(10); seed++) {
        const unsigned blocks = play.where == GLOBAL_2_BLOCKS ? 2 : 1;
        const struct at_finding *f = at_simt_scene_run(plays, blocks, 64, (uint64_t)seed);
        at_assert_true(f->kind == kind, "%d then %d, between %d, where %d, threads %d %d, bytes %d+%d %d+%d: %s",
                       (int)play.first, (int)play.second, (int)play.between, (int)play.where, play.thread_1,
                       play.thread_2, play.at_1, play.bytes_1, play.at_2, play.bytes_2, f->text);
        if (kind == AT_FINDING_RACE)
            at_simt_scene_expect(kind, "kernels/simt/test_simt_memory.c:", "block ", "thread ",
                                 play.where == SHARED_MEMORY ? "of a variable in shared memory" : "of both",
                                 "without an order", NULL);
    }
}

/* Every pair of accesses, in every place, with everything that may or may not order them. */
static void test_order_rules(void **state) {
    (void)state;
    for (int i = 0; i < 4 * 4 * 4 * 3 * 2; i++) {
        const int far = i / 192; /* the second thread: of the same warp, or of the other */
        play.first = (enum act)(i % 4);
        play.second = (enum act)(i / 4 % 4);
        play.between = (enum between)(i / 16 % 4);
        play.where = (enum where)(i / 64 % 3);
        play.thread_1 = 3;
        play.thread_2 = far ? 40 : 9;
        play.bytes_1 = play.bytes_2 = 4;
        play.at_1 = play.at_2 = 20;
        const int harmless = play.first >= A ? play.second >= A : play.first == R && play.second == R;
        const int ordered =
            play.where != GLOBAL_2_BLOCKS && (play.between == BARRIER || (play.between == WARP_SYNC && !far));
        expect_play(harmless || ordered ? AT_FINDING_NONE : AT_FINDING_RACE);
    }
}

/* Which bytes: neighbours of 1, 2 and 4 bytes are no race, an overlap of one byte is. */
static void test_which_bytes(void **state) {
    (void)state;
    static const int bytes[] = { 1, 2, 4, 16 };
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4; k++)
            for (int at = 0; at < 48; at += bytes[k]) {
                for (int acts = 0; acts < 3; acts++) {
                    play.first = acts == 0 ? R : W;
                    play.second = acts == 1 ? R : W;
                    play.between = NOTHING;
                    play.where = at / 16 % 2 ? GLOBAL : SHARED_MEMORY;
                    play.thread_1 = 3;
                    play.thread_2 = at % 3 ? 9 : 40;
                    play.bytes_1 = bytes[i];
                    play.bytes_2 = bytes[k];
                    play.at_1 = 16 + bytes[i] * (bytes[i] < 16 ? 5 % (16 / bytes[i]) : 0);
                    play.at_2 = at;
                    const int overlap = at < play.at_1 + bytes[i] && play.at_1 < at + bytes[k];
                    const struct at_finding *f = at_simt_scene_run(plays, 1, 64, (uint64_t)at);
                    at_assert_true(f->kind == (overlap ? AT_FINDING_RACE : AT_FINDING_NONE), "%d+%d and %d+%d: %s",
                                   play.at_1, bytes[i], at, bytes[k], f->text);
                }
            }
}

/* A finding names the line of the access, the block, the thread, the byte and the other party. */
static void writes_same_element(void *unused) {
    (void)unused;
    if (BID == 3 && (TID == 33 || TID == 34)) {
        line_of = __LINE__ + 1;
        PUT(at_simt_scene.both[10], 1);
    }
}
static void test_what_a_race_says(void **state) {
    (void)state;
    for (uint64_t seed = 0; seed <= 10; seed++) { /* which of the two came first is the seed's choice */
        at_simt_scene_run(writes_same_element, 5, 64, seed);
        const int is_33 = strstr(at_simt_finding()->text, "thread 33 writes") != NULL;
        assert_true(seed > 0 || !is_33);
        at_simt_scene_expect(AT_FINDING_RACE, at_line(line_of),
                             is_33 ? "block 3: thread 33 writes byte 40 of both, which thread 34 of block 3 writes"
                                   : "block 3: thread 34 writes byte 40 of both, which thread 33 of block 3 writes",
                             NULL);
    }
}

/* All bytes by different threads: formats of 1 and 2 bytes, read by others after a barrier. */
static void neighbours(void *unused) {
    (void)unused;
    uint8_t *bytes = (uint8_t *)at_simt_scene.both;
    SHARED(uint8_t, 64, row);
    SHARED(uint16_t, 64, halves);
    for (int i = 0; i < 3; i++) {
        WRITE(1, row + TID);
        WRITE(2, halves + TID);
        WRITE(1, bytes + BID * 64 + TID);
        WRITE(2, bytes + 1024 + (BID * 64 + TID) * 2);
        SYNC();
        READ(1, row + 63 - TID);
        READ(4, halves + TID / 2 * 2);
        READ(1, bytes + BID * 64 + 63 - TID);
        READ(16, bytes + 1024 + BID * 128 + TID / 8 * 16);
        SYNC();
    }
}
static void one_byte_too_early(void *unused) {
    (void)unused;
    SHARED(uint8_t, 64, row);
    WRITE(1, row + TID);
    SYNC();
    READ(1, row + (TID + 1) % 64);
    if (TID == 7)
        WRITE(1, row + 7);
}
static void test_bytes(void **state) {
    (void)state;
    AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), neighbours, 9, 64, AT_FINDING_NONE, "");
    AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), one_byte_too_early, 1, 64, AT_FINDING_RACE, "byte 7 of",
                        "shared memory");
}

/* ---- launches ---- */

static void writes_its_own(void *unused) {
    (void)unused;
    PUT(at_simt_scene.out[BID * 64 + TID], 7);
}
static void reads_anothers(void *unused) {
    (void)unused;
    const uint32_t got = GET(at_simt_scene.out[(15 - BID) * 64 + 63 - TID]);
    PUT(at_simt_scene.both[BID * 64 + TID], got);
}
static void adds_all(void *unused) {
    (void)unused;
    (void)at_simt_atomic_add_u32(&at_simt_scene.both[3], 1);
    (void)at_simt_atomic_add_f32((float *)&at_simt_scene.both[4], 1.0f);
    STAY();
}
static void reads_the_sum(void *unused) {
    (void)unused;
    PUT(at_simt_scene.out[BID * 64 + TID], GET(at_simt_scene.both[3]));
}

/* ---- f32 atomics: in global memory subnormal terms and sums are zeros of their sign, in shared memory they are themselves ---- */

static float atomic_sums[2][4];
static void adds_to_both(void *unused) {
    static const float before[4] = { 0x1p-130f, 0x1.8p-126f, -0x1p-130f, 1.0f },
                       more[4] = { 0x1p-126f, -0x1p-126f, -0.0f, 0x1p-140f };
    float *shared = at_simt_shared(&atomic_sums, sizeof before, 4), *const global = (float *)&at_simt_scene.out[0];
    (void)unused;
    for (int i = 0; i < 4; i++) {
        PUT(shared[i], before[i]);
        PUT(global[i], before[i]);
        (void)at_simt_atomic_add_f32(&shared[i], more[i]);
        (void)at_simt_atomic_add_f32(&global[i], more[i]);
        atomic_sums[0][i] = GET(shared[i]);
        atomic_sums[1][i] = GET(global[i]);
    }
}

static void test_atomics_flush_in_global_memory(void **state) {
    static const float wanted[2][4] = { { 0x1.1p-126f, 0x1p-127f, -0x1p-130f, 1.0f },
                                        { 0x1p-126f, 0.0f, -0.0f, 1.0f } };
    (void)state;
    at_simt_scene_run(adds_to_both, 1, 1, 1);
    at_simt_scene_expect(AT_FINDING_NONE, NULL);
    assert_memory_equal(atomic_sums, wanted, sizeof wanted);
}

/* The largest of numbers that have their highest bit and of others; blocks are not ordered, and need not be. */
static void raises(void *unused) {
    (void)unused;
    (void)at_simt_atomic_max_u32(&at_simt_scene.both[6], (uint32_t)((BID * 64 + TID) * 37 % 128) << 25);
    STAY();
}

static void test_atomic_maximum(void **state) {
    (void)state;
    at_simt_scene.both[6] = 0;
    at_simt_scene_run(raises, 2, 64, 1);
    at_simt_scene_expect(AT_FINDING_NONE, NULL);
    assert_int_equal(at_simt_scene.both[6], 127u << 25);
}

/* When the count of synchronisations begins anew, what threads knew of each other by the old one is forgotten. */
static void test_time_begins_anew(void **state) {
    (void)state;
    play.first = play.second = W;
    play.where = GLOBAL;
    play.thread_1 = 3;
    play.thread_2 = 9;
    play.bytes_1 = play.bytes_2 = 4;
    play.at_1 = play.at_2 = 20;
    play.between = WARP_SYNC;
    at_simt_machine.now = UINT32_MAX / 2 - 10;
    at_simt_scene_run(plays, 1, 64, 1);
    at_simt_scene_expect(AT_FINDING_NONE, NULL);
    at_simt_machine.now = UINT32_MAX; /* and so is what was done to memory, which would seem to be yet to come */
    at_simt_scene_run(plays, 1, 64, 1);
    at_simt_scene_expect(AT_FINDING_NONE, NULL);
    play.between = NOTHING;
    at_simt_machine.now = UINT32_MAX;
    at_simt_scene_run(plays, 1, 64, 1);
    at_simt_scene_expect(AT_FINDING_RACE, "byte 20 of both", NULL);
}

static void test_launches_are_ordered(void **state) {
    (void)state;
    const struct at_dim3 grid = { 16, 1, 1 }, block = { 64, 1, 1 };
    for (long seed = 1; seed <= at_test_effort(50); seed++) {
        at_simt_scene_job((uint64_t)seed);
        at_simt_scene_launch(writes_its_own, grid, block, 0);
        at_simt_scene_launch(reads_anothers, grid, block, 0);
        at_simt_scene_launch(writes_its_own, grid, block, 0);
        at_simt_scene_expect(AT_FINDING_NONE, NULL);
        assert_int_equal(at_simt_scene.both[16 * 64 - 1], 7);
        at_simt_scene_job((uint64_t)seed);
        at_simt_scene_launch(adds_all, grid, block, 0);
        at_simt_scene_launch(reads_the_sum, grid, block, 0);
        at_simt_scene_expect(AT_FINDING_NONE, NULL);
        assert_int_equal(at_simt_scene.out[0], 16 * 64);
    }
}

static void another_blocks(void *unused) {
    (void)unused;
    PUT(at_simt_scene.both[BID], 7);
    line_of = __LINE__ + 1;
    (void)GET(at_simt_scene.both[(BID + 1) % 9]);
    STAY();
}
static void same_for_all(void *unused) {
    (void)unused;
    if (TID == 0)
        PUT(at_simt_scene.both[0], 7);
}
/* Block 1 writes what block 0 has read too. */
static void last_reader_writes(void *unused) {
    (void)unused;
    (void)GET(at_simt_scene.both[8]);
    if (BID == 1)
        PUT(at_simt_scene.both[8], 7);
}

static void test_blocks_are_not(void **state) {
    (void)state;
    AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), last_reader_writes, 2, 1, AT_FINDING_RACE, "byte 32 of both");
    AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), another_blocks, 9, 1, AT_FINDING_RACE, "of both", "without an order");
    AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), same_for_all, 9, 32, AT_FINDING_RACE, "byte 0 of both", "writes");
}

/* ---- what nobody wrote ---- */

static void reads_shared_unwritten(void *unused) {
    (void)unused;
    SHARED(uint32_t, 64, row);
    if (TID > 0)
        PUT(row[TID], 1);
    SYNC();
    line_of = __LINE__ + 1;
    (void)GET(row[(TID + 1) % 64]);
    STAY();
}
static void writes_shared(void *unused) {
    (void)unused;
    SHARED(uint32_t, 64, row);
    PUT(row[TID], 1);
    SYNC();
    (void)GET(row[63 - TID]);
    STAY();
}
static void later_blocks_read(void *unused) {
    (void)unused;
    SHARED(uint32_t, 64, row);
    if (BID < 4)
        PUT(row[TID], 1);
    else
        (void)GET(row[TID]);
    STAY();
}
static void reads_dynamic_unwritten(void *unused) {
    (void)unused;
    line_of = __LINE__ + 1;
    (void)GET(((uint32_t *)at_simt_shared_dynamic())[TID]);
    STAY();
}
static void reads_out_unwritten(void *unused) {
    (void)unused;
    line_of = __LINE__ + 1;
    (void)GET(at_simt_scene.out[TID]);
    STAY();
}
static void adds_to_uncleared(void *unused) {
    (void)unused;
    line_of = __LINE__ + 1;
    (void)at_simt_atomic_add_u32(&at_simt_scene.out[1], 1);
    STAY();
}
static void exchanges_uncleared(void *unused) {
    (void)unused;
    (void)at_simt_atomic_exchange_u32(&at_simt_scene.out[1], 1);
    STAY();
}
static void reads_half_written(void *unused) {
    (void)unused;
    WRITE(2, &at_simt_scene.out[TID]);
    line_of = __LINE__ + 1;
    READ(4, &at_simt_scene.out[TID]);
}

static void test_unwritten(void **state) {
    (void)state;
    const struct at_dim3 one = { 1, 1, 1 }, block = { 64, 1, 1 };
    AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), reads_shared_unwritten, 9, 64, AT_FINDING_UNWRITTEN, at_line(line_of),
                        "block", "thread", "byte 0 of a variable in shared memory", "nobody wrote");
    AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), later_blocks_read, 9, 64, AT_FINDING_UNWRITTEN, "shared memory");
    for (uint64_t seed = 0; seed < 5; seed++) {
        /* what earlier jobs, launches and blocks left in the same memory is not this block's */
        at_simt_scene_run(writes_shared, 20, 64, seed);
        at_simt_scene_expect(AT_FINDING_NONE, NULL);
        at_simt_scene_launch(reads_shared_unwritten, (struct at_dim3){ 20, 1, 1 }, block, 0);
        at_simt_scene_expect(AT_FINDING_UNWRITTEN, at_line(line_of), NULL);
        at_simt_scene_run(writes_its_own, 2, 64, seed);
        at_simt_scene_launch(reads_out_unwritten, one, block, 0);
        at_simt_scene_expect(AT_FINDING_NONE, NULL);
        at_simt_scene_run(reads_out_unwritten, 1, 64, seed);
        at_simt_scene_expect(AT_FINDING_UNWRITTEN, at_line(line_of), "block 0: thread ", " of out", NULL);
        at_simt_scene_job(seed);
        at_simt_scene_launch(reads_dynamic_unwritten, one, block, 256);
        at_simt_scene_expect(AT_FINDING_UNWRITTEN, at_line(line_of), "of dynamic shared memory", NULL);
        at_simt_scene_run(adds_to_uncleared, 1, 1, seed);
        at_simt_scene_expect(AT_FINDING_UNWRITTEN, "byte 4 of out", NULL);
        at_simt_scene_run(exchanges_uncleared, 1, 1, seed);
        at_simt_scene_expect(AT_FINDING_UNWRITTEN, "byte 4 of out", NULL);
        at_simt_scene_run(reads_half_written, 1, 1, seed);
        at_simt_scene_expect(AT_FINDING_UNWRITTEN, at_line(line_of), "of out", NULL);
    }
}

static void exchanges_its_number(void *unused) {
    (void)unused;
    PUT(at_simt_scene.out[BID * 64 + TID],
        at_simt_atomic_exchange_u32(&at_simt_scene.both[5], (uint32_t)(BID * 64 + TID + 1)));
}

/* Who exchanges gets what was there before, and leaves its own: every number turns up once, the last one stays. */
static void test_exchange(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        int seen[5 * 64 + 1] = { 0 };
        at_simt_scene_run(exchanges_its_number, 5, 64, seed);
        at_simt_scene_expect(AT_FINDING_NONE, NULL);
        for (int i = 0; i < 5 * 64; i++)
            if (at_simt_scene.out[i] <= 5 * 64)
                seen[at_simt_scene.out[i]]++;
        assert_in_range(at_simt_scene.both[5], 1, 5 * 64);
        seen[at_simt_scene.both[5]]++;
        for (int i = 0; i <= 5 * 64; i++)
            at_assert_true(seen[i] == 1, "number %d turned up %d times", i, seen[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_rules),
        cmocka_unit_test(test_which_bytes),
        cmocka_unit_test(test_what_a_race_says),
        cmocka_unit_test(test_bytes),

        cmocka_unit_test(test_atomics_flush_in_global_memory),
        cmocka_unit_test(test_atomic_maximum),
        cmocka_unit_test(test_time_begins_anew),
        cmocka_unit_test(test_launches_are_ordered),
        cmocka_unit_test(test_blocks_are_not),
        cmocka_unit_test(test_unwritten),
        cmocka_unit_test(test_exchange),

    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
