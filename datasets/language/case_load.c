/* Case files: lines with their place, roles from file names, no id twice.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/language/case.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILE_BYTES = 16 << 20 };

/* Items of a list by the hashes of their ids, open addressing. */
struct known {
    int64_t *slots, room; /* index + 1, 0: free; a power of two, more than twice as many as there are items */
};

/* The slot of the item with this one's id, or the free one where it belongs. */
static int64_t *slot_of(const struct known *known, const struct at_case_list *list, const struct at_case *item) {
    int64_t i = (int64_t)(item->hash & (uint64_t)(known->room - 1));
    for (; known->slots[i]; i = (i + 1) & (known->room - 1)) {
        const struct at_case *other = &list->items[known->slots[i] - 1];
        if (other->hash == item->hash && strcmp(other->id, item->id) == 0)
            break;
    }
    return &known->slots[i];
}

static at_status know(struct known *known, const struct at_case_list *list, int64_t n) {
    if (2 * n < known->room)
        return AT_OK;
    free(known->slots);
    known->room = known->room ? known->room : 1024;
    while (known->room <= 4 * n)
        known->room *= 2;
    if (!(known->slots = calloc((size_t)known->room, sizeof *known->slots)))
        return AT_FAIL(AT_NO_MEMORY, "no memory for %lld cases", (long long)n);
    for (int64_t i = 0; i < n; i++)
        *slot_of(known, list, &list->items[i]) = i + 1;
    return AT_OK;
}

/* Forgets each item from `first` on when an item before it has the same id: the same problem once more. */
static at_status drop_known(struct known *known, struct at_case_list *list, int64_t first) {
    int64_t kept = first;
    const int64_t n = list->n;
    for (int64_t i = first; i < n; i++) {
        AT_TRY(know(known, list, kept));
        int64_t *slot = slot_of(known, list, &list->items[i]);
        if (*slot) {
            free(list->items[i].keys);
            list->items[i].keys = NULL;
            continue;
        }
        if (kept != i) {
            list->items[kept] = list->items[i];
            list->items[i].keys = NULL;
        }
        *slot = ++kept;
    }
    list->n = kept;
    return AT_OK;
}

/* "datasets/cases/smoke.cases" -> "smoke". */
static void role_of(const char *path, char *role, size_t size) {
    const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path, *dot = strrchr(base, '.');
    snprintf(role, size, "%.*s", (int)(dot ? dot - base : (ptrdiff_t)strlen(base)), base);
}

static at_status load_lines(FILE *file, const char *path, struct at_case_list *list) {
    char role[32], where[256], *line = NULL;
    struct known known = { 0 };
    size_t capacity = 0;
    ssize_t length;
    at_status status = AT_OK;
    role_of(path, role, sizeof role);
    AT_TRY_OUT(know(&known, list, list->n));
    for (long number = 1; (length = getline(&line, &capacity, file)) >= 0; number++) {
        int64_t before = list->n;
        snprintf(where, sizeof where, "%.230s:%ld", path, number);
        if (memchr(line, 0, (size_t)length))
            AT_FAIL_OUT(AT_USAGE, "%s: found a zero byte, wanted text", where);
        AT_TRY_OUT(at_case_parse(line, role, where, list));
        AT_TRY_OUT(drop_known(&known, list, before));
    }
    if (ferror(file))
        AT_FAIL_OUT(AT_IO, "%s: %s", path, strerror(errno));
out:
    free(known.slots);
    free(line);
    return status;
}

at_status at_case_load(const char *path, struct at_case_list *list) {
    FILE *file = fopen(path, "r");
    if (!file)
        return AT_FAIL(errno == ENOENT ? AT_NOT_FOUND : AT_IO, "%s: %s; wanted a case file", path, strerror(errno));
    struct stat facts;
    at_status status = AT_OK;
    if (fstat(fileno(file), &facts) != 0 || !S_ISREG(facts.st_mode) || facts.st_size > FILE_BYTES)
        AT_FAIL_OUT(AT_USAGE, "%s: wanted a regular file of at most %d bytes", path, (int)FILE_BYTES);
    AT_TRY_OUT(load_lines(file, path, list));
out:
    fclose(file);
    return status;
}

static int is_case_file(const struct dirent *entry) {
    size_t length = strlen(entry->d_name);
    return entry->d_name[0] != '.' && length > 6 && strcmp(entry->d_name + length - 6, ".cases") == 0;
}

/* By bytes, so that the order does not depend on the locale. */
static int by_name(const struct dirent **a, const struct dirent **b) { return strcmp((*a)->d_name, (*b)->d_name); }

at_status at_case_load_dir(const char *dir, struct at_case_list *list) {
    struct dirent **entries = NULL;
    int n = scandir(dir, &entries, is_case_file, by_name);
    if (n < 0)
        return AT_FAIL(errno == ENOENT ? AT_NOT_FOUND : AT_IO, "%s: %s; wanted a folder of case files", dir,
                       strerror(errno));
    at_status status = AT_OK;
    char path[4096];
    if (n == 0)
        AT_FAIL_OUT(AT_NOT_FOUND, "%s: found no file that ends in .cases, wanted at least one", dir);
    for (int i = 0; i < n; i++) {
        snprintf(path, sizeof path, "%s/%s", dir, entries[i]->d_name);
        AT_TRY_OUT(at_case_load(path, list));
    }
out:
    for (int i = 0; i < n; i++)
        free(entries[i]);
    free(entries);
    return status;
}
