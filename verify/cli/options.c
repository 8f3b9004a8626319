/* Parsing of command lines by table, and the help text from the same table.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/cli/options.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/names.h"

static int option_index(const struct at_option *options, const char *name, size_t length) {
    for (int i = 0; options[i].name; i++)
        if (strlen(options[i].name) == length && strncmp(options[i].name, name, length) == 0)
            return i;
    return -1;
}

static at_status unknown_option(const struct at_command *command, const char *word, size_t length) {
    const char *names[AT_MAX_OPTIONS];
    char typed[64];
    int n = 0;
    for (; command->options[n].name; n++)
        names[n] = command->options[n].name;
    snprintf(typed, sizeof typed, "%.*s", (int)length, word);
    const char *nearest = at_nearest_name(typed, names, n);
    return AT_FAIL(AT_USAGE, "attest %s: unknown option %s%s%s%s", command->name, typed,
                   nearest ? "; did you mean " : "", nearest ? nearest : "", nearest ? "?" : "");
}

static at_status take_option(const struct at_command *command, int argc, char **argv, int *i, struct at_args *args) {
    const char *word = argv[*i], *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    int index = option_index(command->options, word, length);
    if (index < 0)
        return unknown_option(command, word, length);
    const struct at_option *option = &command->options[index];
    if (args->values[index])
        return AT_FAIL(AT_USAGE, "attest %s: %s is given twice", command->name, option->name);
    if (!option->value) {
        if (equals)
            return AT_FAIL(AT_USAGE, "attest %s: %s takes no value, found \"%s\"", command->name, option->name,
                           equals + 1);
        args->values[index] = "";
    } else if (equals) {
        args->values[index] = equals + 1;
    } else if (*option->value == '[' && (*i + 1 == argc || argv[*i + 1][0] == '-')) {
        args->values[index] = "";
    } else if (*i + 1 < argc) {
        args->values[index] = argv[++*i];
    } else {
        return AT_FAIL(AT_USAGE, "attest %s: %s wants a value: %s %s", command->name, option->name, option->name,
                       option->value);
    }
    return AT_OK;
}

at_status at_args_parse(const struct at_command *command, int argc, char **argv, struct at_args *args, int *help) {
    memset(args, 0, sizeof *args);
    args->options = command->options;
    *help = 0;
    args->words = calloc((size_t)argc + 1, sizeof *args->words);
    if (!args->words)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %d arguments", argc);
    int only_words = 0;
    for (int i = 0; i < argc; i++) {
        if (!only_words && (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)) {
            *help = 1;
            return AT_OK;
        }
        if (!only_words && strcmp(argv[i], "--") == 0)
            only_words = 1;
        else if (!only_words && argv[i][0] == '-' && argv[i][1] == '-')
            AT_TRY(take_option(command, argc, argv, &i, args));
        else
            args->words[args->n_words++] = argv[i];
    }
    if (args->n_words < command->min_words || args->n_words > command->max_words)
        return AT_FAIL(AT_USAGE, "attest %s: found %d arguments; usage: attest %s", command->name, args->n_words,
                       command->synopsis);
    return AT_OK;
}

void at_args_release(struct at_args *args) {
    free(args->words);
    args->words = NULL;
}

const char *at_args_get(const struct at_args *args, const char *name) {
    int i = option_index(args->options, name, strlen(name));
    if (i < 0)
        abort();
    return args->values[i];
}

int at_args_has(const struct at_args *args, const char *name) { return at_args_get(args, name) != NULL; }

at_status at_args_int(const struct at_args *args, const char *name, int64_t low, int64_t high, int64_t fallback,
                      int64_t *value) {
    const char *text = at_args_get(args, name);
    *value = fallback;
    if (!text)
        return AT_OK;
    char *end;
    errno = 0;
    long long parsed = strtoll(text, &end, 10);
    if (end == text || *end || errno || parsed < low || parsed > high)
        return AT_FAIL(AT_USAGE, "%s: found \"%s\", wanted a whole number from %lld to %lld", name, text,
                       (long long)low, (long long)high);
    *value = parsed;
    return AT_OK;
}

at_status at_args_real(const struct at_args *args, const char *name, double low, double high, double fallback,
                       double *value) {
    const char *text = at_args_get(args, name);
    *value = fallback;
    if (!text)
        return AT_OK;
    char *end;
    double parsed = strtod(text, &end);
    if (end == text || *end || !(parsed >= low && parsed <= high))
        return AT_FAIL(AT_USAGE, "%s: found \"%s\", wanted a number from %g to %g", name, text, low, high);
    *value = parsed;
    return AT_OK;
}

static void put_word(const char *word, FILE *out) {
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
    if (*word && strspn(word, plain) == strlen(word)) {
        fprintf(out, " %s", word);
        return;
    }
    fputs(" '", out);
    for (; *word; word++)
        fputs(*word == '\'' ? "'\\''" : (char[]){ *word, 0 }, out);
    fputc('\'', out);
}

void at_args_put(const struct at_command *command, const struct at_args *args, const char *more, FILE *out) {
    fprintf(out, "attest %s", command->name);
    for (int i = 0; i < args->n_words; i++)
        put_word(args->words[i], out);
    for (int i = 0; args->options[i].name; i++) {
        if (!args->values[i])
            continue;
        fprintf(out, " %s", args->options[i].name);
        if (args->options[i].value)
            put_word(args->values[i], out);
    }
    fprintf(out, "%s%s\n", *more ? " " : "", more);
}

void at_put_indented(const char *text, int column, int indent, FILE *out) {
    enum { WIDTH = 118 };
    for (int words = 0; *text; words++) {
        const int n = (int)strcspn(text, " ");
        if (words && column + 1 + n > WIDTH) {
            fprintf(out, "\n%*s", indent, "");
            column = indent;
        } else if (words) {
            fputc(' ', out);
            column++;
        }
        fprintf(out, "%.*s", n, text);
        column += n;
        text += n + strspn(text + n, " ");
    }
    fputc('\n', out);
}

void at_command_help(const struct at_command *command) {
    printf("%s\n\nusage: attest %s\n", command->summary, command->synopsis);
    if (command->options[0].name)
        printf("\noptions:\n");
    for (const struct at_option *o = command->options; o->name; o++) {
        char head[64];
        snprintf(head, sizeof head, "%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
        at_put_indented(o->help, printf("  %-24s ", head), 27, stdout);
    }
    printf("\nexample:\n  %s\n", command->example);
}
