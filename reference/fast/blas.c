/* The BLAS in use, by name.
 * SPDX-License-Identifier: Apache-2.0 */
#include <cblas.h>
#include <pthread.h>
#include <stdio.h>

#include "attest/blas_core.h"
#include "fast/fast.h"

static char blas_name[256];

static void find_blas_name(void) {
    char core[128];
    at_blas_core_text(core, sizeof core);
    snprintf(blas_name, sizeof blas_name, "%s (core %s)", openblas_get_config(), core);
}

const char *at_fast_blas_name(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_blas_name);
    return blas_name;
}
