/* Calling a function of tvm-ffi's C convention, with our own declarations of what that convention fixes.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The facts, of tvm-ffi 0.1 and DLPack 1: a function NAME is the symbol __tvm_ffi_NAME; values are 16 bytes, a type's number
 * and 8 bytes behind 4 of padding that are 0; tensors travel as a pointer to a DLTensor of the caller's; a call returns 0, or
 * another number after it has left an error with libtvm_ffi.so. That library is never loaded from here: where the kernel's own
 * has brought it, its functions are found by dlsym. */
#ifndef AT_SO_TVM_FFI_H
#define AT_SO_TVM_FFI_H

#include "kernels/runner/so_declaration.h"

#define AT_TVM_FFI_PREFIX "__tvm_ffi_"

/* Where a call's tensors lie, in DLPack's numbers, and what they are put on. */
struct at_so_place {
    int device_type; /* 1: host, 2: CUDA */
    void *stream;    /* CUDA */
};

/* Calls v->function with v->arguments of the problem: tensors that it does not have are None. 0, or what the function
 * returned, with its error's kind and message, where there are, in `why`. `handle`: the library's. */
int at_so_call_tvm_ffi(const struct at_so_variant *v, void *handle, const struct at_problem *problem,
                       const struct at_so_place *place, char *why, size_t size);

#endif
