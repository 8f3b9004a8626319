/* One variant on one case: its first launch, and what trials of each property show beside it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_CERTIFY_MEASURE_H
#define AT_CERTIFY_MEASURE_H

#include "verify/certify/certify.h"
#include "verify/certify/trial.h"
#include "verify/runner/launch.h"

enum { AT_MEASURE_WAYS = 32 };

/* A job of certify in the making. */
struct at_measure {
    const struct at_certify_options *options;
    struct at_runner *runner; /* of the thread that measures */
    const struct at_case *c;
    int variant, with; /* with -1: none */
    const struct at_problem *problem;
    struct at_numerics declared;         /* on `problem` */
    struct at_outputs first;             /* of `problem` */
    int64_t path;                        /* of that launch; 0: not known */
    uint64_t launches;                   /* so far: every one has marks and an order of its own */
    struct at_certificate *rows;         /* [AT_PROPERTY_COUNT] */
    int64_t not_zero[AT_PROPERTY_COUNT]; /* elements compared that are not 0 */
    int64_t ways[AT_MEASURE_WAYS];       /* paths over capacities, the first launch's among them */
    int n_ways, is_cut;                  /* is_cut: a row's keys may go to several partial results */
};

/* What one setting of a property shows; several launches may belong to it (the pieces of a prompt). */
struct at_setting {
    int property;
    char label[96];
    int64_t size; /* settings of a property ascend */
    int is_batch; /* nothing changes but what else is in the batch */
    int variant;  /* that the trials launch */
    int ran, declined;
    int64_t compared, different, path;
    double asked;    /* most work of a row that the declaration was asked about */
    int other_order; /* the declaration gives a row another order of sums here */
    uint64_t worst_ulp;
    char reason[320]; /* of `declined`, in the variant's words */
};

/* The case's own launch, and the same again, at other addresses and in another order of warps: *goes_on = 0 where there is
 * nothing to compare with or bits do not repeat, and the rows say so. Statuses as at_guarded_launch, but for what the runner
 * dies of, which is in the rows. */
at_status at_measure_first(struct at_measure *measure, int *goes_on);

struct at_setting at_setting_of(const struct at_measure *measure, enum at_property property, int64_t size,
                                const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Launches the trial and compares its rows with the first launch's; nothing where the property has failed already. */
at_status at_setting_try(struct at_measure *measure, struct at_setting *setting, const struct at_trial *trial);
/* What was seen goes to the property's row. A setting of which one launch was declined counts for nothing. */
void at_setting_end(struct at_measure *measure, const struct at_setting *setting);

/* Codes of two outputs beside each other. */
struct at_bits {
    int64_t compared, different, not_zero; /* not_zero: of the first */
    uint64_t worst_ulp;
};
void at_bits_compare(const struct at_tensor *a, int64_t a_first, const struct at_tensor *b, int64_t b_first,
                     int64_t count, struct at_bits *bits);

/* The properties, one function each: the settings it has on this case. verify/certify/settings.c */
at_status at_settings_of(struct at_measure *measure, enum at_property property);
/* Why a property has no meaning for the operator or the family; NULL: it has one. */
const char *at_settings_none(const struct at_measure *measure, enum at_property property);

/* What two declarations say of one row in two problems. Outputs are taken as f32, before they are rounded to their format: rounding
 * hides most of what another order of sums changes. NOTHING: one of them names no order, or leaves the model an interval. */
enum at_declared_order { AT_DECLARED_NOTHING, AT_DECLARED_SAME, AT_DECLARED_OTHER };
at_status at_declared_compare(const struct at_problem *a, const struct at_numerics *a_numerics, int64_t a_row,
                              const struct at_problem *b, const struct at_numerics *b_numerics, int64_t b_row,
                              enum at_declared_order *order);

#endif
