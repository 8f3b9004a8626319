/* What kernel objects call for every access: the compiler's sanitizer hooks under names of our own. Kernels
 * never write these; tests of the machine do.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_HOOKS_H
#define AT_SIMT_HOOKS_H

#include <stdint.h>

void at_mem_read1(const void *address);
void at_mem_read2(const void *address);
void at_mem_read4(const void *address);
void at_mem_read8(const void *address);
void at_mem_read16(const void *address);
void at_mem_unaligned_read2(const void *address);
void at_mem_unaligned_read4(const void *address);
void at_mem_unaligned_read8(const void *address);
void at_mem_unaligned_read16(const void *address);
void at_mem_write1(const void *address);
void at_mem_write2(const void *address);
void at_mem_write4(const void *address);
void at_mem_write8(const void *address);
void at_mem_write16(const void *address);
void at_mem_unaligned_write2(const void *address);
void at_mem_unaligned_write4(const void *address);
void at_mem_unaligned_write8(const void *address);
void at_mem_unaligned_write16(const void *address);
void at_mem_read_range(const void *address, unsigned long bytes);
void at_mem_write_range(const void *address, unsigned long bytes);
void at_mem_func_entry(const void *caller);
void at_mem_func_exit(void);
void at_mem_init(void);
/* What g++ -fsanitize=bounds says of an index: its place in the source, and the types of both. */
struct at_checked_type {
    uint16_t kind, bits;
    char name[]; /* 'float [4]', with the quotes */
};
struct at_index_check {
    const char *file;
    uint32_t line, column;
    const struct at_checked_type *array, *index;
};
/* An index, as a signed number, that the type of its array does not have: of a thread's own array no address tells. */
void at_mem_out_of_bounds(const struct at_index_check *check, uintptr_t index);

#endif
