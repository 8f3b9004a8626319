/* A recording: what was asked for, checked, and its units read and counted.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/record/dist_record.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/buffer.h"
#include "attest/names.h"
#include "verify/plan/balance.h"
#include "verify/run/provenance.h"

/* Bytes of q at a time; and scores, so that progress is heard of. */
enum { TILE_BYTES = 64 << 20, TILE_SCORES = 1 << 27, PIECE = 1 << 20, ROW_SCORES = 16 };

static const char *or_else(const char *text, const char *fallback) { return text ? text : fallback; }

/* ---- what was asked for ---- */

static at_status read_attention(const struct at_dist_request *r, struct at_dist_recording *x) {
    const char *name = r->attention;
    if (!x->source.reader) {
        const int softmax = strncmp(x->source.cases.items[0].family->name, "softmax", 7) == 0;
        if (name || r->params)
            return AT_FAIL(AT_USAGE, "record: a case says its attention and parameters itself, wanted no %s",
                           name ? "--attention" : "--params");
        x->params.softmax = softmax;
        return AT_OK;
    }
    if (!name && !x->source.is_named)
        return AT_FAIL(
            AT_USAGE,
            "record: a capture does not say which attention its q and k are for; wanted --attention asynct or "
            "--attention softmax");
    name = or_else(name, "asynct");
    x->params.softmax = strcmp(name, "softmax") == 0;
    return x->params.softmax || strcmp(name, "asynct") == 0
               ? AT_OK
               : AT_FAIL(AT_USAGE, "--attention '%.64s', wanted asynct or softmax", name);
}

static at_status read_format(const char *option, const char *text, enum at_format *format) {
    const int f16 = strcmp(text, "f16") == 0;
    if (!f16 && strcmp(text, "bf16") != 0)
        return AT_FAIL(AT_USAGE, "%s '%.64s', wanted f16 or bf16", option, text);
    *format = f16 ? AT_F16 : AT_BF16;
    return AT_OK;
}

static at_status read_formats(const struct at_dist_request *r, struct at_dist_recording *x) {
    x->dtype = x->source.format;
    if (r->dtype)
        AT_TRY(read_format("--dtype", r->dtype, &x->dtype));
    x->shape.bins = x->dtype == AT_BF16 ? AT_BF16 : AT_F16;
    return r->bins ? read_format("--bins", r->bins, &x->shape.bins) : AT_OK;
}

static at_status add_quantity(const char *name, size_t length, unsigned *what) {
    char text[32];
    const char *names[AT_DIST_COUNT];
    snprintf(text, sizeof text, "%.*s", (int)(length < sizeof text ? length : sizeof text - 1), name);
    const enum at_dist_what w = at_dist_find(text);
    if (w < AT_DIST_COUNT) {
        *what |= 1u << w;
        return AT_OK;
    }
    for (int i = 0; i < AT_DIST_COUNT; i++)
        names[i] = at_dist_name((enum at_dist_what)i);
    const char *nearest = at_nearest_name(text, names, AT_DIST_COUNT);
    return AT_FAIL(AT_USAGE,
                   "--what: there is no quantity '%s'%s%s%s; wanted some of q k v raw scaled fir p out row_max row_sum "
                   "entropy support share0, with commas",
                   text, nearest ? ", did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

static at_status read_what(const struct at_dist_request *r, struct at_dist_recording *x) {
    const unsigned all = (1u << AT_DIST_COUNT) - 1, softmax = all & ~(1u << AT_DIST_fir);
    x->shape.what = x->params.softmax ? softmax : all;
    if (!r->what)
        return AT_OK;
    x->shape.what = 0;
    for (const char *name = r->what;; name++) {
        const size_t length = strcspn(name, ",");
        AT_TRY(add_quantity(name, length, &x->shape.what));
        name += length;
        if (!*name)
            break;
    }
    if (x->params.softmax && at_dist_has(&x->shape, AT_DIST_fir))
        return AT_FAIL(AT_USAGE, "--what: softmax attention has no fir");
    return AT_OK;
}

/* ---- what it needs ---- */

static at_status check_sizes(struct at_dist_recording *x) {
    const struct at_dist_source *s = &x->source;
    int64_t longest = 0;
    for (int64_t r = 0; r < s->requests; r++) {
        const int64_t keys = at_dist_source_keys(s, r), queries = at_dist_source_queries(s, r);
        const int64_t bytes = 2 * keys * s->hk * s->d * (int64_t)at_format_info(x->dtype)->bytes;
        longest = keys > longest ? keys : longest;
        longest = queries > longest ? queries : longest;
        if (keys > 1 << 24 || bytes > AT_DIST_MAX_BYTES)
            return AT_FAIL(AT_USAGE,
                           "%s: k and v of request %" PRId64 " are %" PRId64 " keys and %" PRId64
                           " MiB, wanted at most %d and %" PRId64 " MiB, which are held in memory",
                           s->name, r, keys, bytes >> 20, 1 << 24, AT_DIST_MAX_BYTES >> 20);
    }
    x->shape.n_layers = s->n_layers;
    x->shape.h = s->h;
    x->shape.hk = s->hk;
    x->shape.requests = s->requests;
    x->shape.n_groups = s->requests < AT_DIST_MAX_GROUPS ? s->requests : AT_DIST_MAX_GROUPS;
    x->shape.n_distances = at_dist_distances(longest > 0 ? longest - 1 : 0);
    return s->requests > 0 ? AT_OK : AT_FAIL(AT_USAGE, "%s: there are no requests", s->name);
}

static json_t *names_of(unsigned what) {
    json_t *list = json_array();
    for (int w = 0; w < AT_DIST_COUNT; w++)
        if (what >> w & 1)
            json_array_append_new(list, json_string(at_dist_name((enum at_dist_what)w)));
    return list;
}

static json_t *layers_of(const struct at_dist_source *s) {
    json_t *list = json_array();
    for (int64_t i = 0; i < s->n_layers; i++)
        json_array_append_new(list, json_integer(s->layer[i]));
    return list;
}

/* Tells files of one name apart, so that shards or halves of different captures are never added: a hash of where requests
 * start, and of the first row of each tensor, in each layer. A case says itself what it is: 0. */
static at_status fingerprint(struct at_dist_source *s, uint64_t *hash) {
    const size_t starts = (size_t)(s->requests + 1) * sizeof *s->query_start;
    const size_t bytes = (size_t)(s->h * s->d) * at_format_info(s->format)->bytes;
    at_status status = AT_OK;
    *hash = 0;
    if (!s->reader)
        return AT_OK;
    char *row = malloc(bytes);
    if (!row)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a row of %zu bytes", bytes);
    *hash = at_hash_bytes(s->key_start, starts, at_hash_bytes(s->query_start, starts, AT_HASH_START));
    for (int64_t i = 0; i < s->n_layers; i++)
        for (int which = 0; which < AT_DIST_TENSORS; which++) {
            const int64_t *start = which == AT_DIST_Q ? s->query_start : s->key_start;
            const int64_t n = which == AT_DIST_Q ? s->h * s->d : s->hk * s->d;
            if (start[s->requests] == 0)
                continue;
            AT_TRY_OUT(at_reader_read(s->reader, s->tensor[i][which], 0, n, row));
            *hash = at_hash_bytes(row, (size_t)n * at_format_info(s->format)->bytes, *hash);
        }
out:
    free(row);
    return status;
}

static at_status describe(const struct at_dist_request *r, struct at_dist_recording *x) {
    struct at_dist_source *s = &x->source;
    char params[1024], own[24] = "", print[24] = "";
    uint64_t hash;
    AT_TRY(fingerprint(s, &hash));
    if (hash)
        snprintf(print, sizeof print, "%016" PRIx64, hash);
    if (x->params.own)
        snprintf(own, sizeof own, "%016" PRIx64, x->params.own);
    AT_TRY(at_dist_params_text(s, x->params.softmax, or_else(r->params, ""), params, sizeof params));
    json_t *request = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:s, s:o, s:o, s:I, s:I, s:I, s:I}", "record",
                                s->name, "fingerprint", print, "attention", x->params.softmax ? "softmax" : "asynct",
                                "params", params, "own_params", own, "format", at_format_info(s->format)->name, "dtype",
                                at_format_info(x->dtype)->name, "bins", at_format_info(x->shape.bins)->name, "what",
                                names_of(x->shape.what), "layers", layers_of(s), "requests", (json_int_t)s->requests,
                                "h", (json_int_t)s->h, "hk", (json_int_t)s->hk, "d", (json_int_t)s->d);
    x->record.request = request ? json_dumps(request, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    json_decref(request);
    if (!x->record.request)
        return AT_FAIL(AT_USAGE, "%s: the name or the parameters are no text in UTF-8", s->name);
    return at_provenance_build("any: the counts are the same on every device", &x->record.provenance);
}

/* What a request costs: its scores, and reading and hashing its rows. */
static at_status deal(struct at_dist_recording *x) {
    const struct at_dist_source *s = &x->source;
    const int64_t n = s->n_layers * s->requests;
    at_status status = AT_OK;
    if (x->shards < 2)
        return AT_OK;
    struct at_balance_item *items = calloc((size_t)n + 1, sizeof *items);
    x->dealt = calloc((size_t)n + 1, sizeof *x->dealt);
    if (!items || !x->dealt)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for %" PRId64 " requests", n);
    for (int64_t i = 0; i < n; i++) {
        const double keys = (double)at_dist_source_keys(s, i % s->requests);
        const double queries = (double)at_dist_source_queries(s, i % s->requests);
        items[i].cost = queries * keys + ROW_SCORES * (queries + keys) + 1;
    }
    AT_TRY_OUT(at_balance(items, n, x->shards, x->dealt));
out:
    free(items);
    return status;
}

at_status at_dist_recording_open(const struct at_dist_request *request, struct at_dist_recording *x) {
    at_status status = AT_OK;
    *x = (struct at_dist_recording){ .shard = request->shard, .shards = request->shards };
    at_run_record_init(&x->record);
    AT_TRY_OUT(at_dist_source_open(request->input, &x->source));
    AT_TRY_OUT(read_attention(request, x));
    if (request->layers)
        AT_TRY_OUT(at_dist_source_select(&x->source, request->layers));
    AT_TRY_OUT(read_formats(request, x));
    AT_TRY_OUT(read_what(request, x));
    AT_TRY_OUT(check_sizes(x));
    AT_TRY_OUT(at_dist_params_make(&x->source, x->params.softmax, or_else(request->params, ""), &x->params));
    AT_TRY_OUT(describe(request, x));
    AT_TRY_OUT(deal(x));
out:
    if (status != AT_OK)
        at_dist_recording_close(x);
    return status;
}

void at_dist_recording_close(struct at_dist_recording *x) {
    at_dist_source_close(&x->source);
    at_dist_params_release(&x->params);
    at_run_record_release(&x->record);
    free(x->dealt);
    x->dealt = NULL;
}

int at_dist_recording_has(const struct at_dist_recording *x, int64_t i, int64_t request) {
    return !x->dealt || x->dealt[i * x->source.requests + request] == x->shard;
}

struct at_dist_head at_dist_recording_head(const struct at_dist_recording *x) {
    return (struct at_dist_head){ .shape = x->shape,
                                  .layer = x->source.layer,
                                  .attention = x->params.softmax ? "softmax" : "asynct",
                                  .source = x->source.name,
                                  .record = &x->record };
}

/* ---- units ---- */

struct loader {
    struct at_dist_recording *x;
    int64_t layer, request;
    double *values; /* where codes change their format: PIECE, or a row */
    char *codes;
    void (*step)(void *context, int64_t queries);
    void *context;
};

static int64_t row_of(const struct at_dist_recording *x, int tensor) {
    return (tensor == AT_DIST_Q ? x->source.h : x->source.hk) * x->source.d;
}

static void hold(const struct at_dist_recording *x) {
    if (x->lock)
        pthread_mutex_lock(x->lock);
}

static void let_go(const struct at_dist_recording *x) {
    if (x->lock)
        pthread_mutex_unlock(x->lock);
}

static at_status read_rows(struct loader *l, int tensor, int64_t first, int64_t n, char *codes) {
    hold(l->x);
    const at_status status = at_dist_source_read(&l->x->source, l->layer, l->request, tensor, first, n, codes);
    let_go(l->x);
    return status;
}

/* Rows of a tensor in the format that is counted. */
static at_status load(struct loader *l, int tensor, int64_t first, int64_t n, char *out) {
    const struct at_dist_recording *x = l->x;
    const enum at_format from = x->source.format, to = x->dtype;
    const int64_t row = row_of(x, tensor), piece = PIECE / row > 0 ? PIECE / row : 1;
    if (from == to)
        return read_rows(l, tensor, first, n, out);
    if (!l->values) {
        const int64_t q_row = row_of(x, AT_DIST_Q); /* no tensor has longer rows */
        const size_t most = (size_t)(q_row > PIECE ? q_row : PIECE);
        l->values = malloc(most * sizeof *l->values);
        l->codes = malloc(most * 8);
    }
    if (!l->values || !l->codes)
        return AT_FAIL(AT_NO_MEMORY, "no memory to change the format of %d values", (int)PIECE);
    for (int64_t i = 0; i < n; i += piece) {
        const int64_t rows = n - i < piece ? n - i : piece;
        const size_t values = (size_t)(rows * row);
        AT_TRY(read_rows(l, tensor, first + i, rows, l->codes));
        at_decode_array(from, values, l->codes, l->values);
        at_encode_array(to, values, l->values, out + (size_t)(i * row) * at_format_info(to)->bytes);
    }
    return AT_OK;
}

static at_status count(struct loader *l, struct at_dist_workers *workers, char *k, char *v, char *q, int64_t tile,
                       struct at_dist_layer *layer, uint64_t *hash) {
    const struct at_dist_recording *x = l->x;
    const size_t bytes = at_format_info(x->dtype)->bytes;
    struct at_dist_unit unit = { .request = l->request,
                                 .queries = at_dist_source_queries(&x->source, l->request),
                                 .keys = at_dist_source_keys(&x->source, l->request),
                                 .d = x->source.d,
                                 .format = x->dtype,
                                 .q = q,
                                 .k = k,
                                 .v = v,
                                 .softmax = x->params.softmax,
                                 .causal = x->params.causal,
                                 .heads = x->params.heads + l->layer * x->source.h };
    const size_t kv = (size_t)(unit.keys * row_of(x, AT_DIST_K)) * bytes;
    AT_TRY(load(l, AT_DIST_K, 0, unit.keys, k));
    AT_TRY(load(l, AT_DIST_V, 0, unit.keys, v));
    *hash = at_hash_bytes(v, kv, at_hash_bytes(k, kv, AT_HASH_START));
    do {
        unit.tile = unit.queries - unit.first_query < tile ? unit.queries - unit.first_query : tile;
        AT_TRY(load(l, AT_DIST_Q, unit.first_query, unit.tile, q));
        *hash = at_hash_bytes(q, (size_t)(unit.tile * row_of(x, AT_DIST_Q)) * bytes, *hash);
        AT_TRY(x->device ? at_dist_device_count(x->device, x->lock, workers, &unit, layer)
                         : at_dist_count_unit(workers, &unit, layer));
        unit.first_query += unit.tile;
        if (l->step) {
            hold(x);
            l->step(l->context, unit.tile);
            let_go(x);
        }
    } while (unit.first_query < unit.queries);
    return AT_OK;
}

at_status at_dist_recording_unit(struct at_dist_recording *x, struct at_dist_workers *workers, int64_t i,
                                 int64_t request, struct at_dist_layer *layer, struct at_dist_unit_row *row,
                                 void (*step)(void *context, int64_t queries), void *context) {
    const size_t bytes = at_format_info(x->dtype)->bytes;
    const int64_t keys = at_dist_source_keys(&x->source, request);
    const int64_t queries = at_dist_source_queries(&x->source, request);
    const int64_t fits = TILE_BYTES / (row_of(x, AT_DIST_Q) * (int64_t)bytes) / AT_DIST_TILE;
    const int64_t soon = TILE_SCORES / (x->source.h * (keys + 1)) / AT_DIST_TILE, tiles = fits < soon ? fits : soon;
    const int64_t tile = (tiles > 0 ? tiles : 1) * AT_DIST_TILE, held = queries < tile ? queries : tile;
    const size_t kv = (size_t)(keys * row_of(x, AT_DIST_K)) * bytes;
    struct loader l = { .x = x, .layer = i, .request = request, .step = step, .context = context };
    at_status status = AT_OK;
    uint64_t hash = 0;
    char *k = malloc(kv + 1), *v = malloc(kv + 1), *q = malloc((size_t)(held * row_of(x, AT_DIST_Q)) * bytes + 1);
    if (!k || !v || !q)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for request %" PRId64 " of %" PRId64 " keys", request, keys);
    AT_TRY_OUT(count(&l, workers, k, v, q, tile, layer, &hash));
    *row =
        (struct at_dist_unit_row){ .layer = x->source.layer[i], .request = request, .queries = queries, .keys = keys };
    snprintf(row->hash, sizeof row->hash, "%016" PRIx64, hash);
    hold(x);
    status = at_dist_source_identity(&x->source, request, row->identity, sizeof row->identity);
    let_go(x);
out:
    free(l.values);
    free(l.codes);
    free(k);
    free(v);
    free(q);
    return status;
}
