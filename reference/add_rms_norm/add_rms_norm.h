/* Residual add and RMS norm: tensor indices of the operator.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ADD_RMS_NORM_H
#define AT_ADD_RMS_NORM_H

#include "attest/op.h"

enum {
    AT_ADD_RMS_X,
    AT_ADD_RMS_RES,
    AT_ADD_RMS_GAMMA,
    AT_ADD_RMS_RES_OUT,
    AT_ADD_RMS_Y,
};

extern const struct at_op at_op_add_rms_norm;

#endif
