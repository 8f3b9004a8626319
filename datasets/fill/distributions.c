/* The data families that are plain distributions.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Every family is here because it shows a fault or an effect that N(0,1) hides; the text in data.c and the comment
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

AT_FAMILY_ROW(at_same_sign_value) {
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

AT_FAMILY_ROW(at_uniform_query) { uniforms(data, "q", at_data_query_row(data, request, i, head), row); }

AT_FAMILY_ROW(at_uniform_key) { uniforms(data, "k", at_data_key_row(data, request, i, head), row); }

AT_FAMILY_ROW(at_uniform_value) { uniforms(data, "v", at_data_key_row(data, request, i, head), row); }

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

AT_FAMILY_ROW(at_heavy_query) { heavy_tails(data, "q", at_data_query_row(data, request, i, head), row); }

AT_FAMILY_ROW(at_heavy_key) { heavy_tails(data, "k", at_data_key_row(data, request, i, head), row); }

AT_FAMILY_ROW(at_heavy_value) { heavy_tails(data, "v", at_data_key_row(data, request, i, head), row); }

/* ---- outlier_channel: two channels of every kv head have K sixteen times the rest, as trained models do. A
 * tensor-core block aligns its 16 products to the largest, so the small ones beside an outlier lose bits. ---- */

AT_FAMILY_ROW(at_outlier_key) {
    struct at_random channel = at_data_random(data, "outlier channel");
    normals(data, "k", at_data_key_row(data, request, i, head), row);
    for (uint64_t n = 0; n < 2; n++)
        row[at_random_below(&channel, (uint64_t)head * 2 + n, data->d)] *= 16;
}

/* ---- sink: key 0 of every request scores 12 for every query and has a short V row, the attention sink of
 * trained models. Softmax: one weight near 1, all others tiny (renormalisation, first block's maximum). AsyncT:
 * the gate saturates at key 0, and through the FIR keys 1 and 2 are pushed below it: the left edge matters. ---- */

AT_FAMILY_ROW(at_sink_query) {
    at_along(data, "q", at_data_query_row(data, request, i, head), request, kv_head_of(data, head), 1.0, 0.7, row);
}

AT_FAMILY_ROW(at_sink_key) {
    at_along(data, "k", at_data_key_row(data, request, i, head), request, head,
             i == 0 ? 12 / ((double)data->d * data->scale) : 0, i == 0 ? 0 : 1, row);
}

AT_FAMILY_ROW(at_sink_value) {
    normals(data, "v", at_data_key_row(data, request, i, head), row);
    for (int64_t c = 0; i == 0 && c < data->d; c++)
        row[c] *= 0.0625;
}

/* ---- sparse70: 7 keys of 10 have p exactly 0, the share reported for trained AsyncT models (with sigma near 1
 * and K = 3). Open keys score 1.5, at least two keys apart inside a block of ten, so that the pool leaves their
 * gates open. Exercises the skipping of V rows, lists of live keys, whole dead tiles. Softmax: the closed keys
 * are 1500 below, beyond what exp can represent even in double. ---- */

AT_FAMILY_ROW(at_sparse_query) {
    at_along(data, "q", at_data_query_row(data, request, i, head), request, kv_head_of(data, head), 1.0, 0.3, row);
}

AT_FAMILY_ROW(at_sparse_key) {
    struct at_random random = at_data_random(data, "open keys");
    uint64_t block = (uint64_t)((request * data->hk + head) * 0x100000000 + i / 10);
    int64_t place = (i + at_random_below(&random, block, 10)) % 10;
    int open = place == 0 || place == 3 || place == 6;
    double score = open ? 1.5 : data->asynct ? -1.5 : -1500;
    at_along(data, "k", at_data_key_row(data, request, i, head), request, head, score / ((double)data->d * data->scale),
             0.3, row);
}
