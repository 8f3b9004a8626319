/* The CUDA driver's library, opened by name: what loads device code and launches it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Nothing links it and no header of it is wanted: the types are as NVIDIA's documentation of the driver API has them, and
 * driver_abi.c compares them with its header where attest-cuda is built. Calls return 0 or an error's number, CUresult. */
#ifndef AT_DRIVER_H
#define AT_DRIVER_H

#include "attest/status.h"

#include <stdint.h>

struct at_driver_dims {
    unsigned x, y, z;
};

/* CUlaunchAttribute; ids: CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION. */
enum { AT_LAUNCH_CLUSTER = 4, AT_LAUNCH_PDL = 6, AT_LAUNCH_ATTRIBUTES = 2 };
struct at_driver_attribute {
    int id;
    char pad[4];
    union {
        struct at_driver_dims cluster;
        int allowed;
        char bytes[64];
    } value;
};

/* CUlaunchConfig. */
struct at_driver_launch {
    struct at_driver_dims grid, block;
    unsigned shared_bytes;
    void *stream;
    struct at_driver_attribute *attributes;
    unsigned n_attributes;
};

/* CUtensorMap. */
struct at_driver_map {
    _Alignas(64) unsigned char bytes[128];
};

enum {
    AT_JIT_ERROR_LOG = 5, /* CU_JIT_ERROR_LOG_BUFFER and its size */
    AT_JIT_ERROR_LOG_BYTES = 6,
    AT_FUNCTION_MAX_SHARED = 8, /* CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES */
    AT_FUNCTION_ANY_CLUSTER = 14,
    AT_DEVICE_MULTIPROCESSORS = 16, /* CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT */
    AT_DEVICE_MAJOR = 75,
    AT_DEVICE_MINOR = 76
};

/* return type, member, parameters, name in the library */
/* clang-format off */
#define AT_DRIVER_LIST(X)                                                                                              \
    X(error_name,     (int code, const char **text),                                        "cuGetErrorName")          \
    X(error_string,   (int code, const char **text),                                        "cuGetErrorString")        \
    X(device,         (int *device),                                                        "cuCtxGetDevice")          \
    X(device_is,      (int *value, int attribute, int device),                              "cuDeviceGetAttribute")    \
    X(synchronize,    (void),                                                               "cuCtxSynchronize")        \
    X(load,           (void **module, const void *image, unsigned n, int *options, void **values), "cuModuleLoadDataEx") \
    X(unload,         (void *module),                                                       "cuModuleUnload")          \
    X(function,       (void **function, void *module, const char *name),                    "cuModuleGetFunction")     \
    X(function_load,  (void *function),                                                     "cuFuncLoad")              \
    X(function_set,   (void *function, int attribute, int value),                           "cuFuncSetAttribute")      \
    X(parameter,      (void *function, size_t i, size_t *offset, size_t *bytes),            "cuFuncGetParamInfo")      \
    X(launch,         (const struct at_driver_launch *launch, void *function, void **arguments, void **extra), "cuLaunchKernelEx") \
    X(allocate,       (uint64_t *address, size_t bytes),                                    "cuMemAlloc_v2")           \
    X(release,        (uint64_t address),                                                   "cuMemFree_v2")            \
    X(copy_in,        (uint64_t to, const void *from, size_t bytes),                        "cuMemcpyHtoD_v2")         \
    X(copy_out,       (void *to, uint64_t from, size_t bytes),                              "cuMemcpyDtoH_v2")         \
    X(copy,           (uint64_t to, uint64_t from, size_t bytes, void *stream),             "cuMemcpyDtoDAsync_v2")    \
    X(fill,           (uint64_t to, unsigned char value, size_t bytes),                     "cuMemsetD8_v2")           \
    X(encode_map,     (struct at_driver_map *map, int type, unsigned rank, void *address, const uint64_t *dims,        \
                       const uint64_t *strides, const unsigned *box, const unsigned *steps, int interleave,           \
                       int swizzle, int l2, int oob),                                       "cuTensorMapEncodeTiled")
/* clang-format on */

struct at_driver {
    void *library;
    int sm, multiprocessors; /* 90, 132; 0 before at_driver_ask() */
#define X(member, parameters, name) int(*member) parameters;
    AT_DRIVER_LIST(X)
#undef X
};

/* Opens `library`, libcuda.so.1 as a rule. AT_ENVIRONMENT: it is not there, or lacks a function. */
at_status at_driver_open(const char *library, struct at_driver *driver);
/* Fills sm and multiprocessors of the device whose context this thread has. */
at_status at_driver_ask(struct at_driver *driver);
void at_driver_close(struct at_driver *driver);
/* AT_ENVIRONMENT: "DOING: CUDA_ERROR_... (NUMBER): what the driver says of it"; AT_OK where code is 0. */
at_status at_driver_said(const struct at_driver *driver, int code, const char *doing);

#endif
