/* The products that a study adds up.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/study/accumulate/study_inputs.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "attest/attention.h"
#include "attest/env.h"

const char *at_study_product_name(enum at_study_product product) {
    static const char *const names[] = {
#define X(name, meaning) #name,
        AT_STUDY_PRODUCT_LIST(X)
#undef X
    };
    return names[product];
}

/* ---- the weights ---- */

/* The reference evaluates rows and shows its scores and weights on the way. */
struct tracing {
    struct at_study_input *input;
    double *score_max; /* [rows] */
};

static void trace(void *context, int64_t row, enum at_stage stage, int64_t n, const double *values) {
    const struct tracing *t = context;
    struct at_study_input *input = t->input;
    if (stage == AT_STAGE_score)
        for (int64_t i = 0; i < n; i++)
            if (isfinite(values[i]) && fabs(values[i]) > t->score_max[row])
                t->score_max[row] = fabs(values[i]);
    if (stage == AT_STAGE_p && n > 0)
        memcpy(input->p + row * input->max_keys, values, (size_t)n * sizeof *values);
    if (stage != AT_STAGE_scaled || !input->softmax)
        return;
    double max = -INFINITY, *weight = input->weight + row * input->max_keys;
    for (int64_t i = 0; i < n; i++)
        max = values[i] > max ? values[i] : max;
    max = isfinite(max) ? max : 0;
    for (int64_t i = 0; i < n; i++)
        input->total[row] += weight[i] = exp(values[i] - max);
}

static at_status evaluate(void *context, int64_t begin, int64_t end, int worker) {
    (void)worker;
    struct tracing *t = context;
    const struct at_problem *problem = &t->input->data.problem;
    struct at_eval eval = { .trace = trace, .trace_context = t };
    return problem->op->evaluate(problem, NULL, begin, end, &eval);
}

static at_status weigh(struct at_study_input *input) {
    const size_t rows = (size_t)input->rows, all = rows * (size_t)input->max_keys;
    struct tracing t = { .input = input, .score_max = calloc(rows + 1, sizeof(double)) };
    at_status status = AT_OK;
    input->p = calloc(all + 1, sizeof(double));
    input->weight = input->softmax ? calloc(all + 1, sizeof(double)) : NULL;
    input->total = input->softmax ? calloc(rows + 1, sizeof(double)) : NULL;
    if (!t.score_max || !input->p || (input->softmax && (!input->weight || !input->total)))
        AT_FAIL_OUT(AT_NO_MEMORY, "study: no memory for %zu weights", all);
    AT_TRY_OUT(at_parallel(input->rows, 1, at_threads(), evaluate, &t));
    for (size_t i = 0; i < rows; i++)
        input->score_max = t.score_max[i] > input->score_max ? t.score_max[i] : input->score_max;
out:
    free(t.score_max);
    return status;
}

at_status at_study_input_open(const char *line, struct at_study_input *input) {
    *input = (struct at_study_input){ 0 };
    AT_TRY(at_case_parse(line, "study", "study", &input->cases));
    if (input->cases.n != 1)
        return AT_FAIL(AT_USAGE, "study: \"%s\" makes %lld cases, wanted one", line, (long long)input->cases.n);
    AT_TRY(at_case_build(&input->cases.items[0], &input->data));
    const struct at_problem *problem = &input->data.problem;
    if (problem->dtype != AT_F16)
        return AT_FAIL(AT_USAGE, "study: dtype %s, wanted f16", at_format_info(problem->dtype)->name);
    input->softmax = problem->op->weights == AT_WEIGHTS_SOFTMAX;
    if (problem->op->kind != AT_KIND_ATTENTION || !problem->op->has_trace)
        return AT_FAIL(AT_USAGE, "study: operator %s, wanted an attention", problem->op->name);
    input->rows = at_attn_rows(problem);
    input->max_keys = problem->sizes.max_sk;
    return weigh(input);
}

void at_study_input_release(struct at_study_input *input) {
    free(input->p);
    free(input->weight);
    free(input->total);
    at_case_data_release(&input->data);
    at_case_list_release(&input->cases);
    *input = (struct at_study_input){ 0 };
}

/* ---- sums ---- */

int at_study_has(const struct at_study_input *input, enum at_study_product product) {
    return product != AT_STUDY_pv_unit || input->softmax;
}

static int64_t columns(const struct at_study_input *input, enum at_study_product product) {
    return product == AT_STUDY_qk ? input->max_keys : input->data.problem.sizes.d;
}

int64_t at_study_sum_count(const struct at_study_input *input, enum at_study_product product) {
    return at_study_has(input, product) ? input->rows * columns(input, product) : 0;
}

int64_t at_study_sum_length(const struct at_study_input *input, enum at_study_product product) {
    return product == AT_STUDY_qk ? input->data.problem.sizes.d : input->max_keys;
}

static int64_t common_divisor(int64_t a, int64_t b) { return b ? common_divisor(b, a % b) : a; }

/* i -> a permutation of 0 .. n-1 whose neighbours are 0.618 n apart. */
static int64_t spread(int64_t i, int64_t n) {
    if (n <= 1)
        return 0;
    int64_t step = (int64_t)((double)n * 0.6180339887498949);
    while (step < 1 || common_divisor(step, n) != 1)
        step++;
    return i * step % n; /* n is a count of things in memory: no overflow */
}

void at_study_sum_at(const struct at_study_input *input, enum at_study_product product, int64_t i, double *a, double *b,
                     struct at_study_sum *sum) {
    const struct at_problem *p = &input->data.problem;
    const struct at_tensor *q = &p->tensors[AT_ATTN_Q], *k = &p->tensors[AT_ATTN_K], *v = &p->tensors[AT_ATTN_V];
    const int64_t at = spread(i, at_study_sum_count(input, product)), index = at % input->rows, d = p->sizes.d;
    const struct at_attn_row row = at_attn_row(p, index);
    int64_t column = at / input->rows;
    if (product == AT_STUDY_qk && row.visible > 0)
        column %= row.visible; /* shorter rows are sampled more than once */
    *sum = (struct at_study_sum){ .divisor = 1, .place = { row.request, row.head, row.query, column, -1 } };
    if (row.visible <= 0)
        return;
    if (product == AT_STUDY_qk) {
        const int64_t key = at_attn_kv_index(p, row.request, column, row.kv_head);
        sum->n = d;
        for (int64_t c = 0; c < d; c++) {
            a[c] = at_tensor_get(q, index * d + c);
            b[c] = at_tensor_get(k, key + c);
        }
        return;
    }
    const double *weight = (product == AT_STUDY_pv && input->softmax ? input->weight : input->p);
    sum->n = row.visible;
    sum->divisor = product == AT_STUDY_pv && input->softmax ? input->total[index] : 1;
    for (int64_t t = 0; t < row.visible; t++) {
        a[t] = at_round(AT_F16, weight[index * input->max_keys + t]);
        b[t] = at_tensor_get(v, at_attn_kv_index(p, row.request, t, row.kv_head) + column);
    }
}

double at_study_exact(int64_t n, const double *a, const double *b, double *magnitude) {
    double sum = 0, rest = 0;
    *magnitude = 0;
    for (int64_t i = 0; i < n; i++) {
        const double x = a[i] * b[i], next = sum + x;
        rest += fabs(sum) >= fabs(x) ? (sum - next) + x : (x - next) + sum; /* Neumaier 1974 */
        sum = next;
        *magnitude += fabs(x);
    }
    return isfinite(sum) ? sum + rest : sum;
}

double at_study_to_e4m3(int64_t n, double *values) {
    double largest = 0;
    int exponent, end_exponent;
    for (int64_t i = 0; i < n; i++)
        if (isfinite(values[i]) && fabs(values[i]) > largest)
            largest = fabs(values[i]);
    if (largest == 0)
        return 1;
    const double end = frexp(at_format_info(AT_E4M3)->max, &end_exponent), part = frexp(largest, &exponent);
    const double scale = ldexp(1.0, end_exponent - exponent - (part > end));
    for (int64_t i = 0; i < n; i++)
        if (isfinite(values[i]))
            values[i] = at_round(AT_E4M3, values[i] * scale);
    return scale;
}
