/* Mapping the block that holds a job's tensors.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/runner/block.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void at_block_release(struct at_block *block) {
    if (block->base)
        munmap(block->base, (size_t)block->capacity);
    block->base = NULL;
    block->capacity = 0;
}

/* Shared memory is mapped only as far as the file reaches: a page beyond it would kill the runner. */
static at_status map(struct at_block *block, int64_t bytes) {
    int shared = block->transport == AT_TRANSPORT_MEMFD;
    struct stat info;
    if (shared && (fstat(block->fd, &info) != 0 || info.st_size < bytes))
        return AT_FAIL(AT_PROTOCOL, "the memory behind descriptor %d is shorter than the %lld bytes announced",
                       block->fd, (long long)bytes);
    at_block_release(block);
    void *base = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS,
                      shared ? block->fd : -1, 0);
    if (base == MAP_FAILED)
        return AT_FAIL(AT_NO_MEMORY, "cannot map %lld bytes: %s", (long long)bytes, strerror(errno));
    block->base = (uint8_t *)base;
    block->capacity = bytes;
    return AT_OK;
}

at_status at_block_reserve(struct at_block *block, int64_t bytes) {
    if (bytes > block->capacity)
        AT_TRY(map(block, bytes));
    return AT_OK;
}

at_status at_block_open(struct at_block *block, const struct at_open *open) {
    at_block_release(block);
    *block = (struct at_block){ .transport = open->transport, .fd = open->fd };
    if (open->transport == AT_TRANSPORT_INLINE)
        return AT_OK;
    if (map(block, open->memory) != AT_OK || memcmp(block->base, open->nonce, AT_NONCE_BYTES) != 0) {
        at_block_release(block);
        return AT_FAIL(AT_ENVIRONMENT, "descriptor %d does not hold the announced memory", open->fd);
    }
    return AT_OK;
}
