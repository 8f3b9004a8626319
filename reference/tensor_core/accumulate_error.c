/* How far a sum in a declared unit can be from the exact one.
 * SPDX-License-Identifier: Apache-2.0
 *
 * S = |c| + sum |a_i b_i|, u the unit roundoff of the accumulator, E the error; n products.
 *
 * Rounding to nearest. One addition fl(x + y) = x + y + r has |r| <= u |x + y| and also |r| <= |x| and
 * |r| <= |y|, because x and y are numbers of the format (Jeannerod & Rump 2013). A chain of n fused steps:
 * claim E_n <= n u S_n. The step adds p. If |p| <= u S_{n-1}, |r| <= |p| gives
 * E_n <= (n-1) u S_{n-1} + u S_{n-1}. Otherwise S_{n-1} < |p|/u, and |r| <= u (S_n + E_{n-1}) gives
 * E_n <= (n-1) u S_{n-1} + u S_n + u (n-1) u S_{n-1} <= (n-1) u (S_{n-1} + |p|) + u S_n = n u S_n. No second
 * order term, any n. Joining lanes with n_x and n_y terms: the same two bounds, with the optimal
 * |r| <= u/(1+u) |x + y|, give |r| <= n_y u S_x + n_x u S_y as long as (n_x + n_y) u <= 1, hence
 * E <= (n_x + n_y) u S whatever the lanes and the tree.
 *   f32_fma, f16_fma: e = n u.
 *   f32, f64: every product is rounded too. c and the n rounded products are n + 1 leaves, each with at most
 *     one rounding of its own, joined by n additions: e = (n + 1) u by the same argument.
 * Underflow: additions are exact there, a product or fused step is off by half the smallest subnormal:
 *   eta = n eta(format).
 *
 * Tensor cores, m = ceil(n / L) steps of L products, the last one possibly padded with zeros. A step cuts at
 * most L of its L + 1 terms (the term that sets e_max has at most 23 fraction bits and F >= 23 keeps them; with fp8
 * at most 13, and F is 13) by less than 2^(e_max - F) each, and 2^e_max is at most the largest term, unless an operand
 * is subnormal in its format, or all terms are below the floor e_zero:
 *   |step error| <= (L 2^-F + v) M,  M = |acc| + sum of the step's |products|,
 * v = 2^-23 for truncation to 24 bits, 2^-13 to 14, 2^-11 for nearest to 11 bits. Call it eps.
 *   tc_f32, tc_fp8, tc_fp8_ada: m steps, E <= ((1 + eps)^m - 1) S <= expm1(m eps) S.
 *   tc_f16: as for the chain above: if the step's products sum to |P| <= eps S, the error is at most
 *     (1 + 2^-24) |P|, because the accumulator itself is a candidate of the rounding and is cut only when a
 *     product is 2^10 times larger; hence e = m eps (1 + 2^-23) with no further second order.
 *   tc_fp8_by_f16 and its f16 form: a step of 32 products is two of 16 from 0, d1 and then d2 = d1 + ..., and one addition to
 *     nearest. With eps of a step of 16: |d2 - sum| <= eps (S1 + (1 + eps) S1 + S2) <= 2 eps (1 + eps) (S1 + S2), the
 *     addition has u (|acc| + |d2|). So |step error| <= (2 eps (1 + eps) (1 + u) + u) M, and E <= expm1(m times that) S.
 *     Operands are values of f16 there. An addition does not underflow; eta has that of both steps.
 *   tc_tf32, tc_tf32_rna: operands a' with |a' - a| <= r |a| + w; r = 2^-10 and w = 2^-136 where bits are dropped, half of
 *     either where they are rounded. A product is off by at most (2 r + r^2) |a b| + w ((1 + r) max(|a|, |b|) + 2^-126): w is
 *     for operands below 2^-126, both at the most. The steps are those of a sum of magnitudes (1 + r)^2 S, so that
 *     E <= (2 r + r^2 + e (1 + r)^2) S + ... Where an operand can be rounded to infinity no number is a limit.
 * The alignment counts a subnormal operand as 2^emin, so a product with one counts as emin plus the exponent
 * of the other factor, and its neighbours are cut accordingly: eta has (L + 1) 2^(floor - F) a step with
 * floor the larger of that and e_zero; and the result's underflow, 2^-149 (E8M13: 2^-139) when truncated,
 * 2^-25 when rounded to f16. eta of earlier steps is carried on by factors below 1 + e. */
#include "tensor_core/accumulate.h"

#include <math.h>

#include "tensor_core/fdpa.h"

/* m steps, each two of `chunk` products in f16 and an addition. */
static struct at_sum_error by_f16_error(const struct at_tc_rule *rule, int64_t n, int64_t chunk, double largest) {
    const int64_t whole = (n + 2 * chunk - 1) / (2 * chunk);
    const double steps = (double)whole;
    const int nearest = rule->rounding == AT_TC_RNE;
    const struct at_format_info *in = at_format_info(AT_F16), *out = at_format_info(rule->out);
    const double one =
        (double)chunk * ldexp(1.0, -rule->kept_bits) + ldexp(1.0, nearest ? -rule->out_bits : 1 - rule->out_bits);
    const double step = 2 * one * (1 + one) * (1 + out->u) + out->u;
    const int top = ilogb(fmax(largest, ldexp(1.0, in->emin)));
    const double floor = fmax(ldexp(1.0, in->emin + top), ldexp(1.0, rule->zero_exponent));
    const double underflow = ldexp(1.0, out->emin - rule->out_bits + !nearest);
    struct at_sum_error error = { .e = expm1(steps * step) };
    error.eta =
        steps * 2 * ((double)(chunk + 1) * ldexp(floor, -rule->kept_bits) + underflow) * (1 + step) * (1 + error.e);
    return error;
}

static struct at_sum_error tensor_core_error(const struct at_order *order, const struct at_tc_rule *rule, int64_t n,
                                             double largest) {
    const int64_t chunk = at_order_chunk(order), chunks = (n + chunk - 1) / chunk;
    const double steps = (double)chunks;
    const int nearest = rule->rounding == AT_TC_RNE;
    const double rounding = ldexp(1.0, nearest ? -rule->out_bits : 1 - rule->out_bits);
    const double step = chunk * ldexp(1.0, -rule->kept_bits) + rounding;
    const struct at_format_info *in = at_format_info(order->input);
    const struct at_format_info *out = at_format_info(rule->out);

    int top = ilogb(fmax(largest, ldexp(1.0, in->emin)));
    double beside = ldexp(1.0, in->emin + top); /* 2^e_max of a product with a subnormal factor */
    double floor = fmax(beside, ldexp(1.0, rule->zero_exponent));
    double underflow = ldexp(1.0, out->emin - rule->out_bits + !nearest);
    struct at_sum_error error;
    error.e = nearest ? steps * step * (1 + 0x1p-23) : expm1(steps * step);
    error.eta = steps * ((chunk + 1) * ldexp(floor, -rule->kept_bits) + underflow) * (1 + error.e);
    return error;
}

/* Steps of tf32, and before them what operands of f32 lose. */
static struct at_sum_error tf32_error(const struct at_order *order, const struct at_tc_rule *rule, int64_t n,
                                      double largest) {
    const struct at_format_info *tf32 = at_format_info(AT_TF32);
    const double half = order->unit == AT_UNIT_TC_TF32_RNA ? 1 : 2; /* units of half a last place */
    const double r = half * tf32->u, w = half * tf32->eta;
    struct at_order of_tf32 = *order;
    of_tf32.input = AT_TF32;
    struct at_sum_error error = tensor_core_error(&of_tf32, rule, n, largest * (1 + r));
    error.eta += (double)n * w * ((1 + r) * largest + 0x1p-126) * (1 + error.e);
    error.e = (2 * r + r * r + error.e * (1 + r) * (1 + r)) * (1 + 0x1p-50);
    if (order->unit == AT_UNIT_TC_TF32_RNA && largest >= tf32->end)
        error.eta = 0x1p1000; /* past the end of every format; no infinity, since callers multiply it by 0 steps, too */
    return error;
}

struct at_sum_error at_accumulate_error_within(const struct at_order *order, int64_t n, double largest) {
    const struct at_tc_rule *rule = at_unit_rule(order->unit);
    if (rule && at_unit_is_fp8_by_f16(order->unit))
        return by_f16_error(rule, n, at_order_chunk(order) / 2, largest);
    if (rule && at_unit_is_tf32(order->unit))
        return tf32_error(order, rule, n, largest);
    if (rule)
        return tensor_core_error(order, rule, n, largest);
    const struct at_format_info *format = at_format_info(at_unit_format(order->unit));
    const int fused = order->unit == AT_UNIT_F32_FMA || order->unit == AT_UNIT_F16_FMA;
    /* half the smallest subnormal of f64 is no double: take the whole one */
    double eta = order->unit == AT_UNIT_F64 ? 0x1p-1074 : format->eta;
    double terms = (double)n;
    return (struct at_sum_error){ .e = (fused ? terms : terms + 1) * format->u, .eta = terms * eta };
}

struct at_sum_error at_accumulate_error(const struct at_order *order, int64_t n) {
    const struct at_format_info *in = at_format_info(order->input);
    double largest = order->input == AT_F64 ? 0 : in->max;
    return at_accumulate_error_within(order, n, largest);
}
