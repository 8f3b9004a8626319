/* RMS norm: tensor indices of the operator.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_RMS_NORM_H
#define AT_RMS_NORM_H

#include "attest/op.h"

enum {
    AT_RMS_X,
    AT_RMS_GAMMA,
    AT_RMS_Y,
};

extern const struct at_op at_op_rms_norm;

#endif
