/* Proxy fences: what ordinary stores wrote to shared memory, tensor cores see only when a fence stands on the way.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A write is fenced for a thread when some thread, ordered after the write, put up a fence, and this one is ordered
 * after that: the second part of each clock, which goes wherever the first part goes. */
#include <string.h>

#include "kernels/simt/clock.h"
#include "kernels/simt/left_out.h"

/* The first fence of a block: nothing is fenced yet. Clocks of barriers begin with zeros in their second parts. */
static void begin(struct at_simt_block *block) {
    const int n = block->n, width = at_clock_width(n, 1);
    for (int i = 0; i < n; i++)
        memset(block->threads[i].clock + n, 0, (size_t)(width - n) * sizeof(uint32_t));
    block->fenced = 1;
}

void at_simt_proxy_fence(struct at_simt_place place) {
    if (at_simt_leaves_out(place))
        return;
    struct at_simt_thread *self = at_simt_thread();
    struct at_simt_block *block = self->in;
    self->place = place;
    if (!block->fenced)
        begin(block);
    uint32_t *fenced = self->clock + block->n;
    at_clock_join(fenced, self->clock, block->n);
    fenced[self->index] = self->epoch;
    fenced[block->n] = block->epoch > fenced[block->n] ? block->epoch : fenced[block->n];
    self->epoch = ++at_simt_machine.now; /* what it writes from here on stands behind the fence */
}
