/* The kernel descriptor: what a variant says of itself. C and CUDA C++20 both read this file.
 * SPDX-License-Identifier: Apache-2.0
 *
 * kernels/<family>/NN_idea.{c,cu} defines exactly one global symbol with AT_KERNEL(family, NN_idea);
 * the path is the identity, and the build writes the table from the paths. */
#ifndef AT_KERNEL_H
#define AT_KERNEL_H

#ifdef __cplusplus
extern "C" {
#endif

#include <stdint.h>

#include "attest/numerics.h"
#include "attest/problem.h"

/* One launch. Tensors in device memory (host memory for host variants); outputs hold marked NaN. */
struct at_launch {
    const struct at_problem *problem;
    void *workspace; /* at least kernel->workspace(problem) bytes, 256-byte aligned, uninitialised */
    int64_t workspace_bytes;
    void *stream; /* cudaStream_t; NULL for host variants */
};

struct at_kernel_entry;
struct at_kernel {
    const char *summary; /* the idea, one line */
    const char *source;  /* where it comes from: "000 §1.1", "ours" */
    struct at_numerics numerics;
    /* NULL when the variant takes this problem, else the reason it does not (static text). */
    const char *(*supports)(const struct at_problem *problem);
    /* Bytes of scratch that launch needs; may be NULL: none. */
    int64_t (*workspace)(const struct at_problem *problem);
    /* Enqueues the work. Does not allocate, synchronise or print. 0, or a CUDA error number. */
    int (*launch)(const struct at_launch *launch);
    /* A dispatcher has this alone, and summary and source: which kernel takes this problem, by dtype, sizes, parameters, formats and
     * shapes. Lengths that a captured graph may be replayed at (max_sk) decide nothing. NULL where none does, and then *reason says
     * why (static text). What is launched, and declared, is the kernel's. */
    const struct at_kernel_entry *(*choose)(const struct at_problem *problem, const char **reason);
};

/* One row of the generated table. */
struct at_kernel_entry {
    const char *family, *name, *path;
    const struct at_kernel *kernel;
    const char *sha256; /* of the source file, 64 hex digits; "" when not known */
};
int at_kernel_count(void);
const struct at_kernel_entry *at_kernel_at(int i);

#ifdef __cplusplus
}
#define AT_KERNEL(family, name) \
    extern "C" const struct at_kernel at_kernel_##family##_##name; \
    const struct at_kernel at_kernel_##family##_##name
#else
#define AT_KERNEL(family, name) \
    extern const struct at_kernel at_kernel_##family##_##name; \
    const struct at_kernel at_kernel_##family##_##name
#endif

#endif
