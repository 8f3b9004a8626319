/* One launch of a study: codes in, results out.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/study/special/study_launch.h"

#include <stdio.h>
#include <string.h>

#include "attest/env.h"

enum { FILL = 1 << 14, UNWRITTEN = 0xff };
static const double timeout_seconds = 300;

struct filling {
    const struct at_special_codes *codes;
    const struct at_tensor *x;
};

static at_status fill(void *context, int64_t begin, int64_t end, int worker) {
    const struct filling *w = context;
    const int wide = at_format_info(w->x->format)->bytes == 4;
    (void)worker;
    for (int64_t i = begin; i < end; i++) {
        const uint32_t code = (uint32_t)((w->codes->first + i) * w->codes->step);
        if (wide)
            ((uint32_t *)w->x->data)[i] = code;
        else
            ((uint16_t *)w->x->data)[i] = (uint16_t)code;
    }
    return AT_OK;
}

at_status at_special_launch(struct at_runner *runner, int variant, const struct at_special_codes *codes, int threads,
                            struct at_problem *p, struct at_run_reply *reply) {
    uint8_t *base;
    at_scalar_set(p, at_op_scalar(p->op, "n"), (double)codes->n);
    at_problem_shape(p);
    struct at_tensor *x = &p->tensors[at_op_tensor_index(p->op, "x")];
    struct at_tensor *y = &p->tensors[at_op_tensor_index(p->op, "y")];
    const int64_t bytes = (at_tensor_bytes(x) + 255) / 256 * 256;
    AT_TRY(at_runner_memory(runner, 2 * bytes, &base));
    x->data = base;
    y->data = base + bytes;
    memset(y->data, UNWRITTEN, (size_t)bytes);
    AT_TRY(at_parallel(codes->n, FILL, threads, fill, &(struct filling){ codes, x }));
    AT_TRY(p->op->check(p));
    return at_runner_run(runner, variant, p, 2 * bytes, NULL, at_time_limit(timeout_seconds), reply);
}

int at_special_ran(const struct at_run_reply *reply, char *why, size_t size, int *broken) {
    const int broke = reply->outcome != AT_RUN_UNSUPPORTED;
    if (reply->outcome == AT_RAN)
        return 1;
    snprintf(why, size, "%s%s", broke ? "broke: " : "left out: ", reply->reason);
    *broken += broke;
    return 0;
}
