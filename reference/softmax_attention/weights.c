/* From products q.k to scores and softmax weights, exactly (in double).
 * SPDX-License-Identifier: Apache-2.0 */
#include "softmax_attention/softmax_attention.h"

#include <math.h>

struct at_softmax_form at_softmax_form(const struct at_problem *problem, const struct at_attn_row *at) {
    const struct at_softmax_own own = at_softmax_own_of(problem);
    struct at_softmax_form form = { .scale = (double)problem->params.scale, .cap = (double)own.softcap };
    if (at_tensor_count(&problem->tensors[AT_SOFTMAX_SLOPES]) == 0)
        return form;
    const int64_t sq = at_tensor_i32(&problem->tensors[AT_ATTN_QUERY_START], at->request + 1) -
                       at_tensor_i32(&problem->tensors[AT_ATTN_QUERY_START], at->request);
    form.slope = at_tensor_get(&problem->tensors[AT_SOFTMAX_SLOPES], at->head);
    form.place = (double)(at->keys - sq + at->query);
    return form;
}

double at_softmax_score_of(const struct at_softmax_form *form, double dot, int64_t t) {
    const double scaled = form->scale * dot, s = form->cap > 0 ? form->cap * tanh(scaled / form->cap) : scaled;
    return at_softmax_plain(form) ? s : s + form->slope * ((double)t - form->place);
}

/* Fills the scores and finds the maximum of those that are numbers: a NaN makes the sum NaN by its own weight. */
static double fill_scores(int64_t n, const struct at_softmax_form *form, const double *dot, double *s) {
    double max = -INFINITY;
    for (int64_t t = 0; t < n; t++) {
        s[t] = at_softmax_score_of(form, dot[t], t);
        if (s[t] > max)
            max = s[t];
    }
    return max;
}

void at_softmax_weights(int64_t n, const struct at_softmax_form *form, const double *dot, double *s, double *p,
                        struct at_softmax_row *row) {
    double max = fill_scores(n, form, dot, s), sum = 0;
    /* Nothing but -inf: exp(-inf) = 0 for each, whatever is subtracted; -inf - -inf would say NaN. */
    double shift = max > -INFINITY ? max : 0;
    for (int64_t t = 0; t < n; t++) {
        p[t] = exp(s[t] - shift);
        sum += p[t];
    }
    for (int64_t t = 0; t < n; t++)
        p[t] /= sum;
    *row = (struct at_softmax_row){ .n = n, .max = max, .sum = sum, .lse = max + log(sum) };
}
