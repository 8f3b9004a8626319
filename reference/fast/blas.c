/* The BLAS in use: its name, and whether it took kernels that fit this processor.
 * SPDX-License-Identifier: Apache-2.0
 *
 * OpenBLAS picks its kernels by the processor's model number, and falls back to old ones for a model it does not know:
 * a processor newer than the library can run at a fraction of its speed with no other sign. */
#include <cblas.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "fast/fast.h"

static char blas_name[128];

static void find_blas_name(void) {
    snprintf(blas_name, sizeof blas_name, "%s (core %s)", openblas_get_config(), openblas_get_corename());
}

const char *at_fast_blas_name(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_blas_name);
    return blas_name;
}

/* Names of OpenBLAS's x86 cores before AVX2; the list is closed, newer names all have it. */
static int is_old(const char *core) {
    static const char *const old[] = { "Unknown",      "Katmai",      "Coppermine", "Northwood",   "Prescott",
                                       "Banias",       "Atom",        "Core2",      "Penryn",      "Dunnington",
                                       "Nehalem",      "Sandybridge", "Athlon",     "Opteron",     "Barcelona",
                                       "Opteron_SSE3", "Bulldozer",   "Piledriver", "Steamroller", "Bobcat",
                                       "Nano" };
    for (size_t i = 0; i < sizeof old / sizeof old[0]; i++)
        if (strcmp(core, old[i]) == 0)
            return 1;
    return 0;
}

int at_fast_core_advice(const char *core, int avx2, int avx512, char *text, size_t size) {
    if (!(avx2 || avx512) || !is_old(core))
        return 0;
    snprintf(text, size,
             "OpenBLAS took its kernels for %s, though this processor has %s: matrix products take 2 to 4 times as "
             "long; set OPENBLAS_CORETYPE=%s",
             core, avx512 ? "AVX-512" : "AVX2", avx512 ? "SkylakeX" : "Haswell");
    return 1;
}

int at_fast_blas_advice(char *text, size_t size) {
#if defined(__x86_64__)
    const int avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl");
    const int avx2 = __builtin_cpu_supports("avx2") != 0;
    return at_fast_core_advice(openblas_get_corename(), avx2, avx512, text, size);
#else
    (void)text;
    (void)size;
    return 0;
#endif
}
