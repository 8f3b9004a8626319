/* Gated products: the walk over token rows, the product with its limit, and the tables that the operators share.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Limit. a is f(gate), off by at most da. The kernel's product p in f32 is off from a * up by da |up|, and by one rounding of
 * what it then is: 2^-24 of it, or 2^-150 where it underflows; rounding y to a narrower format adds one rounding of that. The
 * reference's own product is off by 2^-53 of it. Where a magnitude can reach what rounds to infinity, nothing is promised.
 * Where up is infinite or NaN the class of y is certain unless a can be both 0 and not, or of either sign. */
#include "gated/gated.h"

#include <math.h>

static const char *halves_name(int i) {
    static const char *const names[] = { "apart", "together" };
    return i >= 0 && i < 2 ? names[i] : NULL;
}

#define PLACE(member) AT_OWN_PLACE(at_gated_own, member)

/* clang-format off */
enum { APART, TOGETHER, HALVES };
const struct at_scalar at_gated_scalars[AT_GATED_SCALARS] = {
    [APART]    = { "apart", AT_SCALAR_SIZE, PLACE(apart), 0, "channels of gate and of up; 0: they are together", .word = "channel of a half" },
    [TOGETHER] = { "together", AT_SCALAR_SIZE, PLACE(together), 0, "channels of both in one tensor; 0: they are apart", .word = "channel of both halves" },
    [HALVES]   = { "halves", AT_SCALAR_CHOICE, PLACE(halves), AT_HALVES_APART, "gate and up are two tensors, or the halves of each row of one; default apart", "halves", .text = halves_name },
};
const struct at_tensor_spec at_gated_tensors[AT_GATED_TENSORS] = {
    [AT_GATED_GATE]    = { "gate", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_OWN(APART) }, "absent: together", AT_FILL_ROWS },
    [AT_GATED_UP]      = { "up", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_OWN(APART) }, "absent: together", AT_FILL_ROWS },
    [AT_GATED_GATE_UP] = { "gate_up", AT_IN, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_OWN(TOGETHER) }, "absent: apart", AT_FILL_ROWS },
    [AT_GATED_Y]       = { "y", AT_OUT, AT_FORMAT_DTYPE, { AT_DIM_tokens, AT_DIM_channels }, "gated activations" },
};
const char *const at_gated_keys[] = { "tokens", "channels", "halves", "dtype", "data", "seed", "require", "expect", NULL };

static const struct at_factor tokens = { .name = "tokens", .meaning = "rows", .classes = AT_CLASSES("tokens=3,5,7", "tokens=1", "tokens=2,4,16", "tokens=31,33"), .far = AT_CLASSES("tokens=513", "tokens=1025,1100"), .any = "tokens=1..40" };
static const struct at_factor channels = { .name = "channels", .meaning = "about vector widths and blocks", .classes = AT_CLASSES("channels=256", "channels=2,3,5", "channels=4,8,16,64", "channels=7,9,15,17,31,33", "channels=127,129,1000", "channels=1023,1025,1028"), .far = AT_CLASSES("channels=4096", "channels=3072", "channels=4099,2047,4101"), .any = "channels=2..1100" };
static const struct at_factor halves = { .name = "halves", .meaning = "where gate and up lie", .classes = AT_CLASSES("halves=apart", "halves=together") };
static const struct at_factor dtype = { .name = "dtype", .meaning = "format of the activations", .classes = AT_CLASSES("dtype=bf16", "dtype=f16", "dtype=f32") };
/* An outlier of gate and up alike may be beyond f16. */
static const struct at_factor values = { .name = "data", .meaning = "what the values look like", .classes = AT_CLASSES("data=normal", "data=same_sign,uniform", "data=heavy_tail", "data=outlier_channel expect=OVERFLOWED", "data=ties") };
const struct at_factor *const at_gated_domain[] = { &tokens, &channels, &halves, &dtype, &values, NULL };
/* clang-format on */

/* ---- where gate and up lie ---- */

struct pair {
    double gate, up;
};

static struct pair read_pair(const struct at_problem *p, int64_t row, int64_t channel, int interleaved) {
    const int64_t n = p->sizes.channels, both = 2 * n * row;
    if (at_gated_own_of(p).halves == AT_HALVES_APART)
        return (struct pair){ at_tensor_get(&p->tensors[AT_GATED_GATE], row * n + channel),
                              at_tensor_get(&p->tensors[AT_GATED_UP], row * n + channel) };
    const struct at_tensor *x = &p->tensors[AT_GATED_GATE_UP];
    return (struct pair){ at_tensor_get(x, both + (interleaved ? 2 * channel : channel)),
                          at_tensor_get(x, both + (interleaved ? 2 * channel + 1 : n + channel)) };
}

static struct pair faulty_pair(const struct at_problem *p, int fault, int64_t row, int64_t channel) {
    struct pair right = read_pair(p, row, channel, fault == AT_GATED_INTERLEAVED);
    switch (fault) {
    case AT_GATED_SWAPPED:
        return (struct pair){ right.up, right.gate };
    case AT_GATED_NEXT_ROW:
        return (struct pair){ right.gate, read_pair(p, (row + 1) % p->sizes.tokens, channel, 0).up };
    case AT_GATED_NEXT_CHANNEL:
        return (struct pair){ right.gate, read_pair(p, row, (channel + 1) % p->sizes.channels, 0).up };
    default:
        return right;
    }
}

/* ---- the product ---- */

/* y is not finite: 0 where every a within the error gives the same. */
static double class_limit(struct at_gated_bounded a, double up, int declared) {
    if (isnan(up) || a.error == 0 || !declared)
        return 0;
    return isinf(up) && fabs(a.value) > a.error ? 0 : (double)INFINITY;
}

double at_gated_limit(enum at_format out, struct at_gated_bounded a, double up, int declared) {
    const struct at_format_info *f32 = at_format_info(AT_F32), *f = at_format_info(out);
    const double value = a.value * up;
    if (!(a.error < INFINITY) || !isfinite(value))
        return a.error < INFINITY ? class_limit(a, up, declared) : (double)INFINITY;
    double error = a.error * fabs(up), size = fabs(value) + error;
    const double own = 0x1p-53 * size + (a.error > 0 && up != 0 ? 0x1p-1074 : 0); /* which a product may fall below */
    if (size + own == 0 || !declared)
        return error + own;
    if (!(size + own < at_format_info(AT_F32)->end))
        return INFINITY;
    error += f32->u * size + f32->eta;
    if (out != AT_F32) {
        size = fabs(value) + error;
        if (!(size + own < at_format_info(out)->end))
            return INFINITY;
        error += f->u * size + f->eta;
    }
    return error + own;
}

/* ---- elements ---- */

struct call {
    const struct at_gated_function *function;
    const struct at_problem *problem;
    const struct at_numerics *numerics;
    enum at_gated_mode mode;
    int decoy;
    struct at_eval *eval;
};

/* What the product is before it is rounded to y's format is what the ledger is about. */
static void note(const struct call *call, int64_t row, int64_t channel, double value) {
    if (call->eval->ledger && !at_ledger_note_usual(call->eval->ledger, AT_STAGE_out, value))
        at_ledger_note(call->eval->ledger, AT_STAGE_out, value,
                       &(struct at_place){ .q = row, .k = channel, .step = -1 });
}

static void put(const struct call *call, int64_t i, double value, double limit) {
    if (call->eval->value[AT_GATED_Y])
        call->eval->value[AT_GATED_Y][i] = value;
    if (call->eval->limit[AT_GATED_Y])
        call->eval->limit[AT_GATED_Y][i] = limit;
}

static double distance(double a, double b) { return a == b || (isnan(a) && isnan(b)) ? 0 : fabs(a - b); }

static void model_element(const struct call *call, int64_t row, int64_t channel, int64_t i) {
    const struct pair x = read_pair(call->problem, row, channel, 0);
    const enum at_format out = call->problem->dtype;
    const struct at_gated_model m = call->function->model(call->numerics, (float)x.gate, (float)x.up);
    const double value = at_round(out, (double)m.product);
    note(call, row, channel, (double)m.product);
    put(call, i, value,
        fmax(distance(at_round(out, (double)m.low), value), distance(at_round(out, (double)m.high), value)));
}

static void exact_element(const struct call *call, int64_t row, int64_t channel, int64_t i) {
    const struct pair x = read_pair(call->problem, row, channel, 0);
    const struct at_gated_bounded a = call->function->activation(call->numerics, x.gate);
    note(call, row, channel, a.value * x.up);
    put(call, i, a.value * x.up, at_gated_limit(call->problem->dtype, a, x.up, call->numerics != NULL));
}

static void decoy_element(const struct call *call, int64_t row, int64_t channel, int64_t i) {
    const struct pair x = faulty_pair(call->problem, call->decoy, row, channel);
    if (call->decoy < AT_GATED_FAULTS)
        put(call, i, call->function->activation(NULL, x.gate).value * x.up, 0);
    else
        put(call, i, call->function->faulty(call->decoy, x.gate, x.up), 0);
}

at_status at_gated_walk(const struct at_gated_function *function, const struct at_problem *problem,
                        const struct at_numerics *numerics, enum at_gated_mode mode, int decoy, int64_t row0,
                        int64_t row1, struct at_eval *eval) {
    const struct call call = { function, problem, numerics, mode, decoy, eval };
    const int64_t n = problem->sizes.channels;
    if (mode == AT_GATED_MODEL && numerics->free_order)
        return AT_FAIL(AT_UNSUPPORTED, "%s: no arithmetic is declared, so there is no modelled value",
                       problem->op->name);
    const char *declines = function->declines && numerics ? function->declines(numerics) : NULL;
    if (declines && mode != AT_GATED_DECOY)
        return AT_FAIL(AT_UNSUPPORTED, "%s: %s", problem->op->name, declines);
    for (int64_t row = row0; row < row1; row++)
        for (int64_t c = 0; c < n; c++)
            (mode == AT_GATED_MODEL   ? model_element
             : mode == AT_GATED_EXACT ? exact_element
                                      : decoy_element)(&call, row, c, row * n + c);
    return AT_OK;
}

/* ---- the descriptor ---- */

void at_gated_complete(struct at_problem *p, unsigned given) {
    struct at_gated_own z = at_gated_own_of(p);
    (void)given;
    z.apart = z.halves == AT_HALVES_APART ? p->sizes.channels : 0;
    z.together = z.halves == AT_HALVES_TOGETHER ? 2 * p->sizes.channels : 0;
    at_gated_own_set(p, &z);
}

at_status at_gated_check(const struct at_problem *p) {
    const struct at_gated_own z = at_gated_own_of(p);
    struct at_problem whole = *p;
    if (p->sizes.tokens < 0 || p->sizes.channels < 1)
        return AT_FAIL(AT_USAGE, "%s: tokens and channels are %lld and %lld, wanted 0 or more and 1 or more",
                       p->op->name, (long long)p->sizes.tokens, (long long)p->sizes.channels);
    if (z.halves != AT_HALVES_APART && z.halves != AT_HALVES_TOGETHER)
        return AT_FAIL(AT_USAGE, "%s: halves is %d, wanted 0 (apart) or 1 (together)", p->op->name, (int)z.halves);
    at_gated_complete(&whole, 0);
    const struct at_gated_own want = at_gated_own_of(&whole);
    if (z.apart != want.apart || z.together != want.together)
        return AT_FAIL(AT_USAGE, "%s: apart and together are %lld and %lld, wanted %lld and %lld for %lld channels %s",
                       p->op->name, (long long)z.apart, (long long)z.together, (long long)want.apart,
                       (long long)want.together, (long long)p->sizes.channels, halves_name(z.halves));
    for (int i = 0; i < AT_GATED_Y; i++) {
        const int64_t wanted = p->sizes.tokens * (i == AT_GATED_GATE_UP ? z.together : z.apart),
                      found = at_tensor_count(&p->tensors[i]);
        if (found != wanted || p->tensors[i].format != p->dtype || (wanted > 0 && !p->tensors[i].data))
            return AT_FAIL(AT_USAGE, "%s: tensor %s has %lld elements of %s, wanted %lld of %s with data", p->op->name,
                           at_gated_tensors[i].name, (long long)found, at_format_info(p->tensors[i].format)->name,
                           (long long)wanted, at_format_info(p->dtype)->name);
    }
    return AT_OK;
}

int64_t at_gated_rows(const struct at_problem *p) { return p->sizes.tokens; }

void at_gated_row_span(const struct at_problem *p, int tensor, int64_t row, int64_t *first, int64_t *count) {
    (void)tensor;
    *count = p->sizes.channels;
    *first = row * *count;
}

double at_gated_row_work(const struct at_problem *p, int64_t row) {
    (void)row;
    return 4.0 * (double)p->sizes.channels;
}
