/* Where a source can be mutated, and into what.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_MUTATE_SITES_H
#define AT_MUTATE_SITES_H

#include <stdint.h>

#include "tests/mutate/source.h"

/* name, meaning */
/* clang-format off */
#define SITE_KIND_LIST(X)                                                          \
    X(relation,   "<, <=, >, >=, ==, !=: another of them")                         \
    X(arithmetic, "+, -, *, /, %: another of them")                                \
    X(bits,       "&, |, ^, <<, >>: another of them")                              \
    X(logic,      "&& for ||, || for &&")                                          \
    X(assignment, "+=, -=, ... : another of them, or =")                           \
    X(step,       "++ for --, -- for ++")                                          \
    X(integer,    "a whole number one more or one less")                           \
    X(real,       "a real number doubled, halved, or 0")                           \
    X(swap,       "two neighbouring arguments or indices exchanged")               \
    X(condition,  "the condition of if, while, for or ?: negated")                 \
    X(deletion,   "a statement left out")                                          \
    X(member,     "another member that the same object has in this file")          \
    X(extreme,    "min for max, max for min")
/* clang-format on */

enum site_kind {
#define X(name, meaning) SITE_##name,
    SITE_KIND_LIST(X)
#undef X
        SITE_KIND_COUNT
};
const char *site_kind_name(enum site_kind kind);

enum { SITE_TEXTS = 12 };

/* One place of a source: the bytes [begin, end) and what can stand there instead. No text has another number of lines
 * than what it replaces: the SIMT machine knows calls by their lines. */
struct site {
    enum site_kind kind;
    size_t begin, end;
    int line, n;             /* n >= 1 texts */
    char *texts[SITE_TEXTS]; /* owned */
};

struct site_list {
    struct site *items; /* owned; in the order of the source, and of kinds at one place */
    int n, capacity;
};

/* Adds every site of a source. */
at_status sites_find(const struct source *source, struct site_list *list);
void sites_release(struct site_list *list);

#endif
