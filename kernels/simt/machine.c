/* Whose turn it is: the lanes of a warp run one after another, each until it needs others.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simt/machine.h"

#include <stdio.h>
#include <stdlib.h>

struct at_simt_machine at_simt_machine;
struct at_simt_self *at_simt_current;

/* splitmix64: orders need variety, not quality. */
uint32_t at_simt_random_below(uint32_t n) {
    uint64_t z = at_simt_machine.random += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) % n);
}

/* The warp whose turn it is: its lanes run one after another, each once, and hand the processor on themselves. */
static struct {
    const struct at_simt_block *block;
    int first, lane, step; /* thread of lane 0; the lane that comes next */
    int left, ran;         /* lanes that have not been looked at; those that ran */
} turn;

/* Has the processor fetch where a thread's stack goes on, meanwhile: each lane's is in a page of its own. */
static void fetch_stack(int index) {
    if (index >= turn.block->n)
        return;
    const char *saved = turn.block->threads[index].fiber.saved;
    __builtin_prefetch(saved);
    __builtin_prefetch(saved + 64);
}

/* The next lane that is ready, made the running one; NULL: the scheduler goes on. */
static struct at_simt_thread *next_lane(void) {
    while (turn.left > 0 && !at_simt_machine.stop) {
        const int index = turn.first + turn.lane;
        struct at_simt_thread *t = &turn.block->threads[index < turn.block->n ? index : 0];
        turn.left--;
        turn.lane = (turn.lane + turn.step) % AT_WARP;
        if (index >= turn.block->n || t->state != AT_THREAD_READY)
            continue;
        turn.ran++;
        fetch_stack(turn.first + turn.lane);
        at_simt_current = &t->self;
        return t;
    }
    return NULL;
}

void at_simt_wait(void) {
    struct at_simt_thread *self = at_simt_thread();
    const struct at_simt_thread *next = next_lane();
    at_fiber_switch(&self->fiber.saved, next ? next->fiber.saved : at_simt_machine.scheduler);
}

int at_simt_run_warp(const struct at_simt_block *block, int warp) {
    const uint32_t choice = at_simt_machine.seeded ? at_simt_random_below(2 * AT_WARP) : 0;
    turn.block = block;
    turn.first = warp * AT_WARP;
    turn.lane = (int)choice % AT_WARP;
    turn.step = choice < AT_WARP ? 1 : AT_WARP - 1;
    turn.left = AT_WARP;
    turn.ran = 0;
    const struct at_simt_thread *t = next_lane();
    if (t)
        at_fiber_switch(&at_simt_machine.scheduler, t->fiber.saved);
    at_simt_current = NULL;
    return turn.ran;
}

void *at_simt_allocate(size_t n, size_t bytes, const char *what) {
    void *memory = calloc(n, bytes);
    if (!memory) {
        fprintf(stderr, "attest-cpu: no memory for %s\n", what);
        exit(3);
    }
    return memory;
}
