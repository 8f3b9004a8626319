/* Seats for a study's workers, and steps that whoever is free takes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/study/study_devices.h"

#include <stdio.h>
#include <string.h>

#include "attest/env.h"

at_status at_study_devices_open(const struct at_args *args, struct at_study_devices *d) {
    memset(d, 0, sizeof *d);
    AT_TRY(at_devices_parse(at_args_get(args, "--devices"), &d->list));
    AT_TRY(at_device_pool_create(at_args_get(args, "--runner"), &d->list, NULL, &d->pool));
    d->n = (at_threads() > 1 ? AT_RUNNERS_A_DEVICE : 1) * (d->list.n ? d->list.n : 1);
    const at_status status = at_device_seat_open(d->pool, 0, &d->seats[0]);
    if (status == AT_OK)
        snprintf(d->device, sizeof d->device, "%s", at_runner_device(d->seats[0].runner));
    else
        at_study_devices_close(d);
    return status;
}

void at_study_devices_close(struct at_study_devices *d) {
    for (int i = 0; i < d->n; i++)
        at_device_seat_close(&d->seats[i]);
    at_device_pool_destroy(d->pool);
    memset(d, 0, sizeof *d);
}

struct at_runner *at_study_devices_first(const struct at_study_devices *d) {
    return d->seats[0].runner;
}

struct steps {
    struct at_study_devices *devices;
    at_status (*step)(void *context, int64_t i, struct at_runner *runner);
    void *context;
};

static int is_of_the_device(at_status status) {
    return status == AT_CRASHED || status == AT_HUNG || status == AT_PROTOCOL || status == AT_ENVIRONMENT;
}

static at_status take_step(void *context, int64_t begin, int64_t end, int worker) {
    const struct steps *s = context;
    struct at_device_seat *seat = &s->devices->seats[worker];
    struct at_runner *other = NULL;
    (void)end;
    if (!seat->runner)
        AT_TRY(at_device_seat_open(s->devices->pool, worker, seat));
    at_status status = s->step(s->context, begin, seat->runner);
    if (!is_of_the_device(status) || at_device_pool_left(s->devices->pool) < 2)
        return status;
    const int cannot_serve = status == AT_ENVIRONMENT;
    AT_TRY(at_device_seat_other(seat, &other));
    if (!other)
        return status;
    status = s->step(s->context, begin, other);
    if (status == AT_OK)
        at_device_seat_blame(seat, cannot_serve);
    return status;
}

at_status at_study_devices_run(struct at_study_devices *d, int64_t n,
                               at_status (*step)(void *context, int64_t i, struct at_runner *runner), void *context) {
    struct steps s = { d, step, context };
    return at_parallel(n, 1, d->n, take_step, &s);
}
