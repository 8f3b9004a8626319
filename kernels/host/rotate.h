/* Rotations of pairs of channels in plain f32, for the C baselines.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_HOST_ROTATE_H
#define AT_HOST_ROTATE_H

#include "attest/tensor.h"

/* How heads of d channels turn by a table [positions rot] of rot/2 cosines and rot/2 sines a row. */
struct at_host_rotation {
    int64_t d, rot;
    int interleaved;                           /* pair i is channels 2 i and 2 i + 1, else i and i + rot/2 */
    int fused;                                 /* the product with the cosine and the sum are one fmaf */
    const struct at_tensor *positions, *table; /* i32 [tokens]; f32, f16 or bf16 */
};

/* y = x turned, [tokens heads d] of f32, f16 or bf16; channels from rot on are copied. */
void at_host_rotate(const struct at_host_rotation *rotation, const struct at_tensor *x, const struct at_tensor *y);

#endif
