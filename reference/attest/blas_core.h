/* Which kernels OpenBLAS multiplies with.
 * SPDX-License-Identifier: Apache-2.0
 *
 * OpenBLAS picks them by the processor's model number when it is loaded, and takes old ones for a model it does not
 * know: OpenBLAS 0.3.21 runs a Sapphire Rapids on Prescott's, at a quarter of the speed, with no other sign. */
#ifndef AT_BLAS_CORE_H
#define AT_BLAS_CORE_H

#include <stddef.h>

/* Gives OpenBLAS the kernels that this processor's features ask for, where its own choice is older; not when
 * OPENBLAS_CORETYPE is set, and not where it has no such kernels. At the start of a program, from its only thread
 * (at_blas_alone before it): no matrix product runs, nothing else reads the environment. Without OpenBLAS in the
 * program, nothing. */
void at_blas_core_choose(void);
/* The kernels in use and, unless OpenBLAS chose them, who did: "SkylakeX"; "SkylakeX, chosen by attest for this
 * processor; OpenBLAS took Prescott"; "Haswell, by OPENBLAS_CORETYPE=Haswell"; "no OpenBLAS". */
void at_blas_core_text(char *text, size_t size);
/* 1 when OpenBLAS keeps kernels that are older than this processor; then `text` says what that costs and what to set.
 */
int at_blas_core_advice(char *text, size_t size);

/* The rule alone: the core to ask for in place of `core`, NULL to leave it. `avx512`: F, DQ, BW, VL and CD. */
const char *at_blas_core_fitting(const char *core, int is_amd, int avx2, int avx512);

#endif
