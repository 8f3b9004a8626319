/* Attention with the keys of a row cut into ranges, in plain f32 fmaf chains, for AsyncT and softmax.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_HOST_SPLIT_K_H
#define AT_HOST_SPLIT_K_H

#include "kernels/host/attention.h"

int64_t at_host_split_k_workspace(const struct at_problem *problem, const struct at_numerics *numerics);
/* Ranges of numerics->split keys, counted from key 0 of the request. Never fails. */
int at_host_split_k(const struct at_launch *launch, const struct at_host_tensors *tensors,
                    const struct at_numerics *numerics);

#endif
