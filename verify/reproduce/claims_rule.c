/* Rules of claims: when our figure supports what the source says.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/names.h"
#include "verify/reproduce/claim.h"

/* word, its numbers, by enum at_condition_kind */
static const struct {
    const char *word;
    int numbers;
} words[] = {
    [AT_ABOVE] = { "above", 1 },     [AT_BELOW] = { "below", 1 },   [AT_WITHIN] = { "within", 1 },
    [AT_BETWEEN] = { "between", 2 }, [AT_EQUALS] = { "equals", 1 },
};
enum { N_WORDS = sizeof words / sizeof *words };

static at_status wants(const char *where, const char *found, const char *wanted) {
    return AT_FAIL(AT_USAGE, "%s: rule: found \"%.60s\", wanted %s", where, found, wanted);
}

/* One number from *at on, which moves behind it. */
static at_status number(const char **at, const char *where, double *value) {
    char *end;
    *value = strtod(*at, &end);
    if (end == *at || !isfinite(*value) || (*end && *end != ' '))
        return wants(where, **at ? *at : "the end", "a number");
    *at = end + strspn(end, " ");
    return AT_OK;
}

static at_status condition(const char **at, const char *where, const struct at_claim *claim, struct at_condition *c) {
    char word[16] = "";
    const char *names[N_WORDS];
    snprintf(word, sizeof word, "%.*s", (int)strcspn(*at, " "), *at);
    for (int i = 0; i < N_WORDS; i++)
        names[i] = words[i].word;
    int kind = 0;
    while (kind < N_WORDS && strcmp(words[kind].word, word) != 0)
        kind++;
    if (kind == N_WORDS) {
        const char *near = at_nearest_name(word, names, N_WORDS);
        return AT_FAIL(AT_USAGE, "%s: rule: found \"%.60s\"%s%s%s, wanted above, below, within, between or equals",
                       where, *at, near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    *c = (struct at_condition){ .kind = (enum at_condition_kind)kind };
    *at += strlen(word);
    *at += strspn(*at, " ");
    AT_TRY(number(at, where, &c->a));
    if (words[kind].numbers == 2)
        AT_TRY(number(at, where, &c->b));
    if (kind == AT_WITHIN && (!(c->a >= 1) || !(claim->figure > 0)))
        return wants(where, word, "a factor of 1 at least, of a figure above 0");
    if (kind == AT_BETWEEN && !(c->a <= c->b))
        return wants(where, word, "the lesser end first");
    return AT_OK;
}

at_status at_rule_parse(const char *text, const char *where, struct at_claim *claim) {
    const char *at = text;
    for (;;) {
        if (claim->n_rule == AT_CLAIM_CONDITIONS)
            return wants(where, at, "four conditions at most");
        AT_TRY(condition(&at, where, claim, &claim->rule[claim->n_rule++]));
        if (!*at)
            return AT_OK;
        if (strncmp(at, "and ", 4) != 0)
            return wants(where, at, "`and` or the end");
        at += 4;
    }
}

static int meets(const struct at_claim *claim, const struct at_condition *c, double ours) {
    switch (c->kind) {
    case AT_ABOVE:
        return ours > c->a;
    case AT_BELOW:
        return ours < c->a;
    case AT_WITHIN:
        return ours <= claim->figure * c->a && ours >= claim->figure / c->a;
    case AT_BETWEEN:
        return ours >= c->a && ours <= c->b;
    case AT_EQUALS:
        return ours == c->a;
    }
    return 0;
}

static void put(const struct at_claim *claim, const struct at_condition *c, char *text, size_t size) {
    if (c->kind == AT_BETWEEN)
        snprintf(text, size, "between %.6g and %.6g", c->a, c->b);
    else if (c->kind == AT_WITHIN)
        snprintf(text, size, "within a factor %.6g of %.4g", c->a, claim->figure);
    else
        snprintf(text, size, "%s %.6g", words[c->kind].word, c->a);
}

int at_rule_meets(const struct at_claim *claim, double ours, char *why, size_t size) {
    char text[96];
    size_t used = 0;
    int missed = 0, sized = 0;
    for (int i = 0; i < claim->n_rule; i++)
        if (!meets(claim, &claim->rule[i], ours)) {
            missed++;
            sized += claim->rule[i].kind == AT_WITHIN;
        }
    why[0] = 0;
    if (missed)
        used +=
            (size_t)snprintf(why, size, "%sours is",
                             sized == missed && claim->n_rule > missed ? "the direction holds, not the size: " : "");
    for (int i = 0, n = 0; i < claim->n_rule && used < size; i++) {
        if (meets(claim, &claim->rule[i], ours))
            continue;
        put(claim, &claim->rule[i], text, sizeof text);
        used += (size_t)snprintf(why + used, size - used, "%s not %s", n++ ? "," : "", text);
    }
    return missed == 0;
}

void at_rule_put(const struct at_claim *claim, char *text, size_t size) {
    char one[96];
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < claim->n_rule && used < size; i++) {
        put(claim, &claim->rule[i], one, sizeof one);
        used += (size_t)snprintf(text + used, size - used, "%s%s", i ? " and " : "", one);
    }
}
