/* Draws made wrong on purpose, in double. A fault that draws what a right kernel may draw too is none there: the right place stays.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "top_k/top_k_draw.h"

static double weight_of(const struct at_problem *p, int fault, double top, double logit) {
    const double t = fault == AT_TOP_K_NO_TEMPERATURE ? 1 : (double)at_top_k_own_of(p).temperature;
    if (fault == AT_TOP_K_MAXIMUM_KEPT)
        return exp(logit / t);
    return logit == top ? 1 : isnan(top) ? (double)NAN : exp((logit - top) / t);
}

/* Sums of the n ranks in the fault's order. */
static void sum(const struct at_problem *p, int fault, int64_t n, struct at_top_k_row *row) {
    double c = 0;
    for (int64_t j = 0; j < n; j++) {
        const int64_t at = fault == AT_TOP_K_ASCENDING ? n - 1 - j : j;
        c += weight_of(p, fault, row->ranks[0].logit, row->ranks[at].logit);
        row->sums.c[j] = c;
    }
}

/* The rank at which the draw ends. */
static int64_t draw(const struct at_problem *p, int fault, int64_t n, int64_t token, const struct at_top_k_row *row) {
    const int64_t from = fault == AT_TOP_K_U_OF_NEXT_ROW ? (token + 1) % p->sizes.tokens : token;
    const double *c = row->sums.c, u = at_tensor_get(&p->tensors[AT_TOP_K_U], from);
    const double threshold = fault == AT_TOP_K_NOT_NORMALISED ? u : u * c[n - 1];
    if (fault == AT_TOP_K_GREEDY || isnan(row->ranks[0].logit))
        return 0;
    int64_t j = at_top_k_first_above(c, n, threshold);
    if (fault == AT_TOP_K_FIRST_NOT_BELOW)
        for (; j > 0 && c[j - 1] >= threshold;)
            j--;
    return fault == AT_TOP_K_ASCENDING ? n - 1 - j : j;
}

/* Ranks that the fault keeps. */
static int64_t kept_by(const struct at_problem *p, int fault) {
    const struct at_top_k_own own = at_top_k_own_of(p);
    if (fault == AT_TOP_K_ONE_MORE && own.kept < own.vocabulary)
        return own.kept + 1;
    return fault == AT_TOP_K_ONE_LESS && own.kept > 1 ? own.kept - 1 : own.kept;
}

/* The right place first, then the fault's. */
static at_status put_place(const struct at_problem *p, const struct at_numerics *n, int64_t token, int64_t place,
                           double *places) {
    struct at_eval right = { 0 };
    right.value[AT_TOP_K_INDEX] = places;
    AT_TRY(at_top_k_evaluate(p, NULL, 0, token, token + 1, &right));
    if (!at_top_k_admits(p, n, 0, AT_TOP_K_INDEX, token, (double)place))
        places[token] = (double)place;
    return AT_OK;
}

at_status at_top_k_decoy(const struct at_problem *p, const struct at_numerics *numerics, int fault, int64_t row0,
                         int64_t row1, struct at_eval *eval) {
    const int64_t kept = at_top_k_own_of(p).kept, n = kept_by(p, fault);
    struct at_top_k_row row;
    at_status status = AT_OK;
    AT_TRY(at_top_k_row_open(p, n, &row));
    for (int64_t token = row0; token < row1 && status == AT_OK; token++) {
        at_top_k_ranks(p, token, n, fault == AT_TOP_K_LAST_OF_TIES, row.ranks);
        sum(p, fault, n, &row);
        const int64_t j = draw(p, fault, n, token, &row);
        if (eval->value[AT_TOP_K_INDEX])
            status = put_place(p, numerics, token, fault == AT_TOP_K_RANK_FOR_PLACE ? j : row.ranks[j].place,
                               eval->value[AT_TOP_K_INDEX]);
        for (int64_t i = 0; eval->value[AT_TOP_K_CUMULATIVE] && i < kept; i++)
            eval->value[AT_TOP_K_CUMULATIVE][token * kept + i] = row.sums.c[i < n ? i : n - 1];
    }
    at_top_k_row_close(&row);
    return status;
}
