/* Kinds of terms, and what they share.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/reproduce/terms.h"

#include <stdio.h>
#include <string.h>

#include "attest/names.h"

const struct at_term_kind *const at_term_kinds[] = {
    &at_term_bench,  &at_term_row,   &at_term_sum,   &at_term_resource, &at_term_count,  &at_term_bytes,
    &at_term_ledger, &at_term_zeros, &at_term_study, &at_term_add,      &at_term_format, NULL,
};

at_status at_term_kind_find(const char *name, const char *where, const struct at_term_kind **kind) {
    enum { MAX = 32 };
    const char *names[MAX];
    char all[256] = "";
    size_t used = 0;
    int n = 0;
    for (; at_term_kinds[n] && n < MAX; n++) {
        names[n] = at_term_kinds[n]->name;
        if (strcmp(names[n], name) == 0) {
            *kind = at_term_kinds[n];
            return AT_OK;
        }
        if (used < sizeof all)
            used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", n ? ", " : "", names[n]);
    }
    const char *near = at_nearest_name(name, names, n);
    return AT_FAIL(AT_USAGE, "%s: let: found \"%.40s\"%s%s%s, wanted one of %s", where, name,
                   near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "", all);
}

void at_term_line(const struct at_term *term, int from, char *text, size_t size) {
    size_t used = 0;
    text[0] = 0;
    for (int i = from; i < term->n_words && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > from ? " " : "", term->words[i]);
}

at_status at_term_want(const struct at_term *term, int least) {
    if (term->n_words >= least)
        return AT_OK;
    return AT_FAIL(AT_USAGE, "%s: %s: found %d words, wanted %s", term->where, term->kind->name, term->n_words,
                   term->kind->wants);
}
