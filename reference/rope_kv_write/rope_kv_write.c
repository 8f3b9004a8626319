/* New queries and keys turn by the positions of their tokens (rotation/rotation.h), and the turned keys and the values as they
 * are go to their slots of a cache, in place: what rope and kv_write do, as one launch.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every token's queries go to q_out; a token of slot -1 writes no key and no value, and every row of the cache that no
 * token names stays as it was, to the bit. So do values and the channels from rot on: a NaN keeps its payload.
 *
 * Row i of the operator is token i: its queries, and the row of the cache that it writes. Rows from `tokens` on are the rows of
 * the cache, of which those that a token writes are empty here: all of the cache is compared, each row once. */
#include "rope_kv_write/rope_kv_write.h"

#include <string.h>

/* clang-format off */
static const struct at_tensor_spec tensors[] = {
    { "q", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_h, AT_DIM_d }, "queries of new tokens", AT_FILL_ROWS },
    { "k", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_hk, AT_DIM_d }, "keys of new tokens", AT_FILL_ROWS },
    { "v", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_hk, AT_DIM_d }, "values of new tokens", AT_FILL_ROWS },
    { "positions", AT_IN, AT_FORMAT_I32, { AT_DIM_tokens }, "place of each token in its request: a row of cos_sin", AT_FILL_POSITIONS },
    { "cos_sin", AT_IN, AT_FORMAT_OWN, { AT_DIM_OWN(AT_ROPE_MAX_POSITION), AT_DIM_OWN(AT_ROPE_ROT) }, "rot/2 cosines, then rot/2 sines of each position", AT_FILL_ROTARY },
    { "slot_mapping", AT_IN, AT_FORMAT_I32, { AT_DIM_tokens }, "row of the cache of each token; -1: not written", AT_FILL_SLOT_MAPPING },
    { "q_out", AT_OUT, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_h, AT_DIM_d }, "rotated queries" },
    { "k_cache", AT_INOUT, AT_FORMAT_DTYPE, { AT_DIM_slots, AT_DIM_hk, AT_DIM_d }, "cached keys", AT_FILL_ROWS },
    { "v_cache", AT_INOUT, AT_FORMAT_DTYPE, { AT_DIM_slots, AT_DIM_hk, AT_DIM_d }, "cached values", AT_FILL_ROWS },
};
static const struct at_decoy_spec decoys[AT_ROPE_KV_WRITE_FAULTS] = {
    AT_ROPE_DECOYS,
    AT_CACHE_DECOYS(AT_ROPE_KV_WRITE_OF_CACHE),
    [AT_ROPE_KV_WRITE_V_ROTATED]    = { "v_rotated", "values are rotated, too" },
    [AT_ROPE_KV_WRITE_SLOT_BEFORE]  = { "slot_before", "each token goes to the slot of the token before it" },
    [AT_ROPE_KV_WRITE_ONLY_WRITTEN] = { "only_written", "queries of a token of slot -1 are 0" },
};
/* clang-format on */

static int64_t row_elements(const struct at_problem *p) { return p->sizes.hk * p->sizes.d; }

static at_status check(const struct at_problem *p) {
    const struct at_sizes *s = &p->sizes;
    AT_TRY(at_cache_check_sizes(p));
    if (s->h < 1 || s->hk < 1 || s->d < 1)
        return AT_FAIL(AT_USAGE, "rope_kv_write: h, hk, d are %lld, %lld, %lld, wanted 1 or more", (long long)s->h,
                       (long long)s->hk, (long long)s->d);
    AT_TRY(at_rope_check_own(p));
    AT_TRY(at_rope_check_shapes(p));
    AT_TRY(at_rope_check_positions(p, AT_ROPE_KV_WRITE_POSITIONS));
    return at_cache_check_mapping(p, AT_ROPE_KV_WRITE_SLOT_MAPPING);
}

static int64_t rows(const struct at_problem *p) { return p->sizes.tokens + p->sizes.slots; }

static void row_span(const struct at_problem *p, int tensor, int64_t row, int64_t *first, int64_t *count) {
    const int is_q = tensor == AT_ROPE_KV_WRITE_Q_OUT;
    const int64_t n = (is_q ? p->sizes.h : p->sizes.hk) * p->sizes.d;
    const int64_t at = !is_q ? at_rope_kv_write_slot(p, row) : row < p->sizes.tokens ? row : -1;
    *first = at < 0 ? 0 : at * n;
    *count = at < 0 ? 0 : n;
}

static double row_work(const struct at_problem *p, int64_t row) {
    const double moved = 2.0 * (double)row_elements(p);
    return row < p->sizes.tokens ? 2.0 * (double)(p->sizes.h * p->sizes.d) + 2.0 * moved : moved;
}

/* Values, channels from rot on, and what is not written. */
static void bits(const struct at_problem *p, int t, void *codes, unsigned char *computed) {
    const int64_t d = p->sizes.d, rot = at_rope_own_of(p).rot, n = row_elements(p);
    const size_t row = (size_t)n * at_format_info(p->tensors[t].format)->bytes;
    if (t == AT_ROPE_KV_WRITE_Q_OUT) {
        const struct at_tensor *q = &p->tensors[AT_ROPE_KV_WRITE_Q];
        memcpy(codes, q->data, (size_t)at_tensor_bytes(q));
        for (int64_t i = 0; i < at_tensor_count(q); i++)
            computed[i] = i % d < rot;
        return;
    }
    const int is_k = t == AT_ROPE_KV_WRITE_K_CACHE;
    const struct at_tensor *from = &p->tensors[is_k ? AT_ROPE_KV_WRITE_K : AT_ROPE_KV_WRITE_V];
    memcpy(codes, p->tensors[t].data, (size_t)p->sizes.slots * row);
    for (int64_t token = 0; token < p->sizes.tokens; token++) {
        const int64_t slot = at_rope_kv_write_slot(p, token);
        if (slot >= 0)
            memcpy((char *)codes + (size_t)slot * row, (const char *)from->data + (size_t)token * row, row);
        for (int64_t i = 0; is_k && slot >= 0 && i < n; i++)
            computed[slot * n + i] = i % d < rot;
    }
}

/* Of the table: each position's row once; of the cache: a row a token. */
static int64_t moved(const struct at_problem *p, int tensor) {
    if (tensor == AT_ROPE_KV_WRITE_COS_SIN)
        return at_rope_used_positions(p, AT_ROPE_KV_WRITE_POSITIONS) * at_rope_own_of(p).rot;
    const int is_cache = tensor == AT_ROPE_KV_WRITE_K_CACHE || tensor == AT_ROPE_KV_WRITE_V_CACHE;
    return is_cache ? p->sizes.tokens * row_elements(p) : at_tensor_count(&p->tensors[tensor]);
}

/* ---- cases ---- */

static const char *const keys[] = { "scenario",     "shrink", "step",    "b",        "h",     "hk",      "sq",
                                    "sk",           "prefix", "d",       "rot",      "style", "base",    "table",
                                    "max_position", "page",   "pool",    "capacity", "deal",  "padding", "dtype",
                                    "data",         "seed",   "require", "expect",   NULL };
/* clang-format off */
static const struct at_factor batch = { .name = "batch", .meaning = "new tokens of requests", .classes = AT_CLASSES("b=3 sq=1/7/0", "b=1 sq=1", "b=4 sq=1", "b=2 sq=17/40", "b=2 sq=9"), .far = AT_CLASSES("b=96,130 sq=1/0/2", "b=1 sq=300"), .any = "b=2 sq=1..40" };
static const struct at_factor before = { .name = "before", .meaning = "tokens before them, on and off a page", .classes = AT_CLASSES("prefix=20", "prefix=0", "prefix={page}", "prefix={2*page+1}", "prefix=300/0"), .any = "prefix=0..300" };
static const struct at_factor heads = { .name = "heads", .meaning = "of q, and of k and v", .classes = AT_CLASSES("h=8 hk=4", "h=1 hk=1", "h=6 hk=2", "h=3 hk=1", "h=8 hk=8"), .far = AT_CLASSES("h=32 hk=8") };
static const struct at_factor head_size = { .name = "d", .meaning = "about vector widths, and the part that is rotated", .classes = AT_CLASSES("d=64", "d=128", "d=96,80", "d=128 rot=32,64", "d=40 rot=16", "d=2,6,10", "d=20,100 rot=10", "d=3,7,33"), .far = AT_CLASSES("d=256 rot=64", "d=258"), .any = "d=2..130" };
static const struct at_factor page = { .name = "page", .meaning = "tokens a page", .classes = AT_CLASSES("page=16", "page=0", "page=1,3", "page=8,24", "page=64,128"), .any = "page=1..40" };
static const struct at_factor padding = { .name = "padding", .meaning = "tokens without a slot", .classes = AT_CLASSES("padding=0", "padding=1", "padding=3,5") };
static const struct at_factor dtype = { .name = "dtype", .meaning = "format of the activations", .classes = AT_CLASSES("dtype=bf16", "dtype=f16", "dtype=f32") };
static const struct at_factor values = { .name = "data", .meaning = "what the values look like", .classes = AT_CLASSES("data=normal", "data=exact", "data=uniform,same_sign", "data=heavy_tail,outlier_channel", "data=subnormal,ties") };
static const struct at_factor *const domain[] = { &batch, &before, &heads, &head_size, &at_rope_factor_style, &at_rope_factor_table, &at_rope_factor_base, &page, &padding, &dtype, &values, NULL };
/* clang-format on */

const struct at_op at_op_rope_kv_write = {
    .name = "rope_kv_write",
    .summary = "rotary position embedding of new q and k, the keys and new values into the rows of a cache, in place",
    .source = "000 §6.9, §6.10",
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .decoys = decoys,
    .n_decoys = AT_ROPE_KV_WRITE_FAULTS,
    .kind = AT_KIND_ROWS,
    .uses = AT_USES(b) | AT_USES(h) | AT_USES(hk) | AT_USES(d) | AT_USES(tokens) | AT_USES(slots) | AT_USES(page) |
            AT_USES(max_pages) | AT_USES(max_sq) | AT_USES(max_sk) | AT_USES(capacity),
    .own = at_rope_scalars,
    .n_own = AT_ROPE_SCALARS,
    .keys = keys,
    .domain = domain,
    .declares = AT_DECLARES(fir_fma),
    .complete = at_rope_complete,
    .own_format = at_rope_own_format,
    .batch = AT_DIM_tokens,
    .check = check,
    .rows = rows,
    .row_span = row_span,
    .row_work = row_work,
    .evaluate = at_rope_kv_write_evaluate,
    .model = at_rope_kv_write_model,
    .decoy = at_rope_kv_write_decoy,
    .bits = bits,
    .moved = moved,
};
