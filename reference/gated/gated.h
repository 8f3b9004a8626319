/* What gated products share: y = f(gate) * up, element by element over rows of channels; where gate and up lie, the product
 * with its limit, decoys of the layout, and the walk over token rows.
 * SPDX-License-Identifier: Apache-2.0
 *
 * y is [tokens, channels]. halves=apart: gate and up are tensors of that shape; halves=together: both are in gate_up,
 * [tokens, 2 channels], a row of which is the gate's channels and then up's. What is not of the layout is absent.
 *
 * Arithmetic: f(gate) as the operator declares it, one product in f32, one rounding to the activations' format. */
#ifndef AT_GATED_H
#define AT_GATED_H

#include "attest/op.h"

enum { AT_GATED_GATE, AT_GATED_UP, AT_GATED_GATE_UP, AT_GATED_Y, AT_GATED_TENSORS };
enum at_halves { AT_HALVES_APART, AT_HALVES_TOGETHER };

struct at_gated_own {
    int64_t apart, together; /* width of gate and of up; of gate_up; 0: not of the layout */
    int32_t halves;
};
AT_OWN_STRUCT(at_gated_own)

/* An exact value, and how far the value of a kernel with the declared arithmetic may be from it; +inf: nothing is promised. */
struct at_gated_bounded {
    double value, error;
};

/* Products in f32 before y is rounded: the modelled one, and the least and the largest of a right kernel. */
struct at_gated_model {
    float product, low, high;
};

/* Ways of being wrong that all have, first in the list of decoys; an operator's own follow. */
enum at_gated_fault {
    AT_GATED_RIGHT = -1,
    AT_GATED_SWAPPED,
    AT_GATED_NEXT_ROW,
    AT_GATED_NEXT_CHANNEL,
    AT_GATED_INTERLEAVED,
    AT_GATED_FAULTS
};
#define AT_GATED_DECOYS \
    [AT_GATED_SWAPPED] = { "halves_swapped", "gate and up change places" }, \
    [AT_GATED_NEXT_ROW] = { "next_row", "up is the next row's" }, \
    [AT_GATED_NEXT_CHANNEL] = { "next_channel", "up is the next channel's" }, \
    [AT_GATED_INTERLEAVED] = { "interleaved", "gate and up together are read in turn, not one half after the other" }

/* An operator: f, and the product, of one element. */
struct at_gated_function {
    /* f(gate); without numerics the error is the reference's own. */
    struct at_gated_bounded (*activation)(const struct at_numerics *numerics, double gate);
    /* f(gate) * up, each wrong in way `fault` (from AT_GATED_FAULTS on). */
    double (*faulty)(int fault, double gate, double up);
    struct at_gated_model (*model)(const struct at_numerics *numerics, float gate, float up);
    /* Why there is neither limit nor model for a declaration, or NULL; the member is NULL where there always are. */
    const char *(*declines)(const struct at_numerics *numerics);
};

enum at_gated_mode { AT_GATED_EXACT, AT_GATED_MODEL, AT_GATED_DECOY };
at_status at_gated_walk(const struct at_gated_function *function, const struct at_problem *problem,
                        const struct at_numerics *numerics, enum at_gated_mode mode, int decoy, int64_t row0,
                        int64_t row1, struct at_eval *eval);

/* How far a kernel's y may be from a.value * up: the product in f32 and the rounding of y. */
double at_gated_limit(enum at_format out, struct at_gated_bounded a, double up, int declared);

extern const struct at_tensor_spec at_gated_tensors[AT_GATED_TENSORS];
enum { AT_GATED_SCALARS = 3 };
extern const struct at_scalar at_gated_scalars[AT_GATED_SCALARS];
extern const char *const at_gated_keys[];
extern const struct at_factor *const at_gated_domain[];

at_status at_gated_check(const struct at_problem *problem);
void at_gated_complete(struct at_problem *problem, unsigned given);
int64_t at_gated_rows(const struct at_problem *problem);
void at_gated_row_span(const struct at_problem *problem, int tensor, int64_t row, int64_t *first, int64_t *count);
double at_gated_row_work(const struct at_problem *problem, int64_t row);

/* The three evaluation functions of an operator in terms of its function. */
#define AT_GATED_EVALUATIONS(function) \
    static at_status evaluate(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0, \
                              int64_t row1, struct at_eval *eval) { \
        return at_gated_walk(&(function), problem, numerics, AT_GATED_EXACT, 0, row0, row1, eval); \
    } \
    static at_status model(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0, \
                           int64_t row1, struct at_eval *eval) { \
        return at_gated_walk(&(function), problem, numerics, AT_GATED_MODEL, 0, row0, row1, eval); \
    } \
    static at_status decoy(const struct at_problem *problem, const struct at_numerics *numerics, int which, \
                           int64_t row0, int64_t row1, struct at_eval *eval) { \
        return at_gated_walk(&(function), problem, numerics, AT_GATED_DECOY, which, row0, row1, eval); \
    }
/* The rest of a descriptor. */
#define AT_GATED_FUNCTIONS \
    .tensors = at_gated_tensors, .n_tensors = AT_GATED_TENSORS, .kind = AT_KIND_ROWS, \
    .uses = AT_USES(tokens) | AT_USES(channels), .own = at_gated_scalars, .n_own = AT_GATED_SCALARS, \
    .keys = at_gated_keys, .domain = at_gated_domain, .has_ledger = 1, .complete = at_gated_complete, \
    .batch = AT_DIM_tokens, .check = at_gated_check, .rows = at_gated_rows, .row_span = at_gated_row_span, \
    .row_work = at_gated_row_work, .evaluate = evaluate, .model = model, .decoy = decoy

#endif
