/* UClip norm: tensor indices of the operator.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_UCLIP_NORM_H
#define AT_UCLIP_NORM_H

#include "attest/op.h"

enum {
    AT_UCLIP_X,
    AT_UCLIP_ALPHA,
    AT_UCLIP_GAMMA,
    AT_UCLIP_BETA,
    AT_UCLIP_Y,
};

extern const struct at_op at_op_uclip_norm;

#endif
