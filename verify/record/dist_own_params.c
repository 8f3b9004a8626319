/* Parameters that a capture brings along: a trained model has a sigma, gamma or taps of its own in every head.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Tensors layers.N.scale, .sigma, .gamma of one value or one a head, layers.N.taps [taps] or [h taps]; without
 * "layers.N." where q has none. They take the place of what --params and the defaults say, in that layer. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/buffer.h"
#include "verify/record/dist_source.h"

enum { MAX_VALUES = 4096 * AT_ASYNCT_MAX_TAPS };

/* The tensor `word` of layer i, -1 if there is none. */
static int find(const struct at_dist_source *source, int64_t i, const char *word, char *name, size_t size) {
    const struct at_file_tensor *q = at_reader_tensor(source->reader, source->tensor[i][AT_DIST_Q]);
    if (strchr(q->name, '.'))
        snprintf(name, size, "layers.%lld.%s", (long long)source->layer[i], word);
    else
        snprintf(name, size, "%s", word);
    return at_reader_find(source->reader, name);
}

/* Its values, finite in f32 and rounded to it, in *values (the caller frees them); name and values go into *hash. */
static at_status read_values(const struct at_dist_source *source, int at, uint64_t *hash, double **values) {
    const struct at_file_tensor *t = at_reader_tensor(source->reader, at);
    if (!t->supported || t->format == AT_I32 || t->count < 1 || t->count > MAX_VALUES)
        return AT_FAIL(AT_USAGE, "%s: %s has type %s and %lld values, wanted floating-point numbers, %d at most",
                       source->name, t->name, t->type_name, (long long)t->count, (int)MAX_VALUES);
    *values = malloc((size_t)t->count * sizeof **values);
    if (!*values)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for %s", source->name, t->name);
    AT_TRY(at_reader_read_f64(source->reader, at, 0, t->count, *values));
    for (int64_t i = 0; i < t->count; i++) {
        (*values)[i] = at_round(AT_F32, (*values)[i]);
        if (!isfinite((*values)[i]))
            return AT_FAIL(AT_USAGE, "%s: %s: value %lld is %g, wanted a finite one", source->name, t->name,
                           (long long)i, (*values)[i]);
    }
    *hash = at_hash_bytes(t->name, strlen(t->name), *hash ? *hash : AT_HASH_START);
    *hash = at_hash_bytes(*values, (size_t)t->count * sizeof **values, *hash);
    return AT_OK;
}

static at_status refuse_shape(const struct at_dist_source *source, const struct at_file_tensor *t, const char *wanted) {
    return AT_FAIL(AT_USAGE, "%s: %s has rank %d and %lld values, wanted %s", source->name, t->name, t->rank,
                   (long long)t->count, wanted);
}

/* One value, or one a head where there may be `most`, to the member of each head that lies `offset` bytes from its
 * start. */
static at_status take_scalar(const struct at_dist_source *source, int64_t i, const char *word, size_t offset,
                             int64_t most, struct at_asynct_head *heads, uint64_t *hash) {
    char name[64];
    double *values = NULL;
    at_status status = AT_OK;
    const int at = find(source, i, word, name, sizeof name);
    if (at < 0)
        return AT_OK;
    const struct at_file_tensor *t = at_reader_tensor(source->reader, at);
    if (t->rank > 1 || (t->count != 1 && t->count != most))
        return refuse_shape(source, t, most > 1 ? "one value, or one for each query head" : "one value");
    AT_TRY_OUT(read_values(source, at, hash, &values));
    for (int64_t head = 0; head < source->h; head++)
        memcpy((char *)&heads[head] + offset, &values[t->count == 1 ? 0 : head], sizeof *values);
out:
    free(values);
    return status;
}

static at_status take_taps(const struct at_dist_source *source, int64_t i, struct at_asynct_head *heads,
                           uint64_t *hash) {
    char name[64];
    double *values = NULL;
    at_status status = AT_OK;
    const int at = find(source, i, "taps", name, sizeof name);
    if (at < 0)
        return AT_OK;
    const struct at_file_tensor *t = at_reader_tensor(source->reader, at);
    const int64_t taps = t->rank > 0 ? t->shape[t->rank - 1] : 0;
    if (taps < 1 || taps > AT_ASYNCT_MAX_TAPS || t->rank > 2 || (t->rank == 2 && t->shape[0] != source->h))
        return refuse_shape(source, t, "[taps] or [query heads, taps], and few enough taps");
    AT_TRY_OUT(read_values(source, at, hash, &values));
    for (int64_t head = 0; head < source->h; head++) {
        heads[head].taps = (int)taps;
        heads[head].pooled = 0;
        memset(heads[head].tap, 0, sizeof heads[head].tap);
        memcpy(heads[head].tap, values + (t->rank == 2 ? head * taps : 0), (size_t)taps * sizeof *values);
    }
out:
    free(values);
    return status;
}

at_status at_dist_own_params(const struct at_dist_source *source, int softmax, int64_t i, struct at_asynct_head *heads,
                             uint64_t *hash) {
    AT_TRY(take_scalar(source, i, "scale", offsetof(struct at_asynct_head, scale), 1, heads, hash));
    if (softmax)
        return AT_OK;
    AT_TRY(take_scalar(source, i, "sigma", offsetof(struct at_asynct_head, sigma), source->h, heads, hash));
    AT_TRY(take_scalar(source, i, "gamma", offsetof(struct at_asynct_head, gamma), source->h, heads, hash));
    return take_taps(source, i, heads, hash);
}
