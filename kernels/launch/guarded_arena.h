/* Device memory for one launch of a stranger's device code: each tensor and the workspace between bands of known bytes.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The block that a job comes in has bands of attest's own, which are judged on the host; these are wider, also stand about the
 * workspace, and follow from a number that no launch sees. */
#ifndef AT_GUARDED_ARENA_H
#define AT_GUARDED_ARENA_H

#include "attest/problem.h"
#include "kernels/launch/driver.h"

enum { AT_BAND_BYTES = 16384 }; /* half of it counts as the tensor's before it, half as the next one's */

struct at_arena {
    const struct at_driver *driver;
    uint64_t memory; /* address on the device; 0: none */
    int64_t bytes;
    uint64_t seed;
    int n;
    struct at_arena_place {
        const char *name;
        int tensor; /* -1: the workspace */
        int64_t offset, bytes;
    } places[AT_MAX_TENSORS + 1];
};

/* Draws the seed; no memory is taken yet. */
void at_arena_init(struct at_arena *arena, const struct at_driver *driver);
void at_arena_release(struct at_arena *arena);

/* Copies the problem's tensors into the arena, poisons `workspace_bytes` of workspace (0xff: NaN in every format), writes the bands;
 * *out and *workspace are where a launch finds them. All of it is done when it returns. AT_ENVIRONMENT. */
at_status at_arena_fill(struct at_arena *arena, const struct at_problem *problem, int64_t workspace_bytes,
                        struct at_problem *out, void **workspace);
/* Looks at the bands after the launch: *damaged, and in `what` who was written past, where. */
at_status at_arena_check(struct at_arena *arena, int *damaged, char *what, size_t size);
/* Copies the tensors back, inputs too: what a launch did to them is for attest to see. Gives a large arena's memory back. */
at_status at_arena_store(struct at_arena *arena, const struct at_problem *problem);

#endif
