/* Variants that are judged no further.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/run/given_up.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/result/set_aside.h"

at_status at_given_up_open(struct at_given_up *g, const struct at_plan *plan, int n_variants, int first_failure,
                           int64_t set_aside, int quiet) {
    const size_t n = (size_t)n_variants + 1;
    *g = (struct at_given_up){ .plan = plan, .set_aside = set_aside, .quiet = quiet };
    g->failed = first_failure ? calloc(n, 1) : NULL;
    g->broken = set_aside ? calloc(n, sizeof *g->broken) : NULL;
    if ((first_failure && !g->failed) || (set_aside && !g->broken))
        return AT_FAIL(AT_NO_MEMORY, "no memory for a plan");
    return AT_OK;
}

/* The number, among the runner's, of the variant that a result is of; -1: the plan has no such place. */
static int variant_of(const struct at_given_up *g, const struct at_result *result) {
    for (int64_t i = 0; i < g->plan->n_items; i++) {
        const struct at_plan_case *item = &g->plan->items[i];
        const int64_t variant = result->plan_index - item->first_index;
        if (variant >= 0 && variant < item->n_variants)
            return item->variants[variant];
    }
    return -1;
}

/* The variant has hung or crashed once more. */
static void note_broken(struct at_given_up *g, const struct at_result *result, int variant) {
    struct at_broken *b = &g->broken[variant];
    if (++b->n != g->set_aside)
        return;
    snprintf(b->why, sizeof b->why, AT_SET_ASIDE "CRASHED or HUNG in %lld jobs (--set-aside), last %s: %.120s",
             (long long)b->n, at_state_name(result->state), result->cause);
    if (!g->quiet)
        fprintf(stderr, "\nattest: %s/%s is %s\n", result->family, result->variant, b->why);
}

void at_given_up_note(struct at_given_up *g, const struct at_result *result, int fails) {
    const int broke = g->broken && at_result_broke(result), failed = g->failed && fails;
    const int variant = broke || failed ? variant_of(g, result) : -1;
    if (variant < 0)
        return;
    if (failed)
        g->failed[variant] = 1;
    if (broke)
        note_broken(g, result, variant);
}

int at_given_up_failed(const struct at_given_up *g, int variant) { return g->failed && g->failed[variant]; }

const char *at_given_up_why(const struct at_given_up *g, int variant) {
    return g->broken ? g->broken[variant].why : "";
}

void at_given_up_close(struct at_given_up *g) {
    free(g->failed);
    free(g->broken);
}
