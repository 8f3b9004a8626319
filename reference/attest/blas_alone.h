/* OpenBLAS without threads of its own.
 * SPDX-License-Identifier: Apache-2.0
 *
 * It starts a thread for each processor with the process, which nothing here asks for anything: work is split by threads
 * of ours. Each spins for about 0.1 s before it sleeps, which is more processor time than most commands take. */
#ifndef AT_BLAS_ALONE_H
#define AT_BLAS_ALONE_H

/* One thread from now on, the others ended: of the first call, others do nothing. Any thread may call it, none while a
 * matrix product runs. Without OpenBLAS in the program, nothing. */
void at_blas_alone(void);

#endif
