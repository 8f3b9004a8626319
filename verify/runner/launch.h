/* One guarded launch: places a problem in the runner's memory, runs a variant, checks hygiene, brings outputs back.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_LAUNCH_H
#define AT_LAUNCH_H

#include "verify/runner/poison.h"
#include "verify/runner/runner.h"

/* The outputs of one launch, copied out of the runner's memory. */
struct at_outputs {
    struct at_tensor tensors[AT_MAX_TENSORS]; /* data owned; NULL for inputs */
    char dirty[AT_MAX_TENSORS][192];          /* hygiene findings by tensor; "" when clean */
    int is_dirty;
};

/* Rows of k and v that no request owns hold what the variant's declared `tail` allows (verify/runner/poison.h). `seed`
 * varies guard bytes and marks from launch to launch, so that what was left by the last one cannot pass as written.
 * Inputs are copied in afresh. `mode` as for at_runner_run; `timeout` as for at_time_limit. Statuses as at_runner_run;
 * hygiene findings are results, in `outputs`. */
at_status at_guarded_launch(struct at_runner *runner, int variant, const struct at_problem *problem,
                            enum at_poison_turn turn, const struct at_run_mode *mode, uint64_t seed, double timeout,
                            struct at_run_reply *reply, struct at_outputs *outputs);
/* The same with every tensor at another address, NaN where the launch above has them: an engine moves its tensors between
 * launches of equal sizes, and what a variant keeps of addresses (a tensor map) must not outlive a launch. */
at_status at_guarded_launch_elsewhere(struct at_runner *runner, int variant, const struct at_problem *problem,
                                      enum at_poison_turn turn, const struct at_run_mode *mode, uint64_t seed,
                                      double timeout, struct at_run_reply *reply, struct at_outputs *outputs);
/* *takes = 0 when the variant declines this problem, which may be an outline (at_case_outline): its answer is one to sizes,
 * parameters, formats and shapes. A runner that does not know the question runs the variant; nothing is looked at. */
at_status at_ask(struct at_runner *runner, int variant, const struct at_problem *problem, int *takes);
/* The same of n variants, at most 64: bit i of *takes is variants[i]'s answer. */
at_status at_ask_all(struct at_runner *runner, const int *variants, int n, const struct at_problem *problem,
                     uint64_t *takes);
/* What the variant declares on this problem: the numerics of its line, or where those depend on the problem (asked) what it says of it.
 * It is asked once, with zeros for all values but whole numbers (lengths, page tables): other data choose no declaration. Of a problem
 * that it declines, the line's. AT_PROTOCOL where it fails, says nothing, or what means nothing. */
at_status at_declared_on(struct at_runner *runner, int variant, const struct at_problem *problem,
                         struct at_numerics *numerics);
/* What the variant would launch on this problem: reply->launches and reply->way, or AT_RUN_UNSUPPORTED with its reason. No CUDA kernel is run on
 * the SIMT machine for it. A runner that does not know the question runs the variant; nothing is looked at. */
at_status at_dry_launch(struct at_runner *runner, int variant, const struct at_problem *problem,
                        struct at_run_reply *reply);
/* Looks once more at the block of the last launch: 1, with the finding, when it was `variant`'s and its outputs are no more
 * what they were at the answer, or a band is damaged that was whole. The next launch of the same variant looks by itself. */
int at_written_after_answer(struct at_runner *runner, int variant, char *text, size_t size);
void at_outputs_release(struct at_outputs *outputs);

#endif
