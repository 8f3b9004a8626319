/* The calls g++ -fsanitize=thread makes for every access, and -fsanitize=bounds for an index that is wrong, under the names objcopy gives them in kernel objects.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simt/hooks.h"

#include <float.h>
#include <math.h>

#include "kernels/simt/counters.h"
#include "kernels/simt/dependent.h"
#include "kernels/simt/finding.h"
#include "kernels/simt/shadow.h"
#include "kernels/simt/wgmma_registers.h"

#define HERE __builtin_return_address(0)
/* Most accesses need no shadow: those of the thread's own stack, and reads of inputs or of where it is. */
static inline __attribute__((always_inline)) void access(const void *address, int bytes, enum at_access access,
                                                         const void *where) {
    const struct at_simt_thread *self = at_simt_thread();
    if (!self || at_simt_machine.unchecked)
        return; /* host code of the same file */
    const uint64_t in_stack = (uint64_t)((const uint8_t *)address - self->fiber.stack);
    if (in_stack < self->unwatched)
        return;
    if (in_stack < self->fiber.bytes) {
        at_wgmma_registers_touch(self, address, bytes, where);
        return;
    }
    at_dependent_touch(self, address, where);
    if (access == AT_ACCESS_READ && !at_counters_on && at_memory_in_input(address, bytes, where))
        return;
    if (access == AT_ACCESS_READ && at_memory_of_launch(self, address))
        return;
    if (access == AT_ACCESS_READ)
        at_shadow_read(address, bytes, where);
    else if (access == AT_ACCESS_WRITE)
        at_shadow_write(address, bytes, where);
    else
        at_shadow_access(address, bytes, access, where);
}

#define ACCESS(name, bytes, kind) \
    void at_mem_##name(const void *address) { access(address, bytes, kind, HERE); }

ACCESS(read1, 1, AT_ACCESS_READ)
ACCESS(read2, 2, AT_ACCESS_READ)
ACCESS(read4, 4, AT_ACCESS_READ)
ACCESS(read8, 8, AT_ACCESS_READ)
ACCESS(read16, 16, AT_ACCESS_READ)
ACCESS(unaligned_read2, 2, AT_ACCESS_READ)
ACCESS(unaligned_read4, 4, AT_ACCESS_READ)
ACCESS(unaligned_read8, 8, AT_ACCESS_READ)
ACCESS(unaligned_read16, 16, AT_ACCESS_READ)
ACCESS(write1, 1, AT_ACCESS_WRITE)
ACCESS(write2, 2, AT_ACCESS_WRITE)
ACCESS(write4, 4, AT_ACCESS_WRITE)
ACCESS(write8, 8, AT_ACCESS_WRITE)
ACCESS(write16, 16, AT_ACCESS_WRITE)
ACCESS(unaligned_write2, 2, AT_ACCESS_WRITE)
ACCESS(unaligned_write4, 4, AT_ACCESS_WRITE)
ACCESS(unaligned_write8, 8, AT_ACCESS_WRITE)
ACCESS(unaligned_write16, 16, AT_ACCESS_WRITE)

void at_mem_read_range(const void *address, unsigned long bytes) { access(address, (int)bytes, AT_ACCESS_READ, HERE); }
void at_mem_write_range(const void *address, unsigned long bytes) {
    access(address, (int)bytes, AT_ACCESS_WRITE, HERE);
}
void at_mem_func_entry(const void *caller) { (void)caller; }
void at_mem_func_exit(void) {}
void at_mem_init(void) {}
void at_mem_out_of_bounds(const struct at_index_check *check, uintptr_t index) {
    const struct at_simt_thread *self = at_simt_thread();
    at_simt_report_at(AT_FINDING_BOUNDS, HERE, "block %lld: thread %d takes element %lld of %s",
                      self ? (long long)self->in->number : -1LL, self ? self->index : -1, (long long)(int64_t)index,
                      check->array->name);
}

/* ---- accesses that kernels make by name ---- */

static void check_aligned16(const void *address, const char *does, const void *where) {
    const struct at_simt_thread *self = at_simt_thread();
    if (self && (uintptr_t)address % 16)
        at_simt_report_at(AT_FINDING_BOUNDS, where,
                          "block %lld: thread %d %s 16 bytes at an address that is no multiple of 16",
                          (long long)self->in->number, self->index, does);
}

void at_simt_load16(const void *address, void *out) {
    check_aligned16(address, "reads", HERE);
    access(address, 16, AT_ACCESS_READ, HERE);
    __builtin_memcpy(out, address, 16);
}

void at_simt_store16(void *address, const void *value) {
    check_aligned16(address, "writes", HERE);
    access(address, 16, AT_ACCESS_WRITE, HERE);
    __builtin_memcpy(address, value, 16);
}

uint32_t at_simt_atomic_add_u32(uint32_t *address, uint32_t value) {
    access(address, 4, AT_ACCESS_ATOMIC, HERE);
    const uint32_t before = *address;
    *address = before + value;
    return before;
}

uint32_t at_simt_atomic_exchange_u32(uint32_t *address, uint32_t value) {
    access(address, 4, AT_ACCESS_ATOMIC, HERE);
    const uint32_t before = *address;
    *address = value;
    return before;
}

uint32_t at_simt_atomic_max_u32(uint32_t *address, uint32_t value) {
    access(address, 4, AT_ACCESS_ATOMIC, HERE);
    const uint32_t before = *address;
    *address = before > value ? before : value;
    return before;
}

static float without_subnormals(float x) { return fabsf(x) < FLT_MIN ? copysignf(0, x) : x; }

float at_simt_atomic_add_f32(float *address, float value) {
    access(address, 4, AT_ACCESS_ATOMIC, HERE);
    const struct at_simt_thread *self = at_simt_thread();
    const float before = *address;
    *address = self && at_memory_in_arena(self->in, address)
                   ? before + value
                   : without_subnormals(without_subnormals(before) + without_subnormals(value));
    return before;
}
