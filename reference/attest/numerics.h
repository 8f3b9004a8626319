/* What a variant declares about its own arithmetic: where it rounds, in what order it sums. The
 * verifier derives the limit and the modelled bits from this and holds the variant to it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_NUMERICS_H
#define AT_NUMERICS_H

#include <stddef.h>
#include <stdint.h>

#include "attest/format.h"

/* Each list: id, the word in a declaration, meaning. */
/* clang-format off */
/* How products are added up. */
#define AT_UNIT_LIST(X)                                                                                        \
    X(F64,     "f64",     "double, round to nearest")                                                          \
    X(F32,     "f32",     "float: product rounded, then added (two roundings a term)")                         \
    X(F32_FMA, "f32_fma", "float fmaf chain (one rounding a term)")                                            \
    X(TC_F32,  "tc_f32",  "tensor core, f32 accumulator: Hopper's fused block of 16, truncating, F = 25")      \
    X(TC_F16,  "tc_f16",  "tensor core, f16 accumulator: the same block, one round-to-nearest-even to f16 a block") \
    X(F16_FMA, "f16_fma", "half-precision FMA chain, one rounding to f16 a term")                              \
    X(TC_FP8,  "tc_fp8",  "Hopper's wgmma of e4m3 or e5m2: fused block of 32, truncating, F = 13; of the f32 accumulator " \
                          "13 fraction bits are kept")                                                        \
    X(TC_FP8_ADA, "tc_fp8_ada", "sm_89's mma.sync of e4m3 or e5m2: fused block of 16, otherwise as tc_fp8")    \
    X(TC_FP8_BY_F16, "tc_fp8_by_f16", "sm_90's and sm_100's mma.sync of e4m3 or e5m2, which has no unit of its own: 32 products as " \
                          "two steps of tc_f32 from 0, those with k mod 4 in {0, 1} first; their sum is added in f32, to nearest") \
    X(TC_FP8_BY_F16_F16, "tc_fp8_by_f16_f16", "the same with f16 sums: two steps of tc_f16, and their sum is added in f16") \
    X(TC_TF32, "tc_tf32", "tensor core on f32, f32 accumulator: the low 13 bits of an operand are dropped; Hopper's fused block of " \
                          "8, truncating, F = 25")                                                            \
    X(TC_TF32_RNA, "tc_tf32_rna", "the same with operands that cvt.rna.tf32 has rounded: to nearest, ties away from 0")
/* How the partial sums of `lanes` are joined. */
#define AT_TREE_LIST(X)                                                                                        \
    X(SEQUENTIAL, "sequential", "lane 0 + lane 1 + ... in order")                                              \
    X(BUTTERFLY,  "butterfly",  "shuffles with xor masks lanes/2, ..., 2, 1")
/* Where the scale is applied. */
#define AT_SCALE_ON_LIST(X)                                                                                    \
    X(SCORE,     "score",     "to the finished score")                                                         \
    X(Q,         "q",         "to each q in f32, before the dot product")                                      \
    X(Q_ROUNDED, "q_rounded", "to q, which is rounded back to the input type")                                \
    X(TAPS,      "taps",      "AsyncT: to each tap, in f32; the filter takes max(q.k, 0), or q.k")
#define AT_FIR_ORDER_LIST(X)                                                                                   \
    X(TAPS,   "taps",   "z = w0 r0, then + w1 r1, + w2 r2 in that order")                                      \
    X(POOLED, "pooled", "z = r0' - (sigma/K) * ((r0 + r1) + r2), sigma/K rounded once to f32; r0' is s or r")
#define AT_GAMMA_ON_LIST(X)                                                                                    \
    X(ON_P,     "p",      "p, before P is rounded")                                                          \
    X(AFTER_P,  "after_p", "the rounded p, in f32")                                                           \
    X(ON_OUTPUT, "output","the finished sum")
/* The clamp's way with NaN. */
#define AT_CLAMP_LIST(X)                                                                                       \
    X(FMINMAX,   "fminmax",   "fmin and fmax return the other operand (CUDA, PTX)")                            \
    X(PROPAGATE, "propagate", "NaN stays")
#define AT_EXP_LIST(X)                                                                                         \
    X(LIBM,           "libm",           "correctly rounded or nearly (at most 1 ulp of f32)")                  \
    X(EX2_APPROX,     "ex2_approx",     "ex2.approx")                                                          \
    X(EX2_APPROX_FTZ, "ex2_approx_ftz", "ex2.approx with subnormals flushed to 0")                             \
    X(TANH_APPROX,    "tanh_approx",    "silu_mul alone: none; the sigmoid is 1/2 + 1/2 tanh.approx(g / 2)")
/* Softmax: tanh of a softcap, y = f32(acc c), c = f32(scale / cap) (f32(1 / cap) where q has the scale). */
#define AT_TANH_LIST(X)                                                                                        \
    X(LIBM,    "libm",        "correctly rounded or nearly (at most 2 ulp of f32)")                            \
    X(APPROX,  "tanh_approx", "tanh.approx")                                                                   \
    X(EX2_RCP, "ex2_rcp",     "fma(-2, rcp.approx.ftz(1 + ex2.approx.ftz(y * f32(2 log2(e)))), 1), the product and the sum rounded")
/* The argument of ex2 in softmax, with c the constant log2(e) in f32. */
#define AT_EXP_ARG_LIST(X)                                                                                     \
    X(DIFFERENCE, "difference", "f32(s - m) * c: the difference and the product are rounded; exp=libm: s - m")  \
    X(FMA,        "fma",        "fma(dot, b, -(m b)), b = scale * c: scores are not scaled, m is their maximum; " \
                                "rescaling takes f32(m - m') * b; with a softcap or ALiBi scores are scaled and b = c")
/* A quotient. Softmax: the output, from the sums of weights times V and of weights; silu_mul: SiLU, from g and 1 + exp(-g). */
#define AT_DIVIDE_LIST(X)                                                                                      \
    X(DIVISION,       "division",       "one division")                                                        \
    X(RECIPROCAL,     "reciprocal",     "1 / x, rounded, then a product")                                      \
    X(RECIPROCAL_F16, "reciprocal_f16", "softmax: 1 / x, rounded to f32 and then to f16, then a product rounded once to f16") \
    X(RCP_APPROX,     "rcp_approx",     "rcp.approx, then a product")                                          \
    X(RCP_APPROX_FTZ, "rcp_approx_ftz", "rcp.approx.ftz, then a product")
/* Softmax: what the sums of P V take when the maximum of an online step rises; the sum of weights always takes the factor. */
#define AT_RESCALE_LIST(X)                                                                                     \
    X(FACTOR, "factor", "a product with the factor, rounded once to the accumulator's format")                 \
    X(F16,    "f16",    "the same with the factor rounded to f16")
/* Softmax: the log-sum-exp from the maximum m and the sum l of weights. */
#define AT_LSE_LIST(X)                                                                                         \
    X(LIBM,           "libm",           "m + log(l), the logarithm correctly rounded or nearly")               \
    X(LG2_APPROX,     "lg2_approx",     "lg2.approx(l) * log(2), rounded, then + m (exp_arg=fma: fma with m scale)") \
    X(LG2_APPROX_FTZ, "lg2_approx_ftz", "the same with lg2.approx.ftz")
/* 1 / sqrt(x) of f32. */
#define AT_RSQRT_LIST(X)                                                                                       \
    X(LIBM,       "libm",             "1 / sqrt(x), the root and the quotient each correctly rounded")         \
    X(APPROX,     "rsqrt_approx",     "rsqrt.approx")                                                          \
    X(APPROX_FTZ, "rsqrt_approx_ftz", "rsqrt.approx of x with subnormals flushed to 0")
/* What f16 accumulation does at its end of range. */
#define AT_GUARD_LIST(X)                                                                                       \
    X(NONE,     "none",     "nothing")                                                                         \
    X(ISINF,    "isinf",    "an infinity after a step is written as +-65504; NaN passes")                      \
    X(NAN_SAFE, "nan_safe", "the same with NaN written as 0")                                                  \
    X(SATURATE, "saturate", "every store saturates")                                                           \
    X(SCORE,    "score",    "isinf once, on the finished q.k alone: the source's, whose 65500 is 65504 in f16")
/* What may stand in key/value rows past seq_lens. */
#define AT_TAIL_LIST(X)                                                                                        \
    X(UNREAD, "unread", "anything: never read")                                                                \
    X(FINITE, "finite", "any finite value")
/* A V row whose p is 0. */
#define AT_PV_ZERO_LIST(X)                                                                                     \
    X(SKIPPED,    "skipped",    "not read")                                                                    \
    X(MULTIPLIED, "multiplied", "multiplied by 0 and added")
/* clang-format on */

#define X(id, name, meaning) AT_UNIT_##id,
enum at_unit { AT_UNIT_LIST(X) };
#undef X
#define X(id, name, meaning) AT_TREE_##id,
enum at_tree { AT_TREE_LIST(X) };
#undef X
#define X(id, name, meaning) AT_SCALE_ON_##id,
enum at_scale_on { AT_SCALE_ON_LIST(X) };
#undef X
#define X(id, name, meaning) AT_FIR_ORDER_##id,
enum at_fir_order { AT_FIR_ORDER_LIST(X) };
#undef X
#define X(id, name, meaning) AT_GAMMA_##id,
enum at_gamma_on { AT_GAMMA_ON_LIST(X) };
#undef X
#define X(id, name, meaning) AT_CLAMP_##id,
enum at_clamp { AT_CLAMP_LIST(X) };
#undef X
#define X(id, name, meaning) AT_EXP_##id,
enum at_exp { AT_EXP_LIST(X) };
#undef X
#define X(id, name, meaning) AT_EXP_ARG_##id,
enum at_exp_arg { AT_EXP_ARG_LIST(X) };
#undef X
#define X(id, name, meaning) AT_TANH_##id,
enum at_tanh { AT_TANH_LIST(X) };
#undef X
#define X(id, name, meaning) AT_DIVIDE_##id,
enum at_divide { AT_DIVIDE_LIST(X) };
#undef X
#define X(id, name, meaning) AT_RESCALE_##id,
enum at_rescale { AT_RESCALE_LIST(X) };
#undef X
#define X(id, name, meaning) AT_LSE_##id,
enum at_lse { AT_LSE_LIST(X) };
#undef X
#define X(id, name, meaning) AT_RSQRT_##id,
enum at_rsqrt { AT_RSQRT_LIST(X) };
#undef X
#define X(id, name, meaning) AT_GUARD_##id,
enum at_guard { AT_GUARD_LIST(X) };
#undef X
#define X(id, name, meaning) AT_TAIL_##id,
enum at_tail { AT_TAIL_LIST(X) };
#undef X
#define X(id, name, meaning) AT_PV_ZERO_##id,
enum at_pv_zero { AT_PV_ZERO_LIST(X) };
#undef X

/* kind (how the value is written), field, default, meaning. Kinds: int, bool, format, or the name of
 * an enum above. One list makes the struct, the wire and case text, and the archive columns. */
/* clang-format off */
#define AT_NUMERICS_LIST(X)                                                                       \
    X(bool,      free_order, 0, "1: order of summation not declared; no modelled verdict")        \
    X(unit,      qk_unit,    AT_UNIT_F32_FMA, "how q.k is accumulated")                           \
    X(int,       qk_lanes,   1, "partial sums that share one dot product")                        \
    X(int,       qk_run,     0, "consecutive terms a lane takes in turn; 0: d / lanes. Tensor cores: terms of a thread, four a step") \
    X(tree,      qk_tree,    AT_TREE_SEQUENTIAL, "how the lanes are joined")                      \
    X(scale_on,  scale_on,   AT_SCALE_ON_SCORE, "where the scale is applied")                     \
    X(fir_order, fir_order,  AT_FIR_ORDER_TAPS, "form of the FIR")                                \
    X(bool,      fir_fma,    0, "1: steps of the FIR, a norm's shift, a rotation's sum, ALiBi's bias are fmaf; 0: multiply, then add") \
    X(format,    p,          AT_F32, "format P is rounded to before P*V; f32: none narrower; input: that of the activations") \
    X(gamma_on,  gamma_on,   AT_GAMMA_ON_P, "where gamma is applied")                             \
    X(clamp,     clamp,      AT_CLAMP_FMINMAX, "the gate's way with NaN")                         \
    X(exp,       exp,        AT_EXP_LIBM, "softmax, exp2, silu_mul: the exponential")             \
    X(tanh,      tanh,       AT_TANH_LIBM, "softmax: tanh of a softcap")                          \
    X(exp_arg,   exp_arg,    AT_EXP_ARG_DIFFERENCE, "softmax: the argument of ex2")               \
    X(int,       ex2_poly3,  0, "softmax: of each 32 keys the last so many take ex2 by a polynomial of degree 3") \
    X(int,       l_lanes,    0, "softmax: partial sums that share the sum of weights; 0: any order") \
    X(int,       l_run,      0, "consecutive keys that a lane of that sum takes in turn")         \
    X(tree,      l_tree,     AT_TREE_SEQUENTIAL, "how those lanes are joined")                    \
    X(divide,    divide,     AT_DIVIDE_DIVISION, "softmax: the sums become the output; silu_mul: the quotient") \
    X(lse,       lse,        AT_LSE_LIBM, "softmax: the logarithm of the sum of weights")         \
    X(rsqrt,     rsqrt,      AT_RSQRT_LIBM, "RMS norms: the inverse root of the mean square")     \
    X(int,       block,      0, "softmax: keys per online step; 0: row maximum known first")      \
    X(rescale,   rescale,    AT_RESCALE_FACTOR, "softmax: sums of P V when the maximum rises")    \
    X(unit,      pv_unit,    AT_UNIT_F32_FMA, "how p*v is accumulated over keys")                 \
    X(int,       pv_chunk,   1, "keys per accumulation step of a tensor-core pv_unit")            \
    X(int,       pv_spread,  0, "AsyncT: keys of a group of which each step of P*V has a run of 4 in every quarter; 0, and pages of " \
                                "no whole groups: keys in order")                                \
    X(int,       split,      0, "keys (gemm: products) per partial result; 0: one pass over all") \
    X(int,       splits,     0, "attention: of a row's keys each partial result has one in so many, rounded up to a multiple of split") \
    X(guard,     guard,      AT_GUARD_NONE, "overflow guard of an f16 accumulator")               \
    X(bool,      repeats,    1, "1: the same launch gives the same bits")                         \
    X(bool,      batch_invariant, 0, "1: a request's bits do not depend on its batch")            \
    X(tail,      tail,       AT_TAIL_UNREAD, "what may stand past seq_lens")                      \
    X(pv_zero,   pv_zero,    AT_PV_ZERO_MULTIPLIED, "V rows whose p is 0")
/* clang-format on */

enum { AT_L_LANES_MAX = 1024, AT_EX2_POLY3_OF = 32 };

/* ex2_poly3: 2^x without the special-function unit, so that the unit is not what a kernel waits for:
 * 2^floor(x) (1 + f (c1 + f (c2 + f c3))), f = x - floor(x) rounded, three fmaf from inside out; x below LOW goes to the unit,
 * HIGH stands for everything above it. The coefficients are ours: those of f32 with the least relative error on [0, 1], 8.57e-5
 * (a linear programme, then the best of its neighbours). Source: the idea, FlashAttention 4. */
#define AT_EX2_POLY3_C1 0x1.63e666p-1f
#define AT_EX2_POLY3_C2 0x1.d236c8p-3f
#define AT_EX2_POLY3_C3 0x1.3babb6p-4f
#define AT_EX2_POLY3_LOW (-126.0f)
#define AT_EX2_POLY3_HIGH 127.0f

/* The fields as numbers, in the order of the list. */
enum at_numerics_index {
#define X(kind, name, value, meaning) AT_FIELD_##name,
    AT_NUMERICS_LIST(X)
#undef X
        AT_FIELD_COUNT
};

struct at_numerics {
#define X(kind, name, value, meaning) int name;
    AT_NUMERICS_LIST(X)
#undef X
};

/* Keys of each partial result of a row of n keys, as `split` and `splits` have it; 0: one result for all. */
static inline int64_t at_partial_keys(int64_t split, int64_t splits, int64_t n) {
    return splits ? ((n + splits - 1) / splits + split - 1) / split * split : split;
}

/* All defaults, as a designated-initialiser base: { AT_NUMERICS_DEFAULTS, .p = AT_BF16 } is not
 * portable to C++; write every field that differs and call at_numerics_default() elsewhere. */
struct at_numerics at_numerics_default(void);

/* The value of p=input, in the place of the one format that P cannot have. Operators do not know it: what evaluates a declaration
 * asks at_numerics_on() first, for what it means on activations of format dtype. */
enum { AT_P_INPUT = AT_I32 };
struct at_numerics at_numerics_on(const struct at_numerics *declared, enum at_format dtype);

/* A field of the list as data, for help: its values are words with a meaning, or whole numbers (values NULL). */
struct at_numerics_word {
    const char *name, *meaning; /* meaning NULL: the name says it */
};
struct at_numerics_field {
    const char *name, *meaning;
    const struct at_numerics_word *words;
    int n_words, fallback; /* the default: a place in words, or the number */
};
int at_numerics_field_count(void);
struct at_numerics_field at_numerics_field_at(int i);
/* The value of field i: a place in its words, or the number. */
int at_numerics_get(const struct at_numerics *numerics, int i);
void at_numerics_set(struct at_numerics *numerics, int i, int value);

/* "qk_unit=f32_fma qk_lanes=1 ...": every field, fixed order. Fails if `size` is too small. */
at_status at_numerics_format(const struct at_numerics *numerics, char *text, size_t size);
/* The fields alone that differ from those of `from`, in the same form; "": none does. Cut to the room there is. */
void at_numerics_difference(const struct at_numerics *numerics, const struct at_numerics *from, char *text,
                            size_t size);
/* Starts from the defaults; unknown fields and values are AT_USAGE with the nearest name. */
at_status at_numerics_parse(const char *text, struct at_numerics *numerics);
/* Rejects fields out of range and combinations without a meaning (a chunk that is no multiple of the
 * unit's block, lanes < 1, ...). */
at_status at_numerics_check(const struct at_numerics *numerics);

#endif
