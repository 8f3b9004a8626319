/* Keeping the outputs of a launch, and comparing those of another.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/launch/kept_results.h"

#include "attest/op.h"

#include <stdlib.h>
#include <string.h>

enum { CHUNK = 1 << 20 };

static int is_output(const struct at_problem *problem, const struct at_arena_place *p) {
    return p->tensor >= 0 && problem->op->tensors[p->tensor].role != AT_IN;
}

at_status at_kept_take(struct at_kept *kept, const struct at_arena *arena, const struct at_problem *problem) {
    int64_t at = 0;
    *kept = (struct at_kept){ 0 };
    for (int i = 0; i < arena->n; i++)
        kept->n += is_output(problem, &arena->places[i]) ? arena->places[i].bytes : 0;
    kept->bytes = malloc((size_t)kept->n + 1);
    if (!kept->bytes)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %lld bytes of outputs", (long long)kept->n);
    for (int i = 0; i < arena->n; i++) {
        const struct at_arena_place *p = &arena->places[i];
        if (!is_output(problem, p))
            continue;
        AT_TRY(at_driver_said(
            arena->driver,
            arena->driver->copy_out(kept->bytes + at, arena->memory + (uint64_t)p->offset, (size_t)p->bytes),
            "reading outputs"));
        at += p->bytes;
    }
    return AT_OK;
}

at_status at_kept_clear(const struct at_arena *arena, const struct at_problem *problem) {
    const struct at_driver *driver = arena->driver;
    for (int i = 0; i < arena->n; i++) {
        const struct at_arena_place *p = &arena->places[i];
        const uint64_t to = arena->memory + (uint64_t)p->offset;
        if (p->tensor < 0)
            continue;
        if (problem->op->tensors[p->tensor].role == AT_OUT)
            AT_TRY(at_driver_said(driver, driver->fill(to, 0, (size_t)p->bytes), "clearing outputs"));
        else
            AT_TRY(at_driver_said(
                driver, driver->copy(to, (uint64_t)(uintptr_t)problem->tensors[p->tensor].data, (size_t)p->bytes, NULL),
                "copying a tensor on the device"));
    }
    return at_driver_said(driver, driver->synchronize(), "clearing outputs");
}

static at_status compare_place(const struct at_arena *arena, const struct at_problem *problem,
                               const struct at_arena_place *p, const uint8_t *want) {
    uint8_t *found = malloc(CHUNK);
    at_status status = AT_OK;
    if (!found)
        return AT_FAIL(AT_NO_MEMORY, "no memory to compare outputs");
    for (int64_t at = 0; at < p->bytes; at += CHUNK) {
        const int64_t n = p->bytes - at < CHUNK ? p->bytes - at : CHUNK;
        AT_TRY_OUT(at_driver_said(arena->driver,
                                  arena->driver->copy_out(found, arena->memory + (uint64_t)(p->offset + at), (size_t)n),
                                  "reading outputs"));
        for (int64_t i = 0; i < n; i++)
            if (found[i] != want[at + i])
                AT_FAIL_OUT(
                    AT_USAGE,
                    "launched again behind the timed replays, it leaves other bits in %s, from byte %lld on: it keeps "
                    "something from launch to launch, or declares repeats=1 and does not repeat",
                    problem->op->tensors[p->tensor].name, (long long)(at + i));
    }
out:
    free(found);
    return status;
}

at_status at_kept_compare(const struct at_kept *kept, const struct at_arena *arena, const struct at_problem *problem) {
    int64_t at = 0;
    for (int i = 0; i < arena->n; i++) {
        const struct at_arena_place *p = &arena->places[i];
        if (!is_output(problem, p))
            continue;
        AT_TRY(compare_place(arena, problem, p, kept->bytes + at));
        at += p->bytes;
    }
    return AT_OK;
}

void at_kept_release(struct at_kept *kept) {
    free(kept->bytes);
    *kept = (struct at_kept){ 0 };
}
