/* The numeric environment is refused when it is wrong; parallel loops visit everything once and report
 * the lowest failure at any thread count.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include <fenv.h>
#include <sched.h>
#include <time.h>

#include "attest/env.h"

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

static void test_good_environment(void **state) {
    (void)state;
    at_assert_ok(at_env_check());
}

static void test_rounding_modes_are_refused(void **state) {
    (void)state;
    static const int modes[] = { FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
    for (int i = 0; i < 3; i++) {
        assert_int_equal(fesetround(modes[i]), 0);
        at_status status = at_env_check();
        fesetround(FE_TONEAREST);
        assert_int_equal(status, AT_ENVIRONMENT);
        assert_non_null(strstr(at_error_message(), "round to nearest"));
    }
    at_assert_ok(at_env_check());
}

/* What -ffast-math's start-up code sets: flush results (bit 15), take operands as zero (bit 6). Only x86
 * has a portable way to set them; elsewhere the check has nothing to be shown. */
static void test_flushed_subnormals_are_refused(void **state) {
    (void)state;
#if defined(__x86_64__)
    static const unsigned bits[] = { 0x8000, 0x0040, 0x8040 };
    for (int i = 0; i < 3; i++) {
        unsigned saved = _mm_getcsr();
        _mm_setcsr(saved | bits[i]);
        at_status status = at_env_check();
        _mm_setcsr(saved);
        assert_int_equal(status, AT_ENVIRONMENT);
        assert_non_null(strstr(at_error_message(), "flushed to zero"));
    }
#else
    skip();
#endif
    at_assert_ok(at_env_check());
}

static void test_threads(void **state) {
    (void)state;
    static const char *const bad[] = { "", "0", "-3", "two", "4x", " 4", "+4", "257", "99999999999999999999", "1e2" };
    unsetenv("AT_THREADS");
    int processors = at_threads();
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    assert_int_equal(processors, CPU_COUNT(&allowed) < 256 ? CPU_COUNT(&allowed) : 256);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        setenv("AT_THREADS", bad[i], 1);
        assert_int_equal(at_threads(), processors);
    }
    static const int good[] = { 1, 2, 7, 100, 256 };
    for (int i = 0; i < 5; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d", good[i]);
        setenv("AT_THREADS", text, 1);
        assert_int_equal(at_threads(), good[i]);
    }
    unsetenv("AT_THREADS");
}

/* What a worker of a loop is told, and what it tells itself. */
static at_status look_and_tell(void *context, int64_t begin, int64_t end, int worker) {
    int *seen = context;
    (void)end;
    (void)worker;
    seen[begin] = at_threads();
    at_threads_use(9);
    return AT_OK;
}

static void test_told_threads(void **state) {
    (void)state;
    int seen[64];
    setenv("AT_THREADS", "7", 1);
    assert_int_equal(at_threads_use(3), 0);
    assert_int_equal(at_threads(), 3);
    at_assert_ok(at_parallel(1, 1, 4, look_and_tell, seen)); /* alone, however many are allowed: as the caller */
    assert_int_equal(seen[0], 3);
    assert_int_equal(at_threads(), 3); /* nothing that a worker was told is left behind */
    for (int turn = 0; turn < 2; turn++) {
        at_assert_ok(at_parallel(64, 1, 2, look_and_tell, seen));
        int alone = 0;
        for (int i = 0; i < 64; i++) {
            assert_true(seen[i] == 1 || seen[i] == 9);
            alone += seen[i] == 1;
        }
        assert_in_range(alone, 1, 2); /* once each worker */
        assert_int_equal(at_threads(), turn ? 7 : 3);
        assert_int_equal(at_threads_use(0), turn ? 0 : 3);
    }
    assert_int_equal(at_threads_use(1000), 0);
    assert_int_equal(at_threads(), 256);
    assert_int_equal(at_threads_use(0), 1000);
    assert_int_equal(at_threads(), 7);
    unsetenv("AT_THREADS");
}

enum { MAX = 4096, WORKERS = 256 };

/* What a loop saw: visits of each index, chunk bounds, and whether a worker was in two chunks at once. */
struct visits {
    unsigned char count[MAX];
    int64_t begin_of[MAX];
    int threads, clash;
    int busy[WORKERS];
};

static at_status visit(void *context, int64_t begin, int64_t end, int worker) {
    struct visits *visits = context;
    if (worker < 0 || worker >= visits->threads || __atomic_exchange_n(&visits->busy[worker], 1, __ATOMIC_SEQ_CST))
        __atomic_store_n(&visits->clash, 1, __ATOMIC_SEQ_CST);
    for (int64_t i = begin; i < end; i++) {
        visits->count[i]++;
        visits->begin_of[i] = begin;
    }
    __atomic_store_n(&visits->busy[worker < 0 ? 0 : worker], 0, __ATOMIC_SEQ_CST);
    return AT_OK;
}

static const int thread_counts[] = { 1, 2, 3, 7, 16, 64 };
enum { COUNTS = sizeof thread_counts / sizeof thread_counts[0] };

static void test_everything_once(void **state) {
    (void)state;
    static const int64_t sizes[] = { 0, 1, 7, 64, 1000, MAX };
    static const int64_t chunks[] = { 0, 3, 64, 5000, INT64_MAX, -1 };
    static struct visits visits;
    for (int s = 0; s < 6; s++)
        for (int c = 0; c < 6; c++)
            for (int t = 0; t < COUNTS; t++) {
                memset(&visits, 0, sizeof visits);
                visits.threads = thread_counts[t];
                at_assert_ok(at_parallel(sizes[s], chunks[c], thread_counts[t], visit, &visits));
                assert_int_equal(visits.clash, 0);
                for (int64_t i = 0; i < MAX; i++) {
                    assert_int_equal(visits.count[i], i < sizes[s]);
                    if (i < sizes[s] && chunks[c] > 0) /* bounds do not depend on the threads */
                        assert_true(visits.begin_of[i] == i / chunks[c] * chunks[c]);
                }
            }
    memset(&visits, 0, sizeof visits);
    visits.threads = 1;
    at_assert_ok(at_parallel(-5, 1, 2, visit, &visits));
    at_assert_ok(at_parallel(10, 1, 0, visit, &visits)); /* no thread asked for is the calling one */
    assert_int_equal(visits.count[9], 1);
    visits.threads = WORKERS;
    at_assert_ok(at_parallel(MAX, 1, 100000, visit, &visits));
    assert_int_equal(visits.clash, 0);
}

/* Fails on the chunks marked; earlier chunks take longer, so that a later failure is often the first. */
struct trap {
    const unsigned char *fails;
    int ran[MAX];
};

static at_status step_on(void *context, int64_t begin, int64_t end, int worker) {
    struct trap *trap = context;
    volatile unsigned waste = 0;
    (void)worker;
    __atomic_store_n(&trap->ran[begin], 1, __ATOMIC_SEQ_CST);
    for (int i = 0; i < (begin < 20 ? 20000 : 10); i++)
        waste = waste + 1;
    if (trap->fails[begin])
        return AT_FAIL(begin % 2 ? AT_IO : AT_USAGE, "rows %lld to %lld", (long long)begin, (long long)end);
    return AT_OK;
}

static at_status call_trap(int64_t n, int threads, struct trap *trap) {
    AT_TRY(at_parallel(n, 1, threads, step_on, trap));
    return AT_OK;
}

static void test_lowest_failure(void **state) {
    (void)state;
    static unsigned char fails[MAX];
    static struct trap trap;
    long rounds = at_test_effort(10) * 10;
    unsigned random = 12345;
    for (int t = 0; t < COUNTS; t++)
        for (long round = 0; round < rounds; round++) {
            int64_t n = 200, lowest = n;
            memset(fails, 0, sizeof fails);
            memset(&trap, 0, sizeof trap);
            trap.fails = fails;
            for (int k = 0; k <= round % 5; k++) {
                random = random * 1664525u + 1013904223u;
                int64_t at = (int64_t)(random >> 8) % n;
                fails[at] = 1;
                lowest = at < lowest ? at : lowest;
            }
            char message[64];
            snprintf(message, sizeof message, "rows %lld to %lld", (long long)lowest, (long long)lowest + 1);
            at_error_clear();
            at_assert_fails(call_trap(n, thread_counts[t], &trap), lowest % 2 ? AT_IO : AT_USAGE, message);
            assert_string_equal(at_error_message(), message);
            assert_non_null(strstr(at_error_trail(), "(step_on)"));
            assert_non_null(strstr(at_error_trail(), "(call_trap)"));
            for (int64_t i = 0; i < lowest; i++)
                assert_int_equal(trap.ran[i], 1);
        }
}

/* Chunk 0 fails only after chunk 1 has, for sure: it waits for that, and then a little for the loop to have
 * taken note. A loop that runs them one after the other is waited for no longer than two seconds. */
static at_status fail_backwards(void *context, int64_t begin, int64_t end, int worker) {
    int *second_failed = context;
    struct timespec pause = { .tv_nsec = 20000000 };
    (void)end, (void)worker;
    if (begin == 1) {
        __atomic_store_n(second_failed, 1, __ATOMIC_SEQ_CST);
        return AT_FAIL(AT_IO, "the second");
    }
    for (int i = 0; i < 100 && !__atomic_load_n(second_failed, __ATOMIC_SEQ_CST); i++)
        nanosleep(&pause, NULL);
    nanosleep(&pause, NULL);
    return AT_FAIL(AT_USAGE, "the first");
}

static void test_lowest_failure_comes_last(void **state) {
    (void)state;
    for (int round = 0; round < 5; round++) {
        int second_failed = 0;
        at_assert_fails(at_parallel(2, 1, 2, fail_backwards, &second_failed), AT_USAGE, "the first");
        assert_int_equal(second_failed, 1); /* or the order was never the one meant */
    }
}

/* After a failure nothing new is started: with one thread, nothing behind the failing chunk. */
static void test_stops_after_failure(void **state) {
    (void)state;
    static unsigned char fails[MAX];
    static struct trap trap = { .fails = fails };
    fails[10] = 1;
    at_assert_fails(call_trap(MAX, 1, &trap), AT_USAGE, "rows 10 to 11");
    assert_int_equal(trap.ran[10], 1);
    for (int i = 11; i < MAX; i++)
        assert_int_equal(trap.ran[i], 0);
}

static at_status all_fail(void *context, int64_t begin, int64_t end, int worker) {
    (void)context, (void)end, (void)worker;
    return AT_FAIL(AT_BUG, "chunk at %lld", (long long)begin);
}

static void test_all_fail(void **state) {
    (void)state;
    for (int t = 0; t < COUNTS; t++)
        at_assert_fails(at_parallel(1000, 10, thread_counts[t], all_fail, NULL), AT_BUG, "chunk at 0");
}

static at_status inner(void *context, int64_t begin, int64_t end, int worker) {
    (void)worker;
    __atomic_fetch_add((int64_t *)context, end - begin, __ATOMIC_SEQ_CST);
    return AT_OK;
}

static at_status outer(void *context, int64_t begin, int64_t end, int worker) {
    (void)worker;
    for (int64_t i = begin; i < end; i++)
        AT_TRY(at_parallel(17, 2, 3, inner, context));
    return AT_OK;
}

/* A loop within a loop, and a success that leaves the caller's trail alone. */
static void test_nested_and_quiet(void **state) {
    (void)state;
    int64_t total = 0;
    (void)AT_FAIL(AT_IO, "from before");
    at_assert_ok(at_parallel(23, 1, 4, outer, &total));
    assert_int_equal(total, 17 * 23);
    assert_string_equal(at_error_message(), "from before");
}

static void test_seconds(void **state) {
    (void)state;
    struct timespec pause = { .tv_nsec = 2000000 };
    double before = at_seconds();
    assert_int_equal(nanosleep(&pause, NULL), 0);
    double passed = at_seconds() - before;
    assert_true(passed >= 0.002 && passed < 60);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good_environment),
        cmocka_unit_test(test_rounding_modes_are_refused),
        cmocka_unit_test(test_flushed_subnormals_are_refused),
        cmocka_unit_test(test_threads),
        cmocka_unit_test(test_told_threads),
        cmocka_unit_test(test_everything_once),
        cmocka_unit_test(test_lowest_failure),
        cmocka_unit_test(test_lowest_failure_comes_last),
        cmocka_unit_test(test_stops_after_failure),
        cmocka_unit_test(test_all_fail),
        cmocka_unit_test(test_nested_and_quiet),
        cmocka_unit_test(test_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
