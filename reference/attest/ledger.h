/* The overflow ledger: how near each stage of an attention evaluation came to FP16's end of range,
 * and what happened there. Taken before the clamp, because afterwards AsyncT looks healthy.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_LEDGER_H
#define AT_LEDGER_H

#include <stdint.h>

/* name, meaning */
/* clang-format off */
#define AT_STAGE_LIST(X)                                                     \
    X(score,   "q.k before the scale")                                       \
    X(scaled,  "after the scale")                                            \
    X(gate_in, "after the FIR, before the clamp (AsyncT)")                   \
    X(p,       "after the clamp (AsyncT), exp(s - max) (softmax)")           \
    X(qk_acc,  "the q.k accumulator after each step")                        \
    X(pv_acc,  "the p*v accumulator after each step")                        \
    X(out,     "the output")
/* clang-format on */

enum at_stage {
#define X(name, meaning) AT_STAGE_##name,
    AT_STAGE_LIST(X)
#undef X
        AT_STAGE_COUNT
};

/* Where something happened; step is the accumulation step, -1 outside accumulators. */
struct at_place {
    int64_t b, h, q, k, step; /* request, query head, query within the request, key, step */
};

struct at_ledger_row {
    uint64_t count, zero, nan, inf;
    uint64_t above_65504; /* |x| > 65504, infinities included */
    uint64_t to_inf;      /* |x| >= 65520: rounding to f16 gives Inf */
    uint64_t subnormal;   /* 0 < |x| < 2^-14 */
    uint64_t flushed;     /* 0 < |x| <= 2^-25: rounding to f16 gives 0 */
    double max_abs;       /* over finite values; 0 when there are none */
    int has_first;        /* first value with |x| >= 65520 or not finite, in (b, h, q, k, step) order */
    struct at_place first;
};

struct at_ledger {
    struct at_ledger_row stage[AT_STAGE_COUNT];
    uint64_t inf_made;                  /* infinite scores or sums from finite operands */
    uint64_t inf_cancelled;             /* an accumulator was infinite at a step and its result is not */
    uint64_t clamped_low, clamped_high; /* gate inputs beyond an end of the gate */
    uint64_t laundered;                 /* non-finite gate input became an ordinary p */
    int has_laundered;
    struct at_place first_laundered;
};

void at_ledger_init(struct at_ledger *ledger);
void at_ledger_note(struct at_ledger *ledger, enum at_stage stage, double value, const struct at_place *place);
/* The same for a value within FP16's normal range, which most are: its place does not matter. 0: it is none of those, and
 * nothing was noted. */
static inline int at_ledger_note_usual(struct at_ledger *ledger, enum at_stage stage, double value) {
    struct at_ledger_row *row = &ledger->stage[stage];
    const double size = value < 0 ? -value : value; /* not fabs, whose header every kernel would have to compile */
    if (!(size >= 0x1p-14 && size <= 65504.0))
        return 0;
    row->count++;
    row->max_abs = size > row->max_abs ? size : row->max_abs;
    return 1;
}
/* Adds `from` to `into`; associative and commutative, so any split over threads or shards gives the
 * same ledger. */
void at_ledger_merge(struct at_ledger *into, const struct at_ledger *from);
/* log2(65504 / max |x|) over finite values: bits left at this stage. +inf where they are all zero, NaN where there is none:
 * an empty stage, or NaNs and infinities alone. */
double at_ledger_headroom(const struct at_ledger_row *row);
const char *at_stage_name(enum at_stage stage);
const char *at_stage_meaning(enum at_stage stage);
/* -1, 0, 1: order of places. */
int at_place_compare(const struct at_place *a, const struct at_place *b);

#endif
