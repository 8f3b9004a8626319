/* Which settings each property has on a case: batches, capacities, pieces, pages, padding, another variant.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "attest/attention.h"
#include "verify/certify/certify_measure.h"

/* Settings of another kind come behind those that are counted in keys or requests. */
static const int64_t LATER = INT64_C(1) << 40;

static void cannot(struct at_measure *m, enum at_property property, const char *why) {
    snprintf(m->rows[property].reason, sizeof m->rows[property].reason, "%s", why);
}

/* One launch is the whole setting. The trial is released. */
static at_status only(struct at_measure *m, struct at_setting *setting, at_status made, struct at_trial *trial) {
    AT_TRY(made);
    const at_status status = at_setting_try(m, setting, trial);
    at_trial_release(trial);
    if (status == AT_OK)
        at_setting_end(m, setting);
    return status;
}

/* The same of units, of which an operator may refuse a number (score_counts takes one request): then there is no such batch. */
static at_status only_units(struct at_measure *m, struct at_setting *setting, const int64_t *units, int64_t n,
                            int64_t n_same) {
    struct at_trial trial;
    const at_status made = at_trial_units(m->problem, units, n, n_same, &trial);
    if (made != AT_USAGE)
        return only(m, setting, made, &trial);
    cannot(m, (enum at_property)setting->property, at_error_message());
    at_error_clear();
    return AT_OK;
}

/* ---- batch ---- */

/* Units may stand in a batch twice where each writes to places of its own. */
static int can_repeat(const struct at_problem *p) {
    if (at_trial_is_cut(p)) /* outputs belong to queries, and those to requests */
        return 1;
    for (int t = 0; t < p->op->n_tensors; t++)
        if (p->op->tensors[t].role != AT_IN && at_tensor_count(&p->tensors[t]) > 0 &&
            p->op->tensors[t].dims[0] != p->op->batch)
            return 0;
    return 1;
}

static at_status alone(struct at_measure *m, int64_t n) {
    const int64_t units[] = { 0, n / 2, n - 1 };
    struct at_setting s = at_setting_of(m, AT_PROPERTY_batch, 1, "a request alone");
    struct at_trial trial;
    s.is_batch = 1;
    for (int i = 0; i < 3; i++) {
        if (i && units[i] == units[i - 1])
            continue;
        AT_TRY(at_trial_units(m->problem, &units[i], 1, 1, &trial));
        const at_status status = at_setting_try(m, &s, &trial);
        at_trial_release(&trial);
        AT_TRY(status);
    }
    at_setting_end(m, &s);
    return AT_OK;
}

/* The first half with the first request again in place of the others; the batch backwards; the batch twice. */
static at_status batches(struct at_measure *m, int64_t n, int64_t *units) {
    struct at_setting s = at_setting_of(m, AT_PROPERTY_batch, n, "other neighbours");
    s.is_batch = 1;
    if (n > 1 && can_repeat(m->problem)) {
        for (int64_t i = 0; i < n; i++)
            units[i] = i < (n + 1) / 2 ? i : 0;
        AT_TRY(only_units(m, &s, units, n, (n + 1) / 2));
    }
    if (n > 1) {
        s = at_setting_of(m, AT_PROPERTY_batch, n, "the batch backwards");
        s.is_batch = 1;
        for (int64_t i = 0; i < n; i++)
            units[i] = n - 1 - i;
        AT_TRY(only_units(m, &s, units, n, n));
    }
    if (!can_repeat(m->problem))
        return AT_OK;
    s = at_setting_of(m, AT_PROPERTY_batch, 2 * n, "%" PRId64 " requests", 2 * n);
    s.is_batch = 1;
    for (int64_t i = 0; i < 2 * n; i++)
        units[i] = i % n;
    return only_units(m, &s, units, 2 * n, 2 * n);
}

static at_status batch(struct at_measure *m) {
    const int64_t n = at_batch_units(m->problem);
    if (n < 1) {
        cannot(m, AT_PROPERTY_batch, "the operator has no batch");
        return AT_OK;
    }
    int64_t *units = malloc((size_t)(2 * n) * sizeof *units);
    if (!units)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a batch of %" PRId64 " units", 2 * n);
    at_status status = n > 1 ? alone(m, n) : AT_OK;
    if (status == AT_OK)
        status = batches(m, n, units);
    free(units);
    return status;
}

/* ---- batches made of pieces ---- */

/* Every request whole, and `padding` requests of so many queries: as many as can before the first one and between the
 * others where they are `spread`, else behind. */
static at_status whole_and_padding(const struct at_measure *m, const struct at_trial_layout *layout, int64_t padding,
                                   int64_t queries, int spread, struct at_trial *trial) {
    const int64_t b = m->problem->sizes.b;
    struct at_piece *pieces = malloc((size_t)(b + padding + 1) * sizeof *pieces);
    int64_t n = 0, left = padding;
    if (!pieces)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %" PRId64 " requests", b + padding);
    for (int64_t r = 0; r < b; r++) {
        if (spread && left > 1) {
            pieces[n++] = at_trial_padding(queries);
            left--;
        }
        pieces[n++] = at_trial_request(m->problem, r);
    }
    for (; left > 0; left--)
        pieces[n++] = at_trial_padding(queries);
    const at_status status = at_trial_pieces(m->problem, pieces, n, layout, trial);
    free(pieces);
    return status;
}

/* A row of a captured graph that no request has holds a query all the same. */
static int64_t padding_queries(const struct at_measure *m) { return m->c->family->decode; }

/* ---- split ---- */

static void note_way(struct at_measure *m, int64_t path) {
    for (int i = 0; i < m->n_ways; i++)
        if (m->ways[i] == path)
            return;
    if (m->n_ways < AT_MEASURE_WAYS)
        m->ways[m->n_ways++] = path;
}

static at_status larger_capacities(struct at_measure *m) {
    for (int i = 0; i < m->options->capacities.n; i++) {
        struct at_trial_layout layout = at_trial_layout_of(m->problem);
        struct at_trial trial;
        layout.capacity *= m->options->capacities.of[i];
        struct at_setting s =
            at_setting_of(m, AT_PROPERTY_split, layout.capacity, "capacity %" PRId64, layout.capacity);
        AT_TRY(only(m, &s, whole_and_padding(m, &layout, 0, 0, 0, &trial), &trial));
        if (s.ran)
            note_way(m, s.path);
    }
    return AT_OK;
}

static at_status larger_batches(struct at_measure *m) {
    for (int i = 0; i < m->options->batches.n; i++) {
        const struct at_trial_layout layout = at_trial_layout_of(m->problem);
        const int64_t b = m->options->batches.of[i], more = b - m->problem->sizes.b;
        struct at_trial trial;
        if (more < 1)
            continue;
        struct at_setting s = at_setting_of(m, AT_PROPERTY_split, LATER + b, "batch %" PRId64, b);
        s.is_batch = 1;
        AT_TRY(only(m, &s, whole_and_padding(m, &layout, more, padding_queries(m), 0, &trial), &trial));
    }
    return AT_OK;
}

/* A larger batch is another grid whatever the kernel does, so that only capacities can show that it has another way; and of a
 * kernel that declares one pass over all keys, more capacity is more memory and no other way either. */
static at_status split(struct at_measure *m) {
    struct at_certificate *row = &m->rows[AT_PROPERTY_split];
    note_way(m, m->path);
    AT_TRY(larger_capacities(m));
    const int64_t capacities = row->settings;
    AT_TRY(larger_batches(m));
    row->ways = m->path ? m->n_ways : 0;
    const struct at_numerics *declared = &m->declared;
    if (row->from[0] || at_certificate_value(row) == AT_CERTIFIED_FAILED || !row->settings)
        return AT_OK;
    m->is_cut = declared->free_order || declared->split || declared->splits;
    if (!m->is_cut)
        snprintf(row->reason, sizeof row->reason,
                 "declares one pass over a row's keys; no bit differs at %" PRId64 " capacities", capacities + 1);
    else if (!m->path)
        cannot(m, AT_PROPERTY_split, "the same bits, but the runner does not say what it launches");
    else if (m->n_ways < 2)
        snprintf(row->reason, sizeof row->reason, "one way: the same launch at %" PRId64 " capacities", capacities + 1);
    return AT_OK;
}

/* ---- chunk ---- */

/* Piece `at` of `of` of each request: its queries, and the keys that its last one sees. */
static at_status chunk_of(const struct at_measure *m, int64_t at, int64_t of, struct at_trial *trial) {
    const struct at_problem *p = m->problem;
    const struct at_trial_layout layout = at_trial_layout_of(p);
    struct at_piece *pieces = malloc((size_t)(p->sizes.b + 1) * sizeof *pieces);
    if (!pieces)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %" PRId64 " requests", p->sizes.b);
    for (int64_t r = 0; r < p->sizes.b; r++) {
        const int64_t sq = at_trial_queries(p, r), first = at * sq / of, end = (at + 1) * sq / of;
        const int64_t keys = at_trial_keys(p, r) - sq + end;
        pieces[r] =
            (struct at_piece){ .request = r, .first = first, .queries = end - first, .keys = keys > 0 ? keys : 0 };
    }
    const at_status status = at_trial_pieces(p, pieces, p->sizes.b, &layout, trial);
    free(pieces);
    return status;
}

static at_status in_pieces(struct at_measure *m, int64_t of) {
    struct at_setting s = at_setting_of(m, AT_PROPERTY_chunk, of, "%" PRId64 " pieces", of);
    struct at_trial trial;
    for (int64_t at = 0; at < of; at++) {
        AT_TRY(chunk_of(m, at, of, &trial));
        const at_status status = trial.n ? at_setting_try(m, &s, &trial) : AT_OK;
        at_trial_release(&trial);
        AT_TRY(status);
    }
    at_setting_end(m, &s);
    return AT_OK;
}

static at_status chunk(struct at_measure *m) {
    const struct at_problem *p = m->problem;
    const int64_t longest = p->sizes.max_sq;
    if (!p->params.causal || longest < 2) {
        cannot(m, AT_PROPERTY_chunk,
               longest < 2 ? "a request has one query" : "not causal: a piece would see other keys");
        return AT_OK;
    }
    for (int i = 0; i < m->options->pieces.n; i++)
        if (m->options->pieces.of[i] < longest)
            AT_TRY(in_pieces(m, m->options->pieces.of[i]));
    return longest <= m->options->one_by_one ? in_pieces(m, longest) : AT_OK;
}

/* ---- page ---- */

static at_status page(struct at_measure *m) {
    const struct at_trial_layout own = at_trial_layout_of(m->problem);
    struct at_trial_layout layout = own;
    struct at_trial trial;
    if (own.page) {
        struct at_setting s = at_setting_of(m, AT_PROPERTY_page, 0, "pages in another order");
        layout.shuffled = m->options->seed + 1;
        AT_TRY(only(m, &s, whole_and_padding(m, &layout, 0, 0, 0, &trial), &trial));
    }
    for (int i = 0; i < m->options->pages.n; i++) {
        layout = own;
        layout.page = m->options->pages.of[i];
        if (layout.page == own.page)
            continue;
        struct at_setting s =
            layout.page ? at_setting_of(m, AT_PROPERTY_page, 1 + layout.page, "pages of %" PRId64, layout.page)
                        : at_setting_of(m, AT_PROPERTY_page, LATER, "no pages");
        AT_TRY(only(m, &s, whole_and_padding(m, &layout, 0, 0, 0, &trial), &trial));
    }
    return AT_OK;
}

/* ---- pad ---- */

static at_status pad_attention(struct at_measure *m) {
    struct at_trial_layout layout = at_trial_layout_of(m->problem);
    struct at_trial trial;
    for (int64_t padding = 1; padding <= 3; padding += 2)
        for (int64_t queries = 0; queries <= padding_queries(m); queries++) {
            struct at_setting s = at_setting_of(m, AT_PROPERTY_pad, padding, "%" PRId64 " %s%s", padding,
                                                queries ? "padding row" : "empty request", padding > 1 ? "s" : "");
            s.is_batch = 1;
            AT_TRY(only(m, &s, whole_and_padding(m, &layout, padding, queries, padding > 1, &trial), &trial));
        }
    layout.capacity *= 2;
    struct at_setting s =
        at_setting_of(m, AT_PROPERTY_pad, LATER + layout.capacity, "capacity %" PRId64, layout.capacity);
    return only(m, &s, whole_and_padding(m, &layout, 3, padding_queries(m), 1, &trial), &trial);
}

/* Rows of a batch that nobody asked for hold what a request before had there: here the first one's. */
static at_status pad_units(struct at_measure *m) {
    const int64_t n = at_batch_units(m->problem);
    if (n < 1 || !can_repeat(m->problem)) {
        cannot(m, AT_PROPERTY_pad, n < 1 ? "the operator has no batch" : "its rows write to places that they share");
        return AT_OK;
    }
    int64_t *units = calloc((size_t)n + 3, sizeof *units);
    if (!units)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a batch of %" PRId64 " units", n + 3);
    at_status status = AT_OK;
    for (int64_t i = 0; i < n; i++)
        units[i] = i;
    for (int64_t padding = 1; padding <= 3 && status == AT_OK; padding += 2) {
        struct at_setting s =
            at_setting_of(m, AT_PROPERTY_pad, padding, "%" PRId64 " padding row%s", padding, padding > 1 ? "s" : "");
        s.is_batch = 1;
        status = only_units(m, &s, units, n + padding, n);
    }
    free(units);
    return status;
}

static at_status pad(struct at_measure *m) { return at_trial_is_cut(m->problem) ? pad_attention(m) : pad_units(m); }

/* ---- row ---- */

enum { ROWS_EACH = 8, LEAD = 20 };

/* Of each request of a prompt the first query, the last and some between, each as a request of its own with the keys it sees. */
static at_status rows_as_decode(const struct at_measure *m, struct at_trial *trial) {
    const struct at_problem *p = m->problem;
    const struct at_trial_layout layout = at_trial_layout_of(p);
    struct at_piece *pieces = malloc((size_t)(p->sizes.b * ROWS_EACH + 1) * sizeof *pieces);
    int64_t n = 0;
    if (!pieces)
        return AT_FAIL(AT_NO_MEMORY, "no memory for rows of %" PRId64 " requests", p->sizes.b);
    for (int64_t r = 0; r < p->sizes.b; r++) {
        const int64_t sq = at_trial_queries(p, r), sk = at_trial_keys(p, r), each = sq < ROWS_EACH ? sq : ROWS_EACH;
        for (int64_t k = 0; k < each; k++) {
            const int64_t i = each > 1 ? k * (sq - 1) / (each - 1) : 0, seen = p->params.causal ? sk - sq + i + 1 : sk;
            pieces[n++] = (struct at_piece){ .request = r, .first = i, .queries = 1, .keys = seen > 0 ? seen : 0 };
        }
    }
    const at_status status = at_trial_pieces(p, pieces, n, &layout, trial);
    free(pieces);
    return status;
}

/* Each decode row as the last query of a prompt: the queries before it are copies, and see fewer keys. */
static at_status rows_as_prompt(const struct at_measure *m, struct at_trial *trial) {
    const struct at_problem *p = m->problem;
    const struct at_trial_layout layout = at_trial_layout_of(p);
    struct at_piece *pieces = malloc((size_t)(p->sizes.b + 1) * sizeof *pieces);
    struct at_problem causal = *p;
    if (!pieces)
        return AT_FAIL(AT_NO_MEMORY, "no memory for rows of %" PRId64 " requests", p->sizes.b);
    causal.params.causal = 1;
    for (int64_t r = 0; r < p->sizes.b; r++) {
        pieces[r] = at_trial_request(p, r);
        if (pieces[r].queries && pieces[r].keys > 1)
            pieces[r].lead = pieces[r].keys - 1 < LEAD ? pieces[r].keys - 1 : LEAD;
    }
    const at_status status = at_trial_pieces(&causal, pieces, p->sizes.b, &layout, trial);
    free(pieces);
    return status;
}

static at_status row(struct at_measure *m) {
    const struct at_variant *v = at_runner_variant(m->runner, m->with);
    const int decode = at_family_find(v->family)->decode;
    const struct at_trial_layout layout = at_trial_layout_of(m->problem);
    struct at_setting s = at_setting_of(m, AT_PROPERTY_row, 0, "%.60s/%.30s", v->family, v->name);
    struct at_trial trial;
    s.variant = m->with;
    return only(m, &s,
                decode == m->c->family->decode ? whole_and_padding(m, &layout, 0, 0, 0, &trial)
                : decode                       ? rows_as_decode(m, &trial)
                                               : rows_as_prompt(m, &trial),
                &trial);
}

const char *at_settings_none(const struct at_measure *m, enum at_property property) {
    if (property == AT_PROPERTY_batch || property == AT_PROPERTY_pad)
        return NULL;
    if (!at_trial_is_cut(m->problem))
        return m->problem->op->kind == AT_KIND_ATTENTION ? "its outputs belong to no query" : "no attention";
    return property == AT_PROPERTY_chunk && m->c->family->decode ? "a request has one query" : NULL;
}

at_status at_settings_of(struct at_measure *m, enum at_property property) {
    static at_status (*const of[AT_PROPERTY_COUNT])(struct at_measure *) = {
        [AT_PROPERTY_batch] = batch, [AT_PROPERTY_split] = split, [AT_PROPERTY_chunk] = chunk,
        [AT_PROPERTY_page] = page,   [AT_PROPERTY_pad] = pad,     [AT_PROPERTY_row] = row,
    };
    const char *none = at_settings_none(m, property);
    if (!none)
        return of[property](m);
    cannot(m, property, none);
    return AT_OK;
}
