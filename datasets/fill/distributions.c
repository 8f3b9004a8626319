/* The data families: their table, and the ones that are plain distributions.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every family is here because it shows a fault or an effect that N(0,1) hides; the table's text and the comment
 * above its functions say which. */
#include "datasets/fill/families.h"

#include <math.h>
#include <stddef.h>

/* ---- what several families share ---- */

double at_direction(const struct at_data *data, int64_t request, int64_t kv_head, int64_t c) {
    struct at_random random = at_data_random(data, "direction");
    uint64_t i = (uint64_t)((request * data->hk + kv_head) * data->d + c);
    return at_random_bits(&random, i / 32) >> (i % 32) & 1 ? 1.0 : -1.0;
}

void at_along(const struct at_data *data, const char *name, uint64_t row_number, int64_t request, int64_t kv_head,
              double along, double noise, double *row) {
    struct at_random random = at_data_random(data, name);
    at_random_normals(&random, row_number * (uint64_t)data->d, data->d, row);
    for (int64_t c = 0; c < data->d; c++)
        row[c] = along * at_direction(data, request, kv_head, c) + noise * row[c];
}

static int64_t kv_head_of(const struct at_data *data, int64_t head) { return head / (data->h / data->hk); }

static void normals(const struct at_data *data, const char *name, uint64_t row_number, double *row) {
    struct at_random random = at_data_random(data, name);
    at_random_normals(&random, row_number * (uint64_t)data->d, data->d, row);
}

/* ---- normal: N(0,1). Scores N(0,1) after the usual scale: the well-behaved case, where everything but
 * rounding is easy and every index mistake shows. ---- */

AT_FAMILY_ROW(at_normal_query) { normals(data, "q", at_data_query_row(data, request, i, head), row); }

AT_FAMILY_ROW(at_normal_key) { normals(data, "k", at_data_key_row(data, request, i, head), row); }

AT_FAMILY_ROW(at_normal_value) { normals(data, "v", at_data_key_row(data, request, i, head), row); }

/* ---- same_sign: q, k normal, V in [0.5, 1.5]. Partial sums of P*V only grow: an f16 accumulator stalls (the
 * sum's ulp outgrows the addend), a truncating one drifts to one side, and neither averages out. ---- */

static AT_FAMILY_ROW(same_sign_value) {
    struct at_random random = at_data_random(data, "v");
    at_random_uniforms(&random, at_data_key_row(data, request, i, head) * (uint64_t)data->d, data->d, row);
    for (int64_t c = 0; c < data->d; c++)
        row[c] += 0.5;
}

/* ---- uniform: variance 1 without tails. Results that differ from `normal` by more than chance point at rare
 * large values; a bounded range also keeps the softmax's weights of one size. ---- */

static void uniforms(const struct at_data *data, const char *name, uint64_t row_number, double *row) {
    struct at_random random = at_data_random(data, name);
    at_random_uniforms(&random, row_number * (uint64_t)data->d, data->d, row);
    for (int64_t c = 0; c < data->d; c++)
        row[c] = (row[c] - 0.5) * 0x1.bb67ae8584caap1; /* sqrt(12) */
}

static AT_FAMILY_ROW(uniform_query) { uniforms(data, "q", at_data_query_row(data, request, i, head), row); }

static AT_FAMILY_ROW(uniform_key) { uniforms(data, "k", at_data_key_row(data, request, i, head), row); }

static AT_FAMILY_ROW(uniform_value) { uniforms(data, "v", at_data_key_row(data, request, i, head), row); }

/* ---- heavy_tail: Student's t with two degrees of freedom, held to +-128. A few values carry the sum: additions
 * swamp the small ones, the gate saturates both ways, and an f16 score comes near its end of range. ---- */

static void heavy_tails(const struct at_data *data, const char *name, uint64_t row_number, double *row) {
    struct at_random random = at_data_random(data, name), spread = at_data_random(data, "heavy_tail spread");
    uint64_t first = row_number * (uint64_t)data->d;
    spread.stream ^= random.stream;
    at_random_normals(&random, first, data->d, row);
    for (int64_t c = 0; c < data->d; c++) {
        double value = row[c] / sqrt(at_random_exponential(&spread, first + (uint64_t)c));
        row[c] = value > 128 ? 128 : value < -128 ? -128 : value;
    }
}

static AT_FAMILY_ROW(heavy_query) { heavy_tails(data, "q", at_data_query_row(data, request, i, head), row); }

static AT_FAMILY_ROW(heavy_key) { heavy_tails(data, "k", at_data_key_row(data, request, i, head), row); }

static AT_FAMILY_ROW(heavy_value) { heavy_tails(data, "v", at_data_key_row(data, request, i, head), row); }

/* ---- outlier_channel: two channels of every kv head have K sixteen times the rest, as trained models do. A
 * tensor-core block aligns its 16 products to the largest, so the small ones beside an outlier lose bits. ---- */

static AT_FAMILY_ROW(outlier_key) {
    struct at_random channel = at_data_random(data, "outlier channel");
    normals(data, "k", at_data_key_row(data, request, i, head), row);
    for (uint64_t n = 0; n < 2; n++)
        row[at_random_below(&channel, (uint64_t)head * 2 + n, data->d)] *= 16;
}

/* ---- sink: key 0 of every request scores 12 for every query and has a short V row, the attention sink of
 * trained models. Softmax: one weight near 1, all others tiny (renormalisation, first block's maximum). AsyncT:
 * the gate saturates at key 0, and through the FIR keys 1 and 2 are pushed below it: the left edge matters. ---- */

static AT_FAMILY_ROW(sink_query) {
    at_along(data, "q", at_data_query_row(data, request, i, head), request, kv_head_of(data, head), 1.0, 0.7, row);
}

static AT_FAMILY_ROW(sink_key) {
    at_along(data, "k", at_data_key_row(data, request, i, head), request, head,
             i == 0 ? 12 / ((double)data->d * data->scale) : 0, i == 0 ? 0 : 1, row);
}

static AT_FAMILY_ROW(sink_value) {
    normals(data, "v", at_data_key_row(data, request, i, head), row);
    for (int64_t c = 0; i == 0 && c < data->d; c++)
        row[c] *= 0.0625;
}

/* ---- sparse70: 7 keys of 10 have p exactly 0, the share reported for trained AsyncT models (with sigma near 1
 * and K = 3). Open keys score 1.5, at least two keys apart inside a block of ten, so that the pool leaves their
 * gates open. Exercises the skipping of V rows, lists of live keys, whole dead tiles. Softmax: the closed keys
 * are 1500 below, beyond what exp can represent even in double. ---- */

static AT_FAMILY_ROW(sparse_query) {
    at_along(data, "q", at_data_query_row(data, request, i, head), request, kv_head_of(data, head), 1.0, 0.3, row);
}

static AT_FAMILY_ROW(sparse_key) {
    struct at_random random = at_data_random(data, "open keys");
    uint64_t block = (uint64_t)((request * data->hk + head) * 0x100000000 + i / 10);
    int64_t place = (i + at_random_below(&random, block, 10)) % 10;
    int open = place == 0 || place == 3 || place == 6;
    double score = open ? 1.5 : data->asynct ? -1.5 : -1500;
    at_along(data, "k", at_data_key_row(data, request, i, head), request, head, score / ((double)data->d * data->scale),
             0.3, row);
}

/* ---- the table ---- */

enum { ALL = AT_DATA_ATTENTION | AT_DATA_NORM | AT_DATA_PRODUCT, HOT = AT_DATA_HOT, ELEMENTS = AT_DATA_ELEMENTS };

/* clang-format off */
static const struct at_data_family families[] = {
    { "exact", "small integers and powers of two: every order of operations gives the same bits", ALL | HOT, 1,
      at_exact_query, at_exact_key, at_exact_value, at_norm_exact,
      at_product_exact_left, at_product_exact_right },
    { "normal", "N(0,1) everywhere", ALL | HOT | ELEMENTS, 0,
      at_normal_query, at_normal_key, at_normal_value, at_norm_normal,
      at_normal_query, at_normal_key, at_elements_normal },
    { "same_sign", "V in [0.5, 1.5]: sums that only grow stall and swamp", ALL | HOT, 0,
      at_normal_query, at_normal_key, same_sign_value, at_norm_same_sign,
      at_product_same_sign_left, at_product_same_sign_right },
    { "uniform", "variance 1 without tails", ALL | HOT, 0,
      uniform_query, uniform_key, uniform_value, at_norm_uniform,
      uniform_query, uniform_key },
    { "heavy_tail", "Student's t of 2 degrees: few values carry the sum", ALL, 0,
      heavy_query, heavy_key, heavy_value, at_norm_heavy_tail,
      heavy_query, heavy_key },
    { "outlier_channel", "two channels 16 times the rest: products aligned to the largest lose bits", ALL, 0,
      at_normal_query, outlier_key, at_normal_value, at_norm_outlier_channel,
      at_normal_query, outlier_key },
    { "sink", "key 0 attracts every query: saturated gate, one weight near 1", AT_DATA_ATTENTION, 0,
      sink_query, sink_key, sink_value, NULL },
    { "near_65504", "unscaled scores up to 65504 and not beyond: the end of f16", ALL, 0,
      at_near_query, at_near_key, at_normal_value, at_norm_near_65504,
      at_near_query, at_near_key },
    { "overflow", "every fourth unscaled score beyond 65520: an f16 accumulator makes Inf; of 2^x half of the results", ALL | ELEMENTS, 0,
      at_near_query, at_overflow_key, at_normal_value, at_norm_overflow,
      at_near_query, at_overflow_key, at_elements_overflow },
    { "cancel", "large terms that cancel: small results with the error of large ones", ALL, 0,
      at_cancel_query, at_cancel_key, at_cancel_value, at_norm_cancel,
      at_cancel_query, at_cancel_key },
    { "ties", "values half-way between two of the format: rounding to even, not away", ALL, 0,
      at_ties_query, at_ties_key, at_ties_value, at_norm_ties,
      at_product_ties_left, at_product_ties_right },
    { "subnormal", "V, outputs and some scores below the least normal number: flushing shows", ALL | ELEMENTS, 0,
      at_normal_query, at_subnormal_key, at_subnormal_value, at_norm_subnormal,
      at_normal_query, at_subnormal_value, at_elements_subnormal },
    { "all_masked", "AsyncT: every gate closed; softmax: every score below -500", AT_DATA_ATTENTION, 0,
      at_masked_query, at_masked_key, at_normal_value, NULL },
    { "sparse70", "7 keys of 10 have p = 0", AT_DATA_ATTENTION, 0,
      sparse_query, sparse_key, at_normal_value, NULL },
    { "nonfinite", "NaN and Inf sprinkled in; request 0 is clean when there are several", ALL | ELEMENTS, 0,
      at_nonfinite_query, at_nonfinite_key, at_nonfinite_value, at_norm_nonfinite,
      at_nonfinite_query, at_nonfinite_key, at_elements_nonfinite },
    { "random_bits", "random sign, significand and exponent: sizes over 40 powers of two; of 2^x any finite f32", ALL | ELEMENTS, 0,
      at_bits_query, at_bits_key, at_bits_value, at_norm_random_bits,
      at_bits_query, at_bits_key, at_elements_random_bits },
    { "adversarial", "built to make every rounding go the same way by half an ulp", ALL, 0,
      at_adversarial_query, at_adversarial_key, at_adversarial_value, at_norm_adversarial,
      at_product_adversarial_left, at_product_adversarial_right },
    { "stall", "1/16 everywhere: an accumulator with few bits comes to a number that a step no longer raises", AT_DATA_PRODUCT, 0,
      NULL, NULL, NULL, NULL, at_product_stall, at_product_stall },
    { "whole_range", "arguments of 2^x for results of every exponent that f32 has", ELEMENTS, 0,
      NULL, NULL, NULL, NULL, NULL, NULL, at_elements_whole_range },
    { "near_integer", "whole arguments of 2^x and their neighbours", ELEMENTS, 0,
      NULL, NULL, NULL, NULL, NULL, NULL, at_elements_near_integer },
};
/* clang-format on */

int at_data_count(void) { return (int)(sizeof families / sizeof *families); }

const struct at_data_family *at_data_at(int i) { return &families[i]; }
