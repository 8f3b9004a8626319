/* attest bench tensor-core: products a second that the tensor-core model does on one core, per instruction.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Only what is right is timed: the model first makes the golden vectors of the instruction again, which a device made,
 * and the results of the timed passes must be the same as those. Instructions without golden vectors are left out. */
#include <fnmatch.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "attest/env.h"
#include "datasets/language/case.h"
#include "verify/bench/bench.h"
#include "verify/study/tensor_core/study_tensor_core.h"

enum { MAX_ROWS = 1024, SAMPLE = 640, MAX_ROUNDS = 1000 };
static const double round_seconds = 0.02;

/* Operands as the model takes them, small enough for a core's own cache, and what it must make of them. */
struct sample {
    int64_t n;
    double *a, *b, *c, *want, *got;
};

static void sample_release(struct sample *s) {
    free(s->a);
    free(s->b);
    free(s->c);
    free(s->want);
    free(s->got);
    *s = (struct sample){ 0 };
}

static at_status sample_init(const struct at_tc_instruction *t, struct sample *s) {
    const size_t n = SAMPLE, k = (size_t)t->k;
    *s = (struct sample){ 0, malloc(n * k * 8), malloc(n * k * 8), malloc(n * 8), calloc(n, 8), calloc(n, 8) };
    if (!s->a || !s->b || !s->c || !s->want || !s->got) {
        sample_release(s);
        return AT_FAIL(AT_NO_MEMORY, "bench: no memory for %d patterns", (int)SAMPLE);
    }
    return AT_OK;
}

/* The first `count` patterns of a stratum, whose results are the first of `values`. */
static void sample_add(const struct at_tc_study_row *row, int64_t count, const double *values, struct sample *s) {
    const struct at_tc_instruction *t = row->instruction;
    const struct at_tc_target target = at_tc_target_of(t);
    for (int64_t i = 0; i < count && i < row->patterns && s->n < SAMPLE; i++, s->n++) {
        uint32_t a[AT_TC_BLOCK_MAX], b[AT_TC_BLOCK_MAX];
        at_tc_pattern(&target, row->stratum, row->seed, i, t->k, a, b, &s->c[s->n]);
        for (int k = 0; k < t->k; k++) {
            s->a[s->n * t->k + k] = at_decode(t->a, a[k]);
            s->b[s->n * t->k + k] = at_decode(t->b, b[k]);
        }
        s->want[s->n] = values[i];
    }
}

/* The instruction's golden rows made again. *verified: results; *different: strata that are not as on the device.
 * Samples: the ordinary stratum, and all strata in equal parts. */
static at_status verify_golden(struct at_tc_study_row *rows, int n, struct sample *ordinary, struct sample *mixed,
                               int64_t *verified, int *different) {
    at_status status = AT_OK;
    double *values = NULL;
    for (int i = 0; i < n; i++) {
        struct at_tc_study_row made = rows[i];
        free(values);
        values = malloc(((size_t)made.patterns + 1) * sizeof *values);
        if (!values)
            AT_FAIL_OUT(AT_NO_MEMORY, "bench: no memory for %lld patterns", (long long)made.patterns);
        AT_TRY_OUT(at_tc_study_model(&made, 0, at_threads(), values));
        at_tc_study_digest(values, made.patterns, &made);
        *different += made.hash != rows[i].hash || memcmp(made.first, rows[i].first, sizeof made.first) != 0;
        *verified += made.patterns;
        if (made.stratum == AT_TC_ordinary)
            sample_add(&made, SAMPLE, values, ordinary);
        sample_add(&made, SAMPLE / AT_TC_STRATA, values, mixed);
    }
out:
    free(values);
    return status;
}

static double core_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int same(double a, double b) { return (isnan(a) && isnan(b)) || (a == b && signbit(a) == signbit(b)); }

/* Products a second, the median of some rounds; NaN without patterns. *wrong counts results that are not as verified. */
static double rate(const struct at_tc_instruction *t, const struct sample *s, int rounds, int64_t *wrong) {
    double rates[MAX_ROUNDS] = { 0 };
    for (int r = 0; r < rounds && s->n; r++) {
        const double start = core_seconds();
        double seconds = 0;
        int64_t passes = 0;
        for (; seconds < round_seconds; passes++) {
            for (int64_t i = 0; i < s->n; i++)
                s->got[i] = at_tc_multiply_add(t, NULL, &s->a[i * t->k], &s->b[i * t->k], s->c[i]);
            seconds = core_seconds() - start;
        }
        rates[r] = (double)(passes * s->n * t->k) / seconds;
        for (int64_t i = 0; i < s->n; i++)
            *wrong += !same(s->got[i], s->want[i]);
    }
    qsort(rates, s->n ? (size_t)rounds : 0, sizeof *rates, by_value);
    return s->n ? rates[rounds / 2] : (double)NAN;
}

/* *bad: the instruction is wrong, or slower than asked for. */
static at_status bench_instruction(struct at_tc_study_row *rows, int n, int rounds, double least, int *bad) {
    const struct at_tc_instruction *t = rows->instruction;
    struct sample ordinary = { 0 }, mixed = { 0 };
    int64_t verified = 0, wrong = 0;
    int different = 0;
    at_status status = AT_OK;
    AT_TRY_OUT(sample_init(t, &ordinary));
    AT_TRY_OUT(sample_init(t, &mixed));
    AT_TRY_OUT(verify_golden(rows, n, &ordinary, &mixed, &verified, &different));
    if (different) {
        printf("%-32s not timed: %d of %d strata differ from the device\n", t->name, different, n);
        *bad += 1;
        goto out;
    }
    const double plain = rate(t, &ordinary, rounds, &wrong), any = rate(t, &mixed, rounds, &wrong);
    const int slow = least > 0 && !(plain >= least && any >= least);
    printf("%-32s %10.1f %10.1f   %lld results as on the device%s\n", t->name, plain / 1e6, any / 1e6,
           (long long)verified,
           wrong  ? "; TIMED RESULTS DIFFER"
           : slow ? "; slower than asked for"
                  : "");
    fflush(stdout);
    *bad += wrong || slow;
out:
    sample_release(&ordinary);
    sample_release(&mixed);
    return status;
}

static at_status bench(const struct at_args *args, struct at_tc_study_row *rows, int *bad) {
    const char *glob = args->n_words > 1 ? args->words[1] : "*", *golden = at_args_get(args, "--golden");
    char path[4200];
    int64_t rounds;
    double least;
    int n, timed = 0;
    AT_TRY(at_args_int(args, "--rounds", 1, MAX_ROUNDS, 5, &rounds));
    AT_TRY(at_args_real(args, "--min-rate", 0, 1e9, 0, &least));
    snprintf(path, sizeof path, "%s/measurements/h200_tensor_core.txt", at_datasets_dir());
    AT_TRY(at_tc_golden_read(golden ? golden : path, rows, MAX_ROWS, &n));
    printf("%-32s %10s %10s   million products a second on one core: ordinary operands, all strata\n", "instruction",
           "ordinary", "stratified");
    for (int i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && rows[end].instruction == rows[i].instruction;)
            end++;
        if (fnmatch(glob, rows[i].instruction->name, 0) != 0)
            continue;
        AT_TRY(bench_instruction(&rows[i], end - i, (int)rounds, 1e6 * least, bad));
        timed++;
    }
    if (!timed)
        return AT_FAIL(AT_USAGE, "bench tensor-core: no golden vectors of an instruction that matches '%s' in %s", glob,
                       golden ? golden : path);
    return AT_OK;
}

int at_bench_tensor_core(const struct at_args *args) {
    int bad = 0;
    struct at_tc_study_row *rows = calloc(MAX_ROWS, sizeof *rows);
    const at_status status = rows ? bench(args, rows, &bad) : AT_FAIL(AT_NO_MEMORY, "bench: no memory");
    free(rows);
    if (status != AT_OK)
        return at_report_failure(status);
    return bad ? 1 : 0;
}
