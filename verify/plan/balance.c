/* Largest first, to the shard with the least (Graham 1969), kind by kind.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/plan/balance.h"

#include <stdlib.h>

struct place {
    double cost, largest; /* of the item, and of its kind */
    int64_t kind, index;
};

struct heap {
    double *load;
    int *shard; /* a heap by (load, shard): the least first */
    int n;
};

static int is_less(const struct heap *h, int a, int b) {
    return h->load[a] != h->load[b] ? h->load[a] < h->load[b] : a < b;
}

/* The first shard got more: it sinks to its place. */
static void sink(struct heap *h) {
    int i = 0;
    for (;;) {
        int least = i;
        for (int child = 2 * i + 1; child <= 2 * i + 2 && child < h->n; child++)
            if (is_less(h, h->shard[child], h->shard[least]))
                least = child;
        if (least == i)
            return;
        const int other = h->shard[least];
        h->shard[least] = h->shard[i];
        h->shard[i] = other;
        i = least;
    }
}

static int compare(double a, double b) { return (a > b) - (a < b); }

static int by_kind(const void *a, const void *b) {
    const struct place *x = a, *y = b;
    return x->kind != y->kind ? (x->kind > y->kind) - (x->kind < y->kind) : compare(y->cost, x->cost);
}

static int by_turn(const void *a, const void *b) {
    const struct place *x = a, *y = b;
    if (x->largest != y->largest)
        return compare(y->largest, x->largest);
    if (x->kind != y->kind)
        return (x->kind > y->kind) - (x->kind < y->kind);
    return x->cost != y->cost ? compare(y->cost, x->cost) : (x->index > y->index) - (x->index < y->index);
}

static void put_in_turn(struct place *places, int64_t n) {
    qsort(places, (size_t)n, sizeof *places, by_kind);
    for (int64_t i = 0; i < n; i++)
        places[i].largest = i && places[i].kind == places[i - 1].kind ? places[i - 1].largest : places[i].cost;
    qsort(places, (size_t)n, sizeof *places, by_turn);
}

at_status at_balance(const struct at_balance_item *items, int64_t n, int shards, int *shard) {
    struct place *places = calloc((size_t)n + 1, sizeof *places);
    struct heap h = { .n = shards < n ? shards : (int)n }; /* more than there are items get nothing */
    at_status status = AT_OK;
    h.load = calloc((size_t)h.n + 1, sizeof *h.load);
    h.shard = calloc((size_t)h.n + 1, sizeof *h.shard);
    if (!places || !h.load || !h.shard)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory to deal %lld items to %d shards", (long long)n, shards);
    for (int s = 0; s < h.n; s++)
        h.shard[s] = s;
    for (int64_t i = 0; i < n; i++)
        places[i] = (struct place){ .cost = items[i].cost, .kind = items[i].kind, .index = i };
    put_in_turn(places, n);
    for (int64_t i = 0; i < n; i++) {
        shard[places[i].index] = h.shard[0];
        h.load[h.shard[0]] += places[i].cost;
        sink(&h);
    }
out:
    free(h.load);
    free(h.shard);
    free(places);
    return status;
}
