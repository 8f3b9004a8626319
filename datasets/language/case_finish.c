/* From the keys of a line to a complete case: defaults, what keys mean together, sizes against memory.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/language/case_finish.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/buffer.h"
#include "datasets/fill/exact.h"
#include "datasets/fill/scenarios.h"
#include "datasets/fill/tc_patterns.h"

/* Keys that a recorded dataset or a scenario answers itself. */
static const char *const dataset_knows[] = { "b", "h", "hk", "sq", "sk", "prefix", "d", "data", "hot", "scenario" };
static const char *const scenario_knows[] = { "b", "sq", "sk", "prefix" };

static at_status check_answered(const struct at_case *c, const char *by, const char *const *names, size_t n) {
    for (size_t i = 0; i < n; i++)
        if (at_key_given(c->keys, names[i]))
            return AT_FAIL(AT_USAGE, "%s: %s: given together with %s, which sets it; wanted one of the two", c->where,
                           names[i], by);
    return AT_OK;
}

static at_status check_pairs(const struct at_case *c) {
    const struct at_case_keys *keys = c->keys;
    if (at_key_given(keys, "b") && keys->b == 0 && c->op->kind != AT_KIND_ROWS)
        return AT_FAIL(AT_USAGE, "%s: b: found '0', wanted a whole number from 1 for %s", c->where, c->op->name);
    if (keys->dataset[0])
        AT_TRY(check_answered(c, "dataset", dataset_knows, sizeof dataset_knows / sizeof *dataset_knows));
    else if (at_key_given(keys, "layer"))
        return AT_FAIL(AT_USAGE, "%s: layer: given without dataset, wanted dataset=NAME beside it", c->where);
    if (keys->scenario)
        AT_TRY(check_answered(c, "scenario", scenario_knows, sizeof scenario_knows / sizeof *scenario_knows));
    else if (at_key_given(keys, "shrink") || at_key_given(keys, "step"))
        return AT_FAIL(AT_USAGE, "%s: %s: given without scenario, wanted scenario=NAME beside it", c->where,
                       at_key_given(keys, "step") ? "step" : "shrink");
    if (at_key_given(keys, "prefix") && at_key_given(keys, "sk"))
        return AT_FAIL(AT_USAGE, "%s: prefix: given together with sk, wanted one of the two (sk = prefix + sq)",
                       c->where);
    if (at_key_given(keys, "taps") && at_key_given(keys, "sigma"))
        return AT_FAIL(AT_USAGE, "%s: taps: given together with sigma, wanted one of the two", c->where);
    if (at_key_given(keys, "taps") && at_key_given(keys, "edge") && keys->edge == AT_EDGE_SHRINK)
        return AT_FAIL(AT_USAGE, "%s: edge: found shrink with taps, wanted sigma: taps have no divisor", c->where);
    if (at_key_given(keys, "taps") && at_key_given(keys, "window") && keys->window != keys->taps.n)
        return AT_FAIL(AT_USAGE, "%s: window: found %lld beside %d taps, wanted the same number", c->where,
                       (long long)keys->window, keys->taps.n);
    return AT_OK;
}

static void default_int(const struct at_case_keys *keys, const char *name, int64_t *field, int64_t value) {
    if (!at_key_given(keys, name))
        *field = value;
}

static void default_float(struct at_float_list *list, float value) {
    if (list->n == 0) {
        list->n = 1;
        list->value[0] = value;
    }
}

static void default_scalars(struct at_case_keys *keys) {
    const struct at_params params = at_params_default();
    default_int(keys, "b", &keys->b, 1);
    default_int(keys, "h", &keys->h, 8);
    default_int(keys, "hk", &keys->hk, keys->h % 2 ? keys->h : keys->h / 2);
    default_int(keys, "d", &keys->d, 128);
    default_int(keys, "tokens", &keys->tokens, 32);
    default_int(keys, "channels", &keys->channels, 1024);
    default_int(keys, "pool", &keys->pool, -1);
    default_int(keys, "shrink", &keys->shrink, 1);
    default_int(keys, "page", &keys->page, keys->scenario ? 16 : 0);
    default_int(keys, "causal", &keys->causal, keys->scenario ? 1 : params.causal);
    default_int(keys, "seed", &keys->seed, 1);
    default_int(keys, "relu_pre", &keys->relu_pre, params.relu_pre);
    default_int(keys, "window", &keys->window, keys->taps.n ? keys->taps.n : 3);
    default_int(keys, "edge", &keys->edge, params.edge);
    default_int(keys, "from", &keys->from, params.from);
    if (!at_key_given(keys, "dtype"))
        keys->dtype = at_key_index(keys->op, "dtype") >= 0 ? AT_BF16 : AT_F32;
    if (at_key_index(keys->op, "data") >= 0 && !keys->dataset[0] && !keys->data)
        keys->data = at_data_find("normal");
}

static void default_floats(struct at_case *c) {
    const struct at_params params = at_params_default();
    struct at_case_keys *keys = c->keys;
    int exact = keys->data && keys->data->exact;
    int gridded = exact || (keys->data && strcmp(keys->data->name, "ties") == 0);
    default_float(&keys->sigma, gridded ? (float)at_exact_odd((int)keys->window, (int)keys->edge) / 4 : 1.0f);
    default_float(&keys->gamma, 1.0f);
    default_float(&keys->lo, params.lo);
    default_float(&keys->hi, params.hi);
    default_float(&keys->eps, exact ? 0.0f : params.eps);
    if (keys->clip.n == 0)
        keys->clip = (struct at_float_list){ 2, { params.clip_min, params.clip_max } };
    if (keys->scale.n && keys->scale.value[0] == 0.0f)
        keys->scale.n = 0; /* the parameter table's way to say automatic */
}

/* The shortest list that gives every request the same value. */
static void reduce(struct at_int_list *list, int64_t b) {
    for (int period = 1; period < list->n; period++) {
        int same = list->n % period == 0 || list->n == b;
        for (int i = period; i < list->n; i++)
            same &= list->value[i] == list->value[i % period];
        if (same)
            list->n = period;
    }
}

static at_status check_list(const struct at_case *c, const char *name, const struct at_int_list *list) {
    if (list->n <= c->keys->b || list->n == 1) /* one value is said of no request, too */
        return AT_OK;
    return AT_FAIL(AT_USAGE, "%s: %s: found %d values for b=%lld requests, wanted at most as many", c->where, name,
                   list->n, (long long)c->keys->b);
}

/* A request of a decode batch that has no query waits, or pads a captured graph to its size. */
static at_status check_decode(const struct at_case *c) {
    const struct at_int_list *sq = &c->keys->sq;
    for (int i = 0; c->family->decode && i < sq->n; i++)
        if (sq->value[i] > 1)
            return AT_FAIL(AT_USAGE, "%s: sq: found %lld, wanted 0 or 1: %s has one query per request at most",
                           c->where, (long long)sq->value[i], c->family->name);
    return AT_OK;
}

/* sk = prefix + sq, the lists running in turn until both begin anew. */
static at_status keys_from_prefix(const struct at_case *c, struct at_case_keys *keys) {
    int64_t n = 1;
    while ((n % keys->prefix.n || n % keys->sq.n) && n < keys->b)
        n++;
    if (n > AT_CASE_LIST)
        return AT_FAIL(AT_USAGE,
                       "%s: prefix: its list and that of sq together repeat after %lld requests, wanted at "
                       "most %d",
                       c->where, (long long)n, (int)AT_CASE_LIST);
    keys->sk.n = (int)n;
    for (int i = 0; i < keys->sk.n; i++)
        keys->sk.value[i] = keys->prefix.value[i % keys->prefix.n] + keys->sq.value[i % keys->sq.n];
    return AT_OK;
}

static at_status finish_scenario(struct at_case *c) {
    struct at_case_keys *keys = c->keys;
    const int64_t steps = at_scenario_steps(keys->scenario, keys->shrink);
    if (!at_key_given(keys, "step") && c->family->decode)
        keys->step = steps;
    if (keys->step > steps || (keys->step == 0 && c->family->decode))
        return AT_FAIL(AT_USAGE, "%s: step: found %lld, wanted %d to %lld: the decode steps of %s%s", c->where,
                       (long long)keys->step, c->family->decode ? 1 : 0, (long long)steps, keys->scenario->name,
                       c->family->decode ? ", which a decode family has alone" : "");
    return AT_OK;
}

static at_status finish_lengths(struct at_case *c) {
    struct at_case_keys *keys = c->keys;
    if (keys->scenario)
        return finish_scenario(c);
    if (keys->dataset[0])
        return AT_OK;
    AT_TRY(check_decode(c));
    AT_TRY(check_list(c, "sq", &keys->sq));
    AT_TRY(check_list(c, "sk", &keys->sk));
    AT_TRY(check_list(c, "prefix", &keys->prefix));
    if (keys->sq.n == 0)
        keys->sq = (struct at_int_list){ 1, { c->family->decode ? 1 : 64 } };
    if (keys->prefix.n)
        AT_TRY(keys_from_prefix(c, keys));
    else if (keys->sk.n == 0)
        keys->sk = c->family->decode ? (struct at_int_list){ 1, { 256 } } : keys->sq;
    reduce(&keys->sq, keys->b);
    reduce(&keys->sk, keys->b);
    if (c->family->decode) /* a graph is replayed while nobody has a query, too */
        return AT_OK;
    for (int i = 0; i < keys->sq.n; i++)
        if (keys->sq.value[i] > 0)
            return AT_OK;
    return AT_FAIL(AT_USAGE, "%s: sq: found 0 for every request, wanted at least one query", c->where);
}

/* sigma, gamma and slope: one value or h of them; h equal ones are one. */
static at_status check_heads(const struct at_case *c, const char *name, struct at_float_list *list) {
    if (c->keys->dataset[0] ? list->n == 1 : list->n == 1 || list->n == c->keys->h) {
        int same = 1;
        for (int i = 1; i < list->n; i++)
            same &= list->value[i] == list->value[0];
        list->n = same ? 1 : list->n;
        return AT_OK;
    }
    if (c->keys->dataset[0])
        return AT_FAIL(AT_USAGE, "%s: %s: found %d values with a dataset, wanted one", c->where, name, list->n);
    return AT_FAIL(AT_USAGE, "%s: %s: found %d values for h=%lld heads, wanted 1 or %lld", c->where, name, list->n,
                   (long long)c->keys->h, (long long)c->keys->h);
}

/* What a family must be made for: one of the bits. */
struct use {
    unsigned bits;
    const char *word;
};
static struct use use_of(const struct at_op *op) {
    switch (op->kind) {
    case AT_KIND_ATTENTION:
        return (struct use){ AT_DATA_ATTENTION, "attention" };
    case AT_KIND_PRODUCT:
        return (struct use){ AT_DATA_PRODUCT, "products" };
    case AT_KIND_ELEMENTS:
        return (struct use){ AT_DATA_ELEMENTS, "elementwise functions" };
    case AT_KIND_CHOICE:
        return (struct use){ AT_DATA_NORM | AT_DATA_CHOICE, "choices" };
    case AT_KIND_COPY:
        return (struct use){ AT_DATA_NORM | AT_DATA_COPY, "copies" };
    default:
        return (struct use){ AT_DATA_NORM | (op->bits ? AT_DATA_COPY : 0u), "norms" };
    }
}

static at_status check_data(const struct at_case *c) {
    const struct at_case_keys *keys = c->keys;
    const int gated = c->op->weights == AT_WEIGHTS_GATE;
    if (!keys->data)
        return AT_OK;
    const struct use use = use_of(c->op);
    if (!(keys->data->uses & use.bits))
        return AT_FAIL(AT_USAGE, "%s: data: found %s for %s, wanted a family for %s", c->where, keys->data->name,
                       c->op->name, use.word);
    if (keys->hot && !(keys->data->uses & AT_DATA_HOT))
        return AT_FAIL(AT_USAGE, "%s: hot: found with data=%s, wanted data=normal, uniform, same_sign or exact",
                       c->where, keys->data->name);
    if (keys->hot & (AT_HOT_CLIP | AT_HOT_HALO) && !gated)
        return AT_FAIL(AT_USAGE, "%s: hot: found clip or halo, wanted last_key or hidden_key: %s has no gate or FIR",
                       c->where, c->op->name);
    if (keys->data->exact && keys->hot && !gated && keys->hot != AT_HOT_LAST_KEY)
        return AT_FAIL(AT_USAGE, "%s: hot: found hidden_key with exact softmax data, wanted last_key", c->where);
    return keys->data->exact ? at_exact_check(c) : AT_OK;
}

/* New tokens are the last keys of their request. */
static at_status check_cached(const struct at_case *c) {
    for (int64_t r = 0; !c->keys->scenario && r < c->keys->b; r++)
        if (at_case_sk(c, r) < at_case_sq(c, r))
            return AT_FAIL(AT_USAGE, "%s: sk: found %lld beside sq=%lld, wanted at least as many", c->where,
                           (long long)at_case_sk(c, r), (long long)at_case_sq(c, r));
    return AT_OK;
}

static at_status check_values(struct at_case *c) {
    struct at_case_keys *keys = c->keys;
    if (c->op->kind == AT_KIND_COPY || at_op_filled_index(c->op, AT_FILL_POSITIONS) >= 0)
        AT_TRY(check_cached(c));
    if (at_key_index(c->op, "h") >= 0 && !keys->dataset[0] && keys->h % keys->hk)
        return AT_FAIL(AT_USAGE, "%s: hk: found %lld with h=%lld, wanted a divisor of h", c->where, (long long)keys->hk,
                       (long long)keys->h);
    if (!keys->dataset[0] && keys->pad_d && keys->pad_d < keys->d)
        return AT_FAIL(AT_USAGE, "%s: pad_d: found %lld with d=%lld, wanted 0 or at least d", c->where,
                       (long long)keys->pad_d, (long long)keys->d);
    if (at_key_index(c->op, "sigma") >= 0) {
        AT_TRY(check_heads(c, "sigma", &keys->sigma));
        AT_TRY(check_heads(c, "gamma", &keys->gamma));
    }
    if (keys->deal && keys->page == 0)
        return AT_FAIL(AT_USAGE, "%s: deal: found capacity with page=0, wanted pages to deal", c->where);
    if (keys->slope.n)
        AT_TRY(check_heads(c, "slope", &keys->slope));
    if (keys->clip.n != 2 || !(keys->clip.value[0] <= keys->clip.value[1]))
        return AT_FAIL(AT_USAGE, "%s: clip: wanted two numbers MIN:MAX, the first not above the second", c->where);
    if (!(keys->lo.value[0] <= keys->hi.value[0]))
        return AT_FAIL(AT_USAGE, "%s: lo: found %g above hi=%g, wanted lo <= hi", c->where, (double)keys->lo.value[0],
                       (double)keys->hi.value[0]);
    if (!(keys->eps.value[0] >= 0))
        return AT_FAIL(AT_USAGE, "%s: eps: found %g, wanted 0 or more", c->where, (double)keys->eps.value[0]);
    return check_data(c);
}

at_status at_case_memory_limit(int64_t *bytes) {
    const char *text = getenv("AT_MEMORY_LIMIT");
    *bytes = (int64_t)16 << 30;
    if (!text || !*text)
        return AT_OK;
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    const char *suffixes = "KMGT", *suffix = *end ? strchr(suffixes, *end) : NULL;
    int shift = suffix ? 10 * (int)(suffix - suffixes + 1) : 0;
    if (end == text || errno || value < 0 || (suffix ? end[1] : *end) || value > INT64_MAX >> shift)
        return AT_FAIL(AT_USAGE,
                       "AT_MEMORY_LIMIT: found '%.64s', wanted bytes as a whole number, with K, M, G or T "
                       "after it if you like",
                       text);
    *bytes = (int64_t)value << shift;
    return AT_OK;
}

at_status at_case_check_need(const struct at_case *c, int64_t need) {
    int64_t limit;
    AT_TRY(at_case_memory_limit(&limit));
    if (need <= limit)
        return AT_OK;
    if (need == INT64_MAX)
        return AT_FAIL(AT_USAGE, "%s: its tensors are beyond 64-bit sizes, wanted at most %lld bytes (AT_MEMORY_LIMIT)",
                       c->where, (long long)limit);
    return AT_FAIL(AT_USAGE, "%s: its tensors need %lld bytes, wanted at most %lld (AT_MEMORY_LIMIT)", c->where,
                   (long long)need, (long long)limit);
}

static at_status check_sizes(const struct at_case *c) {
    if (c->keys->dataset[0])
        return AT_OK; /* its file has the sizes; looked at when it is built */
    const struct at_sizes *sizes = &c->keys->own.sizes;
    if (sizes->tokens > INT32_MAX || sizes->slots > INT32_MAX)
        return AT_FAIL(AT_USAGE, "%s: found %lld query tokens and %lld key slots, wanted at most %d: indices are i32",
                       c->where, (long long)sizes->tokens, (long long)sizes->slots, INT32_MAX);
    return at_case_check_need(c, at_case_need(&c->keys->own));
}

/* What follows from the keys: sizes (a dataset's are known when it is opened), and what the operator makes of them. */
static void complete(struct at_case *c) {
    struct at_problem *own = &c->keys->own;
    own->dtype = c->keys->dtype;
    if (!c->keys->dataset[0])
        at_case_sizes(c, &own->sizes);
    at_case_complete(c, own);
}

void at_case_complete(const struct at_case *c, struct at_problem *problem) {
    if (c->op->complete)
        c->op->complete(problem, c->keys->own_given);
}

at_status at_case_finish(struct at_case *c) {
    AT_TRY(check_pairs(c));
    default_scalars(c->keys);
    default_floats(c);
    AT_TRY(finish_lengths(c));
    AT_TRY(check_values(c));
    complete(c);
    AT_TRY(check_sizes(c));
    AT_TRY(at_case_write_id(c));
    c->hash = at_hash_bytes(c->id, strlen(c->id), AT_HASH_START);
    c->exact = c->keys->data && c->keys->data->exact;
    snprintf(c->data, sizeof c->data, "%s",
             at_key_index(c->op, "stratum") >= 0 ? at_tc_stratum_name((enum at_tc_stratum)c->keys->stratum)
             : c->keys->data                     ? c->keys->data->name
                                                 : c->keys->dataset);
    return AT_OK;
}
