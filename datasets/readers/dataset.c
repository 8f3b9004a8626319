/* Named recorded datasets: activations of real models, one safetensors file each.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/readers/dataset.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char suffix[] = ".safetensors";

static void folder(char *path, size_t size) { snprintf(path, size, "%s/activations", at_datasets_dir()); }

static int is_dataset(const struct dirent *entry) {
    size_t length = strlen(entry->d_name);
    return entry->d_name[0] != '.' && length > sizeof suffix - 1 &&
           strcmp(entry->d_name + length - (sizeof suffix - 1), suffix) == 0;
}

static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

at_status at_recorded_list(char ***names, int *n) {
    char path[4096];
    struct dirent **entries = NULL;
    folder(path, sizeof path);
    *n = scandir(path, &entries, is_dataset, by_name);
    if (*n < 0)
        return AT_FAIL(AT_NOT_FOUND, "%s: %s; wanted the folder of recorded datasets", path, strerror(errno));
    at_status status = AT_OK;
    *names = calloc((size_t)*n + 1, sizeof **names);
    for (int i = 0; i < *n; i++) {
        if (*names)
            (*names)[i] = strndup(entries[i]->d_name, strlen(entries[i]->d_name) - (sizeof suffix - 1));
        if (!*names || !(*names)[i])
            status = AT_FAIL(AT_NO_MEMORY, "names of %d datasets", *n);
        free(entries[i]);
    }
    free(entries);
    return status;
}

/* layers.N.WHAT: floating, rank 3. */
static at_status find_tensor(const struct at_case *c, struct at_recorded *recorded, int which, const char *what) {
    char name[64];
    snprintf(name, sizeof name, "layers.%lld.%s", (long long)c->keys->layer, what);
    int i = recorded->tensor[which] = at_reader_find(recorded->reader, name);
    if (i < 0)
        return AT_FAIL(AT_USAGE, "%s: layer: dataset %s has no tensor %s", c->where, c->keys->dataset, name);
    const struct at_file_tensor *tensor = at_reader_tensor(recorded->reader, i);
    if (!tensor->supported || tensor->format == AT_I32 || tensor->rank != 3)
        return AT_FAIL(AT_USAGE,
                       "%s: dataset %s: %s has type %s and rank %d, wanted a floating type and "
                       "[tokens heads d]",
                       c->where, c->keys->dataset, name, tensor->type_name, tensor->rank);
    return AT_OK;
}

static at_status check_shapes(const struct at_case *c, struct at_recorded *recorded) {
    const struct at_file_tensor *q = at_reader_tensor(recorded->reader, recorded->tensor[AT_RECORDED_Q]);
    recorded->tokens = q->shape[0];
    recorded->h = q->shape[1];
    recorded->d = q->shape[2];
    recorded->hk = at_reader_tensor(recorded->reader, recorded->tensor[AT_RECORDED_K])->shape[1];
    for (int i = AT_RECORDED_K; i < AT_RECORDED_TENSORS; i++) {
        const struct at_file_tensor *t = at_reader_tensor(recorded->reader, recorded->tensor[i]);
        if (t->shape[0] != recorded->tokens || t->shape[1] != recorded->hk || t->shape[2] != recorded->d)
            return AT_FAIL(AT_USAGE, "%s: dataset %s: %s is [%lld %lld %lld], wanted [%lld %lld %lld] like its fellows",
                           c->where, c->keys->dataset, t->name, (long long)t->shape[0], (long long)t->shape[1],
                           (long long)t->shape[2], (long long)recorded->tokens, (long long)recorded->hk,
                           (long long)recorded->d);
    }
    if (recorded->tokens < 1 || recorded->tokens > INT32_MAX || recorded->h < 1 || recorded->h > 4096 ||
        recorded->hk < 1 || recorded->h % recorded->hk || recorded->d < 1 || recorded->d > AT_DATA_MAX_D)
        return AT_FAIL(AT_USAGE,
                       "%s: dataset %s: found %lld tokens, %lld and %lld heads of %lld, wanted 1 or more of "
                       "each, heads up to 4096 of up to %d, hk a divisor of h",
                       c->where, c->keys->dataset, (long long)recorded->tokens, (long long)recorded->h,
                       (long long)recorded->hk, (long long)recorded->d, (int)AT_DATA_MAX_D);
    if (c->keys->pad_d && c->keys->pad_d < recorded->d)
        return AT_FAIL(AT_USAGE, "%s: pad_d: found %lld with heads of %lld, wanted 0 or at least as many", c->where,
                       (long long)c->keys->pad_d, (long long)recorded->d);
    return AT_OK;
}

static at_status read_starts(const struct at_case *c, struct at_recorded *recorded) {
    int i = at_reader_find(recorded->reader, "query_start");
    const struct at_file_tensor *tensor = i < 0 ? NULL : at_reader_tensor(recorded->reader, i);
    if (!tensor || !tensor->supported || tensor->format != AT_I32 || tensor->rank != 1 || tensor->count < 2 ||
        tensor->count > 65537)
        return AT_FAIL(AT_USAGE, "%s: dataset %s: wanted query_start, i32 of 2 to 65537 starts, and found %s", c->where,
                       c->keys->dataset, tensor ? "another shape or type" : "none");
    int32_t *starts = malloc((size_t)tensor->count * sizeof *starts);
    at_status status = AT_OK;
    recorded->b = tensor->count - 1;
    recorded->start = malloc((size_t)tensor->count * sizeof *recorded->start);
    if (!starts || !recorded->start)
        AT_FAIL_OUT(AT_NO_MEMORY, "starts of %lld requests", (long long)recorded->b);
    AT_TRY_OUT(at_reader_read(recorded->reader, i, 0, tensor->count, starts));
    for (int64_t r = 0; r <= recorded->b; r++) {
        int64_t least = r ? recorded->start[r - 1] : 0, most = r ? recorded->tokens : 0;
        recorded->start[r] = starts[r];
        if (starts[r] < least || starts[r] > most || (r == recorded->b && starts[r] != recorded->tokens))
            AT_FAIL_OUT(AT_USAGE, "%s: dataset %s: query_start[%lld] is %d, wanted starts ascending from 0 to %lld",
                        c->where, c->keys->dataset, (long long)r, starts[r], (long long)recorded->tokens);
    }
out:
    free(starts);
    return status;
}

at_status at_recorded_open(const struct at_case *c, struct at_recorded *recorded) {
    char path[4096];
    *recorded = (struct at_recorded){ 0 };
    folder(path, sizeof path);
    size_t used = strlen(path);
    snprintf(path + used, sizeof path - used, "/%s%s", c->keys->dataset, suffix);
    at_status status = AT_OK;
    AT_TRY_OUT(at_reader_open(path, &recorded->reader));
    AT_TRY_OUT(find_tensor(c, recorded, AT_RECORDED_Q, "q"));
    AT_TRY_OUT(find_tensor(c, recorded, AT_RECORDED_K, "k"));
    AT_TRY_OUT(find_tensor(c, recorded, AT_RECORDED_V, "v"));
    AT_TRY_OUT(check_shapes(c, recorded));
    AT_TRY_OUT(read_starts(c, recorded));
out:
    if (status != AT_OK)
        at_recorded_release(recorded);
    return status;
}

void at_recorded_release(struct at_recorded *recorded) {
    if (recorded->reader)
        at_reader_close(recorded->reader);
    free(recorded->start);
    *recorded = (struct at_recorded){ 0 };
}

at_status at_recorded_read(struct at_recorded *recorded, int tensor, int64_t first, int64_t n, double *out) {
    int64_t row = (tensor == AT_RECORDED_Q ? recorded->h : recorded->hk) * recorded->d;
    return at_reader_read_f64(recorded->reader, recorded->tensor[tensor], first * row, n * row, out);
}
