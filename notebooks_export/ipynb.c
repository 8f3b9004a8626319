/* The notebook of an archive: a cell that reads it, then cells for what it holds.
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "notebooks_export/export.h"
#include "notebooks_export/notebook.h"
#include "notebooks_export/templates.h"

/* From the folder of the notebook to the archive: both can move together. */
static at_status relative_path(const char *dir, const char *archive, char *path, size_t size) {
    char from[PATH_MAX], to[PATH_MAX];
    size_t common = 0, n = 0;
    if (!realpath(dir, from) || !realpath(archive, to))
        return AT_FAIL(AT_IO, "%s: %s", archive, strerror(errno));
    for (size_t i = 0; from[i] == to[i] && to[i]; i++)
        if (to[i] == '/')
            common = i;
    const size_t whole = strlen(from); /* the folder itself may be what they share */
    if (strncmp(from, to, whole) == 0 && to[whole] == '/')
        common = whole;
    *path = 0;
    for (size_t i = common; from[i]; i++)
        if (from[i] == '/' && from[i + 1])
            n += (size_t)snprintf(path + n, size > n ? size - n : 0, "../");
    n += (size_t)snprintf(path + n, size > n ? size - n : 0, "%s", to + common + (to[common] == '/'));
    return n < size ? AT_OK : AT_FAIL(AT_USAGE, "%s: the path is too long", archive);
}

static at_status add_template(struct at_notebook *notebook, const char *name, const struct at_notebook_words *words) {
    char id[64];
    for (int i = 0; at_templates[i].name; i++)
        if (strcmp(at_templates[i].name, name) == 0) {
            snprintf(id, sizeof id, "%.*s%s%.24s", (int)strcspn(name, "."), name, words->group ? "-" : "",
                     words->group ? words->group : "");
            for (char *at = id; *at; at++) /* nbformat: letters, digits, '-' and '_' */
                if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_", *at))
                    *at = '_';
            return at_notebook_add(notebook, id, at_templates[i].lines, words);
        }
    return AT_FAIL(AT_BUG, "there is no template %s", name);
}

/* Cells for what is there, in the order of the page of HTML. */
static at_status add_content(const struct at_export *e, struct at_notebook *notebook,
                             const struct at_notebook_words *words) {
    static const struct {
        const char *group, *template;
    } known[] = { { "results", "results.py" },
                  { "ledger", "ledger.py" },
                  { "bench", "bench.py" },
                  { "studies/accumulate", "accumulate.py" },
                  { "studies/tensor_core", "tensor_core.py" },
                  { "studies/probes", "probes.py" },
                  { "studies/exp2", "exp2.py" } };
    const size_t n = sizeof known / sizeof *known;
    for (size_t k = 0; k < n; k++) {
        const struct at_frame *frame = at_frame_find(&e->frames, known[k].group);
        if (frame && frame->n)
            AT_TRY(add_template(notebook, known[k].template, words));
    }
    for (int i = 0; i < e->frames.n; i++) {
        const char *group = e->frames.items[i].group;
        int is_known = strncmp(group, "studies/", 8) != 0;
        for (size_t k = 0; k < n && !is_known; k++)
            is_known = strcmp(known[k].group, group) == 0;
        if (is_known)
            continue;
        struct at_notebook_words of_study = *words;
        of_study.group = group + strlen("studies/");
        AT_TRY(add_template(notebook, "study.py", &of_study));
    }
    return e->frames.has_distributions ? add_template(notebook, "distributions.py", words) : AT_OK;
}

/* ---- cells of the caller's own ---- */

static void free_lines(char **lines) {
    for (size_t i = 0; lines && lines[i]; i++)
        free(lines[i]);
    free(lines);
}

static at_status read_lines(const char *path, char ***lines) {
    at_status status = AT_OK;
    FILE *f = fopen(path, "re");
    size_t n = 0, size = 0;
    char *line = NULL;
    *lines = calloc(1, sizeof **lines);
    if (!f)
        AT_FAIL_OUT(errno == ENOENT ? AT_NOT_FOUND : AT_IO, "cannot read %s: %s", path, strerror(errno));
    while (getline(&line, &size, f) >= 0) {
        char **grown = realloc(*lines, (n + 2) * sizeof *grown);
        if (!grown)
            AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory", path);
        *lines = grown;
        line[strcspn(line, "\r\n")] = 0;
        json_t *as_text = json_string(line);
        json_decref(as_text);
        if (!as_text)
            AT_FAIL_OUT(AT_USAGE, "%s:%zu: is no UTF-8", path, n + 1);
        grown[n] = strdup(line);
        if (!grown[n])
            AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory", path);
        grown[++n] = NULL;
    }
    if (ferror(f))
        AT_FAIL_OUT(AT_IO, "cannot read %s: %s", path, strerror(errno));
out:
    if (f)
        fclose(f);
    free(line);
    return status;
}

static at_status add_own_cells(const char *path, struct at_notebook *notebook, const struct at_notebook_words *words) {
    char **lines = NULL;
    at_status status = AT_OK;
    const json_int_t before = (json_int_t)json_array_size(notebook->cells);
    AT_TRY_OUT(read_lines(path, &lines));
    AT_TRY_OUT(at_notebook_add(notebook, "cell", (const char *const *)lines, words));
    if ((json_int_t)json_array_size(notebook->cells) == before)
        AT_FAIL_OUT(AT_USAGE, "%s: no cell; wanted lines \"# %%%%\" or \"# %%%% [markdown]\" before each", path);
out:
    free_lines(lines);
    return status;
}

static at_status write_notebook(struct at_export *e, const struct at_notebook *notebook) {
    struct at_atomic_file file;
    char *text = NULL;
    AT_TRY(at_notebook_text(notebook, &text));
    at_status status = at_export_begin(e, "", "ipynb", &file);
    if (status == AT_OK) {
        fprintf(file.stream, "%s\n", text);
        status = at_export_end(e, &file);
    }
    free(text);
    return status;
}

at_status at_export_ipynb(struct at_export *e) {
    char path[PATH_MAX];
    const struct at_notebook_words words = { .title = e->name, .archive = path };
    struct at_notebook notebook;
    at_status status = AT_OK;
    if (e->cells) /* several notebooks may read one archive */
        at_export_name(e->cells, ".py", e->name, sizeof e->name);
    AT_TRY(relative_path(e->dir, e->archive, path, sizeof path));
    AT_TRY(at_notebook_init(&notebook));
    AT_TRY_OUT(add_template(&notebook, "reader.py", &words));
    if (e->cells)
        AT_TRY_OUT(add_own_cells(e->cells, &notebook, &words));
    else
        AT_TRY_OUT(add_content(e, &notebook, &words));
    AT_TRY_OUT(write_notebook(e, &notebook));
    fprintf(stderr, "the notebook reads %s, from its own folder\n", path);
out:
    at_notebook_release(&notebook);
    return status;
}
