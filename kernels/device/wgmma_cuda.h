/* kernels/device/wgmma.h for CUDA. Without sm_90a (PTX for older and newer devices) a launch traps.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A descriptor has the address, the offset of the next core matrix (8 rows of 16 bytes) along k and that of the next 8
 * rows, each in units of 16 bytes, and the width of the swizzle. */
#ifndef AT_WGMMA_CUDA_H
#define AT_WGMMA_CUDA_H

struct at_matrix {
    uint64_t bits;

    __device__ static uint64_t field(int bytes, int place) { return ((uint64_t)bytes & 0x3ffff) >> 4 << place; }
    __device__ static at_matrix k_major(const void *at, int leading, int stride) {
        return { field((int)at_shared_address(at), 0) | field(leading, 16) | field(stride, 32) };
    }
    template <int W> __device__ static at_matrix swizzled(const void *at, int stride) {
        static_assert(W == 32 || W == 64 || W == 128, "rows of 32, 64 or 128 bytes");
        const uint64_t mode = W == 128 ? 1 : W == 64 ? 2 : 3;
        return { field((int)at_shared_address(at), 0) | field(16, 16) | field(stride, 32) | mode << 62 };
    }
    __device__ at_matrix moved(int bytes) const { return { bits + (uint64_t)(bytes >> 4) }; }
};

/* Columns side by side. Unswizzled, the first offset is the one along k. */
struct at_matrix_mn {
    uint64_t bits;

    __device__ static at_matrix_mn plain(const void *at, int along_mn, int along_k) {
        return { at_matrix::k_major(at, along_k, along_mn).bits };
    }
    template <int W> __device__ static at_matrix_mn swizzled(const void *at, int along_mn, int along_k) {
        return { (at_matrix::swizzled<W>(at, along_k).bits & ~at_matrix::field(0x3fff0, 16)) |
                 at_matrix::field(along_mn, 16) };
    }
    __device__ at_matrix_mn moved(int bytes) const { return { bits + (uint64_t)(bytes >> 4) }; }
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL
#define AT_SM90A(...) __VA_ARGS__
#else
#define AT_SM90A(...) __trap()
#endif

/* Without the feature nothing reads shared memory but threads. */
__device__ inline void at_proxy_fence() {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

/* The compiler keeps what it does with d on its side of the fence or the wait. */
__device__ inline void at_pin(float &x) { asm volatile("" : "+f"(x)::"memory"); }
__device__ inline void at_pin(uint32_t &x) { asm volatile("" : "+r"(x)::"memory"); }
template <class T, int N> __device__ void at_pin(T (&x)[N]) {
    AT_UNROLL
    for (int i = 0; i < N; i++)
        at_pin(x[i]);
}
template <class... D> __device__ void at_wgmma_fence(D &...d) {
    (at_pin(d), ...);
    AT_SM90A(asm volatile("wgmma.fence.sync.aligned;" ::: "memory"));
}
__device__ inline void at_wgmma_commit() { AT_SM90A(asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory")); }
/* The assembler moves arithmetic behind a wait, where nothing goes on beside it. What a branch may read it computes before:
 * here one that is never taken, its bits are those of no result. */
template <int N> __device__ void at_compute_here(float (&x)[N][4]) {
    if (__float_as_uint(x[0][0]) == 0x7fa5a5a5u) {
        AT_UNROLL
        for (int i = 0; i < N; i++)
            asm volatile("st.shared.v4.f32 [%4], {%0, %1, %2, %3};" ::"f"(x[i][0]), "f"(x[i][1]), "f"(x[i][2]),
                         "f"(x[i][3]), "r"(16 * i)
                         : "memory");
        __trap();
    }
}
template <int N, class D, class... E> __device__ void at_wgmma_wait(D &d, E &...ready) {
    (at_compute_here(ready), ...);
    AT_SM90A(asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory"));
    at_pin(d);
}

/* The sums as operands of the assembler: fragments, and what stands for their registers, those of a and b behind. */
#define AT_F(i) "+f"(d[i][0]), "+f"(d[i][1]), "+f"(d[i][2]), "+f"(d[i][3])
#define AT_H(i) "+r"(d[i][0]), "+r"(d[i][1])
#define AT_F_NEW(i) "=f"(d[i][0]), "=f"(d[i][1]), "=f"(d[i][2]), "=f"(d[i][3])
#define AT_H_NEW(i) "=r"(d[i][0]), "=r"(d[i][1])
#define AT_EACH_1(X) X(0)
#define AT_EACH_2(X) AT_EACH_1(X), X(1)
#define AT_EACH_8(X) AT_EACH_2(X), X(2), X(3), X(4), X(5), X(6), X(7)
#define AT_EACH_16(X) AT_EACH_8(X), X(8), X(9), X(10), X(11), X(12), X(13), X(14), X(15)
#define AT_EACH_32(X) \
    AT_EACH_16(X), X(16), X(17), X(18), X(19), X(20), X(21), X(22), X(23), X(24), X(25), X(26), X(27), X(28), X(29), \
        X(30), X(31)
#define AT_F_1 "{%0, %1, %2, %3}"
#define AT_F_1_AB "{%4, %5, %6, %7}, %8"
#define AT_F_1_MM "%4, %5"
#define AT_F_2 "{%0, %1, %2, %3, %4, %5, %6, %7}"
#define AT_F_2_AB "{%8, %9, %10, %11}, %12"
#define AT_F_2_MM "%8, %9"
#define AT_F_8 \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, " \
    "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"
#define AT_F_8_AB "{%32, %33, %34, %35}, %36"
#define AT_F_8_MM "%32, %33"
#define AT_F_16 \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, " \
    "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, " \
    "%38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, " \
    "%56, %57, %58, %59, %60, %61, %62, %63}"
#define AT_F_16_AB "{%64, %65, %66, %67}, %68"
#define AT_F_16_MM "%64, %65"
#define AT_F_32 \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, " \
    "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, " \
    "%39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, " \
    "%58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, " \
    "%77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, " \
    "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, " \
    "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}"
#define AT_F_32_AB "{%128, %129, %130, %131}, %132"
#define AT_F_32_MM "%128, %129"
#define AT_H_1 "{%0, %1}"
#define AT_H_1_AB "{%2, %3, %4, %5}, %6"
#define AT_H_1_MM "%2, %3"
#define AT_H_2 "{%0, %1, %2, %3}"
#define AT_H_2_AB "{%4, %5, %6, %7}, %8"
#define AT_H_2_MM "%4, %5"
#define AT_H_8 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15}"
#define AT_H_8_AB "{%16, %17, %18, %19}, %20"
#define AT_H_8_MM "%16, %17"
#define AT_H_16 \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, " \
    "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}"
#define AT_H_16_AB "{%32, %33, %34, %35}, %36"
#define AT_H_16_MM "%32, %33"
#define AT_H_32 \
    "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, " \
    "%20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, " \
    "%39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, " \
    "%58, %59, %60, %61, %62, %63}"
#define AT_H_32_AB "{%64, %65, %66, %67}, %68"
#define AT_H_32_MM "%64, %65"

/* One product: SHAPE and TYPES as the PTX ISA names them; NEGATE: scale of d, signs of a and b; the transposes follow
 * for 16-bit operands, of both matrices when a is one. MATRIX: of b. */
#define AT_WGMMA_OF(MATRIX, A, B, C, W, N, X, SHAPE, TYPES, NEGATE, T_AB, T_MM) \
    __device__ inline void at_wgmma(C(&d)[N][W], const uint32_t(&a)[4], MATRIX b, A, B) { \
        AT_SM90A(asm volatile("wgmma.mma_async.sync.aligned." SHAPE TYPES " " AT_##X##_##N ", " AT_##X##_##N##_AB \
                              ", " NEGATE T_AB ";" \
                              : AT_EACH_##N(AT_##X) \
                              : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b.bits) \
                              : "memory")); \
    } \
    __device__ inline void at_wgmma(C(&d)[N][W], at_matrix a, MATRIX b, A, B) { \
        AT_SM90A(asm volatile("wgmma.mma_async.sync.aligned." SHAPE TYPES " " AT_##X##_##N ", " AT_##X##_##N##_MM \
                              ", " NEGATE T_MM ";" \
                              : AT_EACH_##N(AT_##X) \
                              : "l"(a.bits), "l"(b.bits) \
                              : "memory")); \
    } \
    __device__ inline void at_wgmma_first(C(&d)[N][W], at_matrix a, MATRIX b, A, B) { \
        AT_SM90A(asm volatile("wgmma.mma_async.sync.aligned." SHAPE TYPES " " AT_##X##_##N ", " AT_##X##_##N##_MM \
                              ", 0, 1, 1" T_MM ";" \
                              : AT_EACH_##N(AT_##X##_NEW) \
                              : "l"(a.bits), "l"(b.bits) \
                              : "memory")); \
    }
#define AT_WGMMA(...) AT_WGMMA_OF(at_matrix, __VA_ARGS__)
#define AT_WGMMA_MN(...) AT_WGMMA_OF(at_matrix_mn, __VA_ARGS__)
#define AT_WGMMA_N(A, B, C, W, X, K, TYPES, T_AB, T_MM) \
    AT_WGMMA(A, B, C, W, 1, X, "m64n8" K, TYPES, "1, 1, 1", T_AB, T_MM) \
    AT_WGMMA(A, B, C, W, 2, X, "m64n16" K, TYPES, "1, 1, 1", T_AB, T_MM) \
    AT_WGMMA(A, B, C, W, 8, X, "m64n64" K, TYPES, "1, 1, 1", T_AB, T_MM) \
    AT_WGMMA(A, B, C, W, 16, X, "m64n128" K, TYPES, "1, 1, 1", T_AB, T_MM) \
    AT_WGMMA(A, B, C, W, 32, X, "m64n256" K, TYPES, "1, 1, 1", T_AB, T_MM)
AT_WGMMA_N(at_f16, at_f16, float, 4, F, "k16", ".f32.f16.f16", ", 0", ", 0, 0")
AT_WGMMA_N(at_bf16, at_bf16, float, 4, F, "k16", ".f32.bf16.bf16", ", 0", ", 0, 0")
AT_WGMMA_N(at_f16, at_f16, uint32_t, 2, H, "k16", ".f16.f16.f16", ", 0", ", 0, 0")
AT_WGMMA_N(at_tf32, at_tf32, float, 4, F, "k8", ".f32.tf32.tf32", "", "")
AT_WGMMA_N(at_e4m3, at_e4m3, float, 4, F, "k32", ".f32.e4m3.e4m3", "", "")
AT_WGMMA_N(at_e4m3, at_e4m3, uint32_t, 2, H, "k32", ".f16.e4m3.e4m3", "", "")
AT_WGMMA_N(at_e4m3, at_e5m2, float, 4, F, "k32", ".f32.e4m3.e5m2", "", "")
AT_WGMMA_N(at_e4m3, at_e5m2, uint32_t, 2, H, "k32", ".f16.e4m3.e5m2", "", "")
AT_WGMMA_N(at_e5m2, at_e4m3, float, 4, F, "k32", ".f32.e5m2.e4m3", "", "")
AT_WGMMA_N(at_e5m2, at_e4m3, uint32_t, 2, H, "k32", ".f16.e5m2.e4m3", "", "")
AT_WGMMA_N(at_e5m2, at_e5m2, float, 4, F, "k32", ".f32.e5m2.e5m2", "", "")
AT_WGMMA_N(at_e5m2, at_e5m2, uint32_t, 2, H, "k32", ".f16.e5m2.e5m2", "", "")
#define AT_WGMMA_MN_N(A, C, W, X, TYPES) \
    AT_WGMMA_MN(A, A, C, W, 1, X, "m64n8k16", TYPES, "1, 1, 1", ", 1", ", 0, 1") \
    AT_WGMMA_MN(A, A, C, W, 2, X, "m64n16k16", TYPES, "1, 1, 1", ", 1", ", 0, 1") \
    AT_WGMMA_MN(A, A, C, W, 8, X, "m64n64k16", TYPES, "1, 1, 1", ", 1", ", 0, 1") \
    AT_WGMMA_MN(A, A, C, W, 16, X, "m64n128k16", TYPES, "1, 1, 1", ", 1", ", 0, 1") \
    AT_WGMMA_MN(A, A, C, W, 32, X, "m64n256k16", TYPES, "1, 1, 1", ", 1", ", 0, 1")
AT_WGMMA_MN_N(at_f16, float, 4, F, ".f32.f16.f16")
AT_WGMMA_MN_N(at_bf16, float, 4, F, ".f32.bf16.bf16")
AT_WGMMA_MN_N(at_f16, uint32_t, 2, H, ".f16.f16.f16")
#undef AT_WGMMA_MN_N
#undef AT_WGMMA_MN
#undef AT_WGMMA_N
#undef AT_WGMMA
#undef AT_WGMMA_OF
#undef AT_SM90A
#undef AT_F
#undef AT_H
#undef AT_F_NEW
#undef AT_H_NEW
#undef AT_EACH_1
#undef AT_EACH_2
#undef AT_EACH_8
#undef AT_EACH_16
#undef AT_EACH_32
#undef AT_F_1
#undef AT_F_1_AB
#undef AT_F_1_MM
#undef AT_F_2
#undef AT_F_2_AB
#undef AT_F_2_MM
#undef AT_F_8
#undef AT_F_8_AB
#undef AT_F_8_MM
#undef AT_F_16
#undef AT_F_16_AB
#undef AT_F_16_MM
#undef AT_F_32
#undef AT_F_32_AB
#undef AT_F_32_MM
#undef AT_H_1
#undef AT_H_1_AB
#undef AT_H_1_MM
#undef AT_H_2
#undef AT_H_2_AB
#undef AT_H_2_MM
#undef AT_H_8
#undef AT_H_8_AB
#undef AT_H_8_MM
#undef AT_H_16
#undef AT_H_16_AB
#undef AT_H_16_MM
#undef AT_H_32
#undef AT_H_32_AB
#undef AT_H_32_MM

#endif
