/* AsyncT decode: the kernel that was fastest at the nearest measured shape.
 * SPDX-License-Identifier: Apache-2.0
 *
 * dispatch_table.h has the shapes and, of the variants that were timed, the fastest whose bits repeat; kernels/dispatch/README.md
 * says how it is made.
 * 11_split_k_paired takes what no kernel of the table does.
 *
 * Numerically: as the kernel that is chosen, which each problem's declaration is. Batch and capacity choose among kernels whose bits
 * differ, so a request's bits depend on the batch it is in.
 *
 * Launch: as the kernel that is chosen.
 *
 * Limits: those of all that the table names, and then of the last resort, together.
 *
 * Source: ours. */
#include "kernels/asynct_decode/dispatch_table.h"

static const struct at_dispatch_table table = { "asynct_decode", rows, (int)(sizeof rows / sizeof *rows),
                                                "11_split_k_paired" };

static const struct at_kernel_entry *choose(const struct at_problem *problem, const char **reason) {
    return at_dispatch(&table, problem, reason);
}

AT_KERNEL(asynct_decode, 39_dispatch) = {
    .summary = "the kernel that was fastest at the nearest measured shape",
    .source = "ours",
    /* Stands in until a problem is asked about: an order that is not told, P in the inputs' format. */
    .numerics = { .qk_unit = AT_UNIT_F32,
                  .qk_lanes = 1,
                  .p = AT_P_INPUT,
                  .pv_unit = AT_UNIT_F32,
                  .pv_chunk = 1,
                  .free_order = 1,
                  .repeats = 1 },
    .choose = choose,
};
