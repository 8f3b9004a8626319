/* Sites of mutation, by tokens alone: whether a mutant compiles is for the compiler to say.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/mutate/sites.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What an operator can become, by kind. Those that are also unary or the bracket of a template count where white space
 * stands on both sides alone. */
static const struct {
    const char *from;
    enum site_kind kind;
    int spaced;
    const char *to[4];
} operators[] = {
    { "<", SITE_relation, 1, { "<=", ">=", ">" } },
    { "<=", SITE_relation, 0, { "<", ">", "==" } },
    { ">", SITE_relation, 1, { ">=", "<=", "<" } },
    { ">=", SITE_relation, 0, { ">", "<", "==" } },
    { "==", SITE_relation, 0, { "!=", "<=", ">=" } },
    { "!=", SITE_relation, 0, { "==", "<", ">" } },
    { "+", SITE_arithmetic, 1, { "-", "*" } },
    { "-", SITE_arithmetic, 1, { "+", "*" } },
    { "*", SITE_arithmetic, 1, { "/", "+" } },
    { "/", SITE_arithmetic, 1, { "*", "%" } },
    { "%", SITE_arithmetic, 1, { "/", "*" } },
    { "&", SITE_bits, 1, { "|", "^" } },
    { "|", SITE_bits, 1, { "&", "^" } },
    { "^", SITE_bits, 1, { "&", "|" } },
    { "<<", SITE_bits, 1, { ">>" } },
    { ">>", SITE_bits, 1, { "<<" } },
    { "&&", SITE_logic, 1, { "||" } },
    { "||", SITE_logic, 0, { "&&" } },
    { "+=", SITE_assignment, 0, { "-=", "=" } },
    { "-=", SITE_assignment, 0, { "+=", "=" } },
    { "*=", SITE_assignment, 0, { "/=", "=" } },
    { "/=", SITE_assignment, 0, { "*=", "=" } },
    { "%=", SITE_assignment, 0, { "/=", "=" } },
    { "&=", SITE_assignment, 0, { "|=", "=" } },
    { "|=", SITE_assignment, 0, { "&=", "=" } },
    { "^=", SITE_assignment, 0, { "|=", "=" } },
    { "<<=", SITE_assignment, 0, { ">>=", "=" } },
    { ">>=", SITE_assignment, 0, { "<<=", "=" } },
    { "++", SITE_step, 0, { "--" } },
    { "--", SITE_step, 0, { "++" } },
};
enum { N_OPERATORS = sizeof operators / sizeof *operators };

const char *site_kind_name(enum site_kind kind) {
    static const char *const names[] = {
#define X(name, meaning) #name,
        SITE_KIND_LIST(X)
#undef X
    };
    return names[kind];
}

void sites_release(struct site_list *list) {
    for (int i = 0; i < list->n; i++)
        for (int t = 0; t < list->items[i].n; t++)
            free(list->items[i].texts[t]);
    free(list->items);
    memset(list, 0, sizeof *list);
}

/* A site of the tokens first to last, still without texts; NULL when something of it is declared or there is no memory,
 * which the next asprintf finds. */
static struct site *add_site(const struct source *s, struct site_list *list, enum site_kind kind, int first, int last) {
    for (int i = first; i <= last; i++)
        if (s->tokens[i].declared)
            return NULL;
    if (list->n == list->capacity) {
        const int capacity = list->capacity ? 2 * list->capacity : 512;
        struct site *grown = realloc(list->items, (size_t)capacity * sizeof *grown);
        if (!grown)
            return NULL;
        list->items = grown;
        list->capacity = capacity;
    }
    struct site *site = &list->items[list->n++];
    *site = (struct site){
        .kind = kind, .begin = s->tokens[first].begin, .end = s->tokens[last].end, .line = s->tokens[first].line
    };
    return site;
}

__attribute__((format(printf, 2, 3))) static void add_text(struct site *site, const char *format, ...) {
    va_list args;
    if (!site || site->n == SITE_TEXTS)
        return;
    va_start(args, format);
    if (vasprintf(&site->texts[site->n], format, args) >= 0)
        site->n++;
    va_end(args);
}

static int length_of(const struct source *s, int first, int last) {
    return last < first ? 0 : (int)(s->tokens[last].end - s->tokens[first].begin);
}
static const char *text_of(const struct source *s, int i) { return s->text + s->tokens[i].begin; }

static int is_any(const struct source *s, int i, const char *const *texts) {
    for (; *texts; texts++)
        if (token_is(s, i, *texts))
            return 1;
    return 0;
}

static int same_token(const struct source *s, int a, int b) {
    return length_of(s, a, a) == length_of(s, b, b) &&
           memcmp(text_of(s, a), text_of(s, b), (size_t)length_of(s, a, a)) == 0;
}

static void find_operator(const struct source *s, int i, struct site_list *list) {
    for (int o = 0; o < N_OPERATORS; o++) {
        if (!token_is(s, i, operators[o].from) || (operators[o].spaced && !s->tokens[i].spaced) ||
            token_is(s, i - 1, "operator"))
            continue;
        struct site *site = add_site(s, list, operators[o].kind, i, i);
        for (int t = 0; t < 4 && operators[o].to[t]; t++)
            add_text(site, "%s", operators[o].to[t]);
    }
}

/* ---- constants ---- */

static void add_integer(struct site *site, unsigned long long value, int hex, const char *suffix) {
    add_text(site, hex ? "0x%llx%s" : "%llu%s", value, suffix);
}

/* 2x and x / 2 stay exact as f: hexadecimal, as the source has its exact constants. */
static void find_real(struct site *site, const char *text) {
    char *suffix;
    const double value = strtod(text, &suffix);
    if (value == 0) {
        add_text(site, "1.0%s", suffix);
        return;
    }
    add_text(site, "%a%s", 2 * value, suffix);
    add_text(site, "%a%s", value / 2, suffix);
    add_text(site, "0.0%s", suffix);
}

static void find_number(const struct source *s, int i, struct site_list *list) {
    char text[64], *suffix;
    snprintf(text, sizeof text, "%.*s", length_of(s, i, i), text_of(s, i));
    const int hex = text[0] == '0' && tolower(text[1]) == 'x';
    const int real = strchr(text, '.') || strpbrk(text, hex ? "pP" : "eE");
    struct site *site = add_site(s, list, real ? SITE_real : SITE_integer, i, i);
    if (real && site) {
        find_real(site, text);
        return;
    }
    const unsigned long long value = strtoull(text, &suffix, hex ? 16 : 10);
    add_integer(site, value + 1, hex, suffix);
    if (value > 0)
        add_integer(site, value - 1, hex, suffix);
}

/* ---- arguments and indices ---- */

/* The end (last token) of the argument that begins at token i, within the bracket that ends at `close`. */
static int end_of_argument(const struct source *s, int i, int close) {
    while (i < close && !token_is(s, i, ","))
        i = s->tokens[i].partner > i ? s->tokens[i].partner + 1 : i + 1;
    return i - 1;
}

/* `int n`, `const T *p`: a declaration, whose order is not that of a call. `int` alone is a type as well. */
static int declares(const struct source *s, int first, int last) {
    static const char *const types[] = { "const",    "void",   "int",      "int64_t", "uint32_t", "float", "double",
                                         "unsigned", "struct", "typename", "class",   "auto",     "bool",  NULL };
    if (last < first || (is_any(s, first, types) && !token_is(s, first + 1, "(")))
        return 1;
    for (int i = first; i < last; i++)
        if (token_kind_is(s, i, TOKEN_NAME) && token_kind_is(s, i + 1, TOKEN_NAME) && !token_is(s, i, "template") &&
            !token_is(s, i, "sizeof"))
            return 1;
    return 0;
}

/* Commas of `a<b, c>(d)` part what belongs together: as many `<` without spaces as `>` are wanted in an argument. What has
 * a `;` is a block. */
static int whole(const struct source *s, int first, int last) {
    int open = 0;
    for (int i = first; i <= last; i++) {
        open += !s->tokens[i].spaced && (token_is(s, i, "<")    ? 1
                                         : token_is(s, i, ">")  ? -1
                                         : token_is(s, i, ">>") ? -2
                                                                : 0);
        if (token_is(s, i, ";"))
            return 0;
    }
    return open == 0;
}

static int same_text(const struct source *s, int a, int a_end, int b, int b_end) {
    return length_of(s, a, a_end) == length_of(s, b, b_end) &&
           memcmp(text_of(s, a), text_of(s, b), (size_t)length_of(s, a, a_end)) == 0;
}

/* 1: the first two arguments of this function can be exchanged and nothing is changed. */
static int commutes(const struct source *s, int name) {
    static const char *const names[] = { "fminf", "fmaxf", "fmin", "fmax", "min", "max", "fmaf", "fma", NULL };
    return is_any(s, name, names);
}

/* Neighbours among the arguments of a call f(a, b), or of T{ a, b }, which begins at bracket i. */
static void find_arguments(const struct source *s, int i, struct site_list *list) {
    static const char *const words[] = {
        "if", "while", "for", "switch", "return", "sizeof", "alignas", "decltype", NULL
    };
    const int close = s->tokens[i].partner;
    if (token_is(s, close + 1, "{") || token_is(s, close + 1, "const")) /* the parameters of a definition */
        return;
    if (!(token_kind_is(s, i - 1, TOKEN_NAME) || (token_is(s, i - 1, ">") && !s->tokens[i - 1].spaced)) ||
        is_any(s, i - 1, words))
        return;
    for (int first = i + 1, last = end_of_argument(s, first, close); last + 1 < close;) {
        const int next = last + 2, end = end_of_argument(s, next, close);
        if (!(first == i + 1 && commutes(s, i - 1)) && !declares(s, first, last) && !declares(s, next, end) &&
            whole(s, first, last) && whole(s, next, end) && !same_text(s, first, last, next, end)) {
            const char *between = s->text + s->tokens[last].end;
            add_text(add_site(s, list, SITE_swap, first, end), "%.*s%.*s%.*s", length_of(s, next, end),
                     text_of(s, next), (int)(s->tokens[next].begin - s->tokens[last].end), between,
                     length_of(s, first, last), text_of(s, first));
        }
        first = next;
        last = end;
    }
}

/* x[a][b] -> x[b][a]. */
static void find_indices(const struct source *s, int i, struct site_list *list) {
    const int close = s->tokens[i].partner, next = close + 1;
    if (!token_is(s, next, "[") || same_text(s, i, close, next, s->tokens[next].partner) || close == i + 1)
        return;
    const int end = s->tokens[next].partner;
    add_text(add_site(s, list, SITE_swap, i, end), "%.*s%.*s", length_of(s, next, end), text_of(s, next),
             length_of(s, i, close), text_of(s, i));
}

/* ---- conditions ---- */

static void negate(const struct source *s, struct site_list *list, int first, int last) {
    if (first <= last)
        add_text(add_site(s, list, SITE_condition, first, last), "!(%.*s)", length_of(s, first, last),
                 text_of(s, first));
}

static void find_condition(const struct source *s, int i, struct site_list *list) {
    static const char *const ends[] = { "=", ",", ";", "?", ":", "return", "+=", "-=", "*=", "|=", "&=", NULL };
    const int paren = token_is(s, i + 1, "(")                                      ? i + 1
                      : token_is(s, i + 1, "constexpr") && token_is(s, i + 2, "(") ? i + 2
                                                                                   : -1;
    if ((token_is(s, i, "if") || token_is(s, i, "while")) && paren >= 0) {
        negate(s, list, paren + 1, s->tokens[paren].partner - 1);
    } else if (token_is(s, i, "for") && paren >= 0) {
        int parts[2], n = 0;
        for (int k = paren + 1;
             k < s->tokens[paren].partner && n<2; k = s->tokens[k].partner> k ? s->tokens[k].partner : k + 1)
            if (token_is(s, k, ";"))
                parts[n++] = k;
        if (n == 2)
            negate(s, list, parts[0] + 1, parts[1] - 1);
    } else if (token_is(s, i, "?")) {
        int first = i;
        while (first > 0 && !is_any(s, first - 1, ends) &&
               (s->tokens[first - 1].partner < 0 || s->tokens[first - 1].partner < first - 1))
            first = s->tokens[first - 1].partner >= 0 ? s->tokens[first - 1].partner : first - 1;
        negate(s, list, first, i - 1);
    }
}

/* ---- statements ---- */

/* Behind these a statement begins. A `)` may be that of an `if`, and a `:` that of a label. */
static int begins_statement(const struct source *s, int i) {
    static const char *const heads[] = { "if", "for", "while", "constexpr", NULL };
    if (token_is(s, i - 1, ";") || token_is(s, i - 1, "{") || token_is(s, i - 1, "}") || token_is(s, i - 1, "else") ||
        token_is(s, i - 1, "do") || token_is(s, i - 1, "AT_UNROLL"))
        return 1;
    return token_is(s, i - 1, ")") && is_any(s, s->tokens[i - 1].partner - 1, heads);
}

/* The name that a statement begins with, its template arguments, members and indices: the token behind. */
static int skip_place(const struct source *s, int i) {
    for (;; i++) {
        if (token_is(s, i, "<") && !s->tokens[i].spaced) {
            for (int depth = 0; i < s->n; i++) {
                depth += token_is(s, i, "<") ? 1 : token_is(s, i, ">") ? -1 : token_is(s, i, ">>") ? -2 : 0;
                if (depth <= 0)
                    break;
            }
        } else if (token_is(s, i, "[")) {
            i = s->tokens[i].partner;
        } else if (!token_is(s, i, "::") && !token_is(s, i, ".") && !token_is(s, i, "->") &&
                   !token_is(s, i, "template") &&
                   !(token_kind_is(s, i, TOKEN_NAME) && (token_is(s, i - 1, "::") || token_is(s, i - 1, ".") ||
                                                         token_is(s, i - 1, "->") || token_is(s, i - 1, "template")))) {
            return i;
        }
    }
}

static int is_expression(const struct source *s, int i) {
    static const char *const after[] = { "(",  "=",  "+=",  "-=",  "*=", "/=", "%=", "&=",
                                         "|=", "^=", "<<=", ">>=", "++", "--", NULL };
    static const char *const jumps[] = { "break", "continue", NULL };
    static const char *const words[] = { "return",    "if",     "for",       "while",   "do",     "else",
                                         "switch",    "case",   "default",   "goto",    "using",  "static_assert",
                                         "template",  "struct", "class",     "enum",    "union",  "const",
                                         "constexpr", "static", "namespace", "typedef", "public", "private",
                                         NULL };
    if (token_is(s, i, "return") && token_is(s, i + 1, ";"))
        return 1;
    if (is_any(s, i, jumps) || token_is(s, i, "++") || token_is(s, i, "--"))
        return 1;
    if (token_is(s, i, "*"))
        i++;
    return token_kind_is(s, i, TOKEN_NAME) && !is_any(s, i, words) && is_any(s, skip_place(s, i + 1), after);
}

static void find_deletion(const struct source *s, int i, struct site_list *list) {
    if (!begins_statement(s, i) || !is_expression(s, i))
        return;
    int last = i;
    while (last < s->n && !token_is(s, last + 1, ";")) {
        if (token_is(s, last + 1, "}") || token_is(s, last + 1, ")"))
            return; /* no statement: a member of a list, the head of a loop, a definition */
        last = s->tokens[last + 1].partner > last + 1 ? s->tokens[last + 1].partner : last + 1;
        if (token_is(s, last, "}") && !token_is(s, last + 1, ")") && !token_is(s, last + 1, ";") &&
            !token_is(s, last + 1, ","))
            return; /* a function's definition */
    }
    char lines[64] = "";
    const int more = s->tokens[last].line - s->tokens[i].line;
    memset(lines, '\n', more > 0 && more < 60 ? (size_t)more : 0);
    if (more < 60)
        add_text(add_site(s, list, SITE_deletion, i, last), "%s", lines);
}

/* ---- names ---- */

/* The object of `object.member` or `object->member` at token i, the member; -1: it is none. A call is none. */
static int object_of(const struct source *s, int i) {
    if (!token_kind_is(s, i, TOKEN_NAME) || token_is(s, i + 1, "(") ||
        (token_is(s, i + 1, "<") && !s->tokens[i + 1].spaced) ||
        !(token_is(s, i - 1, ".") || token_is(s, i - 1, "->")) || !token_kind_is(s, i - 2, TOKEN_NAME))
        return -1;
    return i - 2;
}

/* Other members of an object of this name in this file. Another type is for the compiler to refuse. */
static void find_member(const struct source *s, int i, struct site_list *list) {
    const int object = object_of(s, i);
    int others[SITE_TEXTS], n = 0;
    for (int k = 0; object >= 0 && k < s->n && n < SITE_TEXTS; k++) {
        const int of = object_of(s, k);
        if (of < 0 || !same_token(s, of, object) || same_token(s, k, i))
            continue;
        int known = 0;
        for (int o = 0; o < n; o++)
            known |= same_token(s, others[o], k);
        if (!known)
            others[n++] = k;
    }
    struct site *site = n ? add_site(s, list, SITE_member, i, i) : NULL;
    for (int o = 0; o < n; o++)
        add_text(site, "%.*s", length_of(s, others[o], others[o]), text_of(s, others[o]));
}

/* fminf(, at_group_max(: the word within a name that is called. */
static void find_extreme(const struct source *s, int i, struct site_list *list) {
    static const char *const words[][2] = { { "min", "max" }, { "max", "min" } };
    static const char *const names[] = { "min", "max", "fmin", "fmax", "fminf", "fmaxf", NULL };
    if (!token_kind_is(s, i, TOKEN_NAME) || !token_is(s, i + 1, "("))
        return;
    for (int w = 0; w < 2; w++) {
        const char *text = text_of(s, i), *end = text + length_of(s, i, i), *found = strstr(text, words[w][0]);
        if (!found || found + 3 > end)
            continue;
        const int part = found > text && found[-1] == '_' && (found + 3 == end || found[3] == '_');
        if (part || is_any(s, i, names))
            add_text(add_site(s, list, SITE_extreme, i, i), "%.*s%s%.*s", (int)(found - text), text, words[w][1],
                     (int)(end - found - 3), found + 3);
    }
}

/* ---- all ---- */

static void drop_empty(struct site_list *list) {
    int n = 0;
    for (int i = 0; i < list->n; i++)
        if (list->items[i].n)
            list->items[n++] = list->items[i];
    list->n = n;
}

at_status sites_find(const struct source *s, struct site_list *list) {
    for (int i = 0; i < s->n; i++) {
        find_deletion(s, i, list);
        find_condition(s, i, list);
        if (s->tokens[i].kind == TOKEN_NUMBER)
            find_number(s, i, list);
        else if (s->tokens[i].kind == TOKEN_NAME)
            find_member(s, i, list), find_extreme(s, i, list);
        else if (token_is(s, i, "(") || token_is(s, i, "{"))
            find_arguments(s, i, list);
        else if (token_is(s, i, "["))
            find_indices(s, i, list);
        else
            find_operator(s, i, list);
    }
    drop_empty(list);
    return AT_OK;
}
