/* Rows of a stack in archives and as JSON.
 * SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "verify/result/field_json.h"
#include "verify/stack/stack_report.h"

/* kind, name, member, units, meaning */
/* clang-format off */
#define STEP_FIELDS(X)                                                                                           \
    X(PLACE, layer,         layer,                "1", "layer; -1: outside of the layers")                       \
    X(I64,   step,          step,                 "1", "place of the step in the plan")                          \
    X(TEXT,  name,          name,                 "1", "step")                                                   \
    X(TEXT,  kind,          kind,                 "1", "kind of the step, as the stack has it")                  \
    X(TEXT,  family,        family,               "1", "kernel family")                                          \
    X(TEXT,  variant,       variant,              "1", "variant")                                                \
    X(TEXT,  tensor,        tensor,               "1", "output of the operator")                                 \
    X(TEXT,  flow,          flow,                 "1", "flow that it went to")                                   \
    X(STATE, state,         state,                "1", "verdict, on the inputs that the step got")               \
    X(I64,   compared,      compared,             "1", "elements compared")                                      \
    X(I64,   wrong,         wrong,                "1", "elements rejected")                                      \
    X(I64,   model_compared, modelled,            "1", "elements compared with the declared arithmetic")         \
    X(I64,   model_equal,   on_model,             "1", "elements equal to it")                                   \
    X(F64,   ratio_max,     ratio,                "1", "largest error over its limit; NaN: none")                \
    X(BOOL,  stands_in,     stands_in,            "1", "the launch left nothing, the exact value went on rounded") \
    X(BOOL,  carried,       carried,              "1", "the flow goes from layer to layer")                      \
    X(I64,   elements,      error.elements,       "1", "elements of the output")                                 \
    X(F64,   rms,           error.rms,            "1", "of the run in double")                                   \
    X(F64,   largest,       error.largest,        "1", "largest finite magnitude that the kernel left")          \
    X(F64,   entered_max,   error.entered_max,    "1", "largest |kernel - exact| on the same inputs")            \
    X(F64,   entered_rms,   error.entered_rms,    "1", "rms of it")                                              \
    X(F64,   inherited_rms, error.inherited_rms,  "1", "rms of that exact value less the run in double")         \
    X(F64,   error_max,     error.error_max,      "1", "largest |kernel - run in double|")                       \
    X(F64,   error_rms,     error.error_rms,      "1", "rms of it")                                              \
    X(I64,   nans,          error.nans,           "1", "NaNs that the kernel left")                              \
    X(I64,   infinities,    error.infinities,     "1", "infinities that the kernel left")                        \
    X(I64,   beyond,        error.beyond,         "1", "values of the run in double beyond 65504")

#define PLAN_FIELDS(X)                                                                        \
    X(I64,  step,     step,     "1", "place of the step in the plan")                         \
    X(I64,  times,    times,    "1", "how often it runs")                                     \
    X(I64,  launches, launches, "1", "CUDA kernels it launches; 0: a C variant, or not known") \
    X(TEXT, name,     name,     "1", "step")                                                  \
    X(TEXT, kind,     kind,     "1", "kind of the step, as the stack has it")                 \
    X(TEXT, family,   family,   "1", "kernel family")                                         \
    X(TEXT, variant,  variant,  "1", "variant")                                               \
    X(TEXT, shapes,   shapes,   "1", "tensors that flows are, with their shapes")             \
    X(F64,  work,     work,     "1", "multiply-adds")

#define LOSS_FIELDS(X)                                                                              \
    X(TEXT, flow,           flow,           "1",   "flow of the logits")                              \
    X(I64,  windows,        windows,        "1",   "windows of tokens")                               \
    X(I64,  tokens,         tokens,         "1",   "tokens with a class that was right")              \
    X(I64,  vocabulary,     vocabulary,     "1",   "logits a token")                                  \
    X(I64,  not_finite,     not_finite,     "1",   "tokens left out, as their loss is no number")     \
    X(F64,  kernel,         kernel,         "nat", "mean cross entropy, by kernels")                  \
    X(F64,  exact,          exact,          "nat", "the same of the run in double")                   \
    X(F64,  difference,     difference,     "nat", "kernels less the run in double")                  \
    X(F64,  standard_error, standard_error, "nat", "of the windows' mean difference; NaN: one window")
/* clang-format on */

#define FIELD(type, kind, name, member, units, meaning) \
    { #name, AT_FIELD_##kind, AT_FIELD_NOWHERE, offsetof(struct type, member), sizeof(((struct type *)0)->member), \
      1,     units,           meaning },

static const struct at_field step_fields[] = {
#define X(kind, name, member, units, meaning) FIELD(at_stack_row, kind, name, member, units, meaning)
    STEP_FIELDS(X)
#undef X
};
/* Of a sequence. */
static const struct at_field turn_fields[] = {
    FIELD(at_stack_row, I64, turn, turn, "1", "turn of the sequence: 0 its prompts, then its decode steps")
#define X(kind, name, member, units, meaning) FIELD(at_stack_row, kind, name, member, units, meaning)
        STEP_FIELDS(X)
#undef X
};
static const struct at_field plan_fields[] = {
#define X(kind, name, member, units, meaning) FIELD(at_stack_plan_row, kind, name, member, units, meaning)
    PLAN_FIELDS(X)
#undef X
};

static const struct at_field loss_fields[] = {
#define X(kind, name, member, units, meaning) FIELD(at_stack_loss, kind, name, member, units, meaning)
    LOSS_FIELDS(X)
#undef X
};

static const struct at_field *step_field(int i) {
    return i >= 0 && (size_t)i < sizeof step_fields / sizeof *step_fields ? &step_fields[i] : NULL;
}
static const struct at_field *turn_field(int i) {
    return i >= 0 && (size_t)i < sizeof turn_fields / sizeof *turn_fields ? &turn_fields[i] : NULL;
}
static const struct at_field *plan_field(int i) {
    return i >= 0 && (size_t)i < sizeof plan_fields / sizeof *plan_fields ? &plan_fields[i] : NULL;
}
static const struct at_field *loss_field(int i) {
    return i >= 0 && (size_t)i < sizeof loss_fields / sizeof *loss_fields ? &loss_fields[i] : NULL;
}

const struct at_table at_stack_table_steps = {
    .group = "stack_steps",
    .parent = "studies",
    .type = "attest.stack_steps",
    .signal = "error_rms",
    .row = "row: one output of one step in one layer",
    .field = step_field,
    .row_bytes = sizeof(struct at_stack_row),
};
const struct at_table at_stack_table_turns = {
    .group = "stack_turns",
    .parent = "studies",
    .type = "attest.stack_turns",
    .signal = "error_rms",
    .row = "row: one output of one step in one layer and turn",
    .field = turn_field,
    .row_bytes = sizeof(struct at_stack_row),
};
const struct at_table at_stack_table_plan = {
    .group = "stack_plan",
    .parent = "studies",
    .type = "attest.stack_plan",
    .signal = "launches",
    .row = "row: one step",
    .field = plan_field,
    .row_bytes = sizeof(struct at_stack_plan_row),
};

const struct at_table at_stack_table_loss = {
    .group = "stack_loss",
    .parent = "studies",
    .type = "attest.stack_loss",
    .signal = "difference",
    .row = "row: the logits of one run",
    .field = loss_field,
    .row_bytes = sizeof(struct at_stack_loss),
};

static void show_steps(const struct at_table_rows *rows, const struct at_run_record *record, FILE *out) {
    (void)record;
    at_stack_put_turns(rows->rows, rows->n, out);
}

static void show_plan(const struct at_table_rows *rows, const struct at_run_record *record, FILE *out) {
    (void)record;
    at_stack_put_plan(rows->rows, rows->n, out);
}

static void show_loss(const struct at_table_rows *rows, const struct at_run_record *record, FILE *out) {
    const struct at_stack_loss *loss = rows->rows;
    (void)record;
    for (int64_t i = 0; i < rows->n; i++)
        at_stack_loss_put(&loss[i], out);
}

const struct at_content at_content_stack_steps = { .what = "errors of a stack",
                                                   .table = &at_stack_table_steps,
                                                   .show_rows = show_steps };
const struct at_content at_content_stack_turns = { .what = "errors of a sequence",
                                                   .table = &at_stack_table_turns,
                                                   .show_rows = show_steps };
const struct at_content at_content_stack_plan = { .what = "plan of a stack",
                                                  .table = &at_stack_table_plan,
                                                  .show_rows = show_plan };
const struct at_content at_content_stack_loss = { .what = "loss of a stack",
                                                  .table = &at_stack_table_loss,
                                                  .show_rows = show_loss };

/* ---- JSON ---- */

static at_status put_line(const struct at_stack_row *row, const struct at_table *table, FILE *out) {
    at_status status = AT_OK;
    char *text = NULL;
    json_t *object = json_object();
    const struct at_field *field;
    for (int i = 0; object && (field = table->field(i)); i++)
        json_object_set_new(object, field->name, at_field_to_json(field, row));
    text = object ? json_dumps(object, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    if (!text)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for a line of JSON");
    fprintf(out, "%s\n", text);
out:
    free(text);
    json_decref(object);
    return status;
}

at_status at_stack_put_json(const struct at_stack_row *rows, int64_t n, const struct at_table *table,
                            const char *path) {
    if (strcmp(path, "-") == 0) {
        for (int64_t i = 0; i < n; i++)
            AT_TRY(put_line(&rows[i], table, stdout));
        return AT_OK;
    }
    struct at_atomic_file file;
    AT_TRY(at_atomic_open(path, &file));
    for (int64_t i = 0; i < n; i++) {
        const at_status status = put_line(&rows[i], table, file.stream);
        if (status != AT_OK) {
            at_atomic_abandon(&file);
            return status;
        }
    }
    return at_atomic_commit(&file);
}
