/* Vector clocks joined by synchronisations.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simt/clock.h"

#include <string.h>

#include "attest/clones.h"

uint32_t *at_clock_create(void) { return at_simt_allocate(AT_CLOCK_WIDTH_MAX, sizeof(uint32_t), "a barrier's clock"); }

AT_CLONES void at_clock_join(uint32_t *clock, const uint32_t *other, int width) {
    for (int t = 0; t < width; t++)
        clock[t] = other[t] > clock[t] ? other[t] : clock[t];
}

AT_CLONES void at_clock_meet(uint32_t *clock, const uint32_t *other, int width) {
    for (int t = 0; t < width; t++)
        clock[t] = other[t] < clock[t] ? other[t] : clock[t];
}

void at_clock_release(uint32_t *clock, struct at_simt_thread *self) {
    at_clock_join(clock, self->clock, at_clock_width_now(self->in));
    clock[self->index] = self->epoch;
    self->epoch = ++at_simt_machine.now;
}

/* At a barrier of the whole block: the first parts are less than what the block's epoch says, the second parts join. */
static void order_fenced(struct at_simt_block *block) {
    const int n = block->n, rest = at_clock_width(n, 1) - n;
    uint32_t *joined = block->threads[0].clock + n;
    if (!block->fenced)
        return;
    for (int i = 1; i < n; i++)
        at_clock_join(joined, block->threads[i].clock + n, rest);
    for (int i = 1; i < n; i++)
        memcpy(block->threads[i].clock + n, joined, (size_t)rest * sizeof *joined);
}

static void order_some(const struct at_simt_block *block, struct at_simt_thread *const *members, int n) {
    const int width = at_clock_width_now(block);
    uint32_t *joined = members[0]->clock;
    for (int i = 0; i < n; i++)
        members[i]->clock[members[i]->index] = members[i]->epoch;
    for (int i = 1; i < n; i++)
        at_clock_join(joined, members[i]->clock, width);
    for (int i = 1; i < n; i++)
        memcpy(members[i]->clock, joined, (size_t)width * sizeof *joined);
}

void at_clock_order(struct at_simt_block *block, struct at_simt_thread *const *members, int n) {
    const uint32_t now = ++at_simt_machine.now;
    if (n == block->n) {
        block->epoch = now;
        order_fenced(block);
    } else {
        order_some(block, members, n);
    }
    for (int i = 0; i < n; i++)
        members[i]->epoch = now;
}

void at_clock_restart(void) {
    struct at_simt_machine *m = &at_simt_machine;
    m->now = 0;
    for (int i = 0; m->resident && i < AT_RESIDENT_MAX; i++) {
        const struct at_simt_block *block = &m->resident[i];
        if (block->clocks)
            memset(block->clocks, 0,
                   (size_t)block->capacity * (size_t)at_clock_width(block->capacity, 1) * sizeof *block->clocks);
    }
}
