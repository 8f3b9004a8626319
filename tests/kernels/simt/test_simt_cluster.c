/* The SIMT machine: clusters, their barrier, and shared memory of other blocks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "kernels/simt/simt_cluster.h"
#include "tests/support/simt_scene.h"

enum { THREADS = 64, BLOCKS = 16 };
#define COME() at_simt_cluster_arrive(HERE_PLACE, 1)
#define COME_RELAXED() at_simt_cluster_arrive(HERE_PLACE, 0)
#define WAIT() at_simt_cluster_wait(HERE_PLACE)
#define THERE(p, rank) ((uint32_t *)at_simt_cluster_map(p, rank, HERE_PLACE))

static int size;
static enum fault {
    RIGHT,
    NO_BARRIER_BEFORE_READING,
    NO_BARRIER_BEFORE_LEAVING,
    NO_BARRIER_AT_ALL,
    ARRIVES_RELAXED,
    NO_BARRIER_BEFORE_WRITING,
    WRITES_BETWEEN,
    WRITES_AFTER_READING,
    WRITTEN_WHILE_READ,
    ONLY_A_BLOCK_BARRIER,
    WAITS_WITHOUT_ARRIVING,
    ARRIVES_TWICE,
    ONE_DOES_NOT_COME,
    RANK_TOO_HIGH,
    NOT_SHARED,
    PAST_THE_VARIABLE,
    LEAVES_EARLY, /* right: who has left is not waited for */
} fault;

/* Meanwhile other warps and blocks go on; orders nothing. */
static void idle(void) {
    for (int i = 0; i < 20; i++)
        (void)BALLOT(0xffffffffu, 1);
}

static void synchronise(void) {
    COME();
    WAIT();
}

/* Every block reads the row of the next, then writes into it what it adds up. */
static void exchanges(void *unused) {
    (void)unused;
    SHARED(uint32_t, THREADS, row);
    const int rank = at_simt_cluster_rank(), next = (rank + 1) % at_simt_cluster_size();
    assert_int_equal(rank, BID % size);
    assert_int_equal(at_simt_cluster_size(), size);
    if (fault == LEAVES_EARLY && TID >= 48)
        return;
    const int threads = fault == LEAVES_EARLY ? 48 : THREADS;
    PUT(row[TID], (uint32_t)(100 * BID + TID));
    if (fault == WAITS_WITHOUT_ARRIVING && TID == 5)
        WAIT();
    if (fault == ARRIVES_TWICE && TID == 5)
        COME();
    if (fault == ONLY_A_BLOCK_BARRIER)
        SYNC();
    else if (fault == WRITES_BETWEEN) {
        COME();
        PUT(row[TID], (uint32_t)(100 * BID + TID));
        WAIT();
    } else if (fault == ARRIVES_RELAXED) {
        COME_RELAXED();
        WAIT();
    } else if (fault != NO_BARRIER_AT_ALL && !(fault == ONE_DOES_NOT_COME && BID == size - 1 && TID == 7)) {
        synchronise();
    }
    if (fault == ONE_DOES_NOT_COME)
        SYNC();
    if (fault == NO_BARRIER_BEFORE_READING)
        PUT(row[TID], (uint32_t)(100 * BID + TID));
    uint32_t *there =
        fault == NOT_SHARED ? THERE(at_simt_scene.both, next) : THERE(row, fault == RANK_TOO_HIGH ? size : next);
    const uint32_t sum = GET(there[(TID + 1) % threads + (fault == PAST_THE_VARIABLE) * THREADS]);
    if (fault == WRITTEN_WHILE_READ) {
        idle();
        PUT(row[TID], 0);
    }
    if (fault != NO_BARRIER_BEFORE_WRITING)
        synchronise();
    if (fault == NO_BARRIER_BEFORE_LEAVING) {
        if (rank % 2 == 0) /* reaches the others, which leave later */
            PUT(there[TID], sum + 1);
        else
            idle();
        return;
    }
    PUT(there[TID], sum + 1);
    synchronise();
    PUT(at_simt_scene.out[BID * THREADS + TID], GET(row[TID]));
}

static void check_out(void) {
    const int threads = fault == LEAVES_EARLY ? 48 : THREADS;
    for (int i = 0; i < BLOCKS * THREADS; i++) {
        const int block = i / THREADS, thread = i % THREADS;
        if (thread < threads) /* the block before this one read this one's row, and wrote it */
            assert_int_equal(at_simt_scene.out[i], 100 * block + (thread + 1) % threads + 1);
    }
}

static void runs(enum fault wrong, enum at_finding_kind kind, const char *words) {
    fault = wrong;
    for (uint64_t seed = 0; seed <= (uint64_t)at_test_effort(10); seed++) {
        at_simt_scene_job(seed);
        const int code = at_simt_launch_cluster(exchanges, NULL, 0, (struct at_dim3){ BLOCKS, 1, 1 },
                                                (struct at_dim3){ THREADS, 1, 1 }, size, 0, NULL);
        assert_int_equal(code, 0);
        at_simt_scene_expect(kind, words, NULL);
        if (kind == AT_FINDING_NONE)
            check_out();
    }
}

static void test_exchange(void **state) {
    (void)state;
    for (size = 2; size <= 16; size *= 2) {
        runs(RIGHT, AT_FINDING_NONE, NULL);
        runs(LEAVES_EARLY, AT_FINDING_NONE, NULL);
    }
}

static void test_rules(void **state) {
    (void)state;
    for (size = 2; size <= 4; size *= 2) {
        runs(NO_BARRIER_BEFORE_READING, AT_FINDING_RACE, "without an order between them");
        runs(ARRIVES_RELAXED, AT_FINDING_RACE, "without an order between them");
        runs(NO_BARRIER_BEFORE_WRITING, AT_FINDING_RACE, "without an order between them");
        runs(WRITES_BETWEEN, AT_FINDING_RACE, "without an order between them");
        runs(WRITTEN_WHILE_READ, AT_FINDING_RACE, "without an order between them");
        runs(NO_BARRIER_AT_ALL, AT_FINDING_RACE, "which no barrier of the cluster shows to have begun");
        runs(ONLY_A_BLOCK_BARRIER, AT_FINDING_RACE, "which no barrier of the cluster shows to have begun");
        runs(NO_BARRIER_BEFORE_LEAVING, AT_FINDING_RACE, "may reach its shared memory");
        runs(WAITS_WITHOUT_ARRIVING, AT_FINDING_RACE, "where it has not arrived");
        runs(ARRIVES_TWICE, AT_FINDING_RACE, "again before it has waited");
        runs(ONE_DOES_NOT_COME, AT_FINDING_DEADLOCK, "at the barrier of the cluster");
        runs(RANK_TOO_HIGH, AT_FINDING_BOUNDS, "of a cluster of");
        runs(NOT_SHARED, AT_FINDING_BOUNDS, "not shared memory");
        runs(PAST_THE_VARIABLE, AT_FINDING_BOUNDS, "belong to no variable");
    }
}

/* Global memory between blocks of one cluster, and of two. */
static int across;
static void passes_on(void *unused) {
    (void)unused;
    if (BID % 2 == 0)
        PUT(at_simt_scene.both[BID / 2 * THREADS + TID], 7);
    synchronise();
    const int from = across ? (BID / 2 + 1) % (BLOCKS / 2) : BID / 2;
    if (BID % 2)
        PUT(at_simt_scene.out[BID * THREADS + TID], GET(at_simt_scene.both[from * THREADS + TID]));
}

static void test_global_memory(void **state) {
    (void)state;
    size = 2;
    for (across = 0; across < 2; across++)
        for (uint64_t seed = 0; seed <= (uint64_t)at_test_effort(10); seed++) {
            at_simt_scene_job(seed);
            at_simt_launch_cluster(passes_on, NULL, 0, (struct at_dim3){ BLOCKS, 1, 1 },
                                   (struct at_dim3){ THREADS, 1, 1 }, size, 0, NULL);
            at_simt_scene_expect(across ? AT_FINDING_RACE : AT_FINDING_NONE, "without an order between them", NULL);
        }
}

/* To begin with an arrival that orders nothing is enough to know that the others are there. */
static void writes_once_all_have_begun(void *unused) {
    (void)unused;
    SHARED(uint32_t, THREADS, row);
    const int next = (at_simt_cluster_rank() + 1) % at_simt_cluster_size();
    COME_RELAXED();
    WAIT();
    PUT(THERE(row, next)[TID], (uint32_t)(BID + 1));
    synchronise();
    PUT(at_simt_scene.out[BID * THREADS + TID], GET(row[TID]));
}

static void test_relaxed_arrival(void **state) {
    (void)state;
    size = 4;
    for (uint64_t seed = 0; seed <= (uint64_t)at_test_effort(10); seed++) {
        at_simt_scene_job(seed);
        at_simt_launch_cluster(writes_once_all_have_begun, NULL, 0, (struct at_dim3){ BLOCKS, 1, 1 },
                               (struct at_dim3){ THREADS, 1, 1 }, size, 0, NULL);
        at_simt_scene_expect(AT_FINDING_NONE, NULL, NULL);
        for (int i = 0; i < BLOCKS * THREADS; i++) /* by the block before */
            assert_int_equal(at_simt_scene.out[i], i / THREADS / size * size + (i / THREADS + size - 1) % size + 1);
    }
}

static void nothing(void *unused) { (void)unused; }

static void test_sizes(void **state) {
    (void)state;
    static const int sizes[] = { 0, 3, 32, -1, 1, 8, 16 };
    at_simt_scene_job(1);
    for (int i = 0; i < 7; i++) {
        const int code = at_simt_launch_cluster(nothing, NULL, 0, (struct at_dim3){ BLOCKS, 1, 1 },
                                                (struct at_dim3){ THREADS, 1, 1 }, sizes[i], 0, NULL);
        assert_int_equal(code, i < 4 ? 912 : 0); /* cudaErrorInvalidClusterSize */
    }
    assert_int_equal(at_simt_launch_cluster(nothing, NULL, 0, (struct at_dim3){ BLOCKS + 1, 1, 1 },
                                            (struct at_dim3){ THREADS, 1, 1 }, 2, 0, NULL),
                     912);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_exchange),        cmocka_unit_test(test_rules), cmocka_unit_test(test_global_memory),
        cmocka_unit_test(test_relaxed_arrival), cmocka_unit_test(test_sizes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
