/* One instruction of the special-function unit on every element: what a variant has, and its launch.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SPECIAL_ELEMENTS_H
#define AT_SPECIAL_ELEMENTS_H

#include <string.h>

#include "attest/kernel.h"
#include "kernels/device/special.h"
#include "special_function/special_function.h"

constexpr int AT_SPECIAL_THREADS = 256;

/* Instructions by name, each with the launch that runs it. */
struct at_special_entry {
    const char *instruction;
    int (*launch)(const struct at_launch *);
};
template <int N>
const at_special_entry *at_special_find(const at_special_entry (&table)[N], const struct at_problem *p) {
    for (const at_special_entry &entry : table)
        if (strcmp(entry.instruction, at_special_function_instruction(p)->name) == 0)
            return &entry;
    return nullptr;
}

/* KERNEL(n, x, y) in threads that take PER elements each; without elements there is nothing to launch. */
template <class T, int PER, void (*KERNEL)(int64_t, const T *, T *)>
int at_special_put(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const int64_t n = at_special_function_own_of(p).n, a_block = PER * AT_SPECIAL_THREADS;
    if (n == 0)
        return 0;
    return at_launch(KERNEL, dim3{ (unsigned)((n + a_block - 1) / a_block), 1, 1 }, dim3{ AT_SPECIAL_THREADS, 1, 1 }, 0,
                     launch->stream, n, static_cast<const T *>(p->tensors[AT_SPECIAL_FUNCTION_X].data),
                     static_cast<T *>(p->tensors[AT_SPECIAL_FUNCTION_Y].data));
}

/* What the variants declare: the instruction has its own arithmetic, and nothing is summed. */
#define AT_SPECIAL_NUMERICS \
    { \
        .qk_unit = AT_UNIT_F32, .qk_lanes = 1, .p = AT_F32, .pv_unit = AT_UNIT_F32, .pv_chunk = 1, .repeats = 1, \
        .batch_invariant = 1 \
    }

#endif
