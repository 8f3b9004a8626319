/* The functions of the data families, by file.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_FAMILIES_H
#define AT_FAMILIES_H

#include "datasets/fill/data_rows.h"

#define AT_FAMILY_ROW(name) void name(const struct at_data *data, int64_t request, int64_t i, int64_t head, double *row)
#define AT_FAMILY_NORM(name) \
    void name(const struct at_data *data, uint64_t stream, enum at_norm_part part, int64_t row, int64_t n, double *out)
#define AT_FAMILY_ELEMENTS(name) void name(const struct at_data *data, int64_t first, int64_t n, double *out)

#define AT_FAMILY_CODES(name) \
    void name(const struct at_data *data, uint64_t stream, enum at_format format, int64_t first, int64_t n, void *codes)

/* distributions.c, distributions_edge.c */
AT_FAMILY_ROW(at_normal_query);
AT_FAMILY_ROW(at_normal_key);
AT_FAMILY_ROW(at_normal_value);
AT_FAMILY_ROW(at_heavy_key);
AT_FAMILY_ROW(at_heavy_query);
AT_FAMILY_ROW(at_heavy_value);
AT_FAMILY_ROW(at_outlier_key);
AT_FAMILY_ROW(at_same_sign_value);
AT_FAMILY_ROW(at_sink_key);
AT_FAMILY_ROW(at_sink_query);
AT_FAMILY_ROW(at_sink_value);
AT_FAMILY_ROW(at_sparse_key);
AT_FAMILY_ROW(at_sparse_query);
AT_FAMILY_ROW(at_uniform_key);
AT_FAMILY_ROW(at_uniform_query);
AT_FAMILY_ROW(at_uniform_value);
AT_FAMILY_ROW(at_near_query);
AT_FAMILY_ROW(at_near_key);
AT_FAMILY_ROW(at_overflow_key);
AT_FAMILY_ROW(at_cancel_query);
AT_FAMILY_ROW(at_cancel_key);
AT_FAMILY_ROW(at_cancel_value);
AT_FAMILY_ROW(at_swamped_query);
AT_FAMILY_ROW(at_swamped_key);
AT_FAMILY_ROW(at_swamped_value);
AT_FAMILY_ROW(at_subnormal_key);
AT_FAMILY_ROW(at_subnormal_value);
AT_FAMILY_ROW(at_masked_query);
AT_FAMILY_ROW(at_masked_key);
AT_FAMILY_ROW(at_nonfinite_query);
AT_FAMILY_ROW(at_nonfinite_key);
AT_FAMILY_ROW(at_nonfinite_value);
AT_FAMILY_ROW(at_bits_query);
AT_FAMILY_ROW(at_bits_key);
AT_FAMILY_ROW(at_bits_value);
AT_FAMILY_ROW(at_adversarial_query);
AT_FAMILY_ROW(at_adversarial_key);
AT_FAMILY_ROW(at_adversarial_value);

/* exact.c */
AT_FAMILY_ROW(at_exact_query);
AT_FAMILY_ROW(at_exact_key);
AT_FAMILY_ROW(at_exact_value);
AT_FAMILY_ROW(at_ties_query);
AT_FAMILY_ROW(at_ties_key);
AT_FAMILY_ROW(at_ties_value);

/* product_data.c */
AT_FAMILY_ROW(at_product_exact_left);
AT_FAMILY_ROW(at_product_exact_right);
AT_FAMILY_ROW(at_product_same_sign_left);
AT_FAMILY_ROW(at_product_same_sign_right);
AT_FAMILY_ROW(at_product_ties_left);
AT_FAMILY_ROW(at_product_ties_right);
AT_FAMILY_ROW(at_product_adversarial_left);
AT_FAMILY_ROW(at_product_adversarial_right);
AT_FAMILY_ROW(at_product_stall);

/* mixed_data.c */
AT_FAMILY_ROW(at_mixed_query);
AT_FAMILY_ROW(at_mixed_key);
AT_FAMILY_ROW(at_mixed_value);
AT_FAMILY_NORM(at_norm_mixed);

/* norm_data.c */
AT_FAMILY_NORM(at_norm_exact);
AT_FAMILY_NORM(at_norm_normal);
AT_FAMILY_NORM(at_norm_same_sign);
AT_FAMILY_NORM(at_norm_uniform);
AT_FAMILY_NORM(at_norm_heavy_tail);
AT_FAMILY_NORM(at_norm_outlier_channel);
AT_FAMILY_NORM(at_norm_near_65504);
AT_FAMILY_NORM(at_norm_overflow);
AT_FAMILY_NORM(at_norm_cancel);
AT_FAMILY_NORM(at_norm_ties);
AT_FAMILY_NORM(at_norm_subnormal);
AT_FAMILY_NORM(at_norm_nonfinite);
AT_FAMILY_NORM(at_norm_random_bits);
AT_FAMILY_NORM(at_norm_adversarial);

/* element_data.c */
AT_FAMILY_ELEMENTS(at_elements_normal);
AT_FAMILY_ELEMENTS(at_elements_whole_range);
AT_FAMILY_ELEMENTS(at_elements_near_integer);
AT_FAMILY_ELEMENTS(at_elements_subnormal);
AT_FAMILY_ELEMENTS(at_elements_overflow);
AT_FAMILY_ELEMENTS(at_elements_nonfinite);
AT_FAMILY_ELEMENTS(at_elements_random_bits);

/* The sign, +1 or -1, of channel c of the direction that a request's queries of one kv head share. */
double at_direction(const struct at_data *data, int64_t request, int64_t kv_head, int64_t c);
/* row[c] = along * direction + noise * N(0,1) of the named sequence. */
void at_along(const struct at_data *data, const char *name, uint64_t row_number, int64_t request, int64_t kv_head,
              double along, double noise, double *row);
/* A value with random sign and significand, log-uniform size, finite in every activation format. */
double at_random_value(const struct at_data *data, const struct at_random *random, uint64_t i);
/* The smallest normal number of the activation type's range. */
double at_least_normal(const struct at_data *data);
/* NaN, +inf or -inf by i. */
double at_nonfinite(uint64_t i);

/* choice_data.c */
AT_FAMILY_NORM(at_norm_level);
AT_FAMILY_NORM(at_norm_peaks);
AT_FAMILY_NORM(at_norm_specials);

/* copy_data.c */
AT_FAMILY_CODES(at_codes_any_bits);

#endif
