/* What is remembered of an mbarrier.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_MBARRIER_STATE_H
#define AT_SIMT_MBARRIER_STATE_H

#include "kernels/simt/simt.h"

struct at_mbarrier_state {
    uint8_t *at;
    struct at_simt_place init_place;
    int init_thread;
    uint32_t init_epoch, count, pending, phase;
    uint32_t *arriving, *completed;  /* clocks of the arrivals of the present phase, and of all phases before */
    int64_t bytes;                   /* that bulk copies still have to bring in this phase; less than 0: before they are
                                      * expected */
    uint32_t landed;                 /* when the last bulk copy did; 0: none */
    struct at_simt_place copy_place; /* of the last bulk copy */
    int copy_thread;
};

#endif
