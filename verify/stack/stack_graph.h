/* A whole stack, all turns of a sequence, as one graph: laid out once, replayed by a runner, its bits beside those of the steps one by
 * one.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A flow is a buffer that all layers share, or two in turn where a step reads what it replaces; weights and caches are each layer's
 * own; those of a turn are not the next one's, but for its caches. The graph is right when every buffer ends with the bits that the steps, each judged on what it got, left there last: a
 * step that did otherwise anywhere in it leaves other bits in what follows. */
#ifndef AT_STACK_GRAPH_H
#define AT_STACK_GRAPH_H

#include "attest/run_mode.h"
#include "verify/stack/stack_values.h"

struct at_stack_graph;

/* The name of the row that is the whole graph; the side that is not --against's. */
#define AT_STACK_REPLAY "replay"
#define AT_STACK_OWN "own"

/* What a step took, over its layers and turns. */
struct at_stack_cost {
    char stack[AT_STACK_NAME];
    char side[AT_STACK_TEXT]; /* AT_STACK_OWN, or what --against says */
    int64_t round;            /* the sides take turns */
    char name[AT_STACK_NAME], kind[AT_STACK_NAME];
    int64_t times;
    double seconds;         /* sum over its layers of the medians of each; 0: not timed */
    double least, most;     /* of one of them */
    double kernels, others; /* nodes of the graph, over its layers */
};

struct at_stack_replayed {
    struct at_stack_cost *costs; /* owned: of each step, by its name, in order, and of the whole: median of a replay */
    int n_costs;
    int64_t bytes;    /* of all buffers */
    int64_t compared; /* buffers */
    int64_t differ;   /* of them, those with other bits */
    char first[192];  /* the first that differs: who wrote it last; "" */
    uint64_t bits;    /* hash of what all of them hold, in the order in which they were written last */
    char reason[512]; /* why there was no replay; "" */
};

/* A runner of its own, of the same kind as the plan's first: its block holds the whole stack. AT_UNSUPPORTED when it knows no
 * sequences. */
at_status at_stack_graph_open(const char *runner, const struct at_stack_plan *plan, struct at_stack_graph **graph);
void at_stack_graph_close(struct at_stack_graph *graph);

/* The plan has been made, anew for a turn: its flows are others, caches alone stay where they are. */
at_status at_stack_graph_turn(struct at_stack_graph *graph);
/* Flows that are drawn for this part (in this layer; -1: outside of layers): buffers of their own, with what `values` hold; of caches
 * those of the turn before. */
at_status at_stack_graph_inputs(struct at_stack_graph *graph, enum at_stack_part part, int64_t layer,
                                const struct at_stack_value *values);
/* The next step. `problem`: its case, with the data of tensors that no flow feeds. left[t]: what the step alone left in its
 * outputs. */
at_status at_stack_graph_step(struct at_stack_graph *graph, int step, int64_t layer,
                              const struct at_stack_choice *choice, const struct at_problem *problem,
                              void *const *left);
/* Runs what was added; may be called again. AT_OK also when it could not run or bits differ: *replayed says so. Costs are owned by the caller. */
at_status at_stack_graph_run(struct at_stack_graph *graph, int replays, struct at_stack_replayed *replayed);

#endif
