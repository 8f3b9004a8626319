/* Post-attention and pre-MLP UClip norms in one: tensor indices of the operator.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_POST_ATTN_PRE_MLP_UCLIP_H
#define AT_POST_ATTN_PRE_MLP_UCLIP_H

#include "norm/peri.h"

enum { AT_PERI_RES_OUT = AT_PERI_READ, AT_PERI_Y };

extern const struct at_op at_op_post_attn_pre_mlp_uclip;

#endif
