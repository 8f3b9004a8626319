/* wgmma on 8 columns, for CUDA. Without sm_90a (PTX for older and newer devices) a launch traps.
 * SPDX-License-Identifier: Apache-2.0
 *
 * b's tile: two core matrices of 8 rows of 16 bytes, one behind the other; no swizzle, K-major. Descriptor: address,
 * offset of the second core matrix along k (128 bytes) and of the next 8 columns (unused with 8), each in units of 16
 * bytes. */
#ifndef AT_WGMMA_CUDA_H
#define AT_WGMMA_CUDA_H

__device__ inline uint64_t at_wgmma_descriptor(const void *tile) {
    const uint64_t address = at_shared_address(tile);
    return (address & 0x3ffff) >> 4 | (uint64_t)(128 >> 4) << 16 | (uint64_t)(256 >> 4) << 32;
}

__device__ inline void at_wgmma_publish() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
    at_sync();
}

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define AT_WGMMA_BODY(...) \
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); \
    __VA_ARGS__ \
    asm volatile("wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;" ::: "memory");
#else
#define AT_WGMMA_BODY(...) \
    (void)d, (void)a, (void)tile; \
    __trap();
#endif

/* TAIL: what follows the descriptor: scale of d, signs of a and b, and for 16-bit operands whether b is transposed. */
#define AT_WGMMA_F32(A, B, PTX, TAIL) \
    __device__ inline void at_wgmma_n8(float(&d)[4], const uint32_t(&a)[4], const void *tile, A, B) { \
        AT_WGMMA_BODY(asm volatile("wgmma.mma_async.sync.aligned." PTX \
                                   " {%0, %1, %2, %3}, {%4, %5, %6, %7}, %8, " TAIL ";" \
                                   : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) \
                                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(at_wgmma_descriptor(tile)) \
                                   : "memory");) \
    }
#define AT_WGMMA_F16(A, B, PTX, TAIL) \
    __device__ inline void at_wgmma_n8(uint32_t(&d)[2], const uint32_t(&a)[4], const void *tile, A, B) { \
        AT_WGMMA_BODY(asm volatile("wgmma.mma_async.sync.aligned." PTX " {%0, %1}, {%2, %3, %4, %5}, %6, " TAIL ";" \
                                   : "+r"(d[0]), "+r"(d[1]) \
                                   : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(at_wgmma_descriptor(tile)) \
                                   : "memory");) \
    }
AT_WGMMA_F32(at_f16, at_f16, "m64n8k16.f32.f16.f16", "1, 1, 1, 0")
AT_WGMMA_F32(at_bf16, at_bf16, "m64n8k16.f32.bf16.bf16", "1, 1, 1, 0")
AT_WGMMA_F16(at_f16, at_f16, "m64n8k16.f16.f16.f16", "1, 1, 1, 0")
AT_WGMMA_F32(at_tf32, at_tf32, "m64n8k8.f32.tf32.tf32", "1, 1, 1")
AT_WGMMA_F32(at_e4m3, at_e4m3, "m64n8k32.f32.e4m3.e4m3", "1, 1, 1")
AT_WGMMA_F16(at_e4m3, at_e4m3, "m64n8k32.f16.e4m3.e4m3", "1, 1, 1")
AT_WGMMA_F32(at_e4m3, at_e5m2, "m64n8k32.f32.e4m3.e5m2", "1, 1, 1")
AT_WGMMA_F16(at_e4m3, at_e5m2, "m64n8k32.f16.e4m3.e5m2", "1, 1, 1")
AT_WGMMA_F32(at_e5m2, at_e4m3, "m64n8k32.f32.e5m2.e4m3", "1, 1, 1")
AT_WGMMA_F16(at_e5m2, at_e4m3, "m64n8k32.f16.e5m2.e4m3", "1, 1, 1")
AT_WGMMA_F32(at_e5m2, at_e5m2, "m64n8k32.f32.e5m2.e5m2", "1, 1, 1")
AT_WGMMA_F16(at_e5m2, at_e5m2, "m64n8k32.f16.e5m2.e5m2", "1, 1, 1")
#undef AT_WGMMA_F32
#undef AT_WGMMA_F16
#undef AT_WGMMA_BODY

#endif
