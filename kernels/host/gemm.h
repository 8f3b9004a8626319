/* Products of matrices on the host: over OpenBLAS, and with f16 accumulation by the tensor-core rule.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_HOST_GEMM_H
#define AT_HOST_GEMM_H

#include "attest/kernel.h"

/* f32 sgemm of factors of any format, a block of rows at a time. Never fails. */
int64_t at_host_gemm_blas_workspace(const struct at_problem *problem);
int at_host_gemm_blas(const struct at_launch *launch);

/* One chain of fmaf an element, of factors of any format in layout kn. */
int at_host_gemm_one_chain(const struct at_launch *launch);

/* Sums in f16, 16 products a step, of f16 factors. */
int64_t at_host_gemm_tc_f16_workspace(const struct at_problem *problem);
int at_host_gemm_tc_f16(const struct at_launch *launch);

/* Sums of 13 fraction bits, 16 products a step, of e4m3 or e5m2 factors. */
int64_t at_host_gemm_tc_fp8_workspace(const struct at_problem *problem);
int at_host_gemm_tc_fp8(const struct at_launch *launch);

#endif
