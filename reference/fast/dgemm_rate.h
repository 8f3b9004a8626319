/* What OpenBLAS's own dgemm reaches on this machine: the yardstick of `attest bench reference`.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DGEMM_RATE_H
#define AT_DGEMM_RATE_H

#include "attest/status.h"

/* Multiplies n x n matrices, one product a thread at a time on `threads` threads, `rounds` times each, and gives
 * 2 n^3 flops a product over the wall time, in flop/s. */
at_status at_dgemm_rate(int n, int threads, int rounds, double *flops_per_second);

#endif
