/* Lightning (linear) attention, decode: a state of each request and head decays, takes a key and a value, and answers a query.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   KV' = exp(-slope) KV + k v^T,   o = q KV'
 *
 * q, k [b h steps d], v [b h steps e], o [b h steps e] of f32, f16 or bf16; slope [h] and the state kv [b h d e] f32. The
 * state is updated in place; with `steps` > 1 each step begins from the state that the one before left. b may be 0.
 * outer=rounded: an element of k v^T is rounded to f32 and that to the input's type before it is added, as a product of two
 * tensors of that type is; outer=exact: it is not rounded but by the arithmetic.
 *
 * Declared arithmetic (the fields of at_numerics that are read). The state's is f32:
 *   exp       the decay D: libm of -slope; ex2 of f32(-slope log2(e)), log2(e) in f32
 *   fir_fma   1: KV' = fma(D, KV, t), t the product k v; 0: the product D KV is rounded before t is added
 *   qk_unit, qk_lanes, qk_run, qk_tree   how the d products of an element of o, in ascending order, are summed: f64, f32 or
 *             f32_fma; what is summed is the state as it is stored
 * An element of o is rounded once more, to its format. */
#ifndef AT_LIGHTNING_DECODE_H
#define AT_LIGHTNING_DECODE_H

#include "attest/op.h"
#include "tensor_core/accumulate.h"

enum { AT_LIGHTNING_Q, AT_LIGHTNING_K, AT_LIGHTNING_V, AT_LIGHTNING_SLOPE, AT_LIGHTNING_KV, AT_LIGHTNING_O };
enum at_lightning_outer { AT_LIGHTNING_EXACT, AT_LIGHTNING_ROUNDED };

/* Sizes and parameters of its own. */
struct at_lightning_own {
    int64_t e, steps; /* columns of a state, decode steps */
    int32_t outer;    /* enum at_lightning_outer */
};
AT_OWN_STRUCT(at_lightning_own)

/* Ways of being wrong, in the order of the operator's decoys. */
enum at_lightning_fault {
    AT_LIGHTNING_RIGHT = -1,
    AT_LIGHTNING_NO_DECAY,
    AT_LIGHTNING_GROWS,
    AT_LIGHTNING_PRODUCT_DECAYED,
    AT_LIGHTNING_OLD_STATE,
    AT_LIGHTNING_NOT_UPDATED,
    AT_LIGHTNING_NOT_CARRIED,
    AT_LIGHTNING_TRANSPOSED,
    AT_LIGHTNING_NEXT_HEAD_SLOPE,
    AT_LIGHTNING_NEXT_REQUEST_STATE,
    AT_LIGHTNING_Q_SCALED,
    AT_LIGHTNING_LAST_D_UNSEEN,
    AT_LIGHTNING_LAST_COLUMN_LOST,
    AT_LIGHTNING_FAULTS
};

/* The element of k v^T as the operator defines it; as declared arithmetic has it. */
double at_lightning_product(const struct at_problem *problem, double k, double v);
double at_lightning_product_declared(const struct at_problem *problem, double k, double v);

/* The numbers of one request and head as doubles. */
struct at_lightning_head {
    int64_t d, e, steps, row;
    double *q, *k, *v; /* [steps d], [steps d], [steps e] */
    double *state;     /* [d e] */
    double slope;
};
at_status at_lightning_head_init(const struct at_problem *problem, struct at_lightning_head *out);
void at_lightning_head_release(struct at_lightning_head *head);
void at_lightning_load(const struct at_problem *problem, int64_t row, enum at_lightning_fault fault,
                       struct at_lightning_head *out);

/* What a declaration says of the arithmetic. AT_UNSUPPORTED where it declares another unit. */
struct at_lightning_declared {
    struct at_order order;
    int exp, fused, f64; /* f64: of the sum of o */
};
at_status at_lightning_declare(const struct at_problem *problem, const struct at_numerics *numerics,
                               struct at_lightning_declared *out);

/* An exact value and how far a kernel may be from it; +inf: nothing is promised. */
struct at_lightning_bound {
    double value, error;
};
/* exp(-slope). declared NULL: the reference's own error, here and below. */
struct at_lightning_bound at_lightning_decay(const struct at_lightning_declared *declared, double slope);
/* The element after a step that adds k v. */
struct at_lightning_bound at_lightning_step(const struct at_problem *problem,
                                            const struct at_lightning_declared *declared,
                                            struct at_lightning_bound decay, struct at_lightning_bound state, double k,
                                            double v);
/* sum q_i x_i of d elements, x with stride e. */
struct at_lightning_bound at_lightning_answer(const struct at_problem *problem,
                                              const struct at_lightning_declared *declared, const double *q,
                                              const struct at_lightning_bound *x);

at_status at_lightning_evaluate(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0,
                                int64_t row1, struct at_eval *eval);
at_status at_lightning_decoy(const struct at_problem *problem, const struct at_numerics *numerics, int decoy,
                             int64_t row0, int64_t row1, struct at_eval *eval);
at_status at_lightning_model(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0,
                             int64_t row1, struct at_eval *eval);

extern const struct at_op at_op_lightning_decode;

#endif
