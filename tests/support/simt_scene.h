/* A stage for the SIMT machine: C functions as kernels, with accesses announced by hand.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_SCENE_H
#define AT_SIMT_SCENE_H

#include "kernels/simt/simt_job.h"
#include "kernels/simt/hooks.h"
#include "kernels/simt/simt.h"

enum { AT_SIMT_SCENE_WORDS = 4096 };

/* Memory the kernels may touch: regions "in" (an input, filled with 1, 2, 3, ...), "out" (nothing written yet), and
 * "both" (read and written, filled with 0). */
struct at_simt_scene_state {
    uint32_t before[16], in[AT_SIMT_SCENE_WORDS], out[AT_SIMT_SCENE_WORDS], both[AT_SIMT_SCENE_WORDS];
};
extern struct at_simt_scene_state *at_simt_scene_memory; /* outside the program's own variables */
#define at_simt_scene (*at_simt_scene_memory)

typedef void at_simt_scene_kernel(void *);

/* Starts a job: memory and findings are as new. */
void at_simt_scene_job(uint64_t seed);
/* Launches within the job; the launch must be possible. */
void at_simt_scene_launch(at_simt_scene_kernel *kernel, struct at_dim3 grid, struct at_dim3 block,
                          int64_t dynamic_shared);
/* A job of one launch of blocks x threads under `seed`; its finding. */
const struct at_finding *at_simt_scene_run(at_simt_scene_kernel *kernel, unsigned blocks, unsigned threads,
                                           uint64_t seed);

/* The job's finding must be of this kind and say all these parts (NULL ends them); NONE: there must be none. */
void at_simt_scene_expect(enum at_finding_kind kind, const char *part, ...);
/* The same over jobs with seeds 1 to `seeds`. */
#define AT_SIMT_SCENE_SEEDS(seeds, kernel, blocks, threads, ...) \
    for (uint64_t seed_ = 1; seed_ <= (uint64_t)(seeds); seed_++) { \
        at_simt_scene_run(kernel, blocks, threads, seed_); \
        at_simt_scene_expect(__VA_ARGS__, NULL); \
    }

/* What a kernel is made of. The empty assembly keeps the hooks from being called last, in the caller's stead. */
#define TID ((int)at_simt_current->thread.x)
#define BID ((int)at_simt_current->block.x)
#define HERE_PLACE ((struct at_simt_place){ __FILE__, __LINE__ })
#define SYNC() at_simt_barrier(HERE_PLACE)
#define SYNC_WARP(mask) (void)at_simt_warp(AT_SIMT_SYNCWARP, mask, 0, 0, HERE_PLACE)
#define BALLOT(mask, yes) ((uint32_t)at_simt_warp(AT_SIMT_BALLOT, mask, yes, 0, HERE_PLACE))
#define SHUFFLE(mask, x, from) ((uint32_t)at_simt_warp(AT_SIMT_SHUFFLE, mask, x, from, HERE_PLACE))
#define STAY() __asm__ volatile("" ::: "memory")
#define READ(bytes, address) \
    do { \
        at_mem_read##bytes(address); \
        STAY(); \
    } while (0)
#define WRITE(bytes, address) \
    do { \
        at_mem_write##bytes(address); \
        STAY(); \
    } while (0)
/* Announces and does it. */
#define GET(x) (at_mem_read4(&(x)), (x))
#define PUT(x, value) \
    do { \
        at_mem_write4(&(x)); \
        (x) = (value); \
        STAY(); \
    } while (0)
#define SHARED(type, n, name) \
    static const char name##_key; \
    type *name = at_simt_shared(&name##_key, (int64_t)sizeof(type) * (n), (int64_t) _Alignof(type))

#endif
