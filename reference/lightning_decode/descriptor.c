/* Lightning attention, decode: its descriptor, and what is a problem of it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "lightning_decode/lightning_decode.h"

#include <stddef.h>

#define PLACE(member) AT_OWN_PLACE(at_lightning_own, member)

enum { E, STEPS, OUTER, FIELDS };

static const char *outer_text(int i) {
    static const char *const words[] = { "exact", "rounded" };
    return i >= 0 && i < 2 ? words[i] : NULL;
}

/* clang-format off */
static const struct at_scalar own[FIELDS] = {
    [E]     = { "e", AT_SCALAR_SIZE, PLACE(e), 128, "columns of a state, values of a token; default d", "e", 1, 4096, .word = "column" },
    [STEPS] = { "steps", AT_SCALAR_SIZE, PLACE(steps), 1, "decode steps, one after the other", "steps", 1, 4096, .word = "step" },
    [OUTER] = { "outer", AT_SCALAR_CHOICE, PLACE(outer), AT_LIGHTNING_EXACT, "k v^T is rounded to the input's type before it is added, or not", "outer", .text = outer_text },
};
static const char *const keys[] = { "b", "h", "d", "e", "steps", "outer", "dtype", "data", "seed", "slope", "require", "expect", NULL };
static const struct at_tensor_spec tensors[] = {
    { "q", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_b, AT_DIM_h, AT_DIM_OWN(STEPS), AT_DIM_d }, "queries", AT_FILL_ROWS },
    { "k", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_b, AT_DIM_h, AT_DIM_OWN(STEPS), AT_DIM_d }, "keys", AT_FILL_ROWS },
    { "v", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_b, AT_DIM_h, AT_DIM_OWN(STEPS), AT_DIM_OWN(E) }, "values", AT_FILL_ROWS },
    { "slope", AT_IN, AT_FORMAT_F32, { AT_DIM_h }, "the state decays by exp(-slope) a step", AT_FILL_DECAY },
    { "kv", AT_INOUT, AT_FORMAT_F32, { AT_DIM_b, AT_DIM_h, AT_DIM_d, AT_DIM_OWN(E) }, "states", AT_FILL_ROWS },
    { "o", AT_OUT, AT_FORMAT_DTYPE, { AT_DIM_b, AT_DIM_h, AT_DIM_OWN(STEPS), AT_DIM_OWN(E) }, "answers" },
};
static const struct at_decoy_spec decoys[AT_LIGHTNING_FAULTS] = {
    [AT_LIGHTNING_NO_DECAY]           = { "no_decay", "the state does not decay" },
    [AT_LIGHTNING_GROWS]              = { "grows", "the sign of the slope is lost: exp(+slope)" },
    [AT_LIGHTNING_PRODUCT_DECAYED]    = { "product_decayed", "what is added decays at once" },
    [AT_LIGHTNING_OLD_STATE]          = { "old_state", "q meets the state from before the step" },
    [AT_LIGHTNING_NOT_UPDATED]        = { "not_updated", "the state stays as it was" },
    [AT_LIGHTNING_NOT_CARRIED]        = { "not_carried", "each step begins from the first state" },
    [AT_LIGHTNING_TRANSPOSED]         = { "transposed", "v k^T in place of k v^T" },
    [AT_LIGHTNING_NEXT_HEAD_SLOPE]    = { "next_head_slope", "the slope of the next head" },
    [AT_LIGHTNING_NEXT_REQUEST_STATE] = { "next_request_state", "the state of the next request" },
    [AT_LIGHTNING_Q_SCALED]           = { "q_scaled", "q is multiplied by 1/sqrt(d)" },
    [AT_LIGHTNING_LAST_D_UNSEEN]      = { "last_d_unseen", "the last row of the state is missing from o" },
    [AT_LIGHTNING_LAST_COLUMN_LOST]   = { "last_column_lost", "the last column is not updated, and 0 in o" },
};

static const struct at_factor batch = { .name = "b", .meaning = "requests", .classes = AT_CLASSES("b=2", "b=1", "b=3,5"), .far = AT_CLASSES("b=0", "b=33") };
static const struct at_factor heads = { .name = "h", .meaning = "heads", .classes = AT_CLASSES("h=2", "h=1", "h=3,5"), .far = AT_CLASSES("h=17") };
static const struct at_factor rows_of = { .name = "d", .meaning = "rows of a state about a warp and a block", .classes = AT_CLASSES("d=24", "d=1", "d=2,3,7", "d=31,32,33", "d=64,65,96"), .far = AT_CLASSES("d=127,128,129,160", "d=256,257"), .any = "d=1..70" };
static const struct at_factor columns = { .name = "e", .meaning = "columns about a vector and a slice", .classes = AT_CLASSES("e=32", "e=1", "e=3,5,7", "e=4,8,36", "e=31,33", "e=64,96"), .far = AT_CLASSES("e=127,128,129,132", "e=260,257"), .any = "e=1..70" };
static const struct at_factor steps_of = { .name = "steps", .meaning = "steps that carry the state", .classes = AT_CLASSES("steps=1", "steps=2,3", "steps=5"), .far = AT_CLASSES("steps=9") };
static const struct at_factor product = { .name = "outer", .meaning = "rounding of what is added", .classes = AT_CLASSES("outer=exact", "outer=rounded") };
static const struct at_factor dtype = { .name = "dtype", .meaning = "format of the activations", .classes = AT_CLASSES("dtype=bf16", "dtype=f16", "dtype=f32") };
static const struct at_factor values = { .name = "data", .meaning = "what the values look like", .classes = AT_CLASSES("data=normal", "data=exact", "data=same_sign,uniform", "data=heavy_tail expect=OVERFLOWED", "data=outlier_channel expect=OVERFLOWED", "data=ties", "data=subnormal") };
static const struct at_factor decays = { .name = "slope", .meaning = "decays, none, growth", .classes = AT_CLASSES("", "slope=0", "slope=0.01,4", "slope=-0.3"), .far = AT_CLASSES("slope=12,87.6"), .any = "slope=0.004,0.1,0.84" };
static const struct at_factor *const domain[] = { &batch, &heads, &rows_of, &columns, &steps_of, &product, &dtype, &values, &decays, NULL };
/* clang-format on */

static at_status check_shape(const struct at_problem *p, int i) {
    const struct at_tensor_spec *spec = &p->op->tensors[i];
    const struct at_tensor *t = &p->tensors[i];
    const enum at_format format = spec->format == AT_FORMAT_F32 ? AT_F32 : p->dtype;
    int64_t wanted = 1, found = at_tensor_count(t);
    for (int k = 0; k < AT_MAX_RANK && spec->dims[k] != AT_DIM_NONE; k++)
        wanted *= at_dim_size(p, spec->dims[k]);
    if (found != wanted || (found > 0 && t->format != format))
        return AT_FAIL(AT_USAGE, "lightning_decode: tensor %s has %lld elements of %s, wanted %lld of %s", spec->name,
                       (long long)found, at_format_info(t->format)->name, (long long)wanted,
                       at_format_info(format)->name);
    if (spec->role != AT_OUT && found > 0 && !t->data)
        return AT_FAIL(AT_USAGE, "lightning_decode: tensor %s has no data", spec->name);
    return AT_OK;
}

static at_status check(const struct at_problem *p) {
    const struct at_sizes *s = &p->sizes;
    const struct at_lightning_own z = at_lightning_own_of(p);
    if (s->b < 0 || s->h < 1 || s->d < 1 || z.e < 1 || z.steps < 1)
        return AT_FAIL(AT_USAGE,
                       "lightning_decode: b, h, d, e, steps are %lld, %lld, %lld, %lld, %lld, wanted 0, 1, 1, "
                       "1, 1 or more",
                       (long long)s->b, (long long)s->h, (long long)s->d, (long long)z.e, (long long)z.steps);
    if (p->dtype != AT_F32 && p->dtype != AT_F16 && p->dtype != AT_BF16)
        return AT_FAIL(AT_USAGE, "lightning_decode: dtype is %d, wanted f32, f16 or bf16", (int)p->dtype);
    if (z.outer != AT_LIGHTNING_EXACT && z.outer != AT_LIGHTNING_ROUNDED)
        return AT_FAIL(AT_USAGE, "lightning_decode: outer is %d, wanted exact or rounded", (int)z.outer);
    for (int i = 0; i < p->op->n_tensors; i++)
        AT_TRY(check_shape(p, i));
    return AT_OK;
}

/* A row is a request and head: a state and its answers. */
static int64_t rows(const struct at_problem *p) { return p->sizes.b * p->sizes.h; }

static void row_span(const struct at_problem *p, int tensor, int64_t row, int64_t *first, int64_t *count) {
    const struct at_lightning_own z = at_lightning_own_of(p);
    *count = (tensor == AT_LIGHTNING_KV ? p->sizes.d : z.steps) * z.e;
    *first = row * *count;
}

static double row_work(const struct at_problem *p, int64_t row) {
    const struct at_lightning_own z = at_lightning_own_of(p);
    (void)row;
    return 3.0 * (double)z.steps * (double)p->sizes.d * (double)z.e;
}

static void unit_rows(const struct at_problem *p, int64_t request, int64_t *first, int64_t *count) {
    *first = request * p->sizes.h;
    *count = p->sizes.h;
}

static int64_t request_of_row(const struct at_problem *p, int64_t row) { return row / p->sizes.h; }

static int64_t next_head_row(const struct at_problem *p, int64_t row) {
    return row / p->sizes.h * p->sizes.h + (row % p->sizes.h + 1) % p->sizes.h;
}

/* Decay, product and their sum; a product and a sum of o. */
static double flops(const struct at_problem *p) { return (double)rows(p) * 5.0 / 3.0 * row_work(p, 0); }

/* A state is read and written. */
static int64_t moved(const struct at_problem *p, int tensor) {
    return at_tensor_count(&p->tensors[tensor]) * (tensor == AT_LIGHTNING_KV ? 2 : 1);
}

/* Sizes of requests that attention has stay 0. */
static void complete(struct at_problem *p, unsigned given) {
    struct at_lightning_own z = at_lightning_own_of(p);
    p->sizes = (struct at_sizes){ .b = p->sizes.b, .h = p->sizes.h, .d = p->sizes.d };
    if (!(given >> E & 1))
        z.e = p->sizes.d;
    at_lightning_own_set(p, &z);
}

const struct at_op at_op_lightning_decode = {
    .name = "lightning_decode",
    .summary = "kv = exp(-slope) kv + k v^T in place, o = q kv: decode steps of linear attention",
    .source = "001",
    .tensors = tensors,
    .n_tensors = sizeof tensors / sizeof *tensors,
    .decoys = decoys,
    .n_decoys = AT_LIGHTNING_FAULTS,
    .kind = AT_KIND_ROWS,
    .uses = AT_USES(b) | AT_USES(h) | AT_USES(d),
    .own = own,
    .n_own = FIELDS,
    .keys = keys,
    .domain = domain,
    .declares = AT_DECLARES_QK | AT_DECLARES(exp) | AT_DECLARES(fir_fma),
    .complete = complete,
    .batch = AT_DIM_b,
    .unit_rows = unit_rows,
    .request_of_row = request_of_row,
    .next_head_row = next_head_row,
    .flops = flops,
    .moved = moved,
    .check = check,
    .rows = rows,
    .row_span = row_span,
    .row_work = row_work,
    .evaluate = at_lightning_evaluate,
    .model = at_lightning_model,
    .decoy = at_lightning_decoy,
};
