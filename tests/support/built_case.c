/* Case lines built for tests, and scores and gates computed in plain sight.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/built_case.h"

#include "tests/at_test.h"

struct at_built_case at_build_line(const char *line) {
    struct at_built_case built = { 0 };
    at_assert_ok(at_case_parse(line, "line", "test", &built.list));
    at_assert_true(built.list.n == 1, "%s makes %lld cases", line, (long long)built.list.n);
    at_assert_ok(at_case_build(&built.list.items[0], &built.data));
    at_assert_ok(built.data.problem.op->check(&built.data.problem));
    return built;
}

void at_drop_case(struct at_built_case *built) {
    at_case_data_release(&built->data);
    at_case_list_release(&built->list);
}

const struct at_tensor *at_built_tensor(const struct at_built_case *built, const char *name) {
    return &built->data.problem.tensors[at_op_tensor_index(built->data.problem.op, name)];
}

double at_built_value(const struct at_built_case *built, const char *name, int64_t i) {
    return at_tensor_get(at_built_tensor(built, name), i);
}

double at_built_q(const struct at_built_case *built, int64_t row, int64_t c) {
    return at_tensor_get(&built->data.problem.tensors[AT_ATTN_Q], row * built->data.problem.sizes.d + c);
}

double at_built_kv(const struct at_built_case *built, int which, struct at_attn_row row, int64_t t, int64_t c) {
    const struct at_problem *problem = &built->data.problem;
    return at_tensor_get(&problem->tensors[which], at_attn_kv_index(problem, row.request, t, row.kv_head) + c);
}

int64_t at_test_place(enum at_test_order order, int64_t i, int64_t n) {
    if (order == AT_TEST_STRIDED) /* odd ones first */
        return i < n / 2 ? 2 * i + 1 : 2 * (i - n / 2);
    return order == AT_TEST_FORWARD ? i : n - 1 - i;
}

double at_built_dot(const struct at_built_case *built, int64_t row, int64_t t, enum at_test_order order,
                    enum at_format format) {
    struct at_attn_row at = at_attn_row(&built->data.problem, row);
    int64_t d = built->data.problem.sizes.d;
    double sum = 0;
    for (int64_t i = 0; i < d; i++) {
        int64_t c = at_test_place(order, i, d);
        sum = at_round(format, sum + at_built_q(built, row, c) * at_built_kv(built, AT_ATTN_K, at, t, c));
    }
    return sum;
}

void at_built_gate(const struct at_built_case *built, int64_t head, int64_t n, const double *dots, int form,
                   double *p) {
    const struct at_params *params = &built->data.problem.params;
    int window = (int)built->data.problem.sizes.taps, pooled = params->fir_form == AT_FIR_POOLED;
    for (int64_t t = 0; t < n; t++) {
        double pool = 0, taps = 0, direct = 0;
        for (int j = 0; j < window && j <= t; j++) {
            double s = at_round(AT_F32, dots[t - j] * (double)params->scale);
            double r = params->relu_pre && s < 0 ? 0 : s;
            direct = j == 0 ? r : direct;
            pool = at_round(AT_F32, pool + r);
            taps = at_round(AT_F32, taps + at_round(AT_F32, at_built_value(built, "taps", head * window + j) * r));
        }
        double divisor = params->edge == AT_EDGE_SHRINK && t + 1 < window ? (double)(t + 1) : (double)window;
        double sigma = at_built_value(built, "sigma", head);
        double mean = form == 1 ? at_round(AT_F32, pool * at_round(AT_F32, 1 / divisor)) : pool / divisor;
        double z = direct - at_round(AT_F32, sigma * at_round(AT_F32, mean));
        if (!pooled || (form == 2 && params->edge == AT_EDGE_ZERO))
            z = taps;
        z = z < 0 ? 0 : z;
        p[t] = z > (double)params->clip_max ? (double)params->clip_max : z;
        p[t] = p[t] < (double)params->clip_min ? (double)params->clip_min : p[t];
    }
}
