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

enum at_qk_gamma { AT_QK_GAMMA_CHANNEL, AT_QK_GAMMA_TENSOR };
struct at_qk_uclip_own {
    int32_t gamma_per; /* enum at_qk_gamma: a gamma for each channel, or one for all channels of q and one for k's */
    int64_t gammas;    /* that many: d or 1 */
};
AT_OWN_STRUCT(at_qk_uclip_own)

extern const struct at_op at_op_qk_uclip_norm;

#endif
