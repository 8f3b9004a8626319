/* attest selftest: the suite's own score. Every mutant must get the state its patch names, and every decoy must count
 * somewhere. With --mechanical: every deleted barrier must be missed, or proved redundant. With --cheats: runners that cheat.
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/program_dir.h"
#include "verify/cli/commands.h"
#include "verify/commands/selftest_cheats.h"
#include "verify/judge/decoys.h"
#include "verify/plan/nearest.h"
#include "verify/run/session.h"

static const struct at_option options[] = {
    { "--mechanical", NULL,
      "instead: each barrier, fence, wait, commit of each CUDA kernel deleted: caught, or proved redundant" },
    { "--cheats", NULL,
      "instead: the runners of tests/cheats, which cheat, must each get the state of its head, and honest ones must "
      "pass" },
    { "--mutants", "GLOB", "only these (family/fault; of deletions family/variant__file_line; of cheats NN_name)" },
    { "--python", "COMMAND", "what runs the cheats: a Python with numpy (default /usr/bin/python3)" },
    { "--jobs", "N", "jobs judged at the same time" },
    { "--all", NULL, "judge each mutant on all of its cases (default: up to the first that kills it)" },
    { "--verbose", NULL, "what each mutant got on each of its cases" },
    { NULL, NULL, NULL },
};

/* One line of mutants.tsv: the patch's own words. Of mechanical.tsv: instead of the state the place of the call that is
 * left out, and at the end the proof that the kernel is right without, or "". */
struct mutant {
    char name[128], of[128], cases[128], fault[256], proof[512];
    char place[128];      /* FILE:LINE; "": a mutant of its own program */
    enum at_state expect; /* of a place: any state that fails, but for ERROR, which the harness can make too */
    int64_t hits, by_state[AT_STATE_COUNT];
    char killed_by[1100]; /* ROLE:CASE, the first that hit */
};

static at_status parse_mutant(char *text, const char *path, int number, struct mutant *m) {
    char *fields[6] = { NULL };
    int n = 0;
    memset(m, 0, sizeof *m);
    text[strcspn(text, "\n")] = 0;
    for (char *rest = text; n < 6 && rest;)
        fields[n++] = strsep(&rest, "\t");
    if (n < 5)
        return AT_FAIL(AT_USAGE, "%s:%d: found %d fields, wanted 5 or 6", path, number, n);
    snprintf(m->name, sizeof m->name, "%s", fields[0]);
    snprintf(m->of, sizeof m->of, "%s", fields[1]);
    snprintf(m->cases, sizeof m->cases, "%s", fields[3]);
    snprintf(m->fault, sizeof m->fault, "%s", fields[4]);
    snprintf(m->proof, sizeof m->proof, "%s", fields[5] ? fields[5] : "");
    if (!strchr(fields[2], ':'))
        return at_state_parse(fields[2], &m->expect);
    snprintf(m->place, sizeof m->place, "%s", fields[2]);
    return AT_OK;
}

/* Wrong kernels are no part of an installation unless they were asked for. */
static at_status find_table(const char *table, char *path, size_t size) {
    char name[32];
    snprintf(name, sizeof name, "%s.tsv", table);
    if (at_program_file(name, path, size))
        return AT_OK;
    if (strcmp(table, "mechanical") == 0)
        return AT_FAIL(AT_ENVIRONMENT,
                       "selftest: %s is not there: `make mechanical` lists every barrier in the source tree", path);
    return AT_FAIL(
        AT_ENVIRONMENT,
        "selftest: %s is not there: the wrong kernels are not installed. In the source tree `make` builds them; "
        "`make install MUTANTS=1` and `make bundle MUTANTS=1` take them along",
        path);
}

/* Of a GLOB that is of no mutant. */
static at_status no_mutant(const char *glob, const struct mutant *list, int n) {
    const char **names = calloc((size_t)n + 1, sizeof *names);
    char near[256] = "";
    for (int i = 0; names && i < n; i++)
        names[i] = list[i].name;
    const int found = names && glob && at_glob_nearest(glob, "/*", names, n, "/_", near, sizeof near);
    free(names);
    return AT_FAIL(AT_NOT_FOUND, "selftest: no mutant matches '%s'%s%s%s", glob ? glob : "*",
                   found ? "; nearest is '" : "", near, found ? "'" : "");
}

static at_status load_mutants(const char *table, const char *glob, struct mutant **list, int *n) {
    char path[4200], text[2048];
    at_status status = AT_OK;
    int kept = 0;
    *list = NULL;
    *n = 0;
    AT_TRY(find_table(table, path, sizeof path));
    FILE *file = fopen(path, "r");
    if (!file)
        return AT_FAIL(AT_IO, "%s: %s", path, strerror(errno));
    for (int number = 1; fgets(text, sizeof text, file); number++) {
        struct mutant m, *grown;
        AT_TRY_OUT(parse_mutant(text, path, number, &m));
        grown = realloc(*list, ((size_t)*n + 1) * sizeof **list);
        if (!grown)
            AT_FAIL_OUT(AT_NO_MEMORY, "no memory for mutants");
        *list = grown;
        (*list)[(*n)++] = m;
    }
    for (int i = 0; i < *n; i++)
        if (!glob || fnmatch(glob, (*list)[i].name, FNM_EXTMATCH) == 0)
            (*list)[kept++] = (*list)[i];
    if (kept == 0)
        AT_TRY_OUT(no_mutant(glob, *list, *n));
    *n = kept;
out:
    fclose(file);
    return status;
}

/* How all mutants are judged. */
struct manner {
    int jobs, all, verbose;
    struct at_case_list cases; /* loaded once: many a mutant takes less time than they do */
};

/* How far a mutant is judged on its cases. */
enum thoroughness {
    ONE_LAUNCH, /* up to the first case that hits; one launch a case, which is a fifth of the work */
    FIRST_HIT,  /* up to the first case that hits, with every later launch */
    ALL_CASES
};

/* Whether a mutant is killed by this result. */
static int hits(const struct at_result *r, const void *mutant) {
    const struct mutant *m = mutant;
    return *m->place ? r->state != AT_STATE_ERROR && at_state_fails(r->state, r->expect, 0) : r->state == m->expect;
}

/* Judges a mutant on these cases. */
static at_status run_mutant(struct mutant *m, const char *cases, const struct manner *manner, enum thoroughness how) {
    struct at_session_options o = at_session_defaults();
    struct at_run_record record;
    const char *globs[1] = { *m->place ? m->of : m->name };
    o.selection.globs = globs;
    o.selection.n_globs = 1;
    o.selection.cases_glob = cases;
    o.selection.loaded = &manner->cases;
    o.runner = *m->place ? "cpu" : "mutants";
    o.jobs = manner->jobs;
    o.quiet = 1;
    o.is_enough = how == ALL_CASES ? NULL : hits;
    o.looked_for = m;
    o.again = how == ONE_LAUNCH ? INT64_MAX : 1;
    if (!*m->place && m->expect == AT_STATE_HUNG)
        o.timeout = 2;
    setenv("AT_ONLY_KERNEL", globs[0], 1); /* to the runner */
    if (*m->place)
        setenv("AT_SIMT_WITHOUT", m->place, 1);
    at_status status = at_session_run(&o, &record);
    unsetenv("AT_SIMT_WITHOUT");
    unsetenv("AT_ONLY_KERNEL");
    if (status == AT_OK && at_session_signal())
        status = AT_FAIL(AT_IO, "interrupted: the lines above are what was tried");
    m->hits = 0;
    memset(m->by_state, 0, sizeof m->by_state);
    for (int64_t i = 0; status == AT_OK && i < record.n; i++) {
        const struct at_result *r = &record.results[i];
        m->by_state[r->state]++;
        if (hits(r, m) && m->hits++ == 0)
            snprintf(m->killed_by, sizeof m->killed_by, "%s:%s", r->role, r->case_id);
        if (manner->verbose)
            printf("    %-12s %s %s: %s\n", at_state_name(r->state), r->tensor, r->case_id, r->cause);
    }
    at_run_record_release(&record);
    return status;
}

/* A glob for this text alone. */
static void literal(const char *text, char *glob, size_t size) {
    size_t n = 0;
    for (; *text && n + 2 < size; text++) {
        if (strchr("*?[]\\+@!()|", *text))
            glob[n++] = '\\';
        glob[n++] = *text;
    }
    glob[n] = 0;
}

/* The killed mutant before number i that is most like it: of the same kernel, or of the same family. */
static const struct mutant *neighbour_of(const struct mutant *list, int i) {
    const size_t family = strcspn(list[i].of, "/") + 1;
    const struct mutant *found = NULL;
    for (int j = i - 1; j >= 0; j--) {
        if (!*list[j].killed_by)
            continue;
        if (strcmp(list[j].of, list[i].of) == 0)
            return &list[j];
        if (!found && strncmp(list[j].of, list[i].of, family) == 0)
            found = &list[j];
    }
    return found;
}

/* A mutant is killed when some case of its own gives it the state its patch names. The first launch mostly does, and what
 * killed its neighbour is the case to begin with. */
static at_status try_mutant(struct mutant *m, const struct mutant *neighbour, const struct manner *manner) {
    if (manner->all)
        return run_mutant(m, m->cases, manner, ALL_CASES);
    if (neighbour && fnmatch(m->cases, neighbour->killed_by, FNM_EXTMATCH) == 0) {
        char glob[2 * sizeof neighbour->killed_by];
        literal(neighbour->killed_by, glob, sizeof glob);
        AT_TRY(run_mutant(m, glob, manner, ONE_LAUNCH));
    }
    if (!m->hits && !*m->proof) /* with a proof nothing is likely to hit: all launches are made, once */
        AT_TRY(run_mutant(m, m->cases, manner, ONE_LAUNCH));
    return m->hits ? AT_OK : run_mutant(m, m->cases, manner, FIRST_HIT);
}

static void states_text(const struct mutant *m, char *text, size_t size) {
    size_t at = 0;
    text[0] = 0;
    for (int s = 0; s < AT_STATE_COUNT && at < size; s++)
        if (m->by_state[s])
            at += (size_t)snprintf(text + at, size - at, "%s%lld %s", at ? ", " : "", (long long)m->by_state[s],
                                   at_state_name((enum at_state)s));
}

/* Which decoys of an operator have counted, the general ones first. */
struct decoy_tally {
    const struct at_op *op;
    int n, general;
    char *counted; /* [n] */
};

/* Whether no decoy of the operator is left that has to count. Notes what the result says of them. */
static int all_have_counted(const struct at_result *r, const void *context) {
    const struct decoy_tally *t = context;
    int left = 0;
    for (int d = 0; d < t->n; d++) {
        t->counted[d] |= strcmp(r->op, t->op->name) == 0 && d < r->n_decoys && r->decoy_fate[d] != AT_DECOY_INERT;
        left += !t->counted[d] && (d >= t->general || at_decoy_applies(t->op, d));
    }
    return left == 0;
}

/* role:FAMILY for the operator's families, of the roles that decoys are counted on. */
static void decoy_cases(const struct at_op *op, char *glob, size_t size) {
    size_t at = (size_t)snprintf(glob, size, "@(smoke|exact|real):@(");
    for (int i = 0, n = 0; i < at_family_count() && at < size; i++)
        if (strcmp(at_family_at(i)->op, op->name) == 0)
            at += (size_t)snprintf(glob + at, size - at, "%s%s", n++ ? "|" : "", at_family_at(i)->name);
    if (at < size)
        snprintf(glob + at, size - at, ") *");
}

/* Every decoy of every operator must count on some case, or it proves nothing: looks at the smoke, exact and real cases
 * with the C baselines, and with the families that have none. What a decoy changes depends on the case, and on the split of
 * a variant, which a baseline has too, or on its blocks of an online softmax, which none has. */
static at_status idle_decoys(const struct at_op *op, const struct manner *manner, int *idle) {
    static const char *globs[] = { "*/00_*", "tensor_core/*", "special_function/*", "softmax_prefill/02_fa2_ex2" };
    struct at_session_options o = at_session_defaults();
    struct at_run_record record;
    struct decoy_tally tally = { .op = op };
    char cases[512];
    decoy_cases(op, cases, sizeof cases);
    while (at_general_decoy(tally.general))
        tally.general++;
    tally.n = tally.general + op->n_decoys;
    tally.counted = calloc((size_t)tally.n, 1);
    if (!tally.counted)
        return AT_FAIL(AT_NO_MEMORY, "no memory for decoys");
    o.selection.globs = globs;
    o.selection.n_globs = (int)(sizeof globs / sizeof *globs);
    o.selection.cases_glob = cases;
    o.selection.loaded = &manner->cases;
    o.jobs = manner->jobs;
    o.quiet = 1;
    o.again = INT64_MAX; /* what counts depends on the values alone */
    o.is_enough = all_have_counted;
    o.looked_for = &tally;
    at_status status = at_session_run(&o, &record);
    if (status == AT_OK && at_session_signal())
        status = AT_FAIL(AT_IO, "interrupted: the lines above are what was tried");
    for (int d = 0; status == AT_OK && d < tally.n; d++)
        if (!tally.counted[d] && (d >= tally.general || at_decoy_applies(op, d))) {
            printf("IDLE      decoy %s of %s never counts on any case\n",
                   d < tally.general ? at_general_decoy(d)->name : op->decoys[d - tally.general].name, op->name);
            ++*idle;
        }
    at_run_record_release(&record);
    free(tally.counted);
    return status;
}

/* `whole`: the list is, and decoys are counted too. */
static at_status score_mutants(struct mutant *list, int n, const struct manner *manner, int whole, int *bad) {
    int survivors = 0, idle = 0;
    for (int i = 0; i < n; i++) {
        struct mutant *m = &list[i];
        char states[256];
        AT_TRY(try_mutant(m, neighbour_of(list, i), manner));
        states_text(m, states, sizeof states);
        printf("%-9s %-44s %-11s %-36s %s\n", m->hits ? "killed" : "SURVIVED", m->name, at_state_name(m->expect),
               states, m->fault);
        fflush(stdout);
        survivors += !m->hits;
    }
    for (int k = 0; whole && k < at_op_count(); k++)
        AT_TRY(idle_decoys(at_op_at(k), manner, &idle));
    printf("%d of %d mutants killed (%.1f %%)%s\n", n - survivors, n, 100.0 * (n - survivors) / n,
           whole && !idle ? "; every decoy counts somewhere" : "");
    *bad = survivors + idle;
    return AT_OK;
}

/* A deletion is caught, or has a proof that the call is redundant; a proof whose deletion is caught is wrong. */
static at_status score_deletions(struct mutant *list, int n, const struct manner *manner, int *bad) {
    int caught = 0, proved = 0;
    for (int i = 0; i < n; i++) {
        struct mutant *m = &list[i];
        const char *fate;
        char states[256];
        AT_TRY(try_mutant(m, neighbour_of(list, i), manner));
        states_text(m, states, sizeof states);
        caught += m->hits != 0;
        proved += !m->hits && *m->proof;
        if (m->hits)
            fate = *m->proof ? "DISPROVED" : "killed";
        else
            fate = *m->proof ? "redundant" : "SURVIVED";
        *bad += !m->hits != (*m->proof != 0);
        printf("%-9s %-62s %-28s %s\n", fate, m->name, states, m->fault);
        if (*m->proof)
            printf("          %s: %s\n", m->hits ? "needed, for all that is said" : "proof", m->proof);
        fflush(stdout);
    }
    printf("%d of %d deletions caught, %d redundant with a proof\n", caught, n, proved);
    return AT_OK;
}

static at_status load_cases(struct at_case_list *cases) {
    char dir[1024];
    snprintf(dir, sizeof dir, "%s/cases", at_datasets_dir());
    return at_case_load_dir(dir, cases);
}

static at_status score_cheats(const struct at_args *args, int *bad) {
    const struct at_cheats_options o = { .glob = at_args_get(args, "--mutants"),
                                         .python = at_args_get(args, "--python"),
                                         .verbose = at_args_has(args, "--verbose") };
    *bad = 0;
    return at_selftest_cheats(&o, bad);
}

static at_status score(const struct at_args *args, int *bad) {
    struct manner manner = { .all = at_args_has(args, "--all"), .verbose = at_args_has(args, "--verbose") };
    struct mutant *list = NULL;
    int n, mechanical = at_args_has(args, "--mechanical");
    int64_t jobs;
    at_status status = AT_OK;
    *bad = 0;
    AT_TRY_OUT(at_args_int(args, "--jobs", 1, 256, at_session_defaults().jobs, &jobs));
    AT_TRY_OUT(load_mutants(mechanical ? "mechanical" : "mutants", at_args_get(args, "--mutants"), &list, &n));
    AT_TRY_OUT(load_cases(&manner.cases));
    manner.jobs = (int)jobs;
    AT_TRY_OUT(mechanical ? score_deletions(list, n, &manner, bad)
                          : score_mutants(list, n, &manner, !at_args_has(args, "--mutants"), bad));
out:
    at_case_list_release(&manner.cases);
    free(list);
    return status;
}

static int run(const struct at_args *args) {
    int bad;
    at_status status = at_args_has(args, "--cheats") ? score_cheats(args, &bad) : score(args, &bad);
    const int code = status != AT_OK ? at_report_failure(status) : bad != 0;
    return at_session_signal() ? 128 + at_session_signal() : code;
}

const struct at_command at_command_selftest = {
    .name = "selftest",
    .synopsis = "selftest [options]",
    .summary = "the suite's own score: every mutant must be killed, every decoy must count",
    .example = "attest selftest --mutants 'asynct_*/*'",
    .options = options,
    .run = run,
};
