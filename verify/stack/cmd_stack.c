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
#include "verify/stack/stack_turns.h"

static const struct at_option options[] = {
    { "--steps", NULL, "print the plan and what each step launches; nothing is judged" },
    { "--layers", "N", "so many layers: --set layers=N" },
    { "--set", "A=B,...", "settings of the stack, as its file has them" },
    { "--dtype", "bf16|f16", "of weights and activations: --set dtype=..." },
    { "--sums", "f32|f16", "accumulators: --set sums=..." },
    { "--use", "S=V,...",
      "step S (a glob) by variant V (a glob: the last one that takes it) instead of the file's; S@LAYER=V in one "
      "layer" },
    { "--graph", NULL,
      "then all steps as one graph, its bits beside theirs; on a GPU: its nodes, and the time of a replay and of each "
      "step" },
    { "--replays", "N", "of the graph, to time (default 20)" },
    { "--against", "A=B,...|S",
      "a second graph, with these settings too or of another stack (its name), the two replayed in turns" },
    { "--values", "F",
      "inputs, weights and parameters from a file of tensors (safetensors, npz, HDF5, a folder of npy), named as "
      "verify/stack/README.md says; the rest is drawn" },
    { "--loss", "FLOW",
      "with --values: cross entropy of the logits in FLOW, by kernels and in double; the file's tensor targets says "
      "what was "
      "right" },
    { "--judge", "N",
      "judge N layers alone, of a sequence N turns, from the first on; the rest is launched, for --graph to compare "
      "with "
      "(default: all)" },
    { "--runner", "R", "cpu (default), cuda, or any command line that speaks the protocol" },
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

/* The stack with its settings; with those of --against too, or its stack. */
struct side {
    const char *name; /* AT_STACK_OWN, or what --against says */
    struct at_stack stack;
    struct at_stack_plan plan;
    struct at_stack_outcome outcome;
    struct at_stack_graph *graph;
    struct at_stack_given given;
    struct at_stack_replayed replayed; /* the last time, without its costs */
};

enum { SIDES = 2, ROUNDS = 5 };

struct command {
    struct side side[SIDES];
    int n_sides;
    struct at_stack_options options;
    struct at_stack_plan_row
        *plan_rows; /* of a sequence, those of its first turn: later turns make plans of their own */
    int64_t n_plan_rows;
    struct at_stack_cost *costs; /* of all sides and rounds */
    int64_t n_costs, replays;
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

static at_status set_all(struct at_stack *stack, const char *list, const char *option) {
    for (const char *at = list; at && *at;) {
        char text[2 * AT_STACK_TEXT];
        const size_t n = strcspn(at, ",");
        snprintf(text, sizeof text, "%.*s", (int)(n < sizeof text ? n : sizeof text - 1), at);
        AT_TRY(at_stack_set(stack, text, option));
        at += n + (at[n] == ',');
    }
    return AT_OK;
}

/* `against`: NULL for the stack itself. Another stack has settings of its own. */
static at_status read_stack(const struct at_args *args, const char *against, struct at_stack *stack) {
    const int other = against && !strchr(against, '=');
    AT_TRY(at_stack_load(other ? against : args->words[0], stack));
    if (!other)
        AT_TRY(set_all(stack, at_args_get(args, "--set"), "--set"));
    if (against && !other)
        AT_TRY(set_all(stack, against, "--against"));
    AT_TRY(set_one(stack, "layers", at_args_get(args, "--layers"), "--layers"));
    AT_TRY(set_one(stack, "dtype", at_args_get(args, "--dtype"), "--dtype"));
    return set_one(stack, "sums", at_args_get(args, "--sums"), "--sums");
}

/* The command that repeats the run: what changes its results. */
static void write_repro(const struct at_args *args, struct command *c) {
    static const char *const kept[] = { "--layers", "--set",        "--dtype", "--sums", "--use",    "--runner",
                                        "--also",   "--model-rows", "--judge", "--seed", "--values", "--loss" };
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
    for (int r = 0; r < AT_STACK_RUNNERS && specs[r]; r++) {
        c->options.runner_spec[r] = specs[r];
        AT_TRY(at_runner_open(specs[r], &c->side[0].plan.runner[r]));
        c->side[0].plan.n_runners++;
    }
    for (int s = 1; s < c->n_sides; s++) {
        memcpy(c->side[s].plan.runner, c->side[0].plan.runner, sizeof c->side[s].plan.runner);
        c->side[s].plan.n_runners = c->side[0].plan.n_runners;
    }
    return AT_OK;
}

static at_status read_options(const struct at_args *args, struct command *c) {
    const char *written[] = { at_args_get(args, "--out"), at_args_get(args, "--json") };
    const char *against = at_args_get(args, "--against");
    int64_t seed;
    if ((against || at_args_has(args, "--replays")) && !at_args_has(args, "--graph"))
        return AT_FAIL(AT_USAGE, "stack: found %s, wanted --graph with it", against ? "--against" : "--replays");
    if (written[1] && strcmp(written[1], "-") == 0)
        written[1] = NULL;
    AT_TRY(at_atomic_check_files(written, 2, NULL, 0));
    if (at_args_has(args, "--loss") && !at_args_has(args, "--values"))
        return AT_FAIL(AT_USAGE, "stack: found --loss, wanted --values with it, a file with " AT_STACK_TARGETS);
    AT_TRY(at_args_int(args, "--seed", 0, INT64_MAX, 0, &seed));
    AT_TRY(at_args_int(args, "--model-rows", 0, INT64_MAX, 64, &c->options.model_rows));
    c->options.quiet = at_args_has(args, "--quiet");
    c->options.threads = at_threads();
    AT_TRY(at_args_int(args, "--replays", 1, 100000, 20, &c->replays));
    AT_TRY(at_args_int(args, "--judge", 1, INT64_MAX, 0, &c->options.judge_layers));
    if (c->options.judge_layers && at_args_has(args, "--loss"))
        return AT_FAIL(AT_USAGE,
                       "stack: found --judge with --loss, wanted all steps judged: there is no run in double behind "
                       "those that are not");
    write_repro(args, c);
    c->options.repro = c->repro;
    c->options.loss = at_args_get(args, "--loss");
    c->n_sides = against ? 2 : 1;
    for (int s = 0; s < c->n_sides; s++) {
        struct side *side = &c->side[s];
        side->name = s ? against : AT_STACK_OWN;
        AT_TRY(read_stack(args, s ? against : NULL, &side->stack));
        side->plan.stack = &side->stack;
        side->plan.use = at_args_get(args, "--use");
        side->plan.seed = (uint64_t)seed;
    }
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
        json_pack("{s:s, s:o, s:I, s:s, s:s, s:s, s:I}", "stack", c->side[0].stack.name, "settings",
                  settings_of(&c->side[0].stack), "seed", (json_int_t)c->side[0].plan.seed, "runner",
                  c->options.runner_spec[0], "also", c->options.runner_spec[1] ? c->options.runner_spec[1] : "", "use",
                  c->side[0].plan.use ? c->side[0].plan.use : "", "model_rows", (json_int_t)c->options.model_rows);
    record->request = request ? json_dumps(request, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    json_decref(request);
    if (!record->request)
        return AT_FAIL(AT_NO_MEMORY, "no memory for the run's description");
    return at_provenance_build(at_runner_device(c->side[0].plan.runner[0]), &record->provenance);
}

static at_status write_files(const struct at_args *args, struct command *c) {
    const char *json = at_args_get(args, "--json"), *out = at_args_get(args, "--out");
    struct side *own = &c->side[0];
    const struct at_table *steps = at_stack_is_sequence(&own->stack) ? &at_stack_table_turns : &at_stack_table_steps;
    struct at_table_rows tables[4] = { { steps, own->outcome.rows, own->outcome.n_rows },
                                       { &at_stack_table_plan, c->plan_rows, c->n_plan_rows } };
    int n = 2;
    if (own->outcome.loss.vocabulary)
        tables[n++] = (struct at_table_rows){ &at_stack_table_loss, &own->outcome.loss, 1 };
    if (own->graph)
        tables[n++] = (struct at_table_rows){ &at_stack_table_graph, c->costs, c->n_costs };
    if (json)
        AT_TRY(at_stack_put_json(own->outcome.rows, own->outcome.n_rows, steps, json));
    if (!out)
        return AT_OK;
    AT_TRY(write_request(c, &own->outcome.record));
    return at_archive_write_tables(tables, n, &own->outcome.record, out);
}

static void put_head(const struct side *side) {
    const struct at_stack *s = &side->stack;
    int column = printf("stack %s: %" PRId64 " layers;", s->name, side->plan.layers);
    char text[1024] = "";
    size_t used = 0;
    for (int i = 0; i < s->n_settings && used < sizeof text; i++)
        if (!s->settings[i].is_let && strcmp(s->settings[i].name, "layers") != 0)
            used +=
                (size_t)snprintf(text + used, sizeof text - used, " %s=%s", s->settings[i].name, s->settings[i].value);
    at_put_indented(text, column, 4, stdout);
}

/* ---- graphs ---- */

static at_status keep_costs(struct command *c, const struct side *side, int round, struct at_stack_replayed *r) {
    struct at_stack_cost *grown = realloc(c->costs, (size_t)(c->n_costs + r->n_costs + 1) * sizeof *grown);
    if (!grown)
        return AT_FAIL(AT_NO_MEMORY, "no memory for what steps took");
    c->costs = grown;
    for (int i = 0; i < r->n_costs; i++) {
        grown[c->n_costs] = r->costs[i];
        grown[c->n_costs].round = round;
        snprintf(grown[c->n_costs].stack, sizeof grown->stack, "%.31s", c->side[0].stack.name);
        snprintf(grown[c->n_costs].side, sizeof grown->side, "%.90s", side->name);
        c->n_costs++;
    }
    return AT_OK;
}

/* One after the other, and that a few times: what drifts meanwhile drifts for both. */
static at_status replay(struct command *c) {
    for (int round = 0; round < (c->n_sides > 1 ? ROUNDS : 1); round++)
        for (int s = 0; s < c->n_sides; s++) {
            struct side *side = &c->side[s];
            AT_TRY(at_stack_graph_run(side->graph, (int)c->replays, &side->replayed));
            const at_status status = keep_costs(c, side, round, &side->replayed);
            free(side->replayed.costs);
            side->replayed.costs = NULL;
            AT_TRY(status);
            if (side->replayed.reason[0] || side->replayed.differ)
                return AT_OK;
        }
    return AT_OK;
}

static int graph_failed(const struct command *c) {
    for (int s = 0; s < c->n_sides; s++)
        if (c->side[s].graph && (c->side[s].replayed.reason[0] || c->side[s].replayed.differ))
            return 1;
    return 0;
}

static void put_graphs(const struct command *c) {
    const struct at_stack_cost *at = c->costs;
    for (int s = 0; s < c->n_sides && c->side[s].graph; s++) {
        const struct side *side = &c->side[s];
        int64_t n = 0;
        while (at + n < c->costs + c->n_costs && at[n].round == 0 && strncmp(at[n].side, side->name, 90) == 0)
            n++;
        if (s)
            printf("\n%s\n", side->name);
        at_stack_put_replayed(&side->replayed, stdout);
        if (n)
            at_stack_put_costs(at, n, !at_stack_is_sequence(&side->stack), stdout);
        at += n;
    }
    at_stack_put_sides(c->costs, c->n_costs, stdout);
}

/* Sides have their verdicts one after the other. */
static at_status judge_sides(const struct at_args *args, struct command *c) {
    for (int s = 0; s < c->n_sides; s++) {
        struct side *side = &c->side[s];
        if (at_args_has(args, "--graph"))
            AT_TRY(at_stack_graph_open(c->options.runner_spec[0], &side->plan, &side->graph));
        c->options.graph = side->graph;
        c->options.given = side->given.reader ? &side->given : NULL;
        AT_TRY(at_stack_run_turns(&side->plan, &side->stack, &c->options, &side->outcome));
    }
    return at_args_has(args, "--graph") ? replay(c) : AT_OK;
}

static void put_side(const struct side *side, int strict, int colour) {
    put_head(side);
    at_report_table_brief(&side->outcome.record, strict, colour, stdout);
    at_stack_put_turns(side->outcome.rows, side->outcome.n_rows, stdout);
    if (side->given.reader)
        printf("\nvalues: %d tensors of %s; %" PRId64 " inputs and weights of the stack and %" PRId64
               " parameters of its steps are not among them and were drawn\n",
               at_reader_count(side->given.reader), side->given.path, side->given.drawn, side->given.parameters);
    if (side->outcome.loss.vocabulary)
        at_stack_loss_put(&side->outcome.loss, stdout);
}

static at_status run_and_tell(const struct at_args *args, struct command *c, int *code) {
    const int strict = at_args_has(args, "--strict"), colour = isatty(STDOUT_FILENO) && !getenv("NO_COLOR");
    const int to_stdout = at_args_has(args, "--json") && strcmp(at_args_get(args, "--json"), "-") == 0;
    AT_TRY(judge_sides(args, c));
    AT_TRY(write_files(args, c));
    *code = graph_failed(c);
    for (int s = 0; s < c->n_sides; s++) {
        const int of_side = at_run_record_exit_code(&c->side[s].outcome.record, strict);
        *code = *code ? *code : of_side;
    }
    for (int s = 0; s < c->n_sides && !to_stdout; s++)
        put_side(&c->side[s], strict, colour);
    if (!to_stdout)
        put_graphs(c);
    return AT_OK;
}

/* Before anything runs: names that mean nothing, and a flow that is none. */
static at_status open_values(const struct at_args *args, const struct command *c, struct side *side) {
    const char *path = at_args_get(args, "--values");
    if (!path)
        return AT_OK;
    if (at_stack_is_sequence(&side->stack))
        return AT_FAIL(AT_USAGE, "stack: found --values with %s, a sequence of turns, wanted a stack that runs once",
                       side->stack.name);
    AT_TRY(at_stack_given_open(path, &side->plan, &side->given));
    const int flow = c->options.loss ? at_stack_flow_find(&side->plan, c->options.loss) : -1;
    if (c->options.loss && flow < 0)
        return AT_FAIL(AT_USAGE, "stack: found --loss %s, wanted a flow of %s", c->options.loss, side->stack.name);
    return flow < 0 ? AT_OK : at_stack_loss_check(&side->given, &side->plan.flows[flow]);
}

static at_status stack(const struct at_args *args, struct command *c, int *code) {
    AT_TRY(read_options(args, c));
    AT_TRY(open_runners(args, c));
    for (int s = 0; s < c->n_sides; s++) {
        AT_TRY(at_stack_plan_make(&c->side[s].plan));
        AT_TRY(open_values(args, c, &c->side[s]));
    }
    AT_TRY(at_stack_plan_rows(&c->side[0].plan, &c->plan_rows));
    c->n_plan_rows = c->side[0].plan.n_steps;
    if (!at_args_has(args, "--steps"))
        return run_and_tell(args, c, code);
    put_head(&c->side[0]);
    at_stack_put_plan(c->plan_rows, c->side[0].plan.n_steps, stdout);
    return AT_OK;
}

static int run(const struct at_args *args) {
    struct command c = { .n_sides = 0 };
    int code = 0;
    for (int s = 0; s < SIDES; s++)
        at_run_record_init(&c.side[s].outcome.record);
    const at_status status = stack(args, &c, &code);
    if (status != AT_OK)
        code = at_report_failure(status);
    free(c.plan_rows);
    free(c.costs);
    for (int s = 0; s < SIDES; s++) {
        at_stack_graph_close(c.side[s].graph);
        at_stack_given_close(&c.side[s].given);
        at_stack_outcome_release(&c.side[s].outcome);
        at_stack_plan_release(&c.side[s].plan);
        at_stack_release(&c.side[s].stack);
    }
    for (int r = 0; r < c.side[0].plan.n_runners; r++)
        at_runner_close(c.side[0].plan.runner[r]);
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
