/* Score distributions: exact counts per layer and head, in memory, into an archive layer by layer, and back.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A bin is one code of a 16-bit format in numeric order, -inf first and +inf last, both zeros among them; NaN has no
 * bin. A value is rounded once to its code, ties to even. Everything that is added up is an integer or a ledger, so
 * that no order of units, threads or shards changes a bit; moments and extremes are taken from the counts when a layer
 * is written. Layout of the file: README.md, /distributions. */
#ifndef AT_DISTRIBUTIONS_H
#define AT_DISTRIBUTIONS_H

#include <stdint.h>

#include "attest/format.h"
#include "attest/ledger.h"
#include "verify/result/record.h"

/* name, heads (0: query heads, 1: key/value heads), a statistic of rows, meaning */
/* clang-format off */
#define AT_DIST_LIST(X)                                                                      \
    X(q,       0, 0, "queries")                                                              \
    X(k,       1, 0, "keys")                                                                 \
    X(v,       1, 0, "values")                                                               \
    X(raw,     0, 0, "q.k before the scale")                                                 \
    X(scaled,  0, 0, "scores after the scale")                                               \
    X(fir,     0, 0, "after the FIR, before the clamp")                                      \
    X(p,       0, 0, "attention weights: after the clamp (asynct), normalised (softmax)")    \
    X(out,     0, 0, "outputs")                                                              \
    X(row_max, 0, 1, "largest scaled score of a row")                                        \
    X(row_sum, 0, 1, "sum of a row's p (asynct), of exp(s - max) (softmax)")                 \
    X(entropy, 0, 1, "entropy of a row's p over their sum, in bit")                          \
    X(support, 0, 1, "effective number of keys of a row, 2^entropy")                         \
    X(share0,  0, 1, "share of key 0 in a row's p")
/* clang-format on */

enum at_dist_what {
#define X(name, kv, row, meaning) AT_DIST_##name,
    AT_DIST_LIST(X)
#undef X
        AT_DIST_COUNT
};

/* Zero shares: name, heads, meaning. Only what is visible counts; a page or tile counts with one visible element. */
/* clang-format off */
#define AT_DIST_ZERO_LIST(X)                                                                 \
    X(element_zero,  0, "p that are exactly 0")                                              \
    X(element_total, 0, "visible p")                                                         \
    X(key_zero,      1, "(query, key) whose p is 0 in every head of the key/value head")     \
    X(key_total,     1, "visible (query, key)")                                              \
    X(page_zero,     1, "(query, 16 keys) whose p are 0 in every head of the key/value head")  \
    X(page_total,    1, "(query, 16 keys) with a visible key")                               \
    X(tile_zero,     0, "tiles of 64 queries and 16 keys whose p are 0")                     \
    X(tile_total,    0, "tiles of 64 queries and 16 keys with a visible p")
/* clang-format on */

enum at_dist_zero {
#define X(name, kv, meaning) AT_DIST_ZERO_##name,
    AT_DIST_ZERO_LIST(X)
#undef X
        AT_DIST_ZERO_COUNT
};

/* Stages of the ledger that a recording has, in this order in the file. */
enum { AT_DIST_STAGES = 5, AT_DIST_MAX_GROUPS = 64, AT_DIST_MAX_DISTANCES = 64, AT_DIST_PAGE = 16, AT_DIST_TILE = 64 };
enum at_stage at_dist_stage(int i);

const char *at_dist_name(enum at_dist_what what);
const char *at_dist_meaning(enum at_dist_what what);
int at_dist_is_kv(enum at_dist_what what);
int at_dist_is_row(enum at_dist_what what);
/* AT_DIST_COUNT if there is none of that name. */
enum at_dist_what at_dist_find(const char *name);
const char *at_dist_zero_name(enum at_dist_zero zero);
const char *at_dist_zero_meaning(enum at_dist_zero zero);
int at_dist_zero_is_kv(enum at_dist_zero zero);

/* Bins of a 16-bit format: 63490 of f16, 65282 of bf16. */
int64_t at_dist_bins(enum at_format bins);
/* Bin of a code that is not NaN; code and value of a bin. */
int64_t at_dist_bin_of(enum at_format bins, uint16_t code);
uint16_t at_dist_code_of(enum at_format bins, int64_t bin);
double at_dist_value_of(enum at_format bins, int64_t bin);
/* Coarse classes: the upper byte of the code made ascending (sign bit set for positive codes, all bits inverted for
 * negative ones); 250 of f16, 256 of bf16. The class of a bin, and the lowest bin of a class. */
int64_t at_dist_classes(enum at_format bins);
int64_t at_dist_class_of(enum at_format bins, int64_t bin);
int64_t at_dist_class_first(enum at_format bins, int64_t coarse);
/* Bins of key distances 0, 1, 2-3, 4-7, ... up to `longest`; the bin of a distance; the lower edge of a bin. */
int64_t at_dist_distances(int64_t longest);
int64_t at_dist_distance_of(int64_t distance);
int64_t at_dist_distance_edge(int64_t bin);

/* What every layer of a recording shares. */
struct at_dist_shape {
    int64_t n_layers, h, hk;
    int64_t requests, n_groups; /* requests of the source; request r is of group r % n_groups */
    int64_t n_distances;
    enum at_format bins;
    unsigned what; /* bit w: quantity w is there */
};
int at_dist_has(const struct at_dist_shape *shape, enum at_dist_what what);
int64_t at_dist_heads(const struct at_dist_shape *shape, enum at_dist_what what);
int64_t at_dist_zero_heads(const struct at_dist_shape *shape, enum at_dist_zero zero);

/* Exact sums of one quantity and head that the counts do not hold. */
struct at_dist_tally {
    uint64_t nan;      /* values that are NaN, and have no bin */
    uint64_t masked;   /* (query, key) hidden by the mask: never counted */
    uint64_t overflow; /* finite values beyond the format, counted in the bins of the infinities */
    uint64_t n_empty;  /* rows that do not have the statistic: no visible key, or a sum of 0 */
};

/* One layer's sums. Arrays of quantities that are not there are NULL. */
struct at_dist_layer {
    struct at_dist_shape shape;
    uint64_t *counts[AT_DIST_COUNT];            /* [heads bins] */
    uint64_t *coarse[AT_DIST_COUNT];            /* [heads groups classes] */
    struct at_dist_tally *tally[AT_DIST_COUNT]; /* [heads] */
    uint64_t *mass;                             /* [h distances], units of 2^-24 */
    uint64_t *zero[AT_DIST_ZERO_COUNT];         /* [h] or [hk] */
    struct at_ledger_row *ledger;               /* [h AT_DIST_STAGES] */
    uint64_t *memory;
};
/* All zero; AT_NO_MEMORY with what was asked for. */
at_status at_dist_layer_init(const struct at_dist_shape *shape, struct at_dist_layer *layer);
void at_dist_layer_release(struct at_dist_layer *layer);
void at_dist_layer_clear(struct at_dist_layer *layer);

/* What counts say of one quantity and head. n counts NaNs too; moments and extremes are of the finite values as they
 * were rounded, NaN when there are none; std is that of the population; headroom = log2(65504 / abs_max). */
struct at_dist_summary {
    uint64_t n, nan, masked, zero, subnormal, overflow, n_empty;
    double mean, std, min, max, abs_max, headroom;
};
void at_dist_summarize(enum at_format bins, const uint64_t *counts, const struct at_dist_tally *tally,
                       struct at_dist_summary *summary);
/* The smallest bin whose cumulated count reaches share * total (numpy's inverted_cdf of the values); -1 if nothing was
 * counted. 0 <= share <= 1. */
int64_t at_dist_quantile(enum at_format bins, const uint64_t *counts, double share);

/* A unit that was counted: one request of one layer. */
struct at_dist_unit_row {
    int64_t layer, request, queries, keys; /* layer: the source's number */
    char hash[24];                         /* of the codes of q, k and v: 16 hex digits */
    /* Which request it is, whatever its values are: 16 hex digits made of the ids of its tokens; "": the source does not
     * say, or the archive is older than 1.7.0. */
    char identity[24];
};

/* ---- writing ---- */

struct at_dist_writer;

/* What a recording is called. `layer`: numbers of the layers, ascending. Texts stay the caller's. */
struct at_dist_head {
    struct at_dist_shape shape;
    const int64_t *layer;
    const char *attention, *source;
    const struct at_run_record *record; /* request and provenance */
    int quick; /* 1: a file for a while, which this program alone reads: deflated less, columns without scales and texts */
};
/* The archive is built in memory, deflated; a layer takes about 30 KB per quantity and head there. */
at_status at_dist_writer_open(const char *path, const struct at_dist_head *head, struct at_dist_writer **writer);
/* The sums of layer i; layers that are never put are all zero. */
at_status at_dist_writer_put(struct at_dist_writer *writer, int64_t i, const struct at_dist_layer *layer);
/* Writes the rest and the file, whole or not at all; frees the writer in any case. units: sorted by (layer, request).
 */
at_status at_dist_writer_save(struct at_dist_writer *writer, const struct at_dist_unit_row *units, int64_t n_units);
void at_dist_writer_abandon(struct at_dist_writer *writer); /* NULL is allowed */

/* ---- reading ---- */

struct at_dist_file;

/* An open archive: everything but the counts, which are read on demand. */
struct at_distributions {
    struct at_dist_shape shape;
    char *attention, *source;
    int64_t *layer;                                 /* [n_layers] */
    struct at_dist_summary *summary[AT_DIST_COUNT]; /* [n_layers heads] */
    uint64_t *mass;                                 /* [n_layers h n_distances] */
    uint64_t *zero[AT_DIST_ZERO_COUNT];             /* [n_layers h] or [n_layers hk] */
    struct at_ledger_row *ledger;                   /* [n_layers h AT_DIST_STAGES] */
    struct at_dist_unit_row *units;                 /* [n_units] */
    int64_t n_units;
    struct at_run_record record; /* request and provenance */
    struct at_dist_file *file;
};
/* 1 when the file is an archive with /distributions: other archives and errors give 0. */
int at_distributions_is(const char *path);
/* AT_USAGE for another content or a claim that the file cannot hold, AT_UNSUPPORTED for a newer major version; unknown
 * columns and groups are ignored. `d` need not be released after a failure. */
at_status at_distributions_open(const char *path, struct at_distributions *d);
void at_distributions_close(struct at_distributions *d);
/* Counts [bins] of one layer (its index) and head. */
at_status at_distributions_counts(const struct at_distributions *d, enum at_dist_what what, int64_t layer, int64_t head,
                                  uint64_t *counts);
/* Coarse counts [groups classes]. */
at_status at_distributions_coarse(const struct at_distributions *d, enum at_dist_what what, int64_t layer, int64_t head,
                                  uint64_t *coarse);
/* Adds all sums of layer i of an open archive to `layer`, whose shape but for n_layers is the same. AT_USAGE when
 * a sum does not fit 64 bits. */
at_status at_distributions_add(const struct at_distributions *d, int64_t i, struct at_dist_layer *layer);

#endif
