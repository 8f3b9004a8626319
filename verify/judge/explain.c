/* The likely cause of a wrong output: which known mistake it looks like, and where the wrong elements lie.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/judge/verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attest/attention.h"
#include "verify/judge/hint.h"

/* A wrong kernel rounds too: agreement with a decoy is within twice the limit and four units in the last place. A wrong element
 * has to be nearer to the decoy than to the right value, or a decoy close to that would pass for the cause of every small error. */
static int element_agrees(const struct at_evidence *e, int64_t i, double decoy, int is_wrong) {
    const struct at_comparison *c = e->comparison;
    const double got = at_tensor_get(c->got, i), limit = c->limit[i] < INFINITY ? c->limit[i] : 0;
    if (!isfinite(decoy) || !isfinite(got))
        return (isnan(decoy) && isnan(got)) || decoy == got;
    if (is_wrong && isfinite(c->want[i]) && fabs(got - decoy) >= fabs(got - c->want[i]))
        return 0;
    return fabs(got - decoy) <= 2 * limit + 4 * at_ulp(c->got->format, decoy);
}

/* Rows of the decoys' sample with a wrong element, 0 where the output does not agree with the decoy: on every row of the sample,
 * or, if `in_part`, on those. */
static int64_t agreeing_rows(const struct at_evidence *e, int decoy, int in_part) {
    const struct at_answer *a = e->answer;
    int64_t at = 0, rows = 0;
    for (int64_t s = 0; s < a->n_sample; s++) {
        int64_t first, count, wrong = 0;
        a->problem->op->row_span(a->problem, e->tensor, a->sample[s], &first, &count);
        for (int64_t i = first; i < first + count; i++)
            wrong += at_compare_rejects(e->comparison, i);
        rows += wrong > 0;
        for (int64_t i = first; i < first + count && (wrong || !in_part); i++)
            if (!element_agrees(e, i, a->decoys[decoy].value[e->tensor][at + i - first],
                                at_compare_rejects(e->comparison, i)))
                return 0;
        at += count;
    }
    return rows;
}

/* Lowest and highest value of one coordinate over the wrong elements. */
struct span {
    int64_t low, high;
};

static void coordinate_spans(const struct at_evidence *e, struct span *spans, int rank, int64_t *wrong) {
    const struct at_tensor *t = e->comparison->got;
    *wrong = 0;
    for (int d = 0; d < rank; d++)
        spans[d] = (struct span){ INT64_MAX, -1 };
    for (int64_t i = 0; i < e->comparison->count; i++) {
        if (!at_compare_rejects(e->comparison, i))
            continue;
        ++*wrong;
        int64_t rest = i;
        for (int d = rank - 1; d >= 0; d--) {
            int64_t x = rest % t->shape[d];
            rest /= t->shape[d];
            spans[d].low = x < spans[d].low ? x : spans[d].low;
            spans[d].high = x > spans[d].high ? x : spans[d].high;
        }
    }
}

static void where_wrong(const struct at_evidence *e, char *text, size_t size) {
    const struct at_tensor *t = e->comparison->got;
    struct span spans[AT_MAX_RANK];
    int64_t wrong;
    coordinate_spans(e, spans, t->rank, &wrong);
    int at = snprintf(text, size, "%lld of %lld elements wrong", (long long)wrong, (long long)e->comparison->count);
    for (int d = 0; d < t->rank && wrong && at > 0 && at < (int)size; d++) {
        const char *name = at_dim_word(e->answer->problem->op, e->answer->problem->op->tensors[e->tensor].dims[d]);
        if (spans[d].low == 0 && spans[d].high == t->shape[d] - 1)
            continue;
        if (spans[d].low == spans[d].high)
            at += snprintf(text + at, size - (size_t)at, "; only %s %lld", name, (long long)spans[d].low);
        else
            at += snprintf(text + at, size - (size_t)at, "; only %ss %lld..%lld", name, (long long)spans[d].low,
                           (long long)spans[d].high);
    }
}

/* A decoy that the whole output agrees with; in part: that all its wrong rows agree with. */
static int looks_like(const struct at_evidence *e, int in_part, char *text, size_t size) {
    for (int d = 0; d < e->answer->n_decoys; d++) {
        if (e->decoys->fate[d] == AT_DECOY_INERT || !agreeing_rows(e, d, in_part))
            continue;
        snprintf(text, size, "; looks like %s%s: %s", e->answer->decoys[d].name, in_part ? " in these rows" : "",
                 e->answer->decoys[d].meaning);
        return 1;
    }
    return 0;
}

/* What all wrong elements have in common. */
static int shared_trait(const struct at_evidence *e, char *text, size_t size) {
    const struct at_comparison *c = e->comparison;
    const struct at_problem *p = e->answer->problem;
    const double normal = ldexp(1, at_format_info(c->got->format)->emin);
    int64_t flushed = 0, idle = 0, wrong = 0;
    for (int64_t row = 0; row < e->answer->rows; row++) {
        int64_t first, count;
        const int works = p->op->kind != AT_KIND_ATTENTION || p->op->row_work(p, row) > 0;
        p->op->row_span(p, e->tensor, row, &first, &count);
        for (int64_t i = first; i < first + count; i++) {
            if (!at_compare_rejects(c, i))
                continue;
            wrong++;
            flushed += at_tensor_get(c->got, i) == 0 && fabs(c->want[i]) < normal && c->want[i] != 0;
            idle += !works;
        }
    }
    if (!wrong || (flushed < wrong && idle < wrong))
        return 0;
    snprintf(text, size, "; %s",
             flushed == wrong ? "each is 0 where a subnormal number is due: small results are flushed"
                              : "all in rows that have nothing to sum, of queries that see no key");
    return 1;
}

void at_explain_wrong(const struct at_evidence *e, char *text, size_t size) {
    where_wrong(e, text, size);
    size_t at = strlen(text);
    if (looks_like(e, 0, text + at, size - at) || shared_trait(e, text + at, size - at) ||
        looks_like(e, 1, text + at, size - at))
        return;
    const struct at_comparison *c = e->comparison;
    int64_t nan_only = 0;
    char hint[160];
    at_hint_declaration(e, hint, sizeof hint);
    if (hint[0]) {
        snprintf(text + at, size - at, "; hint: %s", hint);
        return;
    }
    for (int64_t i = 0; i < c->count; i++)
        nan_only += isnan(at_tensor_get(c->got, i)) && !isnan(c->want[i]);
    if (nan_only)
        snprintf(text + at, size - at, "; %lld NaN where a number is due", (long long)nan_only);
    else if (c->other_bits)
        snprintf(text + at, size - at,
                 "; %lld are equal as numbers and differ in their bits (a NaN's payload, the sign of a zero), first "
                 "%#llx where %#llx is due",
                 (long long)c->other_bits,
                 (unsigned long long)at_load_code(c->got->format, c->got->data, (size_t)c->first_other),
                 (unsigned long long)at_load_code(c->got->format, c->bits, (size_t)c->first_other));
}
