/* Reading sources and their marks.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/coverage/source.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char mark[] = "/* not reached:";

at_status at_cover_source_open(const char *tree, const char *path, struct at_cover_source *s) {
    char full[4096];
    at_status status = AT_OK;
    size_t n = 0, room = 0;
    *s = (struct at_cover_source){ 0 };
    snprintf(full, sizeof full, "%s/%s", tree, path);
    FILE *file = fopen(full, "re");
    if (!file || getdelim(&s->text, &room, 0, file) < 0)
        AT_FAIL_OUT(AT_ENVIRONMENT, "cannot read %s: %s", full, strerror(errno));
    for (const char *c = s->text; *c; c++)
        n += *c == '\n';
    if (!(s->lines = calloc(n + 1, sizeof *s->lines)))
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for the lines of %s", full);
    for (char *c = s->text; *c; s->n++) {
        s->lines[s->n] = c;
        c += strcspn(c, "\n");
        if (*c)
            *c++ = 0;
    }
out:
    if (file)
        fclose(file);
    if (status != AT_OK)
        at_cover_source_close(s);
    return status;
}

void at_cover_source_close(struct at_cover_source *s) {
    free(s->lines);
    free(s->text);
    *s = (struct at_cover_source){ 0 };
}

/* ---- lambdas ---- */

/* A place in the text. Comments and strings do not hold brackets here: clang-format and the kernels' style see to it. */
struct cursor {
    const struct at_cover_source *source;
    int line; /* index; source->n past the end */
    const char *at;
};

static int next(struct cursor *c) {
    while (c->line < c->source->n && !*c->at)
        c->at = ++c->line < c->source->n ? c->source->lines[c->line] : c->at;
    return c->line < c->source->n ? *c->at++ : 0;
}

/* Goes behind what closes the bracket that has just been read. */
static void close_bracket(struct cursor *c, int open, int close) {
    for (int depth = 1, k; depth > 0 && (k = next(c)) != 0;)
        depth += (k == open) - (k == close);
}

int at_cover_lambda_end(const struct at_cover_source *s, int line, int column) {
    if (line < 1 || line > s->n || column < 1 || column > (int)strlen(s->lines[line - 1]))
        return line;
    struct cursor c = { s, line - 1, s->lines[line - 1] + column - 1 };
    int k;
    if (next(&c) != '[')
        return line;
    close_bracket(&c, '[', ']');
    while ((k = next(&c)) != 0 && k != '{')
        continue;
    close_bracket(&c, '{', '}');
    return c.line + 1;
}

/* ---- marks ---- */

/* The words of the comment whose first line begins at `from`, in one line; *last = the index of the line that it ends in. */
static at_status words_of(const struct at_cover_source *s, const char *path, int line, const char *from, char **words,
                          int *last) {
    size_t n = 0;
    int end = line;
    while (end < s->n && !strstr(end == line ? from : s->lines[end], "*/"))
        n += strlen(s->lines[end++]);
    if (end == s->n)
        return AT_FAIL(AT_USAGE, "%s:%d: the comment has no end", path, line + 1);
    char *to = *words = calloc(n + strlen(s->lines[end]) + 2, 1);
    if (!to)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a comment");
    for (int i = line; i <= end; i++) {
        const char *c = i == line ? from : s->lines[i] + strspn(s->lines[i], " *");
        const char *stop = strstr(i == line ? from : s->lines[i], "*/");
        for (c += strspn(c, " "); *c && c < (stop ? stop : c + 1); c++)
            *to++ = *c;
        *to++ = ' ';
    }
    while (to > *words && to[-1] == ' ')
        *--to = 0;
    *last = end;
    if (!**words)
        return AT_FAIL(AT_USAGE, "%s:%d: the comment gives no reason, wanted %s REASON */", path, line + 1, mark);
    return AT_OK;
}

at_status at_cover_mark(const struct at_cover_source *s, int is_whole, struct at_cover_file *file) {
    at_status status = AT_OK;
    for (int i = 0; i < s->n; i++) {
        const char *found = strstr(s->lines[i], mark);
        char *words = NULL;
        int last = i;
        if (!found)
            continue;
        status = words_of(s, file->path, i, found + sizeof mark - 1, &words, &last);
        const int alone = s->lines[i] + strspn(s->lines[i], " ") == found, of = alone ? last + 1 : i;
        const int is_code = of < file->n && file->lines[of].is_code;
        if (status == AT_OK && !is_code && !is_whole) { /* the selected variants have no instance of it */
            free(words);
            continue;
        }
        if (status == AT_OK && (!is_code || file->lines[of].reason))
            status = AT_FAIL(AT_USAGE, "%s:%d: the mark is of line %d, which has no code or a mark already", file->path,
                             i + 1, of + 1);
        if (status != AT_OK) {
            free(words);
            return status;
        }
        file->lines[of].reason = words;
    }
    return AT_OK;
}
