/* Loops compiled for several instruction sets, of which the program takes one when it is loaded.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_CLONES_H
#define AT_CLONES_H

#include <limits.h> /* any header of glibc says __GLIBC__ */

/* AT_CLONES: before a function whose loops have the same bits whatever they are compiled for: integers, or one IEEE
 * operation after another on each element. Needs gcc's target_clones and the dynamic linker's ifunc, whose resolvers run
 * before a sanitizer is ready. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define AT_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
/* For loops of fma(), which a processor before x86-64-v3 has as a function of libm alone: the same bits, slowly. */
#define AT_FMA_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define AT_CLONES
#define AT_FMA_CLONES
#endif

#endif
