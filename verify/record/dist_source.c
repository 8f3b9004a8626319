/* Opening what a recording reads, and reading its rows.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/record/dist_source.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "attest/attention.h"
#include "attest/names.h"
#include "datasets/readers/dataset.h"

enum { MAX_LAYERS = 65536, MAX_REQUESTS = 1 << 20 };

static const char *const words[AT_DIST_TENSORS] = { "q", "k", "v" };

int64_t at_dist_source_queries(const struct at_dist_source *s, int64_t r) {
    return s->query_start[r + 1] - s->query_start[r];
}

int64_t at_dist_source_keys(const struct at_dist_source *s, int64_t r) {
    if (!s->reader)
        return at_tensor_i32(&s->data.problem.tensors[AT_ATTN_SEQ_LENS], r);
    return s->key_start[r + 1] - s->key_start[r];
}

/* ---- the layers of a file ---- */

static int by_number(const void *a, const void *b) {
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The layer's number of "q" (0) or "layers.N.q"; -1 for other names. */
static int64_t layer_of(const char *name, int *which) {
    static const char prefix[] = "layers.";
    int64_t layer = 0;
    const char *rest = name;
    if (strncmp(name, prefix, sizeof prefix - 1) == 0) {
        char *end;
        const char *digits = name + sizeof prefix - 1;
        if (*digits < '0' || *digits > '9' || (digits[0] == '0' && digits[1] >= '0' && digits[1] <= '9'))
            return -1; /* one spelling a number */
        errno = 0;
        layer = strtoll(digits, &end, 10);
        if (errno || *end != '.' || layer > INT32_MAX)
            return -1;
        rest = end + 1;
    }
    for (int i = 0; i < AT_DIST_TENSORS; i++)
        if (strcmp(rest, words[i]) == 0) {
            *which = i;
            return layer;
        }
    return -1;
}

/* "layers.007.q", "layers.9999999999.q": a layer that would be left out. */
static int is_misnumbered(const char *name) {
    const char *rest = at_name_past_number(name, "layers.", 1);
    for (int i = 0; i < AT_DIST_TENSORS && rest && *rest == '.'; i++)
        if (strcmp(rest + 1, words[i]) == 0)
            return 1;
    return 0;
}

static at_status list_layers(struct at_dist_source *s) {
    const int n = at_reader_count(s->reader);
    int which, plain = 0, numbered = 0;
    s->layer = calloc((size_t)n + 1, sizeof *s->layer);
    if (!s->layer)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %d tensors", n);
    for (int i = 0; i < n; i++) {
        const char *name = at_reader_tensor(s->reader, i)->name;
        const int64_t layer = layer_of(name, &which);
        if (layer < 0 && is_misnumbered(name))
            return AT_FAIL(AT_USAGE, "%s: %s: wanted numbers from 0 to %d without a 0 before them", s->name, name,
                           (int)INT32_MAX);
        if (layer < 0)
            continue;
        plain += strchr(name, '.') == NULL;
        numbered += strchr(name, '.') != NULL;
        s->layer[s->n_layers++] = layer;
    }
    if (plain && numbered)
        return AT_FAIL(AT_USAGE, "%s: has both q, k, v and layers.N.q: wanted one or the other", s->name);
    qsort(s->layer, (size_t)s->n_layers, sizeof *s->layer, by_number);
    int64_t kept = 0;
    for (int64_t i = 0; i < s->n_layers; i++)
        if (i == 0 || s->layer[i] != s->layer[i - 1])
            s->layer[kept++] = s->layer[i];
    s->n_layers = kept;
    if (kept < 1 || kept > MAX_LAYERS)
        return AT_FAIL(AT_USAGE, "%s: found %lld layers, wanted tensors named q, k, v or layers.N.q, ...", s->name,
                       (long long)kept);
    s->tensor = calloc((size_t)kept, sizeof *s->tensor);
    return s->tensor ? AT_OK : AT_FAIL(AT_NO_MEMORY, "no memory for %lld layers", (long long)kept);
}

/* ---- their shapes ---- */

static at_status find_tensor(struct at_dist_source *s, int64_t i, int which, int plain) {
    char name[64];
    if (plain)
        snprintf(name, sizeof name, "%s", words[which]);
    else
        snprintf(name, sizeof name, "layers.%lld.%s", (long long)s->layer[i], words[which]);
    const int at = at_reader_find(s->reader, name), alone = at_reader_count(s->reader) == 1;
    if (at < 0)
        return AT_FAIL(AT_USAGE, "%s: there is no tensor %s beside its fellows%s", s->name, name,
                       alone ? "; .npy files hold one each, wanted the folder they are in, or an .npz" : "");
    const struct at_file_tensor *t = at_reader_tensor(s->reader, at);
    if (!t->supported || t->rank != 3 ||
        (t->format != AT_F64 && t->format != AT_F32 && t->format != AT_F16 && t->format != AT_BF16))
        return AT_FAIL(AT_USAGE, "%s: %s has type %s and rank %d, wanted f64, f32, f16 or bf16 and [tokens heads d]",
                       s->name, name, t->type_name, t->rank);
    const struct at_file_tensor *first = at_reader_tensor(s->reader, i || which ? s->tensor[0][0] : at);
    if (t->format != first->format)
        return AT_FAIL(AT_USAGE, "%s: %s has type %s and %s has %s, wanted one type", s->name, name, t->type_name,
                       first->name, first->type_name);
    s->tensor[i][which] = at;
    return AT_OK;
}

/* All layers have the shapes of the first; k and v agree. */
static at_status check_shape(const struct at_dist_source *s, int64_t i, int which) {
    const struct at_file_tensor *t = at_reader_tensor(s->reader, s->tensor[i][which]);
    const struct at_file_tensor *want = at_reader_tensor(s->reader, s->tensor[0][which == AT_DIST_Q ? 0 : 1]);
    for (int axis = 0; axis < 3; axis++)
        if (t->shape[axis] != want->shape[axis])
            return AT_FAIL(AT_USAGE, "%s: %s is [%lld %lld %lld] and %s is [%lld %lld %lld], wanted equal shapes",
                           s->name, t->name, (long long)t->shape[0], (long long)t->shape[1], (long long)t->shape[2],
                           want->name, (long long)want->shape[0], (long long)want->shape[1], (long long)want->shape[2]);
    return AT_OK;
}

static at_status check_sizes(struct at_dist_source *s) {
    const struct at_file_tensor *q = at_reader_tensor(s->reader, s->tensor[0][AT_DIST_Q]);
    const struct at_file_tensor *k = at_reader_tensor(s->reader, s->tensor[0][AT_DIST_K]);
    s->h = q->shape[1];
    s->hk = k->shape[1];
    s->d = q->shape[2];
    s->format = q->format;
    if (k->shape[2] != s->d || s->h < 1 || s->h > 4096 || s->hk < 1 || s->h % s->hk || s->d < 1 ||
        s->d > AT_DATA_MAX_D || q->shape[0] > INT32_MAX || k->shape[0] > INT32_MAX)
        return AT_FAIL(AT_USAGE,
                       "%s: %s is [%lld %lld %lld] and %s is [%lld %lld %lld], wanted [tokens heads d] with 1 to 4096 "
                       "heads, of k a divisor of those of q, and one d of 1 to %d",
                       s->name, q->name, (long long)q->shape[0], (long long)q->shape[1], (long long)q->shape[2],
                       k->name, (long long)k->shape[0], (long long)k->shape[1], (long long)k->shape[2],
                       (int)AT_DATA_MAX_D);
    for (int64_t i = 0; i < s->n_layers; i++)
        for (int which = 0; which < AT_DIST_TENSORS; which++)
            AT_TRY(check_shape(s, i, which));
    return AT_OK;
}

/* ---- requests ---- */

/* Starts from a tensor i32 [b + 1]: ascending from 0 to `end`. */
static at_status read_starts(struct at_dist_source *s, const char *name, int tensor, int64_t end, int64_t **starts) {
    const struct at_file_tensor *t = at_reader_tensor(s->reader, tensor);
    at_status status = AT_OK;
    int32_t *read = NULL;
    if (!t->supported || t->format != AT_I32 || t->rank != 1 || t->count < 2 || t->count > MAX_REQUESTS + 1)
        return AT_FAIL(AT_USAGE, "%s: %s has type %s, rank %d and %lld values, wanted i32 and 2 to %d starts", s->name,
                       name, t->type_name, t->rank, (long long)t->count, (int)MAX_REQUESTS + 1);
    if (s->requests && t->count != s->requests + 1)
        return AT_FAIL(AT_USAGE, "%s: %s has %lld starts, query_start has %lld", s->name, name, (long long)t->count,
                       (long long)s->requests + 1);
    s->requests = t->count - 1;
    read = malloc((size_t)t->count * sizeof *read);
    *starts = malloc((size_t)t->count * sizeof **starts);
    if (!read || !*starts)
        AT_FAIL_OUT(AT_NO_MEMORY, "starts of %lld requests", (long long)s->requests);
    AT_TRY_OUT(at_reader_read(s->reader, tensor, 0, t->count, read));
    for (int64_t r = 0; r <= s->requests; r++) {
        const int64_t before = r ? (*starts)[r - 1] : 0, most = r == 0 ? 0 : end;
        (*starts)[r] = read[r];
        if (read[r] < before || read[r] > most || (r == s->requests && read[r] != end))
            AT_FAIL_OUT(AT_USAGE, "%s: %s[%lld] is %d, wanted starts ascending from 0 to %lld", s->name, name,
                        (long long)r, read[r], (long long)end);
    }
out:
    free(read);
    return status;
}

static at_status one_request(struct at_dist_source *s, int64_t tokens, int64_t **starts) {
    *starts = calloc(2, sizeof **starts);
    if (!*starts)
        return AT_FAIL(AT_NO_MEMORY, "starts of a request");
    (*starts)[1] = tokens;
    s->requests = 1;
    return AT_OK;
}

static at_status open_requests(struct at_dist_source *s) {
    const int64_t queries = at_reader_tensor(s->reader, s->tensor[0][AT_DIST_Q])->shape[0];
    const int64_t keys = at_reader_tensor(s->reader, s->tensor[0][AT_DIST_K])->shape[0];
    const int q = at_reader_find(s->reader, "query_start"), k = at_reader_find(s->reader, "key_start");
    if (q >= 0)
        AT_TRY(read_starts(s, "query_start", q, queries, &s->query_start));
    else
        AT_TRY(one_request(s, queries, &s->query_start));
    if (k >= 0)
        return read_starts(s, "key_start", k, keys, &s->key_start);
    if (s->requests == 1)
        return one_request(s, keys, &s->key_start);
    if (queries != keys)
        return AT_FAIL(AT_USAGE,
                       "%s: found %lld query tokens and %lld keys of %lld requests, wanted as many keys, or key_start",
                       s->name, (long long)queries, (long long)keys, (long long)s->requests);
    s->key_start = malloc((size_t)(s->requests + 1) * sizeof *s->key_start);
    if (!s->key_start)
        return AT_FAIL(AT_NO_MEMORY, "starts of %lld requests", (long long)s->requests);
    memcpy(s->key_start, s->query_start, (size_t)(s->requests + 1) * sizeof *s->key_start);
    return AT_OK;
}

static at_status open_file(const char *path, struct at_dist_source *s) {
    s->path = strdup(path);
    if (!s->path)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a name");
    AT_TRY(at_reader_open(path, &s->reader));
    AT_TRY(list_layers(s));
    const int plain = at_reader_find(s->reader, "q") >= 0 || at_reader_find(s->reader, "k") >= 0 ||
                      at_reader_find(s->reader, "v") >= 0;
    for (int64_t i = 0; i < s->n_layers; i++)
        for (int which = 0; which < AT_DIST_TENSORS; which++)
            AT_TRY(find_tensor(s, i, which, plain));
    AT_TRY(check_sizes(s));
    return open_requests(s);
}

/* ---- cases ---- */

static at_status open_case(const char *line, struct at_dist_source *s) {
    AT_TRY(at_case_parse(line, "line", "record", &s->cases));
    if (s->cases.n != 1)
        return AT_FAIL(AT_USAGE, "record: the line makes %lld cases, wanted one", (long long)s->cases.n);
    const struct at_case *c = &s->cases.items[0];
    if (c->op->kind != AT_KIND_ATTENTION)
        return AT_FAIL(AT_USAGE, "record: %s is no attention", c->family->name);
    AT_TRY(at_case_build(c, &s->data));
    const struct at_problem *p = &s->data.problem;
    s->format = p->dtype;
    s->requests = p->sizes.b;
    s->h = p->sizes.h;
    s->hk = p->sizes.hk;
    s->d = p->sizes.d;
    s->n_layers = 1;
    s->layer = calloc(1, sizeof *s->layer);
    s->query_start = calloc((size_t)s->requests + 1, sizeof *s->query_start);
    free(s->name);
    s->name = strdup(c->id);
    if (!s->layer || !s->query_start || !s->name)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a case");
    s->layer[0] = c->keys->dataset[0] ? c->keys->layer : 0;
    for (int64_t r = 0; r <= s->requests; r++)
        s->query_start[r] = at_tensor_i32(&p->tensors[AT_ATTN_QUERY_START], r);
    return AT_OK;
}

/* ---- any ---- */

static int is_case(const char *input) {
    char word[64];
    const size_t n = strcspn(input, " ");
    snprintf(word, sizeof word, "%.*s", (int)(n < sizeof word ? n : 0), input);
    return strchr(input, ' ') != NULL || at_family_find(word) != NULL;
}

/* The last part of a path, without the slashes that may end a folder's. */
static at_status name_source(const char *input, struct at_dist_source *s) {
    size_t end = strlen(input), start;
    while (end > 1 && input[end - 1] == '/')
        end--;
    for (start = end; start > 0 && input[start - 1] != '/';)
        start--;
    s->name = strndup(input + start, end - start);
    return s->name ? AT_OK : AT_FAIL(AT_NO_MEMORY, "no memory for a name");
}

static at_status open_any(const char *input, struct at_dist_source *s) {
    struct stat info;
    char path[4096];
    const char *slash = strrchr(input, '/');
    AT_TRY(name_source(input, s));
    if (stat(input, &info) == 0)
        return open_file(input, s);
    if (is_case(input))
        return open_case(input, s);
    snprintf(path, sizeof path, "%s/activations/%s.safetensors", at_datasets_dir(), input);
    s->is_named = 1;
    if (!slash && stat(path, &info) == 0)
        return open_file(path, s);
    return AT_FAIL(AT_NOT_FOUND,
                   "record: found '%.200s', wanted a dataset (attest list datasets), a .safetensors, .npz or .h5 "
                   "file, a folder of .npy files, or a case line",
                   input);
}

at_status at_dist_source_open(const char *input, struct at_dist_source *source) {
    *source = (struct at_dist_source){ 0 };
    at_status status = open_any(input, source);
    if (status == AT_OK)
        status = at_dist_source_check_ids(source);
    if (status != AT_OK)
        at_dist_source_close(source);
    return status;
}

void at_dist_source_close(struct at_dist_source *s) {
    if (s->reader)
        at_reader_close(s->reader);
    at_case_data_release(&s->data);
    at_case_list_release(&s->cases);
    free(s->name);
    free(s->path);
    free(s->layer);
    free(s->query_start);
    free(s->key_start);
    free(s->tensor);
    *s = (struct at_dist_source){ 0 };
}

/* "a..b" as two numbers. */
static int is_range(const char *text, long long *from, long long *to) {
    int used = 0;
    return sscanf(text, "%lld..%lld%n", from, to, &used) == 2 && text[used] == 0;
}

at_status at_dist_source_select(struct at_dist_source *s, const char *layers) {
    long long from, to;
    const int range = is_range(layers, &from, &to);
    int64_t kept = 0;
    for (int64_t i = 0; i < s->n_layers; i++) {
        char number[32];
        snprintf(number, sizeof number, "%lld", (long long)s->layer[i]);
        if (range ? s->layer[i] < from || s->layer[i] > to : fnmatch(layers, number, FNM_EXTMATCH) != 0)
            continue;
        s->layer[kept] = s->layer[i];
        if (s->tensor)
            memcpy(s->tensor[kept], s->tensor[i], sizeof *s->tensor);
        kept++;
    }
    const int64_t all = s->n_layers, first = s->layer[0], last = s->layer[all - 1];
    if (kept == 0)
        return AT_FAIL(AT_NOT_FOUND, "--layers '%.64s': none of the %lld layers %lld to %lld matches", layers,
                       (long long)all, (long long)first, (long long)last);
    s->n_layers = kept;
    return AT_OK;
}

static at_status read_case(const struct at_dist_source *s, int64_t request, int tensor, int64_t first, int64_t n,
                           char *codes) {
    const struct at_problem *p = &s->data.problem;
    const struct at_tensor *from = &p->tensors[tensor == AT_DIST_Q   ? AT_ATTN_Q
                                               : tensor == AT_DIST_K ? AT_ATTN_K
                                                                     : AT_ATTN_V];
    const size_t bytes = at_format_info(s->format)->bytes;
    const size_t row = (size_t)((tensor == AT_DIST_Q ? s->h : s->hk) * s->d) * bytes;
    for (int64_t i = 0; i < n; i++) {
        const int64_t at = tensor == AT_DIST_Q ? (s->query_start[request] + first + i) * s->h * s->d
                                               : at_attn_kv_index(p, request, first + i, 0);
        memcpy(codes + (size_t)i * row, (const char *)from->data + (size_t)at * bytes, row);
    }
    return AT_OK;
}

at_status at_dist_source_read(struct at_dist_source *s, int64_t layer, int64_t request, int tensor, int64_t first,
                              int64_t n, void *codes) {
    if (n == 0)
        return AT_OK;
    if (!s->reader)
        return read_case(s, request, tensor, first, n, codes);
    const int64_t row = (tensor == AT_DIST_Q ? s->h : s->hk) * s->d;
    const int64_t start = tensor == AT_DIST_Q ? s->query_start[request] : s->key_start[request];
    return at_reader_read(s->reader, s->tensor[layer][tensor], (start + first) * row, n * row, codes);
}
