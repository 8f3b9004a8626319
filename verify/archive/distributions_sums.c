/* Names, bins, sums and summaries of score distributions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/archive/distributions.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */

static const struct {
    const char *name, *meaning;
    int kv, row;
} quantities[AT_DIST_COUNT] = {
#define X(name, kv, row, meaning) { #name, meaning, kv, row },
    AT_DIST_LIST(X)
#undef X
};

static const struct {
    const char *name, *meaning;
    int kv;
} zeros[AT_DIST_ZERO_COUNT] = {
#define X(name, kv, meaning) { #name, meaning, kv },
    AT_DIST_ZERO_LIST(X)
#undef X
};

const char *at_dist_name(enum at_dist_what what) { return quantities[what].name; }
const char *at_dist_meaning(enum at_dist_what what) { return quantities[what].meaning; }
int at_dist_is_kv(enum at_dist_what what) { return quantities[what].kv; }
int at_dist_is_row(enum at_dist_what what) { return quantities[what].row; }
const char *at_dist_zero_name(enum at_dist_zero zero) { return zeros[zero].name; }
const char *at_dist_zero_meaning(enum at_dist_zero zero) { return zeros[zero].meaning; }
int at_dist_zero_is_kv(enum at_dist_zero zero) { return zeros[zero].kv; }

enum at_dist_what at_dist_find(const char *name) {
    int w = 0;
    while (w < AT_DIST_COUNT && strcmp(quantities[w].name, name) != 0)
        w++;
    return (enum at_dist_what)w;
}

enum at_stage at_dist_stage(int i) {
    static const enum at_stage stages[AT_DIST_STAGES] = { AT_STAGE_score, AT_STAGE_scaled, AT_STAGE_gate_in, AT_STAGE_p,
                                                          AT_STAGE_out };
    return stages[i];
}

int at_dist_has(const struct at_dist_shape *shape, enum at_dist_what what) { return shape->what >> what & 1; }

int64_t at_dist_heads(const struct at_dist_shape *shape, enum at_dist_what what) {
    return at_dist_is_kv(what) ? shape->hk : shape->h;
}

int64_t at_dist_zero_heads(const struct at_dist_shape *shape, enum at_dist_zero zero) {
    return at_dist_zero_is_kv(zero) ? shape->hk : shape->h;
}

/* ---- bins ---- */

/* Code of +inf: also the number of codes below it of either sign. */
static int64_t infinity_of(enum at_format bins) { return bins == AT_F16 ? 0x7c00 : 0x7f80; }

int64_t at_dist_bins(enum at_format bins) { return 2 * infinity_of(bins) + 2; }

int64_t at_dist_bin_of(enum at_format bins, uint16_t code) {
    return code & 0x8000 ? infinity_of(bins) - (code & 0x7fff) : infinity_of(bins) + 1 + code;
}

uint16_t at_dist_code_of(enum at_format bins, int64_t bin) {
    const int64_t top = infinity_of(bins);
    return (uint16_t)(bin <= top ? 0x8000 | (top - bin) : bin - top - 1);
}

double at_dist_value_of(enum at_format bins, int64_t bin) { return at_decode(bins, at_dist_code_of(bins, bin)); }

/* The ascending code of bin 0; those of NaNs lie below it and beyond the last bin. */
static int64_t ascending_from(enum at_format bins) { return 0x7fff - infinity_of(bins); }

int64_t at_dist_class_of(enum at_format bins, int64_t bin) {
    return ((ascending_from(bins) + bin) >> 8) - (ascending_from(bins) >> 8);
}

int64_t at_dist_classes(enum at_format bins) { return at_dist_class_of(bins, at_dist_bins(bins) - 1) + 1; }

int64_t at_dist_class_first(enum at_format bins, int64_t coarse) {
    const int64_t first = ((coarse + (ascending_from(bins) >> 8)) << 8) - ascending_from(bins);
    return first > 0 ? first : 0;
}

int64_t at_dist_distance_of(int64_t distance) {
    int64_t bin = 0;
    for (; distance > 0; distance >>= 1)
        bin++;
    return bin;
}

int64_t at_dist_distance_edge(int64_t bin) { return bin == 0 ? 0 : (int64_t)1 << (bin - 1); }

int64_t at_dist_distances(int64_t longest) { return at_dist_distance_of(longest) + 1; }

/* ---- a layer's sums ---- */

static int64_t tally_words(void) { return (int64_t)(sizeof(struct at_dist_tally) / sizeof(uint64_t)); }

static int64_t ledger_words(void) {
    return (int64_t)((sizeof(struct at_ledger_row) + sizeof(uint64_t) - 1) / sizeof(uint64_t));
}

/* Places every array in `base`, or only counts with base NULL; gives the number of words. */
static int64_t place(struct at_dist_layer *layer, uint64_t *base) {
    const struct at_dist_shape *s = &layer->shape;
    const int64_t bins = at_dist_bins(s->bins), coarse = s->n_groups * at_dist_classes(s->bins);
    int64_t used = 0;
    for (int w = 0; w < AT_DIST_COUNT; w++) {
        const int64_t heads = at_dist_heads(s, (enum at_dist_what)w);
        if (!at_dist_has(s, (enum at_dist_what)w))
            continue;
        if (base) {
            layer->counts[w] = base + used;
            layer->coarse[w] = layer->counts[w] + heads * bins;
            layer->tally[w] = (struct at_dist_tally *)(layer->coarse[w] + heads * coarse);
        }
        used += heads * (bins + coarse + tally_words());
    }
    if (base)
        layer->mass = base + used;
    used += s->h * s->n_distances;
    for (int z = 0; z < AT_DIST_ZERO_COUNT; z++) {
        if (base)
            layer->zero[z] = base + used;
        used += at_dist_zero_heads(s, (enum at_dist_zero)z);
    }
    if (base)
        layer->ledger = (struct at_ledger_row *)(base + used);
    return used + s->h * AT_DIST_STAGES * ledger_words();
}

at_status at_dist_layer_init(const struct at_dist_shape *shape, struct at_dist_layer *layer) {
    *layer = (struct at_dist_layer){ .shape = *shape };
    const int64_t words = place(layer, NULL);
    layer->memory = calloc((size_t)words, sizeof *layer->memory);
    if (!layer->memory)
        return AT_FAIL(AT_NO_MEMORY, "no memory for the counts of a layer: %lld MiB for %lld and %lld heads",
                       (long long)(words >> 17), (long long)shape->h, (long long)shape->hk);
    place(layer, layer->memory);
    return AT_OK;
}

void at_dist_layer_release(struct at_dist_layer *layer) {
    free(layer->memory);
    *layer = (struct at_dist_layer){ 0 };
}

/* Only what is not 0 is written: most classes of most heads are never counted in, and memory that was never written takes
 * no room. */
void at_dist_layer_clear(struct at_dist_layer *layer) {
    enum { BLOCK = 512 };
    const int64_t words = place(layer, NULL);
    for (int64_t i = 0; i < words; i += BLOCK) {
        const int64_t n = words - i < BLOCK ? words - i : BLOCK;
        uint64_t any = 0;
        for (int64_t k = 0; k < n; k++)
            any |= layer->memory[i + k];
        if (any)
            memset(layer->memory + i, 0, (size_t)n * sizeof *layer->memory);
    }
}

/* ---- summaries ---- */

/* A sum with the rounding errors of its additions kept beside it, as Neumaier has it. */
struct sum {
    double value, rest;
};

static void add(struct sum *s, double x) {
    const double next = s->value + x;
    s->rest += fabs(s->value) >= fabs(x) ? (s->value - next) + x : (x - next) + s->value;
    s->value = next;
}

static void moments(enum at_format bins, const uint64_t *counts, struct at_dist_summary *s) {
    const int64_t n_bins = at_dist_bins(bins);
    struct sum first = { 0, 0 }, second = { 0, 0 };
    uint64_t finite = 0;
    for (int64_t i = 1; i < n_bins - 1; i++) {
        if (!counts[i])
            continue;
        const double value = at_dist_value_of(bins, i);
        if (!finite)
            s->min = value;
        s->max = value;
        finite += counts[i];
        add(&first, (double)counts[i] * value);
    }
    if (!finite)
        return;
    s->mean = (first.value + first.rest) / (double)finite;
    for (int64_t i = 1; i < n_bins - 1; i++)
        if (counts[i]) {
            const double off = at_dist_value_of(bins, i) - s->mean;
            add(&second, (double)counts[i] * (off * off));
        }
    s->std = sqrt((second.value + second.rest) / (double)finite);
    s->abs_max = fabs(s->min) > fabs(s->max) ? fabs(s->min) : fabs(s->max);
    s->headroom = s->abs_max > 0 ? log2(65504.0 / s->abs_max) : (double)INFINITY;
}

void at_dist_summarize(enum at_format bins, const uint64_t *counts, const struct at_dist_tally *tally,
                       struct at_dist_summary *s) {
    const double none = (double)NAN;
    const int64_t n_bins = at_dist_bins(bins), smallest = bins == AT_F16 ? 0x400 : 0x80; /* normal code */
    const int64_t minus = infinity_of(bins), plus = minus + 1;                           /* bins of the zeros */
    *s = (struct at_dist_summary){ .nan = tally->nan,
                                   .masked = tally->masked,
                                   .overflow = tally->overflow,
                                   .n_empty = tally->n_empty,
                                   .mean = none,
                                   .std = none,
                                   .min = none,
                                   .max = none,
                                   .abs_max = none,
                                   .headroom = none };
    s->n = tally->nan;
    for (int64_t i = 0; i < n_bins; i++)
        s->n += counts[i];
    s->zero = counts[minus] + counts[plus];
    for (int64_t i = 1; i < smallest; i++)
        s->subnormal += counts[minus - i] + counts[plus + i];
    moments(bins, counts, s);
}

/* In double, as numpy has it: 0.1 of 30 is 3, though the double 0.1 is a little more than a tenth. */
static uint64_t rank_of(double share, uint64_t total) {
    const double exact = ceil(share * (double)total);
    const uint64_t rank = exact < (double)total ? (uint64_t)exact : total;
    return rank ? rank : 1;
}

int64_t at_dist_quantile(enum at_format bins, const uint64_t *counts, double share) {
    const int64_t n_bins = at_dist_bins(bins);
    uint64_t total = 0, below = 0;
    for (int64_t i = 0; i < n_bins; i++)
        total += counts[i];
    if (!total)
        return -1;
    const uint64_t rank = rank_of(share, total);
    for (int64_t i = 0; i < n_bins; i++) {
        below += counts[i];
        if (below >= rank)
            return i;
    }
    return n_bins - 1;
}
