/* attest bench GLOB: its options, and what its rows come to.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "verify/bench/bench.h"
#include "verify/commands/selftest_cheats.h"

static at_status read_options(const struct at_args *args, struct at_bench_request *request) {
    struct at_session_options *o = &request->options;
    int64_t seed, rows_seed;
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
    AT_TRY(at_args_int(args, "--rows-seed", 1, INT64_MAX, 0, &rows_seed));
    AT_TRY(at_args_int(args, "--replays", 1, 100000, 20, &request->replays));
    request->strict = at_args_get(args, "--strict") != NULL;
    if (at_args_get(args, "--ceiling"))
        AT_TRY(at_ceiling_parse(at_args_get(args, "--ceiling"), &request->ceiling));
    AT_TRY(at_args_int(args, "--turns", 1, 1000, at_args_get(args, "--peer") ? 3 : 1, &request->turns));
    o->seed = (uint64_t)seed;
    request->rows_seed = (uint64_t)rows_seed;
    return AT_OK;
}

int at_bench_fails(const struct at_bench_row *row, int strict) {
    return !row->peer && (row->wrong > 0 || (strict && row->timed && !row->timed_compared));
}

static int failing(const struct at_bench_run *run, int strict) {
    int rows = 0;
    for (int i = 0; i < run->n; i++)
        rows += at_bench_fails(&run->rows[i], strict);
    return rows;
}

/* 1: something of ours was wrong; 4: nothing of ours was timed. */
static int exit_code(const struct at_bench_request *request, const struct at_bench_run *run) {
    const int wrong = failing(run, request->strict);
    int timed = 0;
    for (int i = 0; i < run->n; i++)
        timed += !run->rows[i].peer && run->rows[i].timed;
    if (run->record.signal) {
        fprintf(stderr, "attest: interrupted: there are %d rows, those of the cases that were through\n", run->n);
        return 128 + run->record.signal;
    }
    if (!timed)
        fprintf(stderr, "attest: nothing was timed\n");
    return wrong ? 1 : timed ? 0 : 4;
}

int at_bench_kernels(const struct at_args *args) {
    struct at_bench_request request = { .wanted = NULL };
    struct at_bench_run run = { .rows = NULL };
    struct at_runner *runner = NULL;
    int code, ignored;
    at_run_record_init(&run.record);
    at_status status = read_options(args, &request);
    if (status == AT_OK)
        status = at_runner_open(request.options.runner, &runner);
    if (status == AT_OK && at_args_get(args, "--peer"))
        status = at_runner_open(at_args_get(args, "--peer"), &request.peer);
    if (status == AT_OK)
        status = at_bench_run(&request, runner, &run);
    if (status == AT_OK && (run.n > 0 || !run.record.signal)) {
        at_bench_table(run.rows, run.n, at_runner_device(runner), stdout);
        status = request.options.out ? at_bench_run_write(&run, request.options.out) : AT_OK;
        if (status == AT_OK && at_args_get(args, "--tune") && !run.record.signal && !failing(&run, 0))
            status = at_bench_dispatch(run.rows, run.n, at_args_get(args, "--tune"), 0, &ignored);
    }
    code = status == AT_OK ? exit_code(&request, &run) : at_report_failure(status);
    if (runner)
        at_runner_close(runner);
    if (request.peer)
        at_runner_close(request.peer);
    at_bench_run_release(&run);
    return code;
}

at_status at_bench_cheat(const char *command, const char *line, const struct at_sandbox *box, int strict,
                         struct at_cheat_fate *fate) {
    static const char *const all[] = { "*/*" };
    struct at_bench_request request = { .replays = 5, .turns = 2, .strict = strict };
    struct at_bench_run run = { .rows = NULL };
    struct at_runner *runner = NULL;
    at_status status = AT_OK;
    request.options = at_session_defaults();
    request.options.selection.globs = all;
    request.options.selection.n_globs = 1;
    request.options.selection.case_line = line;
    request.options.runner = command;
    at_run_record_init(&run.record);
    AT_TRY_OUT(at_runner_open_in(command, box, &runner));
    AT_TRY_OUT(at_bench_run(&request, runner, &run));
    for (int i = 0; i < run.n; i++) {
        const struct at_bench_row *row = &run.rows[i];
        enum at_state state = AT_STATE_ERROR;
        AT_TRY_OUT(at_state_parse(row->state, &state));
        fate->n++;
        fate->by_state[state]++;
        if (at_bench_fails(row, strict) && fate->failed++ == 0)
            snprintf(fate->cause, sizeof fate->cause, "%.150s", row->verdict);
    }
    if (run.record.signal)
        status = AT_FAIL(AT_IO, "interrupted: the lines above are what was tried");
out:
    if (runner)
        at_runner_close(runner);
    at_bench_run_release(&run);
    return status;
}
