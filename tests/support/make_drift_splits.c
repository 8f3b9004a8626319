/* make_drift_splits D.h5 SPLITS LEVEL [SEED]: deals the groups of requests of one recording into two halves again and
 * again, and asks the permutation test whether they differ. Prints how often it says so, with an interval of 95 %, and
 * fails where that is too often or too seldom for the level.
 * SPDX-License-Identifier: Apache-2.0 */
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_randist.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/fill/random.h"
#include "verify/archive/distributions.h"
#include "verify/drift/drift_permute.h"

/* Every series of the recording, and the order of groups of the split in hand: the first half is side A. */
struct splits {
    struct at_distributions d;
    struct {
        enum at_dist_what what;
        int64_t layer, head;
    } * series;
    int64_t n, groups, classes;
    int64_t order[AT_DIST_MAX_GROUPS];
    uint64_t *counts; /* [groups classes] */
    uint64_t seed;    /* of the splits */
};

static at_status load(void *context, int64_t series, uint64_t *counts) {
    struct splits *s = context;
    const size_t row = (size_t)s->classes * sizeof *counts;
    AT_TRY(at_distributions_coarse(&s->d, s->series[series].what, s->series[series].layer, s->series[series].head,
                                   s->counts));
    for (int64_t g = 0; g < s->groups; g++)
        memcpy(counts + g * s->classes, s->counts + s->order[g] * s->classes, row);
    return AT_OK;
}

static at_status open_all(const char *path, struct splits *s) {
    AT_TRY(at_distributions_open(path, &s->d));
    s->groups = s->d.shape.n_groups;
    s->classes = at_dist_classes(s->d.shape.bins);
    s->counts = calloc((size_t)(s->groups * s->classes), sizeof *s->counts);
    s->series = calloc((size_t)(AT_DIST_COUNT * s->d.shape.n_layers * s->d.shape.h), sizeof *s->series);
    if (!s->counts || !s->series)
        return AT_FAIL(AT_NO_MEMORY, "%s", path);
    for (int w = 0; w < AT_DIST_COUNT; w++)
        for (int64_t i = 0; at_dist_has(&s->d.shape, (enum at_dist_what)w) && i < s->d.shape.n_layers; i++)
            for (int64_t head = 0; head < at_dist_heads(&s->d.shape, (enum at_dist_what)w); head++, s->n++) {
                s->series[s->n].what = (enum at_dist_what)w;
                s->series[s->n].layer = i;
                s->series[s->n].head = head;
            }
    return AT_OK;
}

static void shuffle(struct splits *s, uint64_t split) {
    const struct at_random random = { s->seed, split };
    for (int64_t g = 0; g < s->groups; g++)
        s->order[g] = g;
    for (int64_t g = s->groups - 1; g > 0; g--) {
        const int64_t other = at_random_below(&random, (uint64_t)g, g + 1), kept = s->order[g];
        s->order[g] = s->order[other];
        s->order[other] = kept;
    }
}

static at_status run(struct splits *s, int64_t splits, double level, unsigned *accused) {
    at_status status = AT_OK;
    double value[512];
    struct at_drift_series *series = calloc((size_t)s->n, sizeof *series);
    for (int64_t c = 0; c < s->classes; c++) {
        const int64_t first = at_dist_class_first(s->d.shape.bins, c);
        value[c] = at_dist_value_of(s->d.shape.bins, first);
    }
    for (int64_t i = 0; i < splits; i++) {
        const struct at_drift_deal deal = { s->groups / 2, s->groups - s->groups / 2, s->classes, value,
                                            199,           s->seed ^ (uint64_t)i,     load,       s };
        double least = 1;
        shuffle(s, (uint64_t)i);
        AT_TRY_OUT(at_drift_permute(&deal, series, s->n));
        for (int64_t k = 0; k < s->n; k++)
            least = fmin(least, fmin(series[k].p, series[k].p_spread));
        *accused += least <= level;
    }
out:
    free(series);
    return status;
}

int main(int argc, char **argv) {
    struct splits s = { 0 };
    unsigned accused = 0;
    if (argc != 4 && argc != 5)
        return 2;
    const unsigned splits = (unsigned)strtoul(argv[2], NULL, 10);
    const double level = strtod(argv[3], NULL);
    s.seed = argc == 5 ? strtoull(argv[4], NULL, 10) : 77;
    at_status status = open_all(argv[1], &s);
    if (status == AT_OK)
        status = run(&s, splits, level, &accused);
    if (status != AT_OK) {
        fprintf(stderr, "%s\n", at_error_trail());
        return 3;
    }
    const double same = gsl_ran_binomial_pdf(accused, level, splits);
    const double many = gsl_cdf_binomial_Q(accused, level, splits) + same,
                 few = gsl_cdf_binomial_P(accused, level, splits);
    const double low = accused ? gsl_cdf_beta_Pinv(0.025, accused, splits - accused + 1) : 0;
    const double high = accused < splits ? gsl_cdf_beta_Pinv(0.975, accused + 1, splits - accused) : 1;
    printf("%lld series of %lld groups: %u of %u splits accused at level %g, 95 %% interval %.3g to %.3g; chance of as "
           "many or "
           "more: %.3g, of as few or fewer: %.3g\n",
           (long long)s.n, (long long)s.groups, accused, splits, level, low, high, many, few);
    free(s.series);
    free(s.counts);
    at_distributions_close(&s.d);
    return many > 1e-3 && few > 1e-3 ? 0 : 1;
}
