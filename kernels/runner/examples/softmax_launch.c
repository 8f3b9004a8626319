/* Softmax attention in float as a plain C function behind attest_launch.h: ragged batches, keys contiguous or in pages.
 * SPDX-License-Identifier: Apache-2.0
 *
 *     gcc -O2 -shared -fPIC -I PREFIX/include softmax_launch.c -o libmine.so -lm
 *     attest verify --runner 'attest-so ./libmine.so' --cases 'smoke:softmax_prefill*' */
#include "attest_launch.h"

#include "softmax_float.h"

ATTEST_DECLARATION("[softmax_prefill/01_float]\n"
                   "launch = softmax\n"
                   "supports = softmax_takes\n"
                   "dtypes = f32\n"
                   "numerics = free_order=1 qk_unit=f32 pv_unit=f32\n"
                   "summary = a query and a head at a time, in float\n");

ATTEST_EXPORT const char *softmax_takes(const struct attest_launch *launch);
ATTEST_EXPORT int softmax(const struct attest_launch *launch);

/* The memory of a tensor; NULL where this problem has none. */
static void *memory(const struct attest_launch *launch, const char *name) {
    const struct attest_tensor *t = attest_find_tensor(launch, name);
    return t ? t->data : NULL;
}

const char *softmax_takes(const struct attest_launch *launch) {
    return attest_int(launch, "d") > 256 ? "head sizes to 256" : NULL;
}

int softmax(const struct attest_launch *launch) {
    const struct batch all = { .q = memory(launch, "q"),
                               .k = memory(launch, "k"),
                               .v = memory(launch, "v"),
                               .query_start = memory(launch, "query_start"),
                               .seq_lens = memory(launch, "seq_lens"),
                               .key_start = memory(launch, "key_start"),
                               .block_table = memory(launch, "block_table"),
                               .o = memory(launch, "o"),
                               .lse = memory(launch, "lse"),
                               .score = malloc((size_t)(attest_int(launch, "max_sk") + 1) * sizeof(float)),
                               .b = attest_int(launch, "b"),
                               .h = attest_int(launch, "h"),
                               .hk = attest_int(launch, "hk"),
                               .d = attest_int(launch, "d"),
                               .page = attest_int(launch, "page"),
                               .max_pages = attest_int(launch, "max_pages"),
                               .causal = attest_int(launch, "causal"),
                               .scale = (float)attest_real(launch, "scale") };
    if (!all.score)
        return attest_fail(launch, "no memory for scores");
    if (all.o && all.lse && all.query_start && all.seq_lens) /* a problem without queries has nothing to write */
        attend_all(&all);
    free(all.score);
    return 0;
}
