/* Case lines from an operator's domain: one class of each factor, drawn into words of the case language.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DOMAIN_DRAW_H
#define AT_DOMAIN_DRAW_H

#include "attest/op.h"
#include "datasets/fill/random.h"

/* AT_DOMAIN_ANY stands for what lies between the classes of a factor. */
enum { AT_DOMAIN_ANY = -1, AT_DOMAIN_FACTORS = 32, AT_DOMAIN_CLASSES = 32, AT_DOMAIN_LINE = 1024 };

/* A factor as a family takes it. Classes are numbered 0 .. n-1, those far out n .. n+n_far-1. */
struct at_family_factor {
    const struct at_factor *factor;
    int n, n_far;
    const char *classes[AT_DOMAIN_CLASSES];
};

struct at_domain {
    const struct at_family *family;
    const struct at_op *op;
    int n;
    struct at_family_factor factors[AT_DOMAIN_FACTORS];
    char granules[AT_DOMAIN_CLASSES][24]; /* classes that variants' granules add */
};

/* The factors of a family. `granules`: n tiles of keys, in any order, of which those that the domain does not have become
 * classes of its AT_FACTOR_GRANULES. AT_UNSUPPORTED: the operator declares no domain. *domain may not be moved. */
at_status at_domain_open(const struct at_family *family, const int64_t *granules, int n, struct at_domain *domain);

/* A sequence of draws: value `next` of a seed is the next one. */
struct at_draws {
    struct at_random random;
    uint64_t next;
};
int64_t at_draw_below(struct at_draws *draws, int64_t n);

/* The line of a case with these classes (classes[i]: of factor i), each piece drawn by `draws`. AT_USAGE when the pieces
 * contradict each other; the line has still to pass at_case_parse. */
at_status at_domain_line(const struct at_domain *domain, const int *classes, struct at_draws *draws, char *line,
                         size_t size);

/* Which classes a line has. A class is had when the line's words of all keys of its factor are those that some draw of the
 * class gives. $names are solved for: a line may be an instance of the domain in more than one way, and `each` is called
 * for every one with has[i], bit c: class c of factor i, far ones too. */
at_status at_domain_match(const struct at_domain *domain, const char *line,
                          at_status (*each)(void *context, const uint32_t *has), void *context);

#endif
