/* Reading the declaration of a shared library of kernels.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/runner/so_declaration.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/names.h"

enum { LINE_BYTES = 2048, SUGGESTED = 128 };

struct parser {
    const char *where;
    int line;
    struct at_so_declaration *all;
    struct at_so_variant *at; /* section; NULL before the first */
    char arguments[LINE_BYTES];
};

static const char *suggest(const char *nearest, char *text, size_t size) {
    snprintf(text, size, "%s%s%s", nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
    return text;
}

/* ---- sections ---- */

static at_status unknown_family(const struct parser *p, const char *family) {
    const char *names[256];
    char hint[SUGGESTED];
    int n = 0;
    for (; n < at_family_count() && n < (int)(sizeof names / sizeof *names); n++)
        names[n] = at_family_at(n)->name;
    return AT_FAIL(AT_USAGE, "%s:%d: found family %.60s, wanted one of `attest list families`%s", p->where, p->line,
                   family, suggest(at_nearest_name(family, names, n), hint, sizeof hint));
}

static int is_name(const char *text, size_t size) {
    const size_t n = strlen(text);
    return n > 0 && n < size && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-") == n;
}

/* "[FAMILY/NAME]" */
static at_status begin_section(struct parser *p, char *line) {
    char *end = strchr(line, ']'), *slash = strchr(line, '/');
    if (!end || end[1] || !slash || slash > end)
        return AT_FAIL(AT_USAGE, "%s:%d: found \"%.80s\", wanted [FAMILY/NAME]", p->where, p->line, line);
    if (p->all->n == AT_SO_VARIANTS)
        return AT_FAIL(AT_USAGE, "%s:%d: more than %d variants", p->where, p->line, AT_SO_VARIANTS);
    *end = *slash = 0;
    const char *family = line + 1, *name = slash + 1;
    const struct at_family *known = at_family_find(family);
    if (!known)
        return unknown_family(p, family);
    if (!is_name(name, sizeof p->at->name))
        return AT_FAIL(AT_USAGE, "%s:%d: found the name \"%.100s\", wanted up to 95 letters, digits, _, . and -",
                       p->where, p->line, name);
    for (int i = 0; i < p->all->n; i++)
        if (strcmp(p->all->variants[i].family, family) == 0 && strcmp(p->all->variants[i].name, name) == 0)
            return AT_FAIL(AT_USAGE, "%s:%d: %s/%s is there twice", p->where, p->line, family, name);
    p->at = &p->all->variants[p->all->n++];
    p->at->op = at_op_find(known->op);
    p->at->kernel.numerics = at_numerics_default();
    p->at->kernel.numerics.free_order = 1;
    p->arguments[0] = 0;
    snprintf(p->at->family, sizeof p->at->family, "%s", family);
    snprintf(p->at->name, sizeof p->at->name, "%s", name);
    return AT_OK;
}

/* ---- values ---- */

static at_status set_numerics(struct parser *p, const char *value) {
    at_status status = at_numerics_parse(value, &p->at->kernel.numerics);
    if (status == AT_OK)
        status = at_numerics_check(&p->at->kernel.numerics);
    char why[512];
    snprintf(why, sizeof why, "%s", at_error_message());
    return status == AT_OK ? AT_OK
                           : AT_FAIL(AT_USAGE, "%s:%d: %s/%s: %s", p->where, p->line, p->at->family, p->at->name, why);
}

static at_status set_dtypes(struct parser *p, char *value) {
    char *rest = value;
    p->at->dtypes = 0;
    for (char *word; (word = strtok_r(rest, " \t,", &rest)) != NULL;) {
        enum at_format format;
        char why[256];
        if (at_format_parse(word, &format) != AT_OK) {
            snprintf(why, sizeof why, "%s", at_error_message());
            return AT_FAIL(AT_USAGE, "%s:%d: dtypes: %s", p->where, p->line, why);
        }
        if (!(at_op_dtypes(p->at->op) >> format & 1))
            return AT_FAIL(AT_USAGE, "%s:%d: dtypes: found %s, which %s does not have", p->where, p->line, word,
                           p->at->op->name);
        p->at->dtypes |= 1u << format;
    }
    return AT_OK;
}

/* takes: names of announced parameters of the operator, which become "operator.name,...". */
static at_status set_takes(struct parser *p, char *value) {
    char *rest = value;
    size_t used = 0;
    for (char *word; (word = strtok_r(rest, " \t,", &rest)) != NULL;) {
        const struct at_scalar *field = at_op_scalar(p->at->op, word);
        if (!field || !field->announced)
            return AT_FAIL(AT_USAGE, "%s:%d: takes: found %.60s, wanted a later parameter of %s", p->where, p->line,
                           word, p->at->op->name);
        used += (size_t)snprintf(p->at->takes + used, sizeof p->at->takes - used, "%s%s.%s", used ? "," : "",
                                 p->at->op->name, word);
        if (used >= sizeof p->at->takes)
            return AT_FAIL(AT_USAGE, "%s:%d: takes: too many names", p->where, p->line);
    }
    return AT_OK;
}

static at_status set_text(const struct parser *p, const char *key, const char *value, char *text, size_t size) {
    if (!*value || strlen(value) >= size)
        return AT_FAIL(AT_USAGE, "%s:%d: %s: found %zu bytes, wanted 1 to %zu", p->where, p->line, key, strlen(value),
                       size - 1);
    if (text[0])
        return AT_FAIL(AT_USAGE, "%s:%d: %s is there twice in %s/%s", p->where, p->line, key, p->at->family,
                       p->at->name);
    snprintf(text, size, "%s", value);
    return AT_OK;
}

static at_status set_graph(struct parser *p, const char *value) {
    if (strcmp(value, "0") != 0 && strcmp(value, "1") != 0)
        return AT_FAIL(AT_USAGE, "%s:%d: graph: found \"%.40s\", wanted 0 or 1", p->where, p->line, value);
    p->at->graph = value[0] == '1';
    return AT_OK;
}

static at_status set(struct parser *p, const char *key, char *value) {
    static const char *const keys[] = { "launch", "tvm_ffi",  "arguments", "numerics", "dtypes",
                                        "takes",  "supports", "graph",     "summary" };
    struct at_so_variant *v = p->at;
    char hint[SUGGESTED];
    if (strcmp(key, "launch") == 0)
        return set_text(p, key, value, v->launch, sizeof v->launch);
    if (strcmp(key, "tvm_ffi") == 0)
        return set_text(p, key, value, v->tvm_ffi, sizeof v->tvm_ffi);
    if (strcmp(key, "supports") == 0)
        return set_text(p, key, value, v->supports, sizeof v->supports);
    if (strcmp(key, "summary") == 0)
        return set_text(p, key, value, v->summary, sizeof v->summary);
    if (strcmp(key, "arguments") == 0)
        return set_text(p, key, value, p->arguments, sizeof p->arguments);
    if (strcmp(key, "numerics") == 0)
        return set_numerics(p, value);
    if (strcmp(key, "dtypes") == 0)
        return set_dtypes(p, value);
    if (strcmp(key, "takes") == 0)
        return set_takes(p, value);
    if (strcmp(key, "graph") == 0)
        return set_graph(p, value);
    return AT_FAIL(
        AT_USAGE,
        "%s:%d: found the key %.60s, wanted launch, tvm_ffi, arguments, numerics, dtypes, takes, supports, graph "
        "or summary%s",
        p->where, p->line, key,
        suggest(at_nearest_name(key, keys, (int)(sizeof keys / sizeof *keys)), hint, sizeof hint));
}

/* ---- arguments of a tvm-ffi function ---- */

static at_status unknown_argument(const struct parser *p, const char *word) {
    const char *names[AT_MAX_TENSORS + AT_SHARED_COUNT + 32];
    const int room = (int)(sizeof names / sizeof *names);
    const struct at_op *op = p->at->op;
    const struct at_scalar *field;
    char hint[SUGGESTED];
    int n = 0;
    for (int i = 0; i < op->n_tensors && n < room; i++)
        names[n++] = op->tensors[i].name;
    for (int i = 0; (field = at_op_scalar_at(op, i)) && n < room; i++)
        names[n++] = field->name;
    return AT_FAIL(AT_USAGE, "%s: %s/%s: arguments: found %.60s, wanted tensors, sizes and parameters of %s%s",
                   p->where, p->at->family, p->at->name, word, op->name,
                   suggest(at_nearest_name(word, names, n), hint, sizeof hint));
}

/* A name that is a tensor's and a number's is the tensor. */
static at_status read_arguments(struct parser *p, unsigned *taken) {
    struct at_so_variant *v = p->at;
    char *rest = p->arguments;
    for (char *word; (word = strtok_r(rest, " \t,", &rest)) != NULL;) {
        struct at_so_argument argument = { .tensor = at_op_tensor_index(v->op, word) };
        if (argument.tensor < 0 && !(argument.field = at_op_scalar(v->op, word)))
            return unknown_argument(p, word);
        if (v->n_arguments == AT_SO_ARGUMENTS)
            return AT_FAIL(AT_USAGE, "%s: %s/%s: more than %d arguments", p->where, v->family, v->name,
                           AT_SO_ARGUMENTS);
        if (argument.tensor >= 0)
            *taken |= 1u << argument.tensor;
        v->arguments[v->n_arguments++] = argument;
    }
    return AT_OK;
}

static at_status check_arguments(struct parser *p) {
    struct at_so_variant *v = p->at;
    unsigned taken = 0;
    if (!v->tvm_ffi[0])
        return !p->arguments[0] ? AT_OK
                                : AT_FAIL(AT_USAGE, "%s: %s/%s: found arguments, which a plain launch does not have",
                                          p->where, v->family, v->name);
    AT_TRY(read_arguments(p, &taken));
    for (int i = 0; i < v->op->n_tensors; i++)
        if (v->op->tensors[i].role != AT_IN && !(taken >> i & 1))
            return AT_FAIL(AT_USAGE, "%s: %s/%s: arguments: found no %s, which %s wants written", p->where, v->family,
                           v->name, v->op->tensors[i].name, v->op->name);
    return AT_OK;
}

static at_status end_section(struct parser *p) {
    const struct at_so_variant *v = p->at;
    if (!v)
        return AT_OK;
    if (!v->launch[0] == !v->tvm_ffi[0])
        return AT_FAIL(AT_USAGE, "%s: %s/%s: found %s, wanted launch = SYMBOL or tvm_ffi = NAME", p->where, v->family,
                       v->name, v->launch[0] ? "launch and tvm_ffi" : "no function");
    return check_arguments(p);
}

/* ---- lines ---- */

static char *trim(char *text) {
    while (isspace((unsigned char)*text))
        text++;
    for (size_t n = strlen(text); n && isspace((unsigned char)text[n - 1]);)
        text[--n] = 0;
    return text;
}

static at_status read_line(struct parser *p, char *text) {
    char *line = trim(text);
    if (!*line || *line == '#')
        return AT_OK;
    if (*line == '[') {
        AT_TRY(end_section(p));
        return begin_section(p, line);
    }
    char *equals = strchr(line, '=');
    if (!equals || !p->at)
        return AT_FAIL(AT_USAGE, "%s:%d: found \"%.80s\", wanted %s", p->where, p->line, line,
                       p->at ? "key = value" : "[FAMILY/NAME] first");
    *equals = 0;
    return set(p, trim(line), trim(equals + 1));
}

at_status at_so_declaration_parse(const char *text, const char *where, struct at_so_declaration *declaration) {
    struct parser p = { .where = where, .all = declaration };
    memset(declaration, 0, sizeof *declaration);
    for (size_t n; *text; text += n + (text[n] == '\n')) {
        char line[LINE_BYTES];
        n = strcspn(text, "\n");
        p.line++;
        if (n >= sizeof line)
            return AT_FAIL(AT_USAGE, "%s:%d: a line of %zu bytes, there is room for %zu", where, p.line, n,
                           sizeof line - 1);
        memcpy(line, text, n);
        line[n] = 0;
        AT_TRY(read_line(&p, line));
    }
    AT_TRY(end_section(&p));
    return declaration->n ? AT_OK : AT_FAIL(AT_USAGE, "%s: found no variant, wanted [FAMILY/NAME]", where);
}
