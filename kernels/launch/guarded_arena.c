/* Laying out, filling and checking the memory of one launch.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/launch/guarded_arena.h"

#include "attest/op.h"

#include <stdio.h>
#include <string.h>
#include <sys/random.h>

enum { ALIGN = 256, POISON = 0xff, LARGE = 1 << 30, BAND_MAX = AT_BAND_BYTES + ALIGN };

void at_arena_init(struct at_arena *arena, const struct at_driver *driver) {
    *arena = (struct at_arena){ .driver = driver, .seed = (uint64_t)(uintptr_t)arena };
    if (getrandom(&arena->seed, sizeof arena->seed, GRND_NONBLOCK) != (ssize_t)sizeof arena->seed)
        arena->seed ^= 0x9e3779b97f4a7c15u; /* an address that the loader drew */
}

void at_arena_release(struct at_arena *arena) {
    if (arena->memory)
        arena->driver->release(arena->memory);
    arena->memory = 0;
    arena->bytes = 0;
}

/* ---- bands ---- */

/* Bytes of the band that begins at `offset`: another pattern for each, and for each process. */
static void band_bytes(const struct at_arena *arena, int64_t offset, uint8_t band[BAND_MAX]) {
    uint64_t x = arena->seed + (uint64_t)offset;
    for (int i = 0; i < BAND_MAX; i += 8) { /* splitmix64 */
        uint64_t z = x += 0x9e3779b97f4a7c15u;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
        z ^= z >> 31;
        memcpy(band + i, &z, sizeof z);
    }
}

/* Band i ends where place i begins; band n is behind the last. What rounding leaves between places belongs to it. */
static int64_t band_at(const struct at_arena *arena, int i) {
    return i == 0 ? 0 : arena->places[i - 1].offset + arena->places[i - 1].bytes;
}
static int64_t band_length(const struct at_arena *arena, int i) {
    return i < arena->n ? arena->places[i].offset - band_at(arena, i) : AT_BAND_BYTES;
}

static at_status write_bands(const struct at_arena *arena) {
    uint8_t band[BAND_MAX];
    for (int i = 0; i <= arena->n; i++) {
        const int64_t at = band_at(arena, i);
        band_bytes(arena, at, band);
        AT_TRY(at_driver_said(arena->driver,
                              arena->driver->copy_in(arena->memory + (uint64_t)at, band, (size_t)band_length(arena, i)),
                              "writing a guard band"));
    }
    return AT_OK;
}

/* ---- layout ---- */

static int64_t place(struct at_arena *arena, const char *name, int tensor, int64_t at, int64_t bytes) {
    at = (at + AT_BAND_BYTES + ALIGN - 1) / ALIGN * ALIGN; /* behind the band of the place before it */
    arena->places[arena->n++] = (struct at_arena_place){ name, tensor, at, bytes };
    return at + bytes;
}

static int64_t lay_out(struct at_arena *arena, const struct at_problem *problem, int64_t workspace_bytes) {
    int64_t end = 0;
    arena->n = 0;
    for (int t = 0; t < problem->op->n_tensors; t++)
        if (problem->tensors[t].data)
            end = place(arena, problem->op->tensors[t].name, t, end, at_tensor_bytes(&problem->tensors[t]));
    end = place(arena, "the workspace", -1, end, workspace_bytes);
    return end + AT_BAND_BYTES;
}

static at_status reserve(struct at_arena *arena, int64_t bytes) {
    if (arena->memory && arena->bytes >= bytes)
        return AT_OK;
    at_arena_release(arena);
    char doing[96];
    snprintf(doing, sizeof doing, "taking %lld bytes of device memory", (long long)bytes);
    AT_TRY(at_driver_said(arena->driver, arena->driver->allocate(&arena->memory, (size_t)bytes), doing));
    arena->bytes = bytes;
    return AT_OK;
}

/* ---- what is in it ---- */

static void *address(const struct at_arena *arena, const struct at_arena_place *p) {
    const uint64_t number = arena->memory + (uint64_t)p->offset;
    return (void *)(uintptr_t)number; /* NOLINT(performance-no-int-to-ptr): the driver's are numbers */
}

static at_status fill_places(const struct at_arena *arena, const struct at_problem *problem, struct at_problem *out,
                             void **workspace) {
    const struct at_driver *driver = arena->driver;
    for (int i = 0; i < arena->n; i++) {
        const struct at_arena_place *p = &arena->places[i];
        const uint64_t to = arena->memory + (uint64_t)p->offset;
        if (p->tensor < 0) {
            *workspace = address(arena, p);
            if (p->bytes)
                AT_TRY(at_driver_said(driver, driver->fill(to, POISON, (size_t)p->bytes), "poisoning the workspace"));
            continue;
        }
        out->tensors[p->tensor].data = address(arena, p);
        AT_TRY(at_driver_said(
            driver, driver->copy(to, (uint64_t)(uintptr_t)problem->tensors[p->tensor].data, (size_t)p->bytes, NULL),
            "copying a tensor on the device"));
    }
    return AT_OK;
}

at_status at_arena_fill(struct at_arena *arena, const struct at_problem *problem, int64_t workspace_bytes,
                        struct at_problem *out, void **workspace) {
    *out = *problem;
    const int64_t end = lay_out(arena, problem, workspace_bytes);
    AT_TRY(reserve(arena, end));
    if (arena->bytes > end) /* a larger job had it: nothing that a launch left behind the bands stays */
        AT_TRY(at_driver_said(arena->driver,
                              arena->driver->fill(arena->memory + (uint64_t)end, POISON, (size_t)(arena->bytes - end)),
                              "poisoning what is left"));
    AT_TRY(write_bands(arena));
    AT_TRY(fill_places(arena, problem, out, workspace));
    /* Copies within the device return before they are made, and the launch's stream waits for no other. */
    return at_driver_said(arena->driver, arena->driver->synchronize(), "filling the device's memory");
}

/* The first damaged byte of band i, counted from its start, and how many there are; -1: it is whole. */
static at_status find_damage(const struct at_arena *arena, int i, int64_t *first, int64_t *count) {
    uint8_t want[BAND_MAX], found[BAND_MAX];
    const int64_t at = band_at(arena, i), length = band_length(arena, i);
    *first = -1;
    *count = 0;
    band_bytes(arena, at, want);
    AT_TRY(at_driver_said(arena->driver, arena->driver->copy_out(found, arena->memory + (uint64_t)at, (size_t)length),
                          "reading a guard band"));
    for (int64_t b = 0; b < length; b++)
        if (found[b] != want[b]) {
            *first = *first < 0 ? b : *first;
            ++*count;
        }
    return AT_OK;
}

at_status at_arena_check(struct at_arena *arena, int *damaged, char *what, size_t size) {
    *damaged = 0;
    for (int i = 0; i <= arena->n && !*damaged; i++) {
        int64_t first, count;
        AT_TRY(find_damage(arena, i, &first, &count));
        if (first < 0)
            continue;
        *damaged = 1;
        const int64_t at = band_at(arena, i) + first;
        const int is_before = i == 0 || (i < arena->n && first >= band_length(arena, i) / 2);
        if (is_before)
            snprintf(what, size, "the launch wrote %lld bytes before %s, the first %lld before its start",
                     (long long)count, arena->places[i].name, (long long)(arena->places[i].offset - at));
        else
            snprintf(what, size, "the launch wrote %lld bytes past %s, the first %lld behind its end", (long long)count,
                     arena->places[i - 1].name, (long long)first);
    }
    return AT_OK;
}

at_status at_arena_store(struct at_arena *arena, const struct at_problem *problem) {
    const struct at_driver *driver = arena->driver;
    for (int i = 0; i < arena->n; i++) {
        const struct at_arena_place *p = &arena->places[i];
        if (p->tensor >= 0)
            AT_TRY(at_driver_said(driver,
                                  driver->copy((uint64_t)(uintptr_t)problem->tensors[p->tensor].data,
                                               arena->memory + (uint64_t)p->offset, (size_t)p->bytes, NULL),
                                  "copying a tensor on the device"));
    }
    AT_TRY(at_driver_said(driver, driver->synchronize(), "copying tensors back"));
    if (arena->bytes > LARGE) /* runners of one device share its memory */
        at_arena_release(arena);
    return AT_OK;
}
