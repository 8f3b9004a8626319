/* The same behind tvm-ffi's C convention, without its headers or its library.
 * SPDX-License-Identifier: Apache-2.0
 *
 *     gcc -O2 -shared -fPIC softmax_tvm_ffi.c -o libmine.so -lm
 *     attest verify --runner 'attest-so ./libmine.so' --cases 'smoke:softmax_prefill*'
 *
 * Who has tvm-ffi exports such a function by TVM_FFI_DLL_EXPORT_TYPED_FUNC, takes TensorViews, and puts the text of the
 * declaration into libmine.so.attest. */
#include <stdint.h>
#include <stdlib.h>

#include "softmax_float.h"

/* A value: the number of its type, and it. A tensor that a problem does not have is of type 0. */
struct value {
    int32_t type;
    uint32_t zero;
    union {
        int64_t whole;
        double real;
        const struct tensor *tensor;
    } as;
};
struct tensor {
    void *data;
    int32_t device_type, device_id, rank;
    uint8_t code, bits;
    uint16_t lanes;
    int64_t *shape, *stride;
    uint64_t byte_offset;
};
enum { WHOLE = 1, REAL = 3, TENSOR = 7, HOST = 1, FLOAT_CODE = 2 };

extern const char attest_declaration[];
const char attest_declaration[] =
    "[softmax_prefill/02_float_tvm_ffi]\n"
    "tvm_ffi = softmax\n"
    "arguments = q k v query_start seq_lens key_start block_table o lse page causal scale\n"
    "dtypes = f32\n"
    "numerics = free_order=1 qk_unit=f32 pv_unit=f32\n"
    "summary = a query and a head at a time, in float\n";

int __tvm_ffi_softmax(void *self, const struct value *arguments, int32_t n, struct value *result);

static void *memory(const struct value *v) { return v->type == TENSOR ? v->as.tensor->data : NULL; }

int __tvm_ffi_softmax(void *self, const struct value *arguments, int32_t n, struct value *result) {
    enum { Q, K, V, QUERY_START, SEQ_LENS, KEY_START, BLOCK_TABLE, O, LSE, PAGE, CAUSAL, SCALE, ALL };
    (void)self;
    (void)result;
    if (n != ALL || arguments[PAGE].type != WHOLE || arguments[SCALE].type != REAL)
        return -1;
    if (arguments[O].type != TENSOR || arguments[LSE].type != TENSOR ||
        arguments[QUERY_START].type != TENSOR) /* a problem without queries has nothing to write */
        return 0;
    if (arguments[KEY_START].type == TENSOR && arguments[BLOCK_TABLE].type == TENSOR) /* contiguous or in pages */
        return -1;
    const struct tensor *q = arguments[Q].as.tensor, *lens = arguments[SEQ_LENS].as.tensor;
    const struct tensor *k = arguments[K].type == TENSOR ? arguments[K].as.tensor : NULL;
    const struct tensor *table = arguments[BLOCK_TABLE].type == TENSOR ? arguments[BLOCK_TABLE].as.tensor : NULL;
    if (q->code != FLOAT_CODE || q->bits != 32 || q->lanes != 1 || q->device_type != HOST || q->stride[2] != 1)
        return -1;
    int64_t longest = 0;
    for (int64_t i = 0; i < lens->shape[0]; i++)
        longest = ((const int32_t *)lens->data)[i] > longest ? ((const int32_t *)lens->data)[i] : longest;
    const struct batch all = { .q = q->data,
                               .k = memory(&arguments[K]),
                               .v = memory(&arguments[V]),
                               .query_start = memory(&arguments[QUERY_START]),
                               .seq_lens = lens->data,
                               .key_start = memory(&arguments[KEY_START]),
                               .block_table = memory(&arguments[BLOCK_TABLE]),
                               .o = memory(&arguments[O]),
                               .lse = memory(&arguments[LSE]),
                               .score = malloc((size_t)(longest + 1) * sizeof(float)),
                               .b = lens->shape[0],
                               .h = q->shape[1],
                               .hk = k ? k->shape[1] : 1,
                               .d = q->shape[2],
                               .page = arguments[PAGE].as.whole,
                               .max_pages = table ? table->shape[1] : 0,
                               .causal = arguments[CAUSAL].as.whole,
                               .scale = (float)arguments[SCALE].as.real };
    if (!all.score)
        return -1;
    attend_all(&all);
    free(all.score);
    return 0;
}
