/* attest bench GLOB: verifies each variant on each case, then times it, and shows the source's time beside.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/bench/bench.h"
#include "verify/runner/launch.h"
#include "verify/cli/progress.h"
#include "verify/run/provenance.h"
#include "verify/result/table.h"

static const double timeout_seconds = 120;

struct bench {
    struct at_session_options options;
    struct at_runner *runner;
    struct at_plan plan;
    struct at_source_times source;
    int64_t replays;
    struct at_bench_row *rows;
    int n;
};

static void begin_row(const struct bench *b, const struct at_plan_case *item, int variant, const struct at_problem *p,
                      struct at_bench_row *row) {
    const struct at_variant *v = at_runner_variant(b->runner, variant);
    *row = (struct at_bench_row){ .cold = (double)NAN,
                                  .hot = (double)NAN,
                                  .copy_rate = (double)NAN,
                                  .source_seconds = (double)NAN,
                                  .bytes = at_bench_bytes(p),
                                  .flops = at_bench_flops(p),
                                  .scores = at_bench_scores(p) };
    snprintf(row->case_id, sizeof row->case_id, "%s", item->c->id);
    snprintf(row->family, sizeof row->family, "%s", v->family);
    snprintf(row->variant, sizeof row->variant, "%s", v->name);
    snprintf(row->path, sizeof row->path, "%s", v->path);
    snprintf(row->sha256, sizeof row->sha256, "%s", v->sha256);
    if (at_numerics_format(&v->numerics, row->numerics, sizeof row->numerics) != AT_OK)
        row->numerics[0] = 0;
    if (p->sizes.b > 0)
        at_source_times_find(&b->source, p->sizes.b, p->sizes.max_sk, row);
    else
        at_source_times_find(&b->source, p->sizes.tokens, p->sizes.channels, row);
}

static at_status time_row(const struct bench *b, int variant, const struct at_problem *p, struct at_bench_row *row) {
    const struct at_run_mode mode = { .timings = (int32_t)b->replays };
    struct at_run_reply reply;
    struct at_outputs outputs;
    at_status status = at_guarded_launch(b->runner, variant, p, AT_POISON_JUDGED, &mode, b->options.seed,
                                         timeout_seconds, &reply, &outputs);
    if (status == AT_CRASHED || status == AT_HUNG || status == AT_PROTOCOL) {
        snprintf(row->verdict, sizeof row->verdict, "%.380s", at_error_message());
        return AT_OK;
    }
    AT_TRY(status);
    at_outputs_release(&outputs);
    if (reply.outcome != AT_RAN || reply.timing.replays == 0) {
        snprintf(row->verdict, sizeof row->verdict, "not timed: %.360s", reply.reason);
        return AT_OK;
    }
    row->timed = 1;
    row->cold = reply.timing.cold;
    row->hot = reply.timing.hot;
    row->replays = reply.timing.replays;
    row->copies = reply.timing.copies;
    row->copy_rate = reply.timing.copy_rate;
    return AT_OK;
}

static at_status bench_case(struct bench *b, const struct at_plan_case *item, struct at_progress *progress) {
    struct at_case_data data;
    at_status status = AT_OK;
    AT_TRY(at_case_build(item->c, &data));
    for (int i = 0; i < item->n_variants; i++) {
        struct at_bench_row *row = &b->rows[b->n++];
        begin_row(b, item, item->variants[i], &data.problem, row);
        AT_TRY_OUT(at_bench_verify(b->runner, item->variants[i], &data.problem, b->options.seed, row));
        if (row->compared > 0 && row->wrong == 0)
            AT_TRY_OUT(time_row(b, item->variants[i], &data.problem, row));
        at_progress_step(progress, 1, row->wrong > 0, row->variant);
    }
out:
    at_case_data_release(&data);
    return status;
}

static at_status read_options(const struct at_args *args, struct bench *b) {
    char path[1024];
    int64_t seed;
    b->options = at_session_defaults();
    b->options.selection.globs = args->words;
    b->options.selection.n_globs = args->n_words;
    b->options.selection.cases_dir = "bench";
    b->options.selection.cases_glob = at_args_get(args, "--cases") ? at_args_get(args, "--cases") : "*";
    b->options.selection.case_line = at_args_get(args, "--case");
    b->options.runner = at_args_get(args, "--runner") ? at_args_get(args, "--runner") : "cuda";
    b->options.out = at_args_get(args, "--out");
    AT_TRY(at_args_int(args, "--seed", 0, INT64_MAX, 0, &seed));
    AT_TRY(at_args_int(args, "--replays", 1, 100000, 20, &b->replays));
    b->options.seed = (uint64_t)seed;
    snprintf(path, sizeof path, "%s/bench/source_times.txt", at_datasets_dir());
    return at_source_times_load(at_args_get(args, "--beside") ? at_args_get(args, "--beside") : path, &b->source);
}

static at_status run_bench(const struct at_args *args, struct bench *b, struct at_run_record *record) {
    struct at_progress progress = { 0 };
    at_status status = AT_OK;
    AT_TRY(read_options(args, b));
    AT_TRY(at_runner_open(b->options.runner, &b->runner));
    AT_TRY(at_plan_make(&b->options.selection, b->runner, &b->plan));
    if (b->plan.n_jobs == 0)
        return AT_FAIL(AT_NOT_FOUND, "bench: no case meets a selected variant; datasets/bench/ has the cases");
    AT_TRY(at_provenance_fill(&b->options, &b->plan, b->runner, record));
    b->rows = calloc((size_t)b->plan.n_jobs, sizeof *b->rows);
    if (!b->rows)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %lld rows", (long long)b->plan.n_jobs);
    at_progress_start(&progress, "timing", b->plan.n_jobs);
    for (int64_t i = 0; i < b->plan.n_items && status == AT_OK; i++)
        status = bench_case(b, &b->plan.items[i], &progress);
    at_progress_end(&progress);
    AT_TRY(status);
    at_bench_table(b->rows, b->n, at_runner_device(b->runner), stdout);
    const struct at_table_rows table = { &at_bench_table_kernels, b->rows, b->n };
    return b->options.out ? at_archive_write_tables(&table, 1, record, b->options.out) : AT_OK;
}

/* 1: something was wrong; 4: nothing was timed. */
static int exit_code(const struct bench *b) {
    int timed = 0, wrong = 0;
    for (int i = 0; i < b->n; i++) {
        timed += b->rows[i].timed;
        wrong += b->rows[i].wrong > 0;
    }
    if (!timed)
        fprintf(stderr, "attest: nothing was timed\n");
    return wrong ? 1 : timed ? 0 : 4;
}

int at_bench_kernels(const struct at_args *args) {
    struct bench b = { 0 };
    struct at_run_record record;
    at_run_record_init(&record);
    const at_status status = run_bench(args, &b, &record);
    const int code = status == AT_OK ? exit_code(&b) : at_report_failure(status);
    free(b.rows);
    at_source_times_release(&b.source);
    at_plan_release(&b.plan);
    if (b.runner)
        at_runner_close(b.runner);
    at_run_record_release(&record);
    return code;
}
