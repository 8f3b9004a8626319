/* attest bench reference: speed and memory of the fast tier beside OpenBLAS's own dgemm, in one run.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/attention.h"
#include "attest/env.h"
#include "datasets/language/case.h"
#include "fast/dgemm_rate.h"
#include "fast/fast.h"
#include "verify/bench/bench.h"

static const char DEFAULT_CASE[] = "asynct_prefill b=4 h=8 hk=4 sq=1024 sk=1024 d=128 causal=1 dtype=bf16 data=normal";

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

struct timing {
    double dgemm, fast; /* flop/s, medians */
    int64_t peak_bytes;
    double worst_ratio; /* of the cross-check */
};

/* Rounds alternate so that both see the same machine; a time counts only for values that were cross-checked. */
static at_status time_both(const struct at_problem *p, int threads, int rounds, struct timing *t) {
    enum { MATRIX = 1024, SAMPLES = 64 };
    double flops = at_bench_flops(p), *rates = NULL;
    struct at_eval eval = { 0 };
    at_status status = AT_OK;
    int output = at_op_tensor_index(p->op, "o");
    int64_t count = p->sizes.tokens * p->sizes.h * p->sizes.d;
    rates = calloc((size_t)rounds * 2, sizeof *rates);
    eval.value[output] = calloc((size_t)count + 1, sizeof(double));
    if (!rates || !eval.value[output])
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for %lld outputs", (long long)count);
    for (int r = 0; r < rounds; r++) {
        AT_TRY_OUT(at_dgemm_rate(MATRIX, threads, 4, &rates[r]));
        double start = at_seconds();
        AT_TRY_OUT(at_fast_evaluate(p, NULL, threads, &eval, &t->peak_bytes, NULL, NULL));
        rates[rounds + r] = flops / (at_seconds() - start);
    }
    AT_TRY_OUT(at_fast_cross_check(p, &eval, SAMPLES, 1, &t->worst_ratio));
    qsort(rates, (size_t)rounds, sizeof *rates, by_value);
    qsort(rates + rounds, (size_t)rounds, sizeof *rates, by_value);
    t->dgemm = rates[rounds / 2];
    t->fast = rates[rounds + rounds / 2];
out:
    free(rates);
    free(eval.value[output]);
    return status;
}

static at_status bench(const struct at_args *args, double *share, double *minimum) {
    struct at_case_list cases = { 0 };
    struct at_case_data data = { 0 };
    struct timing t = { 0 };
    int64_t rounds, threads;
    at_status status = AT_OK;
    const char *line = at_args_get(args, "--case") ? at_args_get(args, "--case") : DEFAULT_CASE;
    AT_TRY(at_args_int(args, "--rounds", 1, 1000, 5, &rounds));
    AT_TRY(at_args_int(args, "--threads", 1, 1024, at_threads(), &threads));
    AT_TRY(at_args_real(args, "--min-share", 0, 1000, 0, minimum));
    AT_TRY(at_case_parse(line, "line", "command line", &cases));
    if (cases.n != 1)
        AT_FAIL_OUT(AT_USAGE, "bench: --case expands to %lld cases, wanted one", (long long)cases.n);
    AT_TRY_OUT(at_case_build(&cases.items[0], &data));
    if (!at_fast_supports(&data.problem))
        AT_FAIL_OUT(AT_UNSUPPORTED, "bench: operator %s at this size has no fast tier", data.problem.op->name);
    AT_TRY_OUT(time_both(&data.problem, (int)threads, (int)rounds, &t));
    *share = t.fast / t.dgemm;
    printf("case         %s\n", cases.items[0].id);
    printf("BLAS         %s, %lld threads\n", at_fast_blas_name(), (long long)threads);
    printf("dgemm 1024   %8.1f GFLOP/s\n", t.dgemm / 1e9);
    printf("fast tier    %8.1f GFLOP/s useful, %.1f %% of dgemm (medians of %lld alternating rounds)\n", t.fast / 1e9,
           100 * *share, (long long)rounds);
    printf("peak memory  %8.1f MiB beyond inputs and outputs\n", (double)t.peak_bytes / 1048576);
    printf("cross-check  64 rows against plain C, largest error/bound %.3g\n", t.worst_ratio);
out:
    at_case_data_release(&data);
    at_case_list_release(&cases);
    return status;
}

int at_bench_reference(const struct at_args *args) {
    double share = 0, minimum = 0;
    at_status status = bench(args, &share, &minimum);
    if (status != AT_OK)
        return at_report_failure(status);
    if (!(share >= minimum)) {
        fprintf(stderr, "attest: the fast tier reached %.1f %% of dgemm, wanted %.1f %%\n", 100 * share, 100 * minimum);
        return 1;
    }
    return 0;
}
