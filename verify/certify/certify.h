/* attest certify: does a variant leave the same bits whatever else is in the launch? Properties, and what is found of each.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A certificate is of bits alone: a row is launched once as the case has it and again within other problems that hold the same row
 * (trial.h), and both results are compared code by code. Whether they are right is for `attest verify` to say. */
#ifndef AT_CERTIFY_H
#define AT_CERTIFY_H

#include "verify/plan/plan.h"
#include "verify/result/record.h"

/* name, what is changed around a row */
/* clang-format off */
#define AT_PROPERTY_LIST(X)                                                                   \
    X(batch, "other requests: none, other ones, the same at other places")                   \
    X(split, "capacity and batch, by which a launch may be cut: more capacity, larger batches") \
    X(chunk, "a prompt's queries in pieces, each a launch")                                   \
    X(page,  "where keys lie: pages in another order, pages of other sizes, no pages")        \
    X(pad,   "padding: requests without keys, a capacity that nobody uses")                   \
    X(row,   "the kernel: the same row by the variant of --with")
/* clang-format on */

enum at_property {
#define X(name, meaning) AT_PROPERTY_##name,
    AT_PROPERTY_LIST(X)
#undef X
        AT_PROPERTY_COUNT
};
const char *at_property_name(int property);
const char *at_property_meaning(int property);

/* What is found of a property. FAILED: a launch that should have run broke; the worse, the larger. */
enum at_certified { AT_CERTIFIED_NA, AT_CERTIFIED_YES, AT_CERTIFIED_NO, AT_CERTIFIED_FAILED, AT_CERTIFIED_COUNT };
const char *at_certified_name(int value); /* "n/a", "yes", "no", "failed" */

/* One property of one variant: a row of an archive's /certificates. */
struct at_certificate {
    char family[64], variant[96], path[160], sha256[65], numerics[640];
    char property[8], with[168], value[8]; /* with: of `row` */
    char reason[384];                      /* of n/a and failed */
    int64_t cases;                         /* that count for the value */
    int64_t settings, declined;            /* compared with the case itself; refused by the variant */
    int64_t ways;                          /* most different launches on one case, over capacities (split) */
    int64_t compared, different;           /* elements; twice as many where two settings have the same */
    uint64_t worst_ulp;                    /* UINT64_MAX: a NaN beside a number */
    /* The least setting at which bits differ, or at which the declaration gives sums another order: rounding may hide that. */
    char from[96], from_case[1024];
    int64_t from_size, from_compared, from_different;
    uint64_t from_ulp;
    int disagrees;   /* with what the variant declares; `claim` says what that is */
    char claim[256]; /* "": it declares nothing about the property */
};
#define AT_CERTIFY_DECLINES "declines the case" /* how the reason of such a case begins */
enum at_certified at_certificate_value(const struct at_certificate *row);
void at_certificate_set(struct at_certificate *row, enum at_certified value);
/* Adds what another case has found of the same property. The worst value stands; a case that could not show the property
 * (n/a) adds nothing to one that could. Of what differs, the least setting. */
void at_certificate_add(struct at_certificate *sum, const struct at_certificate *one);

enum { AT_CERTIFY_MAX = 16 };
struct at_certify_numbers {
    int n;
    int64_t of[AT_CERTIFY_MAX];
};

struct at_certify_options {
    struct at_selection selection;
    const char *runner, *with; /* with: family/variant of the same runner; NULL: none */
    unsigned properties;       /* bit: of AT_PROPERTY_LIST */
    /* Factors of the capacity; requests in all; pieces of a prompt; keys a page (0: none). Ascending. */
    struct at_certify_numbers capacities, batches, pieces, pages;
    int64_t one_by_one; /* prompts of at most so many queries are also cut into single ones */
    int jobs;
    uint64_t seed;
    double timeout; /* of a launch; 0: by its work */
};
struct at_certify_options at_certify_defaults(void);

struct at_certify_run {
    struct at_certificate *rows; /* by variant, then by property */
    int64_t n;
    struct at_run_record record; /* what was asked for, and what answered */
};
/* Plans, launches, gathers: the rows follow from plan and options, not from jobs or time. AT_NOT_FOUND where nothing matches;
 * interrupted: record.signal, and no rows. To be released after a failure too. */
at_status at_certify_run(const struct at_certify_options *options, struct at_certify_run *run);
void at_certify_run_release(struct at_certify_run *run);

#endif
