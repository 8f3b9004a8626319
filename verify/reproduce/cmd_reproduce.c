/* attest reproduce: the sources' claims beside our figures, from committed measurements or from a run.
 * SPDX-License-Identifier: Apache-2.0 */
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/cli/commands.h"
#include "verify/plan/nearest.h"
#include "verify/reproduce/finding.h"
#include "verify/reproduce/measure.h"

static const struct at_option options[] = {
    { "--claims", "FILE", "the claims (default datasets/bench/claims.txt)" },
    { "--from", "PATH,..", "measurements: archives, or folders of them (default datasets/measurements)" },
    { "--runner", "R", "measure what the claims need: cuda, or a command line that speaks the protocol and times" },
    { "--replays", "N", "with --runner: graph replays, the median counts (default 20)" },
    { "--out", "B.h5", "with --runner: write the archive of the benchmark" },
    { "--json", "F", "write all of it as JSON; -: to stdout instead of the table" },
    { NULL, NULL, NULL },
};

static at_status no_claim(const struct at_claims *claims, const char *glob) {
    const char **names = calloc((size_t)claims->n + 1, sizeof *names);
    char near[256] = "";
    for (int i = 0; names && i < claims->n; i++)
        names[i] = claims->items[i].id;
    const int found = names && at_glob_nearest(glob, "*", names, claims->n, "-", near, sizeof near);
    free(names);
    return AT_FAIL(AT_NOT_FOUND, "reproduce: no claim or section matches '%.100s'%s%s%s", glob,
                   found ? "; nearest is '" : "", near, found ? "'" : "");
}

/* A GLOB is of a claim's id, or of its source and section: '000 6.*'. */
static at_status choose(const struct at_args *args, const struct at_claims *claims, char *chosen) {
    char section[40];
    memset(chosen, args->n_words == 0, (size_t)claims->n);
    for (int g = 0; g < args->n_words; g++) {
        int hits = 0;
        for (int i = 0; i < claims->n; i++) {
            const struct at_claim *c = &claims->items[i];
            snprintf(section, sizeof section, "%s %s", c->source, c->section);
            if (fnmatch(args->words[g], c->id, FNM_EXTMATCH) != 0 &&
                fnmatch(args->words[g], section, FNM_EXTMATCH) != 0)
                continue;
            chosen[i] = 1;
            hits++;
        }
        if (hits == 0)
            return no_claim(claims, args->words[g]);
    }
    return AT_OK;
}

static at_status check_options(const struct at_args *args) {
    const char *out = at_args_get(args, "--out"), *json = at_args_get(args, "--json");
    const char *written[] = { out, json && strcmp(json, "-") != 0 ? json : NULL };
    if (!at_args_get(args, "--runner") && (out || at_args_get(args, "--replays")))
        return AT_FAIL(AT_USAGE, "reproduce: found %s without --runner, which measures", out ? "--out" : "--replays");
    if (at_args_get(args, "--runner") && at_args_get(args, "--from"))
        return AT_FAIL(AT_USAGE, "reproduce: found --from and --runner, wanted measurements of one kind");
    return at_atomic_check_files(written, 2, NULL, 0);
}

static at_status gather(const struct at_args *args, const struct at_claims *claims, const char *chosen,
                        struct at_evidence *evidence) {
    const char *runner = at_args_get(args, "--runner"), *from = at_args_get(args, "--from");
    const char *out = at_args_get(args, "--out");
    struct at_bench_run run = { .rows = NULL };
    char folder[1024];
    int64_t replays;
    AT_TRY(at_args_int(args, "--replays", 1, 100000, 20, &replays));
    snprintf(folder, sizeof folder, "%s/measurements", at_datasets_dir());
    if (!runner)
        return at_evidence_load(from ? from : folder, evidence);
    at_run_record_init(&run.record);
    at_status status = at_claims_measure(claims, chosen, runner, replays, &run);
    if (status == AT_OK && out)
        status = at_bench_run_write(&run, out);
    if (status == AT_OK)
        status = at_evidence_of_run(&run, evidence);
    at_bench_run_release(&run);
    return status;
}

static at_status show(const struct at_args *args, const struct at_finding *findings, int n) {
    const char *json = at_args_get(args, "--json");
    struct at_atomic_file file;
    if (json && strcmp(json, "-") == 0)
        return at_findings_json(findings, n, stdout);
    at_findings_table(findings, n, stdout);
    if (!json)
        return AT_OK;
    AT_TRY(at_atomic_open(json, &file));
    at_status status = at_findings_json(findings, n, file.stream);
    if (status == AT_OK)
        status = at_atomic_commit(&file);
    at_atomic_abandon(&file);
    return status;
}

static at_status reproduce(const struct at_args *args) {
    struct at_claims claims = { 0 };
    struct at_evidence evidence = { 0 };
    struct at_finding *findings = NULL;
    char path[1024], *chosen = NULL;
    int n;
    at_status status = AT_OK;
    snprintf(path, sizeof path, "%s/bench/claims.txt", at_datasets_dir());
    AT_TRY_OUT(check_options(args));
    AT_TRY_OUT(at_claims_load(at_args_get(args, "--claims") ? at_args_get(args, "--claims") : path, &claims));
    chosen = calloc((size_t)claims.n + 1, 1);
    if (!chosen)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for %d claims", claims.n);
    AT_TRY_OUT(choose(args, &claims, chosen));
    AT_TRY_OUT(gather(args, &claims, chosen, &evidence));
    AT_TRY_OUT(at_findings_make(&claims, chosen, &evidence, &findings, &n));
    status = show(args, findings, n);
out:
    free(findings);
    free(chosen);
    at_evidence_release(&evidence);
    at_claims_release(&claims);
    return status;
}

static int run(const struct at_args *args) {
    const at_status status = reproduce(args);
    return status == AT_OK ? 0 : at_report_failure(status);
}

const struct at_command at_command_reproduce = {
    .name = "reproduce",
    .synopsis = "reproduce [GLOB...] [options]",
    .summary = "what the sources claim beside our figures: supported, refuted or not seen, and where each is from",
    .example = "attest reproduce '000 6.*' --json claims.json",
    .options = options,
    .min_words = 0,
    .max_words = AT_MAX_WORDS,
    .reads_archives = 1,
    .run = run,
};
