/* A job that is a question.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/runner/ask.h"

#include <string.h>

enum { ALIGN = 256, SECONDS = 60 };

/* A tensor that the problem has not stays without memory. */
static at_status place(struct at_runner *runner, const struct at_problem *problem, struct at_problem *placed,
                       int64_t *used) {
    int64_t offset[AT_MAX_TENSORS] = { 0 };
    uint8_t *base;
    *used = 0;
    *placed = *problem;
    for (int t = 0; t < problem->op->n_tensors; t++) {
        offset[t] = *used;
        *used += (at_tensor_bytes(&problem->tensors[t]) + ALIGN - 1) / ALIGN * ALIGN;
    }
    AT_TRY(at_runner_memory(runner, *used, &base));
    for (int t = 0; t < problem->op->n_tensors; t++) {
        struct at_tensor *to = &placed->tensors[t];
        const int64_t bytes = at_tensor_bytes(to);
        to->data = bytes ? base + offset[t] : NULL;
        if (bytes && problem->tensors[t].data)
            memcpy(to->data, problem->tensors[t].data, (size_t)bytes);
    }
    return AT_OK;
}

at_status at_runner_ask(struct at_runner *runner, int variant, const struct at_problem *problem, int *takes) {
    const struct at_run_mode mode = { .ask = 1 };
    struct at_problem placed;
    struct at_run_reply reply;
    int64_t used;
    AT_TRY(place(runner, problem, &placed, &used));
    AT_TRY(at_runner_run(runner, variant, &placed, used, &mode, at_time_limit(SECONDS), &reply));
    *takes = reply.outcome != AT_RUN_UNSUPPORTED;
    return AT_OK;
}
