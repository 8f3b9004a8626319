/* What a glob that selects nothing was probably meant to be.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/plan/nearest.h"

#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/names.h"

enum { SHORTEST = 3 }; /* letters: less is not a word that can be misspelt */

/* Words that names are made of, each once. */
struct words {
    char **items;
    int n, capacity;
};

static void add_word(struct words *w, const char *text, size_t length) {
    for (int i = 0; i < w->n; i++)
        if (strncmp(w->items[i], text, length) == 0 && w->items[i][length] == 0)
            return;
    if (w->n == w->capacity) {
        const int capacity = w->capacity ? 2 * w->capacity : 64;
        char **grown = realloc(w->items, (size_t)capacity * sizeof *grown);
        if (!grown)
            return;
        w->items = grown;
        w->capacity = capacity;
    }
    if ((w->items[w->n] = strndup(text, length)) != NULL)
        w->n++;
}

static void release_words(struct words *w) {
    for (int i = 0; i < w->n; i++)
        free(w->items[i]);
    free(w->items);
}

static int count_ends(const char *text, size_t length, const char *ends) {
    int n = 0;
    for (size_t i = 0; i < length; i++)
        n += strchr(ends, text[i]) != NULL;
    return n;
}

/* Parts of a name that hold `inner` of its ends: as many as the misspelt text does. */
static void add_parts(struct words *w, const char *name, const char *ends, int inner) {
    for (const char *begin = name; *begin;) {
        const char *end = begin;
        for (int i = 0; i <= inner && *end; i++)
            end += strcspn(end + (i > 0), ends) + (i > 0);
        if (count_ends(begin, (size_t)(end - begin), ends) == inner)
            add_word(w, begin, (size_t)(end - begin));
        begin += strcspn(begin, ends);
        begin += *begin != 0;
    }
}

static int stands_somewhere(const char *text, size_t length, const char *const *names, int64_t n) {
    char part[256];
    snprintf(part, sizeof part, "%.*s", (int)length, text);
    for (int64_t i = 0; i < n; i++)
        if (strstr(names[i], part))
            return 1;
    return 0;
}

static int matches_some(const char *glob, const char *const *names, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (fnmatch(glob, names[i], FNM_EXTMATCH) == 0)
            return 1;
    return 0;
}

/* The glob with its letters [at, at + length) replaced by the nearest part of a name, when it then matches something. */
static int replace(const char *glob, size_t at, size_t length, const char *ends, const char *const *names, int64_t n,
                   char *text, size_t size) {
    char part[256];
    struct words w = { 0 };
    snprintf(part, sizeof part, "%.*s", (int)length, glob + at);
    for (int64_t i = 0; i < n; i++)
        add_parts(&w, names[i], ends, count_ends(part, length, ends));
    for (int i = 0; i < w.n; i++)
        if (strcmp(w.items[i], part) == 0)
            w.items[i][0] = 0; /* itself is no help */
    const char *nearest = at_nearest_name(part, (const char *const *)w.items, w.n);
    if (nearest)
        snprintf(text, size, "%.*s%s%s", (int)at, glob, nearest, glob + at + length);
    const int found = nearest && matches_some(text, names, n);
    release_words(&w);
    if (!found)
        text[0] = 0;
    return found;
}

/* What stands in no name is tried first; then what is but a part of a word there ("smok"). */
static int misspelt(const char *glob, const char *const *names, int64_t n, const char *ends, int anywhere, char *text,
                    size_t size) {
    static const char special[] = "*?[]()|@!+/:";
    for (size_t at = 0, length; glob[at]; at += length ? length : 1) {
        length = strcspn(glob + at, special);
        if (length < SHORTEST || length >= 256 || (!anywhere && stands_somewhere(glob + at, length, names, n)))
            continue;
        if (replace(glob, at, length, ends, names, n, text, size))
            return 1;
    }
    return 0;
}

int at_glob_nearest(const char *glob, const char *more, const char *const *names, int64_t n, const char *ends,
                    char *text, size_t size) {
    char longer[1024];
    const char *whole = at_nearest_name(glob, names, (int)n);
    snprintf(longer, sizeof longer, "%.1000s%s", glob, strchr(glob, more[0]) ? "" : more);
    const int is_glob = strpbrk(glob, "*?[(") != NULL; /* then a glob is more likely meant than one of the names */
    if (matches_some(longer, names, n))
        snprintf(text, size, "%s", longer);
    else if (is_glob && misspelt(longer, names, n, ends, 0, text, size))
        return 1;
    else if (whole)
        snprintf(text, size, "%s", whole);
    else
        return misspelt(longer, names, n, ends, 0, text, size) || misspelt(longer, names, n, ends, 1, text, size);
    return 1;
}

/* ---- variants ---- */

enum { FEW = 5 }; /* variants that an error names */

at_status at_no_variant(const struct at_runner *runner, const char *glob) {
    const int n = at_runner_variant_count(runner);
    char(*names)[192] = calloc((size_t)n + 1, sizeof *names), near[256] = "";
    const char **list = calloc((size_t)n + 1, sizeof *list);
    for (int i = 0; names && list && i < n; i++) {
        const struct at_variant *v = at_runner_variant(runner, i);
        snprintf(names[i], sizeof names[i], "%s/%s", v->family, v->name);
        list[i] = names[i];
    }
    const int found = names && list && at_glob_nearest(glob, "/*", list, n, "/_", near, sizeof near);
    char all[512] = "; `attest list kernels` names all";
    for (int i = 0; names && n <= FEW && i < n; i++) { /* of somebody's own runner */
        const size_t at = i ? strlen(all) : 0;
        snprintf(all + at, sizeof all - at, "%s%s", i ? ", " : "; it has ", names[i]);
    }
    const at_status status =
        AT_FAIL(AT_NOT_FOUND, "no variant of runner %s matches '%s'%s%s%s%s", at_runner_device(runner), glob,
                found ? "; nearest is '" : "", near, found ? "'" : "", all);
    free(list);
    free(names);
    return status;
}

/* ---- cases ---- */

/* Roles in the order of their files, with commas. */
static void list_roles(const struct at_case_list *cases, char *text, size_t size) {
    size_t used = 0;
    text[0] = 0;
    for (int64_t i = 0; i < cases->n && used < size; i++)
        if (i == 0 || strcmp(cases->items[i].role, cases->items[i - 1].role) != 0)
            used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "", cases->items[i].role);
}

at_status at_no_case(const struct at_case_list *cases, const char *glob) {
    char **names = calloc((size_t)cases->n + 1, sizeof *names), near[1200] = "", roles[512];
    at_status status = AT_OK;
    if (!names)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %lld cases", (long long)cases->n);
    for (int64_t i = 0; i < cases->n; i++) {
        const struct at_case *c = &cases->items[i];
        const size_t size = strlen(c->role) + strlen(c->id) + 2;
        names[i] = malloc(size);
        if (!names[i])
            AT_FAIL_OUT(AT_NO_MEMORY, "no memory for %lld cases", (long long)cases->n);
        snprintf(names[i], size, "%s:%s", c->role, c->id);
    }
    const int found = at_glob_nearest(glob, ":*", (const char *const *)names, cases->n, ": ", near, sizeof near);
    list_roles(cases, roles, sizeof roles);
    status = AT_FAIL(AT_NOT_FOUND, "no case matches '%s'%s%.300s%s; wanted a glob for role:id, the roles are %s", glob,
                     found ? "; nearest is '" : "", near, found ? "'" : "", roles);
out:
    for (int64_t i = 0; i < cases->n; i++)
        free(names[i]);
    free(names);
    return status;
}
