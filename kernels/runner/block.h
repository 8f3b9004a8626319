/* The block of memory that holds a job's tensors: shared with attest, or the runner's own.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_RUNNER_BLOCK_H
#define AT_RUNNER_BLOCK_H

#include "attest/protocol.h"

struct at_block {
    enum at_transport transport;
    int fd;           /* memfd only */
    uint8_t *base;    /* page-aligned; NULL while bytes is 0 */
    int64_t capacity; /* bytes mapped */
};

/* Takes up the transport that attest chose. AT_ENVIRONMENT with the reason when the descriptor is not the
 * announced memory: the runner then refuses, and attest offers inline. */
at_status at_block_open(struct at_block *block, const struct at_open *open);
/* Makes at least `bytes` available; for memfd, maps what attest has grown. */
at_status at_block_reserve(struct at_block *block, int64_t bytes);
void at_block_release(struct at_block *block);

#endif
