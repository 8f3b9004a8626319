/* Probing problems of one variant: built, launched, compared with models.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/fit/probe.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/language/case_keys.h"
#include "verify/fit/masks.h"

static const double SECONDS = 120; /* of a launch: the SIMT machine is slow */

static int is_masks(enum at_probe_kind kind) { return kind >= AT_PROBE_QK; }

/* Attention: two query heads on one of keys, which kernels for groups take too. Masks of q.k want no filter behind them. */
static void attention_line(const struct at_probe_layout *l, const struct at_probe_plan *plan, char *line, size_t size) {
    const struct at_op *op = at_op_find(l->family->op);
    double scale = 0.1; /* no power of two: where it is applied shows */
    const char *own = is_masks(plan->kind) && op->weights == AT_WEIGHTS_GATE ? " sigma=0" : "";
    if (plan->kind == AT_PROBE_QK)
        scale = at_masks_scale(op, l->d);
    if (plan->kind == AT_PROBE_PV || plan->kind == AT_PROBE_PARTS)
        scale = 1;
    if (plan->kind == AT_PROBE_RISING)
        scale = 0.45;
    snprintf(line, size, "%s b=%d h=2 hk=1%s sk=%d d=%lld page=%lld%s dtype=%s data=%s seed=11 scale=%.9g%s",
             l->family->name, plan->b,
             l->family->decode              ? ""
             : plan->kind == AT_PROBE_DRAWN ? " sq=3"
                                            : " sq=1",
             plan->size, (long long)l->d, (long long)l->page, l->causal ? " causal=1" : "",
             at_format_info(l->dtype)->name, plan->data, scale, own);
}

static at_status build(const struct at_probe_layout *l, const struct at_probe_plan *plan, struct at_case_data *data) {
    char line[400];
    struct at_case_list list = { 0 };
    const int has_dtype = at_key_index(at_op_find(l->family->op), "dtype") >= 0; /* exp2 has not: it is f32 */
    if (plan->line)
        snprintf(line, sizeof line, "%s %s%s%s%s", l->family->name, plan->line, l->more, has_dtype ? " dtype=" : "",
                 has_dtype ? at_format_info(l->dtype)->name : "");
    else if (at_op_find(l->family->op)->kind == AT_KIND_PRODUCT)
        snprintf(line, sizeof line, "%s m=%d n=%d k=%d dtype=%s data=%s seed=11%s", l->family->name,
                 l->family->decode ? 1 : 8, plan->b, plan->size, at_format_info(l->dtype)->name, plan->data, l->more);
    else
        attention_line(l, plan, line, sizeof line);
    at_status status = at_case_parse(line, "line", "fit", &list);
    if (status == AT_OK && list.n != 1)
        status = AT_FAIL(AT_BUG, "fit: '%s' is %lld cases", line, (long long)list.n);
    if (status == AT_OK)
        status = at_case_build(&list.items[0], data);
    at_case_list_release(&list);
    return status;
}

static at_status takes(struct at_runner *runner, int variant, const struct at_probe_layout *l, int *answer) {
    struct at_case_data data = { 0 };
    const int is_product = at_op_find(l->family->op)->kind == AT_KIND_PRODUCT;
    const struct at_probe_plan any = { "any", AT_PROBE_DRAWN,         is_product ? 64 : 2, 256, 1, "normal",
                                       0,     at_probe_plans(l)->line };
    at_status status = build(l, &any, &data);
    *answer = 0;
    if (status == AT_USAGE) /* the family has no such case */
        return AT_OK;
    if (status == AT_OK)
        status = at_ask(runner, variant, &data.problem, answer);
    at_case_data_release(&data);
    return status;
}

static at_status find_product(struct at_runner *runner, int variant, struct at_probe_layout *l, int *found) {
    static const char *const more[] = { " out=f32", " out=f32 layout=kn", "", " layout=kn", " out=f16", " out=bf16" };
    for (size_t i = 0; i < sizeof more / sizeof *more && !*found; i++) {
        l->more = more[i];
        AT_TRY(takes(runner, variant, l, found));
    }
    return AT_OK;
}

static at_status find_attention(struct at_runner *runner, int variant, struct at_probe_layout *l, int *found) {
    static const int64_t d[] = { 64, 128, 32 }, page[] = { 128, 16, 0, 64 };
    for (size_t i = 0; i < 24 && !*found; i++) {
        l->d = d[i / 4 % 3];
        l->page = page[i % 4]; /* groups of keys that pages hold whole show in long ones */
        l->causal = i / 12;
        if (!l->causal || !l->family->decode)
            AT_TRY(takes(runner, variant, l, found));
    }
    return AT_OK;
}

static at_status find_rows(struct at_runner *runner, int variant, struct at_probe_layout *l, int *found) {
    static const char *const more[] = { "", " gamma_per=tensor" };
    for (size_t i = 0; i < sizeof more / sizeof *more && !*found; i++) {
        l->more = more[i];
        AT_TRY(takes(runner, variant, l, found));
    }
    return AT_OK;
}

at_status at_probe_find_layout(struct at_runner *runner, int variant, enum at_format only,
                               struct at_probe_layout *layout) {
    /* First what tensor cores take with the most bits; of what they have no part in, what rounds least away. */
    static const enum at_format with_tensor_cores[] = { AT_F16, AT_BF16, AT_F32, AT_E4M3, AT_E5M2 },
                                without[] = { AT_F32, AT_F16, AT_BF16, AT_E4M3, AT_E5M2 };
    const struct at_variant *v = at_runner_variant(runner, variant);
    const struct at_family *family = at_family_find(v->family);
    const struct at_op *op = family ? at_op_find(family->op) : NULL;
    if (!op || !op->declares)
        return AT_FAIL(AT_UNSUPPORTED, "%s/%s: its operator leaves nothing of the arithmetic to be declared", v->family,
                       v->name);
    *layout = (struct at_probe_layout){ .family = family, .more = "" };
    if (!at_probe_plans(layout))
        return AT_FAIL(AT_UNSUPPORTED, "%s/%s: there are no probes of %s", v->family, v->name, op->name);
    const int has_dtype = at_key_index(op, "dtype") >= 0;
    const int sums = op->kind == AT_KIND_ATTENTION || op->kind == AT_KIND_PRODUCT;
    const enum at_format *order = sums ? with_tensor_cores : without;
    for (size_t i = 0; i < sizeof without / sizeof *without; i++) {
        int found = 0;
        if (!(at_op_dtypes(op) >> order[i] & 1) || (!has_dtype && order[i] != AT_F32) ||
            (only != AT_FORMAT_COUNT && only != order[i]))
            continue;
        layout->dtype = order[i];
        AT_TRY((!sums                         ? find_rows
                : op->kind == AT_KIND_PRODUCT ? find_product
                                              : find_attention)(runner, variant, layout, &found));
        if (found)
            return AT_OK;
    }
    return AT_FAIL(AT_UNSUPPORTED, "%s/%s takes no probing problem%s%s", v->family, v->name,
                   only != AT_FORMAT_COUNT ? " of " : "", only != AT_FORMAT_COUNT ? at_format_info(only)->name : "");
}

static at_status launch(struct at_runner *runner, int variant, int64_t order, struct at_probe *probe) {
    struct at_run_reply reply = { .reason = "" };
    const struct at_run_mode mode = { .order = order };
    const struct at_variant *v = at_runner_variant(runner, variant);
    AT_TRY(at_guarded_launch(runner, variant, &probe->data.problem, AT_POISON_JUDGED, &mode, (uint64_t)order + 1,
                             SECONDS, &reply, &probe->got));
    if (reply.outcome != AT_RAN)
        return AT_FAIL(AT_UNSUPPORTED, "%s/%s on %s: %.300s", v->family, v->name, probe->name, reply.reason);
    for (int t = 0; probe->got.is_dirty && t < AT_MAX_TENSORS; t++)
        if (probe->got.dirty[t][0])
            return AT_FAIL(AT_UNSUPPORTED, "%s/%s on %s: %.190s", v->family, v->name, probe->name, probe->got.dirty[t]);
    return AT_OK;
}

/* The last row of each request, the first ones, which have their pairs, before others; products: the first rows. */
static void choose_rows(struct at_probe *probe, int most) {
    const struct at_problem *p = &probe->data.problem;
    const int64_t rows = p->op->rows(p);
    for (int64_t row = 0; row < rows && probe->n_rows < most; row++) {
        const int ends = !p->op->request_of_row || row + 1 == rows ||
                         p->op->request_of_row(p, row) != p->op->request_of_row(p, row + 1);
        if (ends)
            probe->row[probe->n_rows++] = row;
    }
}

at_status at_probe_open(struct at_runner *runner, int variant, const struct at_probe_layout *layout,
                        const struct at_probe_plan *plan, int64_t order, struct at_probe *probe) {
    *probe = (struct at_probe){ .name = plan->name, .kind = plan->kind };
    AT_TRY(build(layout, plan, &probe->data));
    const struct at_problem *p = &probe->data.problem;
    const int64_t apart = plan->apart ? plan->apart : 1;
    const int64_t terms = plan->kind == AT_PROBE_QK ? layout->d : plan->size / apart;
    at_masks_fill(&probe->data, plan->kind,
                  is_masks(plan->kind) && at_masks_room(p, plan->kind) >= terms * (terms - 1) / 2, apart);
    AT_TRY(launch(runner, variant, order, probe));
    for (int t = 0; t < p->op->n_tensors; t++) {
        const size_t n = p->op->tensors[t].role == AT_IN ? 0 : (size_t)at_tensor_count(&probe->got.tensors[t]) + 1;
        probe->value[t] = n ? calloc(n, sizeof(double)) : NULL;
        probe->width[t] = n ? calloc(n, sizeof(double)) : NULL;
        if (n && (!probe->value[t] || !probe->width[t]))
            return AT_FAIL(AT_NO_MEMORY, "no memory for %zu modelled values", n);
    }
    choose_rows(probe, plan->rows);
    return AT_OK;
}

void at_probe_release(struct at_probe *probe) {
    for (int t = 0; t < AT_MAX_TENSORS; t++) {
        free(probe->value[t]);
        free(probe->width[t]);
    }
    at_outputs_release(&probe->got);
    at_case_data_release(&probe->data);
    memset(probe, 0, sizeof *probe);
}

int at_probe_same(const struct at_probe *a, const struct at_probe *b) {
    for (int t = 0; t < AT_MAX_TENSORS; t++) {
        const struct at_tensor *x = &a->got.tensors[t], *y = &b->got.tensors[t];
        if (x->data && memcmp(x->data, y->data, (size_t)at_tensor_bytes(x)) != 0)
            return 0;
    }
    return 1;
}

/* log2(1 + ulps) between what was left and the nearest value of the interval. */
static double element(enum at_format format, double got, double model, double width) {
    static const double CLASS = 64; /* one is NaN or infinite and the other is not */
    if (isnan(got) && isnan(model))
        return 0;
    if (!isfinite(got) || !isfinite(model))
        return got == model || width == INFINITY ? 0 : CLASS;
    const double nearest = got < model - width ? model - width : got > model + width ? model + width : got;
    const uint64_t ulps = at_ulp_distance(format, got, nearest);
    return got == nearest ? 0 : log2(2 + (double)ulps); /* outside by less than an ulp is outside */
}

static void add_row(struct at_probe *probe, int64_t row, struct at_distance *distance) {
    const struct at_problem *p = &probe->data.problem;
    for (int t = 0; t < p->op->n_tensors; t++) {
        int64_t first = 0, count = 0;
        if (!probe->value[t] || at_tensor_count(&probe->got.tensors[t]) == 0)
            continue;
        const struct at_tensor *got = &probe->got.tensors[t];
        p->op->row_span(p, t, row, &first, &count);
        for (int64_t e = first; e < first + count; e++) {
            const double model = probe->value[t][e], width = probe->width[t][e];
            const double far = element(got->format, at_tensor_get(got, e), model, width);
            distance->far += far;
            distance->off += far > 0;
            distance->looked_at++;
            if (width > 0 && isfinite(model))
                distance->width += log2(1 + width / at_ulp(got->format, model));
        }
    }
}

at_status at_probe_distance(struct at_probe *probe, const struct at_numerics *numerics, double enough,
                            struct at_distance *distance) {
    const struct at_problem *p = &probe->data.problem;
    const struct at_numerics here = at_numerics_on(numerics, p->dtype);
    struct at_eval eval = { 0 };
    memcpy(eval.value, probe->value, sizeof eval.value);
    memcpy(eval.limit, probe->width, sizeof eval.limit);
    for (int64_t i = 0; i < probe->n_rows && distance->far <= enough; i++) {
        const at_status status = p->op->model(p, &here, probe->row[i], probe->row[i] + 1, &eval);
        if (status == AT_USAGE || status == AT_UNSUPPORTED) {
            distance->far = INFINITY;
            return AT_OK;
        }
        AT_TRY(status);
        add_row(probe, probe->row[i], distance);
    }
    return AT_OK;
}
