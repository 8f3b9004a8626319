/* Writes an archive with small score distributions, the same on every call, for tests that read it from other programs:
 * make_distributions OUT.h5 [layers heads kv_heads].
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/splitmix.h"
#include "verify/archive/distributions.h"

enum { VALUES = 4000, QUERIES = 8 };

/* About N(0, 1): a sum of four uniform numbers. */
static double bell(struct splitmix *random) {
    double sum = 0;
    for (int i = 0; i < 4; i++)
        sum += ldexp((double)(splitmix_next(random) >> 11), -53);
    return (sum - 2) * sqrt(3);
}

static double value_of(enum at_dist_what what, int64_t layer, struct splitmix *random) {
    const double x = bell(random);
    switch (what) {
    case AT_DIST_raw:
        return 3000 * (double)(layer + 1) * x; /* a later layer passes 65504 now and then */
    case AT_DIST_p:
        return x > 0.5 ? fmin(1, x - 0.5) : 0;
    case AT_DIST_row_sum:
    case AT_DIST_entropy:
    case AT_DIST_support:
    case AT_DIST_share0:
        return fabs(x);
    default:
        return x * (double)(layer + 1);
    }
}

static void fill(struct at_dist_layer *l, int64_t layer, struct splitmix *random) {
    const int64_t bins = at_dist_bins(l->shape.bins), classes = at_dist_classes(l->shape.bins);
    for (int w = 0; w < AT_DIST_COUNT; w++) {
        const enum at_dist_what what = (enum at_dist_what)w;
        for (int64_t h = 0; at_dist_has(&l->shape, what) && h < at_dist_heads(&l->shape, what); h++)
            for (int i = 0; i < (at_dist_is_row(what) ? QUERIES * 20 : VALUES); i++) {
                const double x = at_round(AT_F16, value_of(what, layer + h, random));
                const int64_t bin = at_dist_bin_of(l->shape.bins, (uint16_t)at_encode(AT_F16, x));
                l->counts[w][h * bins + bin]++;
                l->coarse[w][(h * l->shape.n_groups + i % l->shape.n_groups) * classes +
                             at_dist_class_of(l->shape.bins, bin)]++;
                l->tally[w][h].overflow += isinf(x);
            }
    }
    for (int64_t h = 0; h < l->shape.h; h++)
        for (int64_t b = 0; b < l->shape.n_distances; b++)
            l->mass[h * l->shape.n_distances + b] = (uint64_t)(1 << 24) >> (b + h % 2);
    for (int z = 0; z < AT_DIST_ZERO_COUNT; z++)
        for (int64_t h = 0; h < at_dist_zero_heads(&l->shape, (enum at_dist_zero)z); h++)
            l->zero[z][h] = z % 2 ? 1000 : (uint64_t)(700 - 80 * z - 10 * h - 5 * layer);
    for (int64_t i = 0; i < l->shape.h * AT_DIST_STAGES; i++) {
        l->ledger[i].count = VALUES;
        l->ledger[i].max_abs = 3000.0 * (double)(i + 1);
    }
}

static at_status write_file(const char *path, int64_t layers, int64_t h, int64_t hk) {
    struct at_run_record record;
    struct at_dist_layer layer = { 0 };
    struct at_dist_writer *writer = NULL;
    struct at_dist_unit_row units[64] = { { 0 } };
    int64_t numbers[64];
    struct splitmix random = { 7 };
    at_status status = AT_OK;
    const struct at_dist_shape shape = { .n_layers = layers,
                                         .h = h,
                                         .hk = hk,
                                         .requests = 1,
                                         .n_groups = 1,
                                         .n_distances = at_dist_distances(20),
                                         .bins = AT_F16,
                                         .what = (1u << AT_DIST_COUNT) - 1 };
    at_run_record_init(&record);
    record.request = strdup("{\"command\":\"record\",\"source\":\"made\"}");
    record.provenance = strdup("{\"commit\":\"abc\",\"version\":\"1.0.0\"}");
    for (int64_t i = 0; i < layers; i++) {
        numbers[i] = 2 * i;
        units[i] = (struct at_dist_unit_row){ .layer = 2 * i, .queries = QUERIES, .keys = 20 };
        snprintf(units[i].hash, sizeof units[i].hash, "%016llx", (unsigned long long)i);
    }
    const struct at_dist_head head = {
        .shape = shape, .layer = numbers, .attention = "asynct", .source = "made <by> a test", .record = &record
    };
    AT_TRY_OUT(at_dist_layer_init(&shape, &layer));
    AT_TRY_OUT(at_dist_writer_open(path, &head, &writer));
    for (int64_t i = 0; i < layers; i++) {
        at_dist_layer_clear(&layer);
        fill(&layer, i, &random);
        AT_TRY_OUT(at_dist_writer_put(writer, i, &layer));
    }
    status = at_dist_writer_save(writer, units, layers);
    writer = NULL;
out:
    at_dist_writer_abandon(writer);
    at_dist_layer_release(&layer);
    at_run_record_release(&record);
    return status;
}

int main(int argc, char **argv) {
    const int64_t layers = argc > 4 ? strtoll(argv[2], NULL, 10) : 2;
    const int64_t h = argc > 4 ? strtoll(argv[3], NULL, 10) : 4, hk = argc > 4 ? strtoll(argv[4], NULL, 10) : 2;
    if (argc < 2 || layers < 1 || layers > 64 || h < 1 || h > 64 || hk < 1 || hk > 64) {
        fprintf(stderr, "usage: %s OUT.h5 [layers heads kv_heads]\n", argv[0]);
        return 2;
    }
    const at_status status = write_file(argv[1], layers, h, hk);
    if (status != AT_OK)
        fprintf(stderr, "%s\n", at_error_trail());
    return at_status_exit_code(status);
}
