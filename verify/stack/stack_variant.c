/* Which variant runs a step: by the file, or as --use says, and what it launches.
 * SPDX-License-Identifier: Apache-2.0 */
#include <fnmatch.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "attest/names.h"
#include "verify/runner/launch.h"
#include "verify/stack/stack_plan.h"

static at_status nobody(const struct at_stack_plan *plan, int step, const char *glob, int matched, const char *reason) {
    const struct at_stack_step *text = plan->steps[step].text;
    if (!matched)
        return AT_FAIL(AT_USAGE,
                       "%s:%d: step %s: found %s/%s, wanted a variant that the runner has; `attest list %s/*`",
                       plan->stack->path, text->line, text->name, text->family, glob, text->family);
    return AT_FAIL(AT_USAGE, "%s:%d: step %s: found %s/%s, wanted a variant that takes it; the last of %d says: %s",
                   plan->stack->path, text->line, text->name, text->family, glob, matched, reason);
}

/* The last variant that the glob matches and that takes the problem, of the first runner that has one. */
static at_status choose(const struct at_stack_plan *plan, int step, const struct at_problem *problem,
                        struct at_stack_choice *choice) {
    struct at_run_reply reply;
    char reason[sizeof reply.reason] = "";
    int matched = 0;
    for (int r = 0; r < plan->n_runners; r++)
        for (int i = at_runner_variant_count(plan->runner[r]) - 1; i >= 0; i--) {
            const struct at_variant *v = at_runner_variant(plan->runner[r], i);
            if (strcmp(v->family, plan->steps[step].family->name) != 0 || fnmatch(choice->glob, v->name, 0) != 0)
                continue;
            const at_status status = at_dry_launch(plan->runner[r], i, problem, &reply);
            if (status == AT_CRASHED ||
                status == AT_HUNG) { /* the variant's own doing, which its step's verdict will say */
                at_error_clear();
                reply = (struct at_run_reply){ .outcome = AT_RAN };
            } else {
                AT_TRY(status);
            }
            if (reply.outcome != AT_RUN_UNSUPPORTED) {
                choice->runner = r;
                choice->variant = i;
                choice->launches = reply.launches;
                return AT_OK;
            }
            if (matched++ == 0)
                memcpy(reason, reply.reason, sizeof reason);
        }
    return nobody(plan, step, choice->glob, matched, reason);
}

/* One of --use: STEP[@LAYER]=GLOB. *layer -1: of every layer. */
static at_status read_use(const char *item, size_t n, char *step, int64_t *layer, char *glob) {
    char text[2 * AT_STACK_TEXT], *end = NULL;
    snprintf(text, sizeof text, "%.*s", (int)(n < sizeof text ? n : sizeof text - 1), item);
    char *equals = strchr(text, '='), *at = strchr(text, '@');
    if (!equals || equals == text || !equals[1] || (at && at > equals))
        return AT_FAIL(AT_USAGE, "--use: found '%s', wanted STEP=VARIANT or STEP@LAYER=VARIANT, with commas between",
                       text);
    *equals = 0;
    *layer = -1;
    if (at) {
        *at = 0;
        *layer = strtoll(at + 1, &end, 10);
        if (end == at + 1 || *end || *layer < 0)
            return AT_FAIL(AT_USAGE, "--use: found layer '%s', wanted a number from 0 on", at + 1);
    }
    snprintf(step, AT_STACK_TEXT, "%.90s", text);
    snprintf(glob, AT_STACK_TEXT, "%.90s", equals + 1);
    return AT_OK;
}

/* The last of --use that is of the step in this layer, else the file's. */
static at_status glob_of(const struct at_stack_plan *plan, int index, int64_t layer, char *glob) {
    const struct at_stack_step *text = plan->steps[index].text;
    AT_TRY(at_stack_expand(plan->stack, text->line, text->glob, glob, AT_STACK_TEXT));
    for (const char *item = plan->use; item && *item;) {
        char step[AT_STACK_TEXT], of_item[AT_STACK_TEXT];
        int64_t of;
        const size_t n = strcspn(item, ",");
        AT_TRY(read_use(item, n, step, &of, of_item));
        if (fnmatch(step, text->name, 0) == 0 && (of < 0 || of == layer))
            memcpy(glob, of_item, sizeof of_item);
        item += n + (item[n] == ',');
    }
    return AT_OK;
}

at_status at_stack_variant(const struct at_stack_plan *plan, int index, int64_t layer, const struct at_problem *problem,
                           struct at_stack_choice *choice) {
    char glob[AT_STACK_TEXT];
    AT_TRY(glob_of(plan, index, layer, glob));
    if (strcmp(glob, plan->steps[index].choice.glob) == 0) {
        *choice = plan->steps[index].choice;
        return AT_OK;
    }
    memcpy(choice->glob, glob, sizeof glob);
    return choose(plan, index, problem, choice);
}

/* Every STEP of --use is a step, every LAYER one of the layers. */
at_status at_stack_use_check(const struct at_stack_plan *plan) {
    for (const char *item = plan->use; item && *item;) {
        char step[AT_STACK_TEXT], glob[AT_STACK_TEXT];
        int64_t of;
        int known = 0;
        const size_t n = strcspn(item, ",");
        AT_TRY(read_use(item, n, step, &of, glob));
        for (int i = 0; i < plan->n_steps; i++)
            known |= fnmatch(step, plan->steps[i].text->name, 0) == 0 &&
                     (of < 0 || (plan->steps[i].text->part == AT_STACK_LAYERS && of < plan->layers));
        if (!known)
            return AT_FAIL(AT_USAGE, "--use: found '%.*s', wanted a step of %s and one of its %" PRId64 " layers",
                           (int)n, item, plan->stack->name, plan->layers);
        item += n + (item[n] == ',');
    }
    return AT_OK;
}
