/* Which cases a study looks at: every data family and recorded layer at every length and head size.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_STUDY_PLAN_H
#define AT_STUDY_PLAN_H

#include "datasets/language/case.h"

enum { AT_STUDY_SIZES = 32 };

struct at_study_sizes {
    int n;
    int64_t value[AT_STUDY_SIZES]; /* ascending, each once */
};
/* "64,100,128" -> sizes, sorted; AT_USAGE with `option`, what was found and what is wanted. */
at_status at_study_sizes_parse(const char *option, const char *text, int64_t low, int64_t high,
                               struct at_study_sizes *sizes);

struct at_study_case {
    char attention[12], data[40];
    char line[256];
    int with_qk; /* q.k has d products whatever the number of keys: one length is enough */
    double cost; /* products of its sums, roughly: shards are cut by it */
};
struct at_study_plan {
    struct at_study_case *items;
    int64_t n, capacity;
};
/* data: a glob over names of families and DATASET/LAYER. asynct, softmax: 1: wanted. A dataset has lengths and a head
 * size of its own. AT_NOT_FOUND, naming the nearest, when nothing matches. */
at_status at_study_plan_make(const char *data, int asynct, int softmax, const struct at_study_sizes *lengths,
                             const struct at_study_sizes *d, uint64_t seed, struct at_study_plan *plan);
/* shard[i] = 0 .. shards - 1 of items[i], by cost. AT_NO_MEMORY. */
at_status at_study_plan_deal(const struct at_study_plan *plan, int shards, int *shard);
void at_study_plan_release(struct at_study_plan *plan);

#endif
