/* kernels/device/wgmma.h for the SIMT machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_WGMMA_SIMT_H
#define AT_WGMMA_SIMT_H

struct at_matrix {
    at_simt_matrix m;

    static at_matrix k_major(const void *at, int leading, int stride) { return { { at, leading, stride, 0, 0 } }; }
    template <int W> static at_matrix swizzled(const void *at, int stride) { return { { at, 0, stride, W, 0 } }; }
    at_matrix moved(int bytes) const {
        return { { static_cast<const char *>(m.at) + bytes, m.leading, m.stride, m.swizzle, 0 } };
    }
};

struct at_matrix_mn {
    at_simt_matrix m;

    static at_matrix_mn plain(const void *at, int along_mn, int along_k) { return { { at, along_k, along_mn, 0, 1 } }; }
    template <int W> static at_matrix_mn swizzled(const void *at, int along_mn, int along_k) {
        return { { at, along_mn, along_k, W, 1 } };
    }
    at_matrix_mn moved(int bytes) const {
        return { { static_cast<const char *>(m.at) + bytes, m.leading, m.stride, m.swizzle, 1 } };
    }
};

static inline void at_proxy_fence(AT_PLACE) { at_simt_proxy_fence({ file, line }); }

/* The variables are named for the compiler that keeps them in registers; the machine knows them by their places. */

template <class D> void at_wgmma_fence(D &, AT_PLACE) { at_simt_wgmma_fence({ file, line }); }
template <class D, int N, int W, class E, int M, int L> void at_wgmma_fence(D (&)[N][W], E (&)[M][L], AT_PLACE) {
    at_simt_wgmma_fence({ file, line });
}
template <class D, int N, int W, class E, int M, int L, class F, int K, int J>
void at_wgmma_fence(D (&)[N][W], E (&)[M][L], F (&)[K][J], AT_PLACE) {
    at_simt_wgmma_fence({ file, line });
}
static inline void at_wgmma_commit(AT_PLACE) { at_simt_wgmma_commit({ file, line }); }
template <int N, class D> void at_wgmma_wait(D &, AT_PLACE) { at_simt_wgmma_wait(N, { file, line }); }
template <int N, class D, class E, int M, int L> void at_wgmma_wait(D &, E (&)[M][L], AT_PLACE) {
    at_simt_wgmma_wait(N, { file, line });
}

/* The machine's number for a product. */
template <class A, class B, class C> constexpr at_simt_mma_kind at_wgmma_kind = AT_SIMT_MMA_KINDS;
#define AT_WGMMA(A, B, C, KIND) template <> inline constexpr at_simt_mma_kind at_wgmma_kind<A, B, C> = KIND;
AT_WGMMA(at_f16, at_f16, float, AT_SIMT_WGMMA_K16_F16_F32)
AT_WGMMA(at_bf16, at_bf16, float, AT_SIMT_WGMMA_K16_BF16_F32)
AT_WGMMA(at_f16, at_f16, uint32_t, AT_SIMT_WGMMA_K16_F16_F16)
AT_WGMMA(at_tf32, at_tf32, float, AT_SIMT_WGMMA_K8_TF32_F32)
AT_WGMMA(at_e4m3, at_e4m3, float, AT_SIMT_WGMMA_K32_E4M3_F32)
AT_WGMMA(at_e4m3, at_e4m3, uint32_t, AT_SIMT_WGMMA_K32_E4M3_F16)
AT_WGMMA(at_e4m3, at_e5m2, float, AT_SIMT_WGMMA_K32_E4M3_E5M2_F32)
AT_WGMMA(at_e4m3, at_e5m2, uint32_t, AT_SIMT_WGMMA_K32_E4M3_E5M2_F16)
AT_WGMMA(at_e5m2, at_e4m3, float, AT_SIMT_WGMMA_K32_E5M2_E4M3_F32)
AT_WGMMA(at_e5m2, at_e4m3, uint32_t, AT_SIMT_WGMMA_K32_E5M2_E4M3_F16)
AT_WGMMA(at_e5m2, at_e5m2, float, AT_SIMT_WGMMA_K32_E5M2_F32)
AT_WGMMA(at_e5m2, at_e5m2, uint32_t, AT_SIMT_WGMMA_K32_E5M2_F16)
#undef AT_WGMMA

template <class C, int N, int W, class A, class B>
__attribute__((always_inline)) inline void at_wgmma_issue(C (&d)[N][W], const uint32_t *a, at_simt_matrix a_at,
                                                          at_simt_matrix b, at_simt_place place, int fresh = 0) {
    static_assert(at_wgmma_kind<A, B, C> != AT_SIMT_MMA_KINDS, "no such wgmma");
    uint32_t *sums;
    C *first = d[0];
    memcpy(&sums, &first, sizeof sums);
    const struct at_simt_wgmma operation = { at_wgmma_kind<A, B, C>, 8 * N, a, a_at, b, sums, fresh };
    at_simt_wgmma(&operation, place);
}
template <class C, int N, int W, class A, class B>
__attribute__((always_inline)) inline void at_wgmma(C (&d)[N][W], const uint32_t (&a)[4], at_matrix b, A, B, AT_PLACE) {
    at_wgmma_issue<C, N, W, A, B>(d, a, {}, b.m, { file, line });
}
template <class C, int N, int W, class A, class B>
__attribute__((always_inline)) inline void at_wgmma(C (&d)[N][W], at_matrix a, at_matrix b, A, B, AT_PLACE) {
    at_wgmma_issue<C, N, W, A, B>(d, nullptr, a.m, b.m, { file, line });
}
template <class C, int N, int W, class A, class B>
__attribute__((always_inline)) inline void at_wgmma_first(C (&d)[N][W], at_matrix a, at_matrix b, A, B, AT_PLACE) {
    at_wgmma_issue<C, N, W, A, B>(d, nullptr, a.m, b.m, { file, line }, 1);
}
template <class C, int N, int W, class A, class B>
__attribute__((always_inline)) inline void at_wgmma_first(C (&d)[N][W], at_matrix a, at_matrix_mn b, A, B, AT_PLACE) {
    static_assert(sizeof(B) == 2, "columns side by side are of 16-bit elements");
    at_wgmma_issue<C, N, W, A, B>(d, nullptr, a.m, b.m, { file, line }, 1);
}
template <class C, int N, int W, class A, class B>
__attribute__((always_inline)) inline void at_wgmma(C (&d)[N][W], const uint32_t (&a)[4], at_matrix_mn b, A, B,
                                                    AT_PLACE) {
    static_assert(sizeof(B) == 2, "columns side by side are of 16-bit elements");
    at_wgmma_issue<C, N, W, A, B>(d, a, {}, b.m, { file, line });
}
template <class C, int N, int W, class A, class B>
__attribute__((always_inline)) inline void at_wgmma(C (&d)[N][W], at_matrix a, at_matrix_mn b, A, B, AT_PLACE) {
    static_assert(sizeof(B) == 2, "columns side by side are of 16-bit elements");
    at_wgmma_issue<C, N, W, A, B>(d, nullptr, a.m, b.m, { file, line });
}

#endif
