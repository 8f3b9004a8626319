/* Stacks: layers of operators as a text, steps with the tensors that flow between them.
 * SPDX-License-Identifier: Apache-2.0
 *
 * datasets/stacks/README.md describes the language. A stack that is loaded is still text: settings may be changed, and what
 * hangs on them (shapes, keys of cases, which steps there are) is worked out when it is asked for. All messages name file
 * and line, what was found and what is wanted. */
#ifndef AT_STACK_H
#define AT_STACK_H

#include <stdint.h>
#include <stdio.h>

#include "attest/status.h"

enum {
    AT_STACK_NAME = 32,
    AT_STACK_TEXT = 96,
    AT_STACK_WORDS = 256,
    AT_STACK_KEYS = 768,
    AT_STACK_RANK = 4,
    AT_STACK_BINDINGS = 24
};

/* `set` or `let`. Of those with one name the first whose condition holds counts. */
struct at_stack_setting {
    char name[AT_STACK_NAME], value[AT_STACK_TEXT];
    char words[AT_STACK_WORDS];    /* set: those it may have, with '|' between; "": any number or word */
    char condition[AT_STACK_TEXT]; /* "peri=v1|v2 dtype=f16": all must hold; "": always */
    int is_let, line;
};

/* Where a line stands: before the layers, in them (once for each), behind them. */
enum at_stack_part { AT_STACK_BEFORE, AT_STACK_LAYERS, AT_STACK_BEHIND };

/* What comes from outside: normal numbers, rounded to dtype. A cache is drawn before the first turn of a sequence and then kept,
 * each layer's its own. */
struct at_stack_input {
    char name[AT_STACK_NAME], dims[AT_STACK_RANK][AT_STACK_TEXT], scale[AT_STACK_TEXT], condition[AT_STACK_TEXT];
    int rank, is_weight, is_cache, line; /* is_weight: scale is the fan-in, std 1/sqrt of it; else scale is std */
    enum at_stack_part part;
};

struct at_stack_binding {
    char tensor[AT_STACK_NAME], flow[AT_STACK_NAME];
};

struct at_stack_step {
    char kind[AT_STACK_NAME], name[AT_STACK_NAME], family[AT_STACK_TEXT], glob[AT_STACK_TEXT], keys[AT_STACK_KEYS],
        condition[AT_STACK_TEXT];
    struct at_stack_binding bound[AT_STACK_BINDINGS]; /* what feeds inputs, then where outputs go */
    int n_in, n_bound, line;
    enum at_stack_part part;
};

struct at_stack {
    char path[512], name[64]; /* name: of the file, without folder and suffix */
    char layers[AT_STACK_TEXT];
    int layers_line;
    struct at_stack_setting *settings;
    struct at_stack_input *inputs;
    struct at_stack_step *steps;
    int n_settings, n_inputs, n_steps;
};

/* NAME, of datasets/stacks/NAME.stack, or a path with a '/' or the suffix. */
at_status at_stack_load(const char *name, struct at_stack *stack);
at_status at_stack_parse(FILE *file, const char *path, struct at_stack *stack);
void at_stack_release(struct at_stack *stack);

/* "NAME=VALUE" with the words "--set" and so on in messages as `where`. */
at_status at_stack_set(struct at_stack *stack, const char *text, const char *where);

/* An expression of numbers, names of settings, + - * / and parentheses. */
at_status at_stack_number(const struct at_stack *stack, int line, const char *expression, double *value);
/* The same, whole and at least `least`. */
at_status at_stack_whole(const struct at_stack *stack, int line, const char *expression, int64_t least, int64_t *value);
/* The text with {expression} replaced by its number, {name} by the word that the setting has. */
at_status at_stack_expand(const struct at_stack *stack, int line, const char *text, char *out, size_t size);
at_status at_stack_holds(const struct at_stack *stack, int line, const char *condition, int *holds);
/* The setting of that name that counts now, NULL if there is none. */
const struct at_stack_setting *at_stack_setting(const struct at_stack *stack, const char *name);

#endif
