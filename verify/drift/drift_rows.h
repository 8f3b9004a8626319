/* Rows of attest drift: one quantity of one layer and head, in two recordings.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DRIFT_ROWS_H
#define AT_DRIFT_ROWS_H

#include "verify/drift/drift.h"

/* What a comparison works with: values of bins, and counts of both sides. */
struct at_drift_bench {
    enum at_format format;
    int64_t bins, classes;
    double *value, *class_value;   /* [bins], [classes] */
    uint64_t *a, *b;               /* [bins] */
    uint64_t *coarse_a, *coarse_b; /* [classes] */
};
/* AT_NO_MEMORY; release in any case. */
at_status at_drift_bench_init(enum at_format bins, struct at_drift_bench *bench);
void at_drift_bench_release(struct at_drift_bench *bench);

/* Metrics of a row from the counts in bench->a and bench->b: swapping the sides leaves every one as it is, and exchanges
 * what the row has of A with what it has of B. */
void at_drift_measure_row(const struct at_drift_bench *bench, const struct at_dist_summary *a,
                          const struct at_dist_summary *b, struct at_drift_row *row);
/* Reads the counts of row->what, row->index, row->head, measures them, and the share of pairs that the mask hides. */
at_status at_drift_measure(struct at_drift_bench *bench, const struct at_distributions *a,
                           const struct at_distributions *b, struct at_drift_row *row);

/* drift_noise.c: the largest of each metric between any two of the recordings `paths`, over the heads of each quantity
 * in each layer, goes to the rows' noise. AT_USAGE where they are not recordings of drift->a's requests, or differ in
 * what no noise moves. */
/* AT_USAGE where both A and B are among the recordings of noise, under whatever name: what lies between the two would be its
 * own floor, and nothing could be beyond. */
at_status at_drift_check_noise(const char *a, const char *b, const char *const *paths, int n);
at_status at_drift_measure_noise(const char *const *paths, int n, struct at_drift_bench *bench, struct at_drift *drift);
/* What a row is held to, into row->limit: its rule's limit, and what chance or measured noise may leave beside it. */
void at_drift_set_limits(const struct at_drift_limits *limits, int paired, struct at_drift_row *row);

/* drift_pairing.c: are the requests of B those of A? The reason in why[size]. */
at_status at_drift_pair(enum at_drift_pairing pairing, const struct at_distributions *a,
                        const struct at_distributions *b, int *paired, char *why, size_t size);
/* drift_alike.c: whether each request of A has one of B, of its size, whose values are closer to its own than those of
 * two independent requests could be. */
at_status at_drift_alike(const struct at_distributions *a, const struct at_distributions *b, int *alike);
/* drift_alike.c: chi-square of two sets of counts over its degrees of freedom; about 1 for independent draws from one
 * distribution, far less where the values are the same but for noise, more where they depend on each other or differ.
 * NaN: one side has no counts. */
double at_drift_dispersion(int64_t n, const uint64_t *a, const uint64_t *b);

/* drift_asked.c: a line for each parameter, format or dtype that the two recordings were asked for differently. */
void at_drift_put_asked(const struct at_drift *drift, FILE *out);

#endif
