/* Reading a stack's file, line by line.
 * SPDX-License-Identifier: Apache-2.0 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/language/case.h"
#include "datasets/language/stack.h"

enum { LINE_MAX_BYTES = 4096 };

struct parser {
    struct at_stack *stack;
    const char *file_path, *shown;
    int line, has_base;
    enum at_stack_part part;
    char condition[AT_STACK_TEXT];
};

static at_status load_file(const char *path, const char *shown, int is_base, struct at_stack *stack);

static at_status refuse(const struct parser *p, const char *found, const char *wanted) {
    return AT_FAIL(AT_USAGE, "%s:%d: found '%.80s', wanted %s", p->shown, p->line, found, wanted);
}

static int is_name(const char *text) {
    if (!isalpha((unsigned char)*text))
        return 0;
    for (const char *at = text; *at; at++)
        if (!isalnum((unsigned char)*at) && *at != '_')
            return 0;
    return strlen(text) < AT_STACK_NAME;
}

static at_status copy(const struct parser *p, const char *text, char *out, size_t size, const char *wanted) {
    if (!*text || strlen(text) >= size)
        return refuse(p, text, wanted);
    memcpy(out, text, strlen(text) + 1);
    return AT_OK;
}

static at_status copy_name(const struct parser *p, const char *text, char *out) {
    if (!is_name(text))
        return refuse(p, text, "a name: letters, digits and _, at most 31");
    memcpy(out, text, strlen(text) + 1);
    return AT_OK;
}

static char *trimmed(char *text) {
    text += strspn(text, " \t");
    size_t n = strlen(text);
    while (n > 0 && (text[n - 1] == ' ' || text[n - 1] == '\t'))
        text[--n] = 0;
    return text;
}

/* One more item, all 0, at the end of an array. */
static at_status grow(void **items, int *n, size_t bytes) {
    char *grown = realloc(*items, ((size_t)*n + 1) * bytes);
    if (!grown)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a stack");
    memset(grown + (size_t)*n * bytes, 0, bytes);
    *items = grown;
    ++*n;
    return AT_OK;
}

/* set NAME = VALUE | VALUE ...; let NAME = EXPRESSION */
static at_status read_setting(struct parser *p, char *text, int is_let) {
    struct at_stack *s = p->stack;
    char *equals = strchr(text, '=');
    if (!equals)
        return refuse(p, text, "NAME = VALUE");
    *equals = 0;
    const char *name = trimmed(text);
    char *value = trimmed(equals + 1);
    for (int i = 0; i < s->n_settings; i++)
        if (strcmp(s->settings[i].name, name) == 0 && (!is_let || !s->settings[i].is_let))
            return AT_FAIL(AT_USAGE, "%s:%d: found %s again, wanted each setting once; line %d has it", s->path,
                           p->line, name, s->settings[i].line);
    AT_TRY(grow((void **)&s->settings, &s->n_settings, sizeof *s->settings));
    struct at_stack_setting *setting = &s->settings[s->n_settings - 1];
    setting->line = p->line;
    setting->is_let = is_let;
    memcpy(setting->condition, p->condition, sizeof setting->condition);
    AT_TRY(copy_name(p, name, setting->name));
    if (!is_let && strchr(value, '|')) {
        size_t n = 0;
        if (strlen(value) >= sizeof setting->words)
            return refuse(p, value, "words of at most 255 bytes in all");
        for (const char *at = value; *at; at++)
            if (*at != ' ' && *at != '\t')
                setting->words[n++] = *at;
        value[strcspn(value, "|")] = 0;
    }
    return copy(p, trimmed(value), setting->value, sizeof setting->value, "a value of at most 95 bytes");
}

/* NAME [DIM, DIM] std=EXPRESSION or fan=EXPRESSION; `word`: weight, input or cache */
static at_status read_input(struct parser *p, char *text, const char *word) {
    struct at_stack *s = p->stack;
    const int is_weight = word[0] == 'w';
    const char *const key = is_weight ? "fan=" : "std=";
    char *open = strchr(text, '['), *close = open ? strchr(open, ']') : NULL;
    if (!close)
        return refuse(p, text, "NAME [SIZE, SIZE] and how it is drawn");
    AT_TRY(grow((void **)&s->inputs, &s->n_inputs, sizeof *s->inputs));
    struct at_stack_input *input = &s->inputs[s->n_inputs - 1];
    *open = *close = 0;
    input->line = p->line;
    input->part = p->part;
    input->is_weight = is_weight;
    input->is_cache = word[0] == 'c';
    memcpy(input->condition, p->condition, sizeof input->condition);
    AT_TRY(copy_name(p, trimmed(text), input->name));
    char *rest, *scale = trimmed(close + 1);
    for (char *dim = strtok_r(open + 1, ",", &rest); dim; dim = strtok_r(NULL, ",", &rest)) {
        if (input->rank == AT_STACK_RANK)
            return refuse(p, dim, "at most 4 sizes");
        AT_TRY(copy(p, trimmed(dim), input->dims[input->rank++], AT_STACK_TEXT, "a size"));
    }
    if (input->rank == 0)
        return refuse(p, "[]", "1 to 4 sizes");
    if (strncmp(scale, key, 4) != 0)
        return refuse(p, scale, is_weight ? "fan=PRODUCTS THAT ONE ELEMENT SUMS" : "std=STANDARD DEVIATION");
    return copy(p, scale + 4, input->scale, sizeof input->scale, "a number behind '='");
}

static at_status read_binding(const struct parser *p, struct at_stack_step *step, char *word) {
    char *equals = strchr(word, '=');
    if (!equals)
        return refuse(p, word, "TENSOR=FLOW");
    if (step->n_bound == AT_STACK_BINDINGS)
        return refuse(p, word, "at most 24 tensors of a step");
    *equals = 0;
    AT_TRY(copy_name(p, word, step->bound[step->n_bound].tensor));
    AT_TRY(copy_name(p, equals + 1, step->bound[step->n_bound].flow));
    step->n_bound++;
    return AT_OK;
}

static at_status read_step_word(const struct parser *p, struct at_stack_step *step, int *phase, char *word) {
    if (strcmp(word, ":") == 0 || strcmp(word, "->") == 0) {
        const int next = word[0] == ':' ? 1 : 2;
        if (next <= *phase)
            return refuse(p, word, "keys, ':' and inputs, '->' and outputs, in this order");
        *phase = next;
        return AT_OK;
    }
    if (*phase == 0) {
        const size_t used = strlen(step->keys);
        if (!strchr(word, '='))
            return refuse(p, word, "KEY=VALUE of a case");
        if (used + strlen(word) + 2 > sizeof step->keys)
            return refuse(p, word, "fewer keys");
        snprintf(step->keys + used, sizeof step->keys - used, " %s", word);
        return AT_OK;
    }
    AT_TRY(read_binding(p, step, word));
    step->n_in += *phase == 1;
    return AT_OK;
}

/* KIND NAME FAMILY/VARIANT KEY=VALUE ... : TENSOR=FLOW ... -> TENSOR=FLOW ... */
static at_status read_step(struct parser *p, char *text) {
    struct at_stack *s = p->stack;
    char *rest, *kind = strtok_r(text, " \t", &rest), *name = strtok_r(NULL, " \t", &rest),
                *variant = strtok_r(NULL, " \t", &rest), *slash = variant ? strchr(variant, '/') : NULL;
    int phase = 0;
    if (!slash)
        return refuse(p, variant ? variant : text, "KIND NAME FAMILY/VARIANT");
    AT_TRY(grow((void **)&s->steps, &s->n_steps, sizeof *s->steps));
    struct at_stack_step *step = &s->steps[s->n_steps - 1];
    *slash = 0;
    step->line = p->line;
    step->part = p->part;
    memcpy(step->condition, p->condition, sizeof step->condition);
    AT_TRY(copy_name(p, kind, step->kind));
    AT_TRY(copy_name(p, name, step->name));
    AT_TRY(copy(p, variant, step->family, sizeof step->family, "a family"));
    AT_TRY(copy(p, slash + 1, step->glob, sizeof step->glob, "a variant, or * for any"));
    for (char *word = strtok_r(NULL, " \t", &rest); word; word = strtok_r(NULL, " \t", &rest))
        AT_TRY(read_step_word(p, step, &phase, word));
    return phase == 2 || step->n_in ? AT_OK : refuse(p, "no tensors", "inputs behind ':', outputs behind '->'");
}

static at_status read_layers(struct parser *p, char *text) {
    if (p->part != AT_STACK_BEFORE)
        return refuse(p, "layers", "one block of layers");
    p->part = AT_STACK_LAYERS;
    p->stack->layers_line = p->line;
    return copy(p, text, p->stack->layers, sizeof p->stack->layers, "how many layers");
}

/* " when CONDITION" at the end of a line goes into p->condition. */
static at_status take_condition(struct parser *p, char *text) {
    char *when = strstr(text, " when ");
    p->condition[0] = 0;
    if (!when)
        return AT_OK;
    *when = 0;
    return copy(p, trimmed(when + 6), p->condition, sizeof p->condition, "a condition of at most 95 bytes");
}

/* base NAME: another stack of the same folder, of which this one changes settings. What messages show is a path's end. */
static at_status read_base(struct parser *p, const char *text) {
    struct at_stack *s = p->stack;
    struct at_stack base;
    char path[sizeof s->path + AT_STACK_NAME + 8];
    if (!is_name(text) || s->n_settings + s->n_inputs + s->n_steps > 0)
        return refuse(p, text, "the name of another stack, in the first line");
    const char *slash = strrchr(p->file_path, '/');
    snprintf(path, sizeof path, "%.*s%s.stack", slash ? (int)(slash + 1 - p->file_path) : 0, p->file_path, text);
    AT_TRY(load_file(path, path + (p->shown - p->file_path), 1, &base));
    memcpy(base.name, s->name, sizeof base.name);
    *s = base;
    p->has_base = 1;
    p->part = AT_STACK_BEHIND;
    return AT_OK;
}

/* set NAME = VALUE behind a base changes that one's. */
static at_status change_setting(const struct parser *p, char *text) {
    char *equals = strchr(text, '='), change[2 * AT_STACK_TEXT], where[sizeof p->stack->path + 32];
    if (!equals)
        return refuse(p, text, "NAME = VALUE");
    *equals = 0;
    snprintf(change, sizeof change, "%.90s=%.90s", trimmed(text), trimmed(equals + 1));
    snprintf(where, sizeof where, "%s:%d", p->shown, p->line);
    return at_stack_set(p->stack, change, where);
}

static at_status read_line(struct parser *p, char *text) {
    AT_TRY(take_condition(p, text));
    char *rest = text + strcspn(text, " \t");
    if (*rest)
        *rest++ = 0;
    rest = trimmed(rest);
    if (strcmp(text, "base") == 0)
        return read_base(p, rest);
    if (p->has_base)
        return strcmp(text, "set") == 0 ? change_setting(p, rest)
                                        : refuse(p, text, "set behind base, and nothing else");
    if (strcmp(text, "set") == 0 || strcmp(text, "let") == 0)
        return read_setting(p, rest, text[0] == 'l');
    if (strcmp(text, "input") == 0 || strcmp(text, "weight") == 0 || strcmp(text, "cache") == 0)
        return read_input(p, rest, text);
    if (strcmp(text, "step") == 0)
        return read_step(p, rest);
    if (strcmp(text, "layers") == 0)
        return read_layers(p, rest);
    if (strcmp(text, "end") != 0)
        return refuse(p, text, "set, let, input, weight, cache, step, layers, end or base");
    if (p->part != AT_STACK_LAYERS)
        return refuse(p, "end", "it behind the lines of layers");
    p->part = AT_STACK_BEHIND;
    return AT_OK;
}

/* A line and those that its '\' continues, without comments; *found is 0 at the end. */
static at_status next_line(FILE *file, struct parser *p, int *number, char *text, int *found) {
    size_t used = 0;
    *found = 0;
    p->line = *number + 1;
    for (int more = 1; more; *found = 1) {
        char piece[LINE_MAX_BYTES];
        if (!fgets(piece, sizeof piece, file))
            return AT_OK;
        ++*number;
        const int is_cut = !strchr(piece, '\n') && !feof(file);
        piece[strcspn(piece, "#\r\n")] = 0;
        char *line = trimmed(piece);
        const size_t n = strlen(line);
        if (is_cut || used + n + 2 > LINE_MAX_BYTES)
            return refuse(p, line, "a line of at most 4094 characters, joined ones together");
        more = n > 0 && line[n - 1] == '\\';
        if (more)
            line[n - 1] = 0;
        used += (size_t)snprintf(text + used, LINE_MAX_BYTES - used, "%s ", line);
    }
    return AT_OK;
}

/* `shown`: the end of `path` that messages have. `is_base`: of another; a base has none itself. */
static at_status parse(FILE *file, const char *path, const char *shown, int is_base, struct at_stack *s) {
    at_status status = AT_OK;
    struct parser p = { .stack = s, .file_path = path, .shown = shown };
    char text[LINE_MAX_BYTES];
    int number = 0, found;
    memset(s, 0, sizeof *s);
    snprintf(s->path, sizeof s->path, "%s", shown);
    const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
    snprintf(s->name, sizeof s->name, "%.*s", (int)strcspn(base, "."), base);
    for (;;) {
        text[0] = 0;
        AT_TRY_OUT(next_line(file, &p, &number, text, &found));
        if (!found)
            break;
        char *line = trimmed(text);
        if (*line)
            AT_TRY_OUT(read_line(&p, line));
        if (is_base && p.has_base)
            AT_FAIL_OUT(AT_USAGE, "%s:%d: found a base of a base, wanted one step", shown, p.line);
    }
    if (p.part != AT_STACK_BEHIND)
        AT_FAIL_OUT(AT_USAGE, "%s:%d: found the end of the file, wanted layers N, and end behind their lines", shown,
                    number);
out:
    if (status != AT_OK)
        at_stack_release(s);
    return status;
}

static at_status load_file(const char *path, const char *shown, int is_base, struct at_stack *s) {
    memset(s, 0, sizeof *s);
    FILE *file = fopen(path, "re");
    if (!file)
        return AT_FAIL(AT_NOT_FOUND, "%s: %s", path, strerror(errno));
    const at_status status = parse(file, path, shown, is_base, s);
    fclose(file);
    return status;
}

at_status at_stack_parse(FILE *file, const char *path, struct at_stack *s) { return parse(file, path, path, 0, s); }

at_status at_stack_load(const char *name, struct at_stack *s) {
    char path[sizeof s->path];
    const int is_path = strchr(name, '/') || strstr(name, ".stack");
    if (is_path)
        snprintf(path, sizeof path, "%s", name);
    else
        snprintf(path, sizeof path, "%s/stacks/%s.stack", at_datasets_dir(), name);
    return load_file(path, is_path ? path : path + strlen(at_datasets_dir()) + 1, 0, s);
}

void at_stack_release(struct at_stack *s) {
    free(s->settings);
    free(s->inputs);
    free(s->steps);
    s->settings = NULL;
    s->inputs = NULL;
    s->steps = NULL;
    s->n_settings = s->n_inputs = s->n_steps = 0;
}
