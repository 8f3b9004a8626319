/* A shared library of kernels: loaded, its declaration read, its functions found.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SO_LIBRARY_H
#define AT_SO_LIBRARY_H

#include "kernels/runner/so_declaration.h"

struct at_so_library {
    void *handle; /* of dlopen */
    const char *path;
    char sha256[65];
    char source[64]; /* the file's name, for the variants' `source` */
    struct at_so_declaration declaration;
};

/* Loads the file and finds every function that it declares, in PATH.attest beside it, else in its symbol
 * attest_declaration. It runs the library's constructors in this process. AT_ENVIRONMENT: it does not load, libtvm_ffi.so is
 * missing among what it needs; AT_USAGE: the declaration (so_declaration.h), or a function that the library does not
 * export, with what it exports of that name in the other way. Stays loaded as long as the process. */
at_status at_so_library_open(const char *path, struct at_so_library *library);

#endif
