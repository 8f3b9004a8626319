/* attest study ways: which of its kernels a variant that chooses among several takes, and how many tokens each gets.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_STUDY_WAYS_H
#define AT_STUDY_WAYS_H

#include <stdint.h>

#include "attest/way.h"
#include "verify/study/study_list.h"

enum { AT_WAYS_MAX = 16 };

/* What one kernel got of the cases that its variant took. */
struct at_way {
    char name[AT_WAY_SIZE];
    int64_t cases, requests, tokens;
};
struct at_ways {
    struct at_way items[AT_WAYS_MAX];
    int n;
    int64_t declined; /* cases */
};
/* Adds a case. AT_UNSUPPORTED for a way more than there is room for. */
at_status at_ways_add(struct at_ways *ways, const char *name, int64_t requests, int64_t tokens);
/* The way with the most tokens first, equal ones by name. */
void at_ways_sort(struct at_ways *ways);

extern const struct at_study at_study_ways;
#define AT_STUDY_WAYS_OPTIONS \
    { "--variants", "GLOB", "ways: whose choices are counted, as family/variant" }, { \
        "--cases", "GLOB", "ways: on which cases, as role:id or @NAME (default 'smoke:*')" \
    }

#endif
