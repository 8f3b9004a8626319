/* Attention over OpenBLAS: f32 sgemm for q.k and for p.v, a block of queries of one head at a time.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_HOST_BLAS_H
#define AT_HOST_BLAS_H

#include "kernels/host/attention.h"

int64_t at_host_blas_workspace(const struct at_problem *problem);
/* P is rounded to numerics->p. Never fails. */
int at_host_blas(const struct at_launch *launch, const struct at_host_tensors *tensors,
                 const struct at_numerics *numerics);

#endif
