/* kernels/device/cluster.h for CUDA.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_CLUSTER_CUDA_H
#define AT_CLUSTER_CUDA_H

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
__device__ inline int at_cluster_rank() { return 0; }
__device__ inline int at_cluster_size() { return 1; }
__device__ inline void at_cluster_arrive() { __trap(); }
__device__ inline void at_cluster_arrive_relaxed() { __trap(); }
__device__ inline void at_cluster_wait() { __trap(); }
template <class T> __device__ T *at_cluster_map(T *own, int) { return own; }
#else
__device__ inline int at_cluster_rank() {
    int rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
__device__ inline int at_cluster_size() {
    int size;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    return size;
}
/* Releases and acquires at the scope of the cluster, which are the defaults. */
__device__ inline void at_cluster_arrive() { asm volatile("barrier.cluster.arrive.release;" ::: "memory"); }
__device__ inline void at_cluster_arrive_relaxed() { asm volatile("barrier.cluster.arrive.relaxed;" ::: "memory"); }
__device__ inline void at_cluster_wait() { asm volatile("barrier.cluster.wait.acquire;" ::: "memory"); }
template <class T> __device__ T *at_cluster_map(T *own, int rank) {
    uint64_t there;
    asm volatile("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(own), "r"(rank));
    return reinterpret_cast<T *>(there);
}
#endif

/* With `n` attributes more: 0 or 1. */
template <class... P, class... A>
int at_launch_with(void (*kernel)(P...), dim3 grid, dim3 block, int size, int64_t dynamic_shared, void *stream,
                   const cudaLaunchAttribute *more, int n, A... args) {
    int code = at_ask_for_shared(kernel, dynamic_shared);
    if (!code && size > 8) /* Hopper has 16 */
        code = (int)cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
    if (code)
        return code;
    cudaLaunchAttribute attributes[2]{};
    if (n)
        attributes[0] = *more;
    if (size > 1) {
        attributes[n].id = cudaLaunchAttributeClusterDimension;
        attributes[n].val.clusterDim.x = (unsigned)size;
        attributes[n].val.clusterDim.y = 1;
        attributes[n].val.clusterDim.z = 1;
    }
    cudaLaunchConfig_t config{};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = (size_t)dynamic_shared;
    config.stream = static_cast<cudaStream_t>(stream);
    config.attrs = attributes;
    config.numAttrs = (unsigned)(n + (size > 1));
    return (int)cudaLaunchKernelEx(&config, kernel, static_cast<P>(args)...);
}

template <class... P, class... A>
int at_launch_cluster(void (*kernel)(P...), dim3 grid, dim3 block, int size, int64_t dynamic_shared, void *stream,
                      A... args) {
    return at_launch_with(kernel, grid, block, size, dynamic_shared, stream, nullptr, 0, args...);
}

#endif
