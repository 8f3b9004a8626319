/* Copies by TMA of what nobody reads again soon: its lines are the first to leave L2.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   at_tensor_load_once(to, map, {x, y}, barrier)   as at_tensor_load of two dimensions (kernels/device/tma.h)
 *
 * A hint, which changes no bit: the SIMT machine has no caches and copies as ever. A file of its own, since one kernel wants
 * it, and what others take of a GPU is recorded by the text that they include. */
#ifndef AT_TMA_ONCE_H
#define AT_TMA_ONCE_H

#include "kernels/device/tma.h"

#ifdef __CUDACC__
__device__ inline void at_tensor_load_once(void *to, const at_tensor_map &map, const int (&at)[2], at_mbarrier *b) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
    __trap();
#else
    asm volatile(
        "{\n"
        ".reg .b64 policy;\n"
        "createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, "
        "%3}], [%4], policy;\n"
        "}" ::"r"(at_shared_address(to)),
        "l"(&map.m), "r"(at[0]), "r"(at[1]), "r"(at_shared_address(b))
        : "memory");
#endif
}
#else
static inline void at_tensor_load_once(void *to, const at_tensor_map &map, const int (&at)[2], at_mbarrier *b,
                                       AT_PLACE) {
    at_simt_tensor_load(to, &map.m, at, b, { file, line });
}
#endif

#endif
