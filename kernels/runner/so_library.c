/* Loading a shared library of kernels.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/runner/so_library.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/sha256.h"
#include "kernels/runner/so_tvm_ffi.h"

enum { DECLARATION_BYTES = 64 << 10, PATH_BYTES = 4096 };

/* ---- loading ---- */

/* Why the loader refused, and what to do where that is known: it names the library or the symbol that it lacks. */
static at_status load_failed(const char *path, const char *why) {
    if (strstr(why, "libtvm_ffi"))
        return AT_FAIL(
            AT_ENVIRONMENT,
            "%s needs libtvm_ffi.so, which the loader does not find: put its folder into LD_LIBRARY_PATH, or give the "
            "library a run path (%.300s)",
            path, why);
    if (strstr(why, "undefined symbol: TVMFFI"))
        return AT_FAIL(AT_ENVIRONMENT, "%s calls libtvm_ffi.so and is not linked with it: wanted -ltvm_ffi (%.300s)",
                       path, why);
    return AT_FAIL(AT_ENVIRONMENT, "%s does not load: %.400s", path, why);
}

/* A name without a slash would be looked for where the system keeps its libraries. */
static at_status load(const char *path, void **handle) {
    char here[PATH_BYTES];
    if (snprintf(here, sizeof here, "%s%s", strchr(path, '/') ? "" : "./", path) >= (int)sizeof here)
        return AT_FAIL(AT_USAGE, "the library's path is too long");
    *handle = dlopen(here, RTLD_NOW | RTLD_LOCAL);
    return *handle ? AT_OK : load_failed(path, dlerror());
}

/* ---- its declaration ---- */

static at_status read_file(FILE *file, const char *path, struct at_so_declaration *declaration) {
    char *text = malloc(DECLARATION_BYTES + 1);
    at_status status = AT_OK;
    if (!text)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %s", path);
    const size_t n = fread(text, 1, DECLARATION_BYTES, file);
    text[n] = 0;
    if (ferror(file))
        AT_FAIL_OUT(AT_IO, "cannot read %s: %s", path, strerror(errno));
    if (n == DECLARATION_BYTES || strlen(text) != n)
        AT_FAIL_OUT(AT_USAGE, "%s: wanted a text of less than %d bytes", path, DECLARATION_BYTES);
    status = at_so_declaration_parse(text, path, declaration);
out:
    free(text);
    return status;
}

/* A file beside the library stands before what is in it: a library that is there already can be given one. */
static at_status read_declaration(struct at_so_library *library) {
    char path[PATH_BYTES], where[PATH_BYTES];
    snprintf(path, sizeof path, "%s.attest", library->path);
    FILE *file = fopen(path, "re");
    if (file) {
        const at_status status = read_file(file, path, &library->declaration);
        fclose(file);
        return status;
    }
    if (errno != ENOENT)
        return AT_FAIL(AT_IO, "cannot open %s: %s", path, strerror(errno));
    const char *text = dlsym(library->handle, "attest_declaration");
    if (!text)
        return AT_FAIL(AT_USAGE,
                       "%s: found no symbol attest_declaration and no file %s, wanted a declaration in one of them",
                       library->path, path);
    snprintf(where, sizeof where, "%s(attest_declaration)", library->path);
    return at_so_declaration_parse(text, where, &library->declaration);
}

/* ---- its functions ---- */

static at_status find(const struct at_so_library *library, const struct at_so_variant *v, const char *symbol,
                      void **function) {
    *function = dlsym(library->handle, symbol);
    return *function ? AT_OK
                     : AT_FAIL(AT_USAGE, "%s: %s/%s: found no function %s, wanted it exported", library->path,
                               v->family, v->name, symbol);
}

static at_status find_functions(const struct at_so_library *library, struct at_so_variant *v) {
    char symbol[AT_SO_WORD + 32];
    snprintf(symbol, sizeof symbol, "%s%s", v->tvm_ffi[0] ? AT_TVM_FFI_PREFIX : "",
             v->tvm_ffi[0] ? v->tvm_ffi : v->launch);
    at_status status = find(library, v, symbol, &v->function);
    if (status != AT_OK) { /* called in the other way it may be there */
        char other[AT_SO_WORD + 32];
        snprintf(other, sizeof other, "%s%s", v->tvm_ffi[0] ? "" : AT_TVM_FFI_PREFIX,
                 v->tvm_ffi[0] ? v->tvm_ffi : v->launch);
        if (dlsym(library->handle, other))
            return AT_FAIL(status, "%s: %s/%s: found %s, wanted %s: did you mean %s = %s?", library->path, v->family,
                           v->name, other, symbol, v->tvm_ffi[0] ? "launch" : "tvm_ffi",
                           v->tvm_ffi[0] ? v->tvm_ffi : v->launch);
        return status;
    }
    return v->supports[0] ? find(library, v, v->supports, &v->supports_function) : AT_OK;
}

at_status at_so_library_open(const char *path, struct at_so_library *library) {
    memset(library, 0, sizeof *library);
    library->path = path;
    const char *slash = strrchr(path, '/');
    snprintf(library->source, sizeof library->source, "%s", slash ? slash + 1 : path);
    AT_TRY(load(path, &library->handle));
    AT_TRY(at_sha256_file(path, library->sha256));
    AT_TRY(read_declaration(library));
    for (int i = 0; i < library->declaration.n; i++) {
        struct at_so_variant *v = &library->declaration.variants[i];
        AT_TRY(find_functions(library, v));
        v->kernel.summary = v->summary;
        v->kernel.source = library->source;
        v->entry = (struct at_kernel_entry){
            .family = v->family, .name = v->name, .path = path, .kernel = &v->kernel, .sha256 = library->sha256
        };
    }
    return AT_OK;
}
