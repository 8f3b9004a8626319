/* kernels/device/warp_roles.h for the SIMT machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_WARP_ROLES_SIMT_H
#define AT_WARP_ROLES_SIMT_H

#include "kernels/simt/simt_registers.h"

static inline void at_barrier_arrive(int id, int threads, AT_PLACE) {
    at_simt_named_arrive(id, threads, { file, line });
}
template <int N> void at_registers_give(AT_PLACE) { at_simt_registers(0, N, { file, line }); }
template <int N> void at_registers_take(AT_PLACE) { at_simt_registers(1, N, { file, line }); }

#endif
