/* Buffers of a stack, its steps as jobs of a sequence, and what the replay left.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/stack/stack_graph.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/buffer.h"

enum { ALIGN = 256, NOBODY = -1 };

/* A piece of the block. */
struct piece {
    int64_t offset, bytes;
    char writer[192]; /* who writes it last; "": nobody, it is an input */
    int64_t before;   /* how many steps came before that one */
    uint64_t due;     /* hash of what it leaves there */
};

/* Where a layer's cache is, from turn to turn. */
struct cache {
    char name[AT_STACK_NAME];
    int64_t layer, piece;
};

/* Where a flow is: one of two pieces, the other of which is made when a step reads what it replaces. */
struct place {
    int64_t piece[2]; /* NOBODY: none */
    int now;
};

struct node {
    char name[AT_STACK_NAME], kind[AT_STACK_NAME]; /* of its step */
    int variant;
    struct at_problem problem; /* data: offsets are in `at` */
    int64_t at[AT_MAX_TENSORS];
};

struct at_stack_graph {
    const struct at_stack_plan *plan;
    struct at_runner *runner;
    struct place *flows; /* of this turn's plan */
    struct piece *pieces;
    struct node *nodes;
    struct cache *caches;
    int64_t n_pieces, n_nodes, n_caches, used;
    uint8_t *base;       /* of the block, valid until it grows */
    int64_t room, costs; /* costs: where the runner puts what steps took */
    uint8_t *loaded;     /* the block as it was laid out, once it has been replayed */
};

/* ---- the block ---- */

/* Room for `bytes` more; what is new holds NaN in every format until somebody writes it. */
static at_status add_piece(struct at_stack_graph *g, int64_t bytes, int64_t *index) {
    enum { NOT_WRITTEN = 0xff };
    const int64_t offset = (g->used + ALIGN - 1) / ALIGN * ALIGN, end = offset + bytes;
    struct piece *grown = realloc(g->pieces, ((size_t)g->n_pieces + 1) * sizeof *grown);
    if (!grown)
        return AT_FAIL(AT_NO_MEMORY, "no memory for buffers of a stack");
    g->pieces = grown;
    if (end > g->room) {
        g->room = end + end / 2;
        AT_TRY(at_runner_memory(g->runner, g->room, &g->base));
    }
    memset(g->base + g->used, NOT_WRITTEN, (size_t)(end - g->used));
    g->used = end;
    *index = g->n_pieces;
    grown[g->n_pieces++] = (struct piece){ .offset = offset, .bytes = bytes };
    return AT_OK;
}

static at_status add_filled(struct at_stack_graph *g, const void *from, int64_t bytes, int64_t *index) {
    AT_TRY(add_piece(g, bytes, index));
    memcpy(g->base + g->pieces[*index].offset, from, (size_t)bytes);
    return AT_OK;
}

at_status at_stack_graph_turn(struct at_stack_graph *g) {
    struct place *flows = realloc(g->flows, ((size_t)g->plan->n_flows + 1) * sizeof *flows);
    if (!flows)
        return AT_FAIL(AT_NO_MEMORY, "no memory for flows");
    g->flows = flows;
    for (int i = 0; i < g->plan->n_flows; i++)
        flows[i] = (struct place){ { NOBODY, NOBODY }, 0 };
    return AT_OK;
}

static struct cache *find_cache(const struct at_stack_graph *g, const struct at_stack_flow *flow, int64_t layer) {
    for (int64_t i = 0; flow->input && flow->input->is_cache && i < g->n_caches; i++)
        if (g->caches[i].layer == layer && strcmp(g->caches[i].name, flow->name) == 0)
            return &g->caches[i];
    return NULL;
}

static at_status keep_cache(struct at_stack_graph *g, const struct at_stack_flow *flow, int64_t layer, int64_t piece) {
    struct cache *grown = realloc(g->caches, ((size_t)g->n_caches + 1) * sizeof *grown);
    if (!grown)
        return AT_FAIL(AT_NO_MEMORY, "no memory for caches between turns");
    g->caches = grown;
    grown[g->n_caches] = (struct cache){ .layer = layer, .piece = piece };
    memcpy(grown[g->n_caches++].name, flow->name, sizeof flow->name);
    return AT_OK;
}

at_status at_stack_graph_inputs(struct at_stack_graph *g, enum at_stack_part part, int64_t layer,
                                const struct at_stack_value *values) {
    for (int i = 0; i < g->plan->n_flows; i++) {
        const struct at_stack_flow *flow = &g->plan->flows[i];
        if (!flow->input || flow->input->part != part)
            continue;
        const struct cache *kept = find_cache(g, flow, layer);
        g->flows[i] = (struct place){ { kept ? kept->piece : NOBODY, NOBODY }, 0 };
        if (kept)
            continue;
        AT_TRY(add_filled(g, values[i].stored, at_tensor_bytes(&flow->shape), &g->flows[i].piece[0]));
        if (flow->input->is_cache)
            AT_TRY(keep_cache(g, flow, layer, g->flows[i].piece[0]));
    }
    return AT_OK;
}

/* ---- steps ---- */

/* The step reads the flow as an input that it does not write in place. */
static int reads(const struct at_stack_planned *step, int flow) {
    for (int t = 0; t < step->op->n_tensors; t++)
        if (step->in[t] == flow && step->op->tensors[t].role == AT_IN)
            return 1;
    return 0;
}

/* Where output t goes: the flow's other piece when this one is still read. */
static at_status place_output(struct at_stack_graph *g, const struct at_stack_planned *step, int t, int64_t layer,
                              int64_t bytes, int64_t *piece) {
    if (step->out[t] < 0)
        return add_piece(g, bytes, piece);
    struct place *flow = &g->flows[step->out[t]];
    const int in_place = step->op->tensors[t].role == AT_INOUT;
    const int to = !in_place && flow->piece[flow->now] != NOBODY && reads(step, step->out[t]) ? !flow->now : flow->now;
    if (flow->piece[to] == NOBODY)
        AT_TRY(add_piece(g, bytes, &flow->piece[to]));
    *piece = flow->piece[to];
    flow->now = to;
    const struct at_stack_flow *of = &g->plan->flows[step->out[t]];
    struct cache *kept = find_cache(g, of, of->input && of->input->part == AT_STACK_LAYERS ? layer : -1);
    if (kept)
        kept->piece = *piece;
    return AT_OK;
}

/* "turn 3, layer 0, step attention, tensor o"; what there is one of alone is left out. */
static void describe(const struct at_stack_graph *g, const struct at_stack_planned *step, int64_t layer, int tensor,
                     char *text, size_t size) {
    char turn[40] = "", of_layer[40] = "";
    if (at_stack_setting(g->plan->stack, "turns"))
        snprintf(turn, sizeof turn, "turn %" PRId64 ", ", g->plan->turn);
    if (layer >= 0)
        snprintf(of_layer, sizeof of_layer, "layer %" PRId64 ", ", layer);
    snprintf(text, size, "%s%sstep %s, tensor %s", turn, of_layer, step->text->name, step->op->tensors[tensor].name);
}

at_status at_stack_graph_step(struct at_stack_graph *g, int index, int64_t layer, const struct at_stack_choice *choice,
                              const struct at_problem *problem, void *const *left) {
    const struct at_stack_planned *step = &g->plan->steps[index];
    struct node *grown = realloc(g->nodes, ((size_t)g->n_nodes + 1) * sizeof *grown), *node;
    int64_t piece;
    if (!grown)
        return AT_FAIL(AT_NO_MEMORY, "no memory for steps of a stack");
    g->nodes = grown;
    node = &grown[g->n_nodes];
    *node = (struct node){ .variant = choice->variant, .problem = *problem };
    snprintf(node->name, sizeof node->name, "%s", step->text->name);
    snprintf(node->kind, sizeof node->kind, "%s", step->text->kind);
    if (choice->runner != 0)
        return AT_FAIL(AT_UNSUPPORTED,
                       "stack: found step %s by a variant of --also, wanted all of one graph by --runner",
                       step->text->name);
    /* inputs first: an output may take its flow's other piece */
    for (int t = 0; t < step->op->n_tensors; t++) {
        const struct at_tensor *x = &problem->tensors[t];
        node->at[t] = NOBODY;
        if (!x->rank || !at_tensor_count(x) || step->op->tensors[t].role == AT_OUT)
            continue;
        if (step->in[t] >= 0)
            piece = g->flows[step->in[t]].piece[g->flows[step->in[t]].now];
        else if (x->data)
            AT_TRY(add_filled(g, x->data, at_tensor_bytes(x), &piece));
        else
            continue;
        node->at[t] = piece;
    }
    for (int t = 0; t < step->op->n_tensors; t++) {
        const struct at_tensor *x = &problem->tensors[t];
        if (step->op->tensors[t].role == AT_IN || !x->rank || !at_tensor_count(x))
            continue;
        if (step->op->tensors[t].role == AT_INOUT)
            piece = node->at[t];
        else
            AT_TRY(place_output(g, step, t, layer, at_tensor_bytes(x), &piece));
        node->at[t] = piece;
        struct piece *p = &g->pieces[piece];
        describe(g, step, layer, t, p->writer, sizeof p->writer);
        p->before = g->n_nodes;
        p->due = at_hash_bytes(left[t], (size_t)p->bytes, AT_HASH_START);
    }
    g->n_nodes++;
    return AT_OK;
}

/* ---- running ---- */

static at_status send_node(struct at_stack_graph *g, const struct node *node, const struct at_run_mode *mode,
                           struct at_run_reply *reply) {
    static const double SECONDS = 600; /* copies of many GB, hundreds of replays */
    struct at_problem problem = node->problem;
    for (int t = 0; t < AT_MAX_TENSORS; t++)
        problem.tensors[t].data =
            t < problem.op->n_tensors && node->at[t] != NOBODY ? g->base + g->pieces[node->at[t]].offset : NULL;
    return at_runner_run(g->runner, node->variant, &problem, g->used, mode, at_time_limit(SECONDS), reply);
}

static void compare(const struct at_stack_graph *g, struct at_stack_replayed *r) {
    int64_t first = INT64_MAX;
    r->bits = AT_HASH_START;
    for (int64_t i = 0; i < g->n_pieces; i++) {
        const struct piece *p = &g->pieces[i];
        if (!p->writer[0])
            continue;
        const uint64_t found = at_hash_bytes(g->base + p->offset, (size_t)p->bytes, AT_HASH_START);
        r->bits = at_hash_bytes(&found, sizeof found, r->bits);
        r->compared++;
        if (found == p->due)
            continue;
        r->differ++;
        if (p->before < first) {
            first = p->before;
            snprintf(r->first, sizeof r->first, "%s", p->writer);
        }
    }
}

/* The row of a node's step: one for all layers and turns, in the order in which they come first. */
static struct at_stack_cost *cost_of(const struct node *node, struct at_stack_replayed *r) {
    int i = 0;
    while (i < r->n_costs && strcmp(r->costs[i].name, node->name) != 0)
        i++;
    if (i == r->n_costs) {
        memcpy(r->costs[i].name, node->name, sizeof node->name);
        memcpy(r->costs[i].kind, node->kind, sizeof node->kind);
        r->n_costs++;
    }
    return &r->costs[i];
}

/* A replay's seconds count where the steps have some: the SIMT machine's say nothing of any device. */
static at_status add_costs(const struct at_stack_graph *g, const struct at_step_cost *of_nodes, double replay,
                           struct at_stack_replayed *r) {
    struct at_stack_cost of_whole = { .name = AT_STACK_REPLAY, .times = 1 }, *whole = &of_whole;
    r->costs = calloc((size_t)g->n_nodes + 1, sizeof *r->costs);
    if (!r->costs)
        return AT_FAIL(AT_NO_MEMORY, "no memory for what steps took");
    for (int64_t i = 0; i < g->n_nodes; i++) {
        struct at_stack_cost *cost = cost_of(&g->nodes[i], r);
        const double seconds = of_nodes[i].seconds;
        cost->seconds += seconds;
        cost->least = cost->times == 0 || seconds < cost->least ? seconds : cost->least;
        cost->most = seconds > cost->most ? seconds : cost->most;
        cost->kernels += of_nodes[i].kernels;
        cost->others += of_nodes[i].others;
        cost->times++;
        whole->kernels += of_nodes[i].kernels;
        whole->others += of_nodes[i].others;
        whole->seconds = seconds > 0 ? replay : whole->seconds;
    }
    whole->least = whole->most = whole->seconds;
    r->costs[r->n_costs++] = of_whole;
    return AT_OK;
}

/* What was laid out, where a replay has written since. */
static at_status load_again(struct at_stack_graph *g) {
    if (g->loaded) {
        memcpy(g->base, g->loaded, (size_t)g->used);
        return AT_OK;
    }
    g->loaded = malloc((size_t)g->used + 1);
    if (!g->loaded)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a copy of %" PRId64 " bytes", g->used);
    memcpy(g->loaded, g->base, (size_t)g->used);
    return AT_OK;
}

at_status at_stack_graph_run(struct at_stack_graph *g, int replays, struct at_stack_replayed *r) {
    const struct at_run_mode held = { .hold = 1 };
    struct at_run_mode last = { .replays = replays };
    struct at_run_reply reply = { .outcome = AT_RAN };
    int64_t costs;
    *r = (struct at_stack_replayed){ .bytes = g->used };
    if (g->n_nodes == 0)
        return AT_OK;
    if (!g->costs)
        AT_TRY(add_piece(g, g->n_nodes * (int64_t)sizeof(struct at_step_cost), &costs));
    if (!g->costs)
        g->costs = g->pieces[costs].offset;
    AT_TRY(load_again(g));
    last.steps = g->costs;
    for (int64_t i = 0; i < g->n_nodes && reply.outcome == AT_RAN; i++) {
        const at_status status = send_node(g, &g->nodes[i], i == g->n_nodes - 1 ? &last : &held, &reply);
        if (status == AT_CRASHED || status == AT_HUNG) {
            reply.outcome = AT_RUN_FAILED;
            snprintf(reply.reason, sizeof reply.reason, "%s", at_error_message());
            at_error_clear();
        } else {
            AT_TRY(status);
        }
    }
    if (reply.outcome != AT_RAN) {
        snprintf(r->reason, sizeof r->reason, "%s", reply.reason);
        return AT_OK;
    }
    const struct at_step_cost *of_nodes = (const struct at_step_cost *)(const void *)(g->base + last.steps);
    compare(g, r);
    for (int64_t i = 0; i < g->n_nodes; i++) {
        if (!isnan(of_nodes[i].seconds) && !isnan(of_nodes[i].kernels) && !isnan(of_nodes[i].others))
            continue;
        if (!r->differ)
            snprintf(r->reason, sizeof r->reason, "the runner does not say what all of %" PRId64 " steps took",
                     g->n_nodes);
        return AT_OK;
    }
    return add_costs(g, of_nodes, reply.seconds, r);
}

/* ---- lifetime ---- */

at_status at_stack_graph_open(const char *runner, const struct at_stack_plan *plan, struct at_stack_graph **graph) {
    struct at_stack_graph *g = calloc(1, sizeof *g);
    *graph = g;
    if (!g)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a graph");
    g->plan = plan;
    AT_TRY(at_runner_open(runner, &g->runner));
    if (!at_runner_has_sequences(g->runner))
        return AT_FAIL(AT_UNSUPPORTED, "stack: runner %s takes no sequences of jobs (kernels/runner/PROTOCOL.md)",
                       runner);
    return AT_OK;
}

void at_stack_graph_close(struct at_stack_graph *g) {
    if (!g)
        return;
    if (g->runner)
        at_runner_close(g->runner);
    free(g->loaded);
    free(g->flows);
    free(g->pieces);
    free(g->nodes);
    free(g->caches);
    free(g);
}
