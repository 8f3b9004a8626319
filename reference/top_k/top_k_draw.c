/* Sampling from the k largest logits: ranks, the draw, which places are right, decoys.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "top_k/top_k_draw.h"

/* ---- ranks ---- */

/* Does a stand before b? */
static int is_before(struct at_top_k_rank a, struct at_top_k_rank b, int descending_places) {
    const int equal = a.logit == b.logit || (isnan(a.logit) && isnan(b.logit));
    if (equal)
        return descending_places ? a.place > b.place : a.place < b.place;
    return isnan(a.logit) || a.logit > b.logit;
}

/* The last of a heap's ranks is at its top; `at` may stand before those below it. */
static void sift(struct at_top_k_rank *heap, int64_t n, int64_t at, int descending_places) {
    for (int64_t child; (child = 2 * at + 1) < n; at = child) {
        child += child + 1 < n && is_before(heap[child], heap[child + 1], descending_places);
        if (!is_before(heap[at], heap[child], descending_places))
            return;
        const struct at_top_k_rank moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
    }
}

void at_top_k_ranks(const struct at_problem *p, int64_t row, int64_t n, int descending_places,
                    struct at_top_k_rank *ranks) {
    const int64_t vocabulary = at_top_k_own_of(p).vocabulary;
    for (int64_t i = 0; i < vocabulary; i++) {
        const struct at_top_k_rank x = { at_tensor_get(&p->tensors[AT_TOP_K_LOGITS], row * vocabulary + i), i };
        if (i < n) {
            ranks[i] = x;
            for (int64_t at = n / 2; i == n - 1 && at-- > 0;)
                sift(ranks, n, at, descending_places);
        } else if (is_before(x, ranks[0], descending_places)) {
            ranks[0] = x;
            sift(ranks, n, 0, descending_places);
        }
    }
    for (int64_t left = n; left-- > 1;) { /* the last to the end, again and again */
        const struct at_top_k_rank last = ranks[0];
        ranks[0] = ranks[left];
        ranks[left] = last;
        sift(ranks, left, 0, descending_places);
    }
}

/* ---- a row ---- */

at_status at_top_k_row_open(const struct at_problem *p, int64_t n, struct at_top_k_row *row) {
    row->ranks = calloc((size_t)n + 1, sizeof *row->ranks);
    row->memory = calloc(3 * (size_t)n + 3, sizeof *row->memory);
    row->sums = (struct at_top_k_sums){ row->memory, row->memory + n + 1, row->memory + 2 * (n + 1) };
    if (row->ranks && row->memory)
        return AT_OK;
    at_top_k_row_close(row);
    return AT_FAIL(AT_NO_MEMORY, "%s: no memory for %lld ranks", p->op->name, (long long)n);
}

void at_top_k_row_close(struct at_top_k_row *row) {
    free(row->ranks);
    free(row->memory);
}

int64_t at_top_k_first_above(const double *c, int64_t n, double threshold) {
    int64_t j = 0;
    while (j + 1 < n && !(c[j] > threshold))
        j++;
    return j;
}

/* Sums as exact ones or modelled ones have them, and the rank that is drawn. */
static int64_t draw(const struct at_problem *p, const struct at_numerics *n, int modelled, int64_t token,
                    struct at_top_k_row *row) {
    const struct at_top_k_own own = at_top_k_own_of(p);
    const double u = at_tensor_get(&p->tensors[AT_TOP_K_U], token);
    at_top_k_ranks(p, token, own.kept, 0, row->ranks);
    struct at_top_k_sums sums = row->sums; /* its arrays are written */
    (modelled ? at_top_k_modelled_sums : at_top_k_exact_sums)(p, n, row->ranks, &sums);
    const double threshold = u * row->sums.c[own.kept - 1];
    if (isnan(row->ranks[0].logit))
        return 0;
    return at_top_k_first_above(row->sums.c, own.kept, modelled ? (double)(float)threshold : threshold);
}

/* Can a kernel whose sums lie between the ends draw rank j? Those before it must not be above its threshold, the rank itself
 * must. The threshold's own rounding: 2^-24 of it where arithmetic is declared, none in the modelled ends. */
static int can_draw(const struct at_problem *p, const struct at_numerics *n, int modelled, int64_t token,
                    const struct at_top_k_row *row, int64_t j) {
    const int64_t last = at_top_k_own_of(p).kept - 1;
    const double u = at_tensor_get(&p->tensors[AT_TOP_K_U], token);
    const struct at_top_k_sums *s = &row->sums;
    double low = u * s->low[last], high = u * s->high[last];
    if (isnan(row->ranks[0].logit))
        return j == 0;
    const double rounding = n ? 0x1p-24 : low < high ? 0x1p-52 : 0, least = n ? 0x1p-150 : 0;
    const int is_rounded = modelled || (n && !(low < high)); /* one rounding of numbers that are known */
    low = is_rounded ? (double)(float)low : low * (1 - rounding) - least;
    high = is_rounded ? (double)(float)high : high * (1 + rounding) + least;
    const int reaches = j == 0 || !(s->low[j - 1] > high), passes = j == last || s->high[j] > low;
    return reaches && passes;
}

/* How far the places of other ranks that can be drawn are from the drawn one's. Ranks that can are neighbours of it. */
static double furthest(const struct at_problem *p, const struct at_numerics *n, int modelled, int64_t token,
                       const struct at_top_k_row *row, int64_t drawn) {
    const int64_t kept = at_top_k_own_of(p).kept;
    double most = 0;
    for (int64_t j = 0; j < kept; j++)
        if (j != drawn && can_draw(p, n, modelled, token, row, j))
            most = fmax(most, fabs((double)(row->ranks[j].place - row->ranks[drawn].place)));
    return most;
}

static void put(const struct at_problem *p, const struct at_numerics *n, int modelled, int64_t token,
                const struct at_top_k_row *row, int64_t drawn, struct at_eval *eval) {
    const int64_t kept = at_top_k_own_of(p).kept;
    const struct at_top_k_sums *s = &row->sums;
    if (eval->value[AT_TOP_K_INDEX])
        eval->value[AT_TOP_K_INDEX][token] = (double)row->ranks[drawn].place;
    if (eval->limit[AT_TOP_K_INDEX])
        eval->limit[AT_TOP_K_INDEX][token] = furthest(p, n, modelled, token, row, drawn);
    for (int64_t j = 0; j < kept; j++) {
        if (eval->value[AT_TOP_K_CUMULATIVE])
            eval->value[AT_TOP_K_CUMULATIVE][token * kept + j] = s->c[j];
        if (eval->limit[AT_TOP_K_CUMULATIVE])
            eval->limit[AT_TOP_K_CUMULATIVE][token * kept + j] =
                isnan(s->c[j]) ? 0 : fmax(s->high[j] - s->c[j], s->c[j] - s->low[j]);
    }
}

at_status at_top_k_evaluate(const struct at_problem *p, const struct at_numerics *n, int modelled, int64_t row0,
                            int64_t row1, struct at_eval *eval) {
    struct at_top_k_row row;
    AT_TRY(at_top_k_row_open(p, at_top_k_own_of(p).kept, &row));
    for (int64_t token = row0; token < row1; token++)
        put(p, n, modelled, token, &row, draw(p, n, modelled, token, &row), eval);
    at_top_k_row_close(&row);
    return AT_OK;
}

int at_top_k_admits(const struct at_problem *p, const struct at_numerics *n, int modelled, int tensor, int64_t token,
                    double got) {
    struct at_top_k_row row;
    int admitted = 0;
    if (tensor != AT_TOP_K_INDEX)
        return 1;
    if (at_top_k_row_open(p, at_top_k_own_of(p).kept, &row) != AT_OK)
        return 0;
    draw(p, n, modelled, token, &row);
    for (int64_t j = 0; j < at_top_k_own_of(p).kept && !admitted; j++)
        admitted = (double)row.ranks[j].place == got && can_draw(p, n, modelled, token, &row, j);
    at_top_k_row_close(&row);
    return admitted;
}
