/* attest record: score distributions and the overflow ledger of recorded activations, captures or a case.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/env.h"
#include "verify/atomic_file.h"
#include "verify/commands.h"
#include "verify/dist_journal.h"
#include "verify/dist_parts.h"
#include "verify/dist_record.h"
#include "verify/dist_table.h"
#include "verify/plan.h"
#include "verify/progress.h"

static const struct at_option options[] = {
    { "--out", "D.h5", "the archive to write" },
    { "--attention", "A", "asynct (default) or softmax; a case line says it itself" },
    { "--params", "'K=V ...'", "causal, scale, sigma, window, taps, edge, relu_pre, clip, gamma, as in a case line" },
    { "--layers", "GLOB|a..b", "which layers (default all)" },
    { "--bins", "F", "f16 or bf16: bins are its codes (default: the source's own format; f16 for f32 and f64)" },
    { "--dtype", "F", "f16 or bf16: q, k and v are rounded to it first (default: as they are)" },
    { "--what", "LIST",
      "quantities, of q,k,v,raw,scaled,fir,p,out,row_max,row_sum,entropy,support,share0 (default all)" },
    { "--shard", "i/N", "only this share of the requests of all layers; `attest merge` joins the shards" },
    { "--resume", NULL, "go on from the journal D.h5.jsonl of an interrupted recording" },
    { "--threads", "N", "threads (default: processors there are)" },
    { "--runner", "R", "who counts: cpu (default: threads of this process), cuda, or a command line; the same counts" },
    { NULL, NULL, NULL },
};

struct recorder {
    const char *out, *runner; /* NULL: none */
    struct at_dist_recording recording;
    struct at_dist_workers *workers;
    struct at_dist_layer layer;
    struct at_dist_journal journal;
    struct at_dist_unit_row *units; /* [requests] of the layer at hand */
    struct at_progress progress;    /* in queries */
    char name[64];                  /* of the unit at hand */
};

static at_status read_options(const struct at_args *args, struct recorder *r, struct at_dist_request *request,
                              int64_t *threads) {
    const char *runner = at_args_get(args, "--runner");
    r->out = at_args_get(args, "--out");
    if (!r->out)
        return AT_FAIL(AT_USAGE, "record: wants --out D.h5");
    if (runner && strcmp(runner, "cpu") != 0)
        r->runner = runner;
    *request = (struct at_dist_request){ .input = args->words[0],
                                         .attention = at_args_get(args, "--attention"),
                                         .params = at_args_get(args, "--params"),
                                         .layers = at_args_get(args, "--layers"),
                                         .bins = at_args_get(args, "--bins"),
                                         .dtype = at_args_get(args, "--dtype"),
                                         .what = at_args_get(args, "--what"),
                                         .shards = 1 };
    AT_TRY(at_shard_parse(at_args_get(args, "--shard"), &request->shard, &request->shards));
    return at_args_int(args, "--threads", 1, 1024, at_threads(), threads);
}

static void step(void *context, int64_t queries) {
    struct recorder *r = context;
    at_progress_step(&r->progress, queries, 0, r->name);
}

static at_status record_layer(struct recorder *r, int64_t i) {
    struct at_dist_recording *x = &r->recording;
    int64_t n = 0;
    at_dist_layer_clear(&r->layer);
    for (int64_t request = 0; request < x->shape.requests; request++) {
        if (!at_dist_recording_has(x, i, request))
            continue;
        snprintf(r->name, sizeof r->name, "layer %" PRId64 ", request %" PRId64, x->source.layer[i], request);
        AT_TRY(at_dist_recording_unit(x, r->workers, i, request, &r->layer, &r->units[n++], step, r));
    }
    AT_TRY(at_dist_parts_write(r->out, x, i, &r->layer, r->units, n));
    return at_dist_journal_append(&r->journal, x->source.layer[i], r->units, n);
}

/* A part that was lost is counted again. */
static int is_done(const struct recorder *r, int64_t i) {
    const int64_t layer = r->recording.source.layer[i];
    return at_dist_journal_has(&r->journal, layer) && at_dist_parts_has(r->out, layer);
}

static at_status record_layers(struct recorder *r) {
    const struct at_dist_recording *x = &r->recording;
    at_status status = AT_OK;
    int64_t queries = 0;
    for (int64_t i = 0; i < x->shape.n_layers; i++)
        for (int64_t request = 0; request < x->shape.requests && !is_done(r, i); request++)
            if (at_dist_recording_has(x, i, request))
                queries += at_dist_source_queries(&x->source, request);
    at_progress_start(&r->progress, "recording queries", queries);
    for (int64_t i = 0; i < x->shape.n_layers && status == AT_OK; i++)
        if (!is_done(r, i))
            status = record_layer(r, i);
    at_progress_end(&r->progress);
    return status;
}

static at_status show(const char *path) {
    struct at_distributions d;
    AT_TRY(at_distributions_open(path, &d));
    const at_status status = at_dist_table(&d, stdout);
    at_distributions_close(&d);
    return status;
}

static at_status record(const struct at_args *args, struct recorder *r) {
    struct at_dist_request request;
    char shard[32] = "";
    int64_t threads;
    AT_TRY(read_options(args, r, &request, &threads));
    AT_TRY(at_dist_recording_open(&request, &r->recording));
    AT_TRY(at_atomic_check(r->out));
    AT_TRY(at_dist_layer_init(&r->recording.shape, &r->layer));
    r->units = calloc((size_t)r->recording.shape.requests, sizeof *r->units);
    if (!r->units)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %" PRId64 " requests", r->recording.shape.requests);
    AT_TRY(at_dist_workers_create((int)threads, &r->workers));
    if (r->runner)
        AT_TRY(at_dist_device_open(r->runner, &r->recording.device));
    if (request.shards > 1)
        snprintf(shard, sizeof shard, "%d/%d", request.shard + 1, request.shards);
    AT_TRY(at_dist_journal_open(r->out, &r->recording.record, shard, at_args_has(args, "--resume"), &r->journal));
    AT_TRY(at_dist_parts_open(r->out));
    AT_TRY(record_layers(r));
    AT_TRY(at_dist_parts_join(r->out, &r->recording));
    AT_TRY(at_dist_journal_finish(&r->journal));
    at_dist_parts_remove(r->out, &r->recording);
    return show(r->out);
}

static int run(const struct at_args *args) {
    struct recorder r = { 0 };
    const at_status status = record(args, &r);
    const int code = status == AT_OK ? 0 : at_report_failure(status);
    at_dist_journal_abandon(&r.journal);
    at_dist_device_close(r.recording.device);
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
