/* A thread's counts: its memory, and adding them to those of a layer.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "verify/record/dist_worker.h"

static int64_t most(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- memory ---- */

/* Places every array in `base`, or only counts with base NULL; gives the number of doubles. */
static int64_t place(struct at_dist_worker *w, double *base) {
    const int64_t width = most(w->d, 16), rows = w->rows;
    const struct {
        void *array; /* address of the pointer */
        int64_t bytes;
    } parts[] = {
        { &w->q, 8 * rows * w->d },
        { &w->panel, 8 * AT_DIST_PANEL * w->d },
        { &w->turned, 8 * AT_DIST_PANEL * w->d },
        { &w->scores, 8 * rows * w->stride },
        { &w->s, 8 * w->stride },
        { &w->z, 8 * w->stride },
        { &w->p, 8 * w->stride },
        { &w->live, 8 * w->stride },
        { &w->o, 8 * rows * width },
        { &w->row_sum, 8 * rows },
        { &w->stat, 8 * rows * AT_DIST_ROW_STATS },
        { &w->q_span, 4 * rows },
        { &w->k_span, 4 * AT_DIST_PANEL },
        { &w->mask, 2 * rows * w->pages },
        { &w->tile, 2 * w->pages },
        { &w->group, 2 * w->group_rows * w->pages },
        { &w->slots, 4 * most(most(w->stride, rows * width), AT_DIST_PANEL * w->d) },
    };
    int64_t used = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        double *at = base ? base + used : NULL;
        if (base)
            memcpy(parts[i].array, &at, sizeof at);
        used += (parts[i].bytes / 8 + 8) / 8 * 8;
    }
    return used;
}

static at_status fit_counts(struct at_dist_worker *w, const struct at_dist_shape *shape) {
    at_fast_codes_init(shape->bins, &w->codes);
    if (!w->slots_memory)
        w->slots_memory = calloc((size_t)AT_DIST_COUNT * AT_DIST_SLOTS, sizeof *w->slots_memory);
    if (!w->slots_memory)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a thread's counts");
    for (int i = 0; i < AT_DIST_COUNT; i++)
        w->local.counts[i] =
            at_dist_has(shape, (enum at_dist_what)i) ? w->slots_memory + (int64_t)i * AT_DIST_SLOTS : NULL;
    return AT_OK;
}

at_status at_dist_worker_fit(struct at_dist_worker *w, const struct at_dist_shape *shape, int64_t rows, int64_t keys,
                             int64_t d, int64_t group_rows) {
    const int64_t stride = ((keys + 7) / 8 | 1) * 8; /* rows a power of two apart would share places in a cache */
    const int64_t pages = (keys + AT_DIST_PAGE - 1) / AT_DIST_PAGE + 1;
    AT_TRY(fit_counts(w, shape));
    if (w->memory && w->rows >= rows && w->stride >= stride && w->d == d && w->group_rows >= group_rows)
        return AT_OK;
    w->rows = most(w->rows, rows);
    w->stride = most(w->stride, stride);
    w->pages = most(w->pages, pages);
    w->group_rows = most(w->group_rows, group_rows);
    w->d = d;
    free(w->memory);
    const size_t doubles = (size_t)place(w, NULL);
    w->memory = aligned_alloc(64, doubles * sizeof *w->memory);
    if (!w->memory) {
        w->rows = w->stride = w->pages = w->group_rows = 0;
        return AT_FAIL(AT_NO_MEMORY, "no memory for a block of %lld rows and %lld keys", (long long)rows,
                       (long long)keys);
    }
    place(w, w->memory);
    memset(w->tile, 0, (size_t)w->pages * sizeof *w->tile);
    memset(w->stats, 0, sizeof w->stats);
    return AT_OK;
}

void at_dist_worker_release(struct at_dist_worker *w) {
    free(w->memory);
    free(w->slots_memory);
    *w = (struct at_dist_worker){ 0 };
}

/* ---- counting ---- */

void at_dist_worker_count(struct at_dist_worker *w, enum at_dist_what what, int64_t n, const double *x) {
    if (!w->local.counts[what])
        return;
    at_fast_slots(&w->codes, n, x, w->slots);
    at_fast_count(n, w->slots, w->local.counts[what]);
}

/* ---- to the layer ---- */

static int add(uint64_t *into, uint64_t more) { return __builtin_add_overflow(*into, more, into); }

/* Most classes hold nothing, which is seen by a scan that reads whole cache lines. */
static int is_empty(const uint32_t *counts, int64_t n) {
    uint32_t any = 0;
    for (int64_t i = 0; i < n; i++)
        any |= counts[i];
    return any == 0;
}

static int flush_counts(struct at_dist_local *local, enum at_dist_what what, int64_t head, int64_t request,
                        struct at_dist_layer *layer) {
    const struct at_dist_shape *s = &layer->shape;
    const int64_t bins = at_dist_bins(s->bins), classes = at_dist_classes(s->bins);
    uint32_t *from = local->counts[what];
    uint64_t *into = layer->counts[what] + head * bins;
    uint64_t *coarse = layer->coarse[what] + (head * s->n_groups + request % s->n_groups) * classes;
    int overflow = 0;
    local->tally[what].nan += from[bins];
    local->tally[what].overflow += (uint64_t)from[bins + 1] + from[bins + 2];
    from[bins - 1] += from[bins + 1];
    from[0] += from[bins + 2];
    from[bins] = from[bins + 1] = from[bins + 2] = 0;
    for (int64_t c = 0; c < classes; c++) {
        const int64_t first = at_dist_class_first(s->bins, c);
        const int64_t end = c + 1 < classes ? at_dist_class_first(s->bins, c + 1) : bins;
        uint64_t sum = 0;
        if (is_empty(from + first, end - first))
            continue;
        for (int64_t i = first; i < end; i++) {
            overflow |= add(&into[i], from[i]);
            sum += from[i];
        }
        memset(from + first, 0, (size_t)(end - first) * sizeof *from);
        overflow |= add(&coarse[c], sum);
    }
    return overflow;
}

static int flush_tally(struct at_dist_tally *from, struct at_dist_tally *into) {
    const int overflow = add(&into->nan, from->nan) | add(&into->masked, from->masked) |
                         add(&into->overflow, from->overflow) | add(&into->n_empty, from->n_empty);
    *from = (struct at_dist_tally){ 0 };
    return overflow;
}

static void flush_ledger(struct at_dist_local *local, struct at_ledger_row *into) {
    for (int i = 0; i < AT_DIST_STAGES; i++) {
        struct at_ledger sum, more;
        at_ledger_init(&sum);
        at_ledger_init(&more);
        sum.stage[0] = into[i];
        more.stage[0] = local->ledger[i];
        at_ledger_merge(&sum, &more);
        into[i] = sum.stage[0];
        local->ledger[i] = (struct at_ledger_row){ 0 };
    }
}

at_status at_dist_worker_flush(struct at_dist_worker *w, int kv, int64_t head, int64_t request,
                               struct at_dist_layer *layer) {
    struct at_dist_local *local = &w->local;
    const struct at_dist_shape *s = &layer->shape;
    int overflow = local->mass_overflow;
    for (int i = 0; i < AT_DIST_COUNT; i++) {
        if (at_dist_is_kv((enum at_dist_what)i) != kv)
            continue;
        if (local->counts[i])
            overflow |= flush_counts(local, (enum at_dist_what)i, head, request, layer) |
                        flush_tally(&local->tally[i], &layer->tally[i][head]);
        local->tally[i] = (struct at_dist_tally){ 0 }; /* of what this shape leaves out: the next one may want it */
    }
    for (int z = 0; z < AT_DIST_ZERO_COUNT; z++)
        if (at_dist_zero_is_kv((enum at_dist_zero)z) == kv) {
            overflow |= add(&layer->zero[z][head], local->zero[z]);
            local->zero[z] = 0;
        }
    for (int64_t i = 0; !kv && i < s->n_distances; i++) {
        overflow |= add(&layer->mass[head * s->n_distances + i], local->mass[i]);
        local->mass[i] = 0;
    }
    if (!kv)
        flush_ledger(local, layer->ledger + head * AT_DIST_STAGES);
    return overflow ? AT_FAIL(AT_USAGE, "request %lld, head %lld: a count or the mass of p is beyond 64 bits",
                              (long long)request, (long long)head)
                    : AT_OK;
}
