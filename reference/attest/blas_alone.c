/* OpenBLAS without threads of its own.
 * SPDX-License-Identifier: Apache-2.0 */
#include "attest/blas_alone.h"

#include <pthread.h>

/* Of OpenBLAS, where it is. The last one is what it calls itself before a fork; cblas.h does not declare it, and builds
 * on OpenMP do not have it. Setting a number of threads later on would start them again. */
extern int openblas_get_num_threads(void) __attribute__((weak));
extern void openblas_set_num_threads(int n) __attribute__((weak));
extern int blas_thread_shutdown_(void) __attribute__((weak));

static void end_threads(void) {
    if (!openblas_get_num_threads || openblas_get_num_threads() == 1)
        return;
    openblas_set_num_threads(1);
    if (blas_thread_shutdown_)
        blas_thread_shutdown_();
}

void at_blas_alone(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, end_threads);
}
