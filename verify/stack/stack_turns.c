/* Turns of a sequence, and the caches between them.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/stack/stack_turns.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- caches ---- */

static int is_cache_of(const struct at_stack_flow *flow, enum at_stack_part part) {
    return flow->input && flow->input->is_cache && flow->input->part == part;
}

static struct at_stack_kept_cache *find(struct at_stack_kept *kept, const char *name, int64_t layer) {
    for (int i = 0; i < kept->n; i++)
        if (kept->caches[i].layer == layer && strcmp(kept->caches[i].name, name) == 0)
            return &kept->caches[i];
    return NULL;
}

static void swap(struct at_stack_value *a, struct at_stack_value *b) {
    const struct at_stack_value moved = *a;
    *a = *b;
    *b = moved;
}

at_status at_stack_kept_take(const struct at_stack_plan *plan, enum at_stack_part part, int64_t layer,
                             struct at_stack_kept *kept, struct at_stack_value *values) {
    for (int i = 0; i < plan->n_flows; i++) {
        const struct at_stack_flow *flow = &plan->flows[i];
        struct at_stack_kept_cache *cache = is_cache_of(flow, part) ? find(kept, flow->name, layer) : NULL;
        if (!cache)
            continue;
        if (cache->elements != at_tensor_count(&flow->shape))
            return AT_FAIL(AT_USAGE,
                           "%s:%d: cache %s has %" PRId64 " elements in turn %" PRId64 ", %" PRId64
                           " in the one before, wanted the same",
                           plan->stack->path, flow->input->line, flow->name, at_tensor_count(&flow->shape), plan->turn,
                           cache->elements);
        swap(&cache->value, &values[i]);
    }
    return AT_OK;
}

at_status at_stack_kept_put(const struct at_stack_plan *plan, enum at_stack_part part, int64_t layer,
                            struct at_stack_value *values, struct at_stack_kept *kept) {
    for (int i = 0; i < plan->n_flows; i++) {
        const struct at_stack_flow *flow = &plan->flows[i];
        if (!is_cache_of(flow, part))
            continue;
        struct at_stack_kept_cache *cache = find(kept, flow->name, layer);
        if (!cache) {
            struct at_stack_kept_cache *grown = realloc(kept->caches, ((size_t)kept->n + 1) * sizeof *grown);
            if (!grown)
                return AT_FAIL(AT_NO_MEMORY, "no memory for caches between turns");
            kept->caches = grown;
            cache = &grown[kept->n++];
            *cache = (struct at_stack_kept_cache){ .layer = layer, .elements = at_tensor_count(&flow->shape) };
            memcpy(cache->name, flow->name, sizeof cache->name);
        }
        swap(&cache->value, &values[i]);
    }
    return AT_OK;
}

void at_stack_kept_release(struct at_stack_kept *kept) {
    for (int i = 0; i < kept->n; i++) {
        free(kept->caches[i].value.stored);
        free(kept->caches[i].value.exact);
    }
    free(kept->caches);
    *kept = (struct at_stack_kept){ 0 };
}

/* ---- turns ---- */

int at_stack_is_sequence(const struct at_stack *stack) { return at_stack_setting(stack, "turns") != NULL; }

static at_status set_turn(struct at_stack *stack, int64_t turn) {
    char text[64];
    snprintf(text, sizeof text, "turn=%" PRId64, turn);
    AT_TRY(at_stack_set(stack, text, "turns"));
    return at_stack_setting(stack, "phase") ? at_stack_set(stack, turn ? "phase=decode" : "phase=prefill", "turns")
                                            : AT_OK;
}

at_status at_stack_run_turns(struct at_stack_plan *plan, struct at_stack *stack, const struct at_stack_options *options,
                             struct at_stack_outcome *outcome) {
    struct at_stack_options with_caches = *options;
    struct at_stack_kept kept = { 0 };
    at_status status = AT_OK;
    int64_t turns = 0;
    const struct at_stack_setting *setting = at_stack_setting(stack, "turns");
    if (!setting)
        return at_stack_run(plan, options, outcome);
    AT_TRY(at_stack_whole(stack, setting->line, "turns", 0, &turns));
    with_caches.kept = &kept;
    for (int64_t turn = 0; turn <= turns; turn++) {
        AT_TRY_OUT(set_turn(stack, turn));
        at_stack_plan_release(plan);
        plan->turn = turn;
        AT_TRY_OUT(at_stack_plan_make(plan));
        AT_TRY_OUT(at_stack_run(plan, &with_caches, outcome));
    }
out:
    at_stack_kept_release(&kept);
    return status;
}
