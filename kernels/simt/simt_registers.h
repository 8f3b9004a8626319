/* setmaxnreg as kernels/device/warp_roles.h sees it. C and C++.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_SIMT_REGISTERS_H
#define AT_SIMT_SIMT_REGISTERS_H

#include "kernels/simt/simt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The warpgroup's threads go on with `count` registers each, fewer than before, or more once the block has so many
 * free. All warps of the warpgroup come. */
void at_simt_registers(int more, int count, struct at_simt_place place);
/* Arrives at a named barrier and does not wait; `threads` counts those that wait, too. */
void at_simt_named_arrive(int id, int threads, struct at_simt_place place);

#ifdef __cplusplus
}
#endif
#endif
