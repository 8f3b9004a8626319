/* Running a stack: each step judged on what it got, each flow beside a run in double.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_STACK_RUN_H
#define AT_STACK_RUN_H

#include "verify/result/record.h"
#include "verify/stack/stack_graph.h"
#include "verify/stack/stack_loss.h"

/* One output of one step in one layer. */
struct at_stack_row {
    int64_t turn;  /* of a sequence */
    int64_t layer; /* -1: outside of the layers */
    int64_t step;  /* place among the plan's */
    char name[AT_STACK_NAME], kind[AT_STACK_NAME], family[64], variant[96], tensor[AT_STACK_NAME], flow[AT_STACK_NAME];
    enum at_state state;
    int64_t compared, wrong, modelled, on_model;
    double ratio;  /* largest error over its limit; NaN: none */
    int stands_in; /* the launch left nothing: the exact value, rounded, went on in its place */
    int carried;   /* the flow goes from layer to layer */
    struct at_stack_error error;
};

struct at_stack_options {
    const char *runner_spec[AT_STACK_RUNNERS];
    const char *repro; /* the command that repeats the run */
    int64_t model_rows;
    int64_t
        judge_layers; /* so many from the first on, of a sequence so many turns; the rest, and what stands behind them, is launched alone. 0: all */
    struct at_stack_kept *kept;   /* caches of the turns before, and for the next; NULL: no sequence */
    struct at_stack_graph *graph; /* gets every input and step; NULL: none */
    struct at_stack_given *given; /* tensors in the place of what is drawn; NULL: none */
    const char *loss;             /* flow of logits, with targets among `given`; NULL: none */
    int quiet, threads;
};

struct at_stack_outcome {
    struct at_run_record record; /* a result an output, of the judge */
    struct at_stack_row *rows;
    int64_t n_rows;
    struct at_stack_loss loss; /* vocabulary 0: nobody asked */
};

/* The whole plan, step by step. Turn 0 begins *outcome, later ones add to it. */
at_status at_stack_run(const struct at_stack_plan *plan, const struct at_stack_options *options,
                       struct at_stack_outcome *outcome);
void at_stack_outcome_release(struct at_stack_outcome *outcome);

#endif
