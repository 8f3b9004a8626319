/* kernels/device/wgmma.h for the SIMT machine: each warp reads b from shared memory as its lanes need it, and
 * multiplies. SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_WGMMA_SIMT_H
#define AT_WGMMA_SIMT_H

static inline void at_wgmma_publish(AT_PLACE) { at_sync(line, file); }

/* Lane 4 g + t: columns are 8 rows of 16 bytes, of which it holds 4 from byte 4 t on, in each half of k. */
__attribute__((always_inline)) static inline void at_wgmma_column(const void *tile, uint32_t (&b)[2]) {
    for (int r = 0; r < 2; r++)
        b[r] = static_cast<const uint32_t *>(tile)[32 * r + 4 * (at_lane() / 4) + at_lane() % 4];
}

#define AT_WGMMA(A, B, C, N, KIND) \
    __attribute__((always_inline)) static inline void at_wgmma_n8(C(&d)[N], const uint32_t(&a)[4], const void *tile, \
                                                                  A, B, AT_PLACE) { \
        uint32_t b[2], sum[N]; \
        at_wgmma_column(tile, b); \
        memcpy(sum, d, sizeof sum); \
        at_simt_mma(KIND, a, b, sum, sum, { file, line }); \
        memcpy(d, sum, sizeof sum); \
    }
AT_WGMMA(at_f16, at_f16, float, 4, AT_SIMT_WGMMA_K16_F16_F32)
AT_WGMMA(at_bf16, at_bf16, float, 4, AT_SIMT_WGMMA_K16_BF16_F32)
AT_WGMMA(at_f16, at_f16, uint32_t, 2, AT_SIMT_WGMMA_K16_F16_F16)
AT_WGMMA(at_tf32, at_tf32, float, 4, AT_SIMT_WGMMA_K8_TF32_F32)
AT_WGMMA(at_e4m3, at_e4m3, float, 4, AT_SIMT_WGMMA_K32_E4M3_F32)
AT_WGMMA(at_e4m3, at_e4m3, uint32_t, 2, AT_SIMT_WGMMA_K32_E4M3_F16)
AT_WGMMA(at_e4m3, at_e5m2, float, 4, AT_SIMT_WGMMA_K32_E4M3_E5M2_F32)
AT_WGMMA(at_e4m3, at_e5m2, uint32_t, 2, AT_SIMT_WGMMA_K32_E4M3_E5M2_F16)
AT_WGMMA(at_e5m2, at_e4m3, float, 4, AT_SIMT_WGMMA_K32_E5M2_E4M3_F32)
AT_WGMMA(at_e5m2, at_e4m3, uint32_t, 2, AT_SIMT_WGMMA_K32_E5M2_E4M3_F16)
AT_WGMMA(at_e5m2, at_e5m2, float, 4, AT_SIMT_WGMMA_K32_E5M2_F32)
AT_WGMMA(at_e5m2, at_e5m2, uint32_t, 2, AT_SIMT_WGMMA_K32_E5M2_F16)
#undef AT_WGMMA

#endif
