/* Notebooks (nbformat 4.5) from Python files in the percent format.
 * SPDX-License-Identifier: Apache-2.0 */
#include "notebooks_export/notebook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

at_status at_notebook_init(struct at_notebook *notebook) {
    notebook->cells = json_array();
    return notebook->cells ? AT_OK : AT_FAIL(AT_NO_MEMORY, "export: no memory for a notebook");
}

void at_notebook_release(struct at_notebook *notebook) {
    json_decref(notebook->cells);
    notebook->cells = NULL;
}

/* ---- words ---- */

/* The inside of a Python string: what JSON puts between its quotes is one. */
static void put_code_word(FILE *f, const char *word) {
    json_t *string = json_string(word);
    char *quoted = string ? json_dumps(string, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;
    if (quoted)
        fwrite(quoted + 1, 1, strlen(quoted) - 2, f);
    free(quoted);
    json_decref(string);
}

static void put_markdown_word(FILE *f, const char *word) {
    static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_ ./-";
    for (; *word; word++)
        fputc(strchr(fine, *word) ? *word : '?', f);
}

static void put_line(FILE *f, const char *line, int markdown, const struct at_notebook_words *words) {
    const struct {
        const char *mark, *word;
    } marks[] = { { "@TITLE@", words->title }, { "@ARCHIVE@", words->archive }, { "@GROUP@", words->group } };
    while (*line) {
        size_t i = 0;
        while (i < 3 && strncmp(line, marks[i].mark, strlen(marks[i].mark)) != 0)
            i++;
        if (i == 3) {
            fputc(*line++, f);
            continue;
        }
        line += strlen(marks[i].mark);
        if (markdown)
            put_markdown_word(f, marks[i].word ? marks[i].word : "");
        else
            put_code_word(f, marks[i].word ? marks[i].word : "");
    }
}

/* ---- cells ---- */

/* The source of one cell: lines from `first` to before `end`, each with its line end but for the last. */
static json_t *source_of(const char *const *lines, int first, int end, int markdown,
                         const struct at_notebook_words *words) {
    json_t *source = json_array();
    for (int i = first; source && i < end; i++) {
        const char *line = lines[i];
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);
        if (markdown && *line == '#')
            line += line[1] == ' ' ? 2 : 1;
        if (f) {
            put_line(f, line, markdown, words);
            fputs(i + 1 < end ? "\n" : "", f);
        }
        if (!f || fclose(f) != 0 || json_array_append_new(source, json_string(text)) != 0) {
            json_decref(source);
            source = NULL;
        }
        free(text);
    }
    return source;
}

static at_status add_cell(struct at_notebook *notebook, const char *id, int markdown, json_t *source) {
    json_t *cell = json_pack("{s:s, s:s, s:{}, s:o}", "id", id, "cell_type", markdown ? "markdown" : "code", "metadata",
                             "source", source);
    if (cell && !markdown) {
        json_object_set_new(cell, "execution_count", json_null());
        json_object_set_new(cell, "outputs", json_array());
    }
    if (!cell || json_array_append_new(notebook->cells, cell) != 0)
        return AT_FAIL(AT_NO_MEMORY, "export: no memory for a cell");
    return AT_OK;
}

at_status at_notebook_add(struct at_notebook *notebook, const char *id, const char *const *lines,
                          const struct at_notebook_words *words) {
    static const char begin[] = "# %%";
    int number = 0, i = 0;
    char name[64];
    while (lines[i] && strncmp(lines[i], begin, strlen(begin)) != 0)
        i++;
    while (lines[i]) {
        const int markdown = strstr(lines[i], "[markdown]") != NULL, first = i + 1;
        for (i = first; lines[i] && strncmp(lines[i], begin, strlen(begin)) != 0;)
            i++;
        int end = i;
        while (end > first && !*lines[end - 1])
            end--;
        snprintf(name, sizeof name, "%.48s-%d", id, ++number);
        AT_TRY(add_cell(notebook, name, markdown, source_of(lines, first, end, markdown, words)));
    }
    return AT_OK;
}

at_status at_notebook_text(const struct at_notebook *notebook, char **text) {
    json_t *whole = json_pack("{s:O, s:{s:{s:s, s:s, s:s}, s:{s:s}}, s:i, s:i}", "cells", notebook->cells, "metadata",
                              "kernelspec", "display_name", "Python 3", "language", "python", "name", "python3",
                              "language_info", "name", "python", "nbformat", 4, "nbformat_minor", 5);
    *text = whole ? json_dumps(whole, JSON_INDENT(1) | JSON_SORT_KEYS) : NULL;
    json_decref(whole);
    return *text ? AT_OK : AT_FAIL(AT_NO_MEMORY, "export: no memory for a notebook");
}
