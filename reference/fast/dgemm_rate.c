/* dgemm, timed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "fast/dgemm_rate.h"

#include <cblas.h>
#include <stdlib.h>

#include "attest/blas_alone.h"
#include "attest/env.h"

struct products {
    int n, rounds;
    double *memory; /* 3 matrices a thread */
};

static at_status multiply(void *context, int64_t begin, int64_t end, int worker) {
    struct products *p = context;
    size_t square = (size_t)p->n * (size_t)p->n;
    (void)worker;
    for (int64_t thread = begin; thread < end; thread++) {
        double *a = p->memory + (size_t)thread * 3 * square, *b = a + square, *c = b + square;
        for (int r = 0; r < p->rounds; r++)
            cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasTrans, p->n, p->n, p->n, 1, a, p->n, b, p->n, 0, c, p->n);
    }
    return AT_OK;
}

at_status at_dgemm_rate(int n, int threads, int rounds, double *flops_per_second) {
    struct products p = { .n = n, .rounds = rounds };
    size_t count = (size_t)threads * 3 * (size_t)n * (size_t)n;
    p.memory = malloc(count * sizeof *p.memory);
    if (!p.memory)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %d matrices of %d x %d", 3 * threads, n, n);
    for (size_t i = 0; i < count; i++)
        p.memory[i] = (double)(i % 17) - 8;
    at_blas_alone();
    double start = at_seconds();
    at_status status = at_parallel(threads, 1, threads, multiply, &p);
    double seconds = at_seconds() - start;
    free(p.memory);
    *flops_per_second = 2.0 * n * n * n * rounds * threads / seconds;
    return status;
}
