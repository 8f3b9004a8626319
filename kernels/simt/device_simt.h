/* kernels/device for the SIMT machine: what kernels write, on top of kernels/simt/simt.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DEVICE_SIMT_H
#define AT_DEVICE_SIMT_H

#include <string.h>

#include <type_traits>
/* libstdc++'s mathematics then come without Bessel functions and their like, which took a fifth of a kernel's compilation. */
#undef _GLIBCXX_USE_STD_SPEC_FUNCS
#include <math.h>

#include "kernels/simt/simt.h"

#define __global__
#define __device__
#define __host__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define threadIdx (at_simt_current->thread)
#define blockIdx (at_simt_current->block)
#define blockDim (at_simt_current->threads)
#define gridDim (at_simt_current->blocks)

using dim3 = at_dim3;

/* As PTX has them: 0 is larger than -0, where C leaves it open; a NaN gives way to a number. */
inline float at_simt_fmaxf(float a, float b) {
    if (a == b)
        return __builtin_signbit(a) ? b : a;
    return a > b || b != b ? a : b;
}
inline float at_simt_fminf(float a, float b) {
    if (a == b)
        return __builtin_signbit(a) ? a : b;
    return a < b || b != b ? a : b;
}
#define fmaxf(A, B) at_simt_fmaxf(A, B)
#define fminf(A, B) at_simt_fminf(A, B)

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

static inline float at_float(float x) { return x; }
static inline float at_float(at_bf16 x) {
    const uint32_t bits = (uint32_t)x.bits << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
/* The compiler's own words for f16: <immintrin.h> would be two thirds of what every kernel is compiled from. */
typedef short at_short8 __attribute__((vector_size(16)));
typedef float at_float4 __attribute__((vector_size(16)));
static inline float at_float(at_f16 x) { return __builtin_ia32_vcvtph2ps(at_short8{ (short)x.bits })[0]; }

/* Round to nearest, ties to even. */
template <class T> T at_round_to(float x);
template <> inline float at_round_to<float>(float x) { return x; }
template <> inline at_bf16 at_round_to<at_bf16>(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    if (x != x)
        return { 0x7fff };
    return { (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16) };
}
template <> inline at_f16 at_round_to<at_f16>(float x) {
    return { (uint16_t)(x != x ? 0x7fff : __builtin_ia32_vcvtps2ph(at_float4{ x }, 0)[0]) };
}

template <class T> void at_load_pair(const T *p, float &a, float &b) {
    uint32_t both;
    memcpy(&both, __builtin_assume_aligned(p, 4), sizeof both);
    a = at_float(T{ (uint16_t)both });
    b = at_float(T{ (uint16_t)(both >> 16) });
}

/* Two neighbours of a 16-bit format as they lie, the first in the lower half. */
template <class T> __attribute__((always_inline)) inline uint32_t at_load32(const T *p) {
    static_assert(sizeof(T) == 2, "two elements of 16 bits");
    uint32_t both;
    memcpy(&both, __builtin_assume_aligned(p, 4), sizeof both);
    return both;
}
template <class T> __attribute__((always_inline)) inline void at_store32(T *p, uint32_t both) {
    static_assert(sizeof(T) == 2, "two elements of 16 bits");
    memcpy(__builtin_assume_aligned(p, 4), &both, sizeof both);
}

template <class T> __attribute__((always_inline)) inline void at_load16(const T *p, T (&x)[16 / sizeof(T)]) {
    at_simt_load16(p, x);
}
template <class T> __attribute__((always_inline)) inline void at_store16(T *p, const T (&x)[16 / sizeof(T)]) {
    at_simt_store16(p, x);
}
template <class T> __attribute__((always_inline)) inline void at_load16_once(const T *p, T (&x)[16 / sizeof(T)]) {
    at_simt_load16(p, x);
}
template <class T> __attribute__((always_inline)) inline void at_store16_once(T *p, const T (&x)[16 / sizeof(T)]) {
    at_simt_store16(p, x);
}

static inline void at_fma_where(bool yes, float a, const float (&b)[8], float (&c)[8]) {
    for (int i = 0; i < 8; i++)
        c[i] = yes ? fmaf(a, b[i], c[i]) : c[i];
}

#define AT_UNROLL
#define AT_NO_UNROLL

template <class T> struct at_same { using type = T; };
/* A variable of the block: AT_SHARED(float[128], row). */
#define AT_SHARED(TYPE, name) \
    static const char name##_key = 0; \
    typename at_same<TYPE>::type &name = *static_cast<typename at_same<TYPE>::type *>( \
        at_simt_shared(&name##_key, (int64_t)sizeof(TYPE), (int64_t)alignof(TYPE)))
/* The block's dynamic shared memory, as large as the launch asked for. */
#define AT_SHARED_DYNAMIC(TYPE, name) TYPE *name = static_cast<TYPE *>(at_simt_shared_dynamic())

#define AT_PLACE int line = __builtin_LINE(), const char *file = __builtin_FILE()

static inline void at_sync(AT_PLACE) { at_simt_barrier({ file, line }); }
static inline void at_sync_warp(uint32_t mask = 0xffffffffu, AT_PLACE) {
    at_simt_warp(AT_SIMT_SYNCWARP, mask, 0, 0, { file, line });
}
static inline uint32_t at_ballot(uint32_t mask, bool yes, AT_PLACE) {
    return (uint32_t)at_simt_warp(AT_SIMT_BALLOT, mask, yes, 0, { file, line });
}
static inline float at_fma_sat(float a, float b, float c) {
    const float x = fmaf(a, b, c);
    return !(x > 0.0f) ? 0.0f : x < 1.0f ? x : 1.0f;
}
static inline uint32_t at_multiply_high(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a * b >> 32); }
static inline int at_count_ones(uint32_t bits) { return __builtin_popcount(bits); }
static inline int at_lane() { return at_simt_lane(); }

/* Shuffles of 32-bit values within segments of `width` lanes. */
template <class T> T at_shuffle_from(uint32_t mask, T x, int from, int line, const char *file) {
    static_assert(sizeof(T) == 4, "shuffles move 32 bits");
    uint32_t bits;
    memcpy(&bits, &x, 4);
    bits = (uint32_t)at_simt_warp(AT_SIMT_SHUFFLE, mask, bits, from, { file, line });
    memcpy(&x, &bits, 4);
    return x;
}
template <class T> T at_shuffle(uint32_t mask, T x, int lane, int width = 32, AT_PLACE) {
    return at_shuffle_from(mask, x, (at_simt_lane() & ~(width - 1)) | (lane & (width - 1)), line, file);
}
template <class T> T at_shuffle_xor(uint32_t mask, T x, int with, int width = 32, AT_PLACE) {
    const int own = at_simt_lane(), from = own ^ with;
    return at_shuffle_from(mask, x, (from & ~(width - 1)) == (own & ~(width - 1)) ? from : own, line, file);
}
template <class T> T at_shuffle_up(uint32_t mask, T x, int by, int width = 32, AT_PLACE) {
    const int own = at_simt_lane(), from = own - by;
    return at_shuffle_from(mask, x, from < (own & ~(width - 1)) ? own : from, line, file);
}

__attribute__((always_inline)) static inline uint32_t at_atomic_add(uint32_t *address, uint32_t x) {
    return at_simt_atomic_add_u32(address, x);
}
__attribute__((always_inline)) static inline float at_atomic_add(float *address, float x) {
    return at_simt_atomic_add_f32(address, x);
}
__attribute__((always_inline)) static inline uint32_t at_atomic_exchange(uint32_t *address, uint32_t x) {
    return at_simt_atomic_exchange_u32(address, x);
}
__attribute__((always_inline)) static inline uint32_t at_atomic_max(uint32_t *address, uint32_t x) {
    return at_simt_atomic_max_u32(address, x);
}

template <int BYTES> __attribute__((always_inline)) inline void at_copy_async(void *to, const void *from, AT_PLACE) {
    static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "cp.async copies 4, 8 or 16 bytes");
    at_simt_copy(to, from, BYTES, { file, line });
}
static inline void at_copy_commit(AT_PLACE) { at_simt_copy_commit({ file, line }); }
template <int N> void at_copy_wait(AT_PLACE) { at_simt_copy_wait(N, { file, line }); }

static inline void at_barrier(int id, int threads, AT_PLACE) { at_simt_named_barrier(id, threads, { file, line }); }

/* mma.sync. Accumulators are float, four a lane, or two registers of two f16. */
#define AT_MMA(SHAPE, A, B, TYPE, C, N, KIND) \
    __attribute__((always_inline)) static inline void at_mma_##SHAPE( \
        C(&d)[N], const uint32_t(&a)[A], const uint32_t(&b)[B], const C(&c)[N], TYPE, AT_PLACE) { \
        uint32_t sum[N]; \
        memcpy(sum, c, sizeof sum); \
        at_simt_mma(KIND, a, b, sum, sum, { file, line }); \
        memcpy(d, sum, sizeof sum); \
    }
AT_MMA(16816, 4, 2, at_f16, float, 4, AT_SIMT_MMA_K16_F16_F32)
AT_MMA(16816, 4, 2, at_bf16, float, 4, AT_SIMT_MMA_K16_BF16_F32)
AT_MMA(16816, 4, 2, at_f16, uint32_t, 2, AT_SIMT_MMA_K16_F16_F16)
AT_MMA(1688, 2, 1, at_f16, float, 4, AT_SIMT_MMA_K8_F16_F32)
AT_MMA(1688, 2, 1, at_bf16, float, 4, AT_SIMT_MMA_K8_BF16_F32)
AT_MMA(1688, 2, 1, at_f16, uint32_t, 2, AT_SIMT_MMA_K8_F16_F16)
AT_MMA(1688, 4, 2, at_tf32, float, 4, AT_SIMT_MMA_K8_TF32_F32)
AT_MMA(16832, 4, 2, at_e4m3, float, 4, AT_SIMT_MMA_K32_E4M3_F32)
AT_MMA(16832, 4, 2, at_e4m3, uint32_t, 2, AT_SIMT_MMA_K32_E4M3_F16)
AT_MMA(16832, 4, 2, at_e5m2, float, 4, AT_SIMT_MMA_K32_E5M2_F32)
AT_MMA(16832, 4, 2, at_e5m2, uint32_t, 2, AT_SIMT_MMA_K32_E5M2_F16)
#undef AT_MMA

/* ldmatrix. */
#define AT_LDMATRIX(NAME, COUNT, TRANSPOSED) \
    __attribute__((always_inline)) static inline void NAME(uint32_t(&r)[COUNT], const void *row, AT_PLACE) { \
        at_simt_load_matrix(COUNT, TRANSPOSED, row, r, { file, line }); \
    }
AT_LDMATRIX(at_ldmatrix_x1, 1, 0)
AT_LDMATRIX(at_ldmatrix_x1_trans, 1, 1)
AT_LDMATRIX(at_ldmatrix_x2, 2, 0)
AT_LDMATRIX(at_ldmatrix_x2_trans, 2, 1)
AT_LDMATRIX(at_ldmatrix_x4, 4, 0)
AT_LDMATRIX(at_ldmatrix_x4_trans, 4, 1)
#undef AT_LDMATRIX

struct at_mbarrier {
    uint64_t bits;
};
static inline void at_mbarrier_init(at_mbarrier *b, uint32_t count, AT_PLACE) {
    at_simt_mbarrier_init(b, count, { file, line });
}
static inline void at_mbarrier_arrive(at_mbarrier *b, AT_PLACE) { at_simt_mbarrier_arrive(b, { file, line }); }
static inline void at_mbarrier_wait(at_mbarrier *b, uint32_t parity, AT_PLACE) {
    at_simt_mbarrier_wait(b, parity, { file, line });
}

/* Few: a persistent block has several pieces of work also where a problem is small. */
static inline unsigned at_multiprocessors() { return 3; }

/* Puts kernel(args...) on the stream; 0 or a CUDA error number. */
template <class... P, class... A>
int at_launch(void (*kernel)(P...), dim3 grid, dim3 block, int64_t dynamic_shared, void *stream, A... args) {
    auto call = [kernel, ... held = static_cast<P>(args)] { kernel(held...); };
    return at_simt_launch([](void *context) { (*static_cast<const decltype(call) *>(context))(); }, &call,
                          (int64_t)sizeof call, grid, block, dynamic_shared, stream);
}

#endif
