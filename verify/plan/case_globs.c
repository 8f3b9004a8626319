/* Reading a selection of cases, and matching with it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/plan/case_globs.h"

#include <ctype.h>
#include <errno.h>
#include <fnmatch.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/names.h"

enum { MAX_BYTES = 1 << 20, MAX_NAMES = 64 };
static const char suffix[] = ".selection";

int at_is_selection(const char *text) { return text[0] == '@' && (islower((unsigned char)text[1]) || !text[1]); }

/* Names the selections of the folder, and the nearest. */
static at_status no_selection(const char *dir, const char *name) {
    char pattern[1100], list[512] = "";
    const char *names[MAX_NAMES];
    int n = 0;
    glob_t found = { 0 };
    snprintf(pattern, sizeof pattern, "%s/*%s", dir, suffix);
    if (glob(pattern, 0, NULL, &found) == 0)
        for (size_t i = 0; i < found.gl_pathc && n < MAX_NAMES; i++) {
            char *stem = strrchr(found.gl_pathv[i], '/') + 1;
            const size_t used = strlen(list);
            stem[strlen(stem) - strlen(suffix)] = 0;
            snprintf(list + used, sizeof list - used, "%s@%s", n ? ", " : "", stem);
            names[n++] = stem;
        }
    const char *nearest = at_nearest_name(name, names, n);
    const at_status status = AT_FAIL(AT_NOT_FOUND, "no selection of cases is called '@%s'%s%s%s; there %s %s in %s",
                                     name, nearest ? "; nearest is '@" : "", nearest ? nearest : "", nearest ? "'" : "",
                                     n == 1 ? "is" : "are", n ? list : "none", dir);
    globfree(&found);
    return status;
}

static at_status read_file(const char *dir, const char *name, struct at_case_globs *globs) {
    snprintf(globs->path, sizeof globs->path, "%s/%s%s", dir, name, suffix);
    FILE *file = strchr(name, '/') ? NULL : fopen(globs->path, "r");
    if (!file)
        return strchr(name, '/') || errno == ENOENT ? no_selection(dir, name)
                                                    : AT_FAIL(AT_IO, "%s: %s", globs->path, strerror(errno));
    const size_t n = fread(globs->memory, 1, MAX_BYTES, file);
    const int failed = ferror(file);
    fclose(file);
    globs->memory[n] = 0;
    if (failed || n == MAX_BYTES || strlen(globs->memory) != n)
        return AT_FAIL(AT_USAGE, "%s: wanted a text of at most %d bytes", globs->path, MAX_BYTES);
    return AT_OK;
}

/* The line without its comment and the spaces around it. */
static char *trimmed(char *line) {
    char *at = line;
    while (*at == ' ' || *at == '\t')
        at++;
    for (char *c = at; *c; c++)
        if (*c == '#' && (c == at || c[-1] == ' ' || c[-1] == '\t'))
            *c = 0;
    for (size_t n = strlen(at); n > 0 && isspace((unsigned char)at[n - 1]); n--)
        at[n - 1] = 0;
    return at;
}

static at_status add(struct at_case_globs *globs, const char *only, const char *text, int line) {
    struct at_case_glob *grown = realloc(globs->items, ((size_t)globs->n + 1) * sizeof *grown);
    if (!grown)
        return AT_FAIL(AT_NO_MEMORY, "no memory for globs of cases");
    globs->items = grown;
    grown[globs->n++] = (struct at_case_glob){ .text = text, .only = only, .line = line };
    return AT_OK;
}

/* `only VARIANTS CASES`: globs for family/variant, which has no space, and role:id, which has. */
static at_status add_only(struct at_case_globs *globs, char *text, int line) {
    char *only = text + strspn(text, " \t"), *end = only + strcspn(only, " \t"), *cases = end + strspn(end, " \t");
    const char *slash = strchr(only, '/');
    if (!*cases || !slash || slash > end)
        return AT_FAIL(AT_USAGE, "%s:%d: found 'only %.60s', wanted only FAMILY/VARIANT CASES, a glob each",
                       globs->path, line, only);
    *end = 0;
    return add(globs, only, cases, line);
}

/* `random N SEED`; its cases are selected by their role. */
static at_status add_line(struct at_case_globs *globs, char *text, int line) {
    long long n, seed;
    int used = 0;
    if (strncmp(text, "only", 4) == 0 && (!text[4] || isspace((unsigned char)text[4])))
        return add_only(globs, text + 4, line);
    if (strncmp(text, "random ", 7) != 0)
        return add(globs, NULL, text, line);
    if (sscanf(text, "random %lld %lld%n", &n, &seed, &used) != 2 || text[used] || n < 1 || n > 10000000 || seed < 0 ||
        globs->random)
        return AT_FAIL(AT_USAGE, "%s:%d: found '%.60s', wanted one line random N SEED", globs->path, line, text);
    globs->random = n;
    globs->random_seed = (uint64_t)seed;
    return add(globs, NULL, "random:*", line);
}

at_status at_case_globs_open(const char *dir, const char *text, struct at_case_globs *globs) {
    at_status status = AT_OK;
    memset(globs, 0, sizeof *globs);
    if (!at_is_selection(text))
        return add(globs, NULL, text, 0);
    globs->memory = malloc(MAX_BYTES + 1);
    if (!globs->memory)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for a selection of cases");
    AT_TRY_OUT(read_file(dir, text + 1, globs));
    int number = 0;
    for (char *rest = globs->memory, *line; (line = strsep(&rest, "\n")) != NULL;) {
        number++;
        line = trimmed(line);
        if (*line)
            AT_TRY_OUT(add_line(globs, line, number));
    }
    int selects = 0;
    for (int i = 0; i < globs->n; i++)
        selects |= !globs->items[i].only;
    if (!selects)
        AT_FAIL_OUT(AT_USAGE, "%s: selects nothing, wanted a glob for role:id a line", globs->path);
out:
    if (status != AT_OK)
        at_case_globs_close(globs);
    return status;
}

int at_case_globs_match(struct at_case_globs *globs, const char *name) {
    int matched = 0;
    for (int i = 0; i < globs->n; i++) {
        struct at_case_glob *glob = &globs->items[i];
        glob->is_here = fnmatch(glob->text, name, FNM_EXTMATCH) == 0;
        glob->hits += glob->is_here;
        matched |= glob->is_here && !glob->only;
    }
    return matched;
}

int at_case_globs_restrict(const struct at_case_globs *globs) {
    for (int i = 0; i < globs->n; i++)
        if (globs->items[i].only && globs->items[i].is_here)
            return 1;
    return 0;
}

int at_case_globs_allow(struct at_case_globs *globs, const char *variant) {
    int allowed = 0;
    for (int i = 0; i < globs->n; i++) {
        struct at_case_glob *glob = &globs->items[i];
        if (glob->only && glob->is_here && fnmatch(glob->only, variant, FNM_EXTMATCH) == 0) {
            glob->variants++;
            allowed = 1;
        }
    }
    return allowed;
}

void at_case_globs_close(struct at_case_globs *globs) {
    free(globs->items);
    free(globs->memory);
    memset(globs, 0, sizeof *globs);
}
