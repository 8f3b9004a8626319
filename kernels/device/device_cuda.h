/* kernels/device for CUDA (sm_80 and newer; compile with -fmad=false).
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DEVICE_CUDA_H
#define AT_DEVICE_CUDA_H

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <stdint.h>
#include <string.h>

struct at_bf16 {
    uint16_t bits;
};
struct at_f16 {
    uint16_t bits;
};
/* Operands of tensor cores only. */
struct at_tf32 {
    uint32_t bits; /* an f32, of which the upper 19 bits count */
};
struct at_e4m3 {
    uint8_t bits;
};
struct at_e5m2 {
    uint8_t bits;
};

__device__ inline float at_float(float x) { return x; }
__device__ inline float at_float(at_bf16 x) { return __uint_as_float((uint32_t)x.bits << 16); }
__device__ inline float at_float(at_f16 x) { return __half2float(__ushort_as_half(x.bits)); }

template <class T> __device__ T at_round_to(float x);
template <> __device__ inline float at_round_to<float>(float x) { return x; }
template <> __device__ inline at_bf16 at_round_to<at_bf16>(float x) {
    return { __bfloat16_as_ushort(__float2bfloat16_rn(x)) };
}
template <> __device__ inline at_f16 at_round_to<at_f16>(float x) { return { __half_as_ushort(__float2half_rn(x)) }; }

template <class T> __device__ void at_load_pair(const T *p, float &a, float &b) {
    const uint32_t both = *reinterpret_cast<const uint32_t *>(p);
    a = at_float(T{ (uint16_t)both });
    b = at_float(T{ (uint16_t)(both >> 16) });
}

template <class T> __device__ uint32_t at_load32(const T *p) {
    static_assert(sizeof(T) == 2, "two elements of 16 bits");
    return *reinterpret_cast<const uint32_t *>(p);
}
template <class T> __device__ void at_store32(T *p, uint32_t both) {
    static_assert(sizeof(T) == 2, "two elements of 16 bits");
    *reinterpret_cast<uint32_t *>(p) = both;
}

template <class T> __device__ void at_load16(const T *p, T (&x)[16 / sizeof(T)]) {
    const uint4 all = *reinterpret_cast<const uint4 *>(p);
    memcpy(x, &all, 16);
}
template <class T> __device__ void at_store16(T *p, const T (&x)[16 / sizeof(T)]) {
    uint4 all;
    memcpy(&all, x, 16);
    *reinterpret_cast<uint4 *>(p) = all;
}
template <class T> __device__ void at_load16_once(const T *p, T (&x)[16 / sizeof(T)]) {
    const uint4 all = __ldcs(reinterpret_cast<const uint4 *>(p));
    memcpy(x, &all, 16);
}
template <class T> __device__ void at_store16_once(T *p, const T (&x)[16 / sizeof(T)]) {
    uint4 all;
    memcpy(&all, x, 16);
    __stcs(reinterpret_cast<uint4 *>(p), all);
}

__device__ inline void at_fma_where(bool yes, float a, const float (&b)[8], float (&c)[8]) {
    asm("{\n"
        ".reg .pred p;\n"
        "setp.ne.u32 p, %17, 0;\n"
        "@p fma.rn.f32 %0, %16, %8, %0;\n"
        "@p fma.rn.f32 %1, %16, %9, %1;\n"
        "@p fma.rn.f32 %2, %16, %10, %2;\n"
        "@p fma.rn.f32 %3, %16, %11, %3;\n"
        "@p fma.rn.f32 %4, %16, %12, %4;\n"
        "@p fma.rn.f32 %5, %16, %13, %5;\n"
        "@p fma.rn.f32 %6, %16, %14, %6;\n"
        "@p fma.rn.f32 %7, %16, %15, %7;\n"
        "}"
        : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]), "+f"(c[4]), "+f"(c[5]), "+f"(c[6]), "+f"(c[7])
        : "f"(b[0]), "f"(b[1]), "f"(b[2]), "f"(b[3]), "f"(b[4]), "f"(b[5]), "f"(b[6]), "f"(b[7]), "f"(a),
          "r"((uint32_t)yes));
}

#define AT_UNROLL _Pragma("unroll")
#define AT_NO_UNROLL _Pragma("unroll 1")

template <class T> struct at_same { using type = T; };
#define AT_SHARED(TYPE, name) __shared__ typename at_same<TYPE>::type name
#define AT_SHARED_DYNAMIC(TYPE, name) \
    extern __shared__ __align__(16) unsigned char at_dynamic_shared[]; \
    TYPE *name = reinterpret_cast<TYPE *>(at_dynamic_shared)

__device__ inline void at_sync() { __syncthreads(); }
__device__ inline void at_sync_warp(uint32_t mask = 0xffffffffu) { __syncwarp(mask); }
__device__ inline uint32_t at_ballot(uint32_t mask, bool yes) { return __ballot_sync(mask, yes); }
__device__ inline uint32_t at_multiply_high(uint32_t a, uint32_t b) { return __umulhi(a, b); }
__device__ inline int at_count_ones(uint32_t bits) { return __popc(bits); }
__device__ inline int at_lane() {
    return (int)((threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) % 32);
}
template <class T> __device__ T at_shuffle(uint32_t mask, T x, int lane, int width = 32) {
    return __shfl_sync(mask, x, lane, width);
}
template <class T> __device__ T at_shuffle_xor(uint32_t mask, T x, int with, int width = 32) {
    return __shfl_xor_sync(mask, x, with, width);
}
template <class T> __device__ T at_shuffle_up(uint32_t mask, T x, int by, int width = 32) {
    return __shfl_up_sync(mask, x, by, width);
}
template <class T> __device__ T at_atomic_add(T *address, T x) { return atomicAdd(address, x); }
__device__ inline uint32_t at_atomic_exchange(uint32_t *address, uint32_t x) { return atomicExch(address, x); }
__device__ inline uint32_t at_atomic_max(uint32_t *address, uint32_t x) { return atomicMax(address, x); }

__device__ inline float at_fma_sat(float a, float b, float c) {
    float y;
    asm("fma.rn.sat.f32 %0, %1, %2, %3;" : "=f"(y) : "f"(a), "f"(b), "f"(c));
    return y;
}

__device__ inline uint32_t at_shared_address(const void *p) { return (uint32_t)__cvta_generic_to_shared(p); }

/* Asynchronous copies: those of 16 bytes pass by L1. */
template <int BYTES> __device__ void at_copy_async(void *to, const void *from) {
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "cp.async copies 4, 8 or 16 bytes");
    if constexpr (BYTES == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at_shared_address(to)),
                     "l"(__cvta_generic_to_global(from))
                     : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at_shared_address(to)),
                     "l"(__cvta_generic_to_global(from)), "n"(BYTES)
                     : "memory");
}
__device__ inline void at_copy_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int N> __device__ void at_copy_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory"); }

__device__ inline void at_barrier(int id, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

/* mma.sync: rows of a, columns of b. Accumulators are float, four a lane, or two registers of two f16. */
#define AT_MMA_F32(SHAPE, A, B, TYPE, PTX, AREGS, BREGS, CREGS, ...) \
    __device__ inline void at_mma_##SHAPE(float(&d)[4], const uint32_t(&a)[A], const uint32_t(&b)[B], \
                                          const float(&c)[4], TYPE) { \
        asm volatile("mma.sync.aligned." PTX " {%0, %1, %2, %3}, " AREGS ", " BREGS ", " CREGS ";" \
                     : "=f"(d[0]), "=f"(d[1]), "=f"(d[2]), "=f"(d[3]) \
                     : __VA_ARGS__, "f"(c[0]), "f"(c[1]), "f"(c[2]), "f"(c[3])); \
    }
#define AT_MMA_F16(SHAPE, A, B, TYPE, PTX, AREGS, BREGS, CREGS, ...) \
    __device__ inline void at_mma_##SHAPE(uint32_t(&d)[2], const uint32_t(&a)[A], const uint32_t(&b)[B], \
                                          const uint32_t(&c)[2], TYPE) { \
        asm volatile("mma.sync.aligned." PTX " {%0, %1}, " AREGS ", " BREGS ", " CREGS ";" \
                     : "=r"(d[0]), "=r"(d[1]) \
                     : __VA_ARGS__, "r"(c[0]), "r"(c[1])); \
    }
#define AT_MMA_4X2_F32(SHAPE, TYPE, PTX) \
    AT_MMA_F32(SHAPE, 4, 2, TYPE, PTX, "{%4, %5, %6, %7}", "{%8, %9}", "{%10, %11, %12, %13}", "r"(a[0]), "r"(a[1]), \
               "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#define AT_MMA_4X2_F16(SHAPE, TYPE, PTX) \
    AT_MMA_F16(SHAPE, 4, 2, TYPE, PTX, "{%2, %3, %4, %5}", "{%6, %7}", "{%8, %9}", "r"(a[0]), "r"(a[1]), "r"(a[2]), \
               "r"(a[3]), "r"(b[0]), "r"(b[1]))
#define AT_MMA_2X1_F32(SHAPE, TYPE, PTX) \
    AT_MMA_F32(SHAPE, 2, 1, TYPE, PTX, "{%4, %5}", "{%6}", "{%7, %8, %9, %10}", "r"(a[0]), "r"(a[1]), "r"(b[0]))
#define AT_MMA_2X1_F16(SHAPE, TYPE, PTX) \
    AT_MMA_F16(SHAPE, 2, 1, TYPE, PTX, "{%2, %3}", "{%4}", "{%5, %6}", "r"(a[0]), "r"(a[1]), "r"(b[0]))
AT_MMA_4X2_F32(16816, at_f16, "m16n8k16.row.col.f32.f16.f16.f32")
AT_MMA_4X2_F32(16816, at_bf16, "m16n8k16.row.col.f32.bf16.bf16.f32")
AT_MMA_4X2_F16(16816, at_f16, "m16n8k16.row.col.f16.f16.f16.f16")
AT_MMA_2X1_F32(1688, at_f16, "m16n8k8.row.col.f32.f16.f16.f32")
AT_MMA_2X1_F32(1688, at_bf16, "m16n8k8.row.col.f32.bf16.bf16.f32")
AT_MMA_2X1_F16(1688, at_f16, "m16n8k8.row.col.f16.f16.f16.f16")
AT_MMA_4X2_F32(1688, at_tf32, "m16n8k8.row.col.f32.tf32.tf32.f32")
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890 /* has no fp8: a launch traps */
#define AT_MMA_FP8(TYPE, NAME) \
    __device__ inline void at_mma_16832(float(&)[4], const uint32_t(&)[4], const uint32_t(&)[2], const float(&)[4], \
                                        TYPE) { \
        __trap(); \
    } \
    __device__ inline void at_mma_16832(uint32_t(&)[2], const uint32_t(&)[4], const uint32_t(&)[2], \
                                        const uint32_t(&)[2], TYPE) { \
        __trap(); \
    }
#else
#define AT_MMA_FP8(TYPE, NAME) \
    AT_MMA_4X2_F32(16832, TYPE, "m16n8k32.row.col.f32." NAME "." NAME ".f32") \
    AT_MMA_4X2_F16(16832, TYPE, "m16n8k32.row.col.f16." NAME "." NAME ".f16")
#endif
AT_MMA_FP8(at_e4m3, "e4m3")
AT_MMA_FP8(at_e5m2, "e5m2")
#undef AT_MMA_FP8
#undef AT_MMA_4X2_F32
#undef AT_MMA_4X2_F16
#undef AT_MMA_2X1_F32
#undef AT_MMA_2X1_F16
#undef AT_MMA_F32
#undef AT_MMA_F16

/* ldmatrix. */
#define AT_LDMATRIX(NAME, PTX, COUNT, REGS, AT, ...) \
    __device__ inline void NAME(uint32_t(&r)[COUNT], const void *row) { \
        asm volatile("ldmatrix.sync.aligned.m8n8." PTX ".shared.b16 " REGS ", [" AT "];" \
                     : __VA_ARGS__ \
                     : "r"(at_shared_address(row)) \
                     : "memory"); \
    }
#define AT_LDMATRICES(SUFFIX, PTX) \
    AT_LDMATRIX(at_ldmatrix_x1##SUFFIX, "x1" PTX, 1, "{%0}", "%1", "=r"(r[0])) \
    AT_LDMATRIX(at_ldmatrix_x2##SUFFIX, "x2" PTX, 2, "{%0, %1}", "%2", "=r"(r[0]), "=r"(r[1])) \
    AT_LDMATRIX(at_ldmatrix_x4##SUFFIX, "x4" PTX, 4, "{%0, %1, %2, %3}", "%4", "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), \
                "=r"(r[3]))
AT_LDMATRICES(, "")
AT_LDMATRICES(_trans, ".trans")
#undef AT_LDMATRICES
#undef AT_LDMATRIX

struct at_mbarrier {
    uint64_t bits;
};
__device__ inline void at_mbarrier_init(at_mbarrier *b, uint32_t count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(at_shared_address(b)), "r"(count) : "memory");
}
__device__ inline void at_mbarrier_arrive(at_mbarrier *b) {
    asm volatile("{\n"
                 ".reg .b64 state;\n"
                 "mbarrier.arrive.shared.b64 state, [%0];\n"
                 "}" ::"r"(at_shared_address(b))
                 : "memory");
}
__device__ inline void at_mbarrier_wait(at_mbarrier *b, uint32_t parity) {
    uint32_t done;
    do {
        asm volatile("{\n"
                     ".reg .pred complete;\n"
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900 /* suspends the thread for a while */
                     "mbarrier.try_wait.parity.shared.b64 complete, [%1], %2;\n"
#else
                     "mbarrier.test_wait.parity.shared.b64 complete, [%1], %2;\n"
#endif
                     "selp.u32 %0, 1, 0, complete;\n"
                     "}"
                     : "=r"(done)
                     : "r"(at_shared_address(b)), "r"(parity)
                     : "memory");
    } while (!done);
}

static inline unsigned at_multiprocessors() {
    int device = 0, n = 0;
    if (cudaGetDevice(&device) != cudaSuccess ||
        cudaDeviceGetAttribute(&n, cudaDevAttrMultiProcessorCount, device) != cudaSuccess)
        return 1; /* the launch says what is wrong */
    return (unsigned)n;
}

/* More than 48 KiB a block must be asked for, and static arrays count: 48 KiB of dynamic memory beside one are too much. */
template <class... P> int at_ask_for_shared(void (*kernel)(P...), int64_t dynamic_shared) {
    return dynamic_shared > 0
               ? (int)cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)dynamic_shared)
               : 0;
}

template <class... P, class... A>
int at_launch(void (*kernel)(P...), dim3 grid, dim3 block, int64_t dynamic_shared, void *stream, A... args) {
    const int code = at_ask_for_shared(kernel, dynamic_shared);
    if (code)
        return code;
    kernel<<<grid, block, (size_t)dynamic_shared, static_cast<cudaStream_t>(stream)>>>(static_cast<P>(args)...);
    return (int)cudaGetLastError();
}

#endif
