/* Attention with the keys of a row cut into ranges.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every range is computed as if by a block of its own: it reads K and V itself, and for AsyncT also the
 * taps - 1 scores to its left (none before key 0), since the filter's history does not stop at a range. Its
 * partial result is one row of the workspace; a second pass joins them in ascending order: AsyncT by
 * addition, softmax weighted with exp(max of the range - max of the row). */
#include "kernels/host/split_k.h"

#include <math.h>

struct scratch {
    float *q, *k, *v, *o;       /* [d] each */
    float *score, *p;           /* [split + taps - 1] */
    float *partial;             /* [ranges d] */
    struct at_host_softmax *of; /* [ranges] */
};

static int64_t lay_out(const struct at_problem *problem, int64_t split, void *base, struct scratch *s) {
    struct at_host_arena arena = { .base = (uint8_t *)base };
    const int64_t d = problem->sizes.d, word = (int64_t)sizeof(float);
    const int64_t ranges = (problem->sizes.max_sk + split - 1) / split, window = split + problem->sizes.taps;
    s->q = at_host_take(&arena, d, word);
    s->k = at_host_take(&arena, d, word);
    s->v = at_host_take(&arena, d, word);
    s->o = at_host_take(&arena, d, word);
    s->score = at_host_take(&arena, window, word);
    s->p = at_host_take(&arena, window, word);
    s->partial = at_host_take(&arena, ranges * d, word);
    s->of = at_host_take(&arena, ranges, (int64_t)sizeof *s->of);
    return arena.used;
}

int64_t at_host_split_k_workspace(const struct at_problem *problem, const struct at_numerics *numerics) {
    struct scratch s;
    return lay_out(problem, numerics->split, NULL, &s);
}

/* One row: a query of one head. */
struct row {
    const struct at_problem *problem;
    const struct at_host_tensors *tensors;
    const struct at_numerics *numerics;
    const struct at_host_request *request;
    const struct scratch *s;
    int64_t head, kv_head;
    struct at_host_scores scores;
};

static float dot(int64_t n, const float *a, const float *b) {
    float sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum = fmaf(a[i], b[i], sum);
    return sum;
}

/* Keys [first, end), whose partial result is number `range`. */
static void run_range(const struct row *r, int64_t range, int64_t first, int64_t end) {
    const struct at_problem *problem = r->problem;
    const struct scratch *s = r->s;
    const int64_t d = problem->sizes.d;
    int64_t halo = r->tensors->lse >= 0 ? 0 : problem->sizes.taps - 1;
    if (halo > first)
        halo = first;
    const int64_t start = first - halo, n = end - start;
    for (int64_t i = 0; i < n; i++) {
        at_host_load_keys(problem, AT_ATTN_K, r->request, r->kv_head, start + i, 1, s->k);
        s->score[i] = at_host_score(&r->scores, dot(d, s->q, s->k), start + i);
    }
    if (r->tensors->lse >= 0) {
        s->of[range] = at_host_exponentials(n, s->score, s->p);
    } else {
        struct at_host_gate gate = at_host_gate(problem, r->tensors, r->head, r->numerics);
        at_host_apply_gate(&gate, start, halo, n, s->score, s->p);
    }
    float *partial = s->partial + range * d;
    for (int64_t c = 0; c < d; c++)
        partial[c] = 0;
    for (int64_t i = halo; i < n; i++) {
        if (s->p[i] == 0)
            continue;
        at_host_load_keys(problem, AT_ATTN_V, r->request, r->kv_head, start + i, 1, s->v);
        for (int64_t c = 0; c < d; c++)
            partial[c] = fmaf(s->p[i], s->v[c], partial[c]);
    }
}

static void add_partials(const struct row *r, int64_t ranges) {
    const int64_t d = r->problem->sizes.d;
    for (int64_t c = 0; c < d; c++)
        r->s->o[c] = ranges > 0 ? r->s->partial[c] : 0.0f;
    for (int64_t j = 1; j < ranges; j++)
        for (int64_t c = 0; c < d; c++)
            r->s->o[c] += r->s->partial[j * d + c];
}

/* Returns lse. */
static float merge_partials(const struct row *r, int64_t ranges, int64_t keys) {
    const int64_t d = r->problem->sizes.d;
    struct at_host_softmax all = { .max = -INFINITY };
    for (int64_t j = 0; j < ranges; j++)
        all.max = fmaxf(all.max, r->s->of[j].max);
    const float shift = all.max == -INFINITY ? 0.0f : all.max; /* only -inf: weights 0, not NaN */
    for (int64_t c = 0; c < d; c++)
        r->s->o[c] = ranges > 0 ? -0.0f : 0; /* in the first addition, -0 keeps the sign of a zero */
    for (int64_t j = 0; j < ranges; j++) {
        const float weight = expf(r->s->of[j].max - shift);
        float part = weight * r->s->of[j].sum;
        all.sum += part;
        for (int64_t c = 0; c < d; c++) {
            part = weight * r->s->partial[j * d + c];
            r->s->o[c] += part;
        }
    }
    for (int64_t c = 0; c < d && keys > 0; c++)
        r->s->o[c] /= all.sum;
    return at_host_lse(&all, keys);
}

static void run_row(const struct row *r, int64_t i) {
    const struct at_problem *problem = r->problem;
    const int64_t keys = at_host_visible(problem, r->request, i), split = r->numerics->split, d = problem->sizes.d;
    const int64_t token = r->request->token + i, row = token * problem->sizes.h + r->head;
    int64_t ranges = 0;
    at_host_load_query(problem, token, r->head, r->s->q);
    for (int64_t first = 0; first < keys; first += split)
        run_range(r, ranges++, first, keys - first < split ? keys : first + split);
    if (r->tensors->lse >= 0) {
        float lse = merge_partials(r, ranges, keys);
        at_host_store(&problem->tensors[r->tensors->lse], row, 1, &lse);
    } else {
        add_partials(r, ranges);
    }
    at_host_store(&problem->tensors[r->tensors->o], row * d, d, r->s->o);
}

int at_host_split_k(const struct at_launch *launch, const struct at_host_tensors *tensors,
                    const struct at_numerics *numerics) {
    const struct at_problem *problem = launch->problem;
    const struct at_sizes *z = &problem->sizes;
    struct scratch s;
    lay_out(problem, numerics->split, launch->workspace, &s);
    for (int64_t index = 0; index < z->b; index++) {
        const struct at_host_request request = at_host_request(problem, index);
        for (int64_t head = 0; head < z->h; head++) {
            struct row r = { problem, tensors, numerics, &request, &s, head, head / (z->h / z->hk), { 0 } };
            for (int64_t i = 0; i < request.sq; i++) {
                r.scores = at_host_scores(problem, tensors, &request, i, head);
                run_row(&r, i);
            }
        }
    }
    return 0;
}
