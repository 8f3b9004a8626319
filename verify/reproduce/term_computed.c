/* Terms that are computed here, in a second or less: bytes of a case, zeros and ranges of an evaluation, sums of a mode.
 * SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/names.h"
#include "verify/reproduce/terms.h"
#include "verify/study/accumulate/study.h"
#include "verify/study/zeros/study_zeros.h"

enum { MAX_WORK = 400000000, STUDY_SUMS = 128, LINE_BYTES = 1024 };

static at_status unknown(const struct at_term *term, const char *found, const char *wanted) {
    return AT_FAIL(AT_USAGE, "%s: %s: found \"%.60s\", wanted %s", term->where, term->kind->name, found, wanted);
}

/* The one case that words from `from` on are; the caller releases the list. */
static at_status the_case(const struct at_term *term, int from, struct at_case_list *list) {
    char line[LINE_BYTES];
    *list = (struct at_case_list){ 0 };
    at_term_line(term, from, line, sizeof line);
    AT_TRY(at_case_parse(line, "line", term->where, list));
    return list->n == 1 ? AT_OK : unknown(term, line, "one case");
}

static at_status check_case(const struct at_term *term, int from) {
    struct at_case_list list;
    AT_TRY(at_term_want(term, from + 1));
    const at_status status = the_case(term, from, &list);
    at_case_list_release(&list);
    return status;
}

/* Builds the case and refuses one whose evaluation would keep a reader waiting. */
static at_status build(const struct at_term *term, int from, struct at_case_list *list, struct at_case_data *data) {
    *data = (struct at_case_data){ 0 };
    AT_TRY(the_case(term, from, list));
    AT_TRY(at_case_build(&list->items[0], data));
    const struct at_problem *p = &data->problem;
    double work = 0;
    for (int64_t r = 0, rows = p->op->rows(p); r < rows; r++)
        work += p->op->row_work(p, r);
    return work <= MAX_WORK ? AT_OK : unknown(term, list->items[0].id, "a case of at most 4e8 multiply-adds");
}

static void note_case(const struct at_case_list *list, struct at_term_value *v) {
    snprintf(v->note, sizeof v->note, "%.150s", list->n ? list->items[0].id : "");
}

/* ---- bytes ---- */

static at_status check_bytes(const struct at_term *term) { return check_case(term, 0); }

/* By the line alone: a model's matrices take a second to fill, and their bytes are known. */
static at_status find_bytes(struct at_term_sources *sources, const struct at_run_evidence *run,
                            const struct at_term *term, struct at_term_value *v) {
    struct at_case_list list;
    (void)sources, (void)run;
    const at_status status = the_case(term, 0, &list);
    if (status == AT_OK)
        v->value = (double)at_case_bytes(&list.items[0]);
    note_case(&list, v);
    at_case_list_release(&list);
    return status;
}

const struct at_term_kind at_term_bytes = { .name = "bytes",
                                            .wants = "FAMILY KEY=VALUE...",
                                            .meaning = "bytes of all tensors of a case",
                                            .check = check_bytes,
                                            .find = find_bytes };

/* ---- ledger ---- */

static int stage_named(const char *name) {
    static const char *const names[] = {
#define X(stage, meaning) #stage,
        AT_STAGE_LIST(X)
#undef X
    };
    for (int i = 0; i < AT_STAGE_COUNT; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

static const struct at_field *counter_named(const char *name) {
    const struct at_field *field;
    for (int i = 0; (field = at_ledger_row_field(i)); i++)
        if (strcmp(field->name, name) == 0)
            return field;
    return NULL;
}

static at_status check_ledger(const struct at_term *term) {
    AT_TRY(at_term_want(term, 3));
    if (stage_named(term->words[0]) < 0)
        return unknown(term, term->words[0], "a stage of reference/attest/ledger.h");
    if (!counter_named(term->words[1]))
        return unknown(term, term->words[1], "a count of the ledger");
    return check_case(term, 2);
}

static at_status find_ledger(struct at_term_sources *sources, const struct at_run_evidence *run,
                             const struct at_term *term, struct at_term_value *v) {
    struct at_case_list list = { 0 };
    struct at_case_data data = { 0 };
    struct at_ledger ledger;
    at_status status = AT_OK;
    (void)sources, (void)run;
    memset(&ledger, 0, sizeof ledger);
    AT_TRY_OUT(build(term, 2, &list, &data));
    struct at_eval eval = { .ledger = &ledger };
    AT_TRY_OUT(data.problem.op->evaluate(&data.problem, NULL, 0, data.problem.op->rows(&data.problem), &eval));
    const struct at_field *field = counter_named(term->words[1]);
    const void *at = at_field_of(field, &ledger.stage[stage_named(term->words[0])]);
    v->value = field->kind == AT_FIELD_F64 ? *(const double *)at : (double)*(const uint64_t *)at;
    note_case(&list, v);
out:
    at_case_data_release(&data);
    at_case_list_release(&list);
    return status;
}

const struct at_term_kind at_term_ledger = { .name = "ledger",
                                             .wants = "STAGE COUNT FAMILY KEY=VALUE...",
                                             .meaning = "a count of the ledger of an exact evaluation",
                                             .check = check_ledger,
                                             .find = find_ledger };

/* ---- zeros ---- */

static const int64_t *zeros_named(const struct at_zeros *z, const char *name) {
    const struct {
        const char *name;
        const int64_t *value;
    } all[] = { { "elements", &z->elements },       { "zero", &z->zero },     { "strips", &z->strips },
                { "zero_strips", &z->zero_strips }, { "blocks", &z->blocks }, { "zero_blocks", &z->zero_blocks } };
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (strcmp(all[i].name, name) == 0)
            return all[i].value;
    return NULL;
}

static at_status check_zeros(const struct at_term *term) {
    const struct at_zeros none = { 0 };
    AT_TRY(at_term_want(term, 2));
    if (!zeros_named(&none, term->words[0]))
        return unknown(term, term->words[0], "elements, zero, strips, zero_strips, blocks or zero_blocks");
    return check_case(term, 1);
}

/* Of the operator's first output, which is a matrix of rows. */
static at_status find_zeros(struct at_term_sources *sources, const struct at_run_evidence *run,
                            const struct at_term *term, struct at_term_value *v) {
    struct at_case_list list = { 0 };
    struct at_case_data data = { 0 };
    struct at_eval eval = { 0 };
    struct at_zeros zeros;
    double *values = NULL;
    at_status status = AT_OK;
    (void)sources, (void)run;
    AT_TRY_OUT(build(term, 1, &list, &data));
    const struct at_problem *p = &data.problem;
    int t = 0;
    while (t < p->op->n_tensors && p->op->tensors[t].role == AT_IN)
        t++;
    const int64_t rows = p->op->rows(p), n = at_tensor_count(&p->tensors[t]);
    values = calloc((size_t)n + 1, sizeof *values);
    if (!values)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory for %" PRId64 " outputs", term->where, n);
    eval.value[t] = values;
    AT_TRY_OUT(p->op->evaluate(p, NULL, 0, rows, &eval));
    at_zeros_count(p->tensors[t].format, rows, rows ? n / rows : 0, values, &zeros);
    v->value = (double)*zeros_named(&zeros, term->words[0]);
    note_case(&list, v);
out:
    free(values);
    at_case_data_release(&data);
    at_case_list_release(&list);
    return status;
}

const struct at_term_kind at_term_zeros = { .name = "zeros",
                                            .wants = "COUNT FAMILY KEY=VALUE...",
                                            .meaning = "zeros of an operator's output, one by one and in blocks",
                                            .check = check_zeros,
                                            .find = find_zeros };

/* ---- study ---- */

static int product_named(const char *name) {
    for (int i = 0; i < AT_STUDY_PRODUCTS; i++)
        if (strcmp(at_study_product_name((enum at_study_product)i), name) == 0)
            return i;
    return -1;
}

static const struct at_field *study_column(const char *name) {
    const struct at_field *field;
    for (int i = 0; (field = at_study_field(i)); i++)
        if (strcmp(field->name, name) == 0 && field->kind != AT_FIELD_TEXT)
            return field;
    return NULL;
}

static at_status check_mode(const struct at_term *term) {
    enum { MAX = 64 };
    const char *names[MAX];
    int n = 0;
    for (; n < at_study_mode_count() && n < MAX; n++)
        names[n] = at_study_mode_at(n)->name;
    if (at_study_mode_find(term->words[0]))
        return AT_OK;
    const char *near = at_nearest_name(term->words[0], names, n);
    return AT_FAIL(AT_USAGE, "%s: %s: found \"%.40s\"%s%s%s, wanted a mode of `attest study modes`", term->where,
                   term->kind->name, term->words[0], near ? ", did you mean '" : "", near ? near : "",
                   near ? "'?" : "");
}

static at_status check_study(const struct at_term *term) {
    AT_TRY(at_term_want(term, 4));
    AT_TRY(check_mode(term));
    if (product_named(term->words[1]) < 0)
        return unknown(term, term->words[1], "qk, pv or pv_unit");
    if (!study_column(term->words[2]))
        return unknown(term, term->words[2], "a number of the study's rows");
    return check_case(term, 3);
}

static at_status find_study(struct at_term_sources *sources, const struct at_run_evidence *run,
                            const struct at_term *term, struct at_term_value *v) {
    const struct at_study_mode *mode = at_study_mode_find(term->words[0]);
    const enum at_study_product product = (enum at_study_product)product_named(term->words[1]);
    const struct at_field *field = study_column(term->words[2]);
    struct at_study_input input = { 0 };
    struct at_study_rows rows = { 0 };
    char line[LINE_BYTES];
    at_status status = AT_OK;
    (void)sources, (void)run;
    at_term_line(term, 3, line, sizeof line);
    AT_TRY_OUT(at_study_input_open(line, &input));
    if (!at_study_has(&input, product))
        AT_FAIL_OUT(AT_USAGE, "%s: study: found %s, wanted a product of %s", term->where, term->words[1], line);
    AT_TRY_OUT(at_study_measure(&input, product, "", "", &mode, 1, STUDY_SUMS, &rows));
    const void *at = at_field_of(field, &rows.items[0]);
    v->value = field->kind == AT_FIELD_F64   ? *(const double *)at
               : field->kind == AT_FIELD_INT ? (double)*(const int *)at
                                             : (double)*(const int64_t *)at;
    snprintf(v->note, sizeof v->note, "%.40s of %.10s, %.90s", mode->name, term->words[1], line);
out:
    at_study_rows_release(&rows);
    at_study_input_release(&input);
    return status;
}

const struct at_term_kind at_term_study = { .name = "study",
                                            .wants = "MODE PRODUCT COLUMN FAMILY KEY=VALUE...",
                                            .meaning = "what a mode of accumulation does to 128 sums of a case",
                                            .check = check_study,
                                            .find = find_study };

/* ---- add ---- */

static at_status check_add(const struct at_term *term) {
    AT_TRY(at_term_want(term, 4));
    AT_TRY(check_mode(term));
    char *end;
    const long n = strtol(term->words[1], &end, 10);
    if (*end || n < 1 || n > 1000000)
        return unknown(term, term->words[1], "a number of products from 1 to 1000000");
    for (int i = 2; i < 4; i++) {
        const double x = strtod(term->words[i], &end);
        if (*end || at_round(at_study_mode_find(term->words[0])->operand, x) != x)
            return unknown(term, term->words[i], "a number that the mode's operands can be");
    }
    return AT_OK;
}

static at_status find_add(struct at_term_sources *sources, const struct at_run_evidence *run,
                          const struct at_term *term, struct at_term_value *v) {
    const struct at_study_mode *mode = at_study_mode_find(term->words[0]);
    const int64_t n = strtol(term->words[1], NULL, 10);
    double *a = calloc((size_t)n, sizeof *a), *b = calloc((size_t)n, sizeof *b);
    (void)sources, (void)run;
    for (int64_t i = 0; a && b && i < n; i++) {
        a[i] = strtod(term->words[2], NULL);
        b[i] = strtod(term->words[3], NULL);
    }
    if (a && b)
        v->value = at_study_add(mode, n, a, b, NULL, NULL);
    const at_status status = a && b ? AT_OK : AT_FAIL(AT_NO_MEMORY, "no memory for %" PRId64 " products", n);
    free(a);
    free(b);
    snprintf(v->note, sizeof v->note, "%" PRId64 " products of %.20s and %.20s, %s", n, term->words[2], term->words[3],
             mode->name);
    return status;
}

const struct at_term_kind at_term_add = { .name = "add",
                                          .wants = "MODE N A B",
                                          .meaning = "the sum of N products A B by a mode of accumulation",
                                          .check = check_add,
                                          .find = find_add };

/* ---- format ---- */

static at_status find_format(struct at_term_sources *sources, const struct at_run_evidence *run,
                             const struct at_term *term, struct at_term_value *v) {
    enum at_format format;
    (void)sources, (void)run;
    AT_TRY(at_format_parse(term->words[0], &format));
    const struct at_format_info *info = at_format_info(format);
    v->value = strcmp(term->words[1], "max") == 0 ? info->max
               : strcmp(term->words[1], "u") == 0 ? info->u
                                                  : (double)info->precision;
    snprintf(v->note, sizeof v->note, "%.60s of %.20s", term->words[1], info->name);
    return AT_OK;
}

static at_status check_format(const struct at_term *term) {
    enum at_format format;
    AT_TRY(at_term_want(term, 2));
    AT_TRY(at_format_parse(term->words[0], &format));
    if (strcmp(term->words[1], "max") != 0 && strcmp(term->words[1], "u") != 0 &&
        strcmp(term->words[1], "precision") != 0)
        return unknown(term, term->words[1], "max, u or precision");
    return AT_OK;
}

const struct at_term_kind at_term_format = { .name = "format",
                                             .wants = "FORMAT max|u|precision",
                                             .meaning = "a fact of a number format",
                                             .check = check_format,
                                             .find = find_format };
