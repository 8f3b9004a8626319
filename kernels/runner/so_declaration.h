/* What a shared library of kernels says of itself: its variants, how each is called, what each declares.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SO_DECLARATION_H
#define AT_SO_DECLARATION_H

#include "attest/kernel.h"
#include "attest/op.h"

enum { AT_SO_VARIANTS = 64, AT_SO_ARGUMENTS = 64, AT_SO_WORD = 128 };

/* What stands in one place of a tvm-ffi function's arguments: a tensor (field NULL), or a size or parameter. */
struct at_so_argument {
    int tensor;
    const struct at_scalar *field;
};

/* One section of a declaration. `kernel` comes first: a device is given it and finds the rest. */
struct at_so_variant {
    struct at_kernel kernel; /* summary, source, numerics; so_device.c sets launch */
    struct at_kernel_entry entry;
    const struct at_op *op;
    char family[64], name[96], summary[256];
    char launch[AT_SO_WORD], tvm_ffi[AT_SO_WORD]; /* the function's name, in one of them; the other "" */
    char supports[AT_SO_WORD];                    /* "": there is none */
    unsigned dtypes;                              /* bit f: enum at_format f; 0: all */
    char takes[512];                              /* as in struct at_hello */
    int graph;                                    /* a launch can be captured in a CUDA graph */
    struct at_so_argument arguments[AT_SO_ARGUMENTS];
    int n_arguments;
    void *function, *supports_function; /* so_library.c */
};

struct at_so_declaration {
    struct at_so_variant variants[AT_SO_VARIANTS];
    int n;
};

/* Reads a declaration; `where` names it in messages. Lines are `[FAMILY/NAME]`, `key = value`, `# comment` or blank; the keys
 * of a section are launch or tvm_ffi, arguments (of tvm_ffi), numerics, dtypes, takes, supports, graph, summary.
 * AT_USAGE with line, what was found and what is wanted: an unknown family, key, argument, format or field of numerics (with
 * the nearest), numerics without a meaning, a section without a function or with two, an output that is no argument, a name
 * that is there twice, no section at all. */
at_status at_so_declaration_parse(const char *text, const char *where, struct at_so_declaration *declaration);

#endif
