/* Finds the counters of a variant among those of the program and writes them as gcov reads them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/runner/coverage.h"

#include "attest/status.h"

#include <gcov.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* -fprofile-info-section=at_coverage: what the compiler kept of each object; the linker names the ends. */
extern const struct gcov_info *const __start_at_coverage[], *const __stop_at_coverage[];

struct counters {
    char name[192]; /* "/kernels/FAMILY/NN_idea.gcda" */
    int found;
    FILE *file; /* NULL while looking */
};

static void see_name(const char *name, void *context) {
    struct counters *c = context;
    const size_t n = name ? strlen(name) : 0, wanted = strlen(c->name);
    c->found = n >= wanted && strcmp(name + n - wanted, c->name) == 0;
}

static void put(const void *bytes, unsigned n, void *context) {
    const struct counters *c = context;
    if (c->file)
        fwrite(bytes, 1, n, c->file);
}

static void *allocate(unsigned n, void *context) {
    (void)context;
    return malloc(n);
}

static const struct gcov_info *find(struct counters *c) {
    for (const struct gcov_info *const *info = __start_at_coverage; info < __stop_at_coverage; info++) {
        __gcov_info_to_gcda(*info, see_name, put, allocate, c);
        if (c->found)
            return *info;
    }
    return NULL;
}

static void fail(const char *what, const char *name) {
    fprintf(stderr, "attest-cpu-coverage: %s %s\n", what, name);
    exit(at_status_exit_code(AT_ENVIRONMENT));
}

void at_coverage_write(const struct at_kernel_entry *entry) {
    static const struct at_kernel_entry *last;
    static const struct gcov_info *info;
    const char *folder = getenv("AT_COVERAGE_DIR");
    struct counters c = { .name = "" };
    char path[4096];
    if (!folder)
        return;
    snprintf(c.name, sizeof c.name, "/kernels/%s/%s.gcda", entry->family, entry->name);
    if (entry != last && !(info = find(&c)))
        fail("no counters of", c.name);
    last = entry;
    snprintf(path, sizeof path, "%s/%s+%s+%ld.gcda", folder, entry->family, entry->name, (long)getpid());
    c.file = fopen(path, "wbe");
    if (!c.file)
        fail("cannot write", path);
    __gcov_info_to_gcda(info, see_name, put, allocate, &c);
    if (ferror(c.file) | fclose(c.file))
        fail("cannot write", path);
}
