/* The contents of a problem's parameter tensors: weights, taps, slopes, scales, biases.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/language/case_build.h"

#include <math.h>

#include "attest/alibi.h"

struct at_tensor *at_fill_tensor(const struct at_build *build, enum at_fill fill) {
    const int i = at_op_filled_index(build->problem->op, fill);
    return i >= 0 && build->problem->tensors[i].data ? &build->problem->tensors[i] : NULL;
}

/* One value for all heads or one each. */
static void fill_heads(struct at_tensor *tensor, const struct at_float_list *list) {
    for (int64_t i = 0; tensor && i < at_tensor_count(tensor); i++)
        ((float *)tensor->data)[i] = list->value[i % list->n];
}

/* Given taps, or those of the pooled form rounded to f32: 1 - sigma/K, then -sigma/K. */
static void fill_taps(const struct at_build *build, struct at_tensor *tensor) {
    const struct at_case_keys *keys = build->c->keys;
    const int64_t k = build->problem->sizes.taps;
    for (int64_t i = 0; tensor && i < at_tensor_count(tensor); i++) {
        double share = (double)keys->sigma.value[i / k % keys->sigma.n] / (double)k;
        ((float *)tensor->data)[i] = keys->taps.n ? keys->taps.value[i % k] : (float)((i % k == 0) - share);
    }
}

enum { BIAS = 8 }; /* about as large as elements of a product mostly are */

/* Weights of channels. Slopes in [0.5, 2] let some channels clamp and others not, factors are near 1 with both signs now
 * and then, shifts small. Exact data: powers of two and quarters. */
static void fill_weights(const struct at_build *build, const struct at_tensor_spec *spec, struct at_tensor *tensor) {
    const struct at_random random = { (uint64_t)build->c->keys->seed, at_random_stream(spec->name, 1) };
    const int exact = build->c->keys->data && build->c->keys->data->exact;
    const int slope = spec->fill == AT_FILL_SLOPE || spec->fill == AT_FILL_DECAY, shift = spec->fill == AT_FILL_SHIFT;
    for (int64_t i = 0; i < at_tensor_count(tensor); i++) {
        double u = at_random_uniform(&random, (uint64_t)i), value;
        if (spec->fill == AT_FILL_BIAS)
            value = exact ? floor(u * (2 * BIAS + 1)) - BIAS : (2 * u - 1) * BIAS;
        else if (exact)
            value = shift ? floor(u * 3) * 0.25 - 0.25 : ldexp(u > 0.75 && !slope ? -1 : 1, (int)(u * 30) % 3 - 1);
        else
            value = slope ? 0.5 + 1.5 * u : shift ? 0.2 * u - 0.1 : (u > 0.9 ? -1 : 1) * (0.75 + 0.5 * u);
        at_store(tensor->format, tensor->data, (size_t)i, value);
    }
}

/* Slopes of decays. A decay is a number without rounding at 0 alone. */
static void fill_decay(const struct at_build *build) {
    const struct at_case_keys *keys = build->c->keys;
    const struct at_float_list zero = { 1, { 0 } };
    const int i = at_op_filled_index(build->problem->op, AT_FILL_DECAY);
    struct at_tensor *tensor = at_fill_tensor(build, AT_FILL_DECAY);
    if (keys->slope.n)
        fill_heads(tensor, &keys->slope);
    else if (keys->data && keys->data->exact)
        fill_heads(tensor, &zero);
    else if (tensor)
        fill_weights(build, &build->problem->op->tensors[i], tensor);
}

/* ALiBi's slopes, rounded to f32 after the factor. */
static void fill_alibi(const struct at_problem *p, struct at_tensor *tensor) {
    const double factor = tensor ? at_scalar_get(p, at_op_scalar(p->op, "alibi")) : 0;
    for (int64_t i = 0; tensor && i < at_tensor_count(tensor); i++)
        ((float *)tensor->data)[i] = (float)(factor * at_alibi_slope(p->sizes.h, i));
}

void at_fill_parameters(const struct at_build *build) {
    const struct at_op *op = build->problem->op;
    fill_heads(at_fill_tensor(build, AT_FILL_SIGMA), &build->c->keys->sigma);
    fill_heads(at_fill_tensor(build, AT_FILL_GAMMA), &build->c->keys->gamma);
    fill_taps(build, at_fill_tensor(build, AT_FILL_TAPS));
    fill_decay(build);
    fill_alibi(build->problem, at_fill_tensor(build, AT_FILL_ALIBI));
    for (int i = 0; i < op->n_tensors; i++) {
        struct at_tensor *tensor = &build->problem->tensors[i];
        const enum at_fill fill = op->tensors[i].fill;
        if (tensor->data && ((fill >= AT_FILL_SLOPE && fill <= AT_FILL_SHIFT) || fill == AT_FILL_BIAS))
            fill_weights(build, &op->tensors[i], tensor);
        if (tensor->data && fill == AT_FILL_PARAMETER)
            at_store(tensor->format, tensor->data, 0,
                     at_scalar_get(build->problem, at_op_scalar(op, op->tensors[i].name)));
    }
}
