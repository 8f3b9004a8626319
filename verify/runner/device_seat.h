/* A runner on one of several devices, and on another one where that fails.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A kernel that crashes and a device that is broken look alike from one device. What fails on one is tried on another: if it
 * fails there too, it is the kernel; if not, the device is to blame, and after AT_DEVICE_STRIKES of these nobody uses it any
 * more. */
#ifndef AT_DEVICE_SEAT_H
#define AT_DEVICE_SEAT_H

#include "verify/runner/devices.h"
#include "verify/runner/runner.h"

enum { AT_DEVICE_STRIKES = 2 };

/* What threads share. */
struct at_device_pool;
/* An empty list: one device, which has no name. spec, list and box must outlive the pool. */
at_status at_device_pool_create(const char *spec, const struct at_device_list *list, const struct at_sandbox *box,
                                struct at_device_pool **pool);
void at_device_pool_destroy(struct at_device_pool *pool); /* NULL is allowed */
/* Devices that are not given up. */
int at_device_pool_left(struct at_device_pool *pool);

/* A thread's own. All zero: nothing is open. */
struct at_device_seat {
    struct at_device_pool *pool;
    struct at_runner *runner; /* on `device` */
    struct at_runner *other;  /* on `other_device`, from the first retry on; NULL before */
    int device, other_device;
};

/* Opens the i-th seat, on device i modulo their number, or the next one that serves; one that does not is given up, said on
 * stderr. The last failure's status when none does; AT_USAGE where devices call themselves otherwise than the first: an
 * archive is of one kind of device. */
at_status at_device_seat_open(struct at_device_pool *pool, int i, struct at_device_seat *seat);
void at_device_seat_close(struct at_device_seat *seat);
/* A runner on another device that is left, in *other; NULL when there is none. */
at_status at_device_seat_other(struct at_device_seat *seat, struct at_runner **other);
/* What failed on the seat's device was done by the other one, which the seat moves to when the device is given up: after
 * AT_DEVICE_STRIKES, or at once where it `cannot_serve`. */
void at_device_seat_blame(struct at_device_seat *seat, int cannot_serve);

#endif
