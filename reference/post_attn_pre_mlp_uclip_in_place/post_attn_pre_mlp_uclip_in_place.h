/* Post-attention and pre-MLP UClip norms in one, in place: tensor indices of the operator.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_POST_ATTN_PRE_MLP_UCLIP_IN_PLACE_H
#define AT_POST_ATTN_PRE_MLP_UCLIP_IN_PLACE_H

#include "norm/peri.h"

enum { AT_PERI_IN_PLACE_Y = AT_PERI_READ };

extern const struct at_op at_op_post_attn_pre_mlp_uclip_in_place;

#endif
