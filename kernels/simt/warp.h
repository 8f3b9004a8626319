/* Warp operations, from the inside of the machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_WARP_H
#define AT_SIMT_WARP_H

#include "kernels/simt/machine.h"

/* The start of a block. */
void at_warp_begin(struct at_simt_block *block);
/* Both wait in one warp operation. */
int at_warp_same_operation(const struct at_simt_thread *a, const struct at_simt_thread *b);
/* One warp operation from arrival to end; the last lane to come calls `finish` for all, in mask order. */
typedef void at_warp_finish(struct at_simt_thread *const *members, int n);
uint64_t at_warp_operation(enum at_simt_warp_kind kind, uint32_t mask, uint64_t value, int from, const void *deposit,
                           at_warp_finish *finish, struct at_simt_place place);
/* A thread has left: lanes that wait for it wait in vain. */
void at_warp_left(struct at_simt_thread *left);

#endif
