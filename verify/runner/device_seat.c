/* Seats on devices, and devices that are given up.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/runner/device_seat.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct at_device_pool {
    const char *spec;
    const struct at_device_list *list;
    const struct at_sandbox *box;
    pthread_mutex_t lock;
    int n, left;
    int strikes[AT_MAX_DEVICES], lost[AT_MAX_DEVICES];
    char device[256]; /* what the first one calls itself; "" before */
};

at_status at_device_pool_create(const char *spec, const struct at_device_list *list, const struct at_sandbox *box,
                                struct at_device_pool **pool) {
    *pool = calloc(1, sizeof **pool);
    if (!*pool)
        return AT_FAIL(AT_NO_MEMORY, "no memory for devices");
    **pool = (struct at_device_pool){ .spec = spec, .list = list, .box = box, .n = list->n ? list->n : 1 };
    (*pool)->left = (*pool)->n;
    pthread_mutex_init(&(*pool)->lock, NULL);
    return AT_OK;
}

void at_device_pool_destroy(struct at_device_pool *pool) {
    if (pool)
        pthread_mutex_destroy(&pool->lock);
    free(pool);
}

int at_device_pool_left(struct at_device_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    const int left = pool->left;
    pthread_mutex_unlock(&pool->lock);
    return left;
}

static const char *name_of(const struct at_device_pool *pool, int device) {
    return pool->list->n ? pool->list->name[device] : NULL;
}

/* Under the lock. The last one is never given up: what fails there fails. */
static void lose(struct at_device_pool *pool, int device, const char *why) {
    if (pool->lost[device] || pool->left == 1)
        return;
    pool->lost[device] = 1;
    pool->left--;
    fprintf(stderr, "attest: device %s is given up, %d left: %s\n", name_of(pool, device), pool->left, why);
}

static at_status open_on(struct at_device_pool *pool, int device, struct at_runner **runner) {
    AT_TRY(at_runner_open_on(pool->spec, pool->box, name_of(pool, device), runner));
    const char *text = at_runner_device(*runner);
    pthread_mutex_lock(&pool->lock);
    if (!pool->device[0])
        snprintf(pool->device, sizeof pool->device, "%s", text);
    const int same = strcmp(pool->device, text) == 0;
    pthread_mutex_unlock(&pool->lock);
    if (same)
        return AT_OK;
    const at_status status =
        AT_FAIL(AT_USAGE, "device %s is '%.100s', another is '%.100s': wanted devices of one kind, or a run for each",
                name_of(pool, device) ? name_of(pool, device) : "0", text, pool->device);
    at_runner_close(*runner);
    *runner = NULL;
    return status;
}

/* The first device from `from` on that is not lost, nor `but`, and that opens. AT_OK with *runner NULL: there is none. */
static at_status open_any(struct at_device_pool *pool, int from, int but, struct at_runner **runner, int *device) {
    at_status status = AT_OK;
    *runner = NULL;
    for (int k = 0; k < pool->n; k++) {
        const int i = (from + k) % pool->n;
        pthread_mutex_lock(&pool->lock);
        const int lost = pool->lost[i];
        pthread_mutex_unlock(&pool->lock);
        if (lost || i == but)
            continue;
        *device = i;
        status = open_on(pool, i, runner);
        if (status == AT_OK || status == AT_USAGE || pool->n == 1)
            return status;
        pthread_mutex_lock(&pool->lock);
        lose(pool, i, at_error_message());
        pthread_mutex_unlock(&pool->lock);
    }
    return status;
}

at_status at_device_seat_open(struct at_device_pool *pool, int i, struct at_device_seat *seat) {
    *seat = (struct at_device_seat){ .pool = pool };
    return open_any(pool, i % pool->n, -1, &seat->runner, &seat->device);
}

void at_device_seat_close(struct at_device_seat *seat) {
    at_runner_close(seat->runner);
    at_runner_close(seat->other);
    *seat = (struct at_device_seat){ .pool = seat->pool };
}

at_status at_device_seat_other(struct at_device_seat *seat, struct at_runner **other) {
    at_status status = AT_OK;
    if (!seat->other) {
        status = open_any(seat->pool, seat->device + 1, seat->device, &seat->other, &seat->other_device);
        if (status != AT_OK && status != AT_USAGE)
            status = AT_OK; /* none that serves */
    }
    *other = seat->other;
    return status;
}

void at_device_seat_blame(struct at_device_seat *seat, int cannot_serve) {
    struct at_device_pool *pool = seat->pool;
    pthread_mutex_lock(&pool->lock);
    if (cannot_serve)
        lose(pool, seat->device, "it does not start again");
    else if (++pool->strikes[seat->device] >= AT_DEVICE_STRIKES)
        lose(pool, seat->device, "jobs that failed on it were done by another");
    const int lost = pool->lost[seat->device];
    pthread_mutex_unlock(&pool->lock);
    if (!lost || !seat->other)
        return;
    at_runner_close(seat->runner);
    seat->runner = seat->other;
    seat->device = seat->other_device;
    seat->other = NULL;
}
