/* The SIMT machine: who has read what another thread writes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/simt_scene.h"

#define FULL 0xffffffffu

/* Lanes 0 and 2 read, and so does `left_out`; then lane 1, which lane 0 is ordered before; then lane 1 writes, which
 * lane 2 is ordered before too. Shuffles, which order no memory, keep these steps in this order. */
static int left_out, which, writer;
static void readers_in_a_chain(void *unused) {
    (void)unused;
    if (TID == 0 || TID == 2 || TID == left_out)
        READ(4, &at_simt_scene.both[5]);
    (void)SHUFFLE(FULL, 1, 0);
    if (TID <= 1)
        SYNC_WARP(3);
    if (TID == 1)
        READ(4, &at_simt_scene.both[5]);
    (void)SHUFFLE(FULL, 1, 0);
    if (TID == 1 || TID == 2)
        SYNC_WARP(6);
    if (TID == 1)
        PUT(at_simt_scene.both[5], 1);
}

/* The same readers; then lane 1 reads one byte of the four alone, and another element in between takes the place of
 * what is no longer needed; lane 20 writes the other three bytes, which nobody is ordered before. */
static void readers_of_one_byte(void *unused) {
    (void)unused;
    uint8_t *bytes = (uint8_t *)&at_simt_scene.both[5];
    if (TID == 0 || TID == 2)
        READ(4, bytes);
    (void)SHUFFLE(FULL, 1, 0);
    if (TID <= 1)
        SYNC_WARP(3);
    if (TID == 1)
        READ(4, bytes);
    (void)SHUFFLE(FULL, 1, 0);
    if (TID == 1 || TID == 2)
        SYNC_WARP(6);
    if (TID == 1)
        READ(1, bytes);
    (void)SHUFFLE(FULL, 1, 0);
    if (TID >= 1 && TID <= 4)
        READ(4, &at_simt_scene.both[9]); /* in two stretches */
    (void)SHUFFLE(FULL, 1, 0);
    if (TID == 20)
        WRITE(1, bytes + which);
}

static void test_readers(void **state) {
    (void)state;
    left_out = -1;
    AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), readers_in_a_chain, 1, 64, AT_FINDING_NONE, "");
    static const int all[] = { 3, 31, 32, 63 };
    for (int i = 0; i < 4; i++) {
        left_out = all[i];
        AT_SIMT_SCENE_SEEDS(5 * at_test_effort(10), readers_in_a_chain, 1, 64, AT_FINDING_RACE, "both");
    }
    for (which = 0; which < 4; which++)
        AT_SIMT_SCENE_SEEDS(2 * at_test_effort(10), readers_of_one_byte, 1, 32, AT_FINDING_RACE, "of both",
                            "thread 20 writes", which ? "which thread 0 of" : "which thread 1 of");
}

/* Lanes 0 and 1 read one after the other in a stretch of their own, lane 5 before them; lane 2 is ordered after lane 5 and
 * after one of the two, and writes. */
static void two_readers_of_one_stretch(void *unused) {
    (void)unused;
    if (TID == 5)
        READ(4, &at_simt_scene.both[5]);
    (void)SHUFFLE(FULL, 1, 0);
    if (TID <= 1)
        SYNC_WARP(3);
    if (TID <= 1)
        READ(4, &at_simt_scene.both[5]);
    (void)SHUFFLE(FULL, 1, 0);
    if (TID == 2 || TID == 5)
        SYNC_WARP(1u << 2 | 1u << 5);
    if (TID == 2 || TID == 1 - left_out)
        SYNC_WARP(1u << 2 | 1u << (1 - left_out));
    if (TID == 2)
        PUT(at_simt_scene.both[5], 1);
}
static void test_two_of_one_stretch(void **state) {
    (void)state;
    for (left_out = 0; left_out < 2; left_out++)
        AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), two_readers_of_one_stretch, 1, 32, AT_FINDING_RACE,
                            left_out ? "which thread 1 of block 0 reads" : "which thread 0 of block 0 reads");
}

/* Reads of any set of threads, then a write by a thread that only its own warp is ordered before. */
static uint32_t read_set[4];
static void readers_of_a_set(void *unused) {
    (void)unused;
    if (read_set[TID / 32] >> TID % 32 & 1)
        READ(4, &at_simt_scene.both[5]);
    SYNC_WARP(FULL);
    if (TID == writer)
        PUT(at_simt_scene.both[5], 1);
}
static void test_sets_of_readers(void **state) {
    (void)state;
    uint64_t z = 1;
    for (long i = 0; i < 200 * at_test_effort(10); i++) {
        uint32_t others = 0;
        int named = 0;
        z = z * 6364136223846793005u + 1442695040888963407u;
        const uint32_t kind = (uint32_t)(z >> 60), lanes = (uint32_t)(z >> 20) & (uint32_t)(kind & 1 ? FULL : z >> 11);
        writer = (int)(z >> 50 & 127);
        for (int w = 0; w < 4; w++) { /* the same lanes of some warps, or any */
            read_set[w] = z >> (40 + w) & 1 ? 0
                          : kind < 8        ? lanes
                                            : (uint32_t)(z >> (w + 5)) & (uint32_t)(z >> (w + 17));
            others |= w != writer / 32 ? read_set[w] : 0;
        }
        const struct at_finding *f = at_simt_scene_run(readers_of_a_set, 1, 128, z);
        at_assert_true(f->kind == (others ? AT_FINDING_RACE : AT_FINDING_NONE),
                       "readers %08x %08x %08x %08x, writer %d: %s", read_set[0], read_set[1], read_set[2], read_set[3],
                       writer, f->text);
        if (!others)
            continue;
        /* the write found the readers, or a reader of another warp, that came later, the write */
        const char *reads = strstr(f->text, "of both, which thread ");
        const char *number = reads && strstr(reads, " reads ") ? reads + 22 : strstr(f->text, "thread ") + 7;
        named = (int)strtol(number, NULL, 10);
        at_assert_true(read_set[named / 32] >> named % 32 & 1, "thread %d has not read: %s", named, f->text);
    }
}

/* Lanes read one after another, each in a stretch of its own, and the first of them once more in another; lane 31 is ordered
 * after all but one, and writes. */
static int n_readers;
static void readers_of_many_stretches(void *unused) {
    (void)unused;
    for (int i = 0; i <= n_readers; i++) {
        const int reader = i % n_readers;
        if (TID == reader || TID == 31)
            SYNC_WARP(1u << reader | 1u << 31);
        if (TID == reader)
            READ(4, &at_simt_scene.both[5]);
        (void)SHUFFLE(FULL, 1, 0);
    }
    for (int i = 0; i < n_readers; i++)
        if (i != left_out && (TID == i || TID == 31))
            SYNC_WARP(1u << i | 1u << 31);
    if (TID == 31)
        PUT(at_simt_scene.both[5], 1);
}
static void test_many_stretches(void **state) {
    (void)state;
    for (n_readers = 2; n_readers <= 31; n_readers++) {
        left_out = -1;
        AT_SIMT_SCENE_SEEDS(at_test_effort(5), readers_of_many_stretches, 1, 32, AT_FINDING_NONE, "");
        for (left_out = 0; left_out < n_readers; left_out++) {
            char reads[64];
            snprintf(reads, sizeof reads, "which thread %d of block 0 reads", left_out);
            AT_SIMT_SCENE_SEEDS(at_test_effort(5), readers_of_many_stretches, 1, 32, AT_FINDING_RACE,
                                "thread 31 writes", reads);
        }
    }
}

/* Readers that need vectors, of two elements, after a launch that left others; lane 20 is ordered after the readers of
 * [9], and not after those of [7]. */
static void two_sets_of_readers(void *unused) {
    (void)unused;
    if (TID == 0)
        READ(4, &at_simt_scene.both[5]);
    (void)SHUFFLE(FULL, 1, 0);
    if (TID == 0 || TID == 2)
        READ(4, &at_simt_scene.both[7]);
    if (TID == 21 || TID == 22)
        READ(4, &at_simt_scene.both[9]);
    (void)SHUFFLE(FULL, 1, 0);
    if (TID <= 1)
        SYNC_WARP(3);
    if (TID == 20 || TID == 21)
        SYNC_WARP(3u << 20);
    if (TID == 1)
        READ(4, &at_simt_scene.both[7]);
    (void)SHUFFLE(FULL, 1, 0);
    if (TID == 20)
        READ(4, &at_simt_scene.both[9]);
    if (TID == 20 || TID == 22)
        SYNC_WARP(5u << 20);
    if (TID == 20)
        PUT(at_simt_scene.both[which], 1);
}

static void test_readers_of_an_earlier_launch(void **state) {
    (void)state;
    left_out = -1;
    for (which = 7; which <= 9; which += 2) {
        at_simt_scene_run(readers_in_a_chain, 1, 32, 1);
        at_simt_scene_expect(AT_FINDING_NONE, NULL);
        at_simt_scene_launch(two_sets_of_readers, (struct at_dim3){ 1, 1, 1 }, (struct at_dim3){ 32, 1, 1 }, 0);
        at_simt_scene_expect(which == 7 ? AT_FINDING_RACE : AT_FINDING_NONE, "byte 28 of both", NULL);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_readers),
        cmocka_unit_test(test_two_of_one_stretch),
        cmocka_unit_test(test_sets_of_readers),
        cmocka_unit_test(test_many_stretches),
        cmocka_unit_test(test_readers_of_an_earlier_launch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
