/* Cuts a plan into shards that are estimated to take as long as each other.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/plan/shards.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "verify/plan/balance.h"
#include "verify/plan/cost.h"

/* A piece is at most this part of a shard's share, so that a case that takes ten times its estimate is spread over all shards
 * with most of its variants. What the variants of a case share is then computed in each of them, which costs 13 % on the
 * cases that were looked at; pieces of less than LEAST_SECONDS are not worth it. */
enum { PIECES_A_SHARE = 128 };
static const double LEAST_SECONDS = 0.05;

/* Variants [first, first + n) of a case. */
struct piece {
    int64_t item;
    int first, n;
};

struct pieces {
    struct piece *items;
    struct at_balance_item *costs;
    int64_t n, capacity;
};

static at_status add_piece(struct pieces *p, const struct piece *piece, double cost, int64_t kind) {
    if (p->n == p->capacity) {
        const int64_t capacity = p->capacity ? 2 * p->capacity : 64;
        struct piece *items = realloc(p->items, (size_t)capacity * sizeof *items);
        if (items)
            p->items = items;
        struct at_balance_item *costs = items ? realloc(p->costs, (size_t)capacity * sizeof *costs) : NULL;
        if (!costs)
            return AT_FAIL(AT_NO_MEMORY, "no memory for %lld pieces of a plan", (long long)capacity);
        p->costs = costs;
        p->capacity = capacity;
    }
    p->items[p->n] = *piece;
    p->costs[p->n++] = (struct at_balance_item){ .cost = cost, .kind = kind };
    return AT_OK;
}

static int kind_of(const struct at_family *family) {
    int i = 0;
    while (i < at_family_count() && at_family_at(i) != family)
        i++;
    return i;
}

/* Whole where it is less than `most`; else runs of variants, each of which pays for what they share. */
static at_status cut(const struct at_plan_case *item, int64_t i, const struct at_plan_cost *cost, double most,
                     struct pieces *pieces) {
    const int64_t kind = kind_of(item->c->family);
    struct piece piece = { .item = i };
    double of_piece = cost->shared;
    for (int v = 0; v < item->n_variants; v++) {
        if (piece.n && of_piece + cost->variant[v] > most) {
            AT_TRY(add_piece(pieces, &piece, of_piece, kind));
            piece = (struct piece){ .item = i, .first = v };
            of_piece = cost->shared;
        }
        of_piece += cost->variant[v];
        piece.n++;
    }
    return add_piece(pieces, &piece, of_piece, kind);
}

static at_status cut_all(const struct at_plan *plan, const struct at_runner *runner, const struct at_selection *s,
                         struct pieces *pieces) {
    at_status status = AT_OK;
    double all = 0, most;
    struct at_plan_cost *costs = calloc((size_t)plan->n_items + 1, sizeof *costs);
    if (!costs)
        return AT_FAIL(AT_NO_MEMORY, "no memory for the costs of a plan");
    for (int64_t i = 0; i < plan->n_items; i++) {
        AT_TRY_OUT(at_plan_cost_make(&plan->items[i], runner, s->again, &costs[i]));
        all += costs[i].shared;
        for (int v = 0; v < plan->items[i].n_variants; v++)
            all += costs[i].variant[v];
    }
    most = fmax(LEAST_SECONDS, all / s->shards / PIECES_A_SHARE);
    for (int64_t i = 0; i < plan->n_items; i++)
        AT_TRY_OUT(cut(&plan->items[i], i, &costs[i], most, pieces));
out:
    for (int64_t i = 0; i < plan->n_items; i++)
        at_plan_cost_release(&costs[i]);
    free(costs);
    return status;
}

static at_status keep(const struct at_plan *plan, const struct piece *piece, struct at_plan *mine) {
    const struct at_plan_case *from = &plan->items[piece->item];
    struct at_plan_case *to = &mine->items[mine->n_items];
    *to =
        (struct at_plan_case){ .c = from->c, .n_variants = piece->n, .first_index = from->first_index + piece->first };
    to->variants = calloc((size_t)piece->n + 1, sizeof *to->variants);
    if (!to->variants)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a plan");
    memcpy(to->variants, from->variants + piece->first, (size_t)piece->n * sizeof *to->variants);
    mine->n_items++;
    mine->n_jobs += piece->n;
    return AT_OK;
}

static void release_items(struct at_plan *plan) {
    for (int64_t i = 0; i < plan->n_items; i++)
        free(plan->items[i].variants);
    free(plan->items);
}

at_status at_plan_take_shard(struct at_plan *plan, const struct at_runner *runner, const struct at_selection *s) {
    at_status status = AT_OK;
    struct pieces pieces = { 0 };
    struct at_plan mine = { 0 };
    int *dealt = NULL;
    AT_TRY_OUT(cut_all(plan, runner, s, &pieces));
    dealt = calloc((size_t)pieces.n + 1, sizeof *dealt);
    mine.items = calloc((size_t)pieces.n + 1, sizeof *mine.items);
    if (!dealt || !mine.items)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for a plan");
    AT_TRY_OUT(at_balance(pieces.costs, pieces.n, s->shards, dealt));
    for (int64_t i = 0; i < pieces.n; i++)
        if (dealt[i] == s->shard)
            AT_TRY_OUT(keep(plan, &pieces.items[i], &mine));
    release_items(plan);
    plan->items = mine.items;
    plan->n_items = mine.n_items;
    plan->n_jobs = mine.n_jobs;
    mine = (struct at_plan){ 0 };
out:
    release_items(&mine);
    free(dealt);
    free(pieces.items);
    free(pieces.costs);
    return status;
}
