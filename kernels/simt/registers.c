/* setmaxnreg: the registers that warpgroups of a block give and take.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A block of n threads begins with 65536 / n registers a thread, down to a multiple of 8 and at most 255: what the
 * compiler has when the kernel bounds its launch to n threads and one block. Taking waits until others have given. */
#include "kernels/simt/registers.h"

#include <stdio.h>
#include <string.h>

#include "kernels/simt/finding.h"
#include "kernels/simt/simt_registers.h"
#include "kernels/simt/warp.h"

enum { ALL = 65536, EACH_MIN = 24, EACH_MAX = 256, GROUP_THREADS = AT_WARPGROUP_WARPS * AT_WARP };
enum { GROUPS_MAX = AT_BLOCK_MAX / GROUP_THREADS };

/* Registers of the block's warpgroups, once one has given or taken some. */
struct at_register_file {
    int in_use, free;                         /* free: of the block's, held by none */
    int each[GROUPS_MAX], wanted[GROUPS_MAX]; /* a thread's; wanted 0: it waits for none */
    int warps[GROUPS_MAX];                    /* that have come to the present setmaxnreg */
    struct at_simt_place place[GROUPS_MAX];   /* of that */
};

void at_registers_begin(struct at_simt_block *block) {
    if (!block->registers)
        block->registers = at_simt_allocate(1, sizeof *block->registers, "registers");
    memset(block->registers, 0, sizeof *block->registers);
}

static void begin(struct at_simt_block *block) {
    struct at_register_file *r = block->registers;
    const int each = ALL / block->n / 8 * 8;
    r->in_use = 1;
    for (int g = 0; g * GROUP_THREADS < block->n; g++)
        r->each[g] = each < EACH_MAX - 1 ? each : EACH_MAX - 1;
}

/* Grants the requests that the free registers cover. */
static void grant(struct at_simt_block *block) {
    struct at_register_file *r = block->registers;
    for (int g = 0; g * GROUP_THREADS < block->n; g++) {
        const int more = (r->wanted[g] - r->each[g]) * GROUP_THREADS;
        if (!r->wanted[g] || more > r->free)
            continue;
        r->free -= more;
        r->each[g] = r->wanted[g];
        r->wanted[g] = 0;
        for (int i = g * GROUP_THREADS; i < (g + 1) * GROUP_THREADS; i++)
            if (block->threads[i].state == AT_THREAD_IN_REGISTERS)
                block->threads[i].state = AT_THREAD_READY;
    }
}

/* A warp has met. The last warp of the warpgroup gives or takes. */
static void come(struct at_simt_thread *const *members, int n) {
    struct at_simt_block *block = members[0]->in;
    struct at_register_file *r = block->registers;
    const int group = members[0]->index / GROUP_THREADS, count = members[0]->from / 2, more = members[0]->from % 2;
    if (r->warps[group] && strcmp(r->place[group].file, members[0]->place.file) == 0 &&
        r->place[group].line != members[0]->place.line)
        at_simt_report(AT_FINDING_RACE, members[0]->place,
                       "block %lld: thread %d is at this setmaxnreg while another warp of its warpgroup is at that of "
                       "%s:%d",
                       (long long)block->number, members[0]->index, r->place[group].file, r->place[group].line);
    r->place[group] = members[0]->place;
    for (int i = 0; i < n; i++)
        members[i]->state = AT_THREAD_IN_REGISTERS;
    if (++r->warps[group] < AT_WARPGROUP_WARPS)
        return;
    r->warps[group] = 0;
    if (more ? count < r->each[group] : count > r->each[group])
        at_simt_report(AT_FINDING_BOUNDS, members[0]->place,
                       "block %lld: thread %d and its warpgroup go from %d registers to %d, which is not %s",
                       (long long)block->number, members[0]->index, r->each[group], count, more ? "more" : "fewer");
    r->wanted[group] = count; /* fewer, and they are there at once */
    grant(block);
    grant(block);
}

void at_simt_registers(int more, int count, struct at_simt_place place) {
    struct at_simt_thread *self = at_simt_thread();
    struct at_simt_block *block = self->in;
    self->place = place;
    if (count < EACH_MIN || count > EACH_MAX || count % 8)
        at_simt_report(AT_FINDING_BOUNDS, place,
                       "block %lld: thread %d sets %d registers; wanted a multiple of 8 from 24 to 256",
                       (long long)block->number, self->index, count);
    if ((self->index / GROUP_THREADS + 1) * GROUP_THREADS > block->n)
        at_simt_report(AT_FINDING_RACE, place,
                       "block %lld: thread %d sets registers outside a warpgroup: the block has %d threads",
                       (long long)block->number, self->index, block->n);
    if (!block->registers->in_use)
        begin(block);
    at_warp_operation(AT_SIMT_REGISTERS, 0xffffffffu, 0, 2 * count + (more != 0), NULL, come, place);
    while (self->state == AT_THREAD_IN_REGISTERS)
        at_simt_wait();
}

void at_registers_waits(const struct at_simt_block *block, char *text, size_t size) {
    const struct at_register_file *r = block->registers;
    for (int g = 0; r->in_use && g * GROUP_THREADS < block->n; g++) {
        const size_t used = strlen(text);
        if (r->warps[g])
            snprintf(text + used, size - used, "; %d warps of warpgroup %d at the setmaxnreg of %s:%d", r->warps[g], g,
                     r->place[g].file, r->place[g].line);
        else if (r->wanted[g])
            snprintf(text + used, size - used, "; warpgroup %d for %d registers a thread instead of %d, %d are free", g,
                     r->wanted[g], r->each[g], r->free);
    }
}
