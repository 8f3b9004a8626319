/* A unit cut into items for threads: a key/value head and some of the queries, all query heads of the group in turn.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/record/dist_unit.h"

#include <stdlib.h>
#include <string.h>

#include "attest/blas_alone.h"
#include "attest/env.h"
#include "verify/record/dist_worker.h"

enum { GROUP_WORDS = 1 << 22, ITEMS_A_THREAD = 4, LEAST_QUERIES = 256 };

struct job {
    struct at_dist_workers *workers;
    const struct at_dist_unit *unit;
    struct at_dist_layer *layer;
    int64_t queries, pieces; /* of an item; items of a key/value head */
    int64_t rows;            /* of a block */
};

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

at_status at_dist_workers_create(int threads, struct at_dist_workers **workers) {
    struct at_dist_workers *w = calloc(1, sizeof *w);
    *workers = NULL;
    if (w)
        w->worker = calloc((size_t)threads, sizeof *w->worker);
    if (!w || !w->worker) {
        free(w);
        return AT_FAIL(AT_NO_MEMORY, "no memory for %d threads", threads);
    }
    at_blas_alone();
    w->n = threads;
    pthread_mutex_init(&w->lock, NULL);
    *workers = w;
    return AT_OK;
}

void at_dist_workers_destroy(struct at_dist_workers *w) {
    if (!w)
        return;
    for (int i = 0; i < w->n; i++)
        at_dist_worker_release(&w->worker[i]);
    pthread_mutex_destroy(&w->lock);
    free(w->worker);
    free(w);
}

static at_status flush(struct job *job, struct at_dist_worker *w, int kv, int64_t head) {
    pthread_mutex_lock(&job->workers->lock);
    const at_status status = at_dist_worker_flush(w, kv, head, job->unit->request, job->layer);
    pthread_mutex_unlock(&job->workers->lock);
    return status;
}

/* All of k or v of one head. */
static void count_keys(const struct job *job, struct at_dist_worker *w, enum at_dist_what what, int64_t kv_head) {
    const struct at_dist_unit *u = job->unit;
    const char *codes = what == AT_DIST_k ? u->k : u->v;
    const size_t bytes = at_format_info(u->format)->bytes;
    for (int64_t t0 = 0; w->local.counts[what] && t0 < u->keys; t0 += AT_DIST_PANEL) {
        const int64_t n = least(AT_DIST_PANEL, u->keys - t0);
        for (int64_t t = 0; t < n; t++) {
            const int64_t first = ((t0 + t) * job->layer->shape.hk + kv_head) * u->d;
            at_fast_decode(u->format, u->d, codes + (size_t)first * bytes, w->panel + t * u->d);
        }
        at_dist_worker_count(w, what, n * u->d, w->panel);
    }
}

/* Zero shares of a group of heads over its queries [first, end). */
static void count_group(const struct job *job, struct at_dist_worker *w, int64_t first, int64_t end) {
    for (int64_t i = first; i < end; i++) {
        const int64_t n = at_dist_visible(job->unit, i), pages = (n + AT_DIST_PAGE - 1) / AT_DIST_PAGE;
        const uint16_t *mask = w->group + (i - first) * w->pages;
        int64_t live = 0, dead = 0;
        for (int64_t page = 0; page < pages; page++) {
            live += __builtin_popcount(mask[page]);
            dead += mask[page] == 0;
        }
        w->local.zero[AT_DIST_ZERO_key_zero] += (uint64_t)(n - live);
        w->local.zero[AT_DIST_ZERO_key_total] += (uint64_t)n;
        w->local.zero[AT_DIST_ZERO_page_zero] += (uint64_t)dead;
        w->local.zero[AT_DIST_ZERO_page_total] += (uint64_t)pages;
    }
}

static void run_head(const struct job *job, struct at_dist_worker *w, int64_t head, int64_t kv_head, int64_t first,
                     int64_t end) {
    for (int64_t i = first; i < end; i += job->rows) {
        struct at_dist_block block = { head, kv_head, i, least(job->rows, end - i), 0 };
        block.keys = at_dist_visible(job->unit, block.first + block.rows - 1);
        at_dist_block_run(w, job->unit, &job->layer->shape, &block, first);
    }
}

static at_status run_item(void *context, int64_t begin, int64_t end, int worker) {
    struct job *job = context;
    struct at_dist_worker *w = &job->workers->worker[worker];
    const struct at_dist_unit *u = job->unit;
    const struct at_dist_shape *s = &job->layer->shape;
    const int64_t group = s->h / s->hk;
    AT_TRY(at_dist_worker_fit(w, s, job->rows, most(u->keys, 1), u->d, job->queries));
    for (int64_t item = begin; item < end; item++) {
        const int64_t kv_head = item / job->pieces, piece = item % job->pieces;
        const int64_t first = u->first_query + piece * job->queries;
        const int64_t last = least(first + job->queries, u->first_query + u->tile);
        memset(w->group, 0, (size_t)(job->queries * w->pages) * sizeof *w->group);
        for (int64_t head = kv_head * group; head < (kv_head + 1) * group; head++) {
            run_head(job, w, head, kv_head, first, last);
            if (!u->only_compute)
                AT_TRY(flush(job, w, 0, head));
        }
        if (u->only_compute)
            continue;
        if (piece == 0 && u->first_query == 0) {
            count_keys(job, w, AT_DIST_k, kv_head);
            count_keys(job, w, AT_DIST_v, kv_head);
        }
        count_group(job, w, first, last);
        AT_TRY(flush(job, w, 1, kv_head));
    }
    return AT_OK;
}

/* Whole tiles of queries for each item: enough items for the threads, and a bitmap of a group that stays small. */
static void cut(struct job *job) {
    const struct at_dist_unit *u = job->unit;
    const int64_t hk = job->layer->shape.hk, keys = most(u->keys, 1), pages = keys / AT_DIST_PAGE + 1;
    const int64_t wanted = (job->workers->n * ITEMS_A_THREAD + hk - 1) / hk;
    int64_t queries = most((u->tile + wanted - 1) / wanted, LEAST_QUERIES);
    queries = least(queries, GROUP_WORDS / pages);
    queries = most(queries / AT_DIST_TILE, 1) * AT_DIST_TILE;
    job->queries = queries;
    job->pieces = most((u->tile + queries - 1) / queries, 1);
    job->rows = most(least(AT_DIST_ROWS, AT_DIST_HOLD / keys), AT_DIST_FEW);
    job->rows = least(most(least(job->rows, AT_DIST_MAX / keys), 1), most(u->tile, 1));
}

at_status at_dist_count_unit(struct at_dist_workers *workers, const struct at_dist_unit *unit,
                             struct at_dist_layer *layer) {
    struct job job = { .workers = workers, .unit = unit, .layer = layer };
    if (unit->first_query % AT_DIST_TILE || unit->keys > AT_DIST_MAX)
        return AT_FAIL(AT_BUG, "a tile from query %lld of %lld keys", (long long)unit->first_query,
                       (long long)unit->keys);
    cut(&job);
    const int64_t items = layer->shape.hk * job.pieces;
    return at_parallel(items, 1, workers->n, run_item, &job);
}
