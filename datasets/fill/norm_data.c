/* Rows of activations for the norms: x (or a, q, k) and the residual that it is added to.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <string.h>

#include "datasets/fill/families.h"

/* The sequence of one part of one tensor; both parts of a sum know the other's. */
static struct at_random part_of(const struct at_data *data, uint64_t stream, enum at_norm_part part) {
    return (struct at_random){ data->seed, stream + (part == AT_NORM_RES ? 0x9e3779b97f4a7c15u : 0) };
}

static void normals(const struct at_data *data, uint64_t stream, enum at_norm_part part, int64_t row, int64_t n,
                    double factor, double *out) {
    struct at_random random = part_of(data, stream, part);
    at_random_normals(&random, (uint64_t)row * (uint64_t)n, n, out);
    for (int64_t c = 0; c < n; c++)
        out[c] *= factor;
}

static void uniforms(const struct at_data *data, uint64_t stream, enum at_norm_part part, int64_t row, int64_t n,
                     double *out) {
    struct at_random random = part_of(data, stream, part);
    at_random_uniforms(&random, (uint64_t)row * (uint64_t)n, n, out);
}

AT_FAMILY_NORM(at_norm_normal) { normals(data, stream, part, row, n, 1, out); }

/* Sums of squares grow the same way for any data; here the sum itself does too, and no clamp sees a negative. */
AT_FAMILY_NORM(at_norm_same_sign) {
    uniforms(data, stream, part, row, n, out);
    for (int64_t c = 0; c < n; c++)
        out[c] += 0.5;
}

AT_FAMILY_NORM(at_norm_uniform) {
    uniforms(data, stream, part, row, n, out);
    for (int64_t c = 0; c < n; c++)
        out[c] = (out[c] - 0.5) * 0x1.bb67ae8584caap1; /* sqrt(12): variance 1 */
}

/* Student's t with two degrees of freedom, held to +-128: one channel can be most of the mean square. */
AT_FAMILY_NORM(at_norm_heavy_tail) {
    struct at_random random = part_of(data, stream, part), spread = random;
    spread.stream ^= at_random_stream("heavy_tail spread", 0);
    normals(data, stream, part, row, n, 1, out);
    for (int64_t c = 0; c < n; c++) {
        double value = out[c] / sqrt(at_random_exponential(&spread, (uint64_t)(row * n + c)));
        out[c] = value > 128 ? 128 : value < -128 ? -128 : value;
    }
}

/* The same two channels of every row are 64 times the rest: the residual stream of trained models. */
AT_FAMILY_NORM(at_norm_outlier_channel) {
    struct at_random channel = at_data_random(data, "outlier channel");
    normals(data, stream, part, row, n, 1, out);
    for (uint64_t i = 0; i < 2; i++)
        out[at_random_below(&channel, i, n)] *= 64;
}

/* The sum (or x alone) ends just inside f16: 0.95 to 0.985 of 65504, both addends of one sign. */
AT_FAMILY_NORM(at_norm_near_65504) {
    struct at_random sign = part_of(data, stream ^ at_random_stream("sign", 0), AT_NORM_X);
    double share = data->has_res ? 0.5 : 1;
    uniforms(data, stream, part, row, n, out);
    for (int64_t c = 0; c < n; c++) {
        double size = 65504 * share * (0.95 + 0.035 * out[c]);
        out[c] = at_random_bits(&sign, (uint64_t)(row * n + c)) & 1 ? -size : size;
    }
}

/* Every fourth channel is 60000 or so, with its residual beyond f16; its square is so in any case. */
AT_FAMILY_NORM(at_norm_overflow) {
    double large[1];
    normals(data, stream, part, row, n, 1, out);
    for (int64_t c = 0; c < n; c++)
        if ((c + row) % 4 == 1) {
            struct at_random random = part_of(data, stream, AT_NORM_X);
            at_random_uniforms(&random, (uint64_t)(row * n + c), 1, large);
            out[c] = large[0] < 0.5 ? 60000 - 1000 * large[0] : -60000 + 1000 * large[0];
        }
}

/* The residual is nearly -x: what is left is small, and carries the rounding of what was large. */
AT_FAMILY_NORM(at_norm_cancel) {
    normals(data, stream, AT_NORM_X, row, n, 16, out);
    if (part == AT_NORM_X)
        return;
    struct at_random rest = part_of(data, stream, AT_NORM_RES);
    for (int64_t c = 0; c < n; c++) {
        double small[1];
        at_random_normals(&rest, (uint64_t)(row * n + c), 1, small);
        out[c] = 0.5 * small[0] - out[c];
    }
}

/* x on the format's grid in [1, 2), the residual half a step: every sum lies half-way between two values (but
 * for x = 1 less half a step, which is a value). */
AT_FAMILY_NORM(at_norm_ties) {
    double step = 2 * at_format_info(data->dtype)->u;
    uniforms(data, stream, part, row, n, out);
    for (int64_t c = 0; c < n; c++)
        out[c] = part == AT_NORM_RES ? (out[c] < 0.5 ? -step / 2 : step / 2) : 1 + step * floor(out[c] / step);
}

AT_FAMILY_NORM(at_norm_subnormal) { normals(data, stream, part, row, n, at_least_normal(data) / 8, out); }

/* One channel of every eighth row; the other rows must stay clean. */
AT_FAMILY_NORM(at_norm_nonfinite) {
    struct at_random random = part_of(data, stream ^ at_random_stream("nonfinite", 0), part);
    normals(data, stream, part, row, n, 1, out);
    if (row % 8 == 3)
        out[at_random_below(&random, (uint64_t)(2 * row), n)] =
            at_nonfinite(at_random_bits(&random, (uint64_t)(2 * row + 1)));
}

AT_FAMILY_NORM(at_norm_random_bits) {
    struct at_random random = part_of(data, stream, part);
    for (int64_t c = 0; c < n; c++)
        out[c] = at_random_value(data, &random, (uint64_t)(row * n + c));
}

/* Squares a little above half an f32 ulp of the first: a sequential sum of squares rounds up at every step.
 * Added residuals are ulps above half of x's, so res' rounds away from x everywhere. */
AT_FAMILY_NORM(at_norm_adversarial) {
    (void)stream, (void)row;
    double half_ulp = at_format_info(data->dtype)->u;
    for (int64_t c = 0; c < n; c++) {
        double x = c == 0 ? 1 : 0x1p-12 * (1 + 0x1p-6);
        out[c] = part == AT_NORM_X ? x : (c == 0 ? 1 : 0x1p-12) * half_ulp * (1 + 0x1p-6);
    }
}

/* ---- exact ----
 *
 * UClip: x and res are eighths up to 4, alpha, gamma powers of two, beta a quarter: every intermediate is a
 * multiple of 2^-5 below 8, exact in bf16. RMS: groups of four channels are (m, m, m, m) or (2m, 0, 0, 0) with
 * signs and m a power of two, so the mean square is m^2 in any order, even with a stored 1/channels (a power of
 * two), and its root is m. */

static double rms_target(const struct at_random *random, int64_t row, int64_t n, int64_t c) {
    double m = (double)(1 << (row % 4));
    uint64_t group = (uint64_t)((row * n + c) / 4);
    uint32_t bits = at_random_bits(random, group);
    double size = bits & 0x100 ? m : (int64_t)(bits >> 9 & 3) == c % 4 ? 2 * m : 0;
    return size > 0 && bits >> (c % 4) & 1 ? -size : size; /* never -0 */
}

AT_FAMILY_NORM(at_norm_exact) {
    struct at_random target = part_of(data, stream ^ at_random_stream("target", 0), AT_NORM_X);
    enum at_norm_part drawn = data->rms ? AT_NORM_RES : part;
    uniforms(data, stream, drawn, row, n, out);
    for (int64_t c = 0; c < n; c++) {
        double eighths = floor(out[c] * 65) - 32;
        if (!data->rms) {
            out[c] = eighths * 0.125;
            continue;
        }
        /* x + res is the target, so res is anything small and x the rest */
        double res = data->has_res ? eighths * 0.25 : 0;
        out[c] = part == AT_NORM_RES ? res : rms_target(&target, row, n, c) - res;
    }
}
