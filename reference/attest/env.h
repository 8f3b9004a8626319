/* The numeric environment, checked once at start, and row-parallel loops.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ENV_H
#define AT_ENV_H

#include "attest/status.h"

#include <stdint.h>

/* Denormals live, rounding to nearest, NaN and infinity behave (no -ffast-math start-up code linked
 * in). AT_ENVIRONMENT with the cause otherwise. */
at_status at_env_check(void);

/* Threads to use: what this thread was told, else AT_THREADS if set and valid, else the processors this process may run on. */
int at_threads(void);

/* Tells the calling thread what at_threads() gives it from now on; 0: what it finds, as at first. Returns what it was told
 * before. One of many that are at work says 1, or each of them makes a thread for every processor; at_parallel says so in
 * its workers. */
int at_threads_use(int threads);

/* Calls work(context, begin, end, worker) on chunks of [0, n), spread over at most `threads` threads
 * (worker in 0..threads-1); chunk bounds do not depend on the thread count when chunk > 0. Results
 * must not depend on which worker runs a chunk. Returns the first failing chunk's status (lowest
 * begin), its trail copied to the calling thread. */
at_status at_parallel(int64_t n, int64_t chunk, int threads,
                      at_status (*work)(void *context, int64_t begin, int64_t end, int worker), void *context);

/* Monotonic seconds. */
double at_seconds(void);

#endif
