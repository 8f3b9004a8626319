/* The numeric environment, thread count, row-parallel loops, time.
 * SPDX-License-Identifier: Apache-2.0 */
#include "attest/env.h"

#include <fenv.h>
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

enum { MAX_THREADS = 256 };

/* Every operand below is read through volatile: the arithmetic must happen when the program runs. The
 * comparison shows operands taken as zero, the product results flushed to it. */
static int subnormals_live(void) {
    volatile double least = DBL_MIN, half = 0.5, made = least * half;
    volatile float least_f = FLT_MIN, half_f = 0.5f, made_f = least_f * half_f;
    return made > 0 && made_f > 0;
}

static int rounds_to_nearest_even(void) {
    volatile double one = 1, tie = 0x1p-53, odd = 1 + 0x1p-52;
    volatile float one_f = 1, tie_f = 0x1p-24f, odd_f = 1 + 0x1p-23f;
    volatile double down = one + tie, up = odd + tie, negative = -one - tie;
    volatile float down_f = one_f + tie_f, up_f = odd_f + tie_f;
    return fegetround() == FE_TONEAREST && down == 1 && negative == -1 && up == 1 + 0x1p-51 && down_f == 1 &&
           up_f == 1 + 0x1p-22f;
}

static int specials_behave(void) {
    volatile double zero = 0, one = 1, largest = DBL_MAX;
    volatile double infinity = one / zero, nan_made = zero / zero, overflowed = largest + largest;
    return isinf(infinity) && infinity > largest && isnan(nan_made) && nan_made != nan_made && !(nan_made <= one) &&
           isinf(overflowed) && !isfinite(nan_made);
}

/* x*x - 1 with x = 1 + 2^-30 rounds x*x first when products and sums stay apart, and fma() does not. */
static int contraction_as_written(void) {
    volatile double a = 1 + 0x1p-30, minus_one = -1;
    volatile double apart = a * a + minus_one, fused = fma(a, a, minus_one);
    return apart == 0x1p-29 && fused == 0x1p-29 + 0x1p-60;
}

at_status at_env_check(void) {
    if (!subnormals_live())
        return AT_FAIL(AT_ENVIRONMENT, "subnormal numbers are flushed to zero; wanted gradual underflow (was this "
                                       "program or a library of it linked with -ffast-math or -Ofast?)");
    if (!rounds_to_nearest_even())
        return AT_FAIL(AT_ENVIRONMENT,
                       "sums do not round to nearest, ties to even (rounding mode %d); wanted that "
                       "of IEEE 754",
                       fegetround());
    if (!specials_behave())
        return AT_FAIL(AT_ENVIRONMENT, "NaN or infinity do not behave as IEEE 754 wants; was attest compiled with "
                                       "-ffinite-math-only?");
    if (!contraction_as_written())
        return AT_FAIL(AT_ENVIRONMENT, "a*b + c is computed with one rounding, or fma() with two; attest is to be "
                                       "compiled with -ffp-contract=off");
    return AT_OK;
}

static _Thread_local int told; /* 0: nothing */

int at_threads_use(int threads) {
    const int before = told;
    told = threads;
    return before;
}

int at_threads(void) {
    if (told > 0)
        return told < MAX_THREADS ? told : MAX_THREADS;
    const char *text = getenv("AT_THREADS");
    if (text && text[0] >= '0' && text[0] <= '9') {
        char *end;
        long threads = strtol(text, &end, 10);
        if (*end == 0 && threads >= 1 && threads <= MAX_THREADS)
            return (int)threads;
    }
    cpu_set_t allowed;
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return 1; /* more processors than the set has room for: AT_THREADS is there for such machines */
    int threads = CPU_COUNT(&allowed);
    return threads < MAX_THREADS ? threads : MAX_THREADS;
}

/* One parallel loop. Chunks are handed out in ascending order and none after a failure, so every chunk
 * below a failing one has been handed out and runs to its end: the lowest failure is always found. */
struct loop {
    int64_t n, chunk;
    int64_t threads; /* at most at work */
    at_status (*work)(void *context, int64_t begin, int64_t end, int worker);
    void *context;
    pthread_mutex_t lock; /* guards what follows */
    int64_t next;
    at_status status;
    int64_t failed; /* begin of the lowest failing chunk */
    struct at_error_copy error;
};

struct worker {
    struct loop *loop;
    int index;
};

static int take(struct loop *loop, int64_t *begin, int64_t *end) {
    pthread_mutex_lock(&loop->lock);
    int some = loop->status == AT_OK && loop->next < loop->n;
    if (some) {
        *begin = loop->next;
        *end = loop->n - *begin > loop->chunk ? *begin + loop->chunk : loop->n;
        loop->next = *end;
    }
    pthread_mutex_unlock(&loop->lock);
    return some;
}

static void note_failure(struct loop *loop, int64_t begin, at_status status) {
    pthread_mutex_lock(&loop->lock);
    if (loop->status == AT_OK || begin < loop->failed) {
        loop->status = status;
        loop->failed = begin;
        at_error_save(&loop->error);
    }
    pthread_mutex_unlock(&loop->lock);
}

static void *run_worker(void *argument) {
    const struct worker *worker = argument;
    struct loop *loop = worker->loop;
    const int before = told;
    int64_t begin, end;
    if (loop->threads > 1)
        told = 1;
    while (take(loop, &begin, &end)) {
        at_status status = loop->work(loop->context, begin, end, worker->index);
        if (status != AT_OK)
            note_failure(loop, begin, status);
    }
    told = before;
    return NULL;
}

/* Eight chunks a thread even out unequal rows. */
static int64_t default_chunk(int64_t n, int threads) {
    int64_t parts = (int64_t)threads * 8;
    return n > parts ? n / parts + (n % parts != 0) : 1;
}

at_status at_parallel(int64_t n, int64_t chunk, int threads,
                      at_status (*work)(void *context, int64_t begin, int64_t end, int worker), void *context) {
    threads = threads < 1 ? 1 : threads > MAX_THREADS ? MAX_THREADS : threads;
    struct loop loop = {
        .n = n, .chunk = chunk > 0 ? chunk : default_chunk(n, threads), .work = work, .context = context
    };
    pthread_t ids[MAX_THREADS];
    struct worker workers[MAX_THREADS];
    const int64_t chunks = n > 0 ? (n - 1) / loop.chunk + 1 : 0;
    loop.threads = chunks < threads ? chunks : threads;
    int started = 1;
    if (pthread_mutex_init(&loop.lock, NULL) != 0)
        return AT_FAIL(AT_NO_MEMORY, "no mutex for a parallel loop");
    for (int i = 0; i < threads; i++)
        workers[i] = (struct worker){ &loop, i };
    /* The calling thread is worker 0. Fewer threads than wanted are still enough. */
    while (started < loop.threads && pthread_create(&ids[started], NULL, run_worker, &workers[started]) == 0)
        started++;
    run_worker(&workers[0]);
    for (int i = 1; i < started; i++)
        pthread_join(ids[i], NULL);
    pthread_mutex_destroy(&loop.lock);
    if (loop.status != AT_OK)
        at_error_restore(&loop.error);
    return loop.status;
}

double at_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}
