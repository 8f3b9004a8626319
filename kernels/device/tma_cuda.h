/* kernels/device/tma.h for CUDA. Before sm_90 a launch traps.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_TMA_CUDA_H
#define AT_TMA_CUDA_H

#include <cuda.h>

struct at_tensor_map {
    CUtensorMap m; /* 128 bytes, aligned to 64 */
};

/* The driver's function is asked for by name: nothing links the driver's library. Safe while a stream is captured. */
static inline int at_tensor_map_encode(at_tensor_map *map, const at_tensor_box *t) {
    using encode_tiled = CUresult (*)(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *,
                                      const cuuint64_t *, const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave,
                                      CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
    static void *found = nullptr;
    if (at_tensor_box_wrong(t))
        return (int)cudaErrorInvalidValue;
    if (!found) {
        cudaDriverEntryPointQueryResult result;
#if CUDART_VERSION >= 12050
        const cudaError_t code =
            cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &result);
#else
        const cudaError_t code = cudaGetDriverEntryPoint("cuTensorMapEncodeTiled", &found, cudaEnableDefault, &result);
#endif
        if (code != cudaSuccess || result != cudaDriverEntryPointSuccess || !found) {
            found = nullptr;
            return (int)(code != cudaSuccess ? code : cudaErrorNotSupported);
        }
    }
    cuuint64_t size[5], stride[5];
    cuuint32_t box[5], every[5];
    for (int i = 0; i < t->rank; i++) {
        size[i] = (cuuint64_t)t->size[i];
        box[i] = (cuuint32_t)t->box[i];
        every[i] = 1;
        if (i > 0)
            stride[i - 1] = (cuuint64_t)t->stride[i];
    }
    const CUtensorMapDataType type = t->element_bytes == 1   ? CU_TENSOR_MAP_DATA_TYPE_UINT8
                                     : t->element_bytes == 2 ? CU_TENSOR_MAP_DATA_TYPE_UINT16
                                     : t->element_bytes == 4 ? CU_TENSOR_MAP_DATA_TYPE_UINT32
                                                             : CU_TENSOR_MAP_DATA_TYPE_UINT64;
    const CUtensorMapSwizzle swizzle = t->swizzle == 32    ? CU_TENSOR_MAP_SWIZZLE_32B
                                       : t->swizzle == 64  ? CU_TENSOR_MAP_SWIZZLE_64B
                                       : t->swizzle == 128 ? CU_TENSOR_MAP_SWIZZLE_128B
                                                           : CU_TENSOR_MAP_SWIZZLE_NONE;
    const CUresult said = reinterpret_cast<encode_tiled>(found)(
        &map->m, type, (cuuint32_t)t->rank, const_cast<void *>(t->base), size, stride, box, every,
        CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    return said == CUDA_SUCCESS ? 0 : (int)cudaErrorInvalidValue;
}

#define AT_SHARED_TILES(TYPE, name) \
    extern __shared__ __align__(1024) unsigned char at_dynamic_tiles[]; \
    TYPE *name = reinterpret_cast<TYPE *>(at_dynamic_tiles); \
    if (at_shared_address(name) % 1024) \
    __trap()

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define AT_SM90(...) __trap()
#else
#define AT_SM90(...) __VA_ARGS__
#endif

__device__ inline void at_mbarrier_arrive_expect(at_mbarrier *b, uint32_t bytes) {
    AT_SM90(asm volatile("{\n"
                         ".reg .b64 state;\n"
                         "mbarrier.arrive.expect_tx.shared::cta.b64 state, [%0], %1;\n"
                         "}" ::"r"(at_shared_address(b)),
                         "r"(bytes)
                         : "memory"));
}

/* Coordinates in an array: one name for every number of dimensions. */
template <int N> struct at_tensor_copy;
#define AT_TENSOR_COPY(N, LOAD_AT, TO_BARRIER, STORE_AT, FROM, ...) \
    template <> struct at_tensor_copy<N> { \
        static __device__ void load(uint32_t to, const CUtensorMap *map, const int (&at)[N], uint32_t barrier) { \
            AT_SM90(asm volatile("cp.async.bulk.tensor." #N \
                                 "d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, " LOAD_AT \
                                 "], [" TO_BARRIER "];" ::"r"(to), \
                                 "l"(map), __VA_ARGS__, "r"(barrier) \
                                 : "memory")); \
        } \
        static __device__ void store(const CUtensorMap *map, const int (&at)[N], uint32_t from) { \
            AT_SM90(asm volatile("cp.async.bulk.tensor." #N "d.global.shared::cta.bulk_group [%0, " STORE_AT \
                                 "], [" FROM "];" ::"l"(map), \
                                 __VA_ARGS__, "r"(from) \
                                 : "memory")); \
        } \
    };
AT_TENSOR_COPY(1, "{%2}", "%3", "{%1}", "%2", "r"(at[0]))
AT_TENSOR_COPY(2, "{%2, %3}", "%4", "{%1, %2}", "%3", "r"(at[0]), "r"(at[1]))
AT_TENSOR_COPY(3, "{%2, %3, %4}", "%5", "{%1, %2, %3}", "%4", "r"(at[0]), "r"(at[1]), "r"(at[2]))
AT_TENSOR_COPY(4, "{%2, %3, %4, %5}", "%6", "{%1, %2, %3, %4}", "%5", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]))
AT_TENSOR_COPY(5, "{%2, %3, %4, %5, %6}", "%7", "{%1, %2, %3, %4, %5}", "%6", "r"(at[0]), "r"(at[1]), "r"(at[2]),
               "r"(at[3]), "r"(at[4]))
#undef AT_TENSOR_COPY

template <int N>
__device__ void at_tensor_load(void *to, const at_tensor_map &map, const int (&at)[N], at_mbarrier *b) {
    at_tensor_copy<N>::load(at_shared_address(to), &map.m, at, at_shared_address(b));
}
template <int N> __device__ void at_tensor_store(const at_tensor_map &map, const int (&at)[N], const void *from) {
    at_tensor_copy<N>::store(&map.m, at, at_shared_address(from));
}

__device__ inline void at_tensor_prefetch(const at_tensor_map &map) {
    AT_SM90(asm volatile("prefetch.tensormap [%0];" ::"l"(&map.m) : "memory"));
}
__device__ inline void at_bulk_load(void *to, const void *from, int bytes, at_mbarrier *b) {
    AT_SM90(
        asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                         at_shared_address(to)),
                     "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(at_shared_address(b))
                     : "memory"));
}
__device__ inline void at_bulk_store(void *to, const void *from, int bytes) {
    AT_SM90(
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(to)),
                     "r"(at_shared_address(from)), "r"(bytes)
                     : "memory"));
}
__device__ inline void at_bulk_commit() { AT_SM90(asm volatile("cp.async.bulk.commit_group;" ::: "memory")); }
template <int N> __device__ void at_bulk_wait_read() {
    AT_SM90(asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory"));
}
template <int N> __device__ void at_bulk_wait() {
    AT_SM90(asm volatile("cp.async.bulk.wait_group %0;" ::"n"(N) : "memory"));
}
#undef AT_SM90

#endif
