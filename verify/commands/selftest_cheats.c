/* Runners that cheat, and honest ones: found in their folder, judged as their heads say, counted.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/commands/selftest_cheats.h"

#include <dirent.h>
#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attest/program_dir.h"
#include "verify/report/report_variants.h"
#include "verify/run/session.h"

enum { TEXT = 512, PATH = PATH_MAX };

/* A file and its head. */
struct cheat {
    char name[128], path[PATH + 256];
    char what[TEXT], kind[TEXT], expect[64], line[TEXT], options[TEXT]; /* line: its case, or a glob of cases */
    int is_honest;
};

/* The folder is part of a source tree, or of an installation that took the wrong kernels along. */
static at_status find_folder(char path[PATH]) {
    char found[PATH + 32];
    if (!at_program_file("cheats", found, sizeof found))
        snprintf(found, sizeof found, "%.4000s/../tests/cheats", at_datasets_dir());
    if (realpath(found, path))
        return AT_OK;
    return AT_FAIL(AT_ENVIRONMENT,
                   "selftest: the cheats are not installed: they are in tests/cheats of the source tree, "
                   "and `make install MUTANTS=1` takes them along");
}

static int copy_field(const char *text, const char *key, char *to, size_t size) {
    const size_t n = strlen(key);
    if (strncmp(text, key, n) != 0)
        return 0;
    snprintf(to, size, "%s", text + n + strspn(text + n, " "));
    return 1;
}

/* The first lines of a file, to the end of its docstring: what it does, then `key: value`. */
static at_status read_head(struct cheat *c) {
    char text[TEXT + 64];
    FILE *file = fopen(c->path, "re");
    if (!file)
        return AT_FAIL(AT_IO, "%s: %s", c->path, strerror(errno));
    for (int i = 0; fgets(text, sizeof text, file); i++) {
        text[strcspn(text, "\n")] = 0;
        if (i && strncmp(text, "\"\"\"", 3) == 0)
            break;
        if (i == 0)
            snprintf(c->what, sizeof c->what, "%.*s", (int)sizeof c->what - 1, text + strspn(text, "\""));
        else if (!copy_field(text, "cheat:", c->kind, sizeof c->kind) &&
                 !copy_field(text, "expect:", c->expect, sizeof c->expect) &&
                 !copy_field(text, "case:", c->line, sizeof c->line))
            (void)copy_field(text, "options:", c->options, sizeof c->options);
    }
    fclose(file);
    if (!c->what[0] || !c->kind[0] || !c->expect[0] || !c->line[0])
        return AT_FAIL(AT_USAGE, "%s: its head lacks what it does, cheat:, expect: or case:", c->path);
    c->is_honest = strcmp(c->kind, "honest") == 0;
    return AT_OK;
}

static int by_name(const void *a, const void *b) {
    return strcmp(((const struct cheat *)a)->name, ((const struct cheat *)b)->name);
}

static at_status add(struct cheat **list, int *n, const struct cheat *c) {
    struct cheat *grown = realloc(*list, ((size_t)*n + 1) * sizeof **list);
    if (!grown)
        return AT_FAIL(AT_NO_MEMORY, "no memory for cheats");
    *list = grown;
    (*list)[(*n)++] = *c;
    return AT_OK;
}

/* NN_name.py of the folder. */
static at_status load(const char *folder, const char *glob, struct cheat **list, int *n) {
    DIR *dir = opendir(folder);
    at_status status = AT_OK;
    if (!dir)
        return AT_FAIL(AT_IO, "%s: %s", folder, strerror(errno));
    for (const struct dirent *entry; (entry = readdir(dir));) {
        struct cheat c = { .is_honest = 0 };
        if (fnmatch("[0-9][0-9]_*.py", entry->d_name, 0) != 0)
            continue;
        snprintf(c.name, sizeof c.name, "%.*s", (int)strcspn(entry->d_name, "."), entry->d_name);
        snprintf(c.path, sizeof c.path, "%.*s/%.128s", PATH, folder, entry->d_name);
        if (glob && fnmatch(glob, c.name, FNM_EXTMATCH) != 0)
            continue;
        AT_TRY_OUT(read_head(&c));
        AT_TRY_OUT(add(list, n, &c));
    }
    if (*n)
        qsort(*list, (size_t)*n, sizeof **list, by_name);
out:
    closedir(dir);
    return status;
}

/* The examples for those who write a runner of Python functions: right ones. */
static at_status load_examples(const char *folder, const char *glob, struct cheat **list, int *n) {
    static const struct {
        const char *name, *cases;
    } examples[] = { { "numpy_softmax", "smoke:softmax_*" }, { "numpy_uclip_norm", "smoke:uclip_norm*" } };
    static const char *const places[] = { "../../kernels/runner/python/examples", "../python" };
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        struct cheat c = { .kind = "honest", .expect = "PASS", .is_honest = 1 };
        if (glob && fnmatch(glob, examples[i].name, FNM_EXTMATCH) != 0)
            continue;
        snprintf(c.name, sizeof c.name, "%s", examples[i].name);
        snprintf(c.what, sizeof c.what, "An example of a runner in Python.");
        snprintf(c.line, sizeof c.line, "%s", examples[i].cases);
        for (size_t p = 0; p < sizeof places / sizeof *places; p++) {
            snprintf(c.path, sizeof c.path, "%.*s/%s/%s.py", PATH, folder, places[p], c.name);
            if (access(c.path, R_OK) == 0)
                break;
        }
        AT_TRY(add(list, n, &c));
    }
    return AT_OK;
}

/* 'TEXT' for the shell. */
static int quote(const char *text, char *to, size_t size) {
    size_t n = 0;
    to[n++] = '\'';
    for (; *text && n + 6 < size; text++) {
        if (*text == '\'')
            n += (size_t)snprintf(to + n, size - n, "'\\''");
        else
            to[n++] = *text;
    }
    to[n++] = '\'';
    to[n] = 0;
    return *text == 0;
}

/* Examples do not know where attest_runner.py lies: in the folder above them, or with them. */
static at_status command_of(const struct cheat *c, const char *python, char *command, size_t size) {
    char path[PATH], folders[PATH], quoted[PATH];
    const int n = (int)(strrchr(c->path, '/') - c->path);
    if (snprintf(folders, sizeof folders, "%.*s/..:%.*s", n, c->path, n, c->path) >= (int)sizeof folders ||
        !quote(c->path, path, sizeof path) || !quote(folders, quoted, sizeof quoted) ||
        snprintf(command, size, "PYTHONPATH=%s exec %s %s", quoted, python, path) >= (int)size)
        return AT_FAIL(AT_ENVIRONMENT, "%s: its path is too long for a command", c->path);
    return AT_OK;
}

static const char UNTESTED[] = "UNTESTED";

/* A runner that declines everything is not caught by that. */
static at_status note_untested(void *context, const struct at_untested *untested) {
    struct at_cheat_fate *fate = context;
    if (strcmp(untested->what, UNTESTED) == 0 && fate->untested++ == 0 && !fate->cause[0])
        snprintf(fate->cause, sizeof fate->cause, "%.150s", untested->text);
    return AT_OK;
}

static at_status look_for_untested(const struct at_run_record *record, int strict, struct at_cheat_fate *fate) {
    struct at_tallies tallies;
    at_status status = at_tallies_open(record, strict, &tallies);
    if (status == AT_OK)
        status = at_tallies_untested(&tallies, note_untested, fate);
    at_tallies_release(&tallies);
    return status;
}

static at_status judge(const struct cheat *c, const char *python, const struct at_cheats_options *options,
                       const struct at_sandbox *box, struct at_cheat_fate *fate) {
    static char command[PATH];
    struct at_session_options o = at_session_defaults();
    struct at_run_record record;
    const char *timeout = strstr(c->options, "timeout=");
    AT_TRY(command_of(c, python, command, sizeof command));
    if (strstr(c->options, "bench"))
        return at_cheat_timed(command, c->line, box, strstr(c->options, "strict") != NULL, fate);
    if (fnmatch("*:*", c->line, 0) == 0 && !strchr(c->line, '='))
        o.selection.cases_glob = c->line;
    else
        o.selection.case_line = c->line;
    o.runner = command;
    o.jobs = 1;
    o.quiet = 1;
    o.sandbox = 1;
    o.strict = strstr(c->options, "strict") != NULL;
    o.timeout = timeout ? strtod(timeout + strlen("timeout="), NULL) : 0;
    at_status status = at_session_run(&o, &record);
    if (status == AT_OK && at_session_signal())
        status = AT_FAIL(AT_IO, "interrupted: the lines above are what was tried");
    for (int64_t i = 0; status == AT_OK && i < record.n; i++) {
        const struct at_result *r = &record.results[i];
        fate->n++;
        fate->by_state[r->state]++;
        if (at_state_fails(r->state, r->expect, o.strict) && fate->failed++ == 0)
            snprintf(fate->cause, sizeof fate->cause, "%.150s", r->cause);
        if (options->verbose)
            printf("    %-12s %s %s: %s\n", at_state_name(r->state), r->tensor, r->case_id, r->cause);
    }
    if (status == AT_OK)
        status = look_for_untested(&record, o.strict, fate);
    at_run_record_release(&record);
    return status;
}

/* Some result has one of the states that the head names, or with UNTESTED the run fails though no result does; of an honest one all
 * have, and nothing fails. */
static int has_expected(const struct cheat *c, const struct at_cheat_fate *fate) {
    const int64_t failed = fate->failed + fate->untested;
    int64_t hits = strstr(c->expect, UNTESTED) ? fate->untested : 0;
    for (int s = 0; s < AT_STATE_COUNT; s++) {
        const char *name = at_state_name((enum at_state)s), *at = strstr(c->expect, name);
        if (at)
            hits += fate->by_state[s];
    }
    return c->is_honest ? failed == 0 && hits > 0 : hits > 0 && failed > 0;
}

static void states_text(const struct at_cheat_fate *fate, char *text, size_t size) {
    size_t at = 0;
    text[0] = 0;
    for (int s = 0; s < AT_STATE_COUNT && at < size; s++)
        if (fate->by_state[s])
            at += (size_t)snprintf(text + at, size - at, "%s%lld %s", at ? ", " : "", (long long)fate->by_state[s],
                                   at_state_name((enum at_state)s));
    if (fate->untested && at < size)
        snprintf(text + at, size - at, "%s%lld %s", at ? ", " : "", (long long)fate->untested, UNTESTED);
}

static at_status check_python(const char *python) {
    char command[PATH];
    if (snprintf(command, sizeof command, "%s -c 'import numpy' > /dev/null 2>&1", python) >= (int)sizeof command)
        return AT_FAIL(AT_USAGE, "--python: the command is too long");
    const int code = system(command);
    if (code == -1 || !WIFEXITED(code) || WEXITSTATUS(code) != 0)
        return AT_FAIL(AT_ENVIRONMENT, "selftest --cheats: %s is no Python with numpy; --python COMMAND names another",
                       python);
    return AT_OK;
}

/* Whether that Python has a PyTorch that sees a device; asked once. */
static int has_cuda(const char *python) {
    static int known, has;
    char command[PATH];
    if (known++)
        return has;
    const int n = snprintf(command, sizeof command,
                           "%s -c 'import torch; assert torch.cuda.is_available()' > /dev/null 2>&1", python);
    return has = n < (int)sizeof command && system(command) == 0;
}

/* What its head says it needs and is not to be had here; "": nothing is lacking. */
static void lacking(const struct cheat *c, const char *python, const struct at_sandbox *box, char *text, size_t size) {
    const char *needs = strstr(c->options, "needs=");
    text[0] = 0;
    if (!needs)
        return;
    needs += strlen("needs=");
    const size_t n = strcspn(needs, " ");
    if (strncmp(needs, "cuda", n) == 0 && n == strlen("cuda") && !has_cuda(python))
        snprintf(text, size, "%.200s has no PyTorch that sees a CUDA device", python);
    for (int p = 0; p < AT_PROTECT_COUNT; p++) {
        const char *name = at_protection_name((enum at_protection)p);
        if (strncmp(needs, name, n) == 0 && n == strlen(name) && !at_sandbox_has(box, (enum at_protection)p))
            snprintf(text, size, "this system has no protection of %s", name);
    }
}

at_status at_selftest_cheats(const struct at_cheats_options *options, int *bad) {
    char folder[PATH], states[256], lacks[256];
    struct cheat *list = NULL;
    struct at_sandbox *box = NULL;
    int n = 0, untried = 0, caught = 0, cheats = 0, honest = 0, accused = 0;
    const char *python = options->python                         ? options->python
                         : access("/usr/bin/python3", X_OK) == 0 ? "/usr/bin/python3"
                                                                 : "python3";
    at_status status = AT_OK;
    AT_TRY_OUT(find_folder(folder));
    AT_TRY_OUT(check_python(python));
    AT_TRY_OUT(load(folder, options->glob, &list, &n));
    AT_TRY_OUT(load_examples(folder, options->glob, &list, &n));
    if (n == 0)
        AT_FAIL_OUT(AT_NOT_FOUND, "selftest: no cheat matches '%s'", options->glob);
    AT_TRY_OUT(at_sandbox_open(&box));
    fprintf(stderr, "sandbox: %s\n", at_sandbox_text(box));
    for (int i = 0; i < n; i++) {
        const struct cheat *c = &list[i];
        lacking(c, python, box, lacks, sizeof lacks);
        if (lacks[0]) {
            printf("%-8s %-32s %-14s %s\n", "untried", c->name, c->expect, lacks);
            untried++;
            continue;
        }
        struct at_cheat_fate fate = { .n = 0 };
        status = judge(c, python, options, box, &fate);
        if (status == AT_ENVIRONMENT && !at_session_signal()) { /* one that does not start is no end of the others */
            snprintf(fate.cause, sizeof fate.cause, "%.150s", at_error_message());
            at_error_clear();
            status = AT_OK;
        }
        AT_TRY_OUT(status);
        const int good = has_expected(c, &fate);
        states_text(&fate, states, sizeof states);
        const char *word = c->is_honest ? good ? "right" : "ACCUSED" : good ? "caught" : "MISSED";
        printf("%-8s %-32s %-14s %-26s %s: %s\n", word, c->name, c->expect, states, c->kind, c->what);
        if (!good && fate.cause[0])
            printf("         %s\n", fate.cause);
        fflush(stdout);
        cheats += !c->is_honest;
        caught += !c->is_honest && good;
        honest += c->is_honest;
        accused += c->is_honest && !good;
    }
    if (honest)
        printf("%d of %d honest runners accused\n", accused, honest);
    if (untried)
        printf("%d not tried, for what this system does not have\n", untried);
    printf("%d of %d caught\n", caught, cheats);
    *bad = cheats - caught + accused;
out:
    at_sandbox_close(box);
    free(list);
    return status;
}
