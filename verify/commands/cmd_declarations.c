/* attest declarations: which fields of each variant's declared arithmetic the cases test.
 * SPDX-License-Identifier: Apache-2.0 */
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/env.h"
#include "attest/names.h"
#include "verify/cli/commands.h"
#include "verify/run/declarations.h"

static const struct at_option options[] = {
    { "--cases", "GLOB", "which cases, as role:id (default 'smoke:*'; '*' for all)" },
    { "--case", "LINE", "one case given as text instead of the case files" },
    { "--runner", "R", "whose variants, and who says which cases they take (default cpu)" },
    { "--strict", NULL,
      "exit 1 for a field that no case tests and whose variant does not say why, for one that says so and is tested, "
      "and "
      "for a variant that took no case" },
    { "--field", "NAME", "only this field of the declarations (default: all)" },
    { "--enough", "N",
      "leave a field alone once N cases test it: says sooner which fields none does (default: count all)" },
    { "--work", "N", "multiply-adds of the rows that a neighbour is modelled on, of a case (default 1000000)" },
    { "--jobs", "N", "cases looked at at the same time (default: processors)" },
    { "--json", NULL, "one JSON object a line: a variant's field" },
    { "--quiet", NULL, "only fields that no case tests, and the sum" },
    { NULL, NULL, NULL },
};

/* Why a variant says that no case can test a field of it: a line of its source,
 *     not tested: FIELD: REASON
 * in a comment that ends on that line, beside its declaration. */
struct marks {
    char reason[AT_FIELD_COUNT][160]; /* "": none */
    char unknown[64];                 /* a mark whose field is none */
};

static void read_mark(char *text, struct marks *marks) {
    char *colon = strchr(text, ':'), *end = strstr(text, "*/");
    if (!colon || !end || end < colon) {
        snprintf(marks->unknown, sizeof marks->unknown, "%.60s", text);
        return;
    }
    *colon = *end = 0;
    while (end > colon && (end[-1] == ' ' || end[-1] == 0))
        *--end = 0;
    for (int f = 0; f < AT_FIELD_COUNT; f++)
        if (strcmp(at_numerics_field_at(f).name, text) == 0) {
            snprintf(marks->reason[f], sizeof marks->reason[f], "%s", colon + 1 + strspn(colon + 1, " "));
            return;
        }
    snprintf(marks->unknown, sizeof marks->unknown, "%.60s", text);
}

/* The source lies below the folder that holds the data sets; where there is none, there are no marks. */
static void read_marks(const struct at_variant *v, struct marks *marks) {
    static const char word[] = "/* not tested: ";
    char path[1280], line[512];
    memset(marks, 0, sizeof *marks);
    snprintf(path, sizeof path, "%s/../%s", at_datasets_dir(), v->path);
    FILE *file = fopen(path, "re");
    while (file && fgets(line, sizeof line, file)) {
        char *found = strstr(line, word);
        if (found)
            read_mark(found + sizeof word - 1, marks);
    }
    if (file)
        fclose(file);
}

struct totals {
    int64_t tested, vacuous, marked, false_marks, fixed, no_claim, unmet;
};

static const char *state_name(enum at_field_state state) {
    static const char *const names[] = { "no claim", "fixed", "tested", "VACUOUS", "unmet" };
    return names[state];
}

static const char *how(enum at_refuted refuted) {
    static const char *const names[] = { "", "model", "relaunch", "batches", "poison" };
    return names[refuted];
}

static const char *value_text(const struct at_numerics *n, int f, char *number, size_t size) {
    const struct at_numerics_field field = at_numerics_field_at(f);
    if (field.words)
        return field.words[at_numerics_get(n, f)].name;
    snprintf(number, size, "%d", at_numerics_get(n, f));
    return number;
}

/* Values of the neighbours that have a model somewhere and were rejected nowhere: " 128 0". */
static void alike(const struct at_variant_cases *v, int f, char *text, size_t size) {
    const struct at_field_cases *c = &v->field[f];
    struct at_neighbours near;
    char number[16];
    size_t at = 0;
    text[0] = 0;
    if (c->refuted != AT_REFUTED_MODEL)
        return;
    at_field_neighbours(v->v, f, &near);
    for (int i = 0; i < near.n && at < size; i++)
        if ((c->has_model >> i & 1) && !(c->rejected >> i & 1))
            at += (size_t)snprintf(text + at, size - at, "%s%s", at ? " " : "",
                                   value_text(&near.of[i], f, number, sizeof number));
}

/* What a wrong declaration that the example rejects has instead: "pv_unit=f32_fma pv_chunk=1". */
static void instead(const struct at_variant_cases *v, int f, char *text, size_t size) {
    struct at_neighbours near;
    char number[16];
    size_t at = 0;
    text[0] = 0;
    if (!v->field[f].example_rejected)
        return;
    at_field_neighbours(v->v, f, &near);
    const struct at_numerics *n = &near.of[__builtin_ctz(v->field[f].example_rejected)];
    for (int i = 0; i < AT_FIELD_COUNT && at < size; i++)
        if (i == f || ((at_op_find(at_family_find(v->v->family)->op)->declares >> i & 1) &&
                       at_numerics_get(n, i) != at_numerics_get(&v->v->numerics, i)))
            at += (size_t)snprintf(text + at, size - at, "%s%s=%s", at ? " " : "", at_numerics_field_at(i).name,
                                   value_text(n, i, number, sizeof number));
}

static const char *example_of(const struct at_declarations *d, const struct at_field_cases *c) {
    return c->example < 0 ? "" : d->plan.items[c->example].c->id;
}

static void put_json(const struct at_declarations *d, const struct at_variant_cases *v, int f, const char *mark) {
    const struct at_field_cases *c = &v->field[f];
    char number[16], same[160], other[160];
    alike(v, f, same, sizeof same);
    instead(v, f, other, sizeof other);
    json_t *object = json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:s, s:s, s:s, s:s, s:b}", "family",
                               v->v->family, "variant", v->v->name, "field", at_numerics_field_at(f).name, "value",
                               value_text(&v->v->numerics, f, number, sizeof number), "state",
                               state_name(at_field_state(v, f)), "by", how(c->refuted), "cases", (json_int_t)c->tested,
                               "taken", (json_int_t)v->taken, "example", example_of(d, c), "instead", other,
                               "not_told_apart", same, "not_tested", mark, "free_order", v->v->numerics.free_order);
    char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
    printf("%s\n", text ? text : "{}");
    free(text);
    json_decref(object);
}

static void put_row(const struct at_declarations *d, const struct at_variant_cases *v, int f, const char *mark) {
    const struct at_field_cases *c = &v->field[f];
    const enum at_field_state state = at_field_state(v, f);
    char number[16], same[160];
    alike(v, f, same, sizeof same);
    printf("  %-15s %-14s %-8s %-8s %5lld  ", at_numerics_field_at(f).name,
           value_text(&v->v->numerics, f, number, sizeof number), state_name(state), how(c->refuted),
           (long long)c->tested);
    if (state == AT_FIELD_TESTED)
        printf("%s", example_of(d, c));
    if (mark[0])
        printf("%s%s", state == AT_FIELD_TESTED ? "; but its source says not tested: " : "cannot be: ", mark);
    else if (state == AT_FIELD_VACUOUS)
        printf("gives the same as: %s", same[0] ? same : "nothing that a launch could show");
    putchar('\n');
}

static void count(enum at_field_state state, const char *mark, struct totals *sum) {
    sum->tested += state == AT_FIELD_TESTED;
    sum->vacuous += state == AT_FIELD_VACUOUS && !mark[0];
    sum->marked += state == AT_FIELD_VACUOUS && mark[0];
    sum->false_marks += mark[0] && state != AT_FIELD_VACUOUS;
    sum->fixed += state == AT_FIELD_FIXED;
    sum->no_claim += state == AT_FIELD_NO_CLAIM;
}

static void put_variant(const struct at_args *args, uint64_t fields, const struct at_declarations *d,
                        const struct at_variant_cases *v, struct totals *sum) {
    const int json = at_args_has(args, "--json"), quiet = at_args_has(args, "--quiet");
    int shown = 0;
    struct marks marks;
    read_marks(v->v, &marks);
    sum->unmet += v->taken == v->ill;
    if (marks.unknown[0]) {
        fprintf(stderr, "attest: %s: not tested: %s: wanted FIELD: REASON\n", v->v->path, marks.unknown);
        sum->false_marks++;
    }
    if (v->ill)
        fprintf(stderr, "attest: %s/%s: the declaration fits %lld of %lld cases not: %s\n", v->v->family, v->v->name,
                (long long)v->ill, (long long)v->taken, v->ill_reason);
    for (int f = 0; f < AT_FIELD_COUNT; f++) {
        if (!(fields >> f & 1))
            continue;
        const enum at_field_state state = at_field_state(v, f);
        const char *mark = marks.reason[f];
        const int odd = state == AT_FIELD_UNMET || (state == AT_FIELD_VACUOUS) != (mark[0] != 0);
        count(state, mark, sum);
        if (json)
            put_json(d, v, f, mark);
        if (json || state == AT_FIELD_NO_CLAIM || (quiet && !odd))
            continue;
        if (!shown++)
            printf("%s/%s: takes %lld of %lld cases\n", v->v->family, v->v->name, (long long)v->taken,
                   (long long)v->met);
        put_row(d, v, f, mark);
    }
}

static at_status read_field(const char *name, uint64_t *fields) {
    const char *names[AT_FIELD_COUNT];
    for (int f = 0; f < AT_FIELD_COUNT; f++)
        if (strcmp(names[f] = at_numerics_field_at(f).name, name) == 0) {
            *fields = UINT64_C(1) << f;
            return AT_OK;
        }
    const char *nearest = at_nearest_name(name, names, AT_FIELD_COUNT);
    return AT_FAIL(AT_USAGE, "--field: found '%.40s'%s%s%s; `attest help numerics` lists them", name,
                   nearest ? ", did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

static at_status read_options(const struct at_args *args, struct at_declarations_options *o) {
    const char *text;
    int64_t jobs;
    *o = (struct at_declarations_options){ .selection = { .globs = args->words,
                                                          .n_globs = args->n_words,
                                                          .cases_glob = "smoke:*",
                                                          .case_line = at_args_get(args, "--case"),
                                                          .shards = 1 },
                                           .runner = "cpu",
                                           .fields = ~UINT64_C(0) };
    if ((text = at_args_get(args, "--field")) != NULL)
        AT_TRY(read_field(text, &o->fields));
    if ((text = at_args_get(args, "--cases")) != NULL)
        o->selection.cases_glob = strcmp(text, "*") == 0 ? "*:*" : text;
    if (o->selection.case_line && text)
        return AT_FAIL(AT_USAGE, "--case and --cases exclude each other");
    if ((text = at_args_get(args, "--runner")) != NULL)
        o->runner = text;
    AT_TRY(at_args_int(args, "--enough", 1, 1000000, 0, &o->enough));
    AT_TRY(at_args_real(args, "--work", 1, 1e15, 1e6, &o->work));
    AT_TRY(at_args_int(args, "--jobs", 1, 256, at_threads(), &jobs));
    o->jobs = (int)jobs;
    return AT_OK;
}

static int exit_code(const struct totals *sum, int strict) {
    if (sum->tested + sum->vacuous + sum->marked + sum->fixed == 0)
        return 4;
    return strict && (sum->vacuous || sum->false_marks);
}

static int run(const struct at_args *args) {
    struct at_declarations_options o;
    struct at_declarations d;
    struct totals sum = { 0 };
    at_status status = read_options(args, &o);
    if (status == AT_OK)
        status = at_declarations_run(&o, &d);
    if (status != AT_OK)
        return at_report_failure(status);
    for (int i = 0; i < d.n; i++)
        if (d.variants[i].met)
            put_variant(args, o.fields, &d, &d.variants[i], &sum);
    at_declarations_release(&d);
    if (!at_args_has(args, "--json"))
        printf("%lld fields: %lld tested, %lld VACUOUS, %lld that no case can test, %lld without another value; %lld "
               "false marks, %lld variants that took no case\n",
               (long long)sum.tested + sum.vacuous + sum.marked + sum.fixed, (long long)sum.tested,
               (long long)sum.vacuous, (long long)sum.marked, (long long)sum.fixed, (long long)sum.false_marks,
               (long long)sum.unmet);
    return exit_code(&sum, at_args_has(args, "--strict"));
}

const struct at_command at_command_declarations = {
    .name = "declarations",
    .synopsis = "declarations [GLOB...] [options]",
    .summary = "which fields of each variant's declared arithmetic the cases test; launches nothing",
    .example = "attest declarations 'gemm/*' --cases 'edge:*' --strict",
    .options = options,
    .max_words = AT_MAX_WORDS,
    .run = run,
};
