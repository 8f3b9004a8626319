/* Splits a source into tokens, pairs its brackets, marks what it declares.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/mutate/source.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const marks[] = { "<<=", ">>=", "...", "->*", "::", "->", "++", "--", "<<", ">>", "<=", ">=", "==",
                                     "!=",  "&&",  "||",  "+=",  "-=", "*=", "/=", "%=", "&=", "|=", "^=", NULL };

int token_kind_is(const struct source *s, int i, enum token_kind kind) {
    return i >= 0 && i < s->n && s->tokens[i].kind == kind;
}

int token_is(const struct source *s, int i, const char *text) {
    if (i < 0 || i >= s->n || s->tokens[i].kind == TOKEN_TEXT)
        return 0;
    const size_t n = s->tokens[i].end - s->tokens[i].begin;
    return strlen(text) == n && memcmp(s->text + s->tokens[i].begin, text, n) == 0;
}

static at_status read_text(const char *path, struct source *s) {
    FILE *file = fopen(path, "rb");
    if (!file)
        return AT_FAIL(AT_IO, "%s: %s", path, strerror(errno));
    enum { MAX = 4 << 20 };
    s->text = malloc(MAX);
    s->size = s->text ? fread(s->text, 1, MAX - 1, file) : 0;
    fclose(file);
    if (!s->text)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %s", path);
    s->text[s->size] = 0;
    return AT_OK;
}

/* Where the string or character that begins at `at` ends. */
static size_t end_of_text(const struct source *s, size_t at) {
    const char quote = s->text[at++];
    while (at < s->size && s->text[at] != quote)
        at += s->text[at] == '\\' ? 2 : 1;
    return at < s->size ? at + 1 : s->size;
}

static size_t end_of_comment(const struct source *s, size_t at) {
    const char *end = s->text[at + 1] == '*' ? strstr(s->text + at + 2, "*/") : strchr(s->text + at, '\n');
    return end ? (size_t)(end - s->text) + (*end == '*' ? 2 : 0) : s->size;
}

/* A directive with its continued lines; comments within it may have several lines. */
static size_t end_of_directive(const struct source *s, size_t at) {
    for (; at < s->size && s->text[at] != '\n'; at++) {
        if (s->text[at] == '\\')
            at++;
        else if (s->text[at] == '/' && s->text[at + 1] == '*')
            at = end_of_comment(s, at) - 1;
    }
    return at < s->size ? at : s->size;
}

static int is_name(char c) { return isalnum((unsigned char)c) || c == '_'; }

static size_t end_of_number(const struct source *s, size_t at) {
    for (;; at++) {
        const char c = s->text[at], before = at ? (char)tolower(s->text[at - 1]) : 0;
        const int exponent = (c == '+' || c == '-') && (before == 'e' || before == 'p');
        /* 0x1e-3 is a difference: no constant here is written like that, since binary operators have spaces */
        if (!is_name(c) && c != '.' && !exponent)
            return at;
    }
}

static size_t end_of_mark(const struct source *s, size_t at) {
    for (int i = 0; marks[i]; i++)
        if (strncmp(s->text + at, marks[i], strlen(marks[i])) == 0)
            return at + strlen(marks[i]);
    return at + 1;
}

static at_status add_token(struct source *s, int *capacity, struct token token) {
    if (s->n == *capacity) {
        *capacity = *capacity ? 2 * *capacity : 1024;
        struct token *grown = realloc(s->tokens, (size_t)*capacity * sizeof *grown);
        if (!grown)
            return AT_FAIL(AT_NO_MEMORY, "no memory for tokens");
        s->tokens = grown;
    }
    s->tokens[s->n++] = token;
    return AT_OK;
}

static at_status split(struct source *s) {
    int line = 1, capacity = 0, line_begins = 1;
    for (size_t at = 0, end; at < s->size; at = end) {
        const char c = s->text[at], next = s->text[at + 1];
        struct token token = { .begin = at, .line = line, .partner = -1 };
        end = at + 1;
        if (isspace((unsigned char)c)) {
            line_begins |= c == '\n';
            line += c == '\n';
            continue;
        }
        if ((c == '#' && line_begins) || (c == '/' && (next == '*' || next == '/'))) {
            end = c == '#' ? end_of_directive(s, at) : end_of_comment(s, at);
            for (size_t i = at; i < end; i++)
                line += s->text[i] == '\n';
            continue;
        }
        line_begins = 0;
        if (c == '"' || c == '\'') {
            token.kind = TOKEN_TEXT;
            end = end_of_text(s, at);
        } else if (isdigit((unsigned char)c) || (c == '.' && isdigit((unsigned char)next))) {
            token.kind = TOKEN_NUMBER;
            end = end_of_number(s, at);
        } else if (is_name(c)) {
            token.kind = TOKEN_NAME;
            while (is_name(s->text[end]))
                end++;
        } else {
            token.kind = TOKEN_MARK;
            end = end_of_mark(s, at);
        }
        token.end = end;
        token.spaced = at > 0 && isspace((unsigned char)s->text[at - 1]) && isspace((unsigned char)s->text[end]);
        AT_TRY(add_token(s, &capacity, token));
    }
    return AT_OK;
}

/* Round, square and curly brackets; `<` is one only where a template is meant, which tokens do not say. */
static at_status pair(struct source *s) {
    int *open = malloc(((size_t)s->n + 1) * sizeof *open), depth = 0;
    at_status status = AT_OK;
    if (!open)
        return AT_FAIL(AT_NO_MEMORY, "no memory for brackets");
    for (int i = 0; i < s->n; i++) {
        static const char *const pairs[] = { "()", "[]", "{}" };
        const char c = s->tokens[i].kind == TOKEN_MARK ? s->text[s->tokens[i].begin] : 0;
        for (int p = 0; p < 3; p++) {
            if (c == pairs[p][0])
                open[depth++] = i;
            if (c != pairs[p][1])
                continue;
            if (depth == 0 || s->text[s->tokens[open[depth - 1]].begin] != pairs[p][0])
                AT_FAIL_OUT(AT_USAGE, "%s:%d: '%c' closes nothing", s->path, s->tokens[i].line, c);
            s->tokens[i].partner = open[--depth];
            s->tokens[open[depth]].partner = i;
        }
    }
    if (depth)
        AT_FAIL_OUT(AT_USAGE, "%s:%d: a bracket is never closed", s->path, s->tokens[open[depth - 1]].line);
out:
    free(open);
    return status;
}

static void declare(struct source *s, int first, int last) {
    for (int i = first; i >= 0 && i <= last && i < s->n; i++)
        s->tokens[i].declared = 1;
}

static int ends_in(const struct source *s, const struct token *t, const char *tail) {
    const size_t n = strlen(tail);
    return t->end - t->begin >= n && memcmp(s->text + t->end - n, tail, n) == 0;
}

/* "supports", "at_mma_declines", "at_counts_tiles_decline": functions that say which problems a kernel takes. */
static int says_limits(const struct source *s, int i) {
    const struct token *t = &s->tokens[i];
    return t->kind == TOKEN_NAME &&
           (token_is(s, i, "supports") || ends_in(s, t, "declines") || ends_in(s, t, "decline"));
}

/* The first token of the statement or declaration that token i is part of. */
static int statement_begin(const struct source *s, int i) {
    while (i > 0 && !token_is(s, i - 1, ";") && !token_is(s, i - 1, "{") && !token_is(s, i - 1, "}"))
        i = token_is(s, i - 1, ")") || token_is(s, i - 1, "]") ? s->tokens[i - 1].partner : i - 1;
    return i;
}

/* 1 when token i stands in no block but those of namespaces. */
static int outside_functions(const struct source *s, int i) {
    while (--i >= 0) {
        if (token_is(s, i, "}"))
            i = s->tokens[i].partner;
        else if (token_is(s, i, "{") && !token_is(s, i - 1, "namespace") && !token_is(s, i - 2, "namespace"))
            return 0;
    }
    return 1;
}

/* A table of constants: `const T name[] = { ... }` outside functions, `static const` within one. */
static int is_constant_table(const struct source *s, int equals) {
    int constant = 0, fixed = outside_functions(s, equals);
    for (int i = statement_begin(s, equals); i < equals; i++) {
        constant |= token_is(s, i, "const");
        fixed |= token_is(s, i, "static");
    }
    return constant && fixed;
}

static void mark_declarations(struct source *s) {
    for (int i = 0; i + 1 < s->n; i++) {
        const int opens = token_is(s, i + 1, "("), close = opens ? s->tokens[i + 1].partner : -1;
        if (opens && (token_is(s, i, "static_assert") || token_is(s, i, "_Static_assert") ||
                      token_is(s, i, "__launch_bounds__")))
            declare(s, i, close);
        else if (opens && token_is(s, i, "AT_KERNEL") && token_is(s, close + 1, "=") && token_is(s, close + 2, "{"))
            declare(s, i, s->tokens[close + 2].partner);
        else if (opens && says_limits(s, i) && token_is(s, close + 1, "{"))
            declare(s, i, s->tokens[close + 1].partner);
        else if (token_is(s, i, "=") && token_is(s, i + 1, "{") && is_constant_table(s, i))
            declare(s, i, s->tokens[i + 1].partner);
    }
}

at_status source_open(const char *path, struct source *s) {
    memset(s, 0, sizeof *s);
    snprintf(s->path, sizeof s->path, "%s", path);
    AT_TRY(read_text(path, s));
    AT_TRY(split(s));
    AT_TRY(pair(s));
    mark_declarations(s);
    return AT_OK;
}

void source_release(struct source *s) {
    free(s->text);
    free(s->tokens);
    memset(s, 0, sizeof *s);
}
