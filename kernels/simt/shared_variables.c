/* Shared variables: where each lies in the memory of its block.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simt/finding.h"
#include "kernels/simt/machine.h"

void *at_simt_shared_dynamic(void) { return at_simt_thread()->in->arena; }

void *at_simt_shared(const void *key, int64_t bytes, int64_t align) {
    struct at_simt_block *block = at_simt_thread()->in;
    for (int i = 0; i < block->n_variables; i++)
        if (block->variables[i].key == key)
            return block->arena + block->variables[i].offset;
    /* A gap between variables, so that an index past the end is seen. */
    int64_t offset = (block->arena_used + 16 + align - 1) / align * align;
    if (block->n_variables == AT_SHARED_VARIABLES || offset + bytes > AT_SHARED_MAX)
        at_simt_report_at(AT_FINDING_BOUNDS, __builtin_return_address(0),
                          "more than %d shared variables, or more than %d bytes of them", (int)AT_SHARED_VARIABLES,
                          (int)AT_SHARED_MAX);
    block->variables[block->n_variables++] = (struct at_shared_variable){ key, offset, bytes };
    block->arena_used = offset + bytes;
    return block->arena + offset;
}
