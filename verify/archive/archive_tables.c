/* The groups that results refer to: /provenance, /cases, /kernels.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The texts of a case and of declared numerics are kept whole and read back; the columns taken out of them
 * are there for h5py and pandas only. */
#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "attest/buffer.h"
#include "attest/numerics.h"
#include "verify/archive/columns.h"
#include "verify/archive/layout.h"

/* ---- /provenance ---- */

/* A value as an attribute shows it: texts as they are, the rest as JSON. */
static at_status write_key(const char *file, hid_t group, const char *key, const json_t *value) {
    if (json_is_string(value))
        return at_h5_attr_text(file, group, key, json_string_value(value));
    char *text = json_dumps(value, JSON_COMPACT | JSON_SORT_KEYS | JSON_ENCODE_ANY);
    if (!text)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for %s", file, key);
    at_status status = at_h5_attr_text(file, group, key, text);
    free(text);
    return status;
}

static int compare_keys(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Every key of the provenance as an attribute, in name order, whatever order the hash table has. */
static at_status write_keys(const char *file, hid_t group, const char *provenance) {
    json_t *json = json_loads(provenance, 0, NULL);
    const char **keys = calloc(json_object_size(json) + 1, sizeof *keys);
    at_status status = keys ? AT_OK : AT_FAIL(AT_NO_MEMORY, "%s: no memory for the provenance", file);
    if (keys && json) {
        size_t n = 0;
        for (void *it = json_object_iter(json); it; it = json_object_iter_next(json, it))
            keys[n++] = json_object_iter_key(it);
        qsort(keys, n, sizeof *keys, compare_keys);
        for (size_t i = 0; i < n && status == AT_OK; i++)
            status = write_key(file, group, keys[i], json_object_get(json, keys[i]));
    }
    free(keys);
    json_decref(json);
    return status;
}

at_status at_archive_write_provenance(const char *file, hid_t root, const struct at_run_record *record) {
    at_status status = AT_OK;
    hid_t group = H5I_INVALID_HID;
    const char *build = record->provenance ? record->provenance : "{}";
    AT_TRY(at_h5_group(file, root, AT_GROUP_PROVENANCE, "attest.provenance", "NXcollection", &group));
    AT_TRY_OUT(at_h5_write_text(file, group, "request", record->request ? record->request : "{}",
                                "what was asked for, as JSON"));
    AT_TRY_OUT(at_h5_write_text(file, group, "build", build, "what answered it, as JSON"));
    AT_TRY_OUT(write_keys(file, group, build));
out:
    at_h5_close(group);
    return status;
}

/* ---- columns out of "word key=value key=value" ---- */

/* Copies the value of `key`, "" when the text does not have it; 1 if it does. */
static int find_value(const char *text, const char *key, char *value, size_t size) {
    size_t n = strlen(key);
    value[0] = 0;
    for (const char *word = text; *word; word += strspn(word, " ")) {
        size_t length = strcspn(word, " ");
        if (length > n && memcmp(word, key, n) == 0 && word[n] == '=' && length - n - 1 < size) {
            memcpy(value, word + n + 1, length - n - 1);
            value[length - n - 1] = 0;
            return 1;
        }
        word += length;
    }
    return 0;
}

/* An integer of at most 19 digits; -1 for everything else, a list of lengths included. */
static int64_t find_integer(const char *text, const char *key) {
    char value[32], *end;
    if (!find_value(text, key, value, sizeof value) || !value[0])
        return -1;
    errno = 0;
    long long number = strtoll(value, &end, 10);
    return errno || *end ? -1 : number;
}

static at_status write_integer_key(const struct at_archive_group *g, const char *const *from, const char *key,
                                   const char *meaning) {
    int64_t *values = calloc(g->n + 1, sizeof *values);
    if (!values)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for column %s", g->file, key);
    for (size_t i = 0; i < g->n; i++)
        values[i] = find_integer(from[i], key);
    struct at_h5_column column = { .name = key,
                                   .type = AT_H5_I64,
                                   .rank = 1,
                                   .dims = { g->n },
                                   .scales = { g->scale },
                                   .units = "1",
                                   .long_name = meaning,
                                   .missing = 1,
                                   .data = values };
    at_status status = at_h5_write(g->file, g->group, &column);
    free(values);
    return status;
}

static at_status write_texts(const struct at_archive_group *g, const char *name, const char *const *texts,
                             const char *meaning) {
    struct at_h5_column column = { .name = name,
                                   .type = AT_H5_TEXT,
                                   .rank = 1,
                                   .dims = { g->n },
                                   .scales = { g->scale },
                                   .units = "1",
                                   .long_name = meaning,
                                   .data = texts };
    return at_h5_write(g->file, g->group, &column);
}

static void free_texts(char **texts, size_t n) {
    for (size_t i = 0; texts && i < n; i++)
        free(texts[i]);
    free(texts);
}

static at_status write_text_key(const struct at_archive_group *g, const char *const *from, const char *key,
                                const char *meaning) {
    char value[sizeof(struct at_result)];
    char **texts = calloc(g->n + 1, sizeof *texts);
    at_status status = texts ? AT_OK : AT_FAIL(AT_NO_MEMORY, "%s: no memory for column %s", g->file, key);
    for (size_t i = 0; i < g->n && status == AT_OK; i++) {
        find_value(from[i], key, value, sizeof value);
        texts[i] = strdup(value);
        if (!texts[i])
            status = AT_FAIL(AT_NO_MEMORY, "%s: no memory for column %s", g->file, key);
    }
    if (status == AT_OK)
        status = write_texts(g, key, (const char *const *)texts, meaning);
    free_texts(texts, g->n);
    return status;
}

/* ---- /cases ---- */

/* {"b":"2", ...}: values as they are written in the case, as a list of lengths is no number. */
static char *case_json(const char *id) {
    json_t *object = json_object();
    size_t family = strcspn(id, " ");
    json_object_set_new(object, "family", json_stringn(id, family));
    for (const char *word = id + family; *word;) {
        word += strspn(word, " ");
        size_t length = strcspn(word, " ");
        const char *equals = memchr(word, '=', length);
        char key[64];
        if (equals && (size_t)(equals - word) < sizeof key) {
            snprintf(key, sizeof key, "%.*s", (int)(equals - word), word);
            json_object_set_new(object, key, json_stringn(equals + 1, length - (size_t)(equals + 1 - word)));
        }
        word += length;
    }
    char *text = json_dumps(object, JSON_COMPACT | JSON_SORT_KEYS);
    json_decref(object);
    return text;
}

static at_status write_case_json(const struct at_archive_group *g, const char *const *ids) {
    char **texts = calloc(g->n + 1, sizeof *texts);
    uint64_t *hashes = calloc(g->n + 1, sizeof *hashes);
    at_status status = texts && hashes ? AT_OK : AT_FAIL(AT_NO_MEMORY, "%s: no memory for the cases", g->file);
    for (size_t i = 0; i < g->n && status == AT_OK; i++) {
        texts[i] = case_json(ids[i]);
        hashes[i] = at_hash_bytes(ids[i], strlen(ids[i]), AT_HASH_START);
        if (!texts[i])
            status = AT_FAIL(AT_NO_MEMORY, "%s: no memory for the cases", g->file);
    }
    if (status == AT_OK)
        status = write_texts(g, "json", (const char *const *)texts, "the case as JSON, every value a text");
    struct at_h5_column column = { .name = "hash",
                                   .type = AT_H5_U64,
                                   .rank = 1,
                                   .dims = { g->n },
                                   .scales = { g->scale },
                                   .units = "1",
                                   .long_name = "64-bit hash of case_id",
                                   .data = hashes };
    if (status == AT_OK)
        status = at_h5_write(g->file, g->group, &column);
    free_texts(texts, g->n);
    free(hashes);
    return status;
}

/* The columns of the keys; texts[i] is afterwards field `keep` of row i. */
static at_status write_keys_of(const struct at_archive_group *g, const struct at_archive_keys *keys, const char *keep,
                               const char **texts) {
    int kept = 0;
    for (int f = 0; f < keys->n_fields; f++) {
        for (size_t i = 0; i < g->n; i++)
            texts[i] = at_archive_key(keys, (int64_t)i, f);
        AT_TRY(write_texts(g, keys->fields[f]->name, texts, keys->fields[f]->meaning));
        kept = strcmp(keys->fields[f]->name, keep) == 0 ? f : kept;
    }
    for (size_t i = 0; i < g->n; i++)
        texts[i] = at_archive_key(keys, (int64_t)i, kept);
    return AT_OK;
}

at_status at_archive_write_cases(const char *file, hid_t root, const struct at_archive_keys *cases) {
    static const struct {
        const char *key, *meaning;
    } integers[] = { { "b", "requests" },
                     { "h", "query heads" },
                     { "hk", "key/value heads" },
                     { "d", "head size" },
                     { "page", "keys per page; 0: contiguous" },
                     { "tokens", "rows (norms)" },
                     { "channels", "hidden size of a norm" },
                     { "m", "rows of a product" },
                     { "n", "columns of a product" },
                     { "k", "products that an element sums" },
                     { "layer", "layer of a recorded data set" },
                     { "seed", "seed" } },
      texts[] = { { "sq", "queries of the requests, a number or a/b/c" },
                  { "sk", "keys of the requests, a number or a/b/c" },
                  { "dtype", "format of the activations" },
                  { "out", "format of a product" },
                  { "data", "data family" },
                  { "dataset", "recorded data set" } };
    at_status status = AT_OK;
    struct at_archive_group g = {
        .file = file, .n = (hsize_t)cases->index.n, .scale = H5I_INVALID_HID, .group = H5I_INVALID_HID
    };
    const char **ids = calloc((size_t)cases->index.n + 1, sizeof *ids);
    if (!ids)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for the cases", file);
    AT_TRY_OUT(at_h5_group(file, root, AT_GROUP_CASES, "attest.cases", "NXcollection", &g.group));
    AT_TRY_OUT(at_h5_scale(file, g.group, "case", g.n, 0, "row: one case", &g.scale));
    AT_TRY_OUT(write_keys_of(&g, cases, "case_id", ids));
    AT_TRY_OUT(write_case_json(&g, ids));
    for (size_t i = 0; i < sizeof integers / sizeof integers[0]; i++)
        AT_TRY_OUT(write_integer_key(&g, ids, integers[i].key, integers[i].meaning));
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        AT_TRY_OUT(write_text_key(&g, ids, texts[i].key, texts[i].meaning));
out:
    free(ids);
    at_h5_close(g.scale);
    at_h5_close(g.group);
    return status;
}

/* ---- /kernels ---- */

at_status at_archive_write_kernels(const char *file, hid_t root, const struct at_archive_keys *kernels) {
    static const struct {
        const char *key, *meaning;
    } numerics[] = {
#define X(kind, name, value, meaning) { #name, meaning },
        AT_NUMERICS_LIST(X)
#undef X
    };
    at_status status = AT_OK;
    struct at_archive_group g = {
        .file = file, .n = (hsize_t)kernels->index.n, .scale = H5I_INVALID_HID, .group = H5I_INVALID_HID
    };
    const char **declared = calloc((size_t)kernels->index.n + 1, sizeof *declared);
    if (!declared)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for the kernels", file);
    AT_TRY_OUT(at_h5_group(file, root, AT_GROUP_KERNELS, "attest.kernels", "NXcollection", &g.group));
    AT_TRY_OUT(at_h5_scale(file, g.group, "kernel", g.n, 0, "row: one variant on one runner", &g.scale));
    AT_TRY_OUT(write_keys_of(&g, kernels, "numerics", declared));
    for (size_t i = 0; i < sizeof numerics / sizeof numerics[0]; i++)
        AT_TRY_OUT(write_text_key(&g, declared, numerics[i].key, numerics[i].meaning));
out:
    free(declared);
    at_h5_close(g.scale);
    at_h5_close(g.group);
    return status;
}
