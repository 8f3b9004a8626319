/* What a variant declares about its own arithmetic: where it rounds, in what order it sums. The
 * verifier derives the limit and the modelled bits from this and holds the variant to it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_NUMERICS_H
#define AT_NUMERICS_H

#include <stddef.h>

#include "attest/format.h"

/* How products are added up.
 *   f64      double, round to nearest
 *   f32      float: product rounded, then added (two roundings a term)
 *   f32_fma  float fmaf chain (one rounding a term)
 *   tc_f32   tensor core, f32 accumulator: Hopper's fused block of 16, truncating, F = 25
 *   tc_f16   tensor core, f16 accumulator: the same block, one round-to-nearest-even to f16 a block
 *   f16_fma  half-precision FMA chain, one rounding to f16 a term
 *   tc_fp8   Hopper's wgmma of e4m3 or e5m2: fused block of 32, truncating, F = 13; the accumulator is an f32 of which
 *            13 fraction bits are kept */
enum at_unit {
    AT_UNIT_F64,
    AT_UNIT_F32,
    AT_UNIT_F32_FMA,
    AT_UNIT_TC_F32,
    AT_UNIT_TC_F16,
    AT_UNIT_F16_FMA,
    AT_UNIT_TC_FP8
};
/* How the partial sums of `lanes` are joined: lane 0 + lane 1 + ... in order, or the butterfly of
 * shuffles with xor masks lanes/2, ..., 2, 1. */
enum at_tree { AT_TREE_SEQUENTIAL, AT_TREE_BUTTERFLY };
/* Where the scale is applied: to each q in f32 before the dot, to q rounded back to the input type,
 * or to the finished score. */
enum at_scale_on { AT_SCALE_ON_SCORE, AT_SCALE_ON_Q, AT_SCALE_ON_Q_ROUNDED };
/* FIR: taps  z = w0 r0, then + w1 r1, + w2 r2 in that order;
 *      pooled  z = r0' - (sigma/K) * ((r0 + r1) + r2), sigma/K rounded once to f32 (r0' is s or r). */
enum at_fir_order { AT_FIR_ORDER_TAPS, AT_FIR_ORDER_POOLED };
/* gamma multiplies p before P is rounded, the rounded p (in f32), or the finished sum. */
enum at_gamma_on { AT_GAMMA_ON_P, AT_GAMMA_AFTER_P, AT_GAMMA_ON_OUTPUT };
/* The clamp's way with NaN: fmin/fmax return the other operand (CUDA, PTX), or NaN stays. */
enum at_clamp { AT_CLAMP_FMINMAX, AT_CLAMP_PROPAGATE };
/* exp: correctly rounded or nearly (libm, <= 1 ulp of f32), or ex2.approx, or that with subnormals flushed to 0. */
enum at_exp { AT_EXP_LIBM, AT_EXP_EX2_APPROX, AT_EXP_EX2_APPROX_FTZ };
/* What f16 accumulation does at its end of range: nothing; the source's isinf test writing +-65500
 * (NaN passes); the same with NaN written as 0; or saturation of every store. */
enum at_guard { AT_GUARD_NONE, AT_GUARD_ISINF, AT_GUARD_NAN_SAFE, AT_GUARD_SATURATE };
/* What may stand in key/value rows past seq_lens: anything (never read), or any finite value. */
enum at_tail { AT_TAIL_UNREAD, AT_TAIL_FINITE };
/* A V row whose p is 0: skipped, or multiplied. */
enum at_pv_zero { AT_PV_ZERO_SKIPPED, AT_PV_ZERO_MULTIPLIED };

/* kind (how the value is written), field, default, meaning. Kinds: int, bool, format, or the name of
 * an enum above. One list makes the struct, the wire and case text, and the archive columns. */
/* clang-format off */
#define AT_NUMERICS_LIST(X)                                                                       \
    X(bool,      free_order, 0, "1: order of summation not declared; no modelled verdict")        \
    X(unit,      qk_unit,    AT_UNIT_F32_FMA, "how q.k is accumulated")                           \
    X(int,       qk_lanes,   1, "partial sums that share one dot product")                        \
    X(int,       qk_run,     0, "consecutive terms a lane takes in turn; 0: d / lanes")           \
    X(tree,      qk_tree,    AT_TREE_SEQUENTIAL, "how the lanes are joined")                      \
    X(scale_on,  scale_on,   AT_SCALE_ON_SCORE, "where the scale is applied")                     \
    X(fir_order, fir_order,  AT_FIR_ORDER_TAPS, "form of the FIR")                                \
    X(bool,      fir_fma,    0, "1: FIR steps are fmaf; 0: multiply, then add")                   \
    X(format,    p,          AT_F32, "format P is rounded to before P*V; f32: none narrower")     \
    X(gamma_on,  gamma_on,   AT_GAMMA_ON_P, "where gamma is applied")                             \
    X(clamp,     clamp,      AT_CLAMP_FMINMAX, "the gate's way with NaN")                         \
    X(exp,       exp,        AT_EXP_LIBM, "softmax, exp2: the exponential")                       \
    X(int,       block,      0, "softmax: keys per online step; 0: row maximum known first")      \
    X(unit,      pv_unit,    AT_UNIT_F32_FMA, "how p*v is accumulated over keys")                 \
    X(int,       pv_chunk,   1, "keys per accumulation step of a tensor-core pv_unit")            \
    X(int,       split,      0, "keys (gemm: products) per partial result; 0: one pass over all") \
    X(guard,     guard,      AT_GUARD_NONE, "overflow guard of an f16 accumulator")               \
    X(bool,      repeats,    1, "1: the same launch gives the same bits")                         \
    X(bool,      batch_invariant, 0, "1: a request's bits do not depend on its batch")            \
    X(tail,      tail,       AT_TAIL_UNREAD, "what may stand past seq_lens")                      \
    X(pv_zero,   pv_zero,    AT_PV_ZERO_MULTIPLIED, "V rows whose p is 0")
/* clang-format on */

struct at_numerics {
#define X(kind, name, value, meaning) int name;
    AT_NUMERICS_LIST(X)
#undef X
};

/* All defaults, as a designated-initialiser base: { AT_NUMERICS_DEFAULTS, .p = AT_BF16 } is not
 * portable to C++; write every field that differs and call at_numerics_default() elsewhere. */
struct at_numerics at_numerics_default(void);

/* "qk_unit=f32_fma qk_lanes=1 ...": every field, fixed order. Fails if `size` is too small. */
at_status at_numerics_format(const struct at_numerics *numerics, char *text, size_t size);
/* Starts from the defaults; unknown fields and values are AT_USAGE with the nearest name. */
at_status at_numerics_parse(const char *text, struct at_numerics *numerics);
/* Rejects fields out of range and combinations without a meaning (a chunk that is no multiple of the
 * unit's block, lanes < 1, ...). */
at_status at_numerics_check(const struct at_numerics *numerics);

#endif
