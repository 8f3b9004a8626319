/* The cases of a plan, each with the distinct declarations of the variants that take it, spread over workers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/run/declarations.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/env.h"
#include "attest/protocol.h"
#include "verify/runner/launch.h"

struct declaring {
    const struct at_declarations_options *options;
    struct at_declarations *out;
    struct at_runner **runners; /* [jobs]; 0 is out->runner */
    pthread_mutex_t lock;       /* of out->variants */
};

/* The part of a declaration that models read, everything else at a value that claims all that launches can refute: one
 * trial then serves every variant that shares it. */
static struct at_numerics core_of(const struct at_op *op, const struct at_numerics *declared) {
    struct at_numerics core = at_numerics_default();
    for (int f = 0; f < AT_FIELD_COUNT; f++)
        if (f == AT_FIELD_free_order || (op->declares >> f & 1))
            at_numerics_set(&core, f, at_numerics_get(declared, f));
    core.repeats = core.batch_invariant = 1;
    return core;
}

/* Fields of a variant that more cases are wanted for; those that launches decide want to know whether orders show. */
static uint64_t wanted_of(struct declaring *d, int variant) {
    const struct at_variant_cases *v = &d->out->variants[variant];
    uint64_t wanted = 0;
    for (int f = 0; f < AT_FIELD_COUNT; f++) {
        const struct at_field_cases *c = &v->field[f];
        if (c->refuted == AT_REFUTED_NOT || !(d->options->fields >> f & 1) ||
            (d->options->enough && c->tested >= d->options->enough))
            continue;
        wanted |=
            c->refuted == AT_REFUTED_RELAUNCH || c->refuted == AT_REFUTED_BATCHES ? ~UINT64_C(0) : UINT64_C(1) << f;
    }
    return wanted;
}

static void note(struct at_field_cases *c, const struct at_declared_test *test, int f, int64_t item, double work) {
    c->modelled += test->modelled >> f & 1;
    c->has_model |= test->has_model[f];
    c->rejected |= test->rejected[f];
    if (!(test->tested >> f & 1))
        return;
    c->tested++;
    if (c->example < 0 || work < c->example_work || (!(work > c->example_work) && item < c->example)) {
        c->example = item;
        c->example_work = work;
        c->example_rejected = test->rejected[f];
    }
}

static double work_of(const struct at_problem *p) {
    double work = 0;
    for (int64_t r = 0, n = p->op->rows(p); r < n; r++)
        work += p->op->row_work(p, r);
    return work;
}

/* The variants of a case that share the declaration of variants[i], i among them, all not yet done. */
static at_status try_core(struct declaring *d, int64_t item, const struct at_problem *problem, int i, char *done) {
    const struct at_plan_case *at = &d->out->plan.items[item];
    const struct at_numerics core = core_of(problem->op, &at_runner_variant(d->out->runner, at->variants[i])->numerics);
    const double work = work_of(problem);
    struct at_declared_test test;
    uint64_t wanted = 0;
    char same[AT_MAX_VARIANTS] = { 0 };
    pthread_mutex_lock(&d->lock);
    for (int k = i; k < at->n_variants; k++) {
        const struct at_numerics other =
            core_of(problem->op, &at_runner_variant(d->out->runner, at->variants[k])->numerics);
        same[k] = !done[k] && memcmp(&core, &other, sizeof core) == 0;
        if (same[k])
            wanted |= wanted_of(d, at->variants[k]);
    }
    pthread_mutex_unlock(&d->lock);
    at_status status = wanted ? at_declared_try(problem, &core, wanted, d->options->work, &test) : AT_OK;
    const int ill = status == AT_USAGE || status == AT_UNSUPPORTED;
    if (status != AT_OK && !ill)
        return status;
    pthread_mutex_lock(&d->lock);
    for (int k = i; k < at->n_variants; k++) {
        struct at_variant_cases *v = &d->out->variants[at->variants[k]];
        if (!same[k])
            continue;
        done[k] = 1;
        v->taken++;
        v->ill += ill;
        if (ill)
            snprintf(v->ill_reason, sizeof v->ill_reason, "%.200s", at_error_message());
        for (int f = 0; wanted && !ill && f < AT_FIELD_COUNT; f++)
            if (v->field[f].refuted != AT_REFUTED_NOT)
                note(&v->field[f], &test, f, item, work);
    }
    pthread_mutex_unlock(&d->lock);
    return AT_OK;
}

static int any_wanted(struct declaring *d, const struct at_plan_case *at) {
    uint64_t wanted = 0;
    pthread_mutex_lock(&d->lock);
    for (int i = 0; i < at->n_variants; i++)
        wanted |= wanted_of(d, at->variants[i]);
    pthread_mutex_unlock(&d->lock);
    return wanted != 0;
}

static at_status try_case(struct declaring *d, struct at_runner *runner, int64_t item) {
    const struct at_plan_case *at = &d->out->plan.items[item];
    struct at_case_data data;
    char done[AT_MAX_VARIANTS] = { 0 };
    at_status status = AT_OK;
    if (!any_wanted(d, at))
        return AT_OK;
    AT_TRY(at_case_build(at->c, &data));
    for (int i = 0; i < at->n_variants; i++) {
        int takes;
        AT_TRY_OUT(at_ask(runner, at->variants[i], &data.problem, &takes));
        done[i] = !takes;
    }
    for (int i = 0; i < at->n_variants; i++)
        if (!done[i])
            AT_TRY_OUT(try_core(d, item, &data.problem, i, done));
out:
    at_case_data_release(&data);
    return status;
}

static at_status work(void *context, int64_t begin, int64_t end, int worker) {
    struct declaring *d = context;
    if (!d->runners[worker])
        AT_TRY(at_runner_open(d->options->runner, &d->runners[worker]));
    for (int64_t item = begin; item < end; item++)
        AT_TRY(try_case(d, d->runners[worker], item));
    return AT_OK;
}

static at_status open_variants(struct at_declarations *out) {
    out->n = at_runner_variant_count(out->runner);
    out->variants = calloc((size_t)out->n + 1, sizeof *out->variants);
    if (!out->variants)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %d variants", out->n);
    for (int i = 0; i < out->n; i++) {
        struct at_variant_cases *v = &out->variants[i];
        v->v = at_runner_variant(out->runner, i);
        const struct at_family *family = at_family_find(v->v->family);
        const struct at_op *op =
            family ? at_op_find(family->op) : NULL; /* a family of another time: no case meets it */
        for (int f = 0; f < AT_FIELD_COUNT; f++) {
            v->field[f].refuted = op && !v->v->asked ? at_declared_refuted(op, &v->v->numerics, f) : AT_REFUTED_NOT;
            v->field[f].example = -1;
        }
    }
    for (int64_t i = 0; i < out->plan.n_items; i++)
        for (int k = 0; k < out->plan.items[i].n_variants; k++)
            out->variants[out->plan.items[i].variants[k]].met++;
    return AT_OK;
}

at_status at_declarations_run(const struct at_declarations_options *options, struct at_declarations *out) {
    at_status status = AT_OK;
    struct declaring d = { .options = options, .out = out, .lock = PTHREAD_MUTEX_INITIALIZER };
    memset(out, 0, sizeof *out);
    d.runners = calloc((size_t)options->jobs + 1, sizeof(struct at_runner *));
    if (!d.runners)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for %d workers", options->jobs);
    AT_TRY_OUT(at_runner_open(options->runner, &out->runner));
    d.runners[0] = out->runner;
    AT_TRY_OUT(at_plan_make(&options->selection, out->runner, &out->plan));
    AT_TRY_OUT(open_variants(out));
    AT_TRY_OUT(at_parallel(out->plan.n_items, 1, options->jobs, work, &d));
out:
    for (int i = 1; d.runners && i < options->jobs; i++)
        at_runner_close(d.runners[i]);
    free(d.runners);
    pthread_mutex_destroy(&d.lock);
    if (status != AT_OK)
        at_declarations_release(out);
    return status;
}

void at_field_neighbours(const struct at_variant *v, int field, struct at_neighbours *near) {
    const struct at_numerics core = core_of(at_op_find(at_family_find(v->family)->op), &v->numerics);
    at_neighbours(&core, field, near);
}

void at_declarations_release(struct at_declarations *d) {
    free(d->variants);
    at_plan_release(&d->plan);
    at_runner_close(d->runner);
    memset(d, 0, sizeof *d);
}

enum at_field_state at_field_state(const struct at_variant_cases *v, int field) {
    const struct at_field_cases *c = &v->field[field];
    if (c->refuted == AT_REFUTED_NOT)
        return AT_FIELD_NO_CLAIM;
    if (v->taken == v->ill)
        return AT_FIELD_UNMET;
    return c->tested ? AT_FIELD_TESTED : c->modelled ? AT_FIELD_VACUOUS : AT_FIELD_FIXED;
}
