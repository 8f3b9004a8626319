/* A case line parsed and built, and the parts of attention by hand, for tests of data.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_BUILT_CASE_H
#define AT_BUILT_CASE_H

#include "attest/attention.h"
#include "datasets/language/case.h"

struct at_built_case {
    struct at_case_list list;
    struct at_case_data data;
};

/* A line that makes one case; fails the test otherwise, and when the operator does not take the problem. */
struct at_built_case at_build_line(const char *line);
void at_drop_case(struct at_built_case *built);

const struct at_tensor *at_built_tensor(const struct at_built_case *built, const char *name);
double at_built_value(const struct at_built_case *built, const char *name, int64_t i);
/* Channel c of the query of an output row; of key t (which: AT_ATTN_K or AT_ATTN_V) as that row sees it. */
double at_built_q(const struct at_built_case *built, int64_t row, int64_t c);
double at_built_kv(const struct at_built_case *built, int which, struct at_attn_row row, int64_t t, int64_t c);

/* Orders of summation: ascending, descending, odd places first. */
enum at_test_order { AT_TEST_FORWARD, AT_TEST_BACKWARD, AT_TEST_STRIDED };
int64_t at_test_place(enum at_test_order order, int64_t i, int64_t n);
/* <q_row, k_t>, unscaled, every partial sum rounded to `format`. */
double at_built_dot(const struct at_built_case *built, int64_t row, int64_t t, enum at_test_order order,
                    enum at_format format);
/* AsyncT's p of n visible keys from unscaled scores; the pool's divisor as a quotient (form 0), as a stored reciprocal
 * (1) or inside the taps (2), every operation rounded to f32. */
void at_built_gate(const struct at_built_case *built, int64_t head, int64_t n, const double *dots, int form, double *p);

#endif
