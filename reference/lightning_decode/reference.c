/* Lightning attention, decode, in double: right, and wrong on purpose.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdlib.h>

#include "lightning_decode/lightning_decode.h"

/* The product of two numbers of f32 is exact in double, and so is what it is rounded to. */
double at_lightning_product_declared(const struct at_problem *p, double k, double v) {
    const double product = (double)(float)(k * v);
    return at_lightning_own_of(p).outer == AT_LIGHTNING_ROUNDED ? at_round(p->dtype, product) : product;
}

double at_lightning_product(const struct at_problem *p, double k, double v) {
    return at_lightning_own_of(p).outer == AT_LIGHTNING_ROUNDED ? at_lightning_product_declared(p, k, v) : k * v;
}

void at_lightning_head_release(struct at_lightning_head *head) { free(head->q); }

at_status at_lightning_head_init(const struct at_problem *p, struct at_lightning_head *out) {
    const struct at_lightning_own z = at_lightning_own_of(p);
    const int64_t d = p->sizes.d, n = z.steps * (2 * d + z.e) + d * z.e;
    *out = (struct at_lightning_head){ .d = d, .e = z.e, .steps = z.steps };
    out->q = calloc((size_t)n, sizeof *out->q);
    if (!out->q)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a state of %lld by %lld", (long long)d, (long long)z.e);
    out->k = out->q + z.steps * d;
    out->v = out->k + z.steps * d;
    out->state = out->v + z.steps * z.e;
    return AT_OK;
}

static void decode(const struct at_tensor *t, int64_t row, int64_t n, double *out) {
    at_decode_array(t->format, (size_t)n, (const char *)t->data + row * n * (int64_t)at_format_info(t->format)->bytes,
                    out);
}

void at_lightning_load(const struct at_problem *p, int64_t row, enum at_lightning_fault fault,
                       struct at_lightning_head *out) {
    const int64_t h = p->sizes.h, rows = p->sizes.b * h;
    const int64_t head = fault == AT_LIGHTNING_NEXT_HEAD_SLOPE ? (row + 1) % h : row % h;
    const int64_t from = fault == AT_LIGHTNING_NEXT_REQUEST_STATE ? (row + h) % rows : row;
    out->row = row;
    decode(&p->tensors[AT_LIGHTNING_Q], row, out->steps * out->d, out->q);
    decode(&p->tensors[AT_LIGHTNING_K], row, out->steps * out->d, out->k);
    decode(&p->tensors[AT_LIGHTNING_V], row, out->steps * out->e, out->v);
    decode(&p->tensors[AT_LIGHTNING_KV], from, out->d * out->e, out->state);
    out->slope = at_tensor_get(&p->tensors[AT_LIGHTNING_SLOPE], head);
}

static void put(struct at_eval *eval, int tensor, int64_t i, struct at_lightning_bound x) {
    if (eval->value[tensor])
        eval->value[tensor][i] = x.value;
    if (eval->limit[tensor])
        eval->limit[tensor][i] = x.error;
}

/* A column of the state through all steps; `x` has room for it. */
static void column(const struct at_problem *p, const struct at_lightning_declared *declared,
                   const struct at_lightning_head *a, struct at_lightning_bound decay, int64_t j,
                   struct at_lightning_bound *x, struct at_eval *eval) {
    for (int64_t i = 0; i < a->d; i++)
        x[i] = (struct at_lightning_bound){ a->state[i * a->e + j], 0 };
    for (int64_t step = 0; step < a->steps; step++) {
        const double v = a->v[step * a->e + j];
        for (int64_t i = 0; i < a->d; i++)
            x[i] = at_lightning_step(p, declared, decay, x[i], a->k[step * a->d + i], v);
        put(eval, AT_LIGHTNING_O, (a->row * a->steps + step) * a->e + j,
            at_lightning_answer(p, declared, a->q + step * a->d, x));
    }
    for (int64_t i = 0; i < a->d; i++)
        put(eval, AT_LIGHTNING_KV, (a->row * a->d + i) * a->e + j, x[i]);
}

at_status at_lightning_evaluate(const struct at_problem *p, const struct at_numerics *numerics, int64_t row0,
                                int64_t row1, struct at_eval *eval) {
    at_status status = AT_OK;
    struct at_lightning_declared declared, *given = numerics ? &declared : NULL;
    struct at_lightning_head a;
    if (numerics)
        AT_TRY(at_lightning_declare(p, numerics, &declared));
    AT_TRY(at_lightning_head_init(p, &a));
    struct at_lightning_bound *x = calloc((size_t)a.d, sizeof *x);
    if (!x)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for a column of %lld", (long long)a.d);
    for (int64_t row = row0; row < row1; row++) {
        at_lightning_load(p, row, AT_LIGHTNING_RIGHT, &a);
        const struct at_lightning_bound decay = at_lightning_decay(given, a.slope);
        for (int64_t j = 0; j < a.e; j++)
            column(p, given, &a, decay, j, x, eval);
    }
out:
    free(x);
    at_lightning_head_release(&a);
    return status;
}

/* ---- faults ---- */

static double faulty_decay(enum at_lightning_fault fault, double slope) {
    return fault == AT_LIGHTNING_NO_DECAY ? 1 : exp(fault == AT_LIGHTNING_GROWS ? slope : -slope);
}

/* What step adds to element (i, j). */
static double faulty_product(const struct at_problem *p, const struct at_lightning_head *a,
                             enum at_lightning_fault fault, int64_t step, int64_t i, int64_t j) {
    const double *k = a->k + step * a->d, *v = a->v + step * a->e;
    const double product = fault == AT_LIGHTNING_TRANSPOSED ? at_lightning_product(p, k[j % a->d], v[i % a->e])
                                                            : at_lightning_product(p, k[i], v[j]);
    return fault == AT_LIGHTNING_PRODUCT_DECAYED ? product * exp(-a->slope) : product;
}

static void faulty_column(const struct at_problem *p, const struct at_lightning_head *a, enum at_lightning_fault fault,
                          int64_t j, double *x, struct at_eval *eval) {
    const double decay = faulty_decay(fault, a->slope);
    const int lost = fault == AT_LIGHTNING_LAST_COLUMN_LOST && j + 1 == a->e;
    for (int64_t i = 0; i < a->d; i++)
        x[i] = a->state[i * a->e + j];
    for (int64_t step = 0; step < a->steps; step++) {
        double sum = 0;
        for (int64_t i = 0; i < a->d; i++) {
            const double q = a->q[step * a->d + i],
                         old = fault == AT_LIGHTNING_NOT_CARRIED ? a->state[i * a->e + j] : x[i];
            x[i] = decay * old + faulty_product(p, a, fault, step, i, j);
            if (fault != AT_LIGHTNING_LAST_D_UNSEEN || i + 1 < a->d)
                sum += q * (fault == AT_LIGHTNING_OLD_STATE ? old : x[i]);
        }
        sum = lost ? 0 : fault == AT_LIGHTNING_Q_SCALED ? sum / sqrt((double)a->d) : sum;
        put(eval, AT_LIGHTNING_O, (a->row * a->steps + step) * a->e + j, (struct at_lightning_bound){ sum, 0 });
    }
    for (int64_t i = 0; i < a->d; i++) {
        const double stays = at_tensor_get(&p->tensors[AT_LIGHTNING_KV], (a->row * a->d + i) * a->e + j);
        put(eval, AT_LIGHTNING_KV, (a->row * a->d + i) * a->e + j,
            (struct at_lightning_bound){ lost || fault == AT_LIGHTNING_NOT_UPDATED ? stays : x[i], 0 });
    }
}

at_status at_lightning_decoy(const struct at_problem *p, const struct at_numerics *numerics, int decoy, int64_t row0,
                             int64_t row1, struct at_eval *eval) {
    at_status status = AT_OK;
    struct at_lightning_head a;
    (void)numerics;
    AT_TRY(at_lightning_head_init(p, &a));
    double *x = calloc((size_t)a.d, sizeof *x);
    if (!x)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for a column of %lld", (long long)a.d);
    for (int64_t row = row0; row < row1; row++) {
        at_lightning_load(p, row, (enum at_lightning_fault)decoy, &a);
        for (int64_t j = 0; j < a.e; j++)
            faulty_column(p, &a, (enum at_lightning_fault)decoy, j, x, eval);
    }
out:
    free(x);
    at_lightning_head_release(&a);
    return status;
}
