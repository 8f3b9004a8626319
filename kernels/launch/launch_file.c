/* Reading a launch file: its head, its device code, its expressions.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/launch/launch_file.h"

#include "attest/names.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CODE_MAX = 256 << 20 };

at_status at_field_wrong(const struct at_reader *r, const char *field, const char *format, ...) {
    char what[900];
    va_list list;
    va_start(list, format);
    vsnprintf(what, sizeof what, format, list);
    va_end(list);
    return AT_FAIL(AT_USAGE, "%s: %s: %s", r->plan->path, field, what);
}

at_status at_field_failed(const struct at_reader *r, const char *field) {
    char what[AT_ERROR_MESSAGE_BYTES];
    snprintf(what, sizeof what, "%s", at_error_message());
    return at_field_wrong(r, field, "%s", what);
}

const char *at_json_word(const json_t *value) {
    static const char *const words[] = { "an object", "an array", "a text", "an integer",
                                         "a number",  "true",     "false",  "null" };
    return value ? words[json_typeof(value)] : "nothing";
}

at_status at_field_known(const struct at_reader *r, const char *field, json_t *object, const char *const *names,
                         int n) {
    const char *key;
    json_t *value;
    if (!json_is_object(object))
        return at_field_wrong(r, field[0] ? field : "the file", "is %s, wanted an object", at_json_word(object));
    json_object_foreach(object, key, value) {
        int known = 0;
        for (int i = 0; i < n; i++)
            known |= strcmp(key, names[i]) == 0;
        const char *near = known ? NULL : at_nearest_name(key, names, n);
        char all[400] = "";
        for (int i = 0; i < n; i++)
            snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? " " : "", names[i]);
        if (!known)
            return at_field_wrong(r, field[0] ? field : "the file", "has no field %.60s%s%s; known are %s", key,
                                  near ? "; did you mean " : "", near ? near : "", all);
    }
    return AT_OK;
}

at_status at_field_text(const struct at_reader *r, json_t *object, const char *name, int optional, char *text,
                        size_t size) {
    const json_t *value = json_object_get(object, name);
    text[0] = 0;
    if (!value && optional)
        return AT_OK;
    if (!json_is_string(value))
        return at_field_wrong(r, name, "is %s, wanted a text", at_json_word(value));
    const char *found = json_string_value(value);
    if (strlen(found) >= size || (!found[0] && !optional))
        return at_field_wrong(r, name, "has %zu letters, wanted 1 to %zu", strlen(found), size - 1);
    snprintf(text, size, "%s", found);
    return AT_OK;
}

at_status at_field_expression(const struct at_reader *r, const char *field, const json_t *value,
                              struct at_launch_expression *out) {
    if (json_is_integer(value)) {
        *out = at_launch_expression_number(json_integer_value(value));
        return AT_OK;
    }
    if (!json_is_string(value))
        return at_field_wrong(r, field, "is %s, wanted a whole number or an expression in quotes", at_json_word(value));
    return at_launch_expression_parse(json_string_value(value), &r->plan->scope, out) == AT_OK
               ? AT_OK
               : at_field_failed(r, field);
}

at_status at_field_expressions(const struct at_reader *r, const char *field, const json_t *value, int least, int most,
                               struct at_launch_expression *out, int *n) {
    char item[96];
    if (!json_is_array(value) || (int)json_array_size(value) < least || (int)json_array_size(value) > most)
        return at_field_wrong(r, field, "is %s%s, wanted an array of %d to %d whole numbers or expressions",
                              at_json_word(value), json_is_array(value) ? " of another length" : "", least, most);
    *n = (int)json_array_size(value);
    for (int i = 0; i < *n; i++) {
        snprintf(item, sizeof item, "%.80s[%d]", field, i);
        AT_TRY(at_field_expression(r, item, json_array_get(value, (size_t)i), &out[i]));
    }
    return AT_OK;
}

/* ---- who it is ---- */

static int is_name(const char *text) {
    return text[0] && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") == strlen(text);
}

static at_status read_family(const struct at_reader *r) {
    struct at_plan *plan = r->plan;
    AT_TRY(at_field_text(r, r->root, "family", 0, plan->family, sizeof plan->family));
    const struct at_family *family = at_family_find(plan->family);
    if (family) {
        plan->op = at_op_find(family->op);
        plan->scope.op = plan->op;
        return AT_OK;
    }
    enum { FAMILIES_MAX = 64 };
    const char *names[FAMILIES_MAX];
    int n = 0;
    for (; n < at_family_count() && n < FAMILIES_MAX; n++)
        names[n] = at_family_at(n)->name;
    const char *near = at_nearest_name(plan->family, names, n);
    return at_field_wrong(r, "family", "is \"%s\", wanted a family of kernels%s%s; `attest list operators` has them",
                          plan->family, near ? "; did you mean " : "", near ? near : "");
}

static at_status read_numerics(const struct at_reader *r) {
    char text[640];
    AT_TRY(at_field_text(r, r->root, "numerics", 0, text, sizeof text));
    if (at_numerics_parse(text, &r->plan->numerics) != AT_OK || at_numerics_check(&r->plan->numerics) != AT_OK)
        return at_field_failed(r, "numerics");
    return AT_OK;
}

static at_status read_dtypes(const struct at_reader *r) {
    const json_t *list = json_object_get(r->root, "dtypes");
    const unsigned takes = at_op_dtypes(r->plan->op);
    if (!list)
        return AT_OK;
    if (!json_is_array(list) || json_array_size(list) == 0)
        return at_field_wrong(r, "dtypes", "is %s, wanted an array of formats, [\"f16\", \"bf16\"]",
                              at_json_word(list));
    for (size_t i = 0; i < json_array_size(list); i++) {
        const char *text = json_string_value(json_array_get(list, i));
        enum at_format format;
        if (!text || at_format_parse(text, &format) != AT_OK || !(takes >> format & 1))
            return at_field_wrong(r, "dtypes", "has %s%.40s, wanted formats that activations of %s may have",
                                  text ? "" : at_json_word(json_array_get(list, i)), text ? text : "",
                                  r->plan->op->name);
        r->plan->dtypes |= 1u << format;
    }
    return AT_OK;
}

static at_status read_head(const struct at_reader *r) {
    struct at_plan *plan = r->plan;
    AT_TRY(read_family(r));
    AT_TRY(at_field_text(r, r->root, "name", 0, plan->name, sizeof plan->name));
    if (!is_name(plan->name))
        return at_field_wrong(r, "name", "is \"%s\", wanted letters, digits and _", plan->name);
    AT_TRY(at_field_text(r, r->root, "summary", 1, plan->summary, sizeof plan->summary));
    AT_TRY(at_field_text(r, r->root, "source", 1, plan->source, sizeof plan->source));
    AT_TRY(read_numerics(r));
    return read_dtypes(r);
}

/* ---- device code ---- */

static at_status read_sm(const struct at_reader *r) {
    char text[16], *end = text;
    AT_TRY(at_field_text(r, r->root, "sm", 0, text, sizeof text));
    const long sm = strncmp(text, "sm_", 3) == 0 ? strtol(text + 3, &end, 10) : 0;
    if (sm < 50 || sm > 999 || (*end && ((*end != 'a' && *end != 'f') || end[1])))
        return at_field_wrong(r, "sm", "is \"%s\", wanted an architecture as nvcc says it: sm_90a, sm_80", text);
    r->plan->sm = (int)sm;
    r->plan->sm_class = *end;
    return AT_OK;
}

static at_status read_bytes(const struct at_reader *r, const char *field, FILE *file) {
    struct at_plan *plan = r->plan;
    if (fseek(file, 0, SEEK_END) != 0 || (plan->code_bytes = ftell(file)) < 0 || fseek(file, 0, SEEK_SET) != 0)
        return at_field_wrong(r, field, "%s cannot be read: %s", plan->code_name, strerror(errno));
    if (plan->code_bytes == 0 || plan->code_bytes > CODE_MAX)
        return at_field_wrong(r, field, "%s has %lld bytes, wanted 1 to %d", plan->code_name,
                              (long long)plan->code_bytes, (int)CODE_MAX);
    plan->code = calloc((size_t)plan->code_bytes + 1, 1);
    if (!plan->code)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %s", plan->code_name);
    if (fread(plan->code, 1, (size_t)plan->code_bytes, file) != (size_t)plan->code_bytes)
        return at_field_wrong(r, field, "%s cannot be read: %s", plan->code_name, strerror(errno));
    return AT_OK;
}

static at_status read_code(const struct at_reader *r) {
    struct at_plan *plan = r->plan;
    const int has_cubin = json_object_get(r->root, "cubin") != NULL, has_ptx = json_object_get(r->root, "ptx") != NULL;
    const char *field = has_ptx ? "ptx" : "cubin", *slash = strrchr(plan->path, '/');
    char path[1024];
    if (has_cubin == has_ptx)
        return at_field_wrong(r, "cubin", "there is %s, wanted a cubin or a ptx", has_cubin ? "a ptx, too" : "nothing");
    AT_TRY(read_sm(r));
    AT_TRY(at_field_text(r, r->root, field, 0, plan->code_name, sizeof plan->code_name));
    plan->is_ptx = has_ptx;
    snprintf(path, sizeof path, "%.*s%s", plan->code_name[0] == '/' || !slash ? 0 : (int)(slash - plan->path) + 1,
             plan->path, plan->code_name);
    FILE *file = fopen(path, "rbe");
    if (!file)
        return at_field_wrong(r, field, "%s: %s", path, strerror(errno));
    const at_status status = read_bytes(r, field, file);
    fclose(file);
    AT_TRY(status);
    return at_sha256_file(path, plan->sha256);
}

/* ---- the numbers of all kernels ---- */

/* In the order of the file: each may use those before it. */
static at_status read_named(const struct at_reader *r) {
    struct at_plan *plan = r->plan;
    json_t *all = json_object_get(r->root, "let"), *value;
    const char *name;
    char field[96];
    if (all && !json_is_object(all))
        return at_field_wrong(r, "let", "is %s, wanted an object of names and expressions", at_json_word(all));
    json_object_foreach(all, name, value) {
        snprintf(field, sizeof field, "let.%.60s", name);
        const int n = plan->scope.n;
        if (n == AT_NAMED_MAX)
            return at_field_wrong(r, field, "is one too many, wanted at most %d", (int)AT_NAMED_MAX);
        if (!is_name(name) || (name[0] >= '0' && name[0] <= '9') || strlen(name) >= AT_NAMED_BYTES)
            return at_field_wrong(r, field, "is no name, wanted up to %d letters, digits and _, no digit first",
                                  (int)AT_NAMED_BYTES - 1);
        AT_TRY(at_field_expression(r, field, value, &plan->named[n]));
        snprintf(plan->scope.named[n], AT_NAMED_BYTES, "%s", name);
        plan->scope.n++;
    }
    return AT_OK;
}

static at_status read_numbers(const struct at_reader *r) {
    struct at_plan *plan = r->plan;
    const json_t *needs = json_object_get(r->root, "requires"), *workspace = json_object_get(r->root, "workspace");
    AT_TRY(read_named(r));
    if (needs)
        AT_TRY(at_field_expressions(r, "requires", needs, 0, AT_PLAN_REQUIRES, plan->needs, &plan->n_requires));
    plan->workspace = at_launch_expression_number(0);
    return workspace ? at_field_expression(r, "workspace", workspace, &plan->workspace) : AT_OK;
}

static at_status read_all(struct at_reader *r) {
    static const char *const fields[] = { "family", "name",      "summary",     "source", "cubin",
                                          "ptx",    "sm",        "numerics",    "dtypes", "requires",
                                          "let",    "workspace", "tensor_maps", "kernels" };
    AT_TRY(at_field_known(r, "", r->root, fields, (int)(sizeof fields / sizeof fields[0])));
    AT_TRY(read_head(r));
    AT_TRY(read_code(r));
    AT_TRY(read_numbers(r));
    AT_TRY(at_plan_read_maps(r));
    return at_plan_read_kernels(r);
}

at_status at_plan_read(const char *path, struct at_plan **plan) {
    json_error_t error;
    *plan = calloc(1, sizeof **plan);
    if (!*plan)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %.400s", path);
    if (strlen(path) >= sizeof(*plan)->path)
        return AT_FAIL(AT_USAGE, "%.60s...: the path has %zu letters, wanted at most %zu", path, strlen(path),
                       sizeof(*plan)->path - 1);
    snprintf((*plan)->path, sizeof(*plan)->path, "%s", path);
    struct at_reader r = { .plan = *plan };
    r.root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    if (!r.root && error.line < 0)
        return AT_FAIL(AT_USAGE, "%s: %s", path, error.text);
    if (!r.root)
        return AT_FAIL(AT_USAGE, "%s: line %d, column %d: %s", path, error.line, error.column, error.text);
    const at_status status = read_all(&r);
    json_decref(r.root);
    return status;
}

void at_plan_free(struct at_plan *plan) {
    if (plan)
        free(plan->code);
    free(plan);
}
