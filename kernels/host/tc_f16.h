/* Attention with f16 accumulation by the tensor-core rule, for AsyncT and softmax; f16 inputs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_HOST_TC_F16_H
#define AT_HOST_TC_F16_H

#include "kernels/host/attention.h"

int64_t at_host_tc_f16_workspace(const struct at_problem *problem);
/* Never fails. */
int at_host_tc_f16(const struct at_launch *launch, const struct at_host_tensors *tensors,
                   const struct at_numerics *numerics);

#endif
