/* Running gcov: which files it is given, what is taken from its JSON.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/coverage/gcov.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attest/program_dir.h"
#include "verify/coverage/source.h"

static const char remedy[] = "`make coverage-runner` builds it, in a tree with sources";

/* ---- what was built ---- */

static at_status take_value(FILE *file, const char *path, const char *key, char *value, size_t size) {
    char line[4096];
    const size_t n = strlen(key);
    if (!fgets(line, sizeof line, file) || strncmp(line, key, n) != 0 || line[n] != '\t' ||
        strcspn(line + n + 1, "\n") >= size)
        return AT_FAIL(AT_ENVIRONMENT, "%s: found no line '%s'; %s", path, key, remedy);
    line[strcspn(line, "\n")] = 0;
    snprintf(value, size, "%s", line + n + 1);
    return AT_OK;
}

at_status at_gcov_open(struct at_gcov *g) {
    char path[4096], source[4096];
    at_status status = AT_OK;
    FILE *file = NULL;
    *g = (struct at_gcov){ .folder = "" };
    snprintf(path, sizeof path, "%s/attest-cpu-coverage.txt", at_program_dir());
    if (!(file = fopen(path, "re")))
        AT_FAIL_OUT(AT_ENVIRONMENT, "coverage: there is no %s; %s", path, remedy);
    AT_TRY_OUT(take_value(file, path, "tree", g->tree, sizeof g->tree));
    AT_TRY_OUT(take_value(file, path, "notes", g->notes, sizeof g->notes));
    AT_TRY_OUT(take_value(file, path, "gcov", g->gcov, sizeof g->gcov));
    snprintf(source, sizeof source, "%s/kernels", g->tree);
    if (access(source, R_OK) != 0 || access(g->notes, R_OK) != 0)
        AT_FAIL_OUT(AT_ENVIRONMENT, "coverage: the sources of attest-cpu-coverage are gone from %s; %s", g->tree,
                    remedy);
    if (getenv("GCOV"))
        snprintf(g->gcov, sizeof g->gcov, "%s", getenv("GCOV"));
out:
    if (file)
        fclose(file);
    return status;
}

at_status at_gcov_begin(struct at_gcov *g) {
    const char *temp = getenv("TMPDIR");
    snprintf(g->folder, sizeof g->folder, "%s/attest-coverage-XXXXXX", temp && *temp ? temp : "/tmp");
    if (!mkdtemp(g->folder)) {
        const int error = errno;
        g->folder[0] = 0;
        return AT_FAIL(AT_IO, "cannot make a folder for counters: %s", strerror(error));
    }
    return setenv("AT_COVERAGE_DIR", g->folder, 1) == 0 ? AT_OK : AT_FAIL(AT_NO_MEMORY, "no memory for a variable");
}

void at_gcov_close(struct at_gcov *g) {
    DIR *folder = g->folder[0] ? opendir(g->folder) : NULL;
    for (struct dirent *e; folder && (e = readdir(folder)) != NULL;)
        unlinkat(dirfd(folder), e->d_name, 0); /* "." and ".." stay by themselves */
    if (folder)
        closedir(folder);
    if (g->folder[0])
        rmdir(g->folder);
    unsetenv("AT_COVERAGE_DIR");
    g->folder[0] = 0;
}

/* ---- running it ---- */

/* Its standard output as JSON. gcov names what it cannot read on standard error, and goes on. */
static at_status run_gcov(const struct at_gcov *g, const char *counters, json_t **json) {
    int ends[2], state = 0;
    json_error_t error;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return AT_FAIL(AT_ENVIRONMENT, "cannot make a pipe: %s", strerror(errno));
    const pid_t child = fork();
    if (child == 0) {
        const int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(ends[1], STDOUT_FILENO);
        dup2(quiet, STDERR_FILENO);
        execlp(g->gcov, g->gcov, "--json-format", "--stdout", "--branch-probabilities", counters, (char *)NULL);
        _exit(127);
    }
    close(ends[1]);
    FILE *out = child > 0 ? fdopen(ends[0], "r") : NULL;
    *json = out ? json_loadf(out, JSON_DISABLE_EOF_CHECK, &error) : NULL;
    if (out)
        fclose(out);
    else
        close(ends[0]);
    if (child < 0 || waitpid(child, &state, 0) != child)
        return AT_FAIL(AT_ENVIRONMENT, "cannot start %s: %s", g->gcov, strerror(errno));
    if (WIFEXITED(state) && WEXITSTATUS(state) == 127)
        return AT_FAIL(AT_ENVIRONMENT,
                       "coverage: there is no program %s, which reads the counters; it comes with gcc, and "
                       "GCOV=PROGRAM names another",
                       g->gcov);
    if (!*json)
        return AT_FAIL(AT_ENVIRONMENT,
                       "coverage: %s gives no JSON for %s (%s); is it that of the compiler? GCOV=PROGRAM "
                       "names another",
                       g->gcov, counters, error.text);
    return AT_OK;
}

/* ---- its JSON ---- */

static int64_t number(const json_t *object, const char *key) {
    return json_integer_value(json_object_get(object, key));
}

/* Device code: the machine's own headers are not a kernel's. */
static int is_kernel_source(const char *path) {
    return path && strncmp(path, "kernels/", 8) == 0 && strncmp(path, "kernels/simt/", 13) != 0;
}

/* A lambda of a template, of which gcc notes no end: gcov then lists the branches of the lines within one instance after
 * another. */
struct lambda {
    int line, end, instances;
};
struct lambdas {
    int n;
    struct lambda *items; /* owned */
};

static at_status find_lambdas(const struct at_gcov *g, const char *path, const json_t *functions, struct lambdas *l) {
    struct at_cover_source source = { 0 };
    at_status status = AT_OK;
    size_t i;
    const json_t *f;
    int column = 0;
    *l = (struct lambdas){ .items = calloc(json_array_size(functions) + 1, sizeof *l->items) };
    if (!l->items)
        return AT_FAIL(AT_NO_MEMORY, "no memory for the lambdas of %s", path);
    AT_TRY_OUT(at_cover_source_open(g->tree, path, &source));
    json_array_foreach(functions, i, f) { /* instances of one follow each other */
        const int line = (int)number(f, "start_line"), at = (int)number(f, "start_column");
        if (l->n && l->items[l->n - 1].line == line && column == at) {
            l->items[l->n - 1].instances++;
            continue;
        }
        const int end = at_cover_lambda_end(&source, line, at);
        column = at;
        if (end > line && number(f, "end_line") == line)
            l->items[l->n++] = (struct lambda){ line, end, 1 };
        else
            column = 0;
    }
out:
    at_cover_source_close(&source);
    return status;
}

/* How often the branches of a line that belongs to no function by itself are listed. */
static size_t times_listed(const struct lambdas *l, int line) {
    const struct lambda *inner = NULL;
    for (int i = 0; i < l->n; i++)
        if (l->items[i].line < line && line <= l->items[i].end && (!inner || inner->line < l->items[i].line))
            inner = &l->items[i];
    return inner ? (size_t)inner->instances : 1;
}

static at_status add_line(const struct lambdas *lambdas, const json_t *line, struct at_cover_file *file) {
    enum { MAX_BRANCHES = 256 };
    const json_t *branches = json_object_get(line, "branches");
    const int at = (int)number(line, "line_number");
    const size_t listed = json_array_size(branches), times = times_listed(lambdas, at);
    const size_t n = listed % times == 0 ? listed / times : listed; /* else instances differ: then all are wanted */
    int64_t taken[MAX_BRANCHES] = { 0 };
    if (n > MAX_BRANCHES)
        return AT_FAIL(AT_UNSUPPORTED, "%s:%d: %zu branches on a line", file->path, at, n);
    for (size_t i = 0; i < listed; i++)
        taken[i % n] += number(json_array_get(branches, i), "count");
    return at_cover_add_line(file, at, number(line, "count"), taken, (int)n);
}

static at_status add_file(const struct at_gcov *g, const json_t *from, struct at_cover *cover) {
    const char *path = json_string_value(json_object_get(from, "file"));
    size_t i;
    const json_t *item;
    struct lambdas lambdas = { 0 };
    at_status status = AT_OK;
    if (!is_kernel_source(path))
        return AT_OK;
    struct at_cover_file *file = at_cover_file(cover, path);
    if (!file)
        return AT_FAIL(AT_NO_MEMORY, "no memory for the counts of %s", path);
    AT_TRY_OUT(find_lambdas(g, path, json_object_get(from, "functions"), &lambdas));
    json_array_foreach(json_object_get(from, "lines"), i, item) AT_TRY_OUT(add_line(&lambdas, item, file));
    json_array_foreach(json_object_get(from, "functions"), i, item) {
        const char *name = json_string_value(json_object_get(item, "demangled_name"));
        AT_TRY_OUT(at_cover_add_instance(file, name ? name : "?", (int)number(item, "start_line"),
                                         (int)number(item, "start_column"), number(item, "execution_count")));
    }
out:
    free(lambdas.items);
    return status;
}

/* ---- a variant ---- */

static int is_later(struct timespec a, struct timespec b) {
    return a.tv_sec > b.tv_sec || (a.tv_sec == b.tv_sec && a.tv_nsec > b.tv_nsec);
}

/* A source that is newer than the variant's object has other lines than those that were counted. */
static at_status check_age(const struct at_gcov *g, const char *family, const char *variant,
                           const struct at_cover *cover) {
    struct stat of_object, of_source;
    char path[4096];
    snprintf(path, sizeof path, "%s/kernels/%s/%s.o", g->notes, family, variant);
    if (stat(path, &of_object) != 0)
        return AT_FAIL(AT_ENVIRONMENT, "coverage: there is no %s; %s", path, remedy);
    for (int i = 0; i < cover->n; i++) {
        snprintf(path, sizeof path, "%s/%s", g->tree, cover->files[i].path);
        if (stat(path, &of_source) != 0)
            return AT_FAIL(AT_ENVIRONMENT, "coverage: %s: %s; %s", path, strerror(errno), remedy);
        if (is_later(of_source.st_mtim, of_object.st_mtim))
            return AT_FAIL(AT_ENVIRONMENT, "coverage: %s is newer than the runner that counts it; %s", path, remedy);
    }
    return AT_OK;
}

/* One process's counters, named without their suffix; gcov wants the notes beside them. */
static at_status read_counters(const struct at_gcov *g, const char *stem, const char *notes, struct at_cover *cover) {
    char link[4608], counters[4608];
    json_t *json = NULL;
    at_status status = AT_OK;
    size_t i;
    const json_t *file;
    snprintf(link, sizeof link, "%s/%s.gcno", g->folder, stem);
    snprintf(counters, sizeof counters, "%s/%s.gcda", g->folder, stem);
    if (symlink(notes, link) != 0 && errno != EEXIST)
        return AT_FAIL(AT_IO, "cannot make %s: %s", link, strerror(errno));
    AT_TRY_OUT(run_gcov(g, counters, &json));
    json_array_foreach(json_object_get(json, "files"), i, file) AT_TRY_OUT(add_file(g, file, cover));
    if (cover->n == 0)
        AT_FAIL_OUT(AT_ENVIRONMENT,
                    "coverage: %s finds no source in %s; is it that of the compiler? GCOV=PROGRAM names another",
                    g->gcov, notes);
out:
    json_decref(json);
    return status;
}

at_status at_gcov_read(const struct at_gcov *g, const char *family, const char *variant, struct at_cover *cover) {
    char prefix[256], notes[4096];
    at_status status = AT_OK;
    const size_t n = (size_t)snprintf(prefix, sizeof prefix, "%s+%s+", family, variant);
    snprintf(notes, sizeof notes, "%s/kernels/%s/%s.gcno", g->notes, family, variant);
    DIR *folder = opendir(g->folder);
    if (!folder)
        return AT_FAIL(AT_IO, "cannot read %s: %s", g->folder, strerror(errno));
    int found = 0;
    for (struct dirent *e; (e = readdir(folder)) != NULL;) {
        const char *end = strrchr(e->d_name, '.');
        char stem[300];
        if (strncmp(e->d_name, prefix, n) != 0 || !end || strcmp(end, ".gcda") != 0)
            continue;
        snprintf(stem, sizeof stem, "%.*s", (int)(end - e->d_name), e->d_name);
        AT_TRY_OUT(read_counters(g, stem, notes, cover));
        unlinkat(dirfd(folder), e->d_name, 0);
        found = 1;
    }
    if (!found && cover->n == 0) /* never launched: the notes alone say what there is */
        AT_TRY_OUT(read_counters(g, prefix, notes, cover));
    status = check_age(g, family, variant, cover);
out:
    closedir(folder);
    return status;
}
