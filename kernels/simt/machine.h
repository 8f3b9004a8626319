/* The core of the SIMT machine: threads, warps and blocks of the launch that is running, and whose turn it is.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The parts (barriers, copies, tensor cores, ...) build on this header, each with a header of its own. What a part keeps
 * for each block it defines itself; a block holds a pointer to it. */
#ifndef AT_SIMT_MACHINE_H
#define AT_SIMT_MACHINE_H

#include "kernels/simt/fiber.h"
#include "kernels/simt/simt.h"

enum { AT_WARP = 32, AT_BLOCK_MAX = 1024, AT_WARPS_MAX = AT_BLOCK_MAX / AT_WARP, AT_WARPGROUP_WARPS = 4 };
enum { AT_SHARED_MAX = 227 * 1024, AT_SHARED_VARIABLES = 64, AT_MBARRIERS_MAX = 64, AT_RESIDENT_MAX = 16 };
enum { AT_ARENA_BYTES = AT_SHARED_MAX + 1024 }; /* an index past the end of shared memory is still in the arena */
enum at_thread_state {
    AT_THREAD_READY,
    AT_THREAD_IN_WARP,
    AT_THREAD_IN_BARRIER,
    AT_THREAD_IN_NAMED,
    AT_THREAD_IN_MBARRIER,
    AT_THREAD_IN_REGISTERS,
    AT_THREAD_IN_CLUSTER,
    AT_THREAD_LEFT
};

struct at_simt_thread {
    struct at_simt_self self; /* first: at_simt_current points here */
    struct at_simt_block *in;
    struct at_fiber fiber;
    uint64_t unwatched; /* bytes of its stack where nobody looks at what it does: all, or none (wgmma_registers.h) */
    int index;          /* within the block */
    enum at_thread_state state;
    struct at_simt_place place; /* where it waits, or where it was last seen */
    /* warp.h: the operation it waits in. */
    enum at_simt_warp_kind kind;
    uint32_t mask;
    uint64_t value, result;
    int from;            /* lane of a shuffle; instruction of an mma; shape of a matrix load; ... */
    const void *deposit; /* what the lane hands in, on its own stack */
    /* named_barrier.h, mbarrier.h: the barrier it waits at, by id or number; the parity of the phase it waits for. */
    int barrier;
    uint32_t parity;
    /* pending_copy.h: the group not committed yet; its first and last copy in flight, 0: none. */
    uint32_t copy_group, first_copy, last_copy;
    uint32_t epoch, *clock; /* clock.h */
    /* cluster.h: the phase of the cluster's barrier in which it has arrived and not waited, counted from 1; 0: none.
     * How many phases it has waited for, and when the last of them opened. */
    uint32_t cluster_arrived, cluster_waits, cluster_opened;
    uint32_t bulk_group;   /* bulk.h: of its stores, the group not committed yet */
    int waited_for_others; /* dependent.h */
};

struct at_shared_variable {
    const void *key;
    int64_t offset, bytes;
};

/* A block that is resident, with everything one needs; reused from block to block. */
struct at_simt_block {
    int in_use;
    int64_t number; /* x + y * grid.x + z * grid.x * grid.y */
    int n, n_left, n_in_barrier;
    int capacity; /* n at most, with the threads and clocks there are */
    const struct at_simt_thread *first_in_barrier;
    struct at_simt_thread *threads;
    uint32_t *clocks, epoch; /* clock.h: of its threads; of its last barrier */
    int fenced;              /* clock.h: a proxy fence was put up, so that the clocks' second parts count */
    /* Shared memory: AT_ARENA_BYTES, their cells (shadow.h; NULL until somebody touches it), the variables in it and
     * the one that was touched last, or a number past them. */
    uint8_t *arena;
    struct at_shadow_cell *cells;
    int64_t arena_used;
    int n_variables, last_variable;
    struct at_shared_variable variables[AT_SHARED_VARIABLES];
    /* What the parts keep. */
    struct at_warp_lanes *warps;         /* warp.h, by warp */
    struct at_named_barrier *named;      /* named_barrier.h, by id */
    struct at_mbarrier_state *mbarriers; /* mbarrier.h, in order of initialisation */
    int n_mbarriers;
    int n_bulk; /* bulk.h: copies in flight */
    struct at_register_file *registers;
    struct at_wgmma_registers *wgmma_registers; /* by warp; NULL until one multiplies */
    int registers_watched; /* wgmma has taken variables as registers: private memory is looked at, too */
    int waited_by_name;    /* some thread has come to wait at a named barrier */
    struct at_wgmma_warp *wgmma;
    /* cluster.h: another block of the cluster reached this one's shared memory, after that many phases of the cluster's
     * barrier; 0: none. */
    uint32_t reached;
    int reached_by;
    int64_t reached_from;
    int waited_for_others; /* dependent.h: some thread has */
};

struct at_simt_machine {
    void (*entry)(void *);
    void *arguments;
    int64_t arguments_bytes;
    struct at_dim3 grid, block;
    int64_t dynamic_shared, next_block, n_blocks;
    struct at_simt_block *resident;
    int n_resident;
    int cluster;     /* blocks of a cluster; 1: there are none */
    int dependent;   /* dependent.h: the launch may begin before those before it have ended */
    void *scheduler; /* its stack pointer while a thread runs */
    uint32_t now;    /* the latest epoch: counts synchronisations; never reset within a job */
    uint32_t launch_began, job_began;
    uint64_t random;
    int seeded;              /* 0: lanes run in ascending order */
    int unchecked;           /* accesses are neither checked nor remembered */
    int dry;                 /* launches are counted, no thread runs */
    int64_t launches;        /* of the job */
    int failing_call, calls; /* the call from the host that fails, 1: the first, 0: none; those of the job so far */
    const void *stream;
    uint64_t path; /* hash of the job's launches */
    int stop;      /* a finding ends the launch */
};
extern struct at_simt_machine at_simt_machine;

/* The running thread; NULL outside of kernels. */
static inline struct at_simt_thread *at_simt_thread(void) { return (struct at_simt_thread *)(void *)at_simt_current; }
/* Below n, by the job's seed. */
uint32_t at_simt_random_below(uint32_t n);
/* Gives the processor back until the scheduler makes this thread ready; never returns once a finding stands. */
void at_simt_wait(void);
/* Runs every ready thread of a warp once, ascending, or by the seed from another lane on or descending; how many ran. */
int at_simt_run_warp(const struct at_simt_block *block, int warp);
/* Zeroed memory for a part of the machine; ends the program, naming what for, when there is none. */
void *at_simt_allocate(size_t n, size_t bytes, const char *what);

#endif
