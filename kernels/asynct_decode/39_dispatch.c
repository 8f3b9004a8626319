/* AsyncT decode: the kernel that was fastest at the nearest measured shape.
 * SPDX-License-Identifier: Apache-2.0
 *
 * dispatch_table.h has the shapes and, of the variants that were timed, the fastest whose bits repeat; kernels/dispatch/README.md
 * says how it is made. 11_split_k_paired takes what no kernel of the table does.
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

AT_DISPATCHES(asynct_decode, "11_split_k_paired");

AT_KERNEL(asynct_decode, 39_dispatch) = {
    .summary = "the kernel that was fastest at the nearest measured shape",
    .source = "ours",
    .numerics = AT_DISPATCH_NUMERICS,
    .choose = choose,
};
