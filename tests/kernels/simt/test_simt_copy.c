/* The SIMT machine: copies that land when they are waited for.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/simt_scene.h"

#define COPY(bytes, to, from) at_simt_copy(to, from, bytes, HERE_PLACE)
#define COMMIT() at_simt_copy_commit(HERE_PLACE)
#define WAIT(but) at_simt_copy_wait(but, HERE_PLACE)

static int copy_line, fault_line;
static char line_texts[2][64];
static const char *copy_place(void) {
    snprintf(line_texts[0], sizeof line_texts[0], "test_simt_copy.c:%d", copy_line);
    return line_texts[0];
}
static const char *at_fault(void) {
    snprintf(line_texts[1], sizeof line_texts[1], "test_simt_copy.c:%d:", fault_line);
    return line_texts[1];
}

/* ---- what is right ---- */

static int width;
/* Two stages: each thread copies its part of the next tile ahead and reads another thread's of the present one. */
static void copies_ahead(void *unused) {
    (void)unused;
    SHARED(uint32_t, 2 * 64 * 4, stages);
    const int words = width / 4, tile = 64 * words;
    COPY(width, stages + TID * words, at_simt_scene.in + TID * words);
    COMMIT();
    for (int i = 0; i < 4; i++) {
        uint32_t *stage = stages + i % 2 * tile, *next = stages + (i + 1) % 2 * tile;
        if (i < 3)
            COPY(width, next + TID * words, at_simt_scene.in + (i + 1) * tile + TID * words);
        COMMIT();
        WAIT(1);
        SYNC();
        for (int w = 0; w < words; w++)
            PUT(at_simt_scene.out[(BID * 4 + i) * tile + TID * words + w], GET(stage[(63 - TID) * words + w]));
        SYNC();
    }
}

static void expect_copied(int blocks) {
    for (int b = 0; b < blocks; b++)
        for (int i = 0; i < 4 * 16 * width; i++) {
            const int words = width / 4, tile = 64 * words, from = i / tile * tile + (63 - i % tile / words) * words;
            assert_int_equal(at_simt_scene.out[b * 4 * tile + i], from + i % words + 1);
        }
}

static void test_copies(void **state) {
    (void)state;
    for (long seed = 1; seed <= at_test_effort(10); seed++)
        for (width = 4; width <= 16; width *= 2) {
            const int blocks = width == 16 ? 3 : 6; /* as many as `out` holds; more than are resident */
            at_simt_scene_run(copies_ahead, (unsigned)blocks, 64, (uint64_t)seed);
            at_simt_scene_expect(AT_FINDING_NONE, NULL);
            expect_copied(blocks);
            at_simt_scene_job((uint64_t)seed);
            at_simt_unchecked(1);
            at_simt_scene_launch(copies_ahead, (struct at_dim3){ 2, 1, 1 }, (struct at_dim3){ 64, 1, 1 }, 0);
            expect_copied(2);
        }
}

/* Looks at the destination behind the machine's back: what is there is what was there until the wait. */
static void looks_early(void *unused) {
    (void)unused;
    SHARED(uint32_t, 4, row);
    const volatile uint32_t *seen = row;
    for (int i = 0; i < 4; i++)
        PUT(row[i], 100);
    for (int i = 0; i < 3; i++) {
        COPY(4, row + i, at_simt_scene.in + i);
        COMMIT();
    }
    COPY(4, row + 3, at_simt_scene.in + 3); /* of no group yet */
    for (int but = 3; but >= 0; but--) {
        WAIT(but);
        for (int i = 0; i < 4; i++)
            PUT(at_simt_scene.out[4 * (3 - but) + i], seen[i]);
    }
    COMMIT();
    WAIT(0);
    PUT(at_simt_scene.out[16], GET(row[3]));
}

static void test_lands_late(void **state) {
    (void)state;
    static const uint32_t want[] = { 100, 100, 100, 100, 1, 100, 100, 100, 1, 2, 100, 100, 1, 2, 3, 100, 4 };
    at_simt_scene_run(looks_early, 1, 1, 1);
    at_simt_scene_expect(AT_FINDING_NONE, NULL);
    for (int i = 0; i < 17; i++)
        at_assert_true(at_simt_scene.out[i] == want[i], "word %d is %u, wanted %u", i, at_simt_scene.out[i], want[i]);
}

/* ---- the destination ---- */

static enum { READS, WRITES, ADDS, COPIES } act;
static int actor, waits; /* waits: for all groups but so many; -1: not at all; -2: for all, but the group is open */
static void meets_a_copy(void *unused) {
    (void)unused;
    SHARED(uint32_t, 64, row);
    if (TID == 3) {
        copy_line = __LINE__ + 1;
        COPY(16, row + 12, at_simt_scene.in);
        if (waits != -2)
            COMMIT();
        if (waits != -1)
            WAIT(waits == -2 ? 0 : waits);
    }
    if (actor != 3)
        SYNC();
    if (TID != actor)
        return;
    fault_line = __LINE__ + 2 + 2 * act;
    if (act == READS)
        READ(4, row + 13);
    else if (act == WRITES)
        WRITE(2, row + 13);
    else if (act == ADDS)
        (void)at_simt_atomic_add_u32(row + 13, 1);
    else
        COPY(8, row + 12, at_simt_scene.in);
    STAY();
}

static void test_in_flight(void **state) {
    (void)state;
    static const int actors[] = { 3, 9, 40 }, how[] = { -2, -1, 0, 1 };
    for (int i = 0; i < 3 * 4 * 4; i++) {
        actor = actors[i % 3];
        waits = how[i / 3 % 4];
        act = i / 12;
        if (waits == 0) {
            AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), meets_a_copy, 2, 64, AT_FINDING_NONE, "");
            continue;
        }
        AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), meets_a_copy, 2, 64, AT_FINDING_RACE, at_fault(), copy_place(),
                            "the copy of thread 3 at", "not been waited for", "shared memory");
    }
}

static int synced;
/* A wait orders for its own thread; others need a barrier. */
static void reads_anothers_copy(void *unused) {
    (void)unused;
    SHARED(uint32_t, 64, row);
    PUT(row[TID], 1);
    SYNC();
    COPY(4, row + TID, at_simt_scene.in + TID);
    COMMIT();
    SYNC(); /* orders the copy's beginning, which is nothing */
    WAIT(0);
    if (synced)
        SYNC();
    PUT(at_simt_scene.both[BID * 64 + TID], GET(row[TID ^ 33]));
}
/* A copy must come after what others did with its destination. */
static void copies_over_readers(void *unused) {
    (void)unused;
    SHARED(uint32_t, 64, row);
    PUT(row[TID], 1);
    SYNC();
    (void)GET(row[TID ^ 33]);
    if (synced)
        SYNC();
    COPY(4, row + TID, at_simt_scene.in + TID);
}
/* The same one after the other, by votes, which order no memory. */
static void copies_after_a_reader(void *unused) {
    (void)unused;
    SHARED(uint32_t, 64, row);
    PUT(row[TID], 1);
    SYNC();
    if (TID == 9)
        READ(4, row + 3);
    (void)BALLOT(0xffffffffu, 1);
    if (TID == 3)
        COPY(4, row + 3, at_simt_scene.in);
}
static void reads_after_landing(void *unused) {
    (void)unused;
    SHARED(uint32_t, 64, row);
    if (TID == 3) {
        COPY(4, row + 3, at_simt_scene.in);
        COMMIT();
    }
    SYNC();
    if (TID == 3)
        WAIT(0);
    (void)BALLOT(0xffffffffu, 1);
    if (TID == 9)
        READ(4, row + 3);
}
static void test_order_of_destination(void **state) {
    (void)state;
    AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), copies_after_a_reader, 2, 32, AT_FINDING_RACE,
                        "thread 3 copies to byte 12 of a variable in shared memory, which thread 9 of block", "reads");
    AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), reads_after_landing, 2, 32, AT_FINDING_RACE,
                        "thread 9 reads byte 12 of a variable in shared memory, which thread 3 of block", "writes");
    for (synced = 0; synced < 2; synced++) {
        const enum at_finding_kind kind = synced ? AT_FINDING_NONE : AT_FINDING_RACE;
        AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), reads_anothers_copy, 6, 64, kind, "shared memory");
        AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), copies_over_readers, 6, 64, kind, "shared memory");
    }
}

/* What nobody waits for is nobody's, and no later block's either. */
static void leaves_copies_behind(void *unused) {
    (void)unused;
    SHARED(uint32_t, 64, row);
    if (BID < 8)
        COPY(4, row + TID, at_simt_scene.both + TID);
    else
        PUT(row[TID], 1);
}
static void neighbour_reads_after(void *unused) {
    (void)unused;
    SHARED(uint32_t, 64, row);
    if (TID == 3)
        COPY(4, row + TID, at_simt_scene.in + TID);
    (void)BALLOT(0xffffffffu, 1);
    if (TID == 3)
        return;
    if (TID == 9)
        READ(4, row + 3);
}
static void writes_later(void *unused) {
    (void)unused;
    PUT(at_simt_scene.both[BID * 64 + TID], 1);
}
static void test_never_waited_for(void **state) {
    (void)state;
    AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), neighbour_reads_after, 2, 32, AT_FINDING_RACE, "copy of thread 3 at");
    for (uint64_t seed = 1; seed <= 10; seed++) {
        at_simt_scene_run(leaves_copies_behind, 16, 64, seed);
        at_simt_scene_launch(writes_later, (struct at_dim3){ 2, 1, 1 }, (struct at_dim3){ 64, 1, 1 }, 0);
        at_simt_scene_expect(AT_FINDING_NONE, NULL);
    }
}

/* ---- the source ---- */

static enum { BEFORE, IN_FLIGHT, LANDED } when;
static int ordered;
/* Thread 3 copies from `both`; the actor writes there. */
static void writes_the_source(void *unused) {
    (void)unused;
    SHARED(uint32_t, 64, row);
    const int acts = TID == actor;
    if (when == BEFORE && acts)
        PUT(at_simt_scene.both[13], 7);
    if (when == BEFORE && ordered)
        SYNC();
    if (TID == 3) {
        copy_line = __LINE__ + 1;
        COPY(16, row + 12, at_simt_scene.both + 12);
        COMMIT();
    }
    if (when == IN_FLIGHT || (when == LANDED && !ordered))
        SYNC(); /* after the copy began, which is not enough */
    if (when == IN_FLIGHT && acts && act == ADDS)
        (void)at_simt_atomic_add_u32(&at_simt_scene.both[13], 1);
    else if (when == IN_FLIGHT && acts)
        PUT(at_simt_scene.both[13], 7);
    if (when == IN_FLIGHT)
        SYNC();
    if (TID == 3)
        WAIT(0);
    if (when == LANDED && ordered)
        SYNC();
    if (when == LANDED && acts)
        PUT(at_simt_scene.both[13], 7);
}

static void test_source(void **state) {
    (void)state;
    static const int actors[] = { 3, 9, 40 };
    for (int i = 0; i < 3 * 2 * 3 * 2; i++) {
        actor = actors[i % 3];
        ordered = i / 3 % 2;
        when = i / 6 % 3;
        act = i / 18 ? ADDS : WRITES;
        const int right = when != IN_FLIGHT && (ordered || actor == 3);
        AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), writes_the_source, 1, 64, right ? AT_FINDING_NONE : AT_FINDING_RACE,
                            "block 0: thread");
        if (when == IN_FLIGHT)
            at_simt_scene_expect(AT_FINDING_RACE, copy_place(), "copies at", NULL);
    }
}

static void copies_unwritten(void *unused) {
    (void)unused;
    SHARED(uint32_t, 64, row);
    fault_line = __LINE__ + 1;
    COPY(4, row, at_simt_scene.out + 2);
}

/* ---- addresses ---- */

static int wrong;
static void copies_wrongly(void *unused) {
    (void)unused;
    SHARED(uint32_t, 64, row);
    uint32_t own[4] = { 0 };
    STAY();
    fault_line = __LINE__ + 1;
    const struct at_simt_place here = HERE_PLACE;
    switch (wrong) {
    case 0:
        at_simt_copy(row + 2, at_simt_scene.in, 16, here);
        break;
    case 1:
        at_simt_copy(row, at_simt_scene.in + 1, 8, here);
        break;
    case 2:
        at_simt_copy((uint8_t *)row + 2, at_simt_scene.in, 4, here);
        break;
    case 3:
        at_simt_copy(at_simt_scene.both, at_simt_scene.in, 4, here);
        break;
    case 4:
        at_simt_copy(row, row + 32, 4, here);
        break;
    case 5:
        at_simt_copy(row, own, 4, here);
        break;
    case 8:
        at_simt_copy(own, at_simt_scene.in, 4, here);
        break;
    case 6:
        at_simt_copy(row + 64, at_simt_scene.in, 16, here);
        break;
    default:
        at_simt_copy(row, at_simt_scene.both + AT_SIMT_SCENE_WORDS - 16, 16, here);
    }
}

static void test_addresses(void **state) {
    (void)state;
    static const char *const say[] = { "copies 16 bytes to an address that is no multiple of 16",
                                       "copies 8 bytes from an address that is no multiple of 8",
                                       "copies 4 bytes to an address that is no multiple of 4",
                                       "to memory that is not shared",
                                       "from memory that is not global",
                                       "from memory that is not global",
                                       "belong to no variable",
                                       "outside every tensor",
                                       "to memory that is not shared" };
    for (wrong = 0; wrong < (int)(sizeof say / sizeof *say); wrong++) {
        at_simt_scene_run(copies_wrongly, 1, 1, 1);
        at_simt_scene_expect(AT_FINDING_BOUNDS, at_fault(), "block 0: thread 0", say[wrong], NULL);
    }
    at_simt_scene_run(copies_unwritten, 1, 1, 1);
    at_simt_scene_expect(AT_FINDING_UNWRITTEN, at_fault(), "byte 8 of out", NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies),           cmocka_unit_test(test_lands_late),
        cmocka_unit_test(test_in_flight),        cmocka_unit_test(test_order_of_destination),
        cmocka_unit_test(test_never_waited_for), cmocka_unit_test(test_source),
        cmocka_unit_test(test_addresses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
