/* Trials: batches of a problem's units, and batches made of parts of an attention's requests.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/certify/trial.h"

#include <stdlib.h>
#include <string.h>

#include "attest/attention.h"
#include "datasets/fill/random.h"
#include "datasets/language/case_keys.h"

static at_status make_pairs(struct at_trial *t, int64_t n) {
    t->base = malloc(((size_t)n + 1) * sizeof *t->base);
    t->other = malloc(((size_t)n + 1) * sizeof *t->other);
    return t->base && t->other ? AT_OK : AT_FAIL(AT_NO_MEMORY, "no memory for %lld rows", (long long)n);
}

static void pair(struct at_trial *t, int64_t base, int64_t other) {
    t->base[t->n] = base;
    t->other[t->n++] = other;
}

void at_trial_release(struct at_trial *t) {
    at_batch_release(&t->part);
    free(t->memory);
    free(t->base);
    free(t->other);
    memset(t, 0, sizeof *t);
}

at_status at_trial_units(const struct at_problem *p, const int64_t *units, int64_t n, int64_t n_same,
                         struct at_trial *t) {
    at_status status = AT_OK;
    int64_t rows = 0, first, count, other, others;
    memset(t, 0, sizeof *t);
    AT_TRY_OUT(at_batch_gather(p, units, n, &t->part));
    t->problem = t->part.problem;
    AT_TRY_OUT(t->problem.op->check(&t->problem));
    for (int64_t u = 0; u < n_same; u++) {
        at_batch_rows(p, units[u], &first, &count);
        rows += count;
    }
    AT_TRY_OUT(make_pairs(t, rows));
    for (int64_t u = 0; u < n_same; u++) {
        at_batch_rows(p, units[u], &first, &count);
        at_batch_rows(&t->problem, u, &other, &others);
        for (int64_t k = 0; k < count; k++)
            pair(t, first + k, other + k);
    }
out:
    if (status != AT_OK)
        at_trial_release(t);
    return status;
}

/* ---- attention ---- */

/* One that may have a capacity beyond its keys has requests of their own lengths in a batch, and an output a query. */
int at_trial_is_cut(const struct at_problem *p) {
    return p->op->kind == AT_KIND_ATTENTION && at_key_index(p->op, "capacity") >= 0;
}

struct at_trial_layout at_trial_layout_of(const struct at_problem *p) {
    return (struct at_trial_layout){ .page = p->sizes.page, .capacity = p->sizes.capacity };
}

static int64_t first_query(const struct at_problem *p, int64_t r) {
    return at_tensor_i32(&p->tensors[AT_ATTN_QUERY_START], r);
}

int64_t at_trial_queries(const struct at_problem *p, int64_t r) { return first_query(p, r + 1) - first_query(p, r); }

int64_t at_trial_keys(const struct at_problem *p, int64_t r) { return at_tensor_i32(&p->tensors[AT_ATTN_SEQ_LENS], r); }

struct at_piece at_trial_request(const struct at_problem *p, int64_t r) {
    return (struct at_piece){ .request = r, .queries = at_trial_queries(p, r), .keys = at_trial_keys(p, r) };
}

struct at_piece at_trial_padding(int64_t queries) {
    return (struct at_piece){ .request = -1, .queries = queries };
}

static int64_t pages_of(int64_t keys, int64_t page) { return (keys + page - 1) / page; }

enum { SPARE_PAGES = 2 };

static void size_pieces(const struct at_piece *pieces, int64_t n, const struct at_trial_layout *layout,
                        struct at_sizes *s) {
    int64_t keys = 0, pages = 0;
    s->b = n;
    s->page = layout->page;
    s->tokens = s->max_sq = s->max_sk = s->max_pages = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t queries = pieces[i].lead + pieces[i].queries;
        s->tokens += queries;
        s->max_sq = queries > s->max_sq ? queries : s->max_sq;
        s->max_sk = pieces[i].keys > s->max_sk ? pieces[i].keys : s->max_sk;
        keys += pieces[i].keys;
        pages += s->page ? pages_of(pieces[i].keys, s->page) : 0;
    }
    s->capacity = layout->capacity > s->max_sk ? layout->capacity : s->max_sk;
    s->slots = keys;
    if (s->page) {
        s->max_pages = pages_of(s->capacity, s->page);
        s->max_pages += s->max_pages == 0; /* a table without columns would mean contiguous */
        s->capacity = s->max_pages * s->page;
        s->slots = (pages + SPARE_PAGES) * s->page;
    }
}

/* Memory for the tensors that all attentions begin with; what comes behind them is of heads, and stays where it is. */
static at_status place_pieces(struct at_trial *t) {
    int64_t offset[AT_ATTN_COMMON], total = 0;
    at_problem_shape(&t->problem);
    for (int i = 0; i < AT_ATTN_COMMON; i++) {
        offset[i] = total;
        total += (at_tensor_bytes(&t->problem.tensors[i]) + 63) / 64 * 64 + 64;
    }
    t->memory = calloc(1, (size_t)total);
    if (!t->memory)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a batch of %lld requests", (long long)t->problem.sizes.b);
    for (int i = 0; i < AT_ATTN_COMMON; i++)
        t->problem.tensors[i].data = t->problem.tensors[i].rank ? (char *)t->memory + offset[i] : NULL;
    return AT_OK;
}

/* The order in which pages are dealt: a permutation of all there are. */
static at_status deal(const struct at_problem *p, uint64_t seed, int32_t **order) {
    const int64_t pages = p->sizes.page ? p->sizes.slots / p->sizes.page : 0;
    *order = calloc((size_t)pages + 1, sizeof **order);
    if (!*order)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %lld pages", (long long)pages);
    for (int64_t i = 0; i < pages; i++)
        (*order)[i] = (int32_t)i;
    const struct at_random random = { seed, at_random_stream("pages of a trial", 0) };
    for (int64_t i = pages - 1; seed && i > 0; i--) {
        const int64_t k = at_random_below(&random, (uint64_t)i, i + 1);
        const int32_t swapped = (*order)[i];
        (*order)[i] = (*order)[k];
        (*order)[k] = swapped;
    }
    return AT_OK;
}

static void put_keys(const struct at_problem *from, const struct at_piece *piece, int64_t to_request,
                     struct at_problem *to) {
    for (int64_t key = 0; key < piece->keys; key++)
        for (int x = AT_ATTN_K; x <= AT_ATTN_V; x++)
            at_tensor_copy_rows(&to->tensors[x], at_attn_slot(to, to_request, key), &from->tensors[x],
                                at_attn_slot(from, piece->request, key), 1);
}

static void put_queries(const struct at_problem *from, const struct at_piece *piece, int64_t token,
                        struct at_trial *t) {
    struct at_tensor *q = &t->problem.tensors[AT_ATTN_Q];
    const int64_t own = piece->request < 0 ? 0 : first_query(from, piece->request), h = from->sizes.h;
    for (int64_t i = 0; i < piece->lead; i++, token++)
        at_tensor_copy_rows(q, token, &from->tensors[AT_ATTN_Q], own, 1);
    for (int64_t i = 0; i < piece->queries; i++, token++) {
        const int64_t source = piece->request < 0 ? 0 : own + piece->first + i;
        if (from->sizes.tokens > 0)
            at_tensor_copy_rows(q, token, &from->tensors[AT_ATTN_Q], source, 1);
        for (int64_t head = 0; piece->request >= 0 && head < h; head++)
            pair(t, source * h + head, token * h + head);
    }
}

static void fill_pieces(const struct at_problem *from, const struct at_piece *pieces, int64_t n, const int32_t *order,
                        struct at_trial *t) {
    struct at_problem *p = &t->problem;
    const struct at_sizes *s = &p->sizes;
    int32_t *starts = p->tensors[AT_ATTN_QUERY_START].data, *lengths = p->tensors[AT_ATTN_SEQ_LENS].data;
    int32_t *keys = p->tensors[AT_ATTN_KEY_START].data, *table = p->tensors[AT_ATTN_BLOCK_TABLE].data;
    int64_t token = 0, key = 0, page = 0;
    for (int64_t i = 0; i < n; i++) {
        starts[i] = (int32_t)token;
        lengths[i] = (int32_t)pieces[i].keys;
        if (!s->page)
            keys[i] = (int32_t)key;
        for (int64_t k = 0, used = s->page ? pages_of(pieces[i].keys, s->page) : 0; k < s->max_pages; k++)
            table[i * s->max_pages + k] = k < used ? order[page++] : -1;
        put_keys(from, &pieces[i], i, p);
        put_queries(from, &pieces[i], token, t);
        token += pieces[i].lead + pieces[i].queries;
        key += pieces[i].keys;
    }
    starts[n] = (int32_t)token;
    if (!s->page)
        keys[n] = (int32_t)key;
}

at_status at_trial_pieces(const struct at_problem *problem, const struct at_piece *pieces, int64_t n,
                          const struct at_trial_layout *layout, struct at_trial *t) {
    at_status status = AT_OK;
    int32_t *order = NULL;
    memset(t, 0, sizeof *t);
    t->problem = *problem;
    size_pieces(pieces, n, layout, &t->problem.sizes);
    AT_TRY_OUT(place_pieces(t));
    AT_TRY_OUT(make_pairs(t, t->problem.sizes.tokens * problem->sizes.h));
    AT_TRY_OUT(deal(&t->problem, layout->shuffled, &order));
    fill_pieces(problem, pieces, n, order, t);
    AT_TRY_OUT(t->problem.op->check(&t->problem));
out:
    free(order);
    if (status != AT_OK)
        at_trial_release(t);
    return status;
}
