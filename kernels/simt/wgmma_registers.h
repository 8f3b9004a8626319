/* Variables of a kernel that wgmma takes as registers: what was touched when, and sums that have not arrived.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_WGMMA_REGISTERS_H
#define AT_SIMT_WGMMA_REGISTERS_H

#include "kernels/simt/machine.h"

enum { AT_WGMMA_WORDS_MAX = 128 };

/* A variable of the kernel, the same for every lane. */
struct at_wgmma_variable {
    uint32_t *at[AT_WARP];
    int words;
    uint32_t touched; /* by these lanes since the last fence */
    int pending;      /* sums that have not been waited for; the group they belong to, the place of their wgmma */
    uint32_t group;
    struct at_simt_place place;
    uint32_t (*sums)[AT_WGMMA_WORDS_MAX]; /* by lane; NULL: an operand */
};

/* The start of a block. */
void at_wgmma_registers_begin(struct at_simt_block *block);
/* A thread that has issued wgmma reaches private memory: its operands in registers may lie there. */
void at_wgmma_registers_touch(const struct at_simt_thread *thread, const void *address, int bytes, const void *where);
/* The variable that the lanes name, which must not have been touched since the warp's last fence; `what` it is, for the
 * message. Valid until the warp's next call. */
struct at_wgmma_variable *at_wgmma_registers_take(struct at_simt_thread *const *members, uint32_t *const *at, int words,
                                                  const char *what);
/* A fence of the warp; the sums of all groups before `group` arrive in their variables; the warp has waited, and new
 * variables want another fence. */
void at_wgmma_registers_fence(const struct at_simt_thread *any);
void at_wgmma_registers_arrive(const struct at_simt_thread *any, uint32_t group);
void at_wgmma_registers_waited(const struct at_simt_thread *any);

#endif
