/* Shapes that were timed, and the variant of each. Written by `attest bench --tune`: do not edit.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/dispatch/dispatch.h"

/* clang-format off */
static const struct at_dispatch_row rows[] = {
    /* dtype, b, h, hk, d, page, queries, keys, variant */
    { AT_BF16, 1, 8, 4, 128, 16, 1, 256, "30_warp_pages_online_64" },
    { AT_BF16, 32, 8, 4, 128, 16, 1, 256, "30_warp_pages_online_64" },
    { AT_BF16, 128, 8, 4, 128, 16, 1, 256, "30_warp_pages_online_64" },
    { AT_BF16, 1, 8, 4, 128, 16, 1, 1024, "30_warp_pages_online_64" },
    { AT_BF16, 8, 8, 4, 128, 16, 1, 1024, "30_warp_pages_online_64" },
    { AT_BF16, 32, 8, 4, 128, 16, 1, 1024, "30_warp_pages_online" },
    { AT_BF16, 1, 8, 4, 128, 16, 1, 2048, "30_warp_pages_online_64" },
    { AT_BF16, 4, 8, 4, 128, 16, 1, 2048, "30_warp_pages_online_64" },
    { AT_BF16, 16, 8, 4, 128, 16, 1, 2048, "30_warp_pages_online_64" },
    { AT_BF16, 32, 8, 4, 128, 16, 1, 2048, "30_warp_pages_online" },
    { AT_BF16, 128, 8, 4, 128, 16, 1, 2048, "30_warp_pages_online" },
    { AT_BF16, 1, 8, 4, 128, 16, 1, 4096, "30_warp_pages_online_256" },
    { AT_BF16, 8, 8, 4, 128, 16, 1, 4096, "30_warp_pages_online_64" },
    { AT_BF16, 1, 8, 4, 128, 16, 1, 8192, "30_warp_pages_online_256" },
    { AT_BF16, 4, 8, 4, 128, 16, 1, 8192, "30_warp_pages_online_64" },
    { AT_BF16, 1, 8, 4, 128, 16, 1, 32768, "30_warp_pages_online_256" },
    { AT_BF16, 1, 32, 8, 128, 16, 1, 2048, "30_warp_pages_online_64" },
    { AT_BF16, 8, 32, 8, 128, 16, 1, 2048, "30_warp_pages_online" },
    { AT_BF16, 32, 32, 8, 128, 16, 1, 2048, "30_warp_pages_online" },
    { AT_BF16, 1, 32, 8, 128, 16, 1, 8192, "30_warp_pages_online_64" },
    { AT_BF16, 8, 8, 8, 128, 16, 1, 2048, "30_warp_pages_online_64" },
    { AT_BF16, 8, 8, 2, 128, 0, 1, 2048, "30_warp_pages_online_64" },
    { AT_F16, 8, 8, 2, 64, 16, 1, 2048, "30_warp_pages_online_64" },
    { AT_BF16, 8, 8, 4, 256, 16, 1, 1024, "30_warp_pages_online" },
};
/* clang-format on */
