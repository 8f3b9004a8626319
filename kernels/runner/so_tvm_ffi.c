/* A call by tvm-ffi's C convention: arguments as typed values, errors fetched from libtvm_ffi.so where it is loaded.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/runner/so_tvm_ffi.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* ---- what the convention fixes ---- */

enum type { TYPE_NONE = 0, TYPE_INT = 1, TYPE_FLOAT = 3, TYPE_TENSOR = 7, TYPE_FIRST_OBJECT = 64 };
enum { DEVICE_CUDA = 2 };

struct value {
    int32_t type;
    uint32_t zero;
    union {
        int64_t whole;
        double real;
        void *pointer;
    } as;
};

struct dl_type {
    uint8_t code, bits;
    uint16_t lanes;
};

struct dl_tensor {
    void *data;
    int32_t device_type, device_id, rank;
    struct dl_type type;
    int64_t *shape, *stride;
    uint64_t byte_offset;
};

/* Objects are counted; an error's kind and message stand behind the head. */
struct object {
    uint64_t count;
    int32_t type;
    uint32_t zero;
    void *deleter;
};
struct bytes {
    const char *data;
    size_t size;
};
struct error_object {
    struct object head;
    struct bytes kind, message;
};

_Static_assert(sizeof(struct value) == 16 && sizeof(struct dl_tensor) == 48 && sizeof(struct object) == 24,
               "the convention's sizes");

typedef int function(void *self, const struct value *arguments, int32_t n, struct value *result);

static struct dl_type type_of(enum at_format format) {
    static const struct dl_type types[AT_FORMAT_COUNT] = {
        [AT_F64] = { 2, 64, 1 },  [AT_F32] = { 2, 32, 1 },  [AT_TF32] = { 2, 32, 1 }, [AT_F16] = { 2, 16, 1 },
        [AT_BF16] = { 4, 16, 1 }, [AT_E4M3] = { 10, 8, 1 }, [AT_E5M2] = { 12, 8, 1 }, [AT_I32] = { 0, 32, 1 },
    };
    return types[format];
}

/* ---- libtvm_ffi.so, where the library has brought it ---- */

typedef int drop_object(void *object);
typedef void move_error(void **error);
typedef int set_stream(int32_t device_type, int32_t device_id, void *stream, void **before);

static void drop(void *handle, void *object) {
    /* ISO C has no conversion from an object's pointer to a function's */
    const union {
        void *object;
        drop_object *call;
    } found = { dlsym(handle, "TVMFFIObjectDecRef") };
    if (found.call)
        found.call(object);
}

/* "ValueError: the message", in one line. */
static void explain(void *handle, char *why, size_t size) {
    void *taken = NULL;
    const union {
        void *object;
        move_error *call;
    } found = { dlsym(handle, "TVMFFIErrorMoveFromRaised") };
    if (found.call)
        found.call(&taken);
    if (!taken)
        return;
    const struct error_object *error = taken;
    snprintf(why, size, "%.*s: %.*s", (int)error->kind.size, error->kind.data, (int)error->message.size,
             error->message.data);
    drop(handle, taken);
    for (; *why; why++)
        if (*why == '\n')
            *why = ' ';
}

static void put_on(void *handle, const struct at_so_place *place) {
    const union {
        void *object;
        set_stream *call;
    } found = { dlsym(handle, "TVMFFIEnvSetStream") };
    if (place->device_type == DEVICE_CUDA && found.call)
        found.call(DEVICE_CUDA, 0, place->stream, NULL);
}

/* ---- the call ---- */

struct tensors {
    struct dl_tensor tensor[AT_SO_ARGUMENTS];
    int64_t shape[AT_SO_ARGUMENTS][AT_MAX_RANK], stride[AT_SO_ARGUMENTS][AT_MAX_RANK];
};

static struct value tensor_value(const struct at_tensor *t, int i, int device_type, struct tensors *all) {
    if (!t->data)
        return (struct value){ .type = TYPE_NONE };
    int64_t step = 1;
    for (int d = t->rank - 1; d >= 0; d--) {
        all->shape[i][d] = t->shape[d];
        all->stride[i][d] = step;
        step *= t->shape[d];
    }
    all->tensor[i] = (struct dl_tensor){ .data = t->data,
                                         .device_type = device_type,
                                         .rank = t->rank,
                                         .type = type_of(t->format),
                                         .shape = all->shape[i],
                                         .stride = all->stride[i] };
    return (struct value){ .type = TYPE_TENSOR, .as.pointer = &all->tensor[i] };
}

static struct value number_value(const struct at_problem *problem, const struct at_scalar *field) {
    const double number = at_scalar_get(problem, field);
    if (field->type == AT_SCALAR_FLOAT)
        return (struct value){ .type = TYPE_FLOAT, .as.real = number };
    return (struct value){ .type = TYPE_INT, .as.whole = (int64_t)number };
}

int at_so_call_tvm_ffi(const struct at_so_variant *v, void *handle, const struct at_problem *problem,
                       const struct at_so_place *place, char *why, size_t size) {
    struct value arguments[AT_SO_ARGUMENTS], result = { .type = TYPE_NONE };
    struct tensors tensors;
    function *callee;
    memcpy(&callee, &v->function,
           sizeof callee); /* ISO C has no conversion between pointers to objects and to functions */
    for (int i = 0; i < v->n_arguments; i++) {
        const struct at_so_argument *a = &v->arguments[i];
        arguments[i] = a->field ? number_value(problem, a->field)
                                : tensor_value(&problem->tensors[a->tensor], i, place->device_type, &tensors);
    }
    put_on(handle, place);
    const int code = callee(NULL, arguments, v->n_arguments, &result);
    if (code)
        explain(handle, why, size);
    else if (result.type >= TYPE_FIRST_OBJECT)
        drop(handle, result.as.pointer);
    return code;
}
