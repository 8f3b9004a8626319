/* What a kernel in a shared library is called with when attest judges it, and how the library says what it holds.
 * SPDX-License-Identifier: Apache-2.0
 *
 * C and C++, no other header of attest's: `make install` puts it into PREFIX/include. A library is one or more functions
 *
 *     ATTEST_EXPORT int mine(const struct attest_launch *launch);   // 0, or a number that says it failed
 *
 * and one declaration, of as many variants as there are, in the words of kernels/runner/python/README.md:
 *
 *     ATTEST_DECLARATION("[softmax_prefill/01_mine]\n"
 *                        "launch = mine\n"
 *                        "numerics = free_order=1 qk_unit=f32 pv_unit=f32\n");
 *
 * `attest verify --runner 'attest-so ./libmine.so'` then judges it. A function writes every element of every output and
 * nothing else, and keeps nothing from one call to the next. It runs in a process of its own: a crash costs one job. */
#ifndef ATTEST_LAUNCH_H
#define ATTEST_LAUNCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Of the structs below; a member is only ever added at the end of one, where an older function does not look. */
#define ATTEST_LAUNCH_VERSION 1

#ifdef __cplusplus
#define ATTEST_EXPORT extern "C" __attribute__((visibility("default")))
#define ATTEST_DECLARATION(text) \
    extern "C" __attribute__((visibility("default"))) const char attest_declaration[] = text
#else
#define ATTEST_EXPORT __attribute__((visibility("default")))
#define ATTEST_DECLARATION(text) \
    extern const char attest_declaration[]; \
    __attribute__((visibility("default"))) const char attest_declaration[] = text
#endif

enum attest_role { ATTEST_IN, ATTEST_OUT, ATTEST_INOUT };
/* Where tensors lie. */
enum attest_device { ATTEST_HOST = 1, ATTEST_CUDA = 2 };

/* Row-major and contiguous. Elements are little-endian codes of the format; bf16, e4m3 and e5m2 are codes that C has no type
 * for. */
struct attest_tensor {
    const char *name;              /* as `attest help tensors FAMILY` calls it */
    const char *format;            /* "f64", "f32", "f16", "bf16", "e4m3", "e5m2" or "i32" */
    int32_t role;                  /* enum attest_role */
    int32_t rank;                  /* 1 to 4 */
    const int64_t *shape, *stride; /* [rank], in elements; the last stride is 1 */
    void *data;
};

/* A size or a parameter of the operator, exact in both; a size and a whole parameter have no fraction. */
struct attest_number {
    const char *name;
    double real;
    int64_t whole; /* real without its fraction */
};

struct attest_launch {
    int32_t version;                     /* ATTEST_LAUNCH_VERSION of the host that calls */
    int32_t device;                      /* enum attest_device */
    const char *op, *dtype;              /* the operator; the format of its activations */
    const struct attest_tensor *tensors; /* those that this problem has: contiguous keys have no block_table */
    const struct attest_number *numbers;
    int32_t n_tensors, n_numbers;
    void *stream; /* cudaStream_t to put the work on, which need not be waited for; NULL on the host */
    /* Why a function failed may be written here, a line of at most why_bytes, its end included. */
    char *why;
    int64_t why_bytes;
};

/* The tensor of that name; NULL when this problem has none. */
static inline const struct attest_tensor *attest_find_tensor(const struct attest_launch *launch, const char *name) {
    int32_t i;
    for (i = 0; i < launch->n_tensors; i++)
        if (strcmp(launch->tensors[i].name, name) == 0)
            return &launch->tensors[i];
    return NULL;
}

/* The size or parameter of that name. The operator of a library has the same ones in every job, so that a name it does not
 * have is misspelt: the process says so and ends. */
static inline const struct attest_number *attest_find_number(const struct attest_launch *launch, const char *name) {
    int32_t i;
    for (i = 0; i < launch->n_numbers; i++)
        if (strcmp(launch->numbers[i].name, name) == 0)
            return &launch->numbers[i];
    fprintf(stderr, "%s has no size and no parameter %s\n", launch->op, name);
    abort();
}
static inline int64_t attest_int(const struct attest_launch *launch, const char *name) {
    return attest_find_number(launch, name)->whole;
}
static inline double attest_real(const struct attest_launch *launch, const char *name) {
    return attest_find_number(launch, name)->real;
}

/* `return attest_fail(launch, "no memory");` from a function that failed: the job is an ERROR with this reason. */
static inline int attest_fail(const struct attest_launch *launch, const char *why) {
    snprintf(launch->why, (size_t)launch->why_bytes, "%s", why);
    return 1;
}

#endif
