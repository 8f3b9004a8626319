/* What is remembered of every four bytes of memory that threads share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_SHADOW_H
#define AT_SIMT_SHADOW_H

#include "kernels/simt/memory.h"

/* The last write, and the readers since, of four bytes; or, once somebody touched fewer of them, of one byte in a cell
 * of its own. Times are those of at_simt_machine.now when the accessing thread's stretch began. */
struct at_shadow_cell {
    uint32_t write_time, write_block; /* block numbers modulo 2^32 */
    uint32_t read_time, read_block;   /* time: the latest of the readers' */
    /* Readers of one block. As long as all have read_time: the lanes of whole_warps x whole_lanes, and last_lanes of
     * last_warp. Otherwise a vector of their times by thread, number `readers` of the launch; who came last is the lane
     * of last_lanes of last_warp. */
    uint32_t whole_warps, whole_lanes, last_lanes, readers;
    uint32_t bytes;        /* number of the four cells that stand for this one; 0: none */
    uint16_t write_thread; /* AT_BLOCK_MOST and more: a bulk copy by mbarrier number write_thread - AT_BLOCK_MOST */
    uint16_t async_reads;  /* wgmma and bulk stores that read it and have not been waited for */
    uint8_t last_warp, write_atomic : 1, read_by_blocks : 1, /* readers in several blocks */
        in_flight : 1;                                       /* the write is a copy that has not been waited for */
};

enum { AT_GRANULE = 4 };

/* Checks and records one access of the running thread: there is one, and accesses are checked. `where`: a return address
 * inside the kernel, for the message. */
void at_shadow_access(const void *address, int bytes, enum at_access access, const void *where);
void at_shadow_read(const void *address, int bytes, const void *where);
void at_shadow_write(const void *address, int bytes, const void *where);
/* The same for what is not an access of the compiler's: findings name the thread's place, `site` is for counting. */
void at_shadow_access_at(const void *address, int bytes, enum at_access access, const void *site);
/* A copy of the running thread lands: its source is read again, its destination is written now. */
void at_shadow_landed(const void *to, const void *from, int bytes);
/* wgmma reads `bytes` of shared memory for the running thread (AT_ACCESS_MULTIPLY), until it has been waited for. */
void at_shadow_multiplied(const void *address, int bytes);
/* A bulk load by mbarrier number m, issued by the running thread: AT_ACCESS_BULK_WRITE or AT_ACCESS_BULK_LANDING. */
void at_shadow_bulk(const void *to, int bytes, int m, enum at_access access);
/* Forgets cells of single bytes (the job before ends), and vectors of readers (a launch begins). */
void at_shadow_job(void);
void at_shadow_launch(void);

/* readers.c: all reads a cell remembers are of this launch and of self's block. */
/* Some thread whose read is not ordered before what self does now; -1: there is none. `recent`: some read is of the
 * time since the last barrier of the whole block. */
int at_readers_recent_unordered(const struct at_shadow_cell *cell, const struct at_simt_thread *self);
static inline int at_readers_unordered(const struct at_shadow_cell *cell, const struct at_simt_thread *self) {
    return cell->read_time < self->in->all_since ? -1 : at_readers_recent_unordered(cell, self);
}
void at_readers_clear(struct at_shadow_cell *cell);
void at_readers_add(struct at_shadow_cell *cell, const struct at_simt_thread *self);
/* Gives a copied cell a vector of its own. */
void at_readers_copied(struct at_shadow_cell *cell);
void at_readers_launch(void);

/* Whether what `thread` of self's block did in a stretch begun at `time` is ordered before what self does now. */
static inline int at_shadow_knows(const struct at_simt_thread *self, int thread, uint32_t time) {
    if (thread >= AT_BLOCK_MOST) /* no barrier helps where nobody has waited for the mbarrier */
        return self->in->fenced && self->known[2 * self->in->n + 1 + thread - AT_BLOCK_MOST] >= time;
    return thread == self->index || time < self->in->all_since || self->known[thread] >= time;
}

/* Whether a proxy fence stands between that write and what self does now. */
static inline int at_shadow_fenced(const struct at_simt_thread *self, int thread, uint32_t time) {
    const uint32_t *fenced = self->known + self->in->n;
    return self->in->fenced && (time < fenced[self->in->n] || fenced[thread] >= time);
}

#endif
