/* attest bench GLOB: verifies each variant on each case, then times it, and shows the source's time beside.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "verify/bench/bench.h"
#include "datasets/fill/random.h"
#include "verify/cli/progress.h"
#include "verify/run/provenance.h"
#include "verify/result/table.h"

static const double timeout_seconds = 120;
enum { TIMED_DATA = 0x7d }; /* the turn of at_case_build_again whose data launches are timed on */

struct bench {
    const struct at_bench_request *request;
    struct at_runner *runner;
    struct at_plan plan;
    struct at_source_times source;
    struct at_ceilings ceilings;
    struct at_bench_run *run;
    uint64_t rows_seed;
};

/* A row in the making: whose variant on which problem, and its times, one of each round. */
struct entry {
    struct at_runner *runner;
    int variant, rounds;
    int64_t judged; /* the round whose outputs are looked at: no runner knows which */
    const struct at_problem *problem;
    int is_refused; /* there is no problem to launch it on; the row says why */
    struct at_bench_row *row;
    double *cold, *hot, *copy_rate;
};

/* The rows of one case: those of the selected variants, then those of peers on this case and on the peers' own. */
struct rows {
    struct entry *items;
    double *times; /* of all items: three times a turn */
    int n;
    struct at_case_data data, peer_data;
    struct at_case_list peer_cases;
};

static int is_wanted(const struct bench *b, const struct at_plan_case *item, int variant) {
    const struct at_bench_request *request = b->request;
    const struct at_variant *v = at_runner_variant(b->runner, variant);
    return !v->untimed && (!request->wanted || request->wanted(request->context, item->c, v));
}

static int is_of(const struct at_variant *v, const struct at_family *family) {
    return family && strcmp(v->family, family->name) == 0;
}

/* Selected variants that are not asked, each said once: judging them first would take minutes for no time at all. */
static int say_untimed(const struct bench *b) {
    const int all = at_runner_variant_count(b->runner);
    int n = 0;
    for (int v = 0; v < all; v++) {
        int is_selected = 0;
        for (int64_t i = 0; i < b->plan.n_items && !is_selected && at_runner_variant(b->runner, v)->untimed; i++)
            for (int k = 0; k < b->plan.items[i].n_variants; k++)
                is_selected |= b->plan.items[i].variants[k] == v;
        if (is_selected)
            fprintf(stderr,
                    "attest: not timed: %s/%s: its runner takes no timings of it (Python: a function with bench=None, "
                    "which returns attest_runner_cuda.time_cuda())\n",
                    at_runner_variant(b->runner, v)->family, at_runner_variant(b->runner, v)->name);
        n += is_selected;
    }
    return n;
}

static int count_wanted(const struct bench *b, const struct at_plan_case *item) {
    int n = 0;
    for (int i = 0; i < item->n_variants; i++)
        n += is_wanted(b, item, item->variants[i]);
    return n;
}

static int count_peers(const struct bench *b, const struct at_plan_case *item) {
    const struct at_family *other = at_bench_peer_family(item->c);
    const int all = b->request->peer ? at_runner_variant_count(b->request->peer) : 0;
    int n = 0;
    for (int i = 0; i < all; i++) {
        const struct at_variant *v = at_runner_variant(b->request->peer, i);
        n += is_of(v, item->c->family) || is_of(v, other);
    }
    return n;
}

/* Of a case without a wanted variant there are none: peers stand beside something. */
static int count_rows(const struct bench *b, const struct at_plan_case *item) {
    const int n = count_wanted(b, item);
    return n ? n + count_peers(b, item) : 0;
}

static void begin_row(const struct bench *b, const char *case_id, const struct entry *e) {
    const struct at_variant *v = at_runner_variant(e->runner, e->variant);
    const struct at_problem *p = e->problem;
    struct at_bench_row *row = e->row;
    *row = (struct at_bench_row){ .cold = (double)NAN,
                                  .hot = (double)NAN,
                                  .copy_rate = (double)NAN,
                                  .source_seconds = (double)NAN,
                                  .cold_low = (double)NAN,
                                  .cold_high = (double)NAN,
                                  .peer_cold = (double)NAN,
                                  .floor = (double)NAN,
                                  .peer = e->runner == b->request->peer,
                                  .bytes = at_bench_bytes(p),
                                  .flops = at_bench_flops(p),
                                  .scores = at_bench_scores(p) };
    snprintf(row->case_id, sizeof row->case_id, "%s", case_id);
    snprintf(row->family, sizeof row->family, "%s", v->family);
    snprintf(row->variant, sizeof row->variant, "%s", v->name);
    snprintf(row->path, sizeof row->path, "%s", v->path);
    snprintf(row->sha256, sizeof row->sha256, "%s", v->sha256);
    snprintf(row->device, sizeof row->device, "%s", at_runner_device(e->runner));
    if (p->sizes.b > 0)
        at_source_times_find(&b->source, p->sizes.b, p->sizes.max_sk, row);
    else
        at_source_times_find(&b->source, p->sizes.tokens, p->sizes.channels, row);
}

static void add_row(struct bench *b, struct rows *rows, struct at_runner *runner, int variant,
                    const struct at_problem *problem, const char *case_id, const char *beside) {
    struct entry *e = &rows->items[rows->n++];
    e->runner = runner;
    e->variant = variant;
    e->problem = problem;
    e->row = &b->run->rows[b->run->n++];
    begin_row(b, case_id, e);
    snprintf(e->row->beside, sizeof e->row->beside, "%s", beside);
}

static void refuse(struct entry *e) {
    e->is_refused = 1;
    snprintf(e->row->verdict, sizeof e->row->verdict, "no case for it: %.360s", at_error_message());
}

/* Peers of the case's own family, and those of the family that stands beside it. */
static at_status add_peers(struct bench *b, const struct at_plan_case *item, struct rows *rows) {
    const struct at_family *other = at_bench_peer_family(item->c);
    struct at_runner *peer = b->request->peer;
    const int n = peer ? at_runner_variant_count(peer) : 0;
    at_status status = AT_OK;
    for (int i = 0; i < n; i++)
        if (is_of(at_runner_variant(peer, i), item->c->family))
            add_row(b, rows, peer, i, &rows->data.problem, item->c->id, "");
    for (int i = 0; i < n; i++) {
        if (!is_of(at_runner_variant(peer, i), other))
            continue;
        if (status == AT_OK && rows->peer_cases.n == 0)
            status = at_bench_peer_case(item->c, other, &rows->peer_cases);
        if (status != AT_OK) { /* a recording of the gate's attention, say */
            add_row(b, rows, peer, i, &rows->data.problem, item->c->id, item->c->id);
            refuse(&rows->items[rows->n - 1]);
            continue;
        }
        if (!rows->peer_data.memory)
            AT_TRY(at_case_build(&rows->peer_cases.items[0], &rows->peer_data));
        add_row(b, rows, peer, i, &rows->peer_data.problem, rows->peer_cases.items[0].id, item->c->id);
    }
    at_error_clear();
    return AT_OK;
}

/* A runner's death is its variant's, and a peer's that does not come back is no end of the run either. */
static int is_its_own(const struct at_bench_row *row, at_status status) {
    return status == AT_CRASHED || status == AT_HUNG || status == AT_PROTOCOL ||
           (row->peer && status == AT_ENVIRONMENT);
}

static void tell(struct at_bench_row *row, enum at_state state, const char *what, const char *why) {
    snprintf(row->verdict, sizeof row->verdict, "%s%.360s", what, why);
    snprintf(row->state, sizeof row->state, "%s", at_state_name(state));
}

static enum at_state state_of(at_status status) {
    return status == AT_HUNG ? AT_STATE_HUNG : status == AT_CRASHED ? AT_STATE_CRASHED : AT_STATE_ERROR;
}

static at_status verify_row(const struct bench *b, const struct entry *e) {
    const at_status status =
        at_bench_verify(e->runner, e->variant, e->problem, b->request->options.seed, b->rows_seed, e->row);
    if (status == AT_OK || !is_its_own(e->row, status))
        return status;
    tell(e->row, state_of(status), "", at_error_message());
    e->row->wrong = 1;
    return AT_OK;
}

static int64_t turns_of(const struct bench *b) { return b->request->turns > 0 ? b->request->turns : 1; }

/* A time that the device's memory and its units leave no room for is none, whoever measured it. */
static void set_against_floor(const struct bench *b, const struct at_timing *timing, struct entry *e) {
    const struct at_ceiling *given = &b->request->ceiling;
    const struct at_ceiling *ceiling = given->device[0] ? given : at_ceiling_find(&b->ceilings, e->row->device);
    char text[256];
    e->row->floor = at_bench_floor(e->problem, ceiling, timing->copies);
    snprintf(e->row->ceiling, sizeof e->row->ceiling, "%s", ceiling->device);
    if (timing->cold >= e->row->floor)
        return;
    snprintf(text, sizeof text, "cold %.3g us, and no launch takes less than %.3g us (%s: %.3g byte/s, %.3g flop/s)",
             timing->cold * 1e6, e->row->floor * 1e6,
             strcmp(ceiling->device, "*") == 0 ? "more than any device has" : ceiling->device, ceiling->bytes,
             ceiling->flops);
    tell(e->row, AT_STATE_IMPOSSIBLE, "IMPOSSIBLE: ", text);
    e->row->wrong = 1;
}

/* What a timed launch left, where its runner brings it back: written at all in every round, right in one. */
static at_status judge_timed(const struct bench *b, const struct at_outputs *outputs, int64_t turn, struct entry *e) {
    struct at_numerics numerics;
    if (turn != e->judged && !outputs->is_dirty)
        return AT_OK;
    AT_TRY(at_declared_on(e->runner, e->variant, e->problem, &numerics));
    return at_bench_judge_timed(e->problem, &numerics, outputs, b->rows_seed, e->row);
}

/* One round of one row. What fails once is not timed: a median of the other rounds would hide it. */
static at_status time_row(const struct bench *b, int64_t turn, struct entry *e) {
    const struct at_run_mode mode = { .timings = (int32_t)b->request->replays };
    struct at_run_reply reply;
    struct at_outputs outputs;
    at_status status = at_guarded_launch(e->runner, e->variant, e->problem, AT_POISON_JUDGED, &mode,
                                         b->request->options.seed, timeout_seconds, &reply, &outputs);
    e->row->timed = 0;
    if (status != AT_OK && is_its_own(e->row, status)) {
        tell(e->row, state_of(status), "not timed: ", at_error_message());
        e->row->wrong = 1;
        return AT_OK;
    }
    AT_TRY(status);
    if (reply.outcome == AT_RAN && reply.timing.replays > 0) {
        set_against_floor(b, &reply.timing, e);
        if (!e->row->wrong && reply.timed_outputs)
            status = judge_timed(b, &outputs, turn, e);
    }
    at_outputs_release(&outputs);
    AT_TRY(status);
    if (e->row->wrong)
        return AT_OK;
    if (reply.outcome != AT_RAN || reply.timing.replays == 0) {
        const int failed = reply.outcome != AT_RAN && reply.outcome != AT_RUN_UNSUPPORTED;
        tell(e->row, failed ? AT_STATE_ERROR : AT_STATE_UNSUPPORTED, "not timed: ", reply.reason);
        e->row->wrong = failed;
        return AT_OK;
    }
    e->row->timed = 1;
    e->row->replays = reply.timing.replays;
    e->row->copies = reply.timing.copies;
    e->cold[e->rounds] = reply.timing.cold;
    e->hot[e->rounds] = reply.timing.hot;
    e->copy_rate[e->rounds++] = reply.timing.copy_rate;
    return AT_OK;
}

static int can_be_timed(const struct entry *e, int64_t turn) {
    return e->row->compared > 0 && e->row->wrong == 0 && e->rounds == turn;
}

/* Of attest-cuda, which launches device code alone, the clock is attest's own. */
static int has_own_clock(const struct at_runner *runner) {
    const char *spec = at_runner_spec(runner);
    return strcmp(spec, "cuda") != 0 && strncmp(spec, "cuda --", 7) != 0;
}

static at_status check_clock(const struct bench *b, const struct entry *e) {
    struct at_bench_row *row = e->row;
    if (row->peer || !has_own_clock(e->runner) || at_session_signal())
        return AT_OK;
    AT_TRY(at_bench_check_clock(e->runner, e->variant, e->problem, b->request->options.seed, b->request->replays, row));
    if (row->wrong) {
        row->timed = 0;
        row->cold = row->hot = (double)NAN;
    }
    return AT_OK;
}

/* The rounds: every row once in each, so that a clock that drifts or another's load meets all alike. */
static at_status time_rows(struct bench *b, struct rows *rows, struct at_progress *progress) {
    for (int64_t turn = 0; turn < turns_of(b); turn++)
        for (int i = 0; i < rows->n && !at_session_signal(); i++) {
            struct entry *e = &rows->items[i];
            if (can_be_timed(e, turn))
                AT_TRY(time_row(b, turn, e));
            at_progress_step(progress, 1, e->row->wrong > 0, e->row->variant);
        }
    for (int i = 0; i < rows->n; i++) {
        struct entry *e = &rows->items[i];
        if (!e->row->timed)
            continue;
        if (!e->row->timed_compared)
            snprintf(e->row->state, sizeof e->row->state, "%s", at_state_name(AT_STATE_VACUOUS));
        e->row->turns = e->rounds;
        e->row->cold = at_bench_median(e->cold, e->rounds);
        e->row->hot = at_bench_median(e->hot, e->rounds);
        e->row->copy_rate = at_bench_median(e->copy_rate, e->rounds);
        e->row->cold_low = e->cold[0];
        e->row->cold_high = e->cold[e->rounds - 1];
        AT_TRY(check_clock(b, e));
    }
    return AT_OK;
}

/* Other data of the same shapes for the launches that are timed: what was kept of the judged launch shows there. A recording
 * stays as it is, and so does a case whose seed draws its lengths, too. */
static at_status renew(const struct at_case *c, struct at_case_data *data) {
    const struct at_problem before = data->problem;
    int same = 1;
    if (!data->memory || !at_case_is_drawn(c))
        return AT_OK;
    at_case_data_release(data);
    AT_TRY(at_case_build_again(c, TIMED_DATA, data));
    for (int t = 0; t < AT_MAX_TENSORS; t++)
        same = same && before.tensors[t].rank == data->problem.tensors[t].rank &&
               memcmp(before.tensors[t].shape, data->problem.tensors[t].shape, sizeof before.tensors[t].shape) == 0;
    if (same)
        return AT_OK;
    at_case_data_release(data);
    return at_case_build(c, data);
}

/* Room for n rows and their rounds. */
static at_status make_rows(const struct bench *b, int n, struct rows *rows) {
    const size_t turns = (size_t)turns_of(b);
    const struct at_random random = { b->rows_seed, at_random_stream("judged round", 0) };
    *rows = (struct rows){ .items = calloc((size_t)n, sizeof *rows->items),
                           .times = calloc((size_t)n * turns * 3, sizeof *rows->times) };
    if (!rows->items || !rows->times)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %d rows", n);
    for (int i = 0; i < n; i++) {
        rows->items[i].cold = rows->times + (size_t)i * 3 * turns;
        rows->items[i].hot = rows->items[i].cold + turns;
        rows->items[i].copy_rate = rows->items[i].hot + turns;
        rows->items[i].judged = at_random_below(&random, (uint64_t)i, turns_of(b));
    }
    return AT_OK;
}

static void release_rows(struct rows *rows) {
    free(rows->times);
    free(rows->items);
    at_case_data_release(&rows->data);
    at_case_data_release(&rows->peer_data);
    at_case_list_release(&rows->peer_cases);
}

static at_status bench_case(struct bench *b, const struct at_plan_case *item, struct at_progress *progress) {
    struct rows rows;
    at_status status = AT_OK;
    const int n = count_rows(b, item);
    if (n == 0)
        return AT_OK;
    AT_TRY_OUT(make_rows(b, n, &rows));
    AT_TRY_OUT(at_case_build(item->c, &rows.data));
    for (int i = 0; i < item->n_variants; i++)
        if (is_wanted(b, item, item->variants[i]))
            add_row(b, &rows, b->runner, item->variants[i], &rows.data.problem, item->c->id, "");
    AT_TRY_OUT(add_peers(b, item, &rows));
    for (int i = 0; i < rows.n && !at_session_signal(); i++) {
        if (!rows.items[i].is_refused)
            AT_TRY_OUT(verify_row(b, &rows.items[i]));
        at_progress_step(progress, 1, rows.items[i].row->wrong > 0, rows.items[i].row->variant);
    }
    AT_TRY_OUT(renew(item->c, &rows.data));
    if (rows.peer_cases.n)
        AT_TRY_OUT(renew(&rows.peer_cases.items[0], &rows.peer_data));
    AT_TRY_OUT(time_rows(b, &rows, progress));
    at_bench_compare_peers(rows.items[0].row, rows.n);
out:
    release_rows(&rows);
    return status;
}

static at_status run_plan(struct bench *b) {
    struct at_progress progress = { 0 };
    at_status status = AT_OK;
    const int untimed = say_untimed(b);
    int64_t n = 0, peers = 0;
    for (int64_t i = 0; i < b->plan.n_items; i++) {
        n += count_rows(b, &b->plan.items[i]);
        peers += count_peers(b, &b->plan.items[i]);
    }
    if (n == 0)
        return untimed
                   ? AT_FAIL(AT_NOT_FOUND, "bench: none of the selected variants takes timings")
                   : AT_FAIL(AT_NOT_FOUND, "bench: no case meets a selected variant; datasets/bench/ has the cases");
    if (b->request->peer && peers == 0)
        return AT_FAIL(AT_NOT_FOUND,
                       "bench: --peer: no variant of it is of the family of a selected case, or of its peers'");
    b->run->rows = calloc((size_t)n, sizeof *b->run->rows);
    if (!b->run->rows)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %lld rows", (long long)n);
    at_progress_start(&progress, "timing", n * (1 + turns_of(b)));
    at_session_watch_signals();
    for (int64_t i = 0; i < b->plan.n_items && status == AT_OK && !at_session_signal(); i++) {
        const int whole = b->run->n;
        status = bench_case(b, &b->plan.items[i], &progress);
        if (at_session_signal()) { /* which runners may have had, too: what this case has says nothing */
            b->run->n = whole;
            b->run->record.signal = at_session_signal();
            at_error_clear();
            status = AT_OK;
        }
    }
    at_progress_end(&progress);
    return status;
}

at_status at_bench_run(const struct at_bench_request *request, struct at_runner *runner, struct at_bench_run *run) {
    struct bench b = { .request = request, .rows_seed = request->rows_seed, .runner = runner, .run = run };
    char path[1024];
    at_status status = AT_OK;
    run->rows = NULL;
    run->n = 0;
    at_run_record_init(&run->record);
    snprintf(path, sizeof path, "%s/bench/source_times.txt", at_datasets_dir());
    if (!b.rows_seed && getrandom(&b.rows_seed, sizeof b.rows_seed, 0) != (ssize_t)sizeof b.rows_seed)
        AT_FAIL_OUT(AT_ENVIRONMENT, "no random numbers from the system");
    b.rows_seed &= INT64_MAX;
    AT_TRY_OUT(at_source_times_load(request->beside ? request->beside : path, &b.source));
    snprintf(path, sizeof path, "%s/bench/ceilings.txt", at_datasets_dir());
    AT_TRY_OUT(at_ceilings_load(path, &b.ceilings));
    AT_TRY_OUT(at_plan_make(&request->options.selection, runner, &b.plan));
    AT_TRY_OUT(at_provenance_fill(&request->options, &b.plan, runner, NULL, &run->record));
    status = run_plan(&b);
out:
    at_source_times_release(&b.source);
    at_ceilings_release(&b.ceilings);
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
