/* A CUDA driver of the tests: a shared object with the functions that kernels/launch/driver.h wants, on memory of the host.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A module is any text that begins with "fake code"; what it has are the kernels below, functions of the host. Each call adds a
 * line to the file FAKE_DRIVER_LOG. FAKE_DRIVER_FAIL=NAME:CODE makes every call of NAME fail with CODE. */
#include "kernels/launch/driver.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOT_FOUND = 500, INVALID_VALUE = 1, NO_BINARY = 209, OUT_OF_MEMORY = 2, MAP_MAGIC = 77 };

/* ---- the log ---- */

__attribute__((format(printf, 1, 2))) static void note(const char *format, ...) {
    const char *path = getenv("FAKE_DRIVER_LOG");
    FILE *file = path ? fopen(path, "ae") : NULL;
    if (!file)
        return;
    va_list list;
    va_start(list, format);
    vfprintf(file, format, list);
    va_end(list);
    fclose(file);
}

/* The code that the call is to fail with; 0: it is not. */
static int planted(const char *name) {
    const char *text = getenv("FAKE_DRIVER_FAIL");
    const size_t n = strlen(name);
    return text && strncmp(text, name, n) == 0 && text[n] == ':' ? (int)strtol(text + n + 1, NULL, 10) : 0;
}
#define MAY_FAIL(name) \
    do { \
        if (planted(name)) { \
            note("%s fails\n", name); \
            return planted(name); \
        } \
    } while (0)

/* ---- kernels ---- */

struct module {
    int launches; /* what a device variable would keep */
};

struct arguments {
    const float *x, *alpha, *gamma, *beta;
    float *y;
    int tokens, channels;
    float lo, hi;
};

static struct arguments read_arguments(void **at) {
    struct arguments a;
    memcpy(&a.x, at[0], 8);
    memcpy(&a.alpha, at[1], 8);
    memcpy(&a.gamma, at[2], 8);
    memcpy(&a.beta, at[3], 8);
    memcpy(&a.y, at[4], 8);
    memcpy(&a.tokens, at[5], 4);
    memcpy(&a.channels, at[6], 4);
    memcpy(&a.lo, at[7], 4);
    memcpy(&a.hi, at[8], 4);
    return a;
}

/* y = gamma clamp(alpha x, lo, hi) + beta, times `factor`. */
static void uclip(const struct arguments *a, float factor) {
    for (int i = 0; i < a->tokens * a->channels; i++) {
        const int c = i % a->channels;
        float v = a->alpha[c] * a->x[i];
        v = v < a->lo ? a->lo : v > a->hi ? a->hi : v;
        a->y[i] = (a->gamma[c] * v + a->beta[c]) * factor;
    }
}

static void right(struct module *m, const struct at_driver_launch *l, void **at) {
    const struct arguments a = read_arguments(at);
    (void)m;
    (void)l;
    uclip(&a, 1);
}

static void wrong(struct module *m, const struct at_driver_launch *l, void **at) {
    const struct arguments a = read_arguments(at);
    (void)m;
    (void)l;
    uclip(&a, 1.03f);
}

/* Every bit of a float that is not the launch's own: a number might be what stands there. */
static void stray(uintptr_t address) {
    unsigned char *bytes = (unsigned char *)address; /* NOLINT(performance-no-int-to-ptr): behind the compiler's back */
    for (int i = 0; i < 4; i++)
        bytes[i] ^= 0xff;
}

static void past_y(struct module *m, const struct at_driver_launch *l, void **at) {
    const struct arguments a = read_arguments(at);
    right(m, l, at);
    stray((uintptr_t)(a.y + a.tokens * a.channels + 5));
}

static void before_x(struct module *m, const struct at_driver_launch *l, void **at) {
    const struct arguments a = read_arguments(at);
    right(m, l, at);
    stray((uintptr_t)a.x - 8);
}

/* In the half of a band that is further from the tensor behind it. */
static void far_before_x(struct module *m, const struct at_driver_launch *l, void **at) {
    const struct arguments a = read_arguments(at);
    right(m, l, at);
    stray((uintptr_t)a.x - 12000);
}

static void input_written(struct module *m, const struct at_driver_launch *l, void **at) {
    const struct arguments a = read_arguments(at);
    right(m, l, at);
    *(float *)(uintptr_t)a.beta += 1; /* NOLINT(performance-no-int-to-ptr): an input as a kernel without const has it */
}

/* Right in the first launch of a module, then what an old result would be. */
static void keeps(struct module *m, const struct at_driver_launch *l, void **at) {
    const struct arguments a = read_arguments(at);
    (void)l;
    uclip(&a, m->launches++ ? 0.0f : 1.0f);
}

/* Right when the workspace, which is argument 9 and has 64 bytes, is poisoned; leaves zeros in it. */
static void poisoned(struct module *m, const struct at_driver_launch *l, void **at) {
    const struct arguments a = read_arguments(at);
    unsigned char *workspace;
    int is_poisoned = 1;
    (void)m;
    (void)l;
    memcpy(&workspace, at[9], 8);
    for (int i = 0; i < 64; i++)
        is_poisoned &= workspace[i] == 0xff;
    memset(workspace, 0, 64);
    uclip(&a, is_poisoned ? 1.0f : 0.0f);
}

/* Computes where the workspace, argument 9, does not say that it has. */
static void workspace_flag(struct module *m, const struct at_driver_launch *l, void **at) {
    unsigned char *workspace;
    memcpy(&workspace, at[9], 8);
    if (workspace[0] != 17)
        right(m, l, at);
    workspace[0] = 17;
}

/* Computes where the output is NaN. */
static void output_flag(struct module *m, const struct at_driver_launch *l, void **at) {
    const struct arguments a = read_arguments(at);
    if (a.y[0] != a.y[0])
        right(m, l, at);
}

static void past_workspace(struct module *m, const struct at_driver_launch *l, void **at) {
    unsigned char *workspace;
    right(m, l, at);
    memcpy(&workspace, at[9], 8);
    stray((uintptr_t)workspace + 64 + 100);
}

/* x by a tensor map, which comes as argument 9. */
static void by_map(struct module *m, const struct at_driver_launch *l, void **at) {
    struct arguments a = read_arguments(at);
    const unsigned char *map = (const unsigned char *)at[9];
    (void)m;
    (void)l;
    if (map[0] == MAP_MAGIC)
        memcpy(&a.x, map + 8, 8);
    uclip(&a, map[0] == MAP_MAGIC ? 1.0f : 0.0f);
}

static const struct kernel {
    const char *name;
    int n;
    size_t last; /* bytes of parameter 9 */
    void (*run)(struct module *m, const struct at_driver_launch *l, void **at);
} kernels[] = {
    { "right", 9, 0, right },
    { "wrong", 9, 0, wrong },
    { "past_y", 9, 0, past_y },
    { "before_x", 9, 0, before_x },
    { "far_before_x", 9, 0, far_before_x },
    { "workspace_flag", 10, 8, workspace_flag },
    { "output_flag", 9, 0, output_flag },
    { "keeps", 9, 0, keeps },
    { "input_written", 9, 0, input_written },
    { "poisoned", 10, 8, poisoned },
    { "past_workspace", 10, 8, past_workspace },
    { "by_map", 10, 128, by_map },
};
enum { KERNELS = sizeof kernels / sizeof kernels[0], FUNCTIONS_MAX = 4096 };

/* A function is a kernel of a module. */
static struct function {
    const struct kernel *kernel;
    struct module *module;
} functions[FUNCTIONS_MAX];
static int n_functions;

/* ---- the driver's functions ---- */

/* Each is as driver.h says. */
#define X(member, parameters, name) int member parameters __asm__(name);
AT_DRIVER_LIST(X)
#undef X

int error_name(int code, const char **text) {
    *text = code == NO_BINARY   ? "CUDA_ERROR_NO_BINARY_FOR_GPU"
            : code == NOT_FOUND ? "CUDA_ERROR_NOT_FOUND"
                                : "CUDA_ERROR";
    return 0;
}

int error_string(int code, const char **text) {
    *text = code == NO_BINARY ? "no kernel image is available" : "as it was planted";
    return 0;
}

int device(int *device_number) {
    *device_number = 0;
    return 0;
}

int device_is(int *value, int attribute, int device_number) {
    const char *sm = getenv("FAKE_DRIVER_SM");
    const int number = sm ? (int)strtol(sm, NULL, 10) : 90;
    (void)device_number;
    *value = attribute == AT_DEVICE_MAJOR ? number / 10 : attribute == AT_DEVICE_MINOR ? number % 10 : 132;
    return 0;
}

int synchronize(void) { return 0; }

/* NOLINTNEXTLINE(readability-non-const-parameter): the driver's type */
int load(void **module, const void *image, unsigned n, int *options, void **values) {
    if (planted("cuModuleLoadDataEx") || strncmp((const char *)image, "fake code", 9) != 0) {
        for (unsigned i = 0; i < n; i++)
            if (options[i] == AT_JIT_ERROR_LOG)
                strncpy((char *)values[i], "line 1: this is\nno code", 100);
        note("cuModuleLoadDataEx fails\n");
        return planted("cuModuleLoadDataEx") ? planted("cuModuleLoadDataEx") : NO_BINARY;
    }
    note("load\n");
    *module = calloc(1, sizeof(struct module));
    return *module ? 0 : OUT_OF_MEMORY;
}

int unload(void *module) {
    free(module); /* gone either way: a planted failure is no leak */
    MAY_FAIL("cuModuleUnload");
    note("unload\n");
    return 0;
}

int function(void **found, void *module, const char *name) {
    MAY_FAIL("cuModuleGetFunction");
    for (int i = 0; i < KERNELS; i++)
        if (strcmp(kernels[i].name, name) == 0) {
            struct function *f = &functions[n_functions++ % FUNCTIONS_MAX];
            *f = (struct function){ &kernels[i], (struct module *)module };
            *found = f;
            return 0;
        }
    return NOT_FOUND;
}

int function_load(void *f) { return f ? 0 : INVALID_VALUE; }

int function_set(void *f, int attribute, int value) {
    MAY_FAIL("cuFuncSetAttribute");
    note("attribute %d of %s is %d\n", attribute, ((struct function *)f)->kernel->name, value);
    return 0;
}

int parameter(void *f, size_t i, size_t *offset, size_t *bytes) {
    const struct kernel *k = ((struct function *)f)->kernel;
    *offset = 8 * i;
    *bytes = i < 5 ? 8 : i < 9 ? 4 : k->last;
    return (int)i < k->n ? 0 : INVALID_VALUE;
}

int launch(const struct at_driver_launch *l, void *f, void **at, void **extra) {
    struct function *of = (struct function *)f;
    (void)extra;
    MAY_FAIL("cuLaunchKernelEx");
    note("launch %s grid %u %u %u block %u %u %u shared %u", of->kernel->name, l->grid.x, l->grid.y, l->grid.z,
         l->block.x, l->block.y, l->block.z, l->shared_bytes);
    for (unsigned i = 0; i < l->n_attributes; i++)
        if (l->attributes[i].id == AT_LAUNCH_CLUSTER)
            note(" cluster %u %u %u", l->attributes[i].value.cluster.x, l->attributes[i].value.cluster.y,
                 l->attributes[i].value.cluster.z);
        else
            note(" attribute %d is %d", l->attributes[i].id, l->attributes[i].value.allowed);
    const struct arguments a = read_arguments(at);
    note(" tokens %d channels %d lo %g hi %g\n", a.tokens, a.channels, (double)a.lo, (double)a.hi);
    of->kernel->run(of->module, l, at);
    return 0;
}

int allocate(uint64_t *address, size_t bytes) {
    MAY_FAIL("cuMemAlloc_v2");
    note("allocate\n");
    void *memory = aligned_alloc(256, (bytes + 255) / 256 * 256);
    *address = (uint64_t)(uintptr_t)memory;
    return memory ? 0 : OUT_OF_MEMORY;
}

/* NOLINTBEGIN(performance-no-int-to-ptr): addresses on a device are numbers */
int release(uint64_t address) {
    free((void *)(uintptr_t)address);
    return 0;
}

int copy_in(uint64_t to, const void *from, size_t bytes) {
    MAY_FAIL("cuMemcpyHtoD_v2");
    memcpy((void *)(uintptr_t)to, from, bytes);
    return 0;
}

int copy_out(void *to, uint64_t from, size_t bytes) {
    MAY_FAIL("cuMemcpyDtoH_v2");
    memcpy(to, (const void *)(uintptr_t)from, bytes);
    return 0;
}

int copy(uint64_t to, uint64_t from, size_t bytes, void *stream) {
    MAY_FAIL("cuMemcpyDtoDAsync_v2");
    (void)stream;
    memcpy((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    return 0;
}

int fill(uint64_t to, unsigned char value, size_t bytes) {
    MAY_FAIL("cuMemsetD8_v2");
    note("fill %zu bytes with %02x\n", bytes, value);
    memset((void *)(uintptr_t)to, value, bytes);
    return 0;
}
/* NOLINTEND(performance-no-int-to-ptr) */

int encode_map(struct at_driver_map *map, int type, unsigned rank, void *address, const uint64_t *dims,
               const uint64_t *strides, const unsigned *box, const unsigned *steps, int interleave, int swizzle, int l2,
               int oob) {
    MAY_FAIL("cuTensorMapEncodeTiled");
    note("map type %d swizzle %d l2 %d oob %d interleave %d:", type, swizzle, l2, oob, interleave);
    for (unsigned i = 0; i < rank; i++)
        note(" %llu/%u/%u", (unsigned long long)dims[i], box[i], steps[i]);
    for (unsigned i = 0; i + 1 < rank; i++)
        note(" stride %llu", (unsigned long long)strides[i]);
    note("\n");
    memset(map, 0, sizeof *map);
    map->bytes[0] = MAP_MAGIC;
    memcpy(map->bytes + 8, &address, sizeof address);
    return 0;
}
