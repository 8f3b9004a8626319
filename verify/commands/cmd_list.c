/* attest list: operators, kernels, cases, datasets and runners there are.
 * SPDX-License-Identifier: Apache-2.0 */
#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/names.h"
#include "datasets/language/case.h"
#include "verify/cli/commands.h"
#include "verify/runner/runner.h"

static const struct at_option options[] = {
    { "--json", NULL, "one JSON object a line" },
    { "--runner", "R", "whose kernels (default cpu)" },
    { NULL, NULL, NULL },
};

/* One item: a name and up to two facts about it. */
static void item(int json, const char *name, const char *key, const char *fact, const char *summary) {
    if (!json) {
        printf("%-44s %-16s %s\n", name, fact, summary);
        return;
    }
    json_t *object = json_pack("{s:s, s:s, s:s}", "name", name, key, fact, "summary", summary);
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    printf("%s\n", text ? text : "{}");
    free(text);
    json_decref(object);
}

static at_status list_operators(const struct at_args *args, int json) {
    (void)args;
    for (int i = 0; i < at_op_count(); i++)
        item(json, at_op_at(i)->name, "source", at_op_at(i)->source, at_op_at(i)->summary);
    return AT_OK;
}

static at_status list_families(const struct at_args *args, int json) {
    (void)args;
    for (int i = 0; i < at_family_count(); i++) {
        const struct at_family *f = at_family_at(i);
        char summary[256];
        snprintf(summary, sizeof summary, "%s%s", at_op_find(f->op)->summary,
                 f->decode ? "; one query each request" : "");
        item(json, f->name, "operator", f->op, summary);
    }
    return AT_OK;
}

static at_status list_kernels(const struct at_args *args, int json) {
    struct at_runner *runner;
    const char *spec = at_args_get(args, "--runner");
    AT_TRY(at_runner_open(spec ? spec : "cpu", &runner));
    for (int i = 0; i < at_runner_variant_count(runner); i++) {
        const struct at_variant *v = at_runner_variant(runner, i);
        char name[192];
        snprintf(name, sizeof name, "%s/%s", v->family, v->name);
        item(json, name, "source", v->source, v->summary);
    }
    at_runner_close(runner);
    return AT_OK;
}

static at_status list_cases(const struct at_args *args, int json) {
    struct at_case_list cases = { 0 };
    char dir[1024];
    (void)args;
    snprintf(dir, sizeof dir, "%s/cases", at_datasets_dir());
    at_status status = at_case_load_dir(dir, &cases);
    for (int64_t i = 0; status == AT_OK && i < cases.n; i++) {
        if (json)
            item(1, cases.items[i].id, "role", cases.items[i].role, cases.items[i].where);
        else
            printf("%s:%s\n", cases.items[i].role, cases.items[i].id);
    }
    at_case_list_release(&cases);
    return status;
}

static int is_recording(const struct dirent *entry) {
    const char *dot = strrchr(entry->d_name, '.');
    return dot && strcmp(dot, ".safetensors") == 0;
}

static at_status list_datasets(const struct at_args *args, int json) {
    struct dirent **found;
    char dir[1024];
    (void)args;
    snprintf(dir, sizeof dir, "%s/activations", at_datasets_dir());
    int n = scandir(dir, &found, is_recording, alphasort);
    if (n < 0)
        return AT_FAIL(AT_ENVIRONMENT, "%s: no recorded activations there; AT_DATASETS names another place", dir);
    for (int i = 0; i < n; i++) {
        *strrchr(found[i]->d_name, '.') = 0;
        item(json, found[i]->d_name, "kind", "recorded",
             "activations recorded from a real model (dataset=NAME layer=N)");
        free(found[i]);
    }
    free(found);
    for (int i = 0; at_case_data_help(i); i++) {
        char name[64];
        const char *text = at_case_data_help(i);
        size_t length = strcspn(text, " :");
        snprintf(name, sizeof name, "%.*s", (int)length, text);
        item(json, name, "kind", "generated", text + length + strspn(text + length, " :"));
    }
    return AT_OK;
}

static at_status list_runners(const struct at_args *args, int json) {
    (void)args;
    static const struct {
        const char *spec, *summary;
    } known[] = { { "cpu", "attest-cpu beside attest: host variants, and CUDA kernels on the SIMT machine" },
                  { "cuda", "attest-cuda beside attest: CUDA kernels on the first GPU" },
                  { "mutants", "attest-mutants: wrong kernels, for selftest" } };
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        struct at_runner *runner;
        if (at_runner_open(known[i].spec, &runner) == AT_OK) {
            item(json, known[i].spec, "device", at_runner_device(runner), known[i].summary);
            at_runner_close(runner);
        } else {
            item(json, known[i].spec, "device", "missing", at_error_message());
        }
    }
    item(json, "'cuda --load FILE'", "device", "-",
         "device code and a launch file, launched by attest-cuda (kernels/launch/README.md)");
    item(json, "'attest-so LIBRARY.so'", "device", "-",
         "attest-so beside attest: kernels of a shared library; on a GPU attest-so-cuda");
    item(json, "'COMMAND LINE'", "device", "-", "any program that speaks kernels/runner/PROTOCOL.md");
    return AT_OK;
}

static const struct {
    const char *name;
    at_status (*list)(const struct at_args *args, int json);
} kinds[] = { { "operators", list_operators }, { "families", list_families }, { "kernels", list_kernels },
              { "cases", list_cases },         { "datasets", list_datasets }, { "runners", list_runners } };
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static at_status unknown_kind(const char *word) {
    const char *names[N_KINDS];
    for (int i = 0; i < N_KINDS; i++)
        names[i] = kinds[i].name;
    const char *nearest = at_nearest_name(word, names, N_KINDS);
    return AT_FAIL(AT_USAGE,
                   "list: found '%.64s'%s%s%s; wanted operators, families, kernels, cases, datasets or runners", word,
                   nearest ? ", did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

static int run(const struct at_args *args) {
    int json = at_args_has(args, "--json"), known = 0;
    at_status status = AT_OK;
    for (size_t i = 0; status == AT_OK && i < N_KINDS; i++) {
        if (args->n_words && strcmp(args->words[0], kinds[i].name) != 0)
            continue;
        known = 1;
        if (!args->n_words && !json)
            printf("%s%s:\n", i ? "\n" : "", kinds[i].name);
        status = kinds[i].list(args, json);
    }
    if (!known)
        status = unknown_kind(args->words[0]);
    return status == AT_OK ? 0 : at_report_failure(status);
}

const struct at_command at_command_list = {
    .name = "list",
    .synopsis = "list [operators|families|kernels|cases|datasets|runners] [options]",
    .summary = "what there is: operators, families of kernels, kernels, cases, datasets, runners",
    .example = "attest list kernels --json",
    .options = options,
    .max_words = 1,
    .run = run,
};
