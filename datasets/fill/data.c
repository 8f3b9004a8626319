/* The table of the data families, and rows with the case's hot keys in place.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/fill/data.h"

#include <math.h>
#include <stddef.h>
#include <string.h>

#include "datasets/fill/families.h"

enum {
    ALL = AT_DATA_ATTENTION | AT_DATA_NORM | AT_DATA_PRODUCT,
    HOT = AT_DATA_HOT,
    ELEMENTS = AT_DATA_ELEMENTS,
    SMOOTH = AT_DATA_CONTINUOUS
};

/* clang-format off */
static const struct at_data_family families[] = {
    { "exact", "small integers and powers of two: every order of operations gives the same bits", ALL | HOT, 1,
      at_exact_query, at_exact_key, at_exact_value, at_norm_exact,
      at_product_exact_left, at_product_exact_right },
    { "normal", "N(0,1) everywhere", ALL | HOT | ELEMENTS | SMOOTH, 0,
      at_normal_query, at_normal_key, at_normal_value, at_norm_normal,
      at_normal_query, at_normal_key, at_elements_normal },
    { "same_sign", "V in [0.5, 1.5]: sums that only grow stall and swamp", ALL | HOT | SMOOTH, 0,
      at_normal_query, at_normal_key, at_same_sign_value, at_norm_same_sign,
      at_product_same_sign_left, at_product_same_sign_right },
    { "uniform", "variance 1 without tails", ALL | HOT | SMOOTH, 0,
      at_uniform_query, at_uniform_key, at_uniform_value, at_norm_uniform,
      at_uniform_query, at_uniform_key },
    { "heavy_tail", "Student's t of 2 degrees: few values carry the sum", ALL | SMOOTH, 0,
      at_heavy_query, at_heavy_key, at_heavy_value, at_norm_heavy_tail,
      at_heavy_query, at_heavy_key },
    { "outlier_channel", "two channels 16 times the rest: products aligned to the largest lose bits", ALL | SMOOTH, 0,
      at_normal_query, at_outlier_key, at_normal_value, at_norm_outlier_channel,
      at_normal_query, at_outlier_key },
    { "sink", "key 0 attracts every query: saturated gate, one weight near 1", AT_DATA_ATTENTION, 0,
      at_sink_query, at_sink_key, at_sink_value, NULL },
    { "near_65504", "unscaled scores up to 65504 and not beyond: the end of f16", ALL, 0,
      at_near_query, at_near_key, at_normal_value, at_norm_near_65504,
      at_near_query, at_near_key },
    { "overflow", "every fourth unscaled score beyond 65520: an f16 accumulator makes Inf; of 2^x half of the results", ALL | ELEMENTS, 0,
      at_near_query, at_overflow_key, at_normal_value, at_norm_overflow,
      at_near_query, at_overflow_key, at_elements_overflow },
    { "cancel", "large terms that cancel: small results with the error of large ones", ALL, 0,
      at_cancel_query, at_cancel_key, at_cancel_value, at_norm_cancel,
      at_cancel_query, at_cancel_key },
    { "swamped", "equal weights, V that cancels but for values 13 bits smaller, or is subnormal: orders of sums show, and how a quotient is made", AT_DATA_ATTENTION, 0,
      at_swamped_query, at_swamped_key, at_swamped_value, NULL },
    { "ties", "values half-way between two of the format: rounding to even, not away", ALL, 0,
      at_ties_query, at_ties_key, at_ties_value, at_norm_ties,
      at_product_ties_left, at_product_ties_right },
    { "subnormal", "V, outputs and some scores below the least normal number: flushing shows", ALL | ELEMENTS, 0,
      at_normal_query, at_subnormal_key, at_subnormal_value, at_norm_subnormal,
      at_normal_query, at_subnormal_value, at_elements_subnormal },
    { "all_masked", "AsyncT: every gate closed; softmax: every score below -500", AT_DATA_ATTENTION, 0,
      at_masked_query, at_masked_key, at_normal_value, NULL },
    { "sparse70", "7 keys of 10 have p = 0", AT_DATA_ATTENTION, 0,
      at_sparse_query, at_sparse_key, at_normal_value, NULL },
    { "nonfinite", "NaN and Inf sprinkled in; request 0 is clean when there are several", ALL | ELEMENTS, 0,
      at_nonfinite_query, at_nonfinite_key, at_nonfinite_value, at_norm_nonfinite,
      at_nonfinite_query, at_nonfinite_key, at_elements_nonfinite },
    { "random_bits", "random sign, significand and exponent: sizes over 40 powers of two; of functions any finite code", ALL | ELEMENTS, 0,
      at_bits_query, at_bits_key, at_bits_value, at_norm_random_bits,
      at_bits_query, at_bits_key, at_elements_random_bits },
    { "adversarial", "built to make every rounding go the same way by half an ulp", ALL, 0,
      at_adversarial_query, at_adversarial_key, at_adversarial_value, at_norm_adversarial,
      at_product_adversarial_left, at_product_adversarial_right },
    { "mixed", "each block of rows of a request and head is normal, large, subnormal or cancelling, by lot: cheap paths for usual values show", ALL, 0,
      at_mixed_query, at_mixed_key, at_mixed_value, at_norm_mixed,
      at_mixed_query, at_mixed_key },
    { "stall", "1/16 everywhere: an accumulator with few bits comes to a number that a step no longer raises", AT_DATA_PRODUCT, 0,
      NULL, NULL, NULL, NULL, at_product_stall, at_product_stall },
    { "whole_range", "arguments of 2^x for results of every exponent that f32 has", ELEMENTS, 0,
      NULL, NULL, NULL, NULL, NULL, NULL, at_elements_whole_range },
    { "near_integer", "whole arguments of 2^x and their neighbours", ELEMENTS, 0,
      NULL, NULL, NULL, NULL, NULL, NULL, at_elements_near_integer },
    { "any_bits", "every code that the format has: NaNs with any payload, quiet or not, infinities, both zeros", AT_DATA_COPY, 0,
      NULL, NULL, NULL, NULL, NULL, NULL, NULL, at_codes_any_bits },
    { "level", "one value in a whole row, another in the next: 0, both zeros, -Inf, NaN, Inf, the largest magnitudes", AT_DATA_CHOICE, 0,
      NULL, NULL, NULL, at_norm_level },
    { "peaks", "N(0,1), and the largest at the first place, the last, two places, many, or next to one a bit smaller", AT_DATA_CHOICE, 0,
      NULL, NULL, NULL, at_norm_peaks },
    { "specials", "N(0,1) or -Inf, and among it NaNs, infinities, a finite value alone", AT_DATA_CHOICE, 0,
      NULL, NULL, NULL, at_norm_specials },
};
/* clang-format on */

int at_data_count(void) { return (int)(sizeof families / sizeof *families); }

const struct at_data_family *at_data_at(int i) { return &families[i]; }

const struct at_data_family *at_data_find(const char *name) {
    for (int i = 0; i < at_data_count(); i++)
        if (strcmp(at_data_at(i)->name, name) == 0)
            return at_data_at(i);
    return NULL;
}

/* ---- rows ---- */

/* The sum of the group's queries, long enough that a query meets it with the wanted score: <q_x, sum q> is
 * |q_x|^2 and noise. */
static void hot_key(const struct at_data_family *family, const struct at_data *data, int64_t request, int64_t kv_head,
                    const struct at_hot_target *target, double *row) {
    const int64_t group = data->h / data->hk, d = data->d;
    const double most = at_format_info(data->dtype)->max;
    double query[AT_DATA_MAX_D], squares = 0;
    memset(row, 0, (size_t)d * sizeof *row);
    for (int64_t x = kv_head * group; x < (kv_head + 1) * group; x++) {
        family->query(data, request, target->query, x, query);
        for (int64_t c = 0; c < d; c++) {
            row[c] += query[c];
            squares += query[c] * query[c];
        }
    }
    double length = squares > 0 ? target->score / (data->scale * squares / (double)group) : 0, largest = 0;
    for (int64_t c = 0; c < d; c++)
        largest = fabs(row[c]) > largest ? fabs(row[c]) : largest;
    /* The end of a gate that no score reaches: as near to it as the format has. */
    if (!(fabs(length) * largest <= most))
        length = copysign(most / largest, length);
    for (int64_t c = 0; c < d; c++)
        row[c] *= length;
}

void at_data_query(const struct at_data_family *family, const struct at_data *data, int64_t request, int64_t i,
                   int64_t head, double *row) {
    family->query(data, request, i, head, row);
}

void at_data_key(const struct at_data_family *family, const struct at_data *data, int64_t request, int64_t t,
                 int64_t kv_head, double *row) {
    struct at_hot_target target;
    if (!family->exact && at_hot_find(data, request, t, &target))
        hot_key(family, data, request, kv_head, &target, row);
    else
        family->key(data, request, t, kv_head, row); /* exact data make hot keys of their own kind */
}

void at_data_value(const struct at_data_family *family, const struct at_data *data, int64_t request, int64_t t,
                   int64_t kv_head, double *row) {
    struct at_hot_target target;
    family->value(data, request, t, kv_head, row);
    if (family->exact || !at_hot_find(data, request, t, &target))
        return;
    for (int64_t c = 0; c < data->d; c++)
        row[c] *= target.value;
}
