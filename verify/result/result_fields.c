/* The tables of a result's fields: name, kind, archive group, unit and meaning of each.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/result/result_fields.h"

#include "verify/result/record.h"

#define R AT_FIELD_RESULTS
#define C AT_FIELD_CASES
#define K AT_FIELD_KERNELS

/* kind, field, group, values in it, units, meaning */
/* clang-format off */
#define RESULT_FIELDS(X)                                                                                         \
    X(I64,   plan_index,      R, 1, "1", "position of the case x variant in the whole plan")                     \
    X(INT,   tensor_index,    R, 1, "1", "index of the tensor in the operator's table")                          \
    X(TEXT,  case_id,         C, 1, "1", "the case, one line of text with every key")                            \
    X(TEXT,  role,            C, 1, "1", "name of the case file")                                                \
    X(TEXT,  expect,          C, 1, "1", "states the case expects beside PASS")                                  \
    X(TEXT,  op,              C, 1, "1", "operator")                                                             \
    X(TEXT,  family,          K, 1, "1", "kernel family")                                                        \
    X(TEXT,  variant,         K, 1, "1", "variant")                                                              \
    X(TEXT,  path,            K, 1, "1", "source file of the variant")                                           \
    X(TEXT,  runner,          K, 1, "1", "runner that ran it")                                                   \
    X(TEXT,  tensor,          R, 1, "1", "output tensor")                                                        \
    X(TEXT,  sha256,          K, 1, "1", "SHA-256 of the source file; empty: not said by the runner")            \
    X(TEXT,  numerics,        K, 1, "1", "declared numerics, every field")                                       \
    X(TEXT,  format,          R, 1, "1", "number format of the tensor")                                          \
    X(STATE, state,           R, 1, "1", "verdict")                                                              \
    X(TEXT,  cause,           R, 1, "1", "likely cause, or the reason")                                          \
    X(I64,   total,           R, 1, "1", "elements of the tensor")                                               \
    X(I64,   compared,        R, 1, "1", "elements compared")                                                    \
    X(I64,   wrong,           R, 1, "1", "elements beyond the limit, off the model or of another class")         \
    X(I64,   nan_got,         R, 1, "1", "NaN elements in the kernel's result")                                  \
    X(I64,   nan_want,        R, 1, "1", "NaN elements in the exact result")                                     \
    X(I64,   inf_got,         R, 1, "1", "infinite elements in the kernel's result")                             \
    X(I64,   inf_want,        R, 1, "1", "infinite elements in the exact result")                                \
    X(F64,   err_max,         R, 1, "1", "largest error, |got - exact| over finite pairs")                       \
    X(F64,   err_rms,         R, 1, "1", "root mean square of the error")                                        \
    X(F64,   err_rel_l2,      R, 1, "1", "2-norm of the error over 2-norm of the exact result")                  \
    X(F64,   rms,             R, 1, "1", "root mean square of the exact result")                                 \
    X(U64,   ulp_p50,         R, 1, "ulp", "error in last places of the format, median")                         \
    X(U64,   ulp_p99,         R, 1, "ulp", "error in last places of the format, 99 % quantile")                  \
    X(U64,   ulp_p999,        R, 1, "ulp", "error in last places of the format, 99.9 % quantile")                \
    X(U64,   ulp_max,         R, 1, "ulp", "error in last places of the format, largest; 2^64-1: a NaN")         \
    X(F64,   limit_median,    R, 1, "1", "median of the limits of the elements")                                 \
    X(F64,   limit_max,       R, 1, "1", "largest limit")                                                        \
    X(F64,   ratio_max,       R, 1, "1", "largest error/limit; NaN: no limit")                                   \
    X(U64,   err_hist,        R, AT_HIST_BINS, "1", "elements per bin of log2(error/limit)")                     \
    X(BOOL,  judged_by_limit, R, 1, "1", "the limit decided")                                                    \
    X(BOOL,  judged_by_model, R, 1, "1", "the modelled reference decided")                                       \
    X(BOOL,  within,          R, 1, "1", "all elements inside their limits")                                     \
    X(I64,   model_equal,     R, 1, "1", "elements equal to the model, or within its interval")                  \
    X(I64,   model_compared,  R, 1, "1", "elements compared with the model; 0: no model")                        \
    X(BOOL,  model_exact,     R, 1, "1", "the model allows no deviation and every bit was equal")                \
    X(F64,   aggregate_ratio, R, 1, "1", "largest sum over errors / what roundings to nearest allow; NaN: not tested") \
    X(F64,   resolution,      R, 1, "1", "smallest uniform scale error that would have been seen; NaN: none would") \
    X(F64,   looseness,       R, 1, "1", "median limit over that of f32 arithmetic in any order; NaN: a model judged") \
    X(INT,   n_decoys,        R, 1, "1", "decoys tried")                                                         \
    X(TEXT,  decoy_fate,      R, 1, "1", "a letter per decoy: r rejected, p passed, i inert")                    \
    X(TEXT,  decoy_names,     R, 1, "1", "decoys, comma-separated, in the order of decoy_fate")                  \
    X(TEXT,  required_inert,  R, 1, "1", "decoys that the case requires and that were inert")                    \
    X(PLACE, worst_index,     R, 1, "1", "flat index of the worst element")                                      \
    X(PLACE, worst_at,        R, 4, "1", "coordinates of the worst element")                                     \
    X(INT,   worst_rank,      R, 1, "1", "coordinates in use in worst_at")                                       \
    X(F64,   worst_got,       R, 1, "1", "the kernel's value at the worst element")                              \
    X(F64,   worst_want,      R, 1, "1", "the exact value at the worst element")                                 \
    X(F64,   worst_limit,     R, 1, "1", "the limit at the worst element")                                       \
    X(F64,   worst_model,     R, 1, "1", "the modelled value at the worst element")                              \
    X(I64,   rerun_compared,  R, 1, "1", "elements compared between reruns")                                     \
    X(I64,   rerun_different, R, 1, "1", "elements whose bits differed between reruns")                          \
    X(I64,   predicted_compared,  R, 1, "1", "elements compared with the SIMT run of the same source")           \
    X(I64,   predicted_different, R, 1, "1", "elements whose bits differed from the SIMT run's")                 \
    X(I64,   batch_compared,  R, 1, "1", "elements compared with solo and permuted batches; 0: not checked")     \
    X(I64,   batch_different, R, 1, "1", "elements whose bits depended on the batch")                            \
    X(I64,   graph_compared,  R, 1, "1", "elements compared with a replay of a graph captured at one key")       \
    X(I64,   graph_different, R, 1, "1", "elements whose bits differed in that replay")                          \
    X(BOOL,  graph_other_path, R, 1, "1", "at one key other kernels or grids were launched")                     \
    X(BOOL,  has_ledger,      R, 1, "1", "has rows in /ledger")                                                  \
    X(BOOL,  ledger_modelled, R, 1, "1", "the ledger is of the declared arithmetic, not of the exact values")    \
    X(F64,   p_zero_share,    R, 1, "1", "share of visible keys whose p is 0; NaN: no attention")                \
    X(BOOL,  kept,            AT_FIELD_NOWHERE, 1, "1", "the tensors of the job are kept in /witness")           \
    X(F64,   seconds,         AT_FIELD_NOWHERE, 1, "s", "wall time of the launch")                               \
    X(TEXT,  repro,           R, 1, "1", "command that repeats this result")

#define LEDGER_ROW_FIELDS(X)                                                                \
    X(U64,  count,       R, 1, "1", "values seen")                                          \
    X(U64,  zero,        R, 1, "1", "zeros")                                                \
    X(U64,  nan,         R, 1, "1", "NaNs")                                                 \
    X(U64,  inf,         R, 1, "1", "infinities")                                           \
    X(U64,  above_65504, R, 1, "1", "values with |x| > 65504, infinities included")         \
    X(U64,  to_inf,      R, 1, "1", "values with |x| >= 65520, which round to Inf in f16")  \
    X(U64,  subnormal,   R, 1, "1", "values with 0 < |x| < 2^-14")                          \
    X(U64,  flushed,     R, 1, "1", "values with 0 < |x| <= 2^-25, which round to 0 in f16") \
    X(F64,  max_abs,     R, 1, "1", "largest |x| over finite values; 0: none")              \
    X(BOOL, has_first,   R, 1, "1", "some value reached 65520 or was not finite")

#define LEDGER_TOTAL_FIELDS(X)                                                              \
    X(U64,  inf_made,      R, 1, "1", "infinite scores or sums from finite operands")       \
    X(U64,  inf_cancelled, R, 1, "1", "accumulators that were infinite and ended finite")   \
    X(U64,  clamped_low,   R, 1, "1", "gate inputs below the gate")                         \
    X(U64,  clamped_high,  R, 1, "1", "gate inputs above the gate")                         \
    X(U64,  laundered,     R, 1, "1", "non-finite gate inputs that became an ordinary p")   \
    X(BOOL, has_laundered, R, 1, "1", "some gate input was laundered")
/* clang-format on */

#define FIELD(owner, kind, field, group, count, units, meaning) \
    { #field, AT_FIELD_##kind, group,  offsetof(struct owner, field), sizeof(((struct owner *)0)->field), \
      count,  units,           meaning },

static const struct at_field result_fields[] = {
#define X(kind, field, group, count, units, meaning) FIELD(at_result, kind, field, group, count, units, meaning)
    RESULT_FIELDS(X)
#undef X
#define X(name, meaning) FIELD(at_result, PLACE, counter_##name, R, 1, "1", meaning)
        AT_COUNTER_LIST(X)
#undef X
};

static const struct at_field ledger_row_fields[] = {
#define X(kind, field, group, count, units, meaning) FIELD(at_ledger_row, kind, field, group, count, units, meaning)
    LEDGER_ROW_FIELDS(X)
#undef X
};

static const struct at_field ledger_total_fields[] = {
#define X(kind, field, group, count, units, meaning) FIELD(at_ledger, kind, field, group, count, units, meaning)
    LEDGER_TOTAL_FIELDS(X)
#undef X
};

#define PICK(table, i) ((i) >= 0 && (size_t)(i) < sizeof(table) / sizeof((table)[0]) ? &(table)[i] : NULL)

const struct at_field *at_result_field(int i) { return PICK(result_fields, i); }
const struct at_field *at_ledger_row_field(int i) { return PICK(ledger_row_fields, i); }
const struct at_field *at_ledger_total_field(int i) { return PICK(ledger_total_fields, i); }

void *at_field_at(const struct at_field *field, void *base) { return (char *)base + field->offset; }

const void *at_field_of(const struct at_field *field, const void *base) { return (const char *)base + field->offset; }

at_status at_result_check(const struct at_result *result, const char *where) {
    if (!((int)result->state >= 0 && result->state < AT_STATE_COUNT))
        return AT_FAIL(AT_USAGE, "%s: state is %d, wanted 0 to %d", where, (int)result->state, AT_STATE_COUNT - 1);
    if (!(result->worst_rank >= 0 && result->worst_rank <= 4))
        return AT_FAIL(AT_USAGE, "%s: worst_rank is %d, wanted 0 to 4", where, result->worst_rank);
    if (!(result->n_decoys >= 0 && result->n_decoys <= AT_RESULT_DECOYS))
        return AT_FAIL(AT_USAGE, "%s: n_decoys is %d, wanted 0 to %d", where, result->n_decoys, AT_RESULT_DECOYS);
    return AT_OK;
}
