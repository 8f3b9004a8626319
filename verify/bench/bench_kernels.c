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
    const struct at_bench_request *request;
    struct at_runner *runner;
    struct at_plan plan;
    struct at_source_times source;
    struct at_bench_run *run;
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
    const struct at_run_mode mode = { .timings = (int32_t)b->request->replays };
    struct at_run_reply reply;
    struct at_outputs outputs;
    at_status status = at_guarded_launch(b->runner, variant, p, AT_POISON_JUDGED, &mode, b->request->options.seed,
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

static int is_wanted(const struct bench *b, const struct at_plan_case *item, int variant) {
    const struct at_bench_request *request = b->request;
    return !request->wanted || request->wanted(request->context, item->c, at_runner_variant(b->runner, variant));
}

static int count_wanted(const struct bench *b, const struct at_plan_case *item) {
    int n = 0;
    for (int i = 0; i < item->n_variants; i++)
        n += is_wanted(b, item, item->variants[i]);
    return n;
}

static at_status bench_case(struct bench *b, const struct at_plan_case *item, struct at_progress *progress) {
    struct at_case_data data;
    at_status status = AT_OK;
    if (count_wanted(b, item) == 0)
        return AT_OK;
    AT_TRY(at_case_build(item->c, &data));
    for (int i = 0; i < item->n_variants; i++) {
        if (!is_wanted(b, item, item->variants[i]))
            continue;
        struct at_bench_row *row = &b->run->rows[b->run->n++];
        begin_row(b, item, item->variants[i], &data.problem, row);
        AT_TRY_OUT(at_bench_verify(b->runner, item->variants[i], &data.problem, b->request->options.seed, row));
        if (row->compared > 0 && row->wrong == 0)
            AT_TRY_OUT(time_row(b, item->variants[i], &data.problem, row));
        at_progress_step(progress, 1, row->wrong > 0, row->variant);
    }
out:
    at_case_data_release(&data);
    return status;
}

static at_status run_plan(struct bench *b) {
    struct at_progress progress = { 0 };
    at_status status = AT_OK;
    int64_t n = 0;
    for (int64_t i = 0; i < b->plan.n_items; i++)
        n += count_wanted(b, &b->plan.items[i]);
    if (n == 0)
        return AT_FAIL(AT_NOT_FOUND, "bench: no case meets a selected variant; datasets/bench/ has the cases");
    b->run->rows = calloc((size_t)n, sizeof *b->run->rows);
    if (!b->run->rows)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %lld rows", (long long)n);
    at_progress_start(&progress, "timing", n);
    for (int64_t i = 0; i < b->plan.n_items && status == AT_OK; i++)
        status = bench_case(b, &b->plan.items[i], &progress);
    at_progress_end(&progress);
    return status;
}

at_status at_bench_run(const struct at_bench_request *request, struct at_runner *runner, struct at_bench_run *run) {
    struct bench b = { .request = request, .runner = runner, .run = run };
    char path[1024];
    at_status status = AT_OK;
    run->rows = NULL;
    run->n = 0;
    at_run_record_init(&run->record);
    snprintf(path, sizeof path, "%s/bench/source_times.txt", at_datasets_dir());
    AT_TRY_OUT(at_source_times_load(request->beside ? request->beside : path, &b.source));
    AT_TRY_OUT(at_plan_make(&request->options.selection, runner, &b.plan));
    AT_TRY_OUT(at_provenance_fill(&request->options, &b.plan, runner, &run->record));
    status = run_plan(&b);
out:
    at_source_times_release(&b.source);
    at_plan_release(&b.plan);
    return status;
}

at_status at_bench_run_write(const struct at_bench_run *run, const char *path) {
    const struct at_table_rows table = { &at_bench_table_kernels, run->rows, run->n };
    return at_archive_write_tables(&table, 1, &run->record, path);
}

void at_bench_run_release(struct at_bench_run *run) {
    free(run->rows);
    run->rows = NULL;
    at_run_record_release(&run->record);
}

/* ---- the command ---- */

static at_status read_options(const struct at_args *args, struct at_bench_request *request) {
    struct at_session_options *o = &request->options;
    int64_t seed;
    *o = at_session_defaults();
    o->selection.globs = args->words;
    o->selection.n_globs = args->n_words;
    o->selection.cases_dir = "bench";
    o->selection.cases_glob = at_args_get(args, "--cases") ? at_args_get(args, "--cases") : "*";
    o->selection.case_line = at_args_get(args, "--case");
    o->runner = at_args_get(args, "--runner") ? at_args_get(args, "--runner") : "cuda";
    o->out = at_args_get(args, "--out");
    request->beside = at_args_get(args, "--beside");
    AT_TRY(at_args_int(args, "--seed", 0, INT64_MAX, 0, &seed));
    AT_TRY(at_args_int(args, "--replays", 1, 100000, 20, &request->replays));
    o->seed = (uint64_t)seed;
    return AT_OK;
}

/* 1: something was wrong; 4: nothing was timed. */
static int exit_code(const struct at_bench_run *run) {
    int timed = 0, wrong = 0;
    for (int i = 0; i < run->n; i++) {
        timed += run->rows[i].timed;
        wrong += run->rows[i].wrong > 0;
    }
    if (!timed)
        fprintf(stderr, "attest: nothing was timed\n");
    return wrong ? 1 : timed ? 0 : 4;
}

int at_bench_kernels(const struct at_args *args) {
    struct at_bench_request request = { .wanted = NULL };
    struct at_bench_run run = { .rows = NULL };
    struct at_runner *runner = NULL;
    int code;
    at_run_record_init(&run.record);
    at_status status = read_options(args, &request);
    if (status == AT_OK)
        status = at_runner_open(request.options.runner, &runner);
    if (status == AT_OK)
        status = at_bench_run(&request, runner, &run);
    if (status == AT_OK) {
        at_bench_table(run.rows, run.n, at_runner_device(runner), stdout);
        status = request.options.out ? at_bench_run_write(&run, request.options.out) : AT_OK;
    }
    code = status == AT_OK ? exit_code(&run) : at_report_failure(status);
    if (runner)
        at_runner_close(runner);
    at_bench_run_release(&run);
    return code;
}
