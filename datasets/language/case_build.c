/* A case becomes a problem: sizes, parameters, memory, then every input tensor.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/language/case_build.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "attest/buffer.h"
#include "datasets/fill/exact.h"

enum { ALIGN = 256 };

static int64_t aligned(int64_t bytes) { return (bytes + ALIGN - 1) / ALIGN * ALIGN; }

/* Sizes from the file: prefill takes every token as a query, decode each request's last (none of an empty one). */
static at_status recorded_sizes(struct at_build *build, struct at_sizes *sizes) {
    const struct at_recorded *recorded = &build->recorded;
    const struct at_case_keys *keys = build->c->keys;
    int64_t *lengths = malloc(2 * (size_t)recorded->b * sizeof *lengths);
    if (!lengths)
        return AT_FAIL(AT_NO_MEMORY, "lengths of %lld requests", (long long)recorded->b);
    for (int64_t r = 0; r < recorded->b; r++) {
        lengths[r] = lengths[recorded->b + r] = recorded->start[r + 1] - recorded->start[r];
        if (build->c->family->decode && lengths[r] > 1)
            lengths[r] = 1;
    }
    *sizes = (struct at_sizes){ .b = recorded->b, .h = recorded->h, .hk = recorded->hk, .page = keys->page };
    sizes->d = keys->pad_d ? keys->pad_d : recorded->d;
    sizes->taps = at_op_filled_index(build->c->op, AT_FILL_TAPS) >= 0 ? keys->window : 0;
    at_case_lengths(sizes, build->c, lengths, lengths + recorded->b);
    free(lengths);
    return AT_OK;
}

static int is_product(const struct at_build *build) { return build->c->op->kind == AT_KIND_PRODUCT; }

/* A product is one request: rows of its first factor are queries, those of its second keys. */
static int64_t requests_of(const struct at_build *build) { return is_product(build) ? 1 : build->problem->sizes.b; }

/* Length of a dimension of the tensor that is filled so. */
static int64_t length_of(const struct at_build *build, enum at_fill fill, int dimension) {
    const struct at_op *op = build->c->op;
    const int i = at_op_filled_index(op, fill);
    return i < 0 ? 0 : at_dim_size(build->problem, op->tensors[i].dims[dimension]);
}

static int64_t queries_of(const struct at_build *build, int64_t r) {
    const struct at_recorded *recorded = &build->recorded;
    if (is_product(build))
        return length_of(build, AT_FILL_LEFT, 0);
    if (!recorded->reader)
        return at_case_sq(build->c, r);
    int64_t length = recorded->start[r + 1] - recorded->start[r];
    return build->c->family->decode && length > 1 ? 1 : length;
}

static int64_t keys_of(const struct at_build *build, int64_t r) {
    const struct at_recorded *recorded = &build->recorded;
    if (is_product(build))
        return length_of(build, AT_FILL_RIGHT, 0) + length_of(build, AT_FILL_RIGHT_COLUMNS, 1);
    return recorded->reader ? recorded->start[r + 1] - recorded->start[r] : at_case_sk(build->c, r);
}

static at_status fill_starts(struct at_build *build) {
    const int64_t b = requests_of(build);
    build->query_start = calloc(2 * ((size_t)b + 1), sizeof *build->query_start);
    if (!build->query_start)
        return AT_FAIL(AT_NO_MEMORY, "starts of %lld requests", (long long)b);
    build->key_start = build->query_start + b + 1;
    for (int64_t r = 0; r < b; r++) {
        build->query_start[r + 1] = build->query_start[r] + queries_of(build, r);
        build->key_start[r + 1] = build->key_start[r] + keys_of(build, r);
    }
    return AT_OK;
}

static int is_asynct(const struct at_build *build) { return build->c->op->weights == AT_WEIGHTS_GATE; }

static void set_parameters(const struct at_build *build) {
    const struct at_case_keys *keys = build->c->keys;
    struct at_params *params = &build->problem->params;
    if (build->c->op->kind == AT_KIND_ATTENTION)
        params->scale = keys->scale.n ? keys->scale.value[0]
                                      : (float)at_auto_scale(keys->data, is_asynct(build), keys->dtype, build->d_valid);
    if (is_product(build))
        params->scale = keys->scale.n ? keys->scale.value[0] : 1.0f;
    params->causal = (int32_t)keys->causal;
    params->relu_pre = (int32_t)keys->relu_pre;
    params->edge = (int32_t)keys->edge;
    params->fir_form = keys->taps.n ? AT_FIR_TAPS : AT_FIR_POOLED;
    params->clip_min = keys->clip.value[0];
    params->clip_max = keys->clip.value[1];
    params->lo = keys->lo.value[0];
    params->hi = keys->hi.value[0];
    params->eps = keys->eps.value[0];
    params->from = (int32_t)keys->from;
}

/* Most of it may never be touched (datasets/fill/pool.h): address space without memory set aside for it. */
static int is_large(const struct at_case_data *data) { return data->bytes > (int64_t)1 << 30; }

/* One block for all inputs; an absent or empty tensor keeps no data. */
static int is_placed(const struct at_op *op, unsigned given, int i) {
    return op->tensors[i].role != AT_OUT && !(given >> i & 1);
}

static at_status place_tensors(const struct at_build *build, unsigned given, struct at_case_data *data) {
    struct at_problem *problem = build->problem;
    const struct at_op *op = problem->op;
    int64_t need = at_case_need(problem), limit, total = 0;
    AT_TRY(at_case_memory_limit(&limit));
    if (need > limit)
        return AT_FAIL(AT_NO_MEMORY, "%s: its tensors need %lld bytes, wanted at most %lld (AT_MEMORY_LIMIT)",
                       build->c->where, (long long)need, (long long)limit);
    for (int i = 0; i < op->n_tensors; i++)
        total += is_placed(op, given, i) ? aligned(at_tensor_bytes(&problem->tensors[i])) : 0;
    data->bytes = total > 0 ? total : ALIGN;
    data->memory = is_large(data) ? mmap(NULL, (size_t)data->bytes, PROT_READ | PROT_WRITE,
                                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
                                  : aligned_alloc(ALIGN, (size_t)data->bytes);
    if (data->memory == MAP_FAILED)
        data->memory = NULL;
    if (!data->memory)
        return AT_FAIL(AT_NO_MEMORY, "%s: %lld bytes of inputs", build->c->where, (long long)data->bytes);
    if (build->clear && !is_large(data)) /* pages of a large one are zeros */
        memset(data->memory, 0, (size_t)data->bytes);
    char *next = data->memory;
    for (int i = 0; i < op->n_tensors; i++) {
        struct at_tensor *tensor = &problem->tensors[i];
        int64_t bytes = at_tensor_bytes(tensor);
        if (!is_placed(op, given, i) || bytes == 0)
            continue;
        tensor->data = next;
        next += aligned(bytes);
    }
    return AT_OK;
}

/* Of the first output. */
static enum at_format output_format(const struct at_problem *problem) {
    int i = 0;
    while (i + 1 < problem->op->n_tensors && problem->op->tensors[i].role == AT_IN)
        i++;
    return problem->tensors[i].format;
}

/* What the families see. The parameter tensors are filled before, because hot keys look at the taps. */
static void describe(struct at_build *build) {
    const struct at_problem *problem = build->problem;
    const struct at_case_keys *keys = build->c->keys;
    const struct at_op *op = problem->op;
    const int taps = at_op_filled_index(op, AT_FILL_TAPS), sigma = at_op_filled_index(op, AT_FILL_SIGMA);
    build->data = (struct at_data){
        .seed = (uint64_t)keys->seed,
        .dtype = problem->dtype,
        .asynct = is_asynct(build),
        .causal = problem->params.causal,
        .edge = problem->params.edge,
        .pooled = problem->params.fir_form == AT_FIR_POOLED,
        .b = problem->sizes.b,
        .h = problem->sizes.h,
        .hk = problem->sizes.hk,
        .d = build->d_valid,
        .scale = (double)problem->params.scale,
        .window = (int)problem->sizes.taps,
        .taps = taps < 0 ? NULL : problem->tensors[taps].data,
        .sigma = sigma < 0 ? NULL : problem->tensors[sigma].data,
        .clip_min = (double)problem->params.clip_min,
        .clip_max = (double)problem->params.clip_max,
        .hot = keys->hot,
        .query_start = build->query_start,
        .key_start = build->key_start,
        .rms = op->takes_mean_square,
        .has_res = at_op_filled_index(op, AT_FILL_RESIDUAL) >= 0,
    };
    if (is_product(build)) {
        build->data.b = build->data.h = build->data.hk = 1;
        build->data.d = length_of(build, AT_FILL_LEFT, 1);
        build->data.out = output_format(problem);
    }
}

static at_status build_sizes(struct at_build *build, struct at_case_data *data) {
    const struct at_case *c = build->c;
    struct at_problem *problem = build->problem;
    *problem = c->keys->own;
    if (c->keys->dataset[0]) {
        AT_TRY(at_recorded_open(c, &build->recorded));
        AT_TRY(recorded_sizes(build, &problem->sizes));
        at_case_complete(c, problem);
        build->d_valid = build->recorded.d;
    } else {
        build->d_valid = problem->sizes.d ? c->keys->d : 0;
    }
    data->d_valid = build->d_valid;
    if (problem->sizes.slots > INT32_MAX || problem->sizes.tokens > INT32_MAX)
        return AT_FAIL(AT_USAGE, "%s: found %lld key slots, wanted at most %d: indices are i32", c->where,
                       (long long)problem->sizes.slots, INT32_MAX);
    return AT_OK;
}

/* Everything up to the activations. */
static at_status build_outline(struct at_build *build, unsigned given, struct at_case_data *data) {
    AT_TRY(build_sizes(build, data));
    AT_TRY(fill_starts(build));
    set_parameters(build);
    at_problem_shape(build->problem);
    AT_TRY(place_tensors(build, given, data));
    at_fill_indices(build);
    at_fill_parameters(build);
    return AT_OK;
}

at_status at_case_build(const struct at_case *c, struct at_case_data *data) { return at_case_build_around(c, 0, data); }

at_status at_case_outline(const struct at_case *c, struct at_case_data *data) {
    at_status status = AT_OK;
    *data = (struct at_case_data){ 0 };
    struct at_build build = { .c = c, .problem = &data->problem };
    build.clear = 1;
    AT_TRY_OUT(build_outline(&build, 0, data));
out:
    at_recorded_release(&build.recorded);
    free(build.query_start);
    if (status != AT_OK)
        at_case_data_release(data);
    return status;
}

at_status at_case_build_around(const struct at_case *c, unsigned given, struct at_case_data *data) {
    at_status status = AT_OK;
    *data = (struct at_case_data){ 0 };
    struct at_build build = { .c = c, .problem = &data->problem };
    AT_TRY_OUT(build_outline(&build, given, data));
    describe(&build);
    AT_TRY_OUT(at_fill_activations(&build));
out:
    at_recorded_release(&build.recorded);
    free(build.query_start);
    if (status != AT_OK)
        at_case_data_release(data);
    return status;
}

void at_case_data_release(struct at_case_data *data) {
    if (is_large(data) && data->memory)
        munmap(data->memory, (size_t)data->bytes);
    else
        free(data->memory);
    *data = (struct at_case_data){ 0 };
}

int at_case_is_drawn(const struct at_case *c) { return c->keys->data != NULL; }

int at_case_is_continuous(const struct at_case *c) {
    return c->keys->data && (c->keys->data->uses & AT_DATA_CONTINUOUS) != 0;
}

at_status at_case_build_again(const struct at_case *c, uint64_t turn, struct at_case_data *data) {
    const uint64_t parts[2] = { c->hash, turn };
    struct at_case_keys keys = *c->keys;
    struct at_case again = *c;
    keys.seed = (int64_t)(at_hash_bytes(parts, sizeof parts, AT_HASH_START) >> 1);
    again.keys = &keys;
    return at_case_build(&again, data);
}
