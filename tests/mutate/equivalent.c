/* Reads the list of equivalent mutants and keeps it honest: each line fits one place of the sources.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/mutate/equivalent.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/mutate/source.h"

/* Runs of white space become one space; none stays at either end. */
static void squeeze(char *text) {
    char *to = text;
    for (const char *from = text; *from; from++) {
        if (!isspace((unsigned char)*from))
            *to++ = *from;
        else if (to > text && to[-1] != ' ')
            *to++ = ' ';
    }
    if (to > text && to[-1] == ' ')
        to--;
    *to = 0;
}

/* Does the source from here on begin with a squeezed text? */
static int begins_with(const char *source, const char *text) {
    for (; *text; text++) {
        if (*text == ' ') {
            if (!isspace((unsigned char)*source))
                return 0;
            while (isspace((unsigned char)*source))
                source++;
        } else if (*source++ != *text) {
            return 0;
        }
    }
    return 1;
}

/* The part that ends before `end`, which is skipped; NULL: it is not there. */
static char *part(char **rest, const char *end) {
    char *begin = *rest, *found = strstr(begin, end);
    if (!found)
        return NULL;
    *found = 0;
    *rest = found + strlen(end);
    return begin;
}

static at_status parse(struct equivalent *e, const char *path) {
    char *rest = e->line, *at;
    e->file = part(&rest, " '");
    e->text = e->file ? part(&rest, "' '") : NULL;
    e->old = e->text ? part(&rest, "' -> '") : NULL;
    e->new = e->old ? part(&rest, "' : ") : NULL;
    e->reason = rest;
    if (!e->new || strlen(e->reason) < 10)
        return AT_FAIL(AT_USAGE, "%s:%d: wanted FILE 'text of the source' 'old' -> 'new' : reason", path, e->number);
    squeeze((char *)e->file);
    squeeze((char *)e->text);
    squeeze((char *)e->old);
    squeeze((char *)e->new);
    e->variants = "*";
    if ((at = strchr(e->file, '@')) != NULL) {
        *at = 0;
        e->variants = at + 1;
    }
    return AT_OK;
}

/* The one token of the source at which the text stands. */
static at_status find_place(struct equivalent *e, const char *path) {
    struct source source;
    int found = 0;
    at_status status = source_open(e->file, &source);
    for (int i = 0; status == AT_OK && i < source.n; i++)
        if (begins_with(source.text + source.tokens[i].begin, e->text)) {
            e->site = (int64_t)source.tokens[i].begin;
            found++;
        }
    source_release(&source);
    AT_TRY(status);
    if (found != 1)
        return AT_FAIL(AT_USAGE, "%s:%d: %s has %d places with '%s', wanted one", path, e->number, e->file, found,
                       e->text);
    if (!begins_with(e->text, e->old))
        return AT_FAIL(AT_USAGE, "%s:%d: '%s' does not begin with '%s', which is mutated", path, e->number, e->text,
                       e->old);
    return AT_OK;
}

static at_status add(struct equivalent_list *list, const char *line, int number, const char *path) {
    struct equivalent *grown = realloc(list->items, ((size_t)list->n + 1) * sizeof *grown);
    if (!grown)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %s", path);
    list->items = grown;
    struct equivalent *e = &grown[list->n];
    *e = (struct equivalent){ .line = strdup(line), .number = number };
    if (!e->line)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %s", path);
    list->n++;
    AT_TRY(parse(e, path));
    AT_TRY(find_place(e, path));
    for (int i = 0; i + 1 < list->n; i++) {
        const struct equivalent *b = &list->items[i];
        if (b->site == e->site && strcmp(b->file, e->file) == 0 && strcmp(b->old, e->old) == 0 &&
            strcmp(b->new, e->new) == 0 && strcmp(b->variants, e->variants) == 0)
            return AT_FAIL(AT_USAGE, "%s:%d: the same as line %d", path, number, b->number);
    }
    return AT_OK;
}

at_status equivalents_open(const char *path, struct equivalent_list *list) {
    char *line = NULL;
    size_t capacity = 0;
    at_status status = AT_OK;
    *list = (struct equivalent_list){ 0 };
    FILE *file = fopen(path, "r");
    if (!file)
        return AT_FAIL(AT_IO, "%s: %s", path, strerror(errno));
    for (int number = 1; getline(&line, &capacity, file) >= 0; number++) {
        squeeze(line);
        if (*line && *line != '#')
            AT_TRY_OUT(add(list, line, number, path));
    }
out:
    free(line);
    fclose(file);
    return status;
}

void equivalents_release(struct equivalent_list *list) {
    for (int i = 0; i < list->n; i++)
        free(list->items[i].line);
    free(list->items);
    *list = (struct equivalent_list){ 0 };
}

const struct equivalent *equivalent_find(const struct equivalent_list *list, const char *file, int64_t site,
                                         const char *old, const char *new, const char *variant) {
    for (int i = 0; i < list->n; i++) {
        const struct equivalent *e = &list->items[i];
        if (e->site == site && strcmp(e->file, file) == 0 && strcmp(e->old, old) == 0 && strcmp(e->new, new) == 0 &&
            fnmatch(e->variants, variant, 0) == 0)
            return e;
    }
    return NULL;
}
