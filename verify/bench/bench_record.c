/* attest bench record: scores a second of a recording beside the same computation without rounding and counting.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/env.h"
#include "verify/bench/bench.h"
#include "verify/record/dist_record.h"

static const char *const default_cases[] = {
    "asynct_prefill b=1 h=8 hk=4 sq=2048 d=32 dtype=f16 data=normal",
    "asynct_prefill b=1 h=8 hk=4 sq=2048 d=64 dtype=f16 data=normal",
    "asynct_prefill b=1 h=8 hk=4 sq=2048 d=128 dtype=f16 data=normal",
    "softmax_prefill b=1 h=8 hk=4 sq=2048 d=64 dtype=bf16 data=normal",
};

struct timing {
    double scores;          /* visible, of all heads */
    double alone, counting; /* seconds, medians */
};

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Requests one by one, as a recording has them, from memory. */
static at_status load(struct at_dist_source *s, int64_t request, int tensor, int64_t rows, char **codes) {
    const int64_t row = (tensor == AT_DIST_Q ? s->h : s->hk) * s->d;
    *codes = malloc((size_t)(rows * row) * at_format_info(s->format)->bytes + 1);
    if (!*codes)
        return AT_FAIL(AT_NO_MEMORY, "no memory for request %lld", (long long)request);
    return at_dist_source_read(s, 0, request, tensor, 0, rows, *codes);
}

static at_status time_request(struct at_dist_recording *x, struct at_dist_workers *workers, int64_t request, int rounds,
                              struct at_dist_layer *layer, struct timing *t) {
    struct at_dist_unit unit = { .request = request,
                                 .queries = at_dist_source_queries(&x->source, request),
                                 .keys = at_dist_source_keys(&x->source, request),
                                 .d = x->source.d,
                                 .format = x->dtype,
                                 .softmax = x->params.softmax,
                                 .causal = x->params.causal,
                                 .heads = x->params.heads };
    char *codes[AT_DIST_TENSORS] = { NULL };
    double *seconds = calloc(2 * (size_t)rounds, sizeof *seconds);
    at_status status = AT_OK;
    if (!seconds)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for %d rounds", rounds);
    for (int i = 0; i < AT_DIST_TENSORS; i++)
        AT_TRY_OUT(load(&x->source, request, i, i == AT_DIST_Q ? unit.queries : unit.keys, &codes[i]));
    unit.tile = unit.queries;
    unit.q = codes[AT_DIST_Q];
    unit.k = codes[AT_DIST_K];
    unit.v = codes[AT_DIST_V];
    for (int64_t i = 0; i < unit.queries; i++) {
        const int64_t visible = unit.keys - unit.queries + i + 1;
        t->scores += (double)(x->source.h * (unit.causal ? (visible > 0 ? visible : 0) : unit.keys));
    }
    for (int r = 0; r < 2 * rounds; r++) { /* alternating, so that both see the same machine */
        const double start = at_seconds();
        unit.only_compute = r % 2 == 0;
        AT_TRY_OUT(at_dist_count_unit(workers, &unit, layer));
        seconds[r % 2 * rounds + r / 2] = at_seconds() - start;
    }
    qsort(seconds, (size_t)rounds, sizeof *seconds, by_value);
    qsort(seconds + rounds, (size_t)rounds, sizeof *seconds, by_value);
    t->alone += seconds[rounds / 2];
    t->counting += seconds[rounds + rounds / 2];
out:
    for (int i = 0; i < AT_DIST_TENSORS; i++)
        free(codes[i]);
    free(seconds);
    return status;
}

static at_status time_case(const char *line, int threads, int rounds, struct timing *t) {
    const struct at_dist_request request = { .input = line, .shards = 1 };
    struct at_dist_recording x;
    struct at_dist_workers *workers = NULL;
    struct at_dist_layer layer = { 0 };
    at_status status = AT_OK;
    *t = (struct timing){ 0 };
    AT_TRY(at_dist_recording_open(&request, &x));
    AT_TRY_OUT(at_dist_layer_init(&x.shape, &layer));
    AT_TRY_OUT(at_dist_workers_create(threads, &workers));
    for (int64_t r = 0; r < x.shape.requests; r++)
        AT_TRY_OUT(time_request(&x, workers, r, rounds, &layer, t));
out:
    at_dist_workers_destroy(workers);
    at_dist_layer_release(&layer);
    at_dist_recording_close(&x);
    return status;
}

/* Most memory this process ever held, in MiB; 0 where the system does not say. */
static double peak_memory(void) {
    char line[256];
    long kib = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "VmHWM:", 6) == 0)
            kib = strtol(line + 6, NULL, 10);
    if (file)
        fclose(file);
    return (double)kib / 1024;
}

static at_status bench(const struct at_args *args, double *least, double *minimum) {
    const char *line = at_args_get(args, "--case");
    const int n = line ? 1 : (int)(sizeof default_cases / sizeof *default_cases);
    int64_t rounds, threads;
    struct timing t;
    AT_TRY(at_args_int(args, "--rounds", 1, 1000, 5, &rounds));
    AT_TRY(at_args_int(args, "--threads", 1, 1024, at_threads(), &threads));
    AT_TRY(at_args_real(args, "--min-share", 0, 1000, 0, minimum));
    printf("%-66s %9s %9s %6s\n", "CASE", "ALONE", "RECORDING", "SHARE");
    for (int i = 0; i < n; i++) {
        AT_TRY(time_case(line ? line : default_cases[i], (int)threads, (int)rounds, &t));
        const double share = t.alone / t.counting;
        *least = i == 0 || share < *least ? share : *least;
        printf("%-66.66s %9.1f %9.1f %5.1f%%\n", line ? line : default_cases[i], t.scores / t.alone / 1e6,
               t.scores / t.counting / 1e6, 100 * share);
        fflush(stdout);
    }
    printf(
        "million scores a second with %lld threads, medians of %lld alternating rounds; ALONE: nothing is rounded and "
        "counted\npeak memory %.0f MiB\n",
        (long long)threads, (long long)rounds, peak_memory());
    return AT_OK;
}

int at_bench_record(const struct at_args *args) {
    double least = 0, minimum = 0;
    const at_status status = bench(args, &least, &minimum);
    if (status != AT_OK)
        return at_report_failure(status);
    if (!(least >= minimum)) {
        fprintf(stderr, "attest: a recording reached %.1f %% of the speed of computing alone, wanted %.1f %%\n",
                100 * least, 100 * minimum);
        return 1;
    }
    return 0;
}
