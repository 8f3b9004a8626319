/* The SIMT machine: barriers in shared memory that count arrivals.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "tests/support/simt_scene.h"

#define INIT(b, count) at_simt_mbarrier_init(b, count, HERE_PLACE)
#define ARRIVE(b) at_simt_mbarrier_arrive(b, HERE_PLACE)
#define WAIT(b, parity) at_simt_mbarrier_wait(b, parity, HERE_PLACE)

static int fault_line, init_line;
static char line_texts[2][64];
static const char *at_fault(void) {
    snprintf(line_texts[0], sizeof line_texts[0], "test_simt_mbarrier.c:%d:", fault_line);
    return line_texts[0];
}
static const char *at_init(void) {
    snprintf(line_texts[1], sizeof line_texts[1], "test_simt_mbarrier.c:%d", init_line);
    return line_texts[1];
}

/* Warp 0 fills two stages, warps 1 and 2 each read what it wrote: full and empty barriers, ten rounds. */
static void produces_and_consumes(void *unused) {
    (void)unused;
    SHARED(uint64_t, 4, bar);
    SHARED(uint32_t, 64, stages);
    if (TID == 0)
        for (int s = 0; s < 2; s++) {
            INIT(bar + s, 32);
            INIT(bar + 2 + s, 64);
        }
    SYNC();
    for (int i = 0; i < 10; i++) {
        const int s = i % 2, lane = TID % 32;
        const uint32_t parity = (uint32_t)(i / 2 % 2);
        if (TID < 32) {
            WAIT(bar + 2 + s, parity ^ 1); /* the phase before the first counts as complete */
            PUT(stages[s * 32 + lane], (uint32_t)(100 * i + lane));
            ARRIVE(bar + s);
        } else {
            WAIT(bar + s, parity);
            PUT(at_simt_scene.out[((BID * 2 + TID / 32 - 1) * 10 + i) * 32 + lane], GET(stages[s * 32 + 31 - lane]));
            ARRIVE(bar + 2 + s);
        }
    }
}

static void test_phases(void **state) {
    (void)state;
    for (long seed = 1; seed <= at_test_effort(30); seed++) {
        at_simt_scene_run(produces_and_consumes, 6, 96, (uint64_t)seed);
        at_simt_scene_expect(AT_FINDING_NONE, NULL);
        for (int i = 0; i < 6 * 2 * 10 * 32; i++)
            assert_int_equal(at_simt_scene.out[i], 100 * (i / 32 % 10) + 31 - i % 32);
    }
}

/* Thread 3 writes, arrives, writes once more; thread 9 or 40 waits and reads one of them. */
static int reader, reads_later, waits, arrives;
static void reads_what_arrived(void *unused) {
    (void)unused;
    SHARED(uint64_t, 1, bar);
    SHARED(uint32_t, 2, row);
    if (TID == 3) {
        INIT(bar, 1);
        PUT(row[0], 1);
        PUT(row[1], 1);
    }
    SYNC();
    if (TID == 3) {
        PUT(row[0], 2);
        if (arrives)
            ARRIVE(bar);
        PUT(row[1], 2);
    }
    if (TID == reader) {
        if (waits)
            WAIT(bar, 0);
        fault_line = __LINE__ + 1;
        READ(4, row + reads_later);
    }
}
/* Who waits has no order to those that arrive after: two of 2 phases, of which only the first is waited for. */
static void arrives_twice(void *unused) {
    (void)unused;
    SHARED(uint64_t, 1, bar);
    SHARED(uint32_t, 1, row);
    if (TID == 0)
        INIT(bar, 2);
    SYNC();
    if (TID < 2)
        ARRIVE(bar);
    (void)BALLOT(0xffffffffu, 1);
    if (TID == 1) {
        PUT(row[0], 1);
        ARRIVE(bar); /* half of the second phase */
    }
    (void)BALLOT(0xffffffffu, 1);
    if (TID == 5) {
        WAIT(bar, 0);
        READ(4, row);
    }
}
/* What a thread learned from others before arriving is passed on with its arrival. */
static void passes_on(void *unused) {
    (void)unused;
    SHARED(uint64_t, 2, bar);
    SHARED(uint32_t, 2, row);
    if (TID == 0) {
        INIT(bar, 1);
        INIT(bar + 1, 1);
    }
    SYNC();
    if (TID == 1)
        PUT(row[0], 1);
    if (TID == 1 || TID == 2)
        SYNC_WARP(6);
    if (TID == 2)
        ARRIVE(bar);
    if (TID == 40) {
        WAIT(bar, 0);
        ARRIVE(bar + 1);
    }
    if (TID == 50) {
        WAIT(bar + 1, 0);
        PUT(row[0], 2);
    }
}
static void test_order(void **state) {
    (void)state;
    for (int i = 0; i < 8; i++) {
        reader = i % 2 ? 9 : 40;
        reads_later = i / 2 % 2;
        waits = i / 4;
        arrives = 1;
        AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), reads_what_arrived, 2, 64,
                            waits && !reads_later ? AT_FINDING_NONE : AT_FINDING_RACE, "shared memory",
                            "without an order");
    }
    AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), arrives_twice, 1, 32, AT_FINDING_RACE, "thread 1 of block 0 writes");
    AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), passes_on, 5, 64, AT_FINDING_NONE, "");
}

/* ---- misuse ---- */

static int wrong;
static void misuses(void *unused) {
    (void)unused;
    SHARED(uint64_t, 80, bar);
    uint64_t own = 0;
    init_line = __LINE__ + 2;
    if (TID == 0 && wrong != 0)
        INIT(bar, wrong == 4 ? 0 : wrong == 5 ? 1u << 20 : 64);
    if (wrong == 1 && TID >= 32)
        return;
    if (wrong == 1)
        (void)BALLOT(0xffffffffu, 1); /* comes after, but orders no memory */
    else
        SYNC();
    if (wrong == 3 && TID == 7)
        PUT(*(uint32_t *)bar, 7);
    if (wrong == 3)
        SYNC();
    fault_line = __LINE__ + 1;
    const struct at_simt_place here = HERE_PLACE;
    if (wrong == 2 && TID == 9)
        at_simt_mbarrier_init(bar, 64, here);
    else if (wrong == 6)
        at_simt_mbarrier_arrive((uint8_t *)bar + 4, here);
    else if (wrong == 7)
        at_simt_mbarrier_arrive(at_simt_scene.both, here);
    else if (wrong == 11)
        at_simt_mbarrier_arrive(&own, here);
    else if (wrong == 8)
        at_simt_mbarrier_wait(bar, 2, here);
    else if (wrong == 9 && TID == 9)
        WRITE(8, bar);
    else if (wrong == 10 && TID == 0)
        for (int i = 1; i < 65; i++)
            at_simt_mbarrier_init(bar + i, 1, here);
    else
        at_simt_mbarrier_arrive(bar, here);
}

static void test_misuse(void **state) {
    (void)state;
    static const struct {
        enum at_finding_kind kind;
        const char *say;
    } rows[] = { { AT_FINDING_UNWRITTEN, "which nobody initialised" },
                 { AT_FINDING_RACE, "initialises at" },
                 { AT_FINDING_RACE, "initialises an mbarrier again; before: " },
                 { AT_FINDING_RACE, "written over since its last use" },
                 { AT_FINDING_BOUNDS, "for 0 arrivals" },
                 { AT_FINDING_BOUNDS, "for 1048576 arrivals" },
                 { AT_FINDING_BOUNDS, "not 8 aligned bytes of shared memory" },
                 { AT_FINDING_BOUNDS, "not 8 aligned bytes of shared memory" },
                 { AT_FINDING_RACE, "waits for parity 2" },
                 { AT_FINDING_RACE, "without an order" },
                 { AT_FINDING_BOUNDS, "number 65" },
                 { AT_FINDING_BOUNDS, "not 8 aligned bytes of shared memory" } };
    for (wrong = 0; wrong < (int)(sizeof rows / sizeof *rows); wrong++)
        for (uint64_t seed = 1; seed <= 8; seed++) {
            at_simt_scene_run(misuses, 1, 64, seed);
            at_simt_scene_expect(rows[wrong].kind, rows[wrong].say, NULL);
            if (wrong == 2 || wrong == 1)
                at_simt_scene_expect(rows[wrong].kind, at_init(), NULL);
            if (wrong != 4 && wrong != 5 && wrong != 9)
                at_simt_scene_expect(rows[wrong].kind, at_fault(), NULL);
        }
}

/* An mbarrier of an earlier block in the same memory is none of this block's. */
static void initialised_by_some(void *unused) {
    (void)unused;
    SHARED(uint64_t, 1, bar);
    if (TID == 0 && BID < 8)
        INIT(bar, 32);
    SYNC();
    ARRIVE(bar);
}

static void waits_for_too_many(void *unused) {
    (void)unused;
    SHARED(uint64_t, 2, bar);
    init_line = __LINE__ + 2;
    if (TID == 0)
        INIT(bar, 65);
    SYNC();
    ARRIVE(bar);
    if (TID == 5)
        return;
    fault_line = __LINE__ + 1;
    WAIT(bar, 0);
}

static void test_deadlock(void **state) {
    (void)state;
    AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), initialised_by_some, 16, 32, AT_FINDING_UNWRITTEN, "block");
    AT_SIMT_SCENE_SEEDS(10 * at_test_effort(5), waits_for_too_many, 2, 64, AT_FINDING_DEADLOCK, at_fault(), at_init(),
                        "phase 0 of the mbarrier of", "has 64 arrivals of 65");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_phases),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_misuse),
        cmocka_unit_test(test_deadlock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
