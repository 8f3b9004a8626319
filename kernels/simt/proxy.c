/* Proxy fences: what ordinary stores wrote to shared memory, tensor cores see only when a fence stands on the way.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A write is fenced for a thread when some thread, ordered after the write, put up a fence, and this one is ordered
 * after that: the second part of each thread's `known`, which goes wherever the first part goes. */
#include <string.h>

#include "kernels/simt/machine.h"

/* The first fence of a block: nothing is fenced yet. */
static void begin(struct at_simt_block *block) {
    const int n = block->n, width = at_simt_width(n, 1);
    for (int i = 0; i < n; i++)
        memset(block->threads[i].known + n, 0, (size_t)(width - n) * sizeof(uint32_t));
    for (int i = 0; i < block->n_mbarriers; i++) {
        memset(block->mbarriers[i].known_next + n, 0, (size_t)(width - n) * sizeof(uint32_t));
        memset(block->mbarriers[i].known_done + n, 0, (size_t)(width - n) * sizeof(uint32_t));
    }
    for (int i = 0; i < AT_NAMED_BARRIERS; i++)
        if (block->named[i].known)
            memset(block->named[i].known + n, 0, (size_t)(width - n) * sizeof(uint32_t));
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
    uint32_t *fenced = self->known + block->n;
    for (int t = 0; t < block->n; t++)
        fenced[t] = self->known[t] > fenced[t] ? self->known[t] : fenced[t];
    fenced[self->index] = self->since;
    fenced[block->n] = block->all_since > fenced[block->n] ? block->all_since : fenced[block->n];
    self->since = ++at_simt_machine.now; /* what it writes from here on stands behind the fence */
}

void at_proxy_order(struct at_simt_block *block) {
    const int n = block->n, rest = at_simt_width(n, 1) - n;
    uint32_t *most = block->threads[0].known + n;
    if (!block->fenced)
        return;
    for (int i = 1; i < n; i++)
        for (int t = 0; t < rest; t++) {
            const uint32_t other = block->threads[i].known[n + t];
            most[t] = other > most[t] ? other : most[t];
        }
    for (int i = 1; i < n; i++)
        memcpy(block->threads[i].known + n, most, (size_t)rest * sizeof *most);
}
