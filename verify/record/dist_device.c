/* Counting a unit through a runner.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/record/dist_device.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/runner/launch.h"

/* The SIMT machine does some 10^7 multiply-adds a second. */
static const double LEAST_SECONDS = 60, WORK_A_SECOND = 2e6;

struct at_dist_device {
    struct at_runner *runner;
    uint64_t launches; /* marks and guards differ from one to the next */
};

static int is_counting(const struct at_variant *v) { return strcmp(v->family, "score_counts") == 0; }

at_status at_dist_device_open(const char *spec, struct at_dist_device **device) {
    struct at_dist_device *x = calloc(1, sizeof *x);
    at_status status = AT_OK;
    int found = 0;
    *device = NULL;
    if (!x)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a device");
    AT_TRY_OUT(at_runner_open(spec, &x->runner));
    for (int i = 0; i < at_runner_variant_count(x->runner); i++)
        found |= is_counting(at_runner_variant(x->runner, i));
    if (!found)
        AT_FAIL_OUT(AT_UNSUPPORTED, "--runner '%.64s': has no kernel of score_counts", spec);
    *device = x;
out:
    if (status != AT_OK)
        at_dist_device_close(x);
    return status;
}

void at_dist_device_close(struct at_dist_device *device) {
    if (device && device->runner)
        at_runner_close(device->runner);
    free(device);
}

/* One launch: *taken when the variant took the problem, and `outputs` are right in form. */
static at_status launch(struct at_dist_device *device, int i, const struct at_problem *p, int *taken,
                        struct at_run_reply *reply, struct at_outputs *outputs) {
    const double work = p->op->row_work(p, 0) * (double)p->sizes.h;
    const char *name = at_runner_variant(device->runner, i)->name;
    AT_TRY(at_guarded_launch(device->runner, i, p, AT_POISON_JUDGED, NULL, ++device->launches,
                             fmax(LEAST_SECONDS, work / WORK_A_SECOND), reply, outputs));
    *taken = reply->outcome == AT_RAN;
    if (reply->outcome == AT_RUN_UNSUPPORTED)
        return AT_OK;
    if (reply->outcome != AT_RAN)
        return AT_FAIL(AT_UNSUPPORTED, "score_counts/%s: failed: %.300s", name, reply->reason);
    for (int t = 0; outputs->is_dirty && t < AT_MAX_TENSORS; t++)
        if (outputs->dirty[t][0])
            return AT_FAIL(AT_UNSUPPORTED, "score_counts/%s: %.180s", name, outputs->dirty[t]);
    return AT_OK;
}

/* The last variant that takes it: higher numbers are later ideas. */
static at_status run(struct at_dist_device *device, const struct at_dist_unit *unit, const struct at_problem *p,
                     struct at_outputs *outputs) {
    struct at_run_reply reply = { .reason = "" };
    int taken = 0;
    for (int i = at_runner_variant_count(device->runner) - 1; i >= 0 && !taken; i--) {
        if (!is_counting(at_runner_variant(device->runner, i)))
            continue;
        at_outputs_release(outputs);
        AT_TRY(launch(device, i, p, &taken, &reply, outputs));
    }
    return taken ? AT_OK
                 : AT_FAIL(AT_UNSUPPORTED, "request %lld: no kernel of the runner takes it: %.300s",
                           (long long)unit->request, reply.reason);
}

at_status at_dist_device_count(struct at_dist_device *device, struct at_dist_workers *workers,
                               const struct at_dist_unit *unit, struct at_dist_layer *layer) {
    struct at_dist_problem x;
    struct at_outputs outputs = { 0 };
    at_status status = AT_OK;
    if (unit->tile == 0 || unit->keys == 0)
        return at_dist_count_unit(workers, unit, layer);
    AT_TRY(at_dist_problem_make(unit, &layer->shape, &x));
    AT_TRY_OUT(run(device, unit, &x.problem, &outputs));
    AT_TRY_OUT(at_dist_outputs_add(unit, &x.problem, outputs.tensors, layer));
out:
    at_outputs_release(&outputs);
    at_dist_problem_release(&x);
    return status;
}
