/* cublasGemmEx for the variants that call it: the library opened by name, a product in either layout.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Nothing links it: where libcublas cannot be opened, at_cublas_declines says so of every problem. The functions are as
 * NVIDIA's documentation of cuBLAS 13 has them. */
#ifndef AT_CUBLAS_H
#define AT_CUBLAS_H

#include "attest/kernel.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#include "gemm/gemm.h"

/* Numbers of its interface: transposes, cudaDataType, cublasComputeType_t, cublasGemmAlgo_t, cublasMath_t, cublasStatus_t. */
enum { OP_N = 0, OP_T = 1, R_32F = 0, R_16F = 2, R_16BF = 14, COMPUTE_32F = 68, GEMM_DEFAULT = -1 };
enum { SUMS_STAY_F32 = 16, SUCCESS = 0, NOT_SUPPORTED = 15 };
/* The device's errors that a failed call is told as: cudaErrorNotSupported, cudaErrorUnknown. */
enum { ERROR_NOT_SUPPORTED = 801, ERROR_UNKNOWN = 999 };
enum { WORKSPACE = 32 << 20 };

/* Matrices are stored by columns; alpha and beta are where a float lies on the host. */
typedef int at_cublas_gemm_ex(void *handle, int op_a, int op_b, int m, int n, int k, const void *alpha, const void *a,
                              int a_type, int lda, const void *b, int b_type, int ldb, const void *beta, void *c,
                              int c_type, int ldc, int compute_type, int algorithm);

/* The library, once it has been opened, and a handle for the life of the process. */
static struct {
    const char *missing; /* why there is none; NULL: there is one, or nobody has tried */
    void *handle;
    int (*set_stream)(void *handle, void *stream);
    int (*set_workspace)(void *handle, void *workspace, size_t bytes);
    at_cublas_gemm_ex *gemm;
} at_cublas;

/* ISO C has no conversion from an address to a function's: `function` is where a pointer to one lies. */
static inline int at_cublas_find(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static inline const char *at_cublas_open(void) {
    static const char *const names[] = { "libcublas.so.13", "libcublas.so.12", "libcublas.so" };
    int (*create)(void **handle), (*set_math_mode)(void *handle, int mode);
    void *library = NULL, *handle = NULL;
    for (size_t i = 0; i < sizeof names / sizeof *names && !library; i++)
        library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return "no libcublas here";
    if (!at_cublas_find(library, "cublasCreate_v2", &create) ||
        !at_cublas_find(library, "cublasSetMathMode", &set_math_mode) ||
        !at_cublas_find(library, "cublasSetStream_v2", &at_cublas.set_stream) ||
        !at_cublas_find(library, "cublasSetWorkspace_v2", &at_cublas.set_workspace) ||
        !at_cublas_find(library, "cublasGemmEx", &at_cublas.gemm))
        return "this libcublas lacks a function that is wanted of it";
    if (create(&handle) != SUCCESS || set_math_mode(handle, SUMS_STAY_F32) != SUCCESS)
        return "libcublas is here and cannot be used on this device";
    at_cublas.handle = handle;
    return NULL;
}

/* Why a problem is declined. Opens the library the first time: a handle takes memory, which no launch may. */
static inline const char *at_cublas_declines(const struct at_problem *problem) {
    const struct at_gemm_own z = at_gemm_own_of(problem);
    if (problem->dtype != AT_F16 && problem->dtype != AT_BF16)
        return "factors are f16 or bf16";
    if (z.out != AT_F32 && z.out != (int32_t)problem->dtype)
        return "cuBLAS stores f32 or the format of the factors";
    if (z.k == 0)
        return "no products";
    if (!at_gemm_is_plain(problem))
        return "cublasGemmEx has one scale, and neither bias nor maximum";
    if (!at_cublas.handle && !at_cublas.missing)
        at_cublas.missing = at_cublas_open();
    return at_cublas.missing;
}

static inline int64_t at_cublas_workspace(const struct at_problem *problem) {
    (void)problem;
    return WORKSPACE;
}

/* By columns, the rows of d are the columns of d^T = b a^T; a second factor stored by rows is its transpose already. Setting the stream takes the workspace away: it comes second. */
static inline int at_cublas_launch(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const struct at_gemm_own z = at_gemm_own_of(p);
    const int type = p->dtype == AT_F16 ? R_16F : R_16BF, out = z.out == AT_F32 ? R_32F : type;
    const int by_rows = z.layout == AT_GEMM_KN;
    const void *second = p->tensors[by_rows ? AT_GEMM_W : AT_GEMM_B].data;
    const float alpha = p->params.scale, beta = 0;
    if (z.m == 0 || z.n == 0)
        return 0;
    int said = at_cublas.set_stream(at_cublas.handle, launch->stream);
    if (said == SUCCESS)
        said = at_cublas.set_workspace(at_cublas.handle, launch->workspace, WORKSPACE);
    if (said == SUCCESS)
        said = at_cublas.gemm(at_cublas.handle, by_rows ? OP_N : OP_T, OP_N, (int)z.n, (int)z.m, (int)z.k, &alpha,
                              second, type, (int)(by_rows ? z.n : z.k), p->tensors[AT_GEMM_A].data, type, (int)z.k,
                              &beta, p->tensors[AT_GEMM_D].data, out, (int)z.n, COMPUTE_32F, GEMM_DEFAULT);
    return said == SUCCESS ? 0 : said == NOT_SUPPORTED ? ERROR_NOT_SUPPORTED : ERROR_UNKNOWN;
}

/* What is declared: an order of sums that cuBLAS picks by sizes and device. */
#define AT_CUBLAS_NUMERICS \
    { \
        .free_order = 1, .qk_unit = AT_UNIT_TC_F32, .qk_lanes = 1, .p = AT_F32, .pv_unit = AT_UNIT_F32, .pv_chunk = 1, \
        .repeats = 1, \
    }

#endif
