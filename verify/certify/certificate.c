/* Certificates: names, values, and what several cases say together.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <string.h>

#include "verify/certify/certify.h"

static const struct {
    const char *name, *meaning;
} properties[] = {
#define X(name, meaning) { #name, meaning },
    AT_PROPERTY_LIST(X)
#undef X
};
const char *at_property_name(int property) { return properties[property].name; }
const char *at_property_meaning(int property) { return properties[property].meaning; }

static const char *const values[] = {
    [AT_CERTIFIED_NA] = "n/a", [AT_CERTIFIED_YES] = "yes", [AT_CERTIFIED_NO] = "no", [AT_CERTIFIED_FAILED] = "failed"
};
const char *at_certified_name(int value) { return values[value]; }

enum at_certified at_certificate_value(const struct at_certificate *row) {
    for (int i = 0; i < AT_CERTIFIED_COUNT; i++)
        if (strcmp(row->value, values[i]) == 0)
            return (enum at_certified)i;
    return AT_CERTIFIED_NA;
}

void at_certificate_set(struct at_certificate *row, enum at_certified value) {
    snprintf(row->value, sizeof row->value, "%s", values[value]);
}

static void take_from(struct at_certificate *sum, const struct at_certificate *one) {
    memcpy(sum->from, one->from, sizeof sum->from);
    memcpy(sum->from_case, one->from_case, sizeof sum->from_case);
    sum->from_size = one->from_size;
    sum->from_compared = one->from_compared;
    sum->from_different = one->from_different;
    sum->from_ulp = one->from_ulp;
}

static void add_counts(struct at_certificate *sum, const struct at_certificate *one) {
    sum->cases++;
    sum->settings += one->settings;
    sum->declined += one->declined;
    sum->compared += one->compared;
    sum->different += one->different;
    sum->ways = one->ways > sum->ways ? one->ways : sum->ways;
    sum->worst_ulp = one->worst_ulp > sum->worst_ulp ? one->worst_ulp : sum->worst_ulp;
}

/* A case that the variant declines says less than one that it took. */
static int is_declined(const struct at_certificate *row) {
    static const char word[] = AT_CERTIFY_DECLINES;
    return strncmp(row->reason, word, sizeof word - 1) == 0;
}

void at_certificate_add(struct at_certificate *sum, const struct at_certificate *one) {
    const enum at_certified before = at_certificate_value(sum), now = at_certificate_value(one);
    if (now > before ||
        (now == before && now == AT_CERTIFIED_NA && (!sum->reason[0] || (is_declined(sum) && !is_declined(one)))))
        memcpy(sum->reason, one->reason, sizeof sum->reason);
    if (now > before)
        at_certificate_set(sum, now);
    if (now == AT_CERTIFIED_YES || now == AT_CERTIFIED_NO) {
        add_counts(sum, one);
        if (one->from[0] && (!sum->from[0] || one->from_size < sum->from_size))
            take_from(sum, one);
    }
    if (one->disagrees > sum->disagrees || (one->disagrees == sum->disagrees && !sum->claim[0]))
        memcpy(sum->claim, one->claim, sizeof sum->claim);
    sum->disagrees |= one->disagrees;
}
