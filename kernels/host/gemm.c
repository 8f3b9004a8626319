/* Products of matrices on the host.
 * SPDX-License-Identifier: Apache-2.0
 *
 * One thread: the bits of a BLAS change with its threads. */
#include "kernels/host/gemm.h"

#include <cblas.h>
#include <math.h>

#include "attest/blas_alone.h"
#include "gemm/gemm.h"
#include "kernels/host/attention.h"
#include "kernels/host/tensor_f16.h"
#include "kernels/host/tensor_fp8.h"

enum { ROWS = 32 };

struct scratch {
    float *b, *a, *d; /* [n k], [ROWS k], [ROWS n] */
};

static int64_t lay_out(const struct at_problem *problem, void *base, struct scratch *s) {
    struct at_host_arena arena = { .base = (uint8_t *)base };
    const struct at_gemm_own own = at_gemm_own_of(problem), *z = &own;
    const int64_t word = (int64_t)sizeof(float);
    s->b = at_host_take(&arena, z->n * z->k, word);
    s->a = at_host_take(&arena, ROWS * z->k, word);
    s->d = at_host_take(&arena, ROWS * z->n, word);
    return arena.used;
}

int64_t at_host_gemm_blas_workspace(const struct at_problem *problem) {
    struct scratch s;
    return lay_out(problem, NULL, &s);
}

/* Every format's values are floats. */
static void load(const struct at_tensor *tensor, int64_t first, int64_t n, float *out) {
    for (int64_t i = 0; i < n; i++)
        out[i] = (float)at_tensor_get(tensor, first + i);
}

/* What follows the sums: the factor, the bias, the largest magnitude so far. */
struct epilogue {
    const struct at_problem *problem;
    float factor;
    float *amax; /* NULL: nobody wants it */
};

static struct epilogue begin(const struct at_problem *problem) {
    const struct at_gemm_own z = at_gemm_own_of(problem);
    struct epilogue e = { problem, problem->params.scale, problem->tensors[AT_GEMM_AMAX].data };
    for (int t = AT_GEMM_SCALE_A; z.scales && t <= AT_GEMM_SCALE_B; t++)
        e.factor *= *(const float *)problem->tensors[t].data;
    if (z.amax)
        *e.amax = 0;
    return e;
}

/* Stores n sums from element `first` on. A NaN among the values stays in amax. */
static void store(const struct epilogue *e, int64_t first, int64_t n, float *sums) {
    const struct at_problem *problem = e->problem;
    const struct at_gemm_own z = at_gemm_own_of(problem);
    for (int64_t i = 0; i < n; i++) {
        sums[i] *= e->factor;
        if (z.bias != AT_GEMM_BIAS_NONE)
            sums[i] += (float)at_tensor_get(&problem->tensors[AT_GEMM_BIAS], (first + i) % z.n);
        if (z.amax && !(fabsf(sums[i]) <= *e->amax) && !isnan(*e->amax))
            *e->amax = fabsf(sums[i]);
    }
    at_host_store(&problem->tensors[AT_GEMM_D], first, n, sums);
}

int at_host_gemm_blas(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const struct at_gemm_own z = at_gemm_own_of(p);
    const int64_t m = z.m, n = z.n, k = z.k;
    struct scratch s;
    lay_out(p, launch->workspace, &s);
    at_blas_alone();
    const struct epilogue e = begin(p);
    const int by_rows = z.layout == AT_GEMM_KN;
    load(&p->tensors[by_rows ? AT_GEMM_W : AT_GEMM_B], 0, n * k, s.b);
    for (int64_t first = 0; first < m; first += ROWS) {
        const int64_t rows = m - first < ROWS ? m - first : ROWS;
        load(&p->tensors[AT_GEMM_A], first * k, rows * k, s.a);
        for (int64_t i = 0; k == 0 && i < rows * n; i++) /* a sum of nothing, whatever a BLAS makes of it */
            s.d[i] = 0;
        if (n > 0 && k > 0)
            cblas_sgemm(CblasRowMajor, CblasNoTrans, by_rows ? CblasNoTrans : CblasTrans, (int)rows, (int)n, (int)k,
                        1.0f, s.a, (int)k, s.b, by_rows ? (int)n : (int)k, 0.0f, s.d, (int)n);
        store(&e, first * n, rows * n, s.d);
    }
    return 0;
}

int at_host_gemm_one_chain(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const struct at_gemm_own z = at_gemm_own_of(p);
    const struct epilogue e = begin(p);
    for (int64_t i = 0; i < z.m; i++)
        for (int64_t j = 0; j < z.n; j++) {
            float sum = 0;
            for (int64_t l = 0; l < z.k; l++)
                sum = fmaf((float)at_tensor_get(&p->tensors[AT_GEMM_A], i * z.k + l),
                           (float)at_tensor_get(&p->tensors[AT_GEMM_W], l * z.n + j), sum);
            store(&e, i * z.n + j, 1, &sum);
        }
    return 0;
}

/* Both factors decoded. */
int64_t at_host_gemm_tc_f16_workspace(const struct at_problem *problem) {
    const struct at_gemm_own own = at_gemm_own_of(problem), *z = &own;
    return (z->m + z->n) * z->k * (int64_t)sizeof(struct at_host_half);
}

static void decode(const struct at_tensor *tensor, int64_t n, struct at_host_half *out) {
    const uint16_t *codes = tensor->data;
    for (int64_t i = 0; i < n; i++)
        out[i] = at_host_half(codes[i]);
}

int at_host_gemm_tc_f16(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const struct at_gemm_own z = at_gemm_own_of(p);
    const int64_t m = z.m, n = z.n, k = z.k;
    struct at_host_half *b = launch->workspace, *a = b + n * k;
    const struct epilogue e = begin(p);
    decode(&p->tensors[AT_GEMM_B], n * k, b);
    decode(&p->tensors[AT_GEMM_A], m * k, a);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = at_f32_from_f16(at_host_tensor_f16(k, a + i * k, b + j * k, 1, 0));
            store(&e, i * n + j, 1, &sum);
        }
    return 0;
}

int64_t at_host_gemm_tc_fp8_workspace(const struct at_problem *problem) {
    const struct at_gemm_own z = at_gemm_own_of(problem);
    return (z.m + z.n) * z.k * (int64_t)sizeof(struct at_host_eighth);
}

int at_host_gemm_tc_fp8(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const struct at_gemm_own z = at_gemm_own_of(p);
    struct at_host_eighth *b = launch->workspace, *a = b + z.n * z.k;
    const struct epilogue e = begin(p);
    for (int64_t i = 0; i < z.n * z.k; i++)
        b[i] = at_host_eighth(p->dtype, ((const uint8_t *)p->tensors[AT_GEMM_B].data)[i]);
    for (int64_t i = 0; i < z.m * z.k; i++)
        a[i] = at_host_eighth(p->dtype, ((const uint8_t *)p->tensors[AT_GEMM_A].data)[i]);
    for (int64_t i = 0; i < z.m; i++)
        for (int64_t j = 0; j < z.n; j++) {
            float sum = at_host_tensor_fp8(z.k, a + i * z.k, b + j * z.k);
            store(&e, i * z.n + j, 1, &sum);
        }
    return 0;
}
