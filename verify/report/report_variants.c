/* The results of a run by variant: one line each, those that were never judged, and claims that leave much open.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attest/buffer.h"
#include "verify/report/report_summary.h"
#include "verify/report/report_text.h"
#include "verify/report/report_variants.h"
#include "verify/result/set_aside.h"

enum { FEW = 2, WIDTH = 120, MAX_NAME = 72, MANY_CLAIMS = 10 };

struct at_tally {
    char family[sizeof(((struct at_result *)0)->family)], variant[sizeof(((struct at_result *)0)->variant)];
    char path[sizeof(((struct at_result *)0)->path)]; /* of its source; "": not known */
    char *reason;        /* of its first result, which was not judged: the cause, or the state's name */
    char *aside;         /* after what it was set aside; NULL: it was not */
    int64_t n_aside, at; /* jobs not run for it; the place among variants set aside */
    int64_t judged, ok, failing, vacuous, declined;
    int64_t claims; /* different declarations of it */
    double worst;   /* error over limit; NaN: no limit anywhere */
};

static void name_of(const struct at_tally *t, char *text, size_t size) {
    snprintf(text, size, "%s/%s", t->family, t->variant);
}

/* OK: judged, and the run does not fail by it, though the state may be one that the case expects beside PASS. */
static void count(struct at_tally *t, const struct at_result *r, int strict) {
    const enum at_state_class class = at_state_class(r->state);
    const int failing = at_state_fails(r->state, r->expect, strict);
    t->judged += class != AT_CLASS_DECLINED;
    t->declined += class == AT_CLASS_DECLINED;
    t->failing += failing;
    t->vacuous += class == AT_CLASS_VACUOUS;
    t->ok += !failing && class != AT_CLASS_VACUOUS && class != AT_CLASS_DECLINED;
    if (r->compared > 0 && !isnan(r->ratio_max) && !(t->worst >= r->ratio_max))
        t->worst = r->ratio_max;
}

/* ---- finding a variant ---- */

static uint64_t hash_of(const struct at_result *r) {
    const uint64_t hash = at_hash_bytes(r->family, strlen(r->family) + 1, AT_HASH_START);
    return at_hash_bytes(r->variant, strlen(r->variant) + 1, hash);
}

struct wanted {
    const struct at_tallies *tallies;
    const struct at_result *result;
};

static int is_of(const void *context, int64_t number) {
    const struct wanted *w = context;
    const struct at_tally *t = &w->tallies->list[number];
    return strcmp(t->variant, w->result->variant) == 0 && strcmp(t->family, w->result->family) == 0;
}

static at_status add_tally(struct at_tallies *t, const struct at_result *r, uint64_t hash) {
    if (t->n == t->capacity) {
        struct at_tally *list = realloc(t->list, (2 * (size_t)t->n + 32) * sizeof *list);
        if (!list)
            return AT_FAIL(AT_NO_MEMORY, "no memory for a summary of %" PRId64 " variants", t->n);
        t->list = list;
        t->capacity = 2 * t->n + 32;
    }
    struct at_tally *one = &t->list[t->n];
    *one = (struct at_tally){ .worst = NAN };
    snprintf(one->family, sizeof one->family, "%s", r->family);
    snprintf(one->variant, sizeof one->variant, "%s", r->variant);
    snprintf(one->path, sizeof one->path, "%s", r->path);
    one->reason = strdup(r->cause[0] ? r->cause : at_state_name(r->state));
    if (!one->reason)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a summary");
    t->n++;
    return at_hash_index_add(&t->index, hash);
}

/* Moves t->last to the variant of a result: tensors of a job are neighbours. */
static at_status find(struct at_tallies *t, const struct at_result *r) {
    const struct wanted wanted = { t, r };
    if (t->n && is_of(&wanted, t->last))
        return AT_OK;
    const uint64_t hash = hash_of(r);
    const int64_t found = at_hash_index_find(&t->index, hash, is_of, &wanted), next = t->n;
    if (found < 0)
        AT_TRY(add_tally(t, r, hash));
    t->last = found < 0 ? next : found;
    return AT_OK;
}

at_status at_tallies_add(struct at_tallies *t, const struct at_result *r, int strict) {
    AT_TRY(find(t, r));
    struct at_tally *one = &t->list[t->last];
    const int64_t claims = t->claims.n;
    count(one, r, strict);
    AT_TRY(at_claim_tallies_add(&t->claims, t->last, r));
    one->claims += t->claims.n - claims;
    if (!at_result_is_set_aside(r))
        return AT_OK;
    if (one->n_aside++ == 0) {
        one->at = t->n_aside++;
        one->aside = strdup(r->cause + sizeof AT_SET_ASIDE - 1);
    }
    return one->aside ? AT_OK : AT_FAIL(AT_NO_MEMORY, "no memory for a summary");
}

at_status at_tallies_open(const struct at_run_record *record, int strict, struct at_tallies *t) {
    *t = (struct at_tallies){ 0 };
    for (int64_t i = 0; strict && !record->is_part && !record->signal && i < record->n; i++)
        AT_TRY(at_tallies_add(t, at_run_record_at(record, i), strict));
    return AT_OK;
}

void at_tallies_release(struct at_tallies *t) {
    for (int64_t i = 0; i < t->n; i++) {
        free(t->list[i].reason);
        free(t->list[i].aside);
    }
    free(t->list);
    at_hash_index_release(&t->index);
    at_claim_tallies_release(&t->claims);
    *t = (struct at_tallies){ 0 };
}

void at_tallies_name(const struct at_tallies *t, int64_t i, char *text, size_t size) {
    name_of(&t->list[i], text, size);
}

int64_t at_tallies_unjudged(const struct at_tallies *t) {
    int64_t n = 0;
    for (int64_t i = 0; i < t->n; i++)
        n += t->list[i].judged == 0;
    return n;
}

/* ---- lines ---- */

static void put_tally(const struct at_tallies *tallies, int64_t i, int width, FILE *out) {
    const struct at_tally *t = &tallies->list[i];
    const double resolution = at_claim_tallies_resolution(&tallies->claims, i);
    char name[192], worst[32] = "-", resolves[32] = "-";
    name_of(t, name, sizeof name);
    if (!isnan(t->worst))
        snprintf(worst, sizeof worst, "%.2g", t->worst);
    if (resolution > 0)
        snprintf(resolves, sizeof resolves, "%.1e", resolution);
    at_text_fit(out, name, width, 0);
    fprintf(out, " %7" PRId64 " %5" PRId64 " %7" PRId64 " %7" PRId64 " %8" PRId64 " %11s %8s\n", t->judged, t->ok,
            t->failing, t->vacuous, t->declined, worst, resolves);
}

void at_put_variants(const struct at_tallies *t, FILE *out) {
    static const char title[] = "BY VARIANT";
    int width = (int)sizeof title - 1;
    for (int64_t i = 0; i < t->n; i++) {
        char name[192];
        name_of(&t->list[i], name, sizeof name);
        width = at_text_width(name) > width ? at_text_width(name) : width;
    }
    width = width > MAX_NAME ? MAX_NAME : width;
    if (t->n <= FEW)
        return;
    fprintf(out, "%-*s  JUDGED    OK FAILING VACUOUS DECLINED WORST RATIO RESOLVES\n", width, title);
    for (int64_t i = 0; i < t->n; i++)
        put_tally(t, i, width, out);
    fputc('\n', out);
}

void at_put_unjudged(const struct at_tallies *t, FILE *out) {
    for (int64_t i = 0; i < t->n; i++) {
        char text[1024];
        if (t->list[i].judged)
            continue;
        snprintf(text, sizeof text, "%s/%s: %s", t->list[i].family, t->list[i].variant, t->list[i].reason);
        at_put_wrapped(out, "never judged, which --strict does not let pass: ", text, WIDTH);
    }
}

/* ---- claims ---- */

int64_t at_tallies_blind(const struct at_tallies *t) {
    int64_t n = 0;
    for (int64_t i = 0; i < t->claims.n; i++)
        n += at_claim_tally_blind_to(&t->claims.list[i]) > 0;
    return n;
}

/* Of a variant that declares more than one thing, which of them a claim is and how many results are of it. */
static void put_which(const struct at_tally *of, const struct at_claim_tally *c, char *text, size_t size) {
    char words[sizeof(((struct at_result *)0)->numerics)];
    text[0] = 0;
    if (of->claims == 1)
        return;
    at_claim_tally_words(c, words, sizeof words);
    snprintf(text, size, ", %" PRId64 " of %" PRId64 " results, declared %s", c->judged, of->judged, words);
}

static void put_blind(const struct at_tally *of, const struct at_claim_tally *c, int strict, char *text, size_t size) {
    const int is_one_of = of->claims > 1;
    snprintf(text, size,
             "on no case%s would an output times %.3g have been seen%s: declare the order of sums, or the formats that "
             "they have%s",
             is_one_of ? " of these" : "", 1 + at_claim_tally_blind_to(c),
             strict ? ", which --strict does not let pass" : "",
             is_one_of ? ", or judge a case of these that shows it" : "");
}

static void put_loose(const struct at_tally *of, const struct at_claim_tally *c, int strict, FILE *out) {
    char which[800], blind[400] = "", text[2048];
    put_which(of, c, which, sizeof which);
    if (at_claim_tally_blind_to(c) > 0)
        put_blind(of, c, strict, blind, sizeof blind);
    snprintf(text, sizeof text,
             "%s/%s%s: limits up to %.3g times those of f32 arithmetic in any order, in %" PRId64
             " results that PASS: that proves so much less%s%s%s",
             of->family, of->variant, which, c->loosest, c->n_loose,
             c->need <= 1 ? "; its errors are within those of f32, too, so the claim could be tighter" : "",
             blind[0] ? "; " : "", blind);
    at_put_wrapped(out, "loose claim: ", text, WIDTH);
}

/* Of one variant, while lines are put: loose claims that have had their turn, and blind ones for which there was no line. */
struct had {
    int64_t loose, blind;
};

static void put_others(const struct at_tally *of, const struct had *had, FILE *out) {
    char text[320];
    if (had->loose <= MANY_CLAIMS)
        return;
    snprintf(text, sizeof text, "%s/%s: %" PRId64 " more of its declarations, %" PRId64 " of which no case tests",
             of->family, of->variant, had->loose - MANY_CLAIMS, had->blind);
    at_put_wrapped(out, "loose claim: ", text, WIDTH);
}

void at_put_loose(const struct at_tallies *t, int strict, FILE *out) {
    struct had *had = calloc((size_t)t->n + 1, sizeof *had);
    for (int64_t i = 0; had && i < t->claims.n; i++) {
        const struct at_claim_tally *c = &t->claims.list[i];
        if (!c->n_loose)
            continue;
        if (had[c->variant].loose++ < MANY_CLAIMS)
            put_loose(&t->list[c->variant], c, strict, out);
        else
            had[c->variant].blind += at_claim_tally_blind_to(c) > 0;
    }
    for (int64_t i = 0; had && i < t->n; i++)
        put_others(&t->list[i], &had[i], out);
    free(had);
}

at_status at_tallies_untested(const struct at_tallies *t, at_untested_fn *put, void *context) {
    for (int64_t i = 0; i < t->n; i++) {
        const struct at_tally *one = &t->list[i];
        if (!one->judged)
            AT_TRY(put(context,
                       &(struct at_untested){ one->family, one->variant, one->path, "UNJUDGED", "", one->reason }));
    }
    for (int64_t i = 0; i < t->claims.n; i++) {
        const struct at_claim_tally *c = &t->claims.list[i];
        const struct at_tally *of = &t->list[c->variant];
        char words[sizeof(((struct at_result *)0)->numerics)], which[800], blind[400], text[1280];
        if (!(at_claim_tally_blind_to(c) > 0))
            continue;
        at_claim_tally_words(c, words, sizeof words);
        put_which(of, c, which, sizeof which);
        put_blind(of, c, 1, blind, sizeof blind);
        snprintf(text, sizeof text, "loose claim%s: %s", which, blind);
        AT_TRY(put(context, &(struct at_untested){ of->family, of->variant, of->path, "UNTESTED", words, text }));
    }
    return AT_OK;
}

/* In the order in which they were. */
void at_put_set_aside(const struct at_tallies *t, FILE *out) {
    const struct at_tally **list = calloc((size_t)t->n_aside + 1, sizeof *list);
    for (int64_t i = 0; list && i < t->n; i++)
        if (t->list[i].aside)
            list[t->list[i].at] = &t->list[i];
    for (int64_t i = 0; list && i < t->n_aside && list[i]; i++) {
        char text[1024];
        snprintf(text, sizeof text, "%s/%s, %" PRId64 " jobs not run: %s", list[i]->family, list[i]->variant,
                 list[i]->n_aside, list[i]->aside);
        at_put_wrapped(out, AT_SET_ASIDE, text, WIDTH);
    }
    free(list);
}
