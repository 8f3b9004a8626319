/* Which requests two recordings are of.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Pooled counts know no order, so requests pair as a set: by the ids of their tokens where both recordings have them;
 * else by their sizes, and by values that are equal, or closer than those of other requests could be. Sizes alone agree
 * by chance where all requests are of one length. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/drift/drift_rows.h"

enum by { SIZES, VALUES, IDENTITIES };

/* A unit as it is compared: its layer and sizes, and by what its name is. */
struct key {
    int64_t layer, queries, keys;
    char name[24];
};

static int compare(const void *a, const void *b) {
    const struct key *x = a, *y = b;
    const int64_t of_x[] = { x->layer, x->queries, x->keys }, of_y[] = { y->layer, y->queries, y->keys };
    for (int i = 0; i < 3; i++)
        if (of_x[i] != of_y[i])
            return of_x[i] < of_y[i] ? -1 : 1;
    return strcmp(x->name, y->name);
}

static at_status keys_of(const struct at_distributions *d, enum by by, struct key **keys) {
    *keys = calloc((size_t)d->n_units + 1, sizeof **keys);
    if (!*keys)
        return AT_FAIL(AT_NO_MEMORY, "drift: no memory for %" PRId64 " units", d->n_units);
    for (int64_t i = 0; i < d->n_units; i++) {
        const struct at_dist_unit_row *u = &d->units[i];
        (*keys)[i] = (struct key){ .layer = u->layer, .queries = u->queries, .keys = u->keys };
        if (by != SIZES)
            snprintf((*keys)[i].name, sizeof(*keys)->name, "%s", by == VALUES ? u->hash : u->identity);
    }
    qsort(*keys, (size_t)d->n_units, sizeof **keys, compare);
    return AT_OK;
}

/* Units of one that the other has too, each once; and whether all of those of some layer are among them, which has
 * values at all. */
struct common {
    int64_t n;
    int whole_layer;
};

static void count_common(const struct key *a, int64_t n_a, const struct key *b, int64_t n_b, struct common *c) {
    int64_t layer_units = 0, layer_common = 0, layer_values = 0;
    for (int64_t i = 0, k = 0; i < n_a; i++) {
        while (k < n_b && compare(&b[k], &a[i]) < 0)
            k++;
        const int is = k < n_b && compare(&b[k], &a[i]) == 0;
        k += is;
        c->n += is;
        layer_units++;
        layer_common += is;
        layer_values += a[i].queries + a[i].keys;
        if (i + 1 == n_a || a[i + 1].layer != a[i].layer) {
            c->whole_layer |= layer_common == layer_units && layer_values > 0;
            layer_units = layer_common = layer_values = 0;
        }
    }
}

static at_status common_of(const struct at_distributions *a, const struct at_distributions *b, enum by by,
                           struct common *c) {
    struct key *of_a = NULL, *of_b = NULL;
    at_status status = AT_OK;
    *c = (struct common){ 0 };
    AT_TRY_OUT(keys_of(a, by, &of_a));
    AT_TRY_OUT(keys_of(b, by, &of_b));
    count_common(of_a, a->n_units, of_b, b->n_units, c);
out:
    free(of_a);
    free(of_b);
    return status;
}

static int has_identities(const struct at_distributions *d) {
    int64_t n = 0;
    for (int64_t i = 0; i < d->n_units; i++)
        n += d->units[i].identity[0] != 0;
    return n > 0 && n == d->n_units;
}

static at_status by_identities(const struct at_distributions *a, const struct at_distributions *b, int *paired,
                               char *why, size_t size) {
    struct common c;
    AT_TRY(common_of(a, b, IDENTITIES, &c));
    *paired = c.n == a->n_units && c.n == b->n_units;
    if (*paired)
        snprintf(why, size, "the same requests, by the ids of their tokens");
    else
        snprintf(why, size,
                 "other requests, by the ids of their tokens: %" PRId64 " of %" PRId64 " and %" PRId64
                 " units in common",
                 c.n, a->n_units, b->n_units);
    return AT_OK;
}

/* Why ids did not decide. */
static const char *who_lacks(const struct at_distributions *a, const struct at_distributions *b) {
    const int of_a = has_identities(a), of_b = has_identities(b);
    return !of_a && !of_b ? "neither has ids of their tokens"
           : of_a         ? "B has no ids of their tokens (older than 1.7.0, or a capture without token_ids)"
                          : "A has no ids of their tokens (older than 1.7.0, or a capture without token_ids)";
}

static at_status by_values(const struct at_distributions *a, const struct at_distributions *b, int *paired, char *why,
                           size_t size) {
    struct common c;
    int alike = 0;
    AT_TRY(common_of(a, b, VALUES, &c));
    *paired = c.whole_layer;
    if (*paired) {
        snprintf(why, size, "the same requests, and values of theirs that are equal");
        return AT_OK;
    }
    AT_TRY(at_drift_alike(a, b, &alike));
    *paired = alike;
    snprintf(why, size,
             alike ? "the same requests, by their sizes and by values closer than those of other requests could be"
                   : "requests of the same sizes, whose values are no closer than those of other requests; %s; "
                     "--paired if they are the same",
             who_lacks(a, b));
    return AT_OK;
}

at_status at_drift_pair(enum at_drift_pairing pairing, const struct at_distributions *a,
                        const struct at_distributions *b, int *paired, char *why, size_t size) {
    struct common sizes;
    AT_TRY(common_of(a, b, SIZES, &sizes));
    const int same_sizes = sizes.n == a->n_units && sizes.n == b->n_units;
    *paired = pairing == AT_DRIFT_PAIRED;
    snprintf(why, size, "as asked for");
    if (pairing == AT_DRIFT_PAIRED && !same_sizes)
        return AT_FAIL(AT_USAGE, "drift: --paired: A and B do not have the same requests (numbers, queries, keys)");
    if (pairing != AT_DRIFT_PAIR_AUTO)
        return AT_OK;
    if (has_identities(a) && has_identities(b))
        return by_identities(a, b, paired, why, size);
    if (same_sizes)
        return by_values(a, b, paired, why, size);
    snprintf(why, size, "other requests");
    return AT_OK;
}
