/* Small random attention problems for tests.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/attention_problem.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* splitmix64: any 64-bit state is a good one. */
uint64_t at_test_bits(struct at_test_random *random) {
    uint64_t x = random->state += 0x9e3779b97f4a7c15u;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

double at_test_uniform(struct at_test_random *random) { return (double)(at_test_bits(random) >> 11) * 0x1p-53; }

double at_test_normal(struct at_test_random *random) {
    double radius = sqrt(-2.0 * log(at_test_uniform(random) + 0x1p-54));
    return radius * cos(6.283185307179586 * at_test_uniform(random));
}

int at_test_below(struct at_test_random *random, int n) {
    return n < 1 ? 0 : (int)(at_test_bits(random) % (uint64_t)n);
}

/* Lengths, pages, q, k and v have streams of their own: none changes another. */
static struct at_test_random stream(uint64_t seed, uint64_t i) {
    return (struct at_test_random){ (seed * 8 + i) * 0x2545f4914f6cdd1du };
}

static double drawn(enum at_test_fill fill, struct at_test_random *random) {
    switch (fill) {
    case AT_TEST_SAME_SIGN:
        return fabs(at_test_normal(random));
    case AT_TEST_INTEGERS:
        return (double)(at_test_below(random, 7) - 3);
    case AT_TEST_WIDE:
        return at_test_normal(random) * exp2((double)(at_test_below(random, 17) - 8));
    case AT_TEST_NORMAL:
        break;
    }
    return at_test_normal(random);
}

/* The shape with its zeros replaced, and the lengths of every request. */
struct plan {
    struct at_test_shape shape;
    int *sq, *sk; /* one allocation, at sq */
};

static at_status plan_make(const struct at_test_shape *shape, struct at_test_random *random, struct plan *plan) {
    struct at_test_shape *s = &plan->shape;
    *s = *shape;
    s->h = s->h > 0 ? s->h : 1;
    s->hk = s->hk > 0 ? s->hk : s->h;
    s->d = s->d > 0 ? s->d : 1;
    s->taps = s->taps > 0 ? s->taps : 3;
    s->q_scale = s->q_scale != 0 ? s->q_scale : 1.0;
    s->k_scale = s->k_scale != 0 ? s->k_scale : 1.0;
    s->v_scale = s->v_scale != 0 ? s->v_scale : 1.0;
    if (s->dtype != AT_F32 && s->dtype != AT_F16 && s->dtype != AT_BF16)
        return AT_FAIL(AT_USAGE, "dtype %d is no activation type; want f32, f16 or bf16", (int)s->dtype);
    size_t n = s->b > 0 ? (size_t)s->b : 1;
    plan->sq = calloc(2 * n, sizeof *plan->sq);
    if (!plan->sq)
        return AT_FAIL(AT_NO_MEMORY, "lengths of %zu requests", n);
    plan->sk = plan->sq + n;
    for (int r = 0; r < s->b; r++) {
        plan->sq[r] = s->sq ? s->sq[r] : at_test_below(random, s->max_sq + 1);
        plan->sk[r] = s->sk ? s->sk[r] : at_test_below(random, s->max_sk + 1);
    }
    return AT_OK;
}

static void set_sizes(const struct plan *plan, struct at_sizes *sizes) {
    const struct at_test_shape *s = &plan->shape;
    *sizes = (struct at_sizes){ .b = s->b, .h = s->h, .hk = s->hk, .d = s->d, .page = s->page, .taps = s->taps };
    int64_t pages = 2;
    for (int r = 0; r < s->b; r++) {
        int64_t sq = plan->sq[r], sk = plan->sk[r];
        sizes->tokens += sq;
        sizes->max_sq = sq > sizes->max_sq ? sq : sizes->max_sq;
        sizes->max_sk = sk > sizes->max_sk ? sk : sizes->max_sk;
        sizes->slots += s->page > 0 ? 0 : sk;
        pages += s->page > 0 ? (sk + s->page - 1) / s->page : 0;
    }
    sizes->capacity = sizes->max_sk;
    if (s->page > 0) {
        sizes->slots = pages * s->page;
        sizes->max_pages = (sizes->max_sk + s->page - 1) / s->page + 1;
        sizes->capacity = sizes->max_pages * s->page;
    }
}

static void fill_starts(const struct plan *plan, struct at_problem *problem) {
    int32_t *query_start = problem->tensors[AT_ATTN_QUERY_START].data;
    int32_t *seq_lens = problem->tensors[AT_ATTN_SEQ_LENS].data;
    int32_t *key_start = problem->tensors[AT_ATTN_KEY_START].data;
    for (int r = 0; r <= plan->shape.b; r++) {
        query_start[r] = r ? query_start[r - 1] + plan->sq[r - 1] : 0;
        if (key_start)
            key_start[r] = r ? key_start[r - 1] + plan->sk[r - 1] : 0;
        if (r < plan->shape.b)
            seq_lens[r] = plan->sk[r];
    }
}

/* Pages are dealt from a shuffled pack. */
static at_status fill_block_table(const struct plan *plan, struct at_test_random *random, struct at_problem *problem) {
    int32_t *table = problem->tensors[AT_ATTN_BLOCK_TABLE].data;
    if (!table)
        return AT_OK;
    const struct at_sizes *sizes = &problem->sizes;
    int pages = (int)(sizes->slots / sizes->page), next = 0;
    int32_t *pack = calloc((size_t)pages + 1, sizeof *pack);
    if (!pack)
        return AT_FAIL(AT_NO_MEMORY, "a pack of %d pages", pages);
    for (int i = 0; i < pages; i++) {
        int j = at_test_below(random, i + 1);
        pack[i] = pack[j];
        pack[j] = i;
    }
    for (int64_t r = 0; r < sizes->b; r++)
        for (int64_t c = 0; c < sizes->max_pages; c++)
            table[r * sizes->max_pages + c] = c * sizes->page < plan->sk[r] ? pack[next++] : -1;
    free(pack);
    return AT_OK;
}

static int64_t slot_of(const struct at_problem *problem, int64_t request, int64_t t) {
    int64_t page = problem->sizes.page;
    if (page == 0)
        return at_tensor_i32(&problem->tensors[AT_ATTN_KEY_START], request) + t;
    int64_t cell = request * problem->sizes.max_pages + t / page;
    return at_tensor_i32(&problem->tensors[AT_ATTN_BLOCK_TABLE], cell) * page + t % page;
}

/* Values go to a request's keys in the order of requests and keys, whatever the layout: the same seed gives the same
 * keys contiguous and paged. */
static void fill_keys(const struct plan *plan, int tensor, double scale, struct at_test_random *random,
                      struct at_problem *problem) {
    const struct at_tensor *x = &problem->tensors[tensor];
    for (int64_t i = 0; i < at_tensor_count(x); i++)
        at_store(x->format, x->data, (size_t)i, (double)NAN);
    int64_t width = problem->sizes.hk * problem->sizes.d;
    for (int64_t r = 0; r < problem->sizes.b; r++)
        for (int64_t t = 0; t < plan->sk[r]; t++)
            for (int64_t i = 0; i < width; i++)
                at_store(x->format, x->data, (size_t)(slot_of(problem, r, t) * width + i),
                         scale * drawn(plan->shape.fill, random));
}

static void fill_parameters(struct at_problem *problem) {
    for (int i = 0; i < problem->op->n_tensors; i++) {
        const char *name = problem->op->tensors[i].name;
        if (strcmp(name, "sigma") == 0 || strcmp(name, "gamma") == 0)
            at_test_set_all(problem, name, 1.0);
        if (strcmp(name, "taps") == 0)
            for (int64_t j = 0; j < at_tensor_count(&problem->tensors[i]); j++) {
                double k = (double)problem->sizes.taps;
                at_test_set(problem, name, j, (j % problem->sizes.taps == 0) - 1.0 / k);
            }
    }
}

/* Inputs one after the other in one block; a tensor without elements has no data. */
static at_status place(struct at_test_problem *out) {
    struct at_problem *problem = &out->problem;
    size_t bytes = 64;
    for (int i = 0; i < problem->op->n_tensors; i++)
        if (problem->tensors[i].rank > 0)
            bytes += (size_t)at_tensor_bytes(&problem->tensors[i]) + 16;
    uint8_t *next = out->memory = calloc(1, bytes);
    if (!next)
        return AT_FAIL(AT_NO_MEMORY, "%zu bytes of test tensors", bytes);
    for (int i = 0; i < problem->op->n_tensors; i++) {
        struct at_tensor *x = &problem->tensors[i];
        if (x->rank == 0 || problem->op->tensors[i].role == AT_OUT)
            continue;
        x->data = next;
        next += ((size_t)at_tensor_bytes(x) + 15) / 16 * 16;
    }
    return AT_OK;
}

static at_status fill(const struct plan *plan, uint64_t seed, struct at_test_problem *out) {
    struct at_problem *problem = &out->problem;
    const struct at_test_shape *s = &plan->shape;
    problem->dtype = s->dtype;
    problem->params = at_params_default();
    problem->params.scale = (float)(1.0 / sqrt((double)s->d));
    problem->params.causal = s->causal;
    set_sizes(plan, &problem->sizes);
    at_problem_shape(problem);
    AT_TRY(place(out));
    fill_starts(plan, problem);
    struct at_test_random random = stream(seed, 1);
    AT_TRY(fill_block_table(plan, &random, problem));
    random = stream(seed, 2);
    const struct at_tensor *q = &problem->tensors[AT_ATTN_Q];
    for (int64_t i = 0; i < at_tensor_count(q); i++)
        at_store(q->format, q->data, (size_t)i, s->q_scale * drawn(s->fill, &random));
    random = stream(seed, 3);
    fill_keys(plan, AT_ATTN_K, s->k_scale, &random, problem);
    random = stream(seed, 4);
    fill_keys(plan, AT_ATTN_V, s->v_scale, &random, problem);
    fill_parameters(problem);
    return AT_OK;
}

at_status at_test_attention_problem(const struct at_op *op, const struct at_test_shape *shape, uint64_t seed,
                                    struct at_test_problem *out) {
    struct at_test_random random = stream(seed, 0);
    struct plan plan = { 0 };
    memset(out, 0, sizeof *out);
    out->problem.op = op;
    at_status status = plan_make(shape, &random, &plan);
    if (status == AT_OK)
        status = fill(&plan, seed, out);
    free(plan.sq);
    if (status != AT_OK)
        at_test_problem_release(out);
    return status;
}

void at_test_problem_release(struct at_test_problem *problem) {
    free(problem->memory);
    memset(problem, 0, sizeof *problem);
}

static const struct at_tensor *named(const struct at_problem *problem, const char *name, int64_t i) {
    int index = at_op_tensor_index(problem->op, name);
    if (index < 0 || i < 0 || i >= at_tensor_count(&problem->tensors[index])) {
        fprintf(stderr, "test asks for %s[%lld] of %s\n", name, (long long)i, problem->op->name);
        abort();
    }
    return &problem->tensors[index];
}

double at_test_get(const struct at_problem *problem, const char *name, int64_t i) {
    return at_tensor_get(named(problem, name, i), i);
}

void at_test_set(struct at_problem *problem, const char *name, int64_t i, double value) {
    const struct at_tensor *x = named(problem, name, i);
    if (x->format == AT_I32)
        ((int32_t *)x->data)[i] = (int32_t)value;
    else
        at_store(x->format, x->data, (size_t)i, value);
}

void at_test_set_all(struct at_problem *problem, const char *name, double value) {
    int index = at_op_tensor_index(problem->op, name);
    int64_t n = index < 0 ? 0 : at_tensor_count(&problem->tensors[index]);
    for (int64_t i = 0; i < n; i++)
        at_test_set(problem, name, i, value);
}

int64_t at_test_count(const struct at_problem *problem, int tensor) {
    const struct at_tensor *x = &problem->tensors[tensor];
    return x->rank == 0 ? 0 : at_tensor_count(x);
}

at_status at_test_eval_init(const struct at_problem *problem, int want_limit, struct at_test_eval *out) {
    memset(out, 0, sizeof *out);
    int64_t n = 0;
    for (int i = 0; i < problem->op->n_tensors; i++)
        if (problem->op->tensors[i].role != AT_IN)
            n += 2 * at_test_count(problem, i);
    double *next = out->memory = malloc((size_t)(n + 1) * sizeof *next);
    if (!next)
        return AT_FAIL(AT_NO_MEMORY, "%lld test results", (long long)n);
    for (int64_t i = 0; i < n; i++)
        next[i] = AT_TEST_UNWRITTEN;
    for (int i = 0; i < problem->op->n_tensors; i++) {
        int64_t count = at_test_count(problem, i);
        if (problem->op->tensors[i].role == AT_IN || count == 0)
            continue;
        out->eval.value[i] = next;
        out->eval.limit[i] = want_limit ? next + count : NULL;
        next += 2 * count;
    }
    return AT_OK;
}

void at_test_eval_release(struct at_test_eval *eval) {
    free(eval->memory);
    memset(eval, 0, sizeof *eval);
}
