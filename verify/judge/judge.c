/* One variant on one case: launch, further launches, comparison, verdict, one result a tensor.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/judge/judge.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/judge/dump.h"
#include "verify/judge/keep.h"
#include "verify/judge/looseness.h"
#include "verify/judge/other_data.h"
#include "verify/judge/redraw.h"
#include "verify/judge/relaunch.h"
#include "verify/judge/resolution.h"
#include "verify/judge/verdict.h"
#include "verify/plan/cost.h"

static void repro_line(const struct at_job *j, char *text, size_t size) {
    const struct at_judge_options *o = j->context->options;
    if (o->repro) {
        snprintf(text, size, "%s", o->repro);
        return;
    }
    int at = snprintf(text, size, "attest replay '%s/%s %s'", j->v->family, j->v->name, j->context->item->c->id);
    if (o->seed && at > 0 && at < (int)size)
        at += snprintf(text + at, size - (size_t)at, " --seed %" PRIu64, o->seed);
    if (strcmp(o->runner_spec, "cpu") != 0 && at > 0 && at < (int)size)
        at += snprintf(text + at, size - (size_t)at, " --runner '%s'", o->runner_spec);
    if (o->sandbox && at > 0 && at < (int)size)
        snprintf(text + at, size - (size_t)at, " --sandbox");
}

static void describe(const struct at_job *j, struct at_result *r) {
    const struct at_case *c = j->context->item->c;
    memset(r, 0, sizeof *r);
    r->plan_index = j->plan_index;
    at_result_begin(r);
    r->ratio_max = NAN;
    r->p_zero_share = NAN;
    snprintf(r->case_id, sizeof r->case_id, "%s", c->id);
    snprintf(r->role, sizeof r->role, "%s", c->role);
    snprintf(r->expect, sizeof r->expect, "%s", c->expect);
    snprintf(r->op, sizeof r->op, "%s", c->op->name);
    snprintf(r->family, sizeof r->family, "%s", j->v->family);
    snprintf(r->variant, sizeof r->variant, "%s", j->v->name);
    snprintf(r->path, sizeof r->path, "%s", j->v->path);
    snprintf(r->sha256, sizeof r->sha256, "%s", j->v->sha256);
    snprintf(r->runner, sizeof r->runner, "%s", j->context->options->runner_spec);
    if (at_numerics_format(&j->declared, r->numerics, sizeof r->numerics) != AT_OK)
        r->numerics[0] = 0;
    repro_line(j, r->repro, sizeof r->repro);
}

/* The whole job has one fate: no output was judged. */
static void one_fate(struct at_job *j, enum at_state state, const char *cause) {
    j->n_results = 1;
    describe(j, &j->results[0]);
    j->results[0].state = state;
    at_result_set_cause(&j->results[0], cause);
}

/* A failed launch is a result when it is the runner's doing, and a status when it is ours. */
static at_status launch_failed(struct at_job *j, at_status status) {
    char cause[AT_ERROR_MESSAGE_BYTES];
    snprintf(cause, sizeof cause, "%s", at_error_message());
    switch (status) {
    case AT_CRASHED:
        one_fate(j, AT_STATE_CRASHED, cause);
        return AT_OK;
    case AT_HUNG:
        one_fate(j, AT_STATE_HUNG, cause);
        return AT_OK;
    case AT_PROTOCOL:
        one_fate(j, j->late_fate, cause);
        return AT_OK;
    default:
        return status;
    }
}

/* Names of required decoys that change no output of this case: then the case does not prove what it was written for. */
static void required_inert(const struct at_job *j, char *text, size_t size) {
    const struct at_case *c = j->context->item->c;
    const struct at_answer *a = &j->context->answer;
    size_t at = 0;
    text[0] = 0;
    for (int q = 0; q < c->n_require; q++) {
        int counted = 0;
        for (int d = 0; d < a->n_decoys; d++)
            for (int o = 0; o < a->n_outputs; o++)
                counted |=
                    strcmp(a->decoys[d].name, c->require[q]) == 0 && j->decoys[a->outputs[o]].fate[d] != AT_DECOY_INERT;
        if (!counted && at < size)
            at += (size_t)snprintf(text + at, size - at, "%s%s", at ? " " : "", c->require[q]);
    }
}

static void note_decoys(const struct at_job *j, int tensor, const char *inert, struct at_result *r) {
    const struct at_answer *a = &j->context->answer;
    size_t at = 0;
    r->n_decoys = a->n_decoys;
    snprintf(r->decoy_fate, sizeof r->decoy_fate, "%s", j->decoys[tensor].fate);
    for (int d = 0; d < a->n_decoys && at < sizeof r->decoy_names; d++)
        at +=
            (size_t)snprintf(r->decoy_names + at, sizeof r->decoy_names - at, "%s%s", d ? "," : "", a->decoys[d].name);
    snprintf(r->required_inert, sizeof r->required_inert, "%s", inert);
}

static void note_ledger(const struct at_job *j, struct at_result *r) {
    const struct at_answer *a = &j->context->answer;
    if (!a->has_ledger)
        return;
    const struct at_ledger_row *p = &a->ledger.stage[AT_STAGE_p];
    r->has_ledger = 1;
    r->ledger_modelled = j->judgement.has_model && !j->judgement.model_is_part;
    r->ledger = r->ledger_modelled ? j->judgement.ledger : a->ledger;
    if (p->count)
        r->p_zero_share = (double)p->zero / (double)p->count;
}

static at_status judge_tensor(struct at_job *j, int o, const char *inert) {
    const struct at_answer *a = &j->context->answer;
    const struct at_problem *p = &j->context->data.problem;
    int t = a->outputs[o];
    struct at_result *r = &j->results[o];
    struct at_comparison c = { .got = &j->outputs.tensors[t],
                               .want = a->value[t],
                               .limit = j->judgement.limit[t],
                               .model = j->judgement.model[t],
                               .modelled = j->judgement.modelled[t],
                               .interval = j->judgement.interval[t],
                               .classes = j->judgement.classes[t],
                               .overflow = j->judgement.overflow[t],
                               .bits = a->bits[t],
                               .computed = a->computed[t],
                               .problem = p,
                               .numerics = &j->numerics,
                               .tensor = t,
                               .count = a->count[t] };
    AT_TRY(at_compare(&c, r));
    struct at_evidence e = { .numerics = &j->numerics,
                             .answer = a,
                             .judgement = &j->judgement,
                             .comparison = &c,
                             .decoys = &j->decoys[t],
                             .aggregate = &j->aggregates[t],
                             .tensor = t,
                             .poison_read = j->poison_read[o],
                             .other_data = j->other_data[o],
                             .required_inert = inert,
                             .dirty = j->outputs.dirty[t][0] ? j->outputs.dirty[t] : NULL };
    /* An input that was changed, or a band damaged beside one, is every output's fault. */
    for (int i = 0; !e.dirty && o == 0 && i < p->op->n_tensors; i++)
        if (p->op->tensors[i].role == AT_IN && j->outputs.dirty[i][0])
            e.dirty = j->outputs.dirty[i];
    note_decoys(j, t, inert, r);
    note_ledger(j, r);
    r->aggregate_ratio = j->aggregates[t].judged ? j->aggregates[t].ratio : NAN;
    r->resolution = at_resolution(a, &j->judgement, t, j->aggregates[t].scale);
    at_verdict(&e, r);
    return AT_OK;
}

/* Decoys tried, and the verdict, which looks at them too. */
static at_status judge_by_decoys(struct at_job *j) {
    struct at_answer *a = &j->context->answer;
    double looseness[AT_MAX_TENSORS];
    char inert[256];
    AT_TRY(at_answer_decoys(a, &j->numerics, j->context->options->threads));
    for (int o = 0; o < a->n_outputs; o++) {
        int t = a->outputs[o], modelled = j->judgement.has_model && !j->judgement.model_is_part;
        at_decoys_try(a, &j->numerics, t, modelled ? NULL : j->judgement.limit[t], j->judgement.model[t],
                      j->judgement.interval[t], j->judgement.modelled[t], &j->decoys[t]);
        at_decoys_try_scale(a, j->aggregates[t].scale, &j->decoys[t]);
    }
    required_inert(j, inert, sizeof inert);
    AT_TRY(at_looseness(a, &j->numerics, looseness));
    for (int o = 0; o < a->n_outputs; o++) {
        AT_TRY(judge_tensor(j, o, inert));
        j->results[o].looseness = looseness[a->outputs[o]];
    }
    return AT_OK;
}

/* A declaration that the case cannot be evaluated with (pooled FIR order where taps are given, a tensor core's unit where
 * the inputs are f32) is the variant's mistake, and costs this job alone. */
static at_status declaration_failed(struct at_job *j, at_status status) {
    char cause[AT_ERROR_MESSAGE_BYTES + 64];
    if (status != AT_USAGE && status != AT_UNSUPPORTED)
        return status;
    snprintf(cause, sizeof cause, "the declared numerics do not fit this case: %s", at_error_message());
    one_fate(j, AT_STATE_ERROR, cause);
    return AT_OK;
}

/* After the last launch there is no next one to look at what it left. */
static void look_once_more(struct at_job *j) {
    char text[sizeof j->outputs.dirty[0]];
    const int t = j->context->answer.outputs[0];
    if (!at_written_after_answer(j->runner, j->variant, text, sizeof text) || j->outputs.is_dirty)
        return;
    snprintf(j->outputs.dirty[t], sizeof j->outputs.dirty[t], "%s", text);
    j->outputs.is_dirty = 1;
}

static at_status judge_outputs(struct at_job *j) {
    struct at_case_context *c = j->context;
    at_status status = at_judgement_open(&c->answer, &j->numerics, c->options->threads, c->options->model_rows,
                                         at_job_seed(j, 0), &j->judgement);
    if (status != AT_OK)
        return declaration_failed(j, status);
    at_judgement_widen(&c->answer, c->options->limit_factor, &j->judgement);
    status = at_job_aggregates(j);
    if (status != AT_OK)
        return launch_failed(j, status);
    look_once_more(j);
    pthread_mutex_lock(&c->decoys);
    status = judge_by_decoys(j);
    pthread_mutex_unlock(&c->decoys);
    AT_TRY(status);
    AT_TRY(at_job_keep(j));
    if (c->options->look)
        AT_TRY(c->options->look(c->options->context, j->outputs.tensors, c->answer.value));
    if (c->options->dump)
        AT_TRY(at_dump_job(c->options->dump, &c->answer, &j->judgement, &j->outputs, &j->numerics));
    return AT_OK;
}

static void note_counters(const struct at_counters *counters, struct at_result *r) {
#define X(name, meaning) r->counter_##name = counters->name;
    AT_COUNTER_LIST(X)
#undef X
}

static at_status run_job(struct at_job *j) {
    struct at_case_context *c = j->context;
    struct at_run_reply reply;
    const struct at_run_mode mode = { .counters = c->options->counters, .unchecked = c->options->launch_only };
    at_status status = at_guarded_launch(j->runner, j->variant, &c->data.problem, AT_POISON_JUDGED, &mode,
                                         at_job_seed(j, 0), at_job_time_limit(j), &reply, &j->outputs);
    if (status != AT_OK)
        return launch_failed(j, status);
    if (reply.outcome != AT_RAN) {
        one_fate(j, at_job_fate(reply.outcome), reply.reason);
        return AT_OK;
    }
    if (c->options->launch_only) {
        status = at_job_other_batches(j);
        if (status != AT_OK)
            return launch_failed(j, status);
        one_fate(j, AT_STATE_SKIPPED, "launched, and not judged");
        return AT_OK;
    }
    j->path = reply.path;
    j->capturable = reply.capturable;
    AT_TRY(at_case_context_answer(c));
    j->n_results = c->answer.n_outputs;
    for (int o = 0; o < j->n_results; o++) {
        int t = c->answer.outputs[o];
        describe(j, &j->results[o]);
        j->results[o].tensor_index = o;
        j->results[o].seconds = reply.seconds;
        if (reply.has_counters)
            note_counters(&reply.counters, &j->results[o]);
        snprintf(j->results[o].tensor, sizeof j->results[o].tensor, "%s", c->data.problem.op->tensors[t].name);
        snprintf(j->results[o].format, sizeof j->results[o].format, "%s",
                 at_format_info(c->data.problem.tensors[t].format)->name);
    }
    const int again = at_is_launched_again(c->item->c, j->v, c->options->again);
    status = again ? at_job_rerun(j) : AT_OK;
    if (status == AT_OK)
        status = at_job_predict(j);
    if (status == AT_OK && again)
        status = at_job_graph(j);
    if (status == AT_OK && again && !j->outputs.is_dirty)
        status = at_job_other_batches(j);
    if (status == AT_OK && again && !j->outputs.is_dirty)
        status = at_job_other_data(j);
    if (status != AT_OK)
        return launch_failed(j, status);
    return judge_outputs(j);
}

at_status at_judge_job(struct at_case_context *context, struct at_runner *runner, struct at_runner *predictor, int i) {
    struct at_job j = { .late_fate = AT_STATE_ERROR,
                        .context = context,
                        .runner = runner,
                        .predictor = predictor,
                        .variant = context->item->variants[i],
                        .plan_index = context->item->first_index + i };
    at_status status = AT_OK;
    atomic_fetch_add(&context->jobs, 1);
    j.v = at_runner_variant(runner, j.variant);
    j.results = calloc(AT_MAX_TENSORS, sizeof *j.results);
    if (!j.results)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for results");
    AT_TRY_OUT(at_case_context_data(context));
    j.declared = j.v->numerics;
    status = at_declared_on(runner, j.variant, &context->data.problem, &j.declared);
    j.numerics = at_numerics_on(&j.declared, context->data.problem.dtype);
    AT_TRY_OUT(status == AT_OK ? run_job(&j) : launch_failed(&j, status));
    AT_TRY_OUT(context->options->emit(context->options->context, j.results, j.n_results));
out:
    at_judgement_close(&j.judgement);
    at_outputs_release(&j.outputs);
    free(j.results);
    atomic_fetch_sub(&context->jobs, 1);
    return status;
}

at_status at_judge_skip(struct at_case_context *context, struct at_runner *runner, int i, const char *why) {
    struct at_job j = { .context = context,
                        .runner = runner,
                        .variant = context->item->variants[i],
                        .plan_index = context->item->first_index + i };
    j.v = at_runner_variant(runner, j.variant);
    j.declared = j.v->numerics;
    j.results = calloc(1, sizeof *j.results);
    if (!j.results)
        return AT_FAIL(AT_NO_MEMORY, "no memory for results");
    one_fate(&j, AT_STATE_SKIPPED, why);
    const at_status status = context->options->emit(context->options->context, j.results, j.n_results);
    free(j.results);
    return status;
}
