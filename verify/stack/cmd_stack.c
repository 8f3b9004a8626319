/* attest stack: layers of operators, each step judged on what it got, and the whole beside a run in double.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attest/env.h"
#include "verify/cli/commands.h"
#include "verify/run/provenance.h"
#include "verify/stack/stack_report.h"

static const struct at_option options[] = {
    { "--steps", NULL, "print the plan and what each step launches; nothing is judged" },
    { "--layers", "N", "so many layers: --set layers=N" },
    { "--set", "A=B,...", "settings of the stack, as its file has them" },
    { "--dtype", "bf16|f16", "of weights and activations: --set dtype=..." },
    { "--sums", "f32|f16", "accumulators: --set sums=..." },
    { "--use", "S=V,...",
      "step S (a glob) by variant V (a glob: the last one that takes it) instead of the file's; S@LAYER=V in one "
      "layer" },
    { "--runner", "R", "cpu (default), or any command line that speaks the protocol" },
    { "--also", "R", "a second runner, for variants that the first one lacks" },
    { "--model-rows", "N",
      "of a step with more than 4e7 multiply-adds the declared order is modelled on N drawn rows (default 64; 0: all); "
      "limits hold everywhere" },
    { "--seed", "S", "of inputs and weights, marks, guard bytes, batch orders (default 0)" },
    { "--strict", NULL, "VACUOUS results fail" },
    { "--json", "F", "rows as JSON lines, one an output of a step in a layer; - for stdout" },
    { "--out", "F.h5", "write the archive: plan and rows" },
    { "--quiet", NULL, "no progress" },
    { NULL, NULL, NULL },
};

struct command {
    struct at_stack stack;
    struct at_stack_plan plan;
    struct at_stack_options options;
    struct at_stack_outcome outcome;
    struct at_stack_plan_row *plan_rows;
    char repro[1024];
};

/* ---- settings ---- */

static at_status set_one(struct at_stack *stack, const char *name, const char *value, const char *option) {
    char text[2 * AT_STACK_TEXT];
    if (!value)
        return AT_OK;
    snprintf(text, sizeof text, "%s=%.90s", name, value);
    return at_stack_set(stack, text, option);
}

static at_status set_all(struct at_stack *stack, const char *list) {
    for (const char *at = list; at && *at;) {
        char text[2 * AT_STACK_TEXT];
        const size_t n = strcspn(at, ",");
        snprintf(text, sizeof text, "%.*s", (int)(n < sizeof text ? n : sizeof text - 1), at);
        AT_TRY(at_stack_set(stack, text, "--set"));
        at += n + (at[n] == ',');
    }
    return AT_OK;
}

static at_status read_stack(const struct at_args *args, struct command *c) {
    AT_TRY(at_stack_load(args->words[0], &c->stack));
    AT_TRY(set_all(&c->stack, at_args_get(args, "--set")));
    AT_TRY(set_one(&c->stack, "layers", at_args_get(args, "--layers"), "--layers"));
    AT_TRY(set_one(&c->stack, "dtype", at_args_get(args, "--dtype"), "--dtype"));
    return set_one(&c->stack, "sums", at_args_get(args, "--sums"), "--sums");
}

/* The command that repeats the run: what changes its results. */
static void write_repro(const struct at_args *args, struct command *c) {
    static const char *const kept[] = { "--layers", "--set",  "--dtype",      "--sums", "--use",
                                        "--runner", "--also", "--model-rows", "--seed" };
    size_t used = (size_t)snprintf(c->repro, sizeof c->repro, "attest stack %s", args->words[0]);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        const char *value = at_args_get(args, kept[i]);
        if (value && used < sizeof c->repro)
            used += (size_t)snprintf(c->repro + used, sizeof c->repro - used, " %s '%s'", kept[i], value);
    }
}

static at_status open_runners(const struct at_args *args, struct command *c) {
    const char *runner = at_args_get(args, "--runner"), *also = at_args_get(args, "--also");
    const char *specs[AT_STACK_RUNNERS] = { runner ? runner : "cpu", also };
    if (strcmp(specs[0], "cuda") == 0 || (also && strcmp(also, "cuda") == 0))
        return AT_FAIL(AT_UNSUPPORTED,
                       "stack: found runner cuda, wanted cpu or a command line: steps of a stack are not yet "
                       "run on a device");
    for (int r = 0; r < AT_STACK_RUNNERS && specs[r]; r++) {
        c->options.runner_spec[r] = specs[r];
        AT_TRY(at_runner_open(specs[r], &c->plan.runner[r]));
        c->plan.n_runners++;
    }
    return AT_OK;
}

static at_status read_options(const struct at_args *args, struct command *c) {
    const char *written[] = { at_args_get(args, "--out"), at_args_get(args, "--json") };
    int64_t seed;
    if (written[1] && strcmp(written[1], "-") == 0)
        written[1] = NULL;
    AT_TRY(at_atomic_check_files(written, 2, NULL, 0));
    AT_TRY(at_args_int(args, "--seed", 0, INT64_MAX, 0, &seed));
    AT_TRY(at_args_int(args, "--model-rows", 0, INT64_MAX, 64, &c->options.model_rows));
    c->options.quiet = at_args_has(args, "--quiet");
    c->options.threads = at_threads();
    AT_TRY(read_stack(args, c));
    write_repro(args, c);
    c->options.repro = c->repro;
    c->plan.stack = &c->stack;
    c->plan.use = at_args_get(args, "--use");
    c->plan.seed = (uint64_t)seed;
    return AT_OK;
}

/* ---- what is written ---- */

/* Settings as they count now. */
static json_t *settings_of(const struct at_stack *s) {
    json_t *object = json_object();
    for (int i = 0; object && i < s->n_settings; i++)
        if (!s->settings[i].is_let)
            json_object_set_new(object, s->settings[i].name, json_string(s->settings[i].value));
    return object;
}

static at_status write_request(const struct command *c, struct at_run_record *record) {
    json_t *request =
        json_pack("{s:s, s:o, s:I, s:s, s:s, s:s, s:I}", "stack", c->stack.name, "settings", settings_of(&c->stack),
                  "seed", (json_int_t)c->plan.seed, "runner", c->options.runner_spec[0], "also",
                  c->options.runner_spec[1] ? c->options.runner_spec[1] : "", "use", c->plan.use ? c->plan.use : "",
                  "model_rows", (json_int_t)c->options.model_rows);
    record->request = request ? json_dumps(request, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    json_decref(request);
    if (!record->request)
        return AT_FAIL(AT_NO_MEMORY, "no memory for the run's description");
    return at_provenance_build(at_runner_device(c->plan.runner[0]), &record->provenance);
}

static at_status write_files(const struct at_args *args, struct command *c) {
    const char *json = at_args_get(args, "--json"), *out = at_args_get(args, "--out");
    const struct at_table_rows tables[] = { { &at_stack_table_steps, c->outcome.rows, c->outcome.n_rows },
                                            { &at_stack_table_plan, c->plan_rows, c->plan.n_steps } };
    if (json)
        AT_TRY(at_stack_put_json(c->outcome.rows, c->outcome.n_rows, json));
    if (!out)
        return AT_OK;
    AT_TRY(write_request(c, &c->outcome.record));
    return at_archive_write_tables(tables, 2, &c->outcome.record, out);
}

static void put_head(const struct command *c) {
    const struct at_stack *s = &c->stack;
    int column = printf("stack %s: %" PRId64 " layers;", s->name, c->plan.layers);
    char text[1024] = "";
    size_t used = 0;
    for (int i = 0; i < s->n_settings && used < sizeof text; i++)
        if (!s->settings[i].is_let && strcmp(s->settings[i].name, "layers") != 0)
            used +=
                (size_t)snprintf(text + used, sizeof text - used, " %s=%s", s->settings[i].name, s->settings[i].value);
    at_put_indented(text, column, 4, stdout);
}

static at_status run_and_tell(const struct at_args *args, struct command *c, int *code) {
    const int strict = at_args_has(args, "--strict"), colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
    const int to_stdout = at_args_has(args, "--json") && strcmp(at_args_get(args, "--json"), "-") == 0;
    AT_TRY(at_stack_run(&c->plan, &c->options, &c->outcome));
    AT_TRY(write_files(args, c));
    *code = at_run_record_exit_code(&c->outcome.record, strict);
    if (to_stdout)
        return AT_OK;
    put_head(c);
    at_report_table_brief(&c->outcome.record, strict, colour, stdout);
    at_stack_put_steps(c->outcome.rows, c->outcome.n_rows, stdout);
    at_stack_put_layers(c->outcome.rows, c->outcome.n_rows, stdout);
    return AT_OK;
}

static at_status stack(const struct at_args *args, struct command *c, int *code) {
    AT_TRY(read_options(args, c));
    AT_TRY(open_runners(args, c));
    AT_TRY(at_stack_plan_make(&c->plan));
    AT_TRY(at_stack_plan_rows(&c->plan, &c->plan_rows));
    if (!at_args_has(args, "--steps"))
        return run_and_tell(args, c, code);
    put_head(c);
    at_stack_put_plan(c->plan_rows, c->plan.n_steps, stdout);
    return AT_OK;
}

static int run(const struct at_args *args) {
    struct command c = { .outcome = { .n_rows = 0 } };
    int code = 0;
    at_run_record_init(&c.outcome.record);
    const at_status status = stack(args, &c, &code);
    if (status != AT_OK)
        code = at_report_failure(status);
    at_stack_outcome_release(&c.outcome);
    free(c.plan_rows);
    at_stack_plan_release(&c.plan);
    for (int r = 0; r < c.plan.n_runners; r++)
        at_runner_close(c.plan.runner[r]);
    at_stack_release(&c.stack);
    return code;
}

const struct at_command at_command_stack = {
    .name = "stack",
    .synopsis = "stack FILE [options]",
    .summary = "judge a stack of layers step by step, each on what it got, and the whole beside a run in double",
    .example = "attest stack asynct_3 --set peri=v1 --dtype f16 --sums f16",
    .options = options,
    .min_words = 1,
    .max_words = 1,
    .run = run,
};
