/* What is remembered of every four bytes of memory that threads share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_SHADOW_CELL_H
#define AT_SIMT_SHADOW_CELL_H

#include <stdint.h>

enum { AT_GRANULE = 4 };

/* The last write, and the readers since, of four bytes; or, once somebody touched fewer of them, of one byte in a cell
 * of its own. Epochs are those of the accessing threads (clock.h). */
struct at_shadow_cell {
    uint32_t write_epoch, write_block; /* block numbers modulo 2^32 */
    uint32_t read_epoch, read_block;   /* epoch: the latest of the readers' */
    /* Readers of one block. As long as all are of read_epoch: the lanes of whole_warps x whole_lanes, and last_lanes of
     * last_warp. Otherwise what number `readers` of the launch says (readers.c), with the warps in whole_warps where that
     * is a vector of epochs by thread; the last reader is the lane of last_lanes of last_warp. */
    uint32_t whole_warps, whole_lanes, last_lanes, readers;
    uint32_t bytes;        /* number of the four cells that stand for this one; 0: none */
    uint16_t write_thread; /* AT_BLOCK_MAX and more: a bulk copy by mbarrier number write_thread - AT_BLOCK_MAX */
    uint16_t async_reads;  /* wgmma and bulk stores that read it and have not been waited for */
    uint8_t last_warp, write_atomic : 1, read_by_blocks : 1, /* readers in several blocks */
        in_flight : 1;                                       /* the write is a copy that has not been waited for */
};

#endif
