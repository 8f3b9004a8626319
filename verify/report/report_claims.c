/* Results by claim: counted as they come.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/report/report_claims.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attest/buffer.h"
#include "attest/numerics.h"

static int output_of(const struct at_result *r) {
    return r->tensor_index >= 0 && r->tensor_index < AT_CLAIM_OUTPUTS ? r->tensor_index : -1;
}

/* The smaller of two scale errors that are seen; 0 stands for none known. */
static double sharper(double a, double b) { return !(b > 0) || (a > 0 && a <= b) ? a : b; }

static void count_loose(struct at_claim_tally *c, const struct at_result *r) {
    const double need = r->ratio_max * r->looseness;
    const int o = output_of(r);
    c->n_loose++;
    c->loosest = r->looseness > c->loosest ? r->looseness : c->loosest;
    c->need = need > c->need ? need : c->need;
    if (o >= 0)
        c->is_loose[o] = 1;
}

static void count(struct at_claim_tally *c, const struct at_result *r) {
    const int o = output_of(r);
    c->judged++;
    if (r->compared > 0 && r->resolution > 0 && o >= 0)
        c->resolves[o] = sharper(c->resolves[o], r->resolution);
    if (at_state_class(r->state) == AT_CLASS_GOOD && r->looseness >= AT_LOOSE)
        count_loose(c, r);
}

/* ---- finding a claim ---- */

struct wanted {
    const struct at_claim_tallies *claims;
    int64_t variant;
    const char *numerics;
};

static int is_of(const void *context, int64_t number) {
    const struct wanted *w = context;
    const struct at_claim_tally *c = &w->claims->list[number];
    return c->variant == w->variant && strcmp(c->numerics, w->numerics) == 0;
}

static at_status add_claim(struct at_claim_tallies *claims, int64_t variant, const char *numerics, uint64_t hash) {
    if (claims->n == claims->capacity) {
        struct at_claim_tally *list = realloc(claims->list, (2 * (size_t)claims->n + 32) * sizeof *list);
        if (!list)
            return AT_FAIL(AT_NO_MEMORY, "no memory for a summary of %" PRId64 " claims", claims->n);
        claims->list = list;
        claims->capacity = 2 * claims->n + 32;
    }
    struct at_claim_tally *one = &claims->list[claims->n];
    *one = (struct at_claim_tally){ .variant = variant, .numerics = strdup(numerics) };
    if (!one->numerics)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a summary");
    claims->n++;
    return at_hash_index_add(&claims->index, hash);
}

at_status at_claim_tallies_add(struct at_claim_tallies *claims, int64_t variant, const struct at_result *r) {
    const struct wanted wanted = { claims, variant, r->numerics };
    if (at_state_class(r->state) == AT_CLASS_DECLINED) /* of a problem that was declined nothing is declared */
        return AT_OK;
    if (!claims->n || !is_of(&wanted, claims->last)) { /* tensors of a job are neighbours */
        const uint64_t start = at_hash_bytes(&variant, sizeof variant, AT_HASH_START);
        const uint64_t hash = at_hash_bytes(r->numerics, strlen(r->numerics) + 1, start);
        const int64_t found = at_hash_index_find(&claims->index, hash, is_of, &wanted), next = claims->n;
        if (found < 0)
            AT_TRY(add_claim(claims, variant, r->numerics, hash));
        claims->last = found < 0 ? next : found;
    }
    count(&claims->list[claims->last], r);
    return AT_OK;
}

void at_claim_tallies_release(struct at_claim_tallies *claims) {
    for (int64_t i = 0; i < claims->n; i++)
        free(claims->list[i].numerics);
    free(claims->list);
    at_hash_index_release(&claims->index);
    *claims = (struct at_claim_tallies){ 0 };
}

/* ---- what it comes to ---- */

double at_claim_tally_blind_to(const struct at_claim_tally *c) {
    double worst = 0;
    for (int o = 0; o < AT_CLAIM_OUTPUTS; o++)
        worst = fmax(worst, c->is_loose[o] ? c->resolves[o] : 0);
    return worst > 1.0 / AT_SCALE_SEEN ? worst : 0;
}

void at_claim_tally_words(const struct at_claim_tally *c, char *text, size_t size) {
    const struct at_numerics usual = at_numerics_default();
    struct at_numerics declared;
    if (at_numerics_parse(c->numerics, &declared) == AT_OK) {
        at_numerics_difference(&declared, &usual, text, size);
        return;
    }
    at_error_clear(); /* of a record of another version of attest */
    snprintf(text, size, "%s", c->numerics);
}

double at_claim_tallies_resolution(const struct at_claim_tallies *claims, int64_t variant) {
    double of_any[AT_CLAIM_OUTPUTS] = { 0 }, of_loose[AT_CLAIM_OUTPUTS] = { 0 }, least = 0;
    for (int64_t i = 0; i < claims->n; i++) {
        const struct at_claim_tally *c = &claims->list[i];
        for (int o = 0; o < AT_CLAIM_OUTPUTS && c->variant == variant; o++) {
            of_any[o] = sharper(of_any[o], c->resolves[o]);
            of_loose[o] = fmax(of_loose[o], c->is_loose[o] ? c->resolves[o] : 0);
        }
    }
    for (int o = 0; o < AT_CLAIM_OUTPUTS; o++)
        least = fmax(least, of_loose[o] > 0 ? of_loose[o] : of_any[o]);
    return least;
}
