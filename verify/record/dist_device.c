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
    struct at_device_seat seat;
    uint64_t launches; /* marks and guards differ from one to the next */
};

static int is_counting(const struct at_variant *v) { return strcmp(v->family, "score_counts") == 0; }

at_status at_dist_device_open(struct at_device_pool *pool, int i, struct at_dist_device **device) {
    struct at_dist_device *x = calloc(1, sizeof *x);
    at_status status = AT_OK;
    int found = 0;
    *device = NULL;
    if (!x)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a device");
    AT_TRY_OUT(at_device_seat_open(pool, i, &x->seat));
    for (int v = 0; v < at_runner_variant_count(x->seat.runner); v++)
        found |= is_counting(at_runner_variant(x->seat.runner, v));
    if (!found)
        AT_FAIL_OUT(AT_UNSUPPORTED, "--runner: %.64s has no kernel of score_counts", at_runner_device(x->seat.runner));
    *device = x;
out:
    if (status != AT_OK)
        at_dist_device_close(x);
    return status;
}

void at_dist_device_close(struct at_dist_device *device) {
    if (device)
        at_device_seat_close(&device->seat);
    free(device);
}

/* One launch: *taken when the variant took the problem, and `outputs` are right in form. */
static at_status launch(struct at_dist_device *device, struct at_runner *runner, int i, const struct at_problem *p,
                        int *taken, struct at_run_reply *reply, struct at_outputs *outputs) {
    const double work = p->op->row_work(p, 0) * (double)p->sizes.h;
    const char *name = at_runner_variant(runner, i)->name;
    AT_TRY(at_guarded_launch(runner, i, p, AT_POISON_JUDGED, NULL, ++device->launches,
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
static at_status run(struct at_dist_device *device, struct at_runner *runner, const struct at_dist_unit *unit,
                     const struct at_problem *p, struct at_outputs *outputs) {
    struct at_run_reply reply = { .reason = "" };
    int taken = 0;
    for (int i = at_runner_variant_count(runner) - 1; i >= 0 && !taken; i--) {
        if (!is_counting(at_runner_variant(runner, i)))
            continue;
        at_outputs_release(outputs);
        AT_TRY(launch(device, runner, i, p, &taken, &reply, outputs));
    }
    return taken ? AT_OK
                 : AT_FAIL(AT_UNSUPPORTED, "request %lld: no kernel of the runner takes it: %.300s",
                           (long long)unit->request, reply.reason);
}

/* On another device what failed on this one. Nothing was added to any sum yet. */
static at_status run_elsewhere(struct at_dist_device *device, at_status status, const struct at_dist_unit *unit,
                               const struct at_problem *p, struct at_outputs *outputs) {
    char why[AT_ERROR_MESSAGE_BYTES];
    struct at_runner *other = NULL;
    snprintf(why, sizeof why, "%s", at_error_message());
    AT_TRY(at_device_seat_other(&device->seat, &other));
    if (!other || run(device, other, unit, p, outputs) != AT_OK)
        return AT_FAIL(status, "%s", why);
    /* a device or a kernel that fails now and then: never without a word */
    fprintf(stderr,
            "attest: request %lld, queries from %lld on: failed on one device and not on another, which counts: %s\n",
            (long long)unit->request, (long long)unit->first_query, why);
    at_device_seat_blame(&device->seat, status == AT_ENVIRONMENT);
    return AT_OK;
}

static at_status add(const struct at_dist_unit *unit, const struct at_problem *p, struct at_outputs *outputs,
                     pthread_mutex_t *lock, struct at_dist_layer *layer) {
    if (lock)
        pthread_mutex_lock(lock);
    const at_status status = at_dist_outputs_add(unit, p, outputs->tensors, layer);
    if (lock)
        pthread_mutex_unlock(lock);
    return status;
}

static at_status count_here(struct at_dist_workers *workers, pthread_mutex_t *lock, const struct at_dist_unit *unit,
                            struct at_dist_layer *layer) {
    if (lock)
        pthread_mutex_lock(lock);
    const at_status status = at_dist_count_unit(workers, unit, layer);
    if (lock)
        pthread_mutex_unlock(lock);
    return status;
}

at_status at_dist_device_count(struct at_dist_device *device, pthread_mutex_t *lock, struct at_dist_workers *workers,
                               const struct at_dist_unit *unit, struct at_dist_layer *layer) {
    struct at_dist_problem x;
    struct at_outputs outputs = { 0 };
    at_status status = AT_OK;
    if (unit->tile == 0 || unit->keys == 0)
        return count_here(workers, lock, unit, layer);
    AT_TRY(at_dist_problem_make(unit, &layer->shape, &x));
    status = run(device, device->seat.runner, unit, &x.problem, &outputs);
    if (status != AT_OK && status != AT_NO_MEMORY && at_device_pool_left(device->seat.pool) > 1)
        status = run_elsewhere(device, status, unit, &x.problem, &outputs);
    if (status == AT_OK)
        status = add(unit, &x.problem, &outputs, lock, layer);
    at_outputs_release(&outputs);
    at_dist_problem_release(&x);
    return status;
}
