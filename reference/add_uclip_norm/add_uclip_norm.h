/* Residual add and UClip norm: tensor indices of the operator.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ADD_UCLIP_NORM_H
#define AT_ADD_UCLIP_NORM_H

#include "attest/op.h"

enum {
    AT_ADD_UCLIP_X,
    AT_ADD_UCLIP_RES,
    AT_ADD_UCLIP_ALPHA,
    AT_ADD_UCLIP_GAMMA,
    AT_ADD_UCLIP_BETA,
    AT_ADD_UCLIP_RES_OUT,
    AT_ADD_UCLIP_Y,
};

extern const struct at_op at_op_add_uclip_norm;

#endif
