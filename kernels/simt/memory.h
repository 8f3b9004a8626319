/* What lies at an address, and the tests that spare most accesses a look at their history.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_MEMORY_H
#define AT_SIMT_MEMORY_H

#include "kernels/simt/machine.h"
#include "kernels/simt/region.h"
#include "kernels/simt/shadow_cell.h"

enum at_access {
    AT_ACCESS_READ,
    AT_ACCESS_WRITE,
    AT_ACCESS_ATOMIC,
    AT_ACCESS_COPY,
    AT_ACCESS_LANDING,
    AT_ACCESS_MULTIPLY,
    AT_ACCESS_BULK_READ,   /* a bulk store of its source, until it has been waited for */
    AT_ACCESS_BULK_WRITE,  /* a bulk load is on its way to shared memory */
    AT_ACCESS_BULK_LANDING /* and is there */
};

struct at_spot {
    struct at_shadow_cell *cells; /* of its first byte's region; NULL: nothing to remember */
    const char *name;             /* of the tensor, or what of shared memory; NULL: private, and the rest unset */
    int64_t offset, named_from;   /* within the region; where in it the name's first byte is */
    int shared, unwritten;
};
/* Finds what lies at an address; accesses that are out of bounds are reported. */
void at_memory_find(const uint8_t *address, int bytes, enum at_access access, struct at_spot *spot, const void *where);
/* The tensor or workspace in which an address lies, and which byte of it; NULL: none. */
const char *at_memory_tensor(const void *address, int64_t *byte);
/* Starts a job with these regions. What an earlier job did to other memory may stay in their cells and in those of shared
 * memory, by its epoch too old to count. */
void at_memory_job(const struct at_simt_region *regions, int n);
/* Forgets all that was done, to be called between jobs: where epochs begin anew, and where reads are still in flight. */
void at_memory_forget(void);

/* An input: nobody may write it, so that reads within it are right. */
struct at_memory_input {
    const uint8_t *base;
    uint64_t bytes;
};
/* By the call that reads: the input it read last; bytes 0: none. One call mostly reads one tensor. */
enum { AT_MEMORY_CALLS = 256 };
extern struct at_memory_input at_memory_inputs[AT_MEMORY_CALLS];
static inline int at_memory_call(const void *where) {
    return (int)(((uintptr_t)where ^ (uintptr_t)where >> 8) % AT_MEMORY_CALLS);
}
static inline struct at_memory_input *at_memory_input_of(const void *where) {
    return &at_memory_inputs[at_memory_call(where)];
}

/* Memory that may be written, outputs and workspace: by the call, what it reached last; bytes 0: none. */
struct at_memory_output {
    struct at_memory_input in;
    struct at_shadow_cell *cells;
    const char *name;
    int unwritten;
};
extern struct at_memory_output at_memory_outputs[AT_MEMORY_CALLS];

static inline int at_memory_own_stack(const struct at_simt_thread *self, const uint8_t *address) {
    return (uint64_t)(address - self->fiber.stack) < self->fiber.bytes;
}

/* What tells a thread where it is, and what it was called with. */
static inline int at_memory_of_launch(const struct at_simt_thread *self, const uint8_t *address) {
    return (uint64_t)(address - (const uint8_t *)self) < sizeof *self || address == (const uint8_t *)&at_simt_current ||
           (uint64_t)(address - (const uint8_t *)at_simt_machine.arguments) < (uint64_t)at_simt_machine.arguments_bytes;
}

/* Whether this is the block's own shared memory. */
static inline int at_memory_in_arena(const struct at_simt_block *block, const void *address) {
    return (uint64_t)((const uint8_t *)address - block->arena) < AT_ARENA_BYTES;
}

/* Whether these bytes are of the input that this call read last. */
static inline int at_memory_in_input(const uint8_t *address, int bytes, const void *where) {
    const struct at_memory_input *input = at_memory_input_of(where);
    const uint64_t at = (uint64_t)(address - input->base);
    return at < input->bytes && input->bytes - at >= (uint64_t)bytes;
}

/* The same for what this call reached last of the memory that may be written. */
static inline int at_memory_in_output(const uint8_t *address, int bytes, const void *where, struct at_spot *spot) {
    const struct at_memory_output *output = &at_memory_outputs[at_memory_call(where)];
    const uint64_t at = (uint64_t)(address - output->in.base);
    if (at >= output->in.bytes || output->in.bytes - at < (uint64_t)bytes)
        return 0;
    *spot = (struct at_spot){ output->cells, output->name, (int64_t)at, 0, 0, output->unwritten };
    return 1;
}

/* Bytes of a block's shared memory, of which `like` knows the variables: of the dynamic part or of the variable that was
 * touched last; 0: of neither. */
static inline int at_memory_shared(const struct at_simt_block *block, const struct at_simt_block *like, int64_t at,
                                   int bytes, struct at_spot *spot) {
    if (at + bytes <= at_simt_machine.dynamic_shared) {
        *spot = (struct at_spot){ block->cells, "dynamic shared memory", at, 0, 1, 1 };
        return 1;
    }
    const struct at_shared_variable *v = &like->variables[like->last_variable];
    if (like->last_variable >= like->n_variables || at < v->offset || at + bytes > v->offset + v->bytes)
        return 0;
    *spot = (struct at_spot){ block->cells, "a variable in shared memory", at, v->offset, 1, 1 };
    return 1;
}

/* The same for an address anywhere; 0 also as long as nobody has touched it. */
static inline int at_memory_own_shared(const struct at_simt_block *block, const uint8_t *address, int bytes,
                                       struct at_spot *spot) {
    const int64_t at = address - block->arena;
    return (uint64_t)at < AT_ARENA_BYTES && block->cells && at_memory_shared(block, block, at, bytes, spot);
}

#endif
