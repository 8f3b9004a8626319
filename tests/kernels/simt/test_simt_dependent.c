/* The SIMT machine: launches that may begin while the one before them ends.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "kernels/simt/simt_bulk.h"
#include "kernels/simt/simt_cluster.h"
#include "kernels/simt/simt_dependent.h"
#include "tests/support/simt_scene.h"

enum { THREADS = 64, BLOCKS = 6 };
#define AWAIT() at_simt_dependency_wait(HERE_PLACE)

static enum fault {
    RIGHT,
    SHARED_BEFORE, /* right: what is the block's own may be prepared */
    READS_BEFORE,
    WRITES_BEFORE,
    COPIES_BEFORE,
    LOADS_IN_BULK_BEFORE,
    STORES_IN_BULK_BEFORE,
    ANOTHER_HAS_WAITED,
    NOBODY_WAITS,
    A_BLOCK_DOES_NOT,
    ONE_DOES_NOT, /* right: it touches nothing */
} fault;

static void kernel(void *unused) {
    (void)unused;
    SHARED(uint32_t, THREADS, row);
    SHARED(uint64_t, 1, barrier);
    if (fault == SHARED_BEFORE)
        PUT(row[TID], 5);
    if (fault == READS_BEFORE && BID == 3 && TID == 7)
        (void)GET(at_simt_scene.in[2]);
    if (fault == WRITES_BEFORE && BID == 3 && TID == 7)
        PUT(at_simt_scene.out[0], 1);
    if (fault == COPIES_BEFORE && BID == 3 && TID == 7)
        at_simt_copy(row, at_simt_scene.in, 4, HERE_PLACE);
    if (fault == LOADS_IN_BULK_BEFORE && BID == 3 && TID == 7) {
        at_simt_mbarrier_init(barrier, 1, HERE_PLACE);
        at_simt_proxy_fence(HERE_PLACE);
        at_simt_bulk_load(row, at_simt_scene.both, 16, barrier, HERE_PLACE);
    }
    if (fault == STORES_IN_BULK_BEFORE && BID == 3 && TID == 7) {
        for (int i = 0; i < 4; i++)
            PUT(row[i], 1);
        at_simt_proxy_fence(HERE_PLACE);
        at_simt_bulk_store(at_simt_scene.out, row, 16, HERE_PLACE);
    }
    if (fault == NOBODY_WAITS || (fault == A_BLOCK_DOES_NOT && BID == 2) || (fault == ONE_DOES_NOT && TID == 9))
        return;
    if (!(fault == ANOTHER_HAS_WAITED && TID >= 32))
        AWAIT();
    if (fault == ANOTHER_HAS_WAITED)
        SYNC();
    PUT(at_simt_scene.out[BID * THREADS + TID], GET(at_simt_scene.in[TID]));
}

static void launch(void) {
    assert_int_equal(at_simt_launch_cluster(kernel, NULL, 0, (struct at_dim3){ BLOCKS, 1, 1 },
                                            (struct at_dim3){ THREADS, 1, 1 }, 1, 0, NULL),
                     0);
}

static void runs(enum fault wrong, enum at_finding_kind kind, const char *words) {
    fault = wrong;
    for (uint64_t seed = 0; seed <= (uint64_t)at_test_effort(10); seed++) {
        at_simt_scene_job(seed);
        at_simt_next_is_dependent();
        launch();
        at_simt_scene_expect(kind, words, NULL);
    }
}

static void test_right(void **state) {
    (void)state;
    runs(RIGHT, AT_FINDING_NONE, NULL);
    for (int i = 0; i < BLOCKS * THREADS; i++)
        assert_int_equal(at_simt_scene.out[i], i % THREADS + 1);
    runs(SHARED_BEFORE, AT_FINDING_NONE, NULL);
    runs(ONE_DOES_NOT, AT_FINDING_NONE, NULL);
}

static void test_rules(void **state) {
    (void)state;
    runs(READS_BEFORE, AT_FINDING_RACE, "block 3: thread 7 touches in, byte 8, before it has waited");
    runs(WRITES_BEFORE, AT_FINDING_RACE, "block 3: thread 7 touches out, byte 0, before it has waited");
    runs(COPIES_BEFORE, AT_FINDING_RACE, "block 3: thread 7 touches in, byte 0, before it has waited");
    runs(LOADS_IN_BULK_BEFORE, AT_FINDING_RACE, "block 3: thread 7 touches both, byte 0, before it has waited");
    runs(STORES_IN_BULK_BEFORE, AT_FINDING_RACE, "block 3: thread 7 touches out, byte 0, before it has waited");
    runs(ANOTHER_HAS_WAITED, AT_FINDING_RACE, "touches out, byte");
    runs(NOBODY_WAITS, AT_FINDING_RACE, "ends, and no thread of it has waited");
    runs(A_BLOCK_DOES_NOT, AT_FINDING_RACE, "block 2 ends, and no thread of it has waited");
}

/* The rules are those of one launch: the next, and one that cannot be made, have them no more. */
static void test_others(void **state) {
    (void)state;
    fault = NOBODY_WAITS;
    at_simt_scene_job(1);
    launch();
    at_simt_scene_expect(AT_FINDING_NONE, NULL, NULL);
    at_simt_next_is_dependent();
    assert_int_equal(at_simt_launch_cluster(kernel, NULL, 0, (struct at_dim3){ 0, 1, 1 },
                                            (struct at_dim3){ THREADS, 1, 1 }, 1, 0, NULL),
                     9);
    launch();
    at_simt_scene_expect(AT_FINDING_NONE, NULL, NULL);
    at_simt_next_is_dependent();
    launch();
    at_simt_scene_expect(AT_FINDING_RACE, "no thread of it has waited", NULL);
}

/* The call left out, as it is by `selftest --mechanical`. */
static void test_left_out(void **state) {
    (void)state;
    fault = RIGHT;
    at_simt_scene_job(1);
    for (int line = 1; line < 200; line++) {
        at_simt_leave_out((struct at_simt_place){ __FILE__, line });
        at_simt_next_is_dependent();
        launch();
    }
    at_simt_leave_out((struct at_simt_place){ "", 0 });
    at_simt_scene_expect(AT_FINDING_RACE, "touches out, byte", NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right),
        cmocka_unit_test(test_rules),
        cmocka_unit_test(test_others),
        cmocka_unit_test(test_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
