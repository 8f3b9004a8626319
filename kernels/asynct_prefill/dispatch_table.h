/* Shapes that were timed, and the variant of each. Written by `attest bench --tune`: do not edit.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/dispatch/dispatch.h"

/* clang-format off */
static const struct at_dispatch_row rows[] = {
    /* dtype, b, h, hk, d, page, queries, keys, variant */
    { AT_BF16, 32, 8, 4, 128, 0, 256, 256, "30_persistent_wgmma_tma" },
    { AT_BF16, 32, 8, 4, 128, 16, 256, 256, "30_persistent_wgmma_tma" },
    { AT_F16, 16, 8, 4, 128, 16, 256, 256, "30_persistent_wgmma_tma_f16" },
    { AT_BF16, 1, 8, 4, 128, 16, 1024, 1024, "30_persistent_wgmma_tma" },
    { AT_BF16, 16, 8, 4, 128, 16, 1024, 1024, "30_persistent_wgmma_tma" },
    { AT_BF16, 4, 8, 4, 128, 0, 2048, 2048, "30_persistent_wgmma_tma" },
    { AT_BF16, 128, 8, 4, 128, 16, 48, 48, "30_persistent_wgmma_tma" },
    { AT_BF16, 16, 8, 4, 64, 16, 512, 512, "30_persistent_wgmma_tma" },
    { AT_BF16, 1, 32, 8, 128, 16, 4, 4096, "32_append_packed" },
    { AT_BF16, 32, 32, 8, 128, 16, 4, 4096, "32_append_packed" },
    { AT_BF16, 32, 8, 4, 128, 16, 16, 1024, "30_persistent_wgmma_tma" },
    { AT_BF16, 4, 8, 4, 128, 16, 128, 4224, "30_persistent_wgmma_tma" },
};
/* clang-format on */
