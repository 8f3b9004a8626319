/* One variant: its probes, the search, what it cannot tell apart, and its declaration held against them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/fit/fit.h"

#include <stdio.h>
#include <string.h>

/* What is not taken is noted and left out. */
static at_status open_probe(struct at_runner *runner, int variant, const struct at_probe_layout *layout,
                            const struct at_probe_plan *plan, struct at_fit *fit) {
    if (fit->search.n_probes == AT_PROBES_MAX)
        return AT_FAIL(AT_BUG, "more than %d probes", (int)AT_PROBES_MAX);
    struct at_probe *probe = &fit->probe[fit->search.n_probes];
    const at_status status = at_probe_open(runner, variant, layout, plan, 0, probe);
    if (status == AT_OK) {
        fit->search.n_probes++;
        return AT_OK;
    }
    at_probe_release(probe);
    if (status != AT_UNSUPPORTED)
        return status;
    const size_t at = strlen(fit->left_out);
    snprintf(fit->left_out + at, sizeof fit->left_out - at, "%s%.160s", at ? "; " : "", at_error_message());
    at_error_clear();
    return AT_OK;
}

/* Of every other format that it takes: drawn values, which show whether one declaration is true of all of them. An output in
 * f32, or products that f32 has no room for, also show what one of 16 bits rounds away. */
static at_status open_other_formats(struct at_runner *runner, int variant, struct at_fit *fit) {
    for (int dtype = 0; dtype < AT_FORMAT_COUNT; dtype++) {
        struct at_probe_layout other;
        if (!(at_op_dtypes(at_op_find(fit->layout.family->op)) >> dtype & 1) || dtype == (int)fit->layout.dtype)
            continue;
        const at_status status = at_probe_find_layout(runner, variant, (enum at_format)dtype, &other);
        if (status == AT_UNSUPPORTED) {
            at_error_clear();
            continue;
        }
        AT_TRY(status);
        for (const struct at_probe_plan *plan = at_probe_plans(&other); plan->name; plan++)
            if (plan->kind == AT_PROBE_DRAWN || (plan->kind < AT_PROBE_QK && dtype == AT_F32))
                AT_TRY(open_probe(runner, variant, &other, plan, fit));
    }
    return AT_OK;
}

static at_status open_probes(struct at_runner *runner, int variant, const struct at_fit_options *options,
                             struct at_fit *fit) {
    for (const struct at_probe_plan *plan = at_probe_plans(&fit->layout); plan->name; plan++)
        AT_TRY(open_probe(runner, variant, &fit->layout, plan, fit));
    fit->n_first = fit->search.n_probes;
    if (options->dtype == AT_FORMAT_COUNT)
        AT_TRY(open_other_formats(runner, variant, fit));
    fit->search.probe = fit->probe;
    return fit->n_first ? AT_OK : AT_FAIL(AT_UNSUPPORTED, "%s", fit->left_out);
}

/* Each probe once more, in another order of the machine. */
static at_status look_for_changes(struct at_runner *runner, int variant, struct at_fit *fit) {
    const struct at_probe_plan *plan = at_probe_plans(&fit->layout);
    for (int i = 0; plan->name && !fit->changes; plan++) {
        struct at_probe again;
        if (i == fit->n_first || strcmp(fit->probe[i].name, plan->name) != 0)
            continue;
        const at_status status = at_probe_open(runner, variant, &fit->layout, plan, 1, &again);
        fit->changes = status == AT_OK && !at_probe_same(&fit->probe[i++], &again);
        at_probe_release(&again);
        AT_TRY(status);
    }
    return AT_OK;
}

/* Candidates of each axis, the others as found, that leave no element off either. */
static at_status find_alike(struct at_fit *fit) {
    for (int a = 0; a < fit->search.axes.n; a++)
        for (int i = 0; i < fit->search.axes.axis[a].n; i++) {
            struct at_numerics other;
            struct at_distance far;
            if (!at_axis_apply(&fit->search.axes.axis[a], i, &fit->best, &other) ||
                memcmp(&other, &fit->best, sizeof other) == 0)
                continue;
            AT_TRY(at_search_distance(&fit->search, &other, ~0u, 0, &far));
            if (far.far > 0)
                continue;
            if (fit->n_alike < AT_FIT_ALIKE_MAX)
                fit->alike[fit->n_alike++] = (struct at_fit_alike){ a, other };
            else
                fit->more_alike++;
        }
    at_error_clear();
    return AT_OK;
}

static at_status check_declared(struct at_fit *fit) {
    const struct at_numerics *declared = &fit->v->numerics;
    fit->wrong_axis = -1;
    if (declared->free_order)
        return AT_OK;
    fit->has_declared = 1;
    AT_TRY(at_search_distance(&fit->search, declared, ~0u, 1e300, &fit->declared));
    if (fit->declared.far > 0)
        AT_TRY(at_search_one_change(&fit->search, declared, &fit->declared, &fit->wrong_axis, &fit->changed,
                                    &fit->changed_distance));
    at_error_clear();
    return AT_OK;
}

/* Sums over many keys are divided by as many: what is left of a unit is read in bf16, whose exponents go down that far. */
static struct at_probe_layout layout_of_long_sums(struct at_runner *runner, int variant, const struct at_fit *fit) {
    struct at_probe_layout layout;
    if (at_op_find(fit->layout.family->op)->weights == AT_WEIGHTS_SOFTMAX && fit->layout.dtype == AT_F16 &&
        at_probe_find_layout(runner, variant, AT_BF16, &layout) == AT_OK)
        return layout;
    at_error_clear();
    return fit->layout;
}

static at_status find_orders(struct at_runner *runner, int variant, struct at_fit *fit) {
    const int runs = 2;
    const enum at_kind of = at_op_find(fit->layout.family->op)->kind;
    if (of != AT_KIND_ATTENTION && of != AT_KIND_PRODUCT)
        return AT_OK; /* sums of squares do not cancel, others are shown through a function */
    const struct at_probe_layout wide = layout_of_long_sums(runner, variant, fit);
    const int is_product = of == AT_KIND_PRODUCT;
    const enum at_probe_kind kind = is_product ? AT_PROBE_PRODUCT : AT_PROBE_PV;
    if (!is_product)
        AT_TRY(at_order_find(runner, variant, &fit->layout, AT_PROBE_QK, 1, runs, &fit->qk));
    AT_TRY(at_order_find(runner, variant, &fit->layout, kind, 1, runs, is_product ? &fit->qk : &fit->pv));
    return at_order_find(runner, variant, &wide, kind, AT_ORDER_APART, runs, &fit->far);
}

/* Where what fits the first format rounds P to that format, P in the activations' format may fit all of them. */
static at_status fit_first_alone(struct at_fit *fit) {
    const int all = fit->search.n_probes;
    struct at_distance distance;
    fit->first_alone = 1;
    fit->search.n_probes = fit->n_first;
    AT_TRY(at_search_run(&fit->search, &fit->best, &fit->distance));
    if (fit->distance.far > 0 || fit->best.p != (int)fit->layout.dtype)
        return AT_OK;
    struct at_numerics any = fit->best;
    any.p = AT_P_INPUT;
    fit->search.n_probes = all;
    AT_TRY(at_search_distance(&fit->search, &any, ~0u, 0, &distance));
    fit->first_alone = distance.far > 0;
    if (fit->first_alone) {
        fit->search.n_probes = fit->n_first;
        return AT_OK;
    }
    fit->best = any;
    fit->distance = distance;
    return AT_OK;
}

at_status at_fit_variant(struct at_runner *runner, int variant, const struct at_fit_options *options,
                         struct at_fit *fit) {
    memset(fit, 0, sizeof *fit);
    fit->v = at_runner_variant(runner, variant);
    fit->wrong_axis = -1;
    if (fit->v->asked)
        return AT_FAIL(AT_UNSUPPORTED, "its arithmetic depends on the problem; fit the kernels that it chooses among");
    AT_TRY(at_probe_find_layout(runner, variant, options->dtype, &fit->layout));
    AT_TRY(open_probes(runner, variant, options, fit));
    AT_TRY(look_for_changes(runner, variant, fit));
    AT_TRY(at_axes_open(&fit->probe[0].data.problem, &fit->search.axes));
    if (!fit->changes) {
        AT_TRY(at_search_run(&fit->search, &fit->best, &fit->distance));
        if (fit->distance.far > 0 && fit->search.n_probes > fit->n_first) /* arithmetic that depends on the format */
            AT_TRY(fit_first_alone(fit));
        if (!(fit->distance.far > 0))
            AT_TRY(find_alike(fit));
        if (options->check)
            AT_TRY(check_declared(fit));
    }
    return options->trees ? find_orders(runner, variant, fit) : AT_OK;
}

void at_fit_release(struct at_fit *fit) {
    for (int i = 0; i < AT_PROBES_MAX; i++)
        at_probe_release(&fit->probe[i]);
    at_axes_release(&fit->search.axes);
}
