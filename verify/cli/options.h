/* Commands and their options as tables that drive parsing and help alike.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_OPTIONS_H
#define AT_OPTIONS_H

#include "attest/status.h"

#include <stdint.h>
#include <stdio.h>

enum { AT_MAX_OPTIONS = 32, AT_MAX_WORDS = 4096 };

struct at_option {
    const char *name; /* "--cases" */
    /* The value's name in help; "[X]": may be left out, before another option or at the end; NULL for a flag. */
    const char *value;
    const char *help;
};

/* What was typed, after parsing: values[i] belongs to options[i]; "" for a flag that was given, NULL when not. */
struct at_args {
    const struct at_option *options;
    const char *values[AT_MAX_OPTIONS];
    const char **words; /* positional arguments; owned array, borrowed strings */
    int n_words;
};

struct at_command {
    const char *name, *synopsis, *summary, *example;
    const struct at_option *options; /* ends with a NULL name */
    int min_words, max_words;
    int reads_archives;                     /* that may be damaged: it runs in a process that may die of them */
    int (*run)(const struct at_args *args); /* the process's exit code */
};

/* Parses argv[0..argc) (without program and command). "--help" anywhere: *help = 1. "--" ends options.
 * An unknown option is AT_USAGE and suggests the nearest. */
at_status at_args_parse(const struct at_command *command, int argc, char **argv, struct at_args *args, int *help);
void at_args_release(struct at_args *args);
/* Value of an option by name; NULL when not given. A name that is not in the table is a bug and aborts. */
const char *at_args_get(const struct at_args *args, const char *name);
int at_args_has(const struct at_args *args, const char *name);
/* Whole number in [low, high]; `fallback` when the option was not given. */
at_status at_args_int(const struct at_args *args, const char *name, int64_t low, int64_t high, int64_t fallback,
                      int64_t *value);
/* Finite number in [low, high]. */
at_status at_args_real(const struct at_args *args, const char *name, double low, double high, double fallback,
                       double *value);
/* The command line that was typed, with these words quoted for a shell, and `more` behind it. */
void at_args_put(const struct at_command *command, const struct at_args *args, const char *more, FILE *out);
/* The words of a text, of which the first begins in column `column`, in lines that begin in column `indent`. */
void at_put_indented(const char *text, int column, int indent, FILE *out);
void at_command_help(const struct at_command *command);

#endif
