/* UClip norm of q and k per head: tensor indices of the operator.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_QK_UCLIP_NORM_H
#define AT_QK_UCLIP_NORM_H

#include "attest/op.h"

enum {
    AT_QK_UCLIP_Q,
    AT_QK_UCLIP_K,
    AT_QK_UCLIP_ALPHA_Q,
    AT_QK_UCLIP_ALPHA_K,
    AT_QK_UCLIP_GAMMA_Q,
    AT_QK_UCLIP_GAMMA_K,
    AT_QK_UCLIP_Q_OUT,
    AT_QK_UCLIP_K_OUT,
};

extern const struct at_op at_op_qk_uclip_norm;

#endif
