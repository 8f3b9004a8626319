/* Fibers: stacks of their own that give the processor to each other by hand.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_FIBER_H
#define AT_FIBER_H

#include <stddef.h>
#include <stdint.h>

/* Stacks begin at as many places, so many bytes apart: what a stack may have less than its bytes. */
enum { AT_FIBER_TOPS = 61, AT_FIBER_APART = 64 };

struct at_fiber {
    void *saved; /* stack pointer while it does not run */
    uint8_t *stack;
    size_t bytes; /* of the stack, guard page not counted */
};

/* Allocates a stack with an unmapped page below it. 0, or -1 without memory. */
int at_fiber_create(struct at_fiber *fiber, size_t stack_bytes);
void at_fiber_destroy(struct at_fiber *fiber);
/* Sets a fiber to begin at entry(context) when next switched to. `entry` must never return. */
void at_fiber_start(struct at_fiber *fiber, void (*entry)(void *context), void *context);
/* Leaves the running stack, kept in *save, for `load`. The rounding mode and flags of the processor stay as they are.
 */
void at_fiber_switch(void **save, void *load);

#endif
