/* OpenBLAS's choice of kernels, mended.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The choice is made again by OpenBLAS's own two functions for it, with OPENBLAS_CORETYPE set meanwhile: children see
 * nothing of it, and no second start of the program is needed. */
#include "attest/blas_core.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Of OpenBLAS, where it is; the last two, of builds for several cores, are not in cblas.h. The first forgets the
 * choice, the second makes it as at the start. */
extern char *openblas_get_corename(void) __attribute__((weak));
extern void gotoblas_dynamic_quit(void) __attribute__((weak));
extern void gotoblas_dynamic_init(void) __attribute__((weak));

static const char VARIABLE[] = "OPENBLAS_CORETYPE";
static char own[32]; /* what OpenBLAS took first; "" when it was left that */

/* Names of OpenBLAS's x86 cores before AVX-512; the list is closed, newer names all have it. */
enum core_class { OLD, AVX2, AVX512 };
static enum core_class class_of(const char *core) {
    static const char *const old[] = { "Unknown",      "Katmai",      "Coppermine", "Northwood",   "Prescott",
                                       "Banias",       "Atom",        "Core2",      "Penryn",      "Dunnington",
                                       "Nehalem",      "Sandybridge", "Athlon",     "Opteron",     "Barcelona",
                                       "Opteron_SSE3", "Bulldozer",   "Piledriver", "Steamroller", "Bobcat",
                                       "Nano" };
    static const char *const avx2[] = { "Haswell", "Zen", "Excavator" };
    for (size_t i = 0; i < sizeof old / sizeof *old; i++)
        if (strcasecmp(core, old[i]) == 0)
            return OLD;
    for (size_t i = 0; i < sizeof avx2 / sizeof *avx2; i++)
        if (strcasecmp(core, avx2[i]) == 0)
            return AVX2;
    return AVX512;
}

/* SkylakeX for whatever has AVX-512: the kernels of Cooperlake and SapphireRapids are others for bf16 alone. AMD's
 * processors are left at Zen, which OpenBLAS takes for them on purpose. */
const char *at_blas_core_fitting(const char *core, int is_amd, int avx2, int avx512) {
    const char *wanted = avx512 && !is_amd ? "SkylakeX" : avx2 || avx512 ? (is_amd ? "Zen" : "Haswell") : NULL;
    return wanted && class_of(core) < class_of(wanted) ? wanted : NULL;
}

static const char *fitting_here(void) {
#if defined(__x86_64__)
    const int avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                       __builtin_cpu_supports("avx512cd");
    const int avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    return at_blas_core_fitting(openblas_get_corename(), __builtin_cpu_is("amd") != 0, avx2, avx512);
#else
    return NULL;
#endif
}

void at_blas_core_choose(void) {
    char first[sizeof own];
    if (own[0] || !openblas_get_corename || !gotoblas_dynamic_quit || !gotoblas_dynamic_init || getenv(VARIABLE))
        return;
    const char *wanted = fitting_here();
    if (!wanted)
        return;
    snprintf(first, sizeof first, "%s", openblas_get_corename());
    setenv(VARIABLE, wanted, 1);
    gotoblas_dynamic_quit();
    gotoblas_dynamic_init();
    unsetenv(VARIABLE);
    if (strcasecmp(openblas_get_corename(), wanted) == 0) {
        memcpy(own, first, sizeof own);
    } else { /* a build without these kernels */
        gotoblas_dynamic_quit();
        gotoblas_dynamic_init();
    }
}

void at_blas_core_text(char *text, size_t size) {
    const char *set = getenv(VARIABLE);
    if (!openblas_get_corename)
        snprintf(text, size, "no OpenBLAS");
    else if (own[0])
        snprintf(text, size, "%s, chosen by attest for this processor; OpenBLAS took %s", openblas_get_corename(), own);
    else if (set)
        snprintf(text, size, "%s, by %s=%.40s", openblas_get_corename(), VARIABLE, set);
    else
        snprintf(text, size, "%s", openblas_get_corename());
}

int at_blas_core_advice(char *text, size_t size) {
    const char *wanted = openblas_get_corename ? fitting_here() : NULL;
    if (!wanted)
        return 0;
    snprintf(text, size, "%s on a processor with %s: matrix products take 2 to 4 times as long; set %s=%s",
             openblas_get_corename(), class_of(wanted) == AVX512 ? "AVX-512" : "AVX2", VARIABLE, wanted);
    return 1;
}
