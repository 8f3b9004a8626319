/* What kernel objects call for every access: the compiler's thread-sanitizer hooks under names of our own. Kernels
 * never write these; tests of the machine do.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_HOOKS_H
#define AT_SIMT_HOOKS_H

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

#endif
