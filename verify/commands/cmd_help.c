/* attest help: a command's help, or a topic made from the tables that the program itself goes by.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "attest/names.h"
#include "datasets/design/domain_draw.h"
#include "datasets/language/case.h"
#include "verify/cli/commands.h"
#include "verify/result/result.h"

enum { MAX_NAMES = 256 };

static const struct at_option options[] = { { NULL, NULL, NULL } };

/* "  name            text", the text in lines that begin where it does. */
static void item(const char *name, int width, const char *text) {
    const int used = printf("  %-*s ", width, name);
    at_put_indented(text, used, width + 3, stdout);
}

/* ---- families ---- */

static int is_of(const struct at_family *family, const char *op) { return strcmp(family->op, op) == 0; }

/* NULL without a word; of an operator its first family. */
static at_status find_family(const char *word, const struct at_family **family) {
    const char *names[MAX_NAMES];
    int n = 0;
    *family = word ? at_family_find(word) : NULL;
    for (int i = 0; word && !*family && i < at_family_count(); i++)
        *family = is_of(at_family_at(i), word) ? at_family_at(i) : NULL;
    if (!word || *family)
        return AT_OK;
    for (; n < at_family_count() && n < MAX_NAMES; n++)
        names[n] = at_family_at(n)->name;
    const char *nearest = at_nearest_name(word, names, n);
    return AT_FAIL(AT_NOT_FOUND, "help: there is no family '%.64s'%s%s%s; `attest list families` names all", word,
                   nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

/* ---- topics ---- */

static void print_class(const char *before, const char *text) {
    printf("    %s%s\n", before, *text ? text : "(its keys left out)");
}

/* What cases of a family may differ in, as its operator declares it. */
static void help_domain(const struct at_family *family) {
    struct at_domain domain;
    if (at_domain_open(family, NULL, 0, &domain) != AT_OK) {
        at_error_clear();
        printf("\noperator %s declares no domain: there are no cases of %s by design and no random ones\n", family->op,
               family->name);
        return;
    }
    printf("\ndomain of %s, a line a class (`attest cases --design`, `attest verify --random`):\n", family->name);
    for (int f = 0; f < domain.n; f++) {
        const struct at_family_factor *factor = &domain.factors[f];
        const unsigned flags = factor->factor->flags;
        printf("  %s: %s%s%s\n", factor->factor->name, factor->factor->meaning,
               flags & AT_FACTOR_TRIPLES ? " [in triples]" : "",
               flags & AT_FACTOR_GRANULES ? " [and the split, block and pv_chunk of variants]" : "");
        for (int c = 0; c < factor->n + factor->n_far; c++)
            print_class(c < factor->n ? "" : "far out: ", factor->classes[c]);
        if (factor->factor->any)
            print_class("random cases also: ", factor->factor->any);
    }
}

static void help_cases(const struct at_family *family) {
    printf(
        "A case is one line: a kernel family, then key=value. `,` and `a..b` make separate cases (their product, the\n"
        "rightmost key fastest), `/` gives the requests of one batch their values in turn, `:` separates the parts of\n"
        "one value, `#` starts a comment. The id of a case is the same line with every key, defaults filled in: equal\n"
        "ids are equal problems, bit for bit. Case files are datasets/cases/ROLE.cases; --cases takes a glob for\n"
        "ROLE:ID, --case a line.\n\nkeys%s%s:\n",
        family ? " of " : "", family ? family->name : "; `attest help cases FAMILY` shows those of one family");
    for (int i = 0;; i++) {
        char name[64];
        const char *text = family ? at_case_family_key_help(family, i) : at_case_key_help(i);
        if (!text)
            break;
        const int length = (int)strcspn(text, " ");
        snprintf(name, sizeof name, "%.*s", length, text);
        item(name, 11, text + length + strspn(text + length, " "));
    }
    if (family)
        help_domain(family);
    for (int i = 0; family && i < at_family_count(); i++)
        if (at_family_at(i) != family && is_of(at_family_at(i), family->op))
            printf("\noperator %s has family %s too: `attest help cases %s`\n", family->op, at_family_at(i)->name,
                   at_family_at(i)->name);
    printf("\nexample:\n  asynct_decode b=2 h=8 hk=4 sk=1,17,256 d=128 page=16 dtype=bf16 data=normal seed=7\n");
}

static void help_numerics(const struct at_family *family) {
    (void)family;
    printf(
        "What a variant declares of its own arithmetic: field=value with spaces between, fields left out have their\n"
        "defaults. Limits and modelled bits are derived from it, and the variant is held to it.\n");
    for (int i = 0; i < at_numerics_field_count(); i++) {
        const struct at_numerics_field f = at_numerics_field_at(i);
        if (f.words)
            printf("\n%s=%s: %s\n", f.name, f.words[f.fallback].name, f.meaning);
        else
            printf("\n%s=%d: %s; a whole number\n", f.name, f.fallback, f.meaning);
        for (int w = 0; f.words && w < f.n_words; w++)
            if (f.words[w].meaning)
                item(f.words[w].name, 15, f.words[w].meaning);
            else
                printf("%s%s%s", w ? " " : "  ", f.words[w].name, w + 1 == f.n_words ? "\n" : "");
    }
}

static const char *format_text(enum at_format_rule rule) {
    switch (rule) {
    case AT_FORMAT_DTYPE:
        return "dtype";
    case AT_FORMAT_F32:
        return "f32";
    case AT_FORMAT_I32:
        return "i32";
    case AT_FORMAT_OWN:
        return "own";
    case AT_FORMAT_F64:
        return "f64";
    }
    return "?";
}

static void tensors_of(const struct at_op *op) {
    static const char *const roles[] = { [AT_IN] = "in", [AT_OUT] = "out", [AT_INOUT] = "in, out" };
    printf("\n%s: %s\n", op->name, op->summary);
    for (int i = 0; i < op->n_tensors; i++) {
        const struct at_tensor_spec *t = &op->tensors[i];
        char head[160], shape[96] = "";
        for (int d = 0; d < AT_MAX_RANK && t->dims[d] != AT_DIM_NONE; d++)
            snprintf(shape + strlen(shape), sizeof shape - strlen(shape), "%s%s", d ? ", " : "",
                     at_dim_word(op, t->dims[d]));
        snprintf(head, sizeof head, "%-14s %-7s %-5s [%s]", t->name, roles[t->role], format_text(t->format), shape);
        item(head, 56, t->meaning);
    }
}

static void help_tensors(const struct at_family *family) {
    printf("name, role, format (dtype: of the activations; own: by a parameter, as `out` of a product), what its "
           "dimensions count, meaning\n");
    if (family)
        tensors_of(at_op_find(family->op));
    for (int i = 0; !family && i < at_op_count(); i++)
        tensors_of(at_op_at(i));
}

static void help_verdicts(const struct at_family *family) {
    static const char *const classes[] = {
        [AT_CLASS_GOOD] = "",
        [AT_CLASS_VACUOUS] = "proves nothing: fails the run with --strict",
        [AT_CLASS_WRONG] = "fails the run",
        [AT_CLASS_EXPECTED] = "fails the run unless the case says expect=",
        [AT_CLASS_BROKEN] = "no result to judge: fails the run",
        [AT_CLASS_DECLINED] = "not judged; with --strict a variant that is never judged fails the run",
    };
    (void)family;
    for (int i = 0; i < AT_STATE_COUNT; i++) {
        char text[256];
        const enum at_state state = (enum at_state)i;
        const char *class = classes[at_state_class(state)];
        snprintf(text, sizeof text, "%s%s%s", at_state_meaning(state), *class ? "; " : "", class);
        item(at_state_name(state), 12, text);
    }
    printf("\nWRONG is said of an element beyond its limit, and of a whole: where limits decide and the data are drawn "
           "from\n"
           "smooth densities, sums over the errors of a tensor and of each of its heads are held to what the declared\n"
           "roundings to nearest can make of them (\"biased: slope 1.03, at most 1.0004\"), on data of three seeds.\n"
           "RESOLVES is the smallest uniform scale error that would have been seen.\n");
}

static void help_stacks(const struct at_family *family) {
    (void)family;
    printf("A stack is a file of lines, datasets/stacks/NAME.stack (its README.md tells more); `\\` continues one, `#` "
           "starts a\n"
           "comment. `attest stack NAME` judges it, `attest stack NAME --steps` prints what it comes to.\n\n");
    item("set NAME = VALUE", 36,
         "a setting, which --set NAME=VALUE changes; A | B | C: one of these words, A unless it is changed");
    item("let NAME = EXPRESSION", 36, "a number that follows: names, numbers, + - * / and parentheses");
    item("input NAME [SIZE, SIZE] std=NUMBER", 36,
         "a flow from outside, normal numbers; one that stands among the layers is drawn for each");
    item("weight NAME [SIZE, SIZE] fan=NUMBER", 36, "the same with std 1/sqrt(fan)");
    item("cache NAME [SIZE, SIZE] std=NUMBER", 36,
         "the same as input, but kept from turn to turn; `set turns = N` makes a sequence: turn 0, then N more");
    item("layers NUMBER ... end", 36, "what stands between is repeated");
    item("base NAME", 36, "first of all: another stack, of which `set` lines change settings");
    item("step KIND NAME FAMILY/VARIANT ...", 36,
         "an operator: keys of a case (`attest help cases FAMILY`); `:` and TENSOR=FLOW for what flows feed (`attest "
         "help tensors FAMILY`); `->` and TENSOR=FLOW for where outputs go. VARIANT is a glob: the last that takes the "
         "step runs it");
    printf("\nIn texts {EXPRESSION} stands for its number, {NAME} for a setting's word. A line that ends in `when "
           "NAME=A|B` counts\n"
           "where that holds. A flow has one format and one number of elements, and feeds any tensor that has "
           "both.\n\nexample:\n"
           "  step gemm down gemm/*_f32_sum m={b*sq} n={hidden} k={inter} : a=act b=w_down -> d=x\n");
}

static void help_exit(const struct at_family *family) {
    (void)family;
    at_put_exit_codes(stdout);
}

static const struct {
    const char *name, *summary;
    void (*print)(const struct at_family *family);
    int takes_family;
} topics[] = {
    { "cases", "the case language: keys, meanings, defaults; what cases may differ in [FAMILY or OPERATOR]", help_cases,
      1 },
    { "numerics", "what a variant declares of its arithmetic", help_numerics, 0 },
    { "tensors", "tensors of the operators: shapes, formats, meanings [FAMILY]", help_tensors, 1 },
    { "verdicts", "states of results, and which fail a run", help_verdicts, 0 },
    { "stacks", "the language of stacks", help_stacks, 0 },
    { "exit", "exit codes", help_exit, 0 },
};
enum { N_TOPICS = sizeof topics / sizeof *topics };

void at_put_topics(FILE *out) {
    for (int t = 0; t < N_TOPICS; t++)
        fprintf(out, "  %-10s %s\n", topics[t].name, topics[t].summary);
}

static at_status unknown(const char *word) {
    const char *names[MAX_NAMES];
    int n = 0;
    for (int t = 0; t < N_TOPICS; t++)
        names[n++] = topics[t].name;
    for (int i = 0; at_commands[i] && n < MAX_NAMES; i++)
        names[n++] = at_commands[i]->name;
    const char *nearest = at_nearest_name(word, names, n);
    return AT_FAIL(AT_USAGE, "help: there is no command and no topic '%.64s'%s%s%s; `attest help` lists them", word,
                   nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

static at_status help(const struct at_args *args) {
    const struct at_family *family;
    const char *word = args->words[0];
    for (int t = 0; t < N_TOPICS; t++)
        if (strcmp(topics[t].name, word) == 0) {
            if (args->n_words > 1 && !topics[t].takes_family)
                return AT_FAIL(AT_USAGE, "help: %s goes with no further word, found '%.64s'", word, args->words[1]);
            AT_TRY(find_family(args->n_words > 1 ? args->words[1] : NULL, &family));
            topics[t].print(family);
            return AT_OK;
        }
    for (int i = 0; at_commands[i]; i++)
        if (strcmp(at_commands[i]->name, word) == 0 && args->n_words == 1) {
            at_command_help(at_commands[i]);
            return AT_OK;
        }
    return args->n_words > 1
               ? AT_FAIL(AT_USAGE, "help: found '%.64s %.64s', wanted a topic and a family", word, args->words[1])
               : unknown(word);
}

static int run(const struct at_args *args) {
    if (args->n_words == 0) {
        at_put_usage(stdout);
        return 0;
    }
    const at_status status = help(args);
    return status == AT_OK ? 0 : at_report_failure(status);
}

const struct at_command at_command_help_topics = {
    .name = "help",
    .synopsis = "help [COMMAND | cases [FAMILY or OPERATOR] | numerics | tensors [FAMILY] | verdicts | stacks | exit]",
    .summary = "a command's help, or a topic",
    .example = "attest help cases asynct_decode",
    .options = options,
    .max_words = 2,
    .run = run,
};
