/* The SIMT machine: warps of one block with different work: registers that move between them, arriving without waiting.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "kernels/simt/simt_registers.h"
#include "tests/support/simt_scene.h"

#define GIVE(n) at_simt_registers(0, n, HERE_PLACE)
#define TAKE(n) at_simt_registers(1, n, HERE_PLACE)
#define BARRIER(id, threads) at_simt_named_barrier(id, threads, HERE_PLACE)
#define COME(id, threads) at_simt_named_arrive(id, threads, HERE_PLACE)

/* ---- registers: three warpgroups, 168 each to begin with ---- */

static enum fault {
    RIGHT,
    NOBODY_GIVES,
    GIVES_TOO_LITTLE,
    ONE_WARP_DOES_NOT,
    TWO_PLACES,
    TAKES_FEWER,
    GIVES_MORE,
    NOT_OF_8,
    TOO_MANY,
    TOO_FEW,
    OUTSIDE
} fault;

static void moves_registers(void *unused) {
    (void)unused;
    const int group = TID / 128;
    if (group > 0 || fault == OUTSIDE) {
        TAKE(fault == TAKES_FEWER ? 160 : fault == NOT_OF_8 ? 236 : fault == TOO_MANY ? 264 : 240);
        return;
    }
    if (fault == NOBODY_GIVES)
        return;
    if (fault == ONE_WARP_DOES_NOT && TID / 32 == 2)
        return;
    if (fault == TWO_PLACES && TID / 32 == 2)
        GIVE(24);
    else
        GIVE(fault == GIVES_TOO_LITTLE ? 32 : fault == GIVES_MORE ? 176 : fault == TOO_FEW ? 16 : 24);
}

static void registers(enum fault wrong, int threads, enum at_finding_kind kind, const char *words) {
    fault = wrong;
    AT_SIMT_SCENE_SEEDS(at_test_effort(20), moves_registers, 2, (unsigned)threads, kind, words);
}

static void test_registers(void **state) {
    (void)state;
    registers(RIGHT, 384, AT_FINDING_NONE, NULL);
    registers(NOBODY_GIVES, 384, AT_FINDING_DEADLOCK, "for 240 registers a thread instead of 168, 0 are free");
    registers(GIVES_TOO_LITTLE, 384, AT_FINDING_DEADLOCK, "for 240 registers a thread instead of 168, 8192 are free");
    registers(ONE_WARP_DOES_NOT, 384, AT_FINDING_DEADLOCK, "3 warps of warpgroup 0 at the setmaxnreg of");
    registers(TWO_PLACES, 384, AT_FINDING_RACE, "while another warp of its warpgroup is at that of");
    registers(TAKES_FEWER, 384, AT_FINDING_BOUNDS, "from 168 registers to 160, which is not more");
    registers(GIVES_MORE, 384, AT_FINDING_BOUNDS, "from 168 registers to 176, which is not fewer");
    registers(NOT_OF_8, 384, AT_FINDING_BOUNDS, "sets 236 registers");
    registers(TOO_MANY, 384, AT_FINDING_BOUNDS, "sets 264 registers");
    registers(TOO_FEW, 384, AT_FINDING_BOUNDS, "sets 16 registers");
    registers(OUTSIDE, 96, AT_FINDING_RACE, "outside a warpgroup");
}

/* ---- turns: two groups of two warps take turns at one place in memory ---- */

enum { TURNS = 5, GROUP = 64 };
static enum turn_fault {
    TURN_RIGHT,
    NOBODY_BEGINS,
    NO_TURN_WAITED_FOR,
    NO_TURN_GIVEN,
    TURN_GIVEN_TO_ITSELF,
    TURN_GIVEN_TOO_EARLY,
    ARRIVES_WHILE_WAITING,
    ANOTHER_COUNT
} turn_fault;

static void takes_turns(void *unused) {
    (void)unused;
    SHARED(uint32_t, GROUP, row);
    const int group = TID / GROUP, lane = TID % GROUP;
    const int given = turn_fault == TURN_GIVEN_TO_ITSELF ? group : 1 - group;
    if (group == 1)
        PUT(row[lane], 0);
    if (group == 1 && turn_fault != NOBODY_BEGINS)
        COME(1, 2 * GROUP);
    for (int i = 0; i < TURNS; i++) {
        if (turn_fault != NO_TURN_WAITED_FOR || i < 2)
            BARRIER(1 + group, turn_fault == ANOTHER_COUNT && group == 0 && i == 1 ? GROUP : 2 * GROUP);
        if (turn_fault == TURN_GIVEN_TOO_EARLY && !(group == 1 && i == TURNS - 1))
            COME(1 + given, 2 * GROUP);
        PUT(row[lane], 3 * GET(row[lane]) + (uint32_t)group + 1);
        if (turn_fault != TURN_GIVEN_TOO_EARLY && turn_fault != NO_TURN_GIVEN && !(group == 1 && i == TURNS - 1))
            COME(1 + given, 2 * GROUP);
        if (turn_fault == ARRIVES_WHILE_WAITING && group == 1 && i == 0)
            COME(1, 2 * GROUP); /* once more, before the first could have waited for it */
    }
    if (group == 1)
        PUT(at_simt_scene.out[BID * GROUP + lane], GET(row[lane]));
}

static void turns(enum turn_fault wrong, enum at_finding_kind kind, const char *words) {
    turn_fault = wrong;
    uint32_t want = 0;
    for (int i = 0; i < 2 * TURNS; i++)
        want = 3 * want + (uint32_t)(i % 2) + 1;
    for (uint64_t seed = 0; seed <= (uint64_t)at_test_effort(30); seed++) {
        at_simt_scene_run(takes_turns, 3, 2 * GROUP, seed);
        at_simt_scene_expect(kind, words, NULL);
        for (int i = 0; i < 3 * GROUP && kind == AT_FINDING_NONE; i++)
            assert_int_equal(at_simt_scene.out[i], want);
    }
}

static void test_turns(void **state) {
    (void)state;
    turns(TURN_RIGHT, AT_FINDING_NONE, NULL);
    turns(NOBODY_BEGINS, AT_FINDING_DEADLOCK, "at barrier 1 64 threads of 128");
    turns(NO_TURN_GIVEN, AT_FINDING_DEADLOCK, "at barrier");
    turns(NO_TURN_WAITED_FOR, AT_FINDING_RACE, "");
    turns(TURN_GIVEN_TO_ITSELF, AT_FINDING_RACE, "where it has arrived already");
    turns(TURN_GIVEN_TOO_EARLY, AT_FINDING_RACE, "shared memory, which thread");
    turns(ARRIVES_WHILE_WAITING, AT_FINDING_RACE, "");
    turns(ANOTHER_COUNT, AT_FINDING_RACE, "barrier 1 for");
}

/* What is done after arriving is not ordered before what waits. */
static int writes_later;
static void passes_by(void *unused) {
    (void)unused;
    SHARED(uint32_t, 2, row);
    if (TID < 32) {
        if (TID == 3)
            PUT(row[0], 1);
        COME(4, 64);
        if (TID == 3 && writes_later)
            PUT(row[1], 1);
        return;
    }
    BARRIER(4, 64);
    for (int i = 0; i < 20; i++)
        (void)BALLOT(0xffffffffu, 1); /* meanwhile the other warp goes on */
    if (TID == 40)
        (void)GET(row[writes_later]);
}

static void one_lane_arrives(void *unused) {
    (void)unused;
    if (TID % 32 != 7)
        COME(3, 64);
}
static void ids(void *unused) {
    (void)unused;
    COME(16, 64);
}

static void test_arriving(void **state) {
    (void)state;
    writes_later = 0;
    AT_SIMT_SCENE_SEEDS(at_test_effort(30), passes_by, 4, 64, AT_FINDING_NONE, NULL);
    writes_later = 1;
    AT_SIMT_SCENE_SEEDS(at_test_effort(30), passes_by, 4, 64, AT_FINDING_RACE, "without an order");
    AT_SIMT_SCENE_SEEDS(at_test_effort(10), one_lane_arrives, 1, 64, AT_FINDING_RACE, "has left the kernel");
    AT_SIMT_SCENE_SEEDS(at_test_effort(10), ids, 1, 64, AT_FINDING_RACE, "is at barrier 16; there are 1 to 15");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_registers),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_arriving),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
