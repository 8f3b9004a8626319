/* Dot products in a declared unit and order: the value a kernel must get, and how far such a sum can be
 * from the exact one.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The building block of every modelled reference and every limit; operators never write an
 * accumulation loop of their own in declared arithmetic. */
#ifndef AT_ACCUMULATE_H
#define AT_ACCUMULATE_H

#include <stddef.h>
#include <stdint.h>

#include "attest/ledger.h"
#include "attest/numerics.h"

/* One order of summation over n terms. From at_numerics: QK is {qk_unit, qk_lanes, qk_run, qk_tree, 0},
 * PV is {pv_unit, 1, 0, AT_TREE_SEQUENTIAL, pv_chunk}. run 0 means ceil(n / lanes). Term i belongs to lane
 * (i / run) % lanes; each lane sums its terms in ascending order from +0 (lane 0 from c); then the tree.
 * Tensor-core units take one lane; terms go in ascending chunks of `chunk` (0: a block of the unit, 16 terms of f16
 * and bf16 and of sm_89's fp8, 32 of sm_90's, 8 of f32; a last partial chunk is filled with zeros). With a run, a multiple of 4,
 * of 4 run consecutive terms each of four threads holds `run`, and step s takes of each the four from 4 s on: so a
 * thread's loads may be longer than a step's four. */
struct at_order {
    enum at_unit unit;
    int lanes, run;
    enum at_tree tree;
    int chunk;
    enum at_guard guard; /* applied to each stored f16 accumulator value (tc_f16, f16_fma); score: to the last alone */
    /* Tensor-core units: format of a and b, which decides how operands below 2^-14 are aligned. at_order_pv
     * takes the format of P; at_order_qk cannot know it: the caller sets it to problem->dtype. Left at 0
     * (AT_F64) every operand counts as normal, which is right for bf16 and for f16 without subnormals. */
    enum at_format input;
};

struct at_order at_order_qk(const struct at_numerics *numerics);
struct at_order at_order_pv(const struct at_numerics *numerics);
/* Terms of one step: the order's chunk, at most the instruction's block (a larger chunk is several
 * instructions in a row); 1 for units that are no tensor core. */
int at_order_chunk(const struct at_order *order);

/* Observes accumulator values after each step, for the ledger; NULL members are not wanted. */
struct at_watch {
    struct at_ledger *ledger;
    enum at_stage stage;   /* AT_STAGE_qk_acc or AT_STAGE_pv_acc */
    struct at_place place; /* step is filled in here: chunk number (tensor core) or term number */
};

/* c + sum a[i*sa] * b[i*sb], i < n, in the order's arithmetic. a and b hold exact values of their formats
 * (f32 for f32 units and tc_tf32; f16 or bf16 for tensor cores; f16 for f16_fma); c and the result are values of the
 * accumulator's format (f32, f16, f64). Specials as the hardware has them. watch may be NULL. */
double at_accumulate(const struct at_order *order, int64_t n, const double *a, ptrdiff_t sa, const double *b,
                     ptrdiff_t sb, double c, const struct at_watch *watch);

/* e and absolute part eta such that for finite terms without overflow, in ANY inputs,
 *   |at_accumulate - exact| <= e * (|c| + sum |a_i b_i|) + eta.
 * Derivation above the code (n*u of Jeannerod & Rump 2013 for round-to-nearest units in any order;
 * truncating tensor cores per TENSOR-CORE block). n counts terms. free_order sums use the same e (any order). */
struct at_sum_error {
    double e, eta;
};
struct at_sum_error at_accumulate_error(const struct at_order *order, int64_t n);
/* The same for inputs known to satisfy |a_i|, |b_i| <= largest: only eta differs, by what operands that
 * are subnormal in the tensor core's input format cost beside large ones (at_accumulate_error assumes
 * the largest value of the format there). */
struct at_sum_error at_accumulate_error_within(const struct at_order *order, int64_t n, double largest);
/* What is stored where a step of an f16 accumulator gives x (score: x, as no step ends the sum). The largest finite f16
 * is what the source's 65500 becomes when it is written as f16. */
double at_guarded(enum at_guard guard, double x);
/* The format results are held in between steps: AT_F64, AT_F32 or AT_F16. */
enum at_format at_unit_format(enum at_unit unit);
/* Units of 8 bits that are steps of f16 units: tc_fp8_by_f16, tc_fp8_by_f16_f16. */
int at_unit_is_fp8_by_f16(enum at_unit unit);
/* Units that multiply f32 as tf32: tc_tf32, tc_tf32_rna. */
int at_unit_is_tf32(enum at_unit unit);
/* An f32 as such a unit reads it: tc_tf32 drops the last 13 bits, tc_tf32_rna has rounded them away, from the largest values
 * to infinity. NaN stays. (A NaN of which no bit is in the upper 19 but those of the exponent is infinity to the hardware; it is
 * NaN here.) */
double at_tf32_operand(enum at_unit unit, double x);
/* The tensor-core rule of a unit; NULL for units that are none. tc_f16 is mma.sync's row; of units that are steps of f16
 * units, the rule of a step. */
struct at_tc_rule;
const struct at_tc_rule *at_unit_rule(enum at_unit unit);

#endif
