/* attest record: score distributions and the overflow ledger of recorded activations, captures or a case.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/env.h"
#include "verify/result/atomic_file.h"
#include "verify/cli/commands.h"
#include "verify/record/dist_journal.h"
#include "verify/record/dist_parts.h"
#include "verify/record/dist_record.h"
#include "verify/record/dist_table.h"
#include "verify/record/dist_turns.h"
#include "verify/plan/plan.h"
#include "verify/cli/progress.h"

static const struct at_option options[] = {
    { "--out", "D.h5", "the archive to write" },
    { "--attention", "A",
      "asynct or softmax: what is computed of a capture, which does not say it itself; wanted, but of a dataset by "
      "name, "
      "which is recorded as asynct, and of a case line, which says it" },
    { "--params", "'K=V ...'", "causal, scale, sigma, window, taps, edge, relu_pre, clip, gamma, as in a case line" },
    { "--layers", "GLOB|a..b", "which layers (default all)" },
    { "--bins", "F", "f16 or bf16: bins are its codes (default: the source's own format; f16 for f32 and f64)" },
    { "--dtype", "F", "f16 or bf16: q, k and v are rounded to it first (default: as they are)" },
    { "--what", "LIST",
      "quantities, of q,k,v,raw,scaled,fir,p,out,row_max,row_sum,entropy,support,share0 (default all)" },
    { "--shard", "i/N", "only this share of the requests of all layers; `attest merge` joins the shards" },
    { "--resume", NULL,
      "go on from the journal D.h5.jsonl of an interrupted recording: finished layers are kept, and of the layer in "
      "hand the requests up to its last part; a request that was cut short is counted anew" },
    { "--part-seconds", "S",
      "how long the requests of a layer in hand may go unwritten (default 60; 0: a part after each; at most 1/20 of "
      "the time is spent on it)" },
    { "--threads", "N", "threads (default: processors there are)" },
    { "--runner", "R", "who counts: cpu (default: threads of this process), cuda, or a command line; the same counts" },
    { "--devices", "LIST",
      "all, or 0,1,...: the runner is started on each of these GPUs, and whichever is free counts the next request; "
      "what "
      "fails on one is counted on another" },
    { NULL, NULL, NULL },
};

/* Parts of a layer in hand may take 1/20 of the time. */
enum { WRITING_SHARE = 20 };

struct recorder {
    const char *out, *runner; /* NULL: none */
    struct at_dist_recording recording;
    struct at_device_list devices;
    struct at_device_pool *pool;
    struct at_dist_turns turns; /* `on`: this recording with each device */
    struct at_dist_workers *workers;
    struct at_dist_layer layer;
    struct at_dist_journal journal;
    struct at_dist_writer *writer;
    struct at_dist_unit_row *units; /* [layers requests], those that are counted first */
    double every, due;              /* seconds between parts of a layer; when the next one is wanted */
    struct at_progress progress;    /* in queries */
    char name[64];                  /* of the unit at hand */
    int64_t at;                     /* the layer at hand */
};

static at_status read_options(const struct at_args *args, struct recorder *r, struct at_dist_request *request,
                              int64_t *threads) {
    const char *runner = at_args_get(args, "--runner");
    r->out = at_args_get(args, "--out");
    if (!r->out)
        return AT_FAIL(AT_USAGE, "record: wants --out D.h5");
    AT_TRY(at_devices_parse(at_args_get(args, "--devices"), &r->devices));
    if (runner && (r->devices.n || strcmp(runner, "cpu") != 0))
        r->runner = runner;
    if (r->devices.n && !runner)
        return AT_FAIL(AT_USAGE, "--devices wants --runner: threads of this process count without one");
    *request = (struct at_dist_request){ .input = args->words[0],
                                         .attention = at_args_get(args, "--attention"),
                                         .params = at_args_get(args, "--params"),
                                         .layers = at_args_get(args, "--layers"),
                                         .bins = at_args_get(args, "--bins"),
                                         .dtype = at_args_get(args, "--dtype"),
                                         .what = at_args_get(args, "--what"),
                                         .shards = 1 };
    AT_TRY(at_shard_parse(at_args_get(args, "--shard"), &request->shard, &request->shards));
    AT_TRY(at_args_real(args, "--part-seconds", 0, 1e9, 60, &r->every));
    return at_args_int(args, "--threads", 1, 1024, at_threads(), threads);
}

static void step(void *context, int64_t queries) {
    struct recorder *r = context;
    at_progress_step(&r->progress, queries, 0, r->name);
}

static void begin(void *context, int64_t request) {
    struct recorder *r = context;
    snprintf(r->name, sizeof r->name, "layer %" PRId64 ", request %" PRId64, r->recording.source.layer[r->at], request);
}

/* The part, then the journal's line of it: what the journal says is there. */
static at_status keep(struct recorder *r, int64_t i, enum at_dist_progress progress,
                      const struct at_dist_unit_row *units, int64_t n) {
    const double start = at_seconds();
    AT_TRY(at_dist_parts_write(r->out, &r->recording, i, &r->layer, units, n));
    AT_TRY(at_dist_journal_append(&r->journal, r->recording.source.layer[i], progress, units,
                                  progress == AT_DIST_DONE ? n : 0));
    const double now = at_seconds(), rare = WRITING_SHARE * (now - start);
    r->due = now + (r->every > 0 && r->every < rare ? rare : r->every);
    return AT_OK;
}

/* Requests of layer i in this shard. */
static int64_t units_of(const struct at_dist_recording *x, int64_t i) {
    int64_t n = 0;
    for (int64_t request = 0; request < x->shape.requests; request++)
        n += at_dist_recording_has(x, i, request);
    return n;
}

/* Which they are: [n]. */
static int64_t *requests_of(const struct at_dist_recording *x, int64_t i, int64_t n) {
    int64_t *requests = calloc((size_t)n + 1, sizeof *requests), at = 0;
    for (int64_t request = 0; requests && request < x->shape.requests; request++)
        if (at_dist_recording_has(x, i, request))
            requests[at++] = request;
    return requests;
}

/* A part that was lost is counted again, and may be a part of the requests for a while though the journal calls it done:
 * its units say what it holds. */
static enum at_dist_progress progress_of(const struct recorder *r, int64_t i) {
    const int64_t layer = r->recording.source.layer[i];
    return at_dist_parts_has(r->out, layer) ? at_dist_journal_of(&r->journal, layer) : AT_DIST_UNKNOWN;
}

/* Leaves the sums of layer i in r->layer. */
static at_status record_layer(struct recorder *r, int64_t i, struct at_dist_unit_row *units, int64_t *n) {
    struct at_dist_recording *x = &r->recording;
    const enum at_dist_progress progress = progress_of(r, i);
    const int64_t all = units_of(x, i);
    at_status status = AT_OK;
    *n = 0;
    r->at = i;
    at_dist_layer_clear(&r->layer);
    if (progress != AT_DIST_UNKNOWN)
        AT_TRY(at_dist_parts_take(r->out, x, i, &r->layer, units, n));
    if (*n == all && progress == AT_DIST_DONE)
        return AT_OK;
    int64_t *requests = requests_of(x, i, all);
    if (!requests)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %" PRId64 " requests", all);
    for (int64_t k = 0; k < *n; k++)
        step(r, at_dist_source_queries(&x->source, requests[k]));
    while (*n < all && status == AT_OK) {
        int64_t done;
        status = at_dist_turns_run(&r->turns, i, requests + *n, all - *n, &r->layer, units + *n, r->due, &done);
        *n += done;
        if (status == AT_OK && *n < all)
            status = keep(r, i, AT_DIST_BEGUN, units, *n);
    }
    free(requests);
    return status == AT_OK ? keep(r, i, AT_DIST_DONE, units, *n) : status;
}

/* Each layer goes into the archive while its sums are in memory: only what an earlier process counted is read. */
static at_status record_layers(struct recorder *r) {
    const struct at_dist_recording *x = &r->recording;
    int64_t queries = 0, n = 0;
    for (int64_t i = 0; i < x->shape.n_layers; i++) {
        const int done = progress_of(r, i) == AT_DIST_DONE;
        for (int64_t request = 0; request < x->shape.requests && !done; request++)
            if (at_dist_recording_has(x, i, request))
                queries += at_dist_source_queries(&x->source, request);
    }
    at_progress_start(&r->progress, "recording queries", queries);
    r->due = at_seconds() + r->every;
    for (int64_t i = 0; i < x->shape.n_layers; i++) {
        int64_t more;
        AT_TRY(record_layer(r, i, r->units + n, &more));
        AT_TRY(at_dist_writer_put(r->writer, i, &r->layer));
        n += more;
    }
    struct at_dist_writer *writer = r->writer;
    r->writer = NULL;
    return at_dist_writer_save(writer, r->units, n);
}

static at_status show(const char *path) {
    struct at_distributions d;
    AT_TRY(at_distributions_open(path, &d));
    const at_status status = at_dist_table(&d, stdout);
    at_distributions_close(&d);
    return status;
}

/* The recording once for each device; without a runner once. */
static at_status open_devices(struct recorder *r) {
    const int n = r->runner && r->devices.n ? r->devices.n : 1;
    r->turns = (struct at_dist_turns){ .n = n, .workers = r->workers, .begin = begin, .step = step, .context = r };
    r->turns.on = calloc((size_t)n, sizeof *r->turns.on);
    if (!r->turns.on)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %d devices", n);
    for (int k = 0; k < n; k++)
        r->turns.on[k] = r->recording;
    if (!r->runner)
        return AT_OK;
    AT_TRY(at_device_pool_create(r->runner, &r->devices, NULL, &r->pool));
    for (int k = 0; k < n; k++)
        AT_TRY(at_dist_device_open(r->pool, k, &r->turns.on[k].device));
    return AT_OK;
}

static at_status record(const struct at_args *args, struct recorder *r) {
    struct at_dist_request request;
    char shard[32] = "";
    int64_t threads;
    AT_TRY(read_options(args, r, &request, &threads));
    AT_TRY(at_dist_recording_open(&request, &r->recording));
    AT_TRY(at_atomic_check_regular(r->out));
    if (r->recording.source.path)
        AT_TRY(at_atomic_check_apart(r->out, r->recording.source.path));
    AT_TRY(at_dist_layer_init(&r->recording.shape, &r->layer));
    const struct at_dist_shape *s = &r->recording.shape;
    r->units = calloc((size_t)(s->n_layers * s->requests), sizeof *r->units);
    if (!r->units)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %" PRId64 " requests", s->n_layers * s->requests);
    AT_TRY(at_dist_workers_create((int)threads, &r->workers));
    AT_TRY(open_devices(r));
    if (request.shards > 1)
        snprintf(shard, sizeof shard, "%d/%d", request.shard + 1, request.shards);
    AT_TRY(at_dist_journal_open(r->out, &r->recording.record, shard, at_args_has(args, "--resume"), &r->journal));
    AT_TRY(at_dist_parts_open(r->out));
    const struct at_dist_head head = at_dist_recording_head(&r->recording);
    AT_TRY(at_dist_writer_open(r->out, &head, &r->writer));
    AT_TRY(record_layers(r));
    at_progress_end(&r->progress);
    AT_TRY(at_dist_journal_finish(&r->journal));
    at_dist_parts_remove(r->out, &r->recording);
    return show(r->out);
}

static int run(const struct at_args *args) {
    struct recorder r = { 0 };
    const at_status status = record(args, &r);
    at_progress_end(&r.progress);
    at_dist_writer_abandon(r.writer);
    const int code = status == AT_OK ? 0 : at_report_failure(status);
    at_dist_journal_abandon(&r.journal);
    for (int k = 0; r.turns.on && k < r.turns.n; k++)
        at_dist_device_close(r.turns.on[k].device);
    free(r.turns.on);
    at_device_pool_destroy(r.pool);
    at_dist_workers_destroy(r.workers);
    at_dist_layer_release(&r.layer);
    at_dist_recording_close(&r.recording);
    free(r.units);
    return code;
}

const struct at_command at_command_record = {
    .name = "record",
    .synopsis = "record INPUT --out D.h5 [options]",
    .summary = "score distributions and overflow ledger of a dataset, captured tensors or a case",
    .example = "attest record minilm --params 'causal=1 sigma=1' --out d.h5",
    .options = options,
    .min_words = 1,
    .max_words = 1,
    .run = run,
};
