/* A thread for each device, and a list that they take from.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/record/dist_turns.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "attest/env.h"

struct round {
    struct at_dist_turns *turns;
    pthread_mutex_t lock;
    int64_t layer, n, next;
    const int64_t *requests;
    struct at_dist_layer *sums;
    struct at_dist_unit_row *rows;
    double until;
    at_status failed;
    char failure[AT_ERROR_MESSAGE_BYTES];
};

struct turn {
    struct round *round;
    struct at_dist_recording *on;
    pthread_t thread;
    int started;
};

/* The place of the next request in the list; -1: none. */
static int64_t take(struct round *r) {
    int64_t at = -1;
    pthread_mutex_lock(&r->lock);
    if (r->failed == AT_OK && r->next < r->n && (r->next == 0 || at_seconds() < r->until)) {
        at = r->next++;
        r->turns->begin(r->turns->context, r->requests[at]);
    }
    pthread_mutex_unlock(&r->lock);
    return at;
}

static void fail(struct round *r, at_status status) {
    pthread_mutex_lock(&r->lock);
    if (r->failed == AT_OK) {
        r->failed = status;
        snprintf(r->failure, sizeof r->failure, "%s", at_error_message());
    }
    pthread_mutex_unlock(&r->lock);
}

static void *run(void *context) {
    struct turn *t = context;
    struct round *r = t->round;
    at_status status = AT_OK;
    for (int64_t at; status == AT_OK && (at = take(r)) >= 0;)
        status = at_dist_recording_unit(t->on, r->turns->workers, r->layer, r->requests[at], r->sums, &r->rows[at],
                                        r->turns->step, r->turns->context);
    if (status != AT_OK)
        fail(r, status);
    return NULL;
}

at_status at_dist_turns_run(struct at_dist_turns *turns, int64_t i, const int64_t *requests, int64_t n,
                            struct at_dist_layer *layer, struct at_dist_unit_row *rows, double until, int64_t *done) {
    struct round r = { .turns = turns,
                       .lock = PTHREAD_MUTEX_INITIALIZER,
                       .layer = i,
                       .n = n,
                       .requests = requests,
                       .sums = layer,
                       .rows = rows,
                       .until = until };
    struct turn *all = calloc((size_t)turns->n, sizeof *all);
    *done = 0;
    if (turns->n < 1) {
        free(all);
        return AT_FAIL(AT_BUG, "%d devices", turns->n);
    }
    if (!all)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %d devices", turns->n);
    for (int k = 0; k < turns->n; k++) {
        all[k] = (struct turn){ .round = &r, .on = &turns->on[k] };
        turns->on[k].lock = turns->n > 1 ? &r.lock : NULL;
        if (k)
            all[k].started = pthread_create(&all[k].thread, NULL, run, &all[k]) == 0;
    }
    run(&all[0]);
    for (int k = 0; k < turns->n; k++) {
        if (all[k].started)
            pthread_join(all[k].thread, NULL);
        turns->on[k].lock = NULL;
    }
    free(all);
    pthread_mutex_destroy(&r.lock);
    *done = r.next;
    return r.failed == AT_OK ? AT_OK : AT_FAIL(r.failed, "%s", r.failure);
}
