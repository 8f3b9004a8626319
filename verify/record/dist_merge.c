/* Joining the shards of a recording: their sums added layer by layer, their units checked to be all, and each once.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/record/dist_merge.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "verify/archive/distributions.h"

struct merge {
    const char *const *paths;
    struct at_distributions *shard;
    int n, opened;
    struct at_dist_unit_row *units;
    int64_t n_units;
};

static int by_layer(const void *a, const void *b) {
    const struct at_dist_unit_row *x = a, *y = b;
    if (x->layer != y->layer)
        return x->layer < y->layer ? -1 : 1;
    return (x->request > y->request) - (x->request < y->request);
}

static int same_shape(const struct at_distributions *a, const struct at_distributions *b) {
    const struct at_dist_shape *x = &a->shape, *y = &b->shape;
    return x->n_layers == y->n_layers && x->h == y->h && x->hk == y->hk && x->requests == y->requests &&
           x->n_groups == y->n_groups && x->n_distances == y->n_distances && x->bins == y->bins && x->what == y->what &&
           memcmp(a->layer, b->layer, (size_t)x->n_layers * sizeof *a->layer) == 0;
}

static at_status open_shards(struct merge *m) {
    char difference[512];
    for (; m->opened < m->n; m->opened++) {
        const struct at_distributions *first = &m->shard[0], *d = &m->shard[m->opened];
        AT_TRY(at_distributions_open(m->paths[m->opened], &m->shard[m->opened]));
        m->n_units += d->n_units;
        if (m->opened == 0)
            continue;
        const char *const texts[][2] = { { first->record.request, d->record.request },
                                         { first->record.provenance, d->record.provenance } };
        for (int i = 0; i < 2; i++)
            if (at_json_difference(texts[i][0], texts[i][1], difference, sizeof difference)) {
                m->opened++;
                return AT_FAIL(AT_USAGE, "%s and %s are of different %s: %s", m->paths[0], m->paths[m->opened - 1],
                               i ? "builds" : "requests", difference);
            }
        if (!same_shape(first, d)) {
            m->opened++;
            return AT_FAIL(AT_USAGE, "%s and %s say they hold the same, and have different axes", m->paths[0],
                           m->paths[m->opened - 1]);
        }
    }
    return AT_OK;
}

/* Every request of every layer, once. */
static at_status check_units(struct merge *m) {
    const struct at_distributions *first = &m->shard[0];
    int64_t at = 0;
    m->units = calloc((size_t)m->n_units + 1, sizeof *m->units);
    if (!m->units)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %" PRId64 " units", m->n_units);
    for (int i = 0; i < m->n; i++) {
        memcpy(m->units + at, m->shard[i].units, (size_t)m->shard[i].n_units * sizeof *m->units);
        at += m->shard[i].n_units;
    }
    qsort(m->units, (size_t)m->n_units, sizeof *m->units, by_layer);
    for (int64_t i = 1; i < m->n_units; i++)
        if (by_layer(&m->units[i - 1], &m->units[i]) == 0)
            return AT_FAIL(AT_USAGE, "merge: request %" PRId64 " of layer %" PRId64 " is there twice",
                           m->units[i].request, m->units[i].layer);
    at = 0;
    for (int64_t i = 0; i < first->shape.n_layers; i++)
        for (int64_t r = 0; r < first->shape.requests; r++, at++) {
            const struct at_dist_unit_row want = { .layer = first->layer[i], .request = r };
            if (at >= m->n_units || by_layer(&m->units[at], &want) != 0)
                return AT_FAIL(AT_USAGE, "merge: request %" PRId64 " of layer %" PRId64 " is missing", r, want.layer);
        }
    return at == m->n_units ? AT_OK
                            : AT_FAIL(AT_USAGE, "merge: request %" PRId64 " of layer %" PRId64 " is not of the source",
                                      m->units[at].request, m->units[at].layer);
}

/* A refusal names the first file, and how many there are beside it. */
static at_status check_whole(struct merge *m) {
    struct at_error_copy error;
    const at_status status = check_units(m);
    if (status == AT_OK)
        return AT_OK;
    at_error_save(&error);
    return m->n == 1 ? AT_FAIL(status, "%s (%s)", error.message, m->paths[0])
                     : AT_FAIL(status, "%s (%s and %d more)", error.message, m->paths[0], m->n - 1);
}

static at_status join(struct merge *m, const char *out) {
    const struct at_distributions *first = &m->shard[0];
    const struct at_dist_head head = { first->shape, first->layer, first->attention, first->source, &first->record };
    struct at_dist_writer *writer = NULL;
    struct at_dist_layer layer = { 0 };
    at_status status = AT_OK;
    AT_TRY_OUT(at_dist_layer_init(&first->shape, &layer));
    AT_TRY_OUT(at_dist_writer_open(out, &head, &writer));
    for (int64_t i = 0; i < first->shape.n_layers; i++) {
        at_dist_layer_clear(&layer);
        for (int s = 0; s < m->n; s++)
            AT_TRY_OUT(at_distributions_add(&m->shard[s], i, &layer));
        AT_TRY_OUT(at_dist_writer_put(writer, i, &layer));
    }
    status = at_dist_writer_save(writer, m->units, m->n_units);
    writer = NULL;
out:
    at_dist_writer_abandon(writer);
    at_dist_layer_release(&layer);
    return status;
}

at_status at_dist_merge(const char *const *paths, int n, const char *out) {
    struct merge m = { .paths = paths, .n = n };
    at_status status = AT_OK;
    m.shard = calloc((size_t)n, sizeof *m.shard);
    if (!m.shard)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for %d shards", n);
    AT_TRY_OUT(open_shards(&m));
    AT_TRY_OUT(check_whole(&m));
    AT_TRY_OUT(join(&m, out));
out:
    for (int i = 0; i < m.opened; i++)
        at_distributions_close(&m.shard[i]);
    free(m.units);
    free(m.shard);
    return status;
}
