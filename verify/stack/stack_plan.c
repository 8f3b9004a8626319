/* From a stack's text to steps with cases, flows and variants.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/stack/stack_plan.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "attest/buffer.h"
#include "attest/names.h"
#include "datasets/language/case_keys.h"

enum { LAYERS_MAX = 4096 };

/* ---- flows ---- */

int at_stack_flow_find(const struct at_stack_plan *plan, const char *name) {
    for (int i = 0; i < plan->n_flows; i++)
        if (strcmp(plan->flows[i].name, name) == 0)
            return i;
    return -1;
}

static at_status add_flow(struct at_stack_plan *plan, const char *name, const struct at_tensor *shape,
                          const struct at_stack_input *input) {
    struct at_stack_flow *grown = realloc(plan->flows, ((size_t)plan->n_flows + 1) * sizeof *grown);
    if (!grown)
        return AT_FAIL(AT_NO_MEMORY, "no memory for flows");
    plan->flows = grown;
    struct at_stack_flow *flow = &grown[plan->n_flows++];
    *flow = (struct at_stack_flow){ .shape = *shape, .input = input };
    flow->shape.data = NULL;
    snprintf(flow->name, sizeof flow->name, "%s", name);
    return AT_OK;
}

static at_status add_inputs(struct at_stack_plan *plan, enum at_stack_part part) {
    const struct at_stack *s = plan->stack;
    for (int i = 0; i < s->n_inputs; i++) {
        const struct at_stack_input *input = &s->inputs[i];
        struct at_tensor shape = { .format = plan->dtype, .rank = input->rank };
        int holds;
        double scale;
        AT_TRY(at_stack_holds(s, input->line, input->condition, &holds));
        if (!holds || input->part != part)
            continue;
        for (int d = 0; d < input->rank; d++)
            AT_TRY(at_stack_whole(s, input->line, input->dims[d], 1, &shape.shape[d]));
        AT_TRY(at_stack_number(s, input->line, input->scale, &scale));
        if (!(scale > 0))
            return AT_FAIL(AT_USAGE, "%s:%d: found %s=%g, wanted a number above 0", s->path, input->line,
                           input->is_weight ? "fan" : "std", scale);
        if (at_stack_flow_find(plan, input->name) >= 0)
            return AT_FAIL(AT_USAGE, "%s:%d: found %s again, wanted another name", s->path, input->line, input->name);
        AT_TRY(add_flow(plan, input->name, &shape, input));
    }
    return AT_OK;
}

static void shape_text(const struct at_tensor *t, char *text, size_t size) {
    size_t used = 0;
    for (int d = 0; d < t->rank && used < size; d++)
        used += (size_t)snprintf(text + used, size - used, "%s%" PRId64, d ? "," : "", t->shape[d]);
}

/* A flow feeds any tensor of its format with as many elements: both are contiguous. */
static at_status check_fits(const struct at_stack_plan *plan, const struct at_stack_planned *step,
                            const struct at_stack_flow *flow, int t, const struct at_tensor *tensor) {
    char found[80] = "", wanted[80] = "";
    if (flow->shape.format == tensor->format && at_tensor_count(&flow->shape) == at_tensor_count(tensor))
        return AT_OK;
    shape_text(&flow->shape, found, sizeof found);
    shape_text(tensor, wanted, sizeof wanted);
    return AT_FAIL(AT_USAGE, "%s:%d: step %s: found %s, %s [%s], at its tensor %s, wanted %s [%s]", plan->stack->path,
                   step->text->line, step->text->name, flow->name, at_format_info(flow->shape.format)->name, found,
                   step->op->tensors[t].name, at_format_info(tensor->format)->name, wanted);
}

static at_status unknown_flow(const struct at_stack_plan *plan, int line, const char *name) {
    enum { NAMES_MAX = 256 };
    const char *names[NAMES_MAX];
    int n = 0;
    for (; n < plan->n_flows && n < NAMES_MAX; n++)
        names[n] = plan->flows[n].name;
    const char *nearest = at_nearest_name(name, names, n);
    return AT_FAIL(AT_USAGE, "%s:%d: found %s, wanted an input or an output of a step above%s%s%s", plan->stack->path,
                   line, name, nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

static at_status tensor_of(const struct at_stack_plan *plan, const struct at_stack_planned *step, const char *name,
                           int is_input, int *tensor) {
    const char *names[AT_MAX_TENSORS];
    for (int t = 0; t < step->op->n_tensors; t++)
        names[t] = (step->op->tensors[t].role == AT_OUT) != is_input ? step->op->tensors[t].name : NULL;
    for (int t = 0; t < step->op->n_tensors; t++)
        if (names[t] && strcmp(names[t], name) == 0) {
            *tensor = t;
            return AT_OK;
        }
    const char *nearest = at_nearest_name(name, names, step->op->n_tensors);
    return AT_FAIL(AT_USAGE, "%s:%d: step %s: found %s, wanted an %s of %s%s%s%s; `attest help tensors %s` has them",
                   plan->stack->path, step->text->line, step->text->name, name, is_input ? "input" : "output",
                   step->op->name, nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "",
                   step->family->name);
}

/* Which tensors flows feed, before there are shapes. */
static at_status find_given(const struct at_stack_plan *plan, struct at_stack_planned *step) {
    for (int i = 0; i < step->text->n_in; i++) {
        int t;
        AT_TRY(tensor_of(plan, step, step->text->bound[i].tensor, 1, &t));
        step->given |= 1u << t;
    }
    for (int t = 0; t < step->op->n_tensors; t++) {
        const enum at_fill fill = step->op->tensors[t].fill;
        step->in[t] = step->out[t] = -1;
        step->draws_indices |= fill == AT_FILL_BLOCK_TABLE || fill == AT_FILL_SLOT_MAPPING;
    }
    return AT_OK;
}

/* Inputs read flows that are there; what is read and written goes back to the same; outputs make flows or replace them. */
static at_status bind(struct at_stack_plan *plan, struct at_stack_planned *step, const struct at_problem *problem) {
    const struct at_stack_binding *bound = step->text->bound;
    for (int i = 0; i < step->text->n_bound; i++) {
        const int is_input = i < step->text->n_in;
        int t, flow = at_stack_flow_find(plan, bound[i].flow);
        AT_TRY(tensor_of(plan, step, bound[i].tensor, is_input, &t));
        if (flow < 0 && is_input)
            return unknown_flow(plan, step->text->line, bound[i].flow);
        if (flow < 0) {
            flow = plan->n_flows;
            AT_TRY(add_flow(plan, bound[i].flow, &problem->tensors[t], NULL));
        }
        if ((is_input ? step->in : step->out)[t] >= 0)
            return AT_FAIL(AT_USAGE, "%s:%d: step %s: found tensor %s twice, wanted it once", plan->stack->path,
                           step->text->line, step->text->name, bound[i].tensor);
        AT_TRY(check_fits(plan, step, &plan->flows[flow], t, &problem->tensors[t]));
        (is_input ? step->in : step->out)[t] = flow;
        if (is_input && step->op->tensors[t].role == AT_INOUT)
            step->out[t] = flow;
    }
    return AT_OK;
}

/* ---- cases ---- */

at_status at_stack_case(const struct at_stack_plan *plan, int index, int64_t layer, struct at_case_list *list) {
    const struct at_stack *s = plan->stack;
    const struct at_stack_planned *step = &plan->steps[index];
    char where[sizeof s->path + 80], keys[AT_STACK_KEYS], line[AT_STACK_KEYS + 256];
    uint64_t seed = plan->seed;
    if (!step->draws_indices) { /* parameters of norms differ from layer to layer */
        const uint64_t parts[2] = { plan->seed, (uint64_t)layer };
        seed = at_hash_bytes(step->text->name, strlen(step->text->name),
                             at_hash_bytes(parts, sizeof parts, AT_HASH_START));
    }
    snprintf(where, sizeof where, "%s:%d: step %s", s->path, step->text->line, step->text->name);
    AT_TRY(at_stack_expand(s, step->text->line, step->text->keys, keys, sizeof keys));
    char dtype[32] = "";
    if (at_key_index(step->op, "dtype") >= 0) /* slots have no activations */
        snprintf(dtype, sizeof dtype, " dtype=%s", at_format_info(plan->dtype)->name);
    snprintf(line, sizeof line, "%s%s%s seed=%" PRIu64, step->text->family, keys, dtype, seed >> 1);
    memset(list, 0, sizeof *list);
    AT_TRY(at_case_parse(line, "stack", where, list));
    if (list->n == 1)
        return AT_OK;
    const int64_t found = list->n;
    at_case_list_release(list);
    return AT_FAIL(AT_USAGE, "%s: found keys of %" PRId64 " cases, wanted those of one", where, found);
}

/* ---- steps ---- */

static void describe(struct at_stack_planned *step, const struct at_problem *p) {
    size_t used = 0;
    for (int turn = 0; turn < 2; turn++)
        for (int t = 0; t < p->op->n_tensors; t++) {
            char shape[80] = "";
            if ((turn ? step->out : step->in)[t] < 0 || used >= sizeof step->shapes)
                continue;
            shape_text(&p->tensors[t], shape, sizeof shape);
            const char *arrow = turn && !strstr(step->shapes, "->") ? "-> " : "";
            used += (size_t)snprintf(step->shapes + used, sizeof step->shapes - used, "%s%s%s[%s]", used ? " " : "",
                                     arrow, p->op->tensors[t].name, shape);
        }
    for (int64_t r = 0, rows = p->op->rows(p); r < rows; r++)
        step->work += p->op->row_work(p, r);
}

/* Zeros where flows will be: enough to ask what a variant would launch. */
static at_status lay_zeros(const struct at_stack_planned *step, struct at_problem *p, void *zeros[AT_MAX_TENSORS]) {
    for (int t = 0; t < p->op->n_tensors; t++) {
        if (!(step->given >> t & 1) || p->tensors[t].rank == 0)
            continue;
        zeros[t] = p->tensors[t].data = calloc(1, (size_t)at_tensor_bytes(&p->tensors[t]) + 1);
        if (!zeros[t])
            return AT_FAIL(AT_NO_MEMORY, "no memory for tensor %s", p->op->tensors[t].name);
    }
    return AT_OK;
}

static at_status plan_step(struct at_stack_plan *plan, int index) {
    struct at_stack_planned *step = &plan->steps[index];
    struct at_case_list list = { 0 };
    struct at_case_data data = { 0 };
    void *zeros[AT_MAX_TENSORS] = { NULL };
    at_status status = AT_OK;
    step->family = at_family_find(step->text->family);
    if (!step->family)
        return AT_FAIL(AT_USAGE, "%s:%d: found family %s, wanted one of `attest list families`", plan->stack->path,
                       step->text->line, step->text->family);
    step->op = at_op_find(step->family->op);
    AT_TRY(find_given(plan, step));
    AT_TRY_OUT(at_stack_case(plan, index, step->text->part == AT_STACK_LAYERS ? 0 : -1, &list));
    AT_TRY_OUT(at_case_build_around(&list.items[0], step->given, &data));
    AT_TRY_OUT(bind(plan, step, &data.problem));
    AT_TRY_OUT(lay_zeros(step, &data.problem, zeros));
    describe(step, &data.problem);
    AT_TRY_OUT(at_stack_variant(plan, index, -1, &data.problem, &step->choice));
out:
    for (int t = 0; t < AT_MAX_TENSORS; t++)
        free(zeros[t]);
    at_case_data_release(&data);
    at_case_list_release(&list);
    return status;
}

/* A step that is planned already, NULL if none has that name. */
static const struct at_stack_step *step_of_name(const struct at_stack_plan *plan, const char *name) {
    for (int i = 0; i < plan->n_steps; i++) {
        const struct at_stack_step *step = plan->steps[i].text;
        if (step && strcmp(step->name, name) == 0)
            return step;
    }
    return NULL;
}

static at_status add_steps(struct at_stack_plan *plan, enum at_stack_part part) {
    const struct at_stack *s = plan->stack;
    for (int i = 0; i < s->n_steps; i++) {
        int holds;
        AT_TRY(at_stack_holds(s, s->steps[i].line, s->steps[i].condition, &holds));
        if (!holds || s->steps[i].part != part)
            continue;
        const struct at_stack_step *same = step_of_name(plan, s->steps[i].name);
        if (same)
            return AT_FAIL(AT_USAGE, "%s:%d: found step %s, which line %d has too; wanted another name, or when",
                           s->path, s->steps[i].line, s->steps[i].name, same->line);
        plan->steps[plan->n_steps] = (struct at_stack_planned){ .text = &s->steps[i] };
        plan->n_steps++;
        AT_TRY(plan_step(plan, plan->n_steps - 1));
    }
    return AT_OK;
}

/* Of what is there before the layers: what a step of a layer replaces. */
static void mark_carried(struct at_stack_plan *plan, int n_before) {
    for (int i = 0; i < plan->n_steps; i++) {
        const struct at_stack_planned *step = &plan->steps[i];
        const int repeated = step->text && step->text->part == AT_STACK_LAYERS;
        for (int t = 0; repeated && t < step->op->n_tensors; t++)
            if (step->out[t] >= 0 && step->out[t] < n_before)
                plan->flows[step->out[t]].carried = 1;
    }
}

/* The activations' format: a stack's setting dtype. */
static at_status read_dtype(struct at_stack_plan *plan) {
    const struct at_stack_setting *dtype = at_stack_setting(plan->stack, "dtype");
    plan->dtype = AT_BF16;
    if (dtype && (at_format_parse(dtype->value, &plan->dtype) != AT_OK || plan->dtype == AT_I32))
        return AT_FAIL(AT_USAGE, "%s:%d: found dtype=%s, wanted bf16, f16 or f32", plan->stack->path, dtype->line,
                       dtype->value);
    return AT_OK;
}

at_status at_stack_plan_make(struct at_stack_plan *plan) {
    const struct at_stack *s = plan->stack;
    AT_TRY(read_dtype(plan));
    AT_TRY(at_stack_whole(s, s->layers_line, s->layers, 1, &plan->layers));
    if (plan->layers > LAYERS_MAX)
        return AT_FAIL(AT_USAGE, "%s:%d: found %" PRId64 " layers, wanted at most %d", s->path, s->layers_line,
                       plan->layers, LAYERS_MAX);
    plan->steps = calloc((size_t)s->n_steps + 1, sizeof *plan->steps);
    if (!plan->steps)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a plan");
    AT_TRY(add_inputs(plan, AT_STACK_BEFORE));
    AT_TRY(add_steps(plan, AT_STACK_BEFORE));
    const int n_before = plan->n_flows;
    AT_TRY(add_inputs(plan, AT_STACK_LAYERS));
    AT_TRY(add_steps(plan, AT_STACK_LAYERS));
    AT_TRY(add_inputs(plan, AT_STACK_BEHIND));
    AT_TRY(add_steps(plan, AT_STACK_BEHIND));
    mark_carried(plan, n_before);
    return at_stack_use_check(plan);
}

void at_stack_plan_release(struct at_stack_plan *plan) {
    free(plan->steps);
    free(plan->flows);
    plan->steps = NULL;
    plan->flows = NULL;
    plan->n_steps = plan->n_flows = 0;
}

int64_t at_stack_times(const struct at_stack_plan *plan, int step) {
    return plan->steps[step].text->part == AT_STACK_LAYERS ? plan->layers : 1;
}

const struct at_variant *at_stack_chosen(const struct at_stack_plan *plan, const struct at_stack_choice *choice) {
    return at_runner_variant(plan->runner[choice->runner], choice->variant);
}
