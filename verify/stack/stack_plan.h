/* The plan of a stack: which steps run, by which variants, what they launch, and which flow each of their tensors is.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Layers are alike: a step is planned once, with what differs from layer to layer (seeds) left open. A flow has one
 * format and one size through the whole run, so that a device can lay all of them out once, and capture the steps of all
 * layers, in this order, in one graph: flows are its buffers (two of a flow that a step both reads and replaces), steps
 * its nodes. */
#ifndef AT_STACK_PLAN_H
#define AT_STACK_PLAN_H

#include "datasets/language/case.h"
#include "datasets/language/stack.h"
#include "verify/runner/runner.h"

/* What one tensor passes to another: named by the file. */
struct at_stack_flow {
    char name[AT_STACK_NAME];
    struct at_tensor shape;             /* data NULL; other tensors may read it by other shapes of as many elements */
    const struct at_stack_input *input; /* drawn; NULL: some step's output */
    int carried;                        /* defined before a layer and replaced in it: goes from layer to layer */
};

/* Of the variants that a glob matches, which one runs a step: the last in its runner's list that takes the problem. */
struct at_stack_choice {
    char glob[AT_STACK_TEXT];
    int runner, variant; /* of the plan's runners */
    int64_t launches;    /* CUDA kernels; 0: a C variant, or not known */
};

struct at_stack_planned {
    const struct at_stack_step *text;
    const struct at_family *family;
    const struct at_op *op;
    int in[AT_MAX_TENSORS], out[AT_MAX_TENSORS]; /* flows by tensor; -1: drawn by the case, or nobody's */
    unsigned given;                              /* bits of tensors that flows feed */
    int draws_indices;                           /* index tensors are of the whole stack, not of a layer */
    struct at_stack_choice choice;               /* in layers that --use does not name */
    double work;                                 /* multiply-adds */
    char shapes[256];                            /* "a[3,128] b[128,128] -> d[3,128]" */
};

/* Runners whose variants steps may name; a step's is looked for in this order. */
enum { AT_STACK_RUNNERS = 2 };

struct at_stack_plan {
    const struct at_stack *stack; /* borrowed */
    struct at_runner *runner[AT_STACK_RUNNERS];
    int n_runners;
    const char *use; /* "STEP[@LAYER]=GLOB,...": instead of the file's variants; NULL: none */
    enum at_format dtype;
    int64_t layers;
    int64_t turn; /* of a sequence: 0 its prompts, then its decode steps; of any other stack 0 */
    uint64_t seed;
    struct at_stack_planned *steps; /* those that count, in order */
    struct at_stack_flow *flows;
    int n_steps, n_flows;
};

/* Fills the rest of *plan, whose stack, runners, use and seed are given. */
at_status at_stack_plan_make(struct at_stack_plan *plan);
void at_stack_plan_release(struct at_stack_plan *plan);

/* The case of a step in a layer (-1: outside of them): its family, keys, dtype and seed. */
at_status at_stack_case(const struct at_stack_plan *plan, int step, int64_t layer, struct at_case_list *list);
/* Who runs a step in that layer (-1: any that --use does not name): the last of --use that is of both, else as the file says. */
at_status at_stack_variant(const struct at_stack_plan *plan, int step, int64_t layer, const struct at_problem *problem,
                           struct at_stack_choice *choice);
/* Every STEP of --use is one of the plan's, every LAYER one of its layers. */
at_status at_stack_use_check(const struct at_stack_plan *plan);
const struct at_variant *at_stack_chosen(const struct at_stack_plan *plan, const struct at_stack_choice *choice);
/* Flow of that name, -1. */
int at_stack_flow_find(const struct at_stack_plan *plan, const char *name);
/* How often a step runs. */
int64_t at_stack_times(const struct at_stack_plan *plan, int step);

#endif
