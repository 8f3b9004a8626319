/* Rounds of launches, and which variants go on.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/coverage/rounds.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/coverage/launches.h"

enum { ROUNDS = 16 };

/* A selected variant through all rounds. */
struct candidate {
    char glob[192];            /* its name */
    struct at_cover_variant v; /* jobs of all rounds */
    struct at_cover cover;     /* counts of all rounds */
    int has_failed;            /* each of its calls has been made to fail */
    int is_closed;
};

struct rounds {
    const struct at_gcov *gcov;
    const struct at_session_options *options;
    int n;
    struct candidate *items;
};

/* ---- who is selected ---- */

static int is_selected(const struct at_selection *s, const char *name) {
    int selected = s->n_globs == 0;
    for (int i = 0; i < s->n_globs; i++)
        selected |= fnmatch(s->globs[i], name, FNM_EXTMATCH) == 0;
    return selected;
}

static at_status find_candidates(struct rounds *rounds) {
    struct at_runner *runner;
    at_status status = AT_OK;
    AT_TRY(at_runner_open(rounds->options->runner, &runner));
    rounds->items = calloc((size_t)at_runner_variant_count(runner) + 1, sizeof *rounds->items);
    if (!rounds->items)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for the variants");
    for (int i = 0; i < at_runner_variant_count(runner); i++) {
        const struct at_variant *from = at_runner_variant(runner, i);
        struct candidate *c = &rounds->items[rounds->n];
        snprintf(c->glob, sizeof c->glob, "%s/%s", from->family, from->name);
        snprintf(c->v.family, sizeof c->v.family, "%s", from->family);
        snprintf(c->v.name, sizeof c->v.name, "%s", from->name);
        snprintf(c->v.path, sizeof c->v.path, "%s", from->path);
        rounds->n += is_selected(&rounds->options->selection, c->glob);
    }
out:
    at_runner_close(runner);
    return status;
}

/* ---- a round ---- */

/* Adds what a round's variants did, and counts them while their calls fail, once for each. */
static at_status add_launches(struct rounds *rounds, const struct at_run_record *record) {
    struct at_cover_report of_round = { .n_variants = 0 }, fresh = { .n_variants = 0 };
    at_status status = at_cover_tally(record, &of_round);
    fresh.variants = calloc((size_t)of_round.n_variants + 1, sizeof *fresh.variants);
    if (status == AT_OK && !fresh.variants)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for the variants");
    for (int pass = 0; pass < 2 && status == AT_OK; pass++) { /* without the calls that failed, then those alone */
        const struct at_cover_report *from = pass ? &fresh : &of_round;
        for (int k = 0; k < from->n_variants; k++)
            for (int i = 0; i < rounds->n; i++) {
                const struct at_cover_variant *v = &from->variants[k];
                struct candidate *c = &rounds->items[i];
                if (strcmp(c->v.path, v->path) != 0)
                    continue;
                if (v->broken && !c->v.broken)
                    memcpy(c->v.why, v->why, sizeof c->v.why);
                c->v.ran += v->ran;
                c->v.declined += v->declined;
                c->v.broken += v->broken;
                if (!pass && v->ran && !c->has_failed) {
                    c->has_failed = 1;
                    fresh.variants[fresh.n_variants] = *v;
                    fresh.variants[fresh.n_variants].ran = fresh.variants[fresh.n_variants].declined = 0;
                    fresh.variants[fresh.n_variants++].broken = 0;
                }
            }
        if (!pass)
            status = at_cover_fail_calls(rounds->options, record, &fresh);
    }
out:
    free(of_round.variants);
    free(fresh.variants);
    return status;
}

static at_status run_round(struct rounds *rounds, int round, int *none) {
    const char **globs = calloc((size_t)rounds->n + 1, sizeof *globs);
    struct at_session_options o = *rounds->options;
    struct at_run_record record;
    struct at_gcov gcov = *rounds->gcov;
    at_status status = AT_OK;
    int n = 0;
    at_run_record_init(&record);
    if (!globs)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for the variants");
    for (int i = 0; i < rounds->n; i++)
        if (!rounds->items[i].is_closed)
            globs[n++] = rounds->items[i].glob;
    *none = n == 0;
    if (*none)
        goto out;
    if (round > 0 || rounds->n == n) { /* the first says what a glob lacks that matches nothing */
        o.selection.globs = round > 0 ? globs : o.selection.globs;
        o.selection.n_globs = round > 0 ? n : o.selection.n_globs;
    }
    o.selection.shard = round;
    o.selection.shards = ROUNDS;
    AT_TRY_OUT(at_gcov_begin(&gcov));
    AT_TRY_OUT(at_session_run(&o, &record));
    if (!at_session_signal())
        AT_TRY_OUT(add_launches(rounds, &record));
    for (int i = 0; i < rounds->n && !at_session_signal(); i++)
        if (!rounds->items[i].is_closed)
            AT_TRY_OUT(
                at_gcov_read(&gcov, rounds->items[i].v.family, rounds->items[i].v.name, &rounds->items[i].cover));
out:
    at_gcov_close(&gcov);
    at_run_record_release(&record);
    free(globs);
    return status;
}

/* ---- what is open ---- */

static void note_open(void *context, const struct at_cover_report *r, int file, int line, enum at_cover_fault fault) {
    char *is_open = context;
    (void)r, (void)line, (void)fault;
    is_open[file] = 1;
}

static int has_mark(const struct at_cover_file *file) {
    for (int i = 0; i < file->n; i++)
        if (file->lines[i].reason)
            return 1;
    return 0;
}

static int has_open_file(const struct at_cover_report *r, const char *is_open, const struct at_cover *of_variant) {
    for (int f = 0; f < of_variant->n; f++)
        for (int i = 0; i < r->cover.n; i++)
            if (is_open[i] && strcmp(r->cover.files[i].path, of_variant->files[f].path) == 0)
                return 1;
    return 0;
}

static at_status close_variants(struct rounds *rounds, const struct at_cover_report *r) {
    char *is_open = calloc((size_t)r->cover.n + 1, 1);
    if (!is_open)
        return AT_FAIL(AT_NO_MEMORY, "no memory for the files");
    at_cover_faults(r, note_open, is_open);
    for (int i = 0; i < r->cover.n; i++)
        is_open[i] |= (char)has_mark(&r->cover.files[i]);
    for (int i = 0; i < rounds->n; i++)
        rounds->items[i].is_closed = rounds->items[i].v.ran > 0 && !has_open_file(r, is_open, &rounds->items[i].cover);
    free(is_open);
    return AT_OK;
}

/* ---- all of it ---- */

/* r as after a run: of all candidates between rounds, at the end of those that met a case. */
static at_status sum_up(const struct rounds *rounds, int is_end, struct at_cover_report *r) {
    at_cover_close_sources(r);
    at_cover_release(&r->cover);
    r->n_variants = 0;
    for (int i = 0; i < rounds->n; i++) {
        const struct candidate *c = &rounds->items[i];
        if (is_end && c->v.ran + c->v.declined + c->v.broken == 0)
            continue;
        struct at_cover_variant *v = &r->variants[r->n_variants++];
        *v = c->v;
        for (int f = 0; f < c->cover.n; f++) {
            at_cover_count(&c->cover.files[f], &v->all);
            if (strcmp(c->cover.files[f].path, v->path) == 0)
                at_cover_count(&c->cover.files[f], &v->own);
        }
        AT_TRY(at_cover_merge(&r->cover, &c->cover));
    }
    return at_cover_read_sources(rounds->gcov, r);
}

at_status at_cover_rounds(const struct at_gcov *gcov, const struct at_session_options *options,
                          struct at_cover_report *r) {
    struct rounds rounds = { .gcov = gcov, .options = options };
    at_status status = AT_OK;
    int none = 0;
    AT_TRY_OUT(find_candidates(&rounds));
    r->variants = calloc((size_t)rounds.n + 1, sizeof *r->variants);
    if (!r->variants)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for the variants");
    for (int round = 0; round < ROUNDS && !none; round++) {
        AT_TRY_OUT(run_round(&rounds, round, &none));
        if (at_session_signal())
            goto out;
        AT_TRY_OUT(sum_up(&rounds, 0, r));
        AT_TRY_OUT(close_variants(&rounds, r));
    }
    AT_TRY_OUT(sum_up(&rounds, 1, r));
out:
    for (int i = 0; i < rounds.n; i++)
        at_cover_release(&rounds.items[i].cover);
    free(rounds.items);
    return status;
}
