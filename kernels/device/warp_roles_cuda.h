/* kernels/device/warp_roles.h for CUDA. Without sm_90a the registers stay where they are.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_WARP_ROLES_CUDA_H
#define AT_WARP_ROLES_CUDA_H

__device__ inline void at_barrier_arrive(int id, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
template <int N> __device__ void at_registers_give() {
    static_assert(N >= 24 && N <= 256 && N % 8 == 0, "a multiple of 8 from 24 to 256");
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(N));
#endif
}
template <int N> __device__ void at_registers_take() {
    static_assert(N >= 24 && N <= 256 && N % 8 == 0, "a multiple of 8 from 24 to 256");
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(N));
#endif
}

#endif
