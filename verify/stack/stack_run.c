/* The steps of a stack, one after the other.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Steps are launched one by one, guarded and more than once, as `attest verify` launches a job: that is what judging takes. The
 * tensors that a step leaves are those that the next one gets. */
#include "verify/stack/stack_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attest/buffer.h"
#include "verify/cli/progress.h"
#include "verify/judge/case_context.h"
#include "verify/runner/launch.h"

struct run {
    const struct at_stack_plan *plan;
    const struct at_stack_options *options;
    struct at_stack_outcome *outcome;
    struct at_judge_options judge;
    struct at_stack_value *values; /* of flows */
    struct at_progress progress;
    int64_t jobs, failed;
};

/* One step while it runs. */
struct work {
    struct run *run;
    int index;
    int64_t layer;
    struct at_stack_choice choice;
    struct at_case_list list;
    struct at_case_data data;
    struct at_result *results; /* of the judge */
    int n_results;
    void *left[AT_MAX_TENSORS];    /* what the launch left */
    double *here[AT_MAX_TENSORS];  /* exact on the same inputs */
    double *exact[AT_MAX_TENSORS]; /* of the run in double */
};

static const struct at_stack_planned *step_of(const struct work *w) { return &w->run->plan->steps[w->index]; }

/* ---- judging ---- */

static at_status copy_of(const void *from, size_t bytes, const char *name, void **out) {
    *out = malloc(bytes + 1);
    if (!*out)
        return AT_FAIL(AT_NO_MEMORY, "no memory for tensor %s", name);
    memcpy(*out, from, bytes);
    return AT_OK;
}

static at_status look(void *context, const struct at_tensor *outputs, double *const *exact) {
    struct work *w = context;
    for (int t = 0; t < step_of(w)->op->n_tensors; t++) {
        const char *name = step_of(w)->op->tensors[t].name;
        if (!outputs[t].data || !exact[t]) /* an input, or an output that this problem lacks */
            continue;
        AT_TRY(copy_of(outputs[t].data, (size_t)at_tensor_bytes(&outputs[t]), name, &w->left[t]));
        AT_TRY(copy_of(exact[t], (size_t)at_tensor_count(&outputs[t]) * sizeof(double), name, (void **)&w->here[t]));
    }
    return AT_OK;
}

static at_status emit(void *context, const struct at_result *results, int n) {
    struct work *w = context;
    AT_TRY(copy_of(results, (size_t)n * sizeof *results, "results", (void **)&w->results));
    w->n_results = n;
    for (int i = 0; i < n; i++)
        AT_TRY(at_run_record_add(&w->run->outcome->record, &results[i]));
    return AT_OK;
}

/* What the case is called in results: its family, where it stands, its keys. */
static void name_case(const struct work *w, struct at_case *c) {
    char keys[sizeof c->id], where[160], turn[32] = "", layer[32] = "";
    const size_t family = strcspn(c->id, " ");
    snprintf(keys, sizeof keys, "%s", c->id + family);
    if (w->run->options->kept)
        snprintf(turn, sizeof turn, " turn=%" PRId64, w->run->plan->turn);
    if (w->layer >= 0)
        snprintf(layer, sizeof layer, " layer=%" PRId64, w->layer);
    snprintf(where, sizeof where, "stack=%s%s%s step=%s", w->run->plan->stack->name, turn, layer,
             step_of(w)->text->name);
    snprintf(c->id, sizeof c->id, "%s %s%.*s", step_of(w)->family->name, where, (int)(sizeof c->id - 256), keys);
    c->hash = at_hash_bytes(c->id, strlen(c->id), AT_HASH_START);
}

static at_status judge(struct work *w) {
    struct run *run = w->run;
    struct at_case_context *context = NULL;
    struct at_case *c = &w->list.items[0];
    const struct at_plan_case item = {
        .c = c, .variants = &w->choice.variant, .n_variants = 1, .first_index = run->jobs++
    };
    name_case(w, c);
    run->judge.runner_spec = run->options->runner_spec[w->choice.runner];
    run->judge.context = w;
    AT_TRY(at_case_context_create_given(&item, &w->data.problem, &run->judge, &context));
    const at_status status = at_judge_job(context, run->plan->runner[w->choice.runner], NULL, 0);
    at_case_context_destroy(context);
    return status;
}

/* A launch that did not end leaves nothing: the exact values of its inputs, rounded, go on, so that later steps have theirs. */
static at_status stand_in(struct work *w) {
    const struct at_problem *p = &w->data.problem;
    struct at_eval eval = { 0 };
    for (int t = 0; t < p->op->n_tensors; t++) {
        if (p->op->tensors[t].role == AT_IN)
            continue;
        const size_t n = (size_t)at_tensor_count(&p->tensors[t]);
        eval.value[t] = w->here[t] = calloc(n + 1, sizeof(double));
        w->left[t] = calloc(n + 1, at_format_info(p->tensors[t].format)->bytes);
        if (!w->here[t] || !w->left[t])
            return AT_FAIL(AT_NO_MEMORY, "no memory for tensor %s", p->op->tensors[t].name);
    }
    AT_TRY(at_evaluate_rows(p, NULL, AT_EVALUATE_EXACT, w->run->options->threads, &eval));
    for (int t = 0; t < p->op->n_tensors; t++)
        if (w->left[t])
            at_encode_array(p->tensors[t].format, (size_t)at_tensor_count(&p->tensors[t]), w->here[t], w->left[t]);
    return AT_OK;
}

/* ---- launching alone ---- */

/* Between guard bands, once; what it leaves is not looked at. */
static at_status launch_alone(struct work *w) {
    static const double SECONDS = 100;
    struct at_outputs outputs;
    struct at_run_reply reply;
    const struct at_stack_planned *step = step_of(w);
    char why[sizeof reply.reason] = "";
    AT_TRY(at_guarded_launch(w->run->plan->runner[w->choice.runner], w->choice.variant, &w->data.problem,
                             AT_POISON_JUDGED, NULL, w->run->plan->seed, SECONDS, &reply, &outputs));
    if (reply.outcome != AT_RAN)
        snprintf(why, sizeof why, "%s", reply.reason);
    for (int t = 0; t < step->op->n_tensors && !why[0]; t++) {
        if (outputs.dirty[t][0])
            snprintf(why, sizeof why, "%s", outputs.dirty[t]);
        w->left[t] = outputs.tensors[t].data;
        outputs.tensors[t].data = NULL;
    }
    at_outputs_release(&outputs);
    return why[0] ? AT_FAIL(AT_ENVIRONMENT, "layer %" PRId64 ", step %s, which was not judged: %s", w->layer,
                            step->text->name, why)
                  : AT_OK;
}

/* ---- rows ---- */

/* A launch that did not end, or whose outputs have no elements. */
static int left_nothing(const struct work *w) {
    for (int i = 0; i < w->n_results; i++)
        if (w->results[i].compared > 0)
            return 0;
    return 1;
}

static at_status add_row(struct work *w, int t, const struct at_result *r) {
    struct at_stack_outcome *o = w->run->outcome;
    struct at_stack_row *grown = realloc(o->rows, ((size_t)o->n_rows + 1) * sizeof *grown), *row;
    const struct at_stack_planned *step = step_of(w);
    const struct at_variant *v = at_stack_chosen(w->run->plan, &w->choice);
    const int flow = step->out[t];
    if (!grown)
        return AT_FAIL(AT_NO_MEMORY, "no memory for rows of a stack");
    o->rows = grown;
    row = &grown[o->n_rows++];
    *row = (struct at_stack_row){ .turn = w->run->plan->turn,
                                  .layer = w->layer,
                                  .step = w->index,
                                  .state = r->state,
                                  .compared = r->compared,
                                  .wrong = r->wrong,
                                  .modelled = r->model_compared,
                                  .on_model = r->model_equal,
                                  .ratio = r->ratio_max,
                                  .stands_in = left_nothing(w),
                                  .carried = flow >= 0 && w->run->plan->flows[flow].carried };
    snprintf(row->name, sizeof row->name, "%s", step->text->name);
    snprintf(row->kind, sizeof row->kind, "%s", step->text->kind);
    snprintf(row->family, sizeof row->family, "%s", v->family);
    snprintf(row->variant, sizeof row->variant, "%s", v->name);
    snprintf(row->tensor, sizeof row->tensor, "%s", step->op->tensors[t].name);
    snprintf(row->flow, sizeof row->flow, "%s", flow < 0 ? "" : w->run->plan->flows[flow].name);
    struct at_tensor stored = w->data.problem.tensors[t];
    stored.data = w->left[t];
    at_stack_measure(&stored, w->here[t], w->exact[t], &row->error);
    return AT_OK;
}

/* Of each output the judge's result, of a job without any its one fate. */
static at_status add_rows(struct work *w) {
    for (int t = 0, o = 0; t < step_of(w)->op->n_tensors; t++) {
        const struct at_tensor_spec *spec = &step_of(w)->op->tensors[t];
        if (spec->role == AT_IN || (spec->optional && !w->data.problem.tensors[t].rank))
            continue;
        AT_TRY(add_row(w, t, &w->results[o < w->n_results ? o : w->n_results - 1]));
        o++;
    }
    return AT_OK;
}

/* ---- steps ---- */

static at_status feed(struct work *w) {
    const struct at_stack_planned *step = step_of(w);
    struct at_problem *p = &w->data.problem;
    for (int t = 0; t < step->op->n_tensors; t++)
        if (step->in[t] >= 0)
            p->tensors[t].data = w->run->values[step->in[t]].stored;
    const at_status status = step->op->check(p);
    if (status == AT_USAGE)
        return AT_FAIL(AT_USAGE, "%s:%d: step %s: %s", w->run->plan->stack->path, step->text->line, step->text->name,
                       at_error_message());
    return status;
}

/* What the step has left becomes what the flows hold. */
static void pass_on(struct work *w) {
    const struct at_stack_planned *step = step_of(w);
    for (int t = 0; t < step->op->n_tensors; t++) {
        if (step->out[t] < 0)
            continue;
        struct at_stack_value *value = &w->run->values[step->out[t]];
        free(value->stored);
        free(value->exact);
        *value = (struct at_stack_value){ w->left[t], w->exact[t] };
        w->left[t] = NULL;
        w->exact[t] = NULL;
    }
}

static int is_judged(const struct run *run, enum at_stack_part part, int64_t layer) {
    const int64_t layers = run->options->judge_layers;
    if (layers == 0 || (part == AT_STACK_BEFORE && !run->options->kept))
        return 1;
    if (run->options->kept)
        return run->plan->turn < layers;
    return part == AT_STACK_LAYERS ? layer < layers : layers >= run->plan->layers;
}

/* The verdict, and what lies between the kernel and the run in double. */
static at_status judge_and_measure(struct work *w) {
    AT_TRY(judge(w));
    if (left_nothing(w))
        AT_TRY(stand_in(w));
    AT_TRY(at_stack_evaluate(step_of(w), &w->data.problem, w->run->values, w->run->options->threads, w->exact));
    return add_rows(w);
}

static at_status run_step(struct run *run, int index, int64_t layer) {
    at_status status = AT_OK;
    struct work w = { .run = run, .index = index, .layer = layer };
    char current[128];
    AT_TRY_OUT(at_stack_case(run->plan, index, layer, &w.list));
    AT_TRY_OUT(at_case_build_around(&w.list.items[0], step_of(&w)->given, &w.data));
    if (run->options->given)
        AT_TRY_OUT(at_stack_given_step(run->options->given, step_of(&w), layer, &w.data.problem));
    AT_TRY_OUT(feed(&w));
    AT_TRY_OUT(at_stack_variant(run->plan, index, layer, &w.data.problem, &w.choice));
    AT_TRY_OUT(is_judged(run, step_of(&w)->text->part, layer) ? judge_and_measure(&w) : launch_alone(&w));
    if (run->options->graph)
        AT_TRY_OUT(at_stack_graph_step(run->options->graph, index, layer, &w.choice, &w.data.problem, w.left));
    int64_t failed = 0;
    for (int i = 0; i < w.n_results; i++)
        failed |= at_state_fails(w.results[i].state, "", 0);
    snprintf(current, sizeof current, "layer %" PRId64 " %s", layer, step_of(&w)->text->name);
    if (!run->options->quiet)
        at_progress_step(&run->progress, 1, failed, current);
    pass_on(&w);
out:
    for (int t = 0; t < AT_MAX_TENSORS; t++) {
        free(w.left[t]);
        free(w.here[t]);
        free(w.exact[t]);
    }
    free(w.results);
    at_case_data_release(&w.data);
    at_case_list_release(&w.list);
    return status;
}

static at_status run_part(struct run *run, enum at_stack_part part, int64_t layer) {
    struct at_stack_kept *kept = run->options->kept;
    AT_TRY(at_stack_draw(run->plan, part, layer, run->values));
    if (run->options->given)
        AT_TRY(at_stack_given_flows(run->options->given, run->plan, part, layer, run->values));
    if (kept)
        AT_TRY(at_stack_kept_take(run->plan, part, layer, kept, run->values));
    if (run->options->graph)
        AT_TRY(at_stack_graph_inputs(run->options->graph, part, layer, run->values));
    for (int i = 0; i < run->plan->n_steps; i++)
        if (run->plan->steps[i].text->part == part)
            AT_TRY(run_step(run, i, layer));
    /* What stands before the layers is there behind them, too. */
    return kept && part == AT_STACK_LAYERS ? at_stack_kept_put(run->plan, part, layer, run->values, kept) : AT_OK;
}

at_status at_stack_run(const struct at_stack_plan *plan, const struct at_stack_options *options,
                       struct at_stack_outcome *outcome) {
    at_status status = AT_OK;
    struct run run = { .plan = plan, .options = options, .outcome = outcome };
    int64_t total = 0;
    if (plan->turn == 0) {
        memset(outcome, 0, sizeof *outcome);
        at_run_record_init(&outcome->record);
    }
    run.jobs = outcome->record.n; /* behind those of the turns before */
    run.judge = (struct at_judge_options){ .seed = plan->seed,
                                           .threads = options->threads,
                                           .shared_threads = options->threads,
                                           .limit_factor = 1,
                                           .model_rows = options->model_rows,
                                           .repro = options->repro,
                                           .emit = emit,
                                           .look = look };
    run.values = calloc((size_t)plan->n_flows + 1, sizeof *run.values);
    if (!run.values)
        return AT_FAIL(AT_NO_MEMORY, "no memory for flows");
    for (int i = 0; i < plan->n_steps; i++)
        total += at_stack_times(plan, i);
    if (options->graph)
        AT_TRY_OUT(at_stack_graph_turn(options->graph));
    at_progress_start(&run.progress, "judging steps", total);
    AT_TRY_OUT(run_part(&run, AT_STACK_BEFORE, -1));
    for (int64_t layer = 0; layer < plan->layers; layer++)
        AT_TRY_OUT(run_part(&run, AT_STACK_LAYERS, layer));
    AT_TRY_OUT(run_part(&run, AT_STACK_BEHIND, -1));
    if (options->loss) {
        const int flow = at_stack_flow_find(plan, options->loss);
        AT_TRY_OUT(at_stack_loss_take(options->given, &plan->flows[flow], &run.values[flow], &outcome->loss));
    }
    for (int part = AT_STACK_BEFORE; options->kept && part <= AT_STACK_BEHIND;
         part += AT_STACK_BEHIND - AT_STACK_BEFORE)
        AT_TRY_OUT(at_stack_kept_put(plan, (enum at_stack_part)part, -1, run.values, options->kept));
    at_run_record_sort(&outcome->record);
out:
    at_progress_end(&run.progress);
    at_stack_values_release(plan, run.values);
    return status;
}

void at_stack_outcome_release(struct at_stack_outcome *outcome) {
    at_run_record_release(&outcome->record);
    free(outcome->rows);
    outcome->rows = NULL;
    outcome->n_rows = 0;
}
