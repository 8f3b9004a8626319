/* kernels/device/store_matrix.h for CUDA.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_STORE_MATRIX_CUDA_H
#define AT_STORE_MATRIX_CUDA_H

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
#define AT_STMATRIX(NAME, PTX, COUNT, REGS, ...) \
    __device__ inline void NAME(void *, const uint32_t(&)[COUNT]) { __trap(); }
#else
#define AT_STMATRIX(NAME, PTX, COUNT, REGS, ...) \
    __device__ inline void NAME(void *row, const uint32_t(&r)[COUNT]) { \
        asm volatile("stmatrix.sync.aligned.m8n8." PTX ".shared.b16 [%0], " REGS ";" ::"r"(at_shared_address(row)), \
                     __VA_ARGS__ \
                     : "memory"); \
    }
#endif
#define AT_STMATRICES(SUFFIX, PTX) \
    AT_STMATRIX(at_stmatrix_x1##SUFFIX, "x1" PTX, 1, "{%1}", "r"(r[0])) \
    AT_STMATRIX(at_stmatrix_x2##SUFFIX, "x2" PTX, 2, "{%1, %2}", "r"(r[0]), "r"(r[1])) \
    AT_STMATRIX(at_stmatrix_x4##SUFFIX, "x4" PTX, 4, "{%1, %2, %3, %4}", "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]))
AT_STMATRICES(, "")
AT_STMATRICES(_trans, ".trans")
#undef AT_STMATRICES
#undef AT_STMATRIX

#endif
