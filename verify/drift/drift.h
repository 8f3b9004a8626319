/* attest drift: has a distribution moved between two recordings?
 * SPDX-License-Identifier: Apache-2.0
 *
 * Recordings of the same requests are compared pair by pair: without a change and without noise every difference is 0, so
 * limits on the differences decide, beside what chance and noise may leave (drift_noise.c). Recordings of different requests differ by chance: a permutation test over requests decides, at a
 * level that holds for all quantities, layers and heads together; limits, if any are given, decide beside it. */
#ifndef AT_DRIFT_H
#define AT_DRIFT_H

#include <stdint.h>
#include <stdio.h>

#include "verify/archive/distributions.h"

/* name, unit, default limit of a paired comparison, meaning. Why these limits: attest's own arithmetic gives 0 for
 * equal inputs; they are what a head's scale moved by 2 % exceeds (tests/cli/test_drift.sh) and are for users to set.
 */
/* clang-format off */
#define AT_DRIFT_METRIC_LIST(X)                                                                              \
    X(ks,             "1",   0.002, "largest difference of the cumulative shares (Kolmogorov-Smirnov)")      \
    X(wasserstein,    "1",   0.005, "area between the cumulative shares, over the deviation of both")        \
    X(js,             "bit", 0.001, "Jensen-Shannon divergence of the coarse classes, joined to 10 values")  \
    X(grain,          "1",   0.05,  "largest difference of the shares with j trailing zero bits")            \
    X(zero_share,     "1",   0.002, "change of the share of zeros")                                          \
    X(infinite_share, "1",   0,     "change of the share of values that are not finite")                     \
    X(headroom,       "bit", 0.1,   "change of log2(65504 / largest magnitude)")                             \
    X(masked_share,   "1",   0,     "change of the share of (query, key) that the mask hides")
/* clang-format on */

enum at_drift_metric {
#define X(name, unit, limit, meaning) AT_DRIFT_##name,
    AT_DRIFT_METRIC_LIST(X)
#undef X
        AT_DRIFT_METRICS
};
const char *at_drift_metric_name(enum at_drift_metric metric);
const char *at_drift_metric_unit(enum at_drift_metric metric);

/* What decides. A limit of infinity: none. */
struct at_drift_rule {
    char what[16]; /* a quantity; "": every one without a rule of its own */
    double limit[AT_DRIFT_METRICS];
};
enum { AT_DRIFT_MAX_RULES = 32 };
struct at_drift_limits {
    struct at_drift_rule rule[AT_DRIFT_MAX_RULES];
    int n_rules;
    double chance;       /* paired: values that may go over an edge, and deviations of coins (drift_noise.c) */
    double noise_factor; /* times the largest of the noise that was measured */
    double level;        /* family-wise, of the permutation test; 0: paired, no test */
    int64_t deals;
};

/* The defaults of a paired or unpaired comparison. */
void at_drift_limits_default(int paired, struct at_drift_limits *limits);
/* Overrides from a JSON file,
 *     {"paired":   {"ks": 0.01, "headroom": null, "p": {"zero_share": 0.001}, "chance": 5, "noise_factor": 3},
 *      "unpaired": {"level": 0.05, "permutations": 999}}
 * null: no limit. AT_USAGE names the file, the key, what was found and what is wanted. */
at_status at_drift_limits_read(const char *path, int paired, struct at_drift_limits *limits);
const struct at_drift_rule *at_drift_rule_of(const struct at_drift_limits *limits, const char *what);

/* One quantity of one layer and head. Metrics compare B with A; where only one side has values, ks is 1. */
struct at_drift_row {
    enum at_dist_what what;
    int64_t layer, head; /* the layer's number; its index is in index */
    int64_t index;
    uint64_t n_a, n_b; /* values, NaNs among them */
    double metric[AT_DRIFT_METRICS];
    double noise[AT_DRIFT_METRICS]; /* measured between recordings of the same thing; 0: not measured */
    double limit[AT_DRIFT_METRICS]; /* what the metrics were held to */
    double ks_at;                   /* value at which the cumulative shares differ most */
    int grain_bits;                 /* trailing zero bits of `grain`; negative: more of A's values have them */
    double zero_a, zero_b, headroom_a, headroom_b;
    double hidden_a, hidden_b; /* share of (query, key) that the mask hides; NaN: q, k and v, or there are none */
    double p, p_spread;        /* family-wise; NaN: paired, or one side has no values */
    double spread;             /* mean log2 ratio of the requests' spreads, B over A; NaN: paired */
    double excess;             /* largest of metric over limit and level over p: beyond 1 the row fails */
    int failed;                /* bit m: metric m, bit AT_DRIFT_METRICS: the permutation test */
};

enum { AT_DRIFT_WHY_BYTES = 320 };

struct at_drift {
    struct at_distributions a, b;
    int paired;
    char why[AT_DRIFT_WHY_BYTES]; /* paired or not */
    int noise_recordings;         /* that the floor was measured on; 0: it was not */
    double least_p;               /* that the permutation test could give; 0: paired */
    int64_t deals;                /* that it compared, the real one among them */
    int judged;                   /* something could have failed */
    struct at_drift_row *rows;
    int64_t n;
    int64_t failed; /* rows beyond a limit or the level */
};

enum at_drift_pairing { AT_DRIFT_PAIR_AUTO, AT_DRIFT_PAIRED, AT_DRIFT_UNPAIRED };

struct at_drift_options {
    enum at_drift_pairing pairing;
    const char *limits;       /* JSON file; NULL: defaults */
    const char *what;         /* GLOB of quantities; NULL: all */
    int64_t seed;             /* of the deals */
    const char *const *noise; /* [n_noise] recordings of one and the same thing */
    int n_noise;
};

/* AT_USAGE with the first difference: another attention, other bins, heads or layers than A has. The names are for the
 * message. */
at_status at_drift_check_shapes(const struct at_distributions *a, const struct at_distributions *b, const char *name_a,
                                const char *name_b);

/* Compares two archives of `attest record`. AT_USAGE when they cannot be compared: another attention, other bins,
 * layers or heads (the first difference is named); a limits file that is no good. Release `drift` in any case. */
at_status at_drift_compare(const char *path_a, const char *path_b, const struct at_drift_options *options,
                           struct at_drift_limits *limits, struct at_drift *drift);
void at_drift_release(struct at_drift *drift);

/* The first row of the same head that fails, in the order in which one quantity follows from another (q, k, v, raw,
 * ..., out): where a change came in. */
const struct at_drift_row *at_drift_origin(const struct at_drift *drift, const struct at_drift_row *row);
/* Heads that fail, worst first, in heads[n] that the caller frees: the worst row of each, and its origin. A key/value
 * head is a head of its own. */
struct at_drift_head {
    const struct at_drift_row *worst, *origin;
};
at_status at_drift_heads(const struct at_drift *drift, struct at_drift_head **heads, int64_t *n);
/* What a row failed by: "ks, grain", "permutation test", or "". */
void at_drift_reasons(const struct at_drift_row *row, char *text, size_t size);

/* The table: heads that fail, worst first (at most `most`), each with the quantity a change came in by, then a line for
 * each quantity. */
void at_drift_table(const struct at_drift *drift, const struct at_drift_limits *limits, int64_t most, FILE *out);
/* What the worst row looks like in A and B: shares over the value as bars of text, and a likely cause. Nothing, if no
 * row fails. */
at_status at_drift_explain(const struct at_drift *drift, FILE *out);
/* A test case for each layer and head. */
at_status at_drift_junit(const struct at_drift *drift, const char *path);
/* A line for each row. */
at_status at_drift_jsonl(const struct at_drift *drift, const char *path);

#endif
