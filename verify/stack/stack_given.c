/* Tensors of a file for the inputs, weights and parameters of a stack.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/stack/stack_given.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "attest/names.h"

enum { PIECE = 1 << 16, NAMES_SHOWN = 4096 };

static void name_in(int64_t layer, const char *first, const char *second, char *name) {
    char place[32] = "";
    if (layer >= 0)
        snprintf(place, sizeof place, "layers.%" PRId64 ".", layer);
    snprintf(name, AT_READER_NAME_BYTES, "%s%.90s%s%.90s", place, first, second ? "." : "", second ? second : "");
}

/* ---- names ---- */

/* Every name that a file may have. Owned. */
struct names {
    char (*of)[AT_READER_NAME_BYTES];
    int n, room;
    int64_t inputs, found; /* flows among them, and how many of these the file has */
};

static at_status add_name(struct names *names, int64_t layer, const char *first, const char *second) {
    if (names->n == names->room) {
        const int room = names->room ? 2 * names->room : 256;
        void *grown = realloc(names->of, (size_t)room * sizeof *names->of);
        if (!grown)
            return AT_FAIL(AT_NO_MEMORY, "no memory for names of tensors");
        names->of = grown;
        names->room = room;
    }
    name_in(layer, first, second, names->of[names->n++]);
    return AT_OK;
}

/* Indices are the stack's own: who sits where. */
static int is_given_by_name(const struct at_stack_planned *step, int t) {
    const struct at_tensor_spec *spec = &step->op->tensors[t];
    return spec->role == AT_IN && step->in[t] < 0 && spec->format != AT_FORMAT_I32;
}

static at_status add_layer(const struct at_stack_plan *plan, enum at_stack_part part, int64_t layer,
                           const struct at_reader *reader, struct names *names) {
    for (int i = 0; i < plan->n_flows; i++)
        if (plan->flows[i].input && plan->flows[i].input->part == part) {
            AT_TRY(add_name(names, layer, plan->flows[i].name, NULL));
            names->inputs++;
            names->found += at_reader_find(reader, names->of[names->n - 1]) >= 0;
        }
    for (int i = 0; i < plan->n_steps; i++)
        for (int t = 0; plan->steps[i].text->part == part && t < plan->steps[i].op->n_tensors; t++)
            if (is_given_by_name(&plan->steps[i], t))
                AT_TRY(add_name(names, layer, plan->steps[i].text->name, plan->steps[i].op->tensors[t].name));
    return AT_OK;
}

static at_status all_names(const struct at_stack_plan *plan, const struct at_reader *reader, struct names *names) {
    AT_TRY(add_layer(plan, AT_STACK_BEFORE, -1, reader, names));
    for (int64_t layer = 0; layer < plan->layers; layer++)
        AT_TRY(add_layer(plan, AT_STACK_LAYERS, layer, reader, names));
    AT_TRY(add_layer(plan, AT_STACK_BEHIND, -1, reader, names));
    return add_name(names, -1, AT_STACK_TARGETS, NULL);
}

static int compare(const void *a, const void *b) { return strcmp(a, b); }

static at_status unknown(const char *path, const char *found, const struct names *names) {
    const char *list[NAMES_SHOWN];
    const int n = names->n < NAMES_SHOWN ? names->n : NAMES_SHOWN;
    for (int i = 0; i < n; i++)
        list[i] = names->of[i];
    const char *nearest = at_nearest_name(found, list, n);
    return AT_FAIL(AT_USAGE, "%s: tensor %s: nothing in this stack has that name%s%s%s", path, found,
                   nearest ? ", did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

static at_status check_names(const struct at_stack_plan *plan, struct at_stack_given *given) {
    struct names names = { 0 };
    at_status status = all_names(plan, given->reader, &names);
    if (status == AT_OK)
        qsort(names.of, (size_t)names.n, sizeof *names.of, compare);
    for (int i = 0; i < at_reader_count(given->reader) && status == AT_OK; i++) {
        const char *name = at_reader_tensor(given->reader, i)->name;
        if (!bsearch(name, names.of, (size_t)names.n, sizeof *names.of, compare))
            status = unknown(given->path, name, &names);
    }
    given->drawn = names.inputs - names.found;
    free(names.of);
    return status;
}

at_status at_stack_given_open(const char *path, const struct at_stack_plan *plan, struct at_stack_given *given) {
    *given = (struct at_stack_given){ .path = path };
    AT_TRY(at_reader_open(path, &given->reader));
    const at_status status = check_names(plan, given);
    if (status != AT_OK)
        at_stack_given_close(given);
    return status;
}

void at_stack_given_close(struct at_stack_given *given) {
    if (given->reader)
        at_reader_close(given->reader);
    given->reader = NULL;
}

/* ---- values ---- */

/* Tensor `name` of the file, where there is one, into n codes of a format, and as what they stand for into exact, where that is
 * wanted. */
static at_status take(struct at_stack_given *given, const char *name, enum at_format format, int64_t n, void *codes,
                      double *exact) {
    const int at = at_reader_find(given->reader, name);
    const struct at_file_tensor *file = at < 0 ? NULL : at_reader_tensor(given->reader, at);
    at_status status = AT_OK;
    if (!file)
        return AT_OK;
    if (!file->supported || file->format == AT_I32)
        return AT_FAIL(AT_USAGE, "%s: tensor %s is of %s, wanted floating-point numbers", given->path, name,
                       file->type_name);
    if (file->count != n)
        return AT_FAIL(AT_USAGE, "%s: tensor %s has %" PRId64 " elements, wanted %" PRId64, given->path, name,
                       file->count, n);
    double *piece = malloc(PIECE * sizeof *piece);
    if (!piece)
        return AT_FAIL(AT_NO_MEMORY, "no memory for tensor %s", name);
    for (int64_t first = 0; first < n; first += PIECE) {
        const int64_t count = n - first < PIECE ? n - first : PIECE;
        AT_TRY_OUT(at_reader_read_f64(given->reader, at, first, count, piece));
        for (int64_t i = 0; i < count; i++)
            at_store(format, codes, (size_t)(first + i), piece[i]);
        for (int64_t i = 0; exact && i < count; i++)
            exact[first + i] = at_load(format, codes, (size_t)(first + i));
    }
out:
    free(piece);
    return status;
}

at_status at_stack_given_flows(struct at_stack_given *given, const struct at_stack_plan *plan, enum at_stack_part part,
                               int64_t layer, struct at_stack_value *values) {
    for (int i = 0; i < plan->n_flows; i++) {
        const struct at_stack_flow *flow = &plan->flows[i];
        char name[AT_READER_NAME_BYTES];
        if (!flow->input || flow->input->part != part)
            continue;
        name_in(layer, flow->name, NULL, name);
        AT_TRY(take(given, name, flow->shape.format, at_tensor_count(&flow->shape), values[i].stored, values[i].exact));
    }
    return AT_OK;
}

at_status at_stack_given_step(struct at_stack_given *given, const struct at_stack_planned *step, int64_t layer,
                              struct at_problem *problem) {
    for (int t = 0; t < step->op->n_tensors; t++) {
        struct at_tensor *tensor = &problem->tensors[t];
        char name[AT_READER_NAME_BYTES];
        if (!is_given_by_name(step, t))
            continue;
        name_in(layer, step->text->name, step->op->tensors[t].name, name);
        given->parameters += tensor->rank && at_tensor_count(tensor) > 0 && at_reader_find(given->reader, name) < 0;
        AT_TRY(take(given, name, tensor->format, tensor->rank ? at_tensor_count(tensor) : 0, tensor->data, NULL));
    }
    return AT_OK;
}
