/* Fibers on x86-64 (System V): six registers and the stack pointer make a context.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simt/fiber.h"

#include <sys/mman.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define __asan_unpoison_memory_region(address, bytes) ((void)0)
#endif

#ifndef __x86_64__
#error "the SIMT machine's context switch is written for x86-64; another processor needs its own eight lines"
#endif

__asm__(".text\n"
        ".globl at_fiber_switch\n"
        ".type at_fiber_switch, @function\n"
        "at_fiber_switch:\n"
        "    push %rbp; push %rbx; push %r12; push %r13; push %r14; push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15; pop %r14; pop %r13; pop %r12; pop %rbx; pop %rbp\n"
        "    ret\n"
        ".size at_fiber_switch, . - at_fiber_switch\n"
        /* First instructions of a fiber: entry in r12, its argument in r13; a call keeps the stack aligned. */
        ".type at_fiber_begin, @function\n"
        "at_fiber_begin:\n"
        "    mov %r13, %rdi\n"
        "    call *%r12\n"
        "    ud2\n"
        ".size at_fiber_begin, . - at_fiber_begin\n"
        ".section .note.GNU-stack,\"\",@progbits\n"
        ".text\n");
void at_fiber_begin(void) __attribute__((visibility("hidden")));

int at_fiber_create(struct at_fiber *fiber, size_t stack_bytes) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    void *memory =
        mmap(NULL, stack_bytes + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return -1;
    mprotect(memory, page, PROT_NONE);
    fiber->stack = (uint8_t *)memory + page;
    fiber->bytes = stack_bytes;
    return 0;
}

void at_fiber_destroy(struct at_fiber *fiber) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (fiber->stack)
        munmap(fiber->stack - page, fiber->bytes + page);
    fiber->stack = NULL;
}

/* Stacks begin at multiples of a page, and all lanes of a warp stand equally deep in theirs: from one and the same offset
 * on, their frames would share a few sets of the processor's cache. */
static size_t offset_of_top(const struct at_fiber *fiber) {
    return (uintptr_t)fiber->stack / 4096 % AT_FIBER_TOPS * AT_FIBER_APART;
}

void at_fiber_start(struct at_fiber *fiber, void (*entry)(void *), void *context) {
    uint64_t *top = (uint64_t *)(void *)(fiber->stack + fiber->bytes - offset_of_top(fiber));
    /* A fiber that was given up in the middle of a kernel left its frames' red zones behind. */
    __asan_unpoison_memory_region(fiber->stack, fiber->bytes);
    *--top = 0; /* two words, so that the stack is at a multiple of 16 when at_fiber_begin calls */
    *--top = 0;
    *--top = (uint64_t)(uintptr_t)at_fiber_begin;
    *--top = 0;                          /* rbp */
    *--top = 0;                          /* rbx */
    *--top = (uint64_t)(uintptr_t)entry; /* r12 */
    *--top = (uint64_t)(uintptr_t)context;
    *--top = 0; /* r14 */
    *--top = 0; /* r15 */
    fiber->saved = top;
}
