/* kernels/device/dependent.h for CUDA.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DEPENDENT_CUDA_H
#define AT_DEPENDENT_CUDA_H

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
__device__ inline void at_dependency_wait() {}
__device__ inline void at_dependency_trigger() {}
#else
__device__ inline void at_dependency_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
__device__ inline void at_dependency_trigger() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
#endif
template <class T> __device__ void at_prefetch_l2(const T *p) { asm volatile("prefetch.global.L2 [%0];" ::"l"(p)); }

/* Whether the current device has them; of one that cannot be asked, the launch says what is wrong. */
inline bool at_has_dependent_launch() {
    int device = 0, major = 0;
    return !cudaGetDevice(&device) && !cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device) &&
           major >= 9;
}

template <class... P, class... A>
int at_launch_dependent(void (*kernel)(P...), dim3 grid, dim3 block, int size, int64_t dynamic_shared, void *stream,
                        A... args) {
    cudaLaunchAttribute attribute{};
    attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    attribute.val.programmaticStreamSerializationAllowed = 1;
    return at_launch_with(kernel, grid, block, size, dynamic_shared, stream, &attribute,
                          at_has_dependent_launch() ? 1 : 0, args...);
}

#endif
