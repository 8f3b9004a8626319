/* The inside of the SIMT machine: threads, warps, blocks of the launch that is running.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_MACHINE_H
#define AT_SIMT_MACHINE_H

#include "kernels/simt/fiber.h"
#include "kernels/simt/finding.h"
#include "kernels/simt/simt.h"

enum { AT_WARP = 32, AT_BLOCK_MOST = 1024, AT_SHARED_MOST = 227 * 1024, AT_SHARED_VARIABLES = 64 };
enum { AT_ARENA_BYTES = AT_SHARED_MOST + 1024 }; /* an index past the end of shared memory is still in the arena */
enum { AT_NAMED_BARRIERS = 16, AT_MBARRIERS_MOST = 64, AT_RESIDENT_MOST = 8 };
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

/* A copy that its thread has not waited for. */
struct at_pending_copy {
    uint8_t *to;
    const uint8_t *from;
    struct at_simt_place place;
    int bytes, from_writable;
    uint32_t group, next; /* next: number of the same thread's next one */
};

/* What a barrier with a name waits for, and who used it last. */
struct at_named_barrier {
    int threads, n_waiting; /* threads: the count the first that came gave; n_waiting: all that have come */
    const struct at_simt_thread *first;
    struct at_simt_place first_place;
    uint32_t warps; /* some lane of which has come */
    uint32_t
        arrived[AT_BLOCK_MOST / AT_WARP]; /* lanes of each that came without waiting; known: what those have done */
    uint32_t *known;
    uint32_t last_warps; /* that took part when it last opened */
    uint32_t last_time;  /* when that was */
    int last_thread;     /* one of those */
};

/* An mbarrier of the block. known_next, known_done: what its arrivals of the present phase and of all phases before
 * have done, by thread as in at_simt_thread. */
struct at_mbarrier_state {
    uint8_t *at;
    struct at_simt_place init_place;
    int init_thread;
    uint32_t init_time, count, pending, phase, *known_next, *known_done;
    int64_t bytes;                   /* that bulk copies still have to bring in this phase; less than 0: before they are
                                      * expected */
    uint32_t landed;                 /* when the last bulk copy did; 0: none */
    struct at_simt_place copy_place; /* of the last bulk copy */
    int copy_thread;
};

/* Registers of the block's warpgroups, once one has given or taken some; free: of the block's, held by none. */
struct at_registers {
    int in_use, free;
    int each[AT_BLOCK_MOST / 128], wanted[AT_BLOCK_MOST / 128]; /* a thread's; wanted 0: it waits for none */
    int warps[AT_BLOCK_MOST / 128];                             /* that have come to the present setmaxnreg */
    struct at_simt_place place[AT_BLOCK_MOST / 128];            /* of that */
};

struct at_simt_thread {
    struct at_simt_self self; /* first: at_simt_current points here */
    struct at_simt_block *in;
    struct at_fiber fiber;
    int index; /* within the block */
    enum at_thread_state state;
    struct at_simt_place place; /* where it waits, or where it was last seen */
    /* The warp operation it waits in. */
    enum at_simt_warp_kind kind;
    uint32_t mask;
    uint64_t value, result;
    int from;                       /* lane of a shuffle; instruction of an mma; shape of a matrix load */
    const void *deposit;            /* what the warp's lanes hand in, each on its own stack: mma.c, matrix.c */
    int barrier;                    /* the named one, or the number of the mbarrier, it waits at */
    uint32_t parity;                /* of the phase of the mbarrier it waits for */
    uint32_t copy_group;            /* of its copies: the one not committed yet */
    uint32_t first_copy, last_copy; /* not waited for; 0: none */
    /* When its present stretch between synchronisations began. known[t]: every access of thread t in a stretch that
     * began then or earlier is ordered before what this thread does now; so is all before the block's all_since. */
    uint32_t since, *known;
    /* known has a second part, in use once a thread of the block has put up a proxy fence: the same, and element n as
     * all_since, of those accesses that a proxy fence stands behind (proxy.c). The last AT_MBARRIERS_MOST elements are
     * of bulk copies: what landed by mbarrier m at that time or earlier is ordered before what this thread does now. */
    /* The phase of the cluster's barrier in which it has arrived and not waited, counted from 1; 0: none. How many it
     * has waited for, and when the last of those opened. */
    uint32_t cluster_arrived, cluster_waits, cluster_opened;
    uint32_t bulk_group; /* of its stores in bulk: the one not committed yet */
};

struct at_shared_variable {
    const void *key;
    int64_t offset, bytes;
};

/* The lanes of a warp that wait in warp operations, and those that never will: they have left, or are past the block's
 * end. */
struct at_warp_lanes {
    uint32_t waiting, gone;
    int mixed; /* those that wait need not all wait in the same operation */
};

/* A block that is resident, with everything one needs; reused from block to block. */
struct at_simt_block {
    int in_use;
    int64_t number; /* x + y * grid.x + z * grid.x * grid.y */
    int n, n_left, n_in_barrier;
    int capacity; /* n at most, with the threads and clocks there are */
    const struct at_simt_thread *first_in_barrier;
    struct at_simt_thread *threads;
    uint32_t *clocks;             /* n vectors of at_simt_width(n, 1): `known` of its threads */
    int fenced;                   /* a proxy fence was put up: the second parts of vectors count */
    uint32_t all_since;           /* time of the last barrier of the whole block: it orders all that was before */
    uint8_t *arena;               /* AT_ARENA_BYTES */
    struct at_shadow_cell *cells; /* of the arena; NULL until somebody touches it */
    int registers_watched;        /* wgmma has taken variables as registers: private memory is looked at, too */
    int64_t arena_used;
    int n_variables, last_variable; /* last_variable: the one touched last, or a number past them */
    struct at_shared_variable variables[AT_SHARED_VARIABLES];
    struct at_warp_lanes warps[AT_BLOCK_MOST / AT_WARP];
    struct at_named_barrier named[AT_NAMED_BARRIERS];
    int n_mbarriers;
    struct at_mbarrier_state mbarriers[AT_MBARRIERS_MOST];
    int n_bulk; /* bulk copies in flight */
    /* Another block of the cluster reached this one's shared memory, after that many barriers of the cluster; 0: none.
     */
    uint32_t reached;
    int reached_by;
    int64_t reached_from;
    struct at_registers registers;
    struct at_wgmma_warp *wgmma; /* of its warps; NULL until one multiplies */
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
    void *scheduler; /* its stack pointer while a thread runs */
    uint32_t now;    /* counts synchronisations; never reset within a job */
    uint32_t launch_began, job_began;
    uint64_t random;
    int seeded;    /* 0: lanes run in ascending order */
    int unchecked; /* accesses are neither checked nor remembered */
    const void *stream;
    uint64_t path; /* hash of the job's launches */
    int stop;      /* a finding ends the launch */
};
extern struct at_simt_machine at_simt_machine;

/* The running thread; NULL outside of kernels. */
static inline struct at_simt_thread *at_simt_thread(void) { return (struct at_simt_thread *)(void *)at_simt_current; }
/* left_out.c: whether this call does nothing in this job. */
int at_simt_leaves_out(struct at_simt_place place);
/* Gives the processor back until the scheduler makes this thread ready; never returns once a finding stands. */
void at_simt_wait(void);
/* Elements of `known` in a block of n threads. Behind the second part: per mbarrier, the latest bulk copy known. */
static inline int at_simt_width(int n, int fenced) { return fenced ? 2 * n + 1 + AT_MBARRIERS_MOST : n; }
enum { AT_SIMT_WIDTH_MOST = 2 * AT_BLOCK_MOST + 1 + AT_MBARRIERS_MOST };
/* Everything the threads of `members` did so far is ordered before what each of them does next. */
void at_simt_order(struct at_simt_block *block, struct at_simt_thread *const *members, int n);
/* Sets the count of synchronisations back, and with it what resident threads know of each other. */
void at_simt_begin_time(void);
uint32_t at_simt_random_below(uint32_t n);
/* warp.c: the start of a block. */
void at_simt_warp_begin(struct at_simt_block *block);
/* warp.c: both wait in one warp operation. */
int at_simt_same_operation(const struct at_simt_thread *a, const struct at_simt_thread *b);
/* warp.c: one warp operation from arrival to end; the last lane to come calls `finish` for all, in mask order. */
typedef void at_simt_warp_finish(struct at_simt_thread *const *members, int n);
uint64_t at_simt_warp_operation(enum at_simt_warp_kind kind, uint32_t mask, uint64_t value, int from,
                                const void *deposit, at_simt_warp_finish *finish, struct at_simt_place place);
/* warp.c, barrier.c: a thread has left; those that wait for it may be complete, or wrong. */
void at_simt_warp_left(struct at_simt_thread *thread);
void at_simt_barrier_left(struct at_simt_block *block);
/* named_barrier.c: the same, and the start of a block. */
void at_named_left(const struct at_simt_thread *thread);
void at_named_begin(struct at_simt_block *block);
/* named_barrier.c, mbarrier.c: adds what the block's threads wait for to a report of a deadlock. */
void at_named_waits(const struct at_simt_block *block, char *text, size_t size);
void at_mbarrier_waits(const struct at_simt_block *block, char *text, size_t size);
/* proxy.c: the vectors of a whole block come together at its barrier, by their second parts. */
void at_proxy_order(struct at_simt_block *block);
/* mbarrier.c: for bulk copies. The mbarrier at an address, used by the running thread; `bytes` of a copy land at one.
 */
struct at_mbarrier_state *at_mbarrier_use(struct at_simt_thread *self, void *at, const void *site);
void at_mbarrier_landed(struct at_simt_block *block, struct at_mbarrier_state *m, int64_t bytes);
/* bulk.c: a copy in flight lands, one that the seed names; 0: there is none. A thread has left; the start of a launch.
 */
int at_bulk_land_one(struct at_simt_block *block);
void at_bulk_left(const struct at_simt_thread *thread);
void at_bulk_launch(void);
/* cluster.c: the blocks of a cluster begin, the first of which this is; a thread has left; what a block waits for. */
void at_cluster_begin(const struct at_simt_block *first);
void at_cluster_left(const struct at_simt_thread *thread);
void at_cluster_waits(const struct at_simt_block *block, char *text, size_t size);
/* The other block of the cluster in whose arena the running thread reaches for an address; NULL: none. */
struct at_simt_block *at_cluster_reach(const uint8_t *address, const void *where);
/* Whether what a thread of another block of the cluster did in a stretch begun at `time` is ordered before what self
 * does now. */
int at_cluster_knows(const struct at_simt_thread *self, uint32_t block, int thread, uint32_t time);
/* Whether two blocks are of one cluster. */
static inline int at_cluster_same(uint32_t a, uint32_t b) {
    return a == b || (at_simt_machine.cluster > 1 &&
                      a / (uint32_t)at_simt_machine.cluster == b / (uint32_t)at_simt_machine.cluster);
}
/* registers.c: the start of a block; what it waits for. */
void at_registers_begin(struct at_simt_block *block);
void at_registers_waits(const struct at_simt_block *block, char *text, size_t size);
/* wgmma.c: the start of a block; a thread has left. */
void at_wgmma_begin(struct at_simt_block *block);
void at_wgmma_left(const struct at_simt_thread *thread);
/* A thread that has issued wgmma reaches private memory: its operands in registers may lie there. */
void at_wgmma_touch(const struct at_simt_thread *thread, const void *address, int bytes, const void *where);

#endif
