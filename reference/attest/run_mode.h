/* How a job is launched beyond once, and what a runner may count and time meanwhile.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_RUN_MODE_H
#define AT_RUN_MODE_H

#include <stdint.h>

/* All zeros: one plain launch. */
struct at_run_mode {
    /* 1: the launch is captured in a CUDA graph while size.max_sk is `graph_max_sk`, and the graph replayed at the
     * job's own sizes and lengths; what a launch decides by max_sk instead of capacity is then wrong. */
    int32_t graph;
    int64_t graph_max_sk;
    int64_t order;    /* a machine with a choice takes another order of warps and lanes for each number */
    int32_t counters; /* 1: count accesses (AT_COUNTER_LIST); only machines that see every access can */
    int32_t ask;      /* 1: only whether the variant takes the problem; nothing is launched */
    int32_t
        dry; /* 1: the launches of a CUDA kernel are counted, and none is run; a C variant runs. Outputs are not defined */
    int32_t unchecked; /* the SIMT machine only runs: for its own speed with and without checks */
    int32_t timings;   /* graph replays to time with cold and with hot caches; 0: none. Outputs are then not defined. */
    int32_t hold;      /* 1: kept as the next step of a sequence; nothing is launched */
    int32_t replays;   /* of the steps held, this job behind them, as one graph; 0: this job alone */
    int64_t steps; /* where the runner writes a struct at_step_cost a step: bytes from the block's start; 0: nowhere */
};

/* What a kernel does to memory, warp by warp: lanes that reach the same access the same number of times after a barrier
 * are taken for one instruction. Of the machine code that was run: g++'s on the SIMT machine, which is not nvcc's.
 * name, meaning */
/* clang-format off */
#define AT_COUNTER_LIST(X)                                                                            \
    X(global_requests,   "warp accesses to global memory")                                            \
    X(global_sectors,    "sectors of 32 bytes that they touch")                                       \
    X(global_bytes,      "bytes that their lanes ask for")                                            \
    X(shared_requests,   "warp accesses to shared memory")                                            \
    X(shared_wavefronts, "passes over the 32 banks that they take; as many as requests: no conflict") \
    X(atomics,           "lanes' atomic operations")                                                  \
    X(warp_operations,   "shuffles, votes and syncwarps")                                             \
    X(barriers,          "barriers of a block")                                                       \
    X(lane_accesses,     "lanes' accesses to memory of any kind")
/* clang-format on */

struct at_counters {
#define X(name, meaning) int64_t name;
    AT_COUNTER_LIST(X)
#undef X
};

/* What a step of a sequence took: three f64 in the block, since a line has no room for hundreds of steps. */
struct at_step_cost {
    double seconds; /* median over replays with an event behind each step; 0: the runner has no clock worth reading */
    double kernels; /* nodes of the graph that are kernels; where there is no graph, launches */
    double others;  /* memory sets and copies */
};

/* Seconds of one launch among graph replays: medians; cold: inputs rotate past the caches, hot: one set of them. */
struct at_timing {
    double cold, hot;
    double copy_rate; /* bytes a second that a large copy within the device reads and writes, from the same run */
    int32_t replays;  /* 0: nothing was timed */
    int32_t copies;   /* of the inputs that rotate */
};

#endif
