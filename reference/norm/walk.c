/* The walk over token rows and the parts of the descriptors that all norms share.
 * SPDX-License-Identifier: Apache-2.0 */
#include "norm/norm.h"

#include <math.h>
#include <string.h>

void at_norm_put(const struct at_norm_call *call, int tensor, int64_t i, struct at_bounded x) {
    if (call->eval->value[tensor])
        call->eval->value[tensor][i] = x.value;
    if (call->eval->limit[tensor])
        call->eval->limit[tensor][i] = x.error;
}

at_status at_norm_walk(const struct at_problem *problem, const struct at_numerics *numerics, enum at_norm_mode mode,
                       int decoy, int64_t row0, int64_t row1, struct at_eval *eval,
                       at_status (*row)(const struct at_norm_call *call, int64_t token)) {
    struct at_numerics defaults = at_numerics_default();
    struct at_norm_call call = { problem, numerics ? numerics : &defaults, at_norm_arithmetic(numerics), mode, decoy,
                                 eval };
    int unit = call.numerics->qk_unit;
    if (unit != AT_UNIT_F64 && unit != AT_UNIT_F32 && unit != AT_UNIT_F32_FMA)
        return AT_FAIL(AT_UNSUPPORTED, "%s: norms are computed in f32 or f64; qk_unit declares another unit",
                       problem->op->name);
    if (mode == AT_NORM_MODEL && call.numerics->free_order)
        return AT_FAIL(AT_UNSUPPORTED, "%s: no order is declared, so there is no modelled value", problem->op->name);
    for (int64_t token = row0; token < row1; token++)
        AT_TRY(row(&call, token));
    return AT_OK;
}

int64_t at_norm_rows(const struct at_problem *problem) { return problem->sizes.tokens; }

void at_norm_row_span(const struct at_problem *problem, int tensor, int64_t row, int64_t *first, int64_t *count) {
    const struct at_tensor *t = &problem->tensors[tensor];
    *count = 1;
    for (int i = 1; i < t->rank; i++)
        *count *= t->shape[i];
    *first = row * *count;
}

double at_norm_row_work(const struct at_problem *problem, int64_t row) {
    const struct at_sizes *s = &problem->sizes;
    (void)row;
    return 4.0 * (double)(s->channels ? s->channels : (s->h + s->hk) * s->d);
}

static at_status check_shape(const struct at_problem *problem, int i) {
    const struct at_tensor_spec *spec = &problem->op->tensors[i];
    const struct at_tensor *t = &problem->tensors[i];
    for (int k = 0; k < AT_MAX_RANK && spec->dims[k] != AT_DIM_NONE; k++) {
        int64_t want = at_dim_size(problem, spec->dims[k]);
        if (want > 0 && problem->sizes.tokens > 0 && (k >= t->rank || t->shape[k] != want))
            return AT_FAIL(AT_USAGE, "%s: tensor %s: dimension %d is %lld, wanted %lld", problem->op->name, spec->name,
                           k, k < t->rank ? (long long)t->shape[k] : -1LL, (long long)want);
    }
    if (spec->role != AT_OUT && at_tensor_count(t) > 0 && !t->data)
        return AT_FAIL(AT_USAGE, "%s: tensor %s has no data", problem->op->name, spec->name);
    return AT_OK;
}

at_status at_norm_check(const struct at_problem *problem) {
    const struct at_sizes *s = &problem->sizes;
    const struct at_params *p = &problem->params;
    const char *name = problem->op->name;
    int per_head = (problem->op->uses & AT_USES(h)) != 0;
    if (s->tokens < 0)
        return AT_FAIL(AT_USAGE, "%s: tokens is %lld, wanted 0 or more", name, (long long)s->tokens);
    if (per_head && (s->h < 1 || s->hk < 1 || s->d < 1))
        return AT_FAIL(AT_USAGE, "%s: h, hk, d are %lld, %lld, %lld, wanted 1 or more", name, (long long)s->h,
                       (long long)s->hk, (long long)s->d);
    if (!per_head && s->channels < 1)
        return AT_FAIL(AT_USAGE, "%s: channels is %lld, wanted 1 or more", name, (long long)s->channels);
    if (!(p->lo <= p->hi))
        return AT_FAIL(AT_USAGE, "%s: lo is %g and hi is %g, wanted lo <= hi", name, (double)p->lo, (double)p->hi);
    if (!(p->eps >= 0) || !isfinite(p->eps))
        return AT_FAIL(AT_USAGE, "%s: eps is %g, wanted a finite number of 0 or more", name, (double)p->eps);
    for (int i = 0; i < problem->op->n_tensors; i++)
        AT_TRY(check_shape(problem, i));
    return AT_OK;
}
