/* ldmatrix: matrices of 8 x 8 elements from shared memory to the registers of a warp.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Two lanes read an element: the one that names its row, and the one that gets it. Both must be ordered after who wrote
 * it; the instruction itself orders no memory. Requests are counted for the lanes that name rows. */
#include <string.h>

#include "kernels/simt/counters.h"
#include "kernels/simt/shadow.h"

enum { SIDE = 8, ROW_BYTES = 16 };

/* What a lane hands in. */
struct request {
    const uint8_t *row; /* of matrix lane / 8; others are not looked at */
    uint32_t *out;
};

static void check_row(const void *row) {
    const struct at_simt_thread *self = at_simt_thread();
    struct at_spot spot;
    if ((uintptr_t)row % ROW_BYTES)
        at_simt_report(AT_FINDING_BOUNDS, self->place,
                       "block %lld: thread %d loads a matrix row from an address that is no multiple of 16",
                       (long long)self->in->number, self->index);
    at_memory_find(row, ROW_BYTES, AT_ACCESS_READ, &spot, NULL);
    if (!spot.name || !spot.shared)
        at_simt_report(AT_FINDING_BOUNDS, self->place,
                       "block %lld: thread %d loads a matrix row from memory that is not shared",
                       (long long)self->in->number, self->index);
}

/* Reads four bytes of shared memory for a lane that waits. */
static void read_for(struct at_simt_thread *reader, const uint8_t *from) {
    struct at_simt_self *running = at_simt_current;
    const int counting = at_counters_on;
    at_counters_on = 0;
    at_simt_current = &reader->self;
    at_shadow_access_at(from, 4, AT_ACCESS_READ, NULL);
    at_simt_current = running;
    at_counters_on = counting;
}

/* The elements a lane gets of one matrix, the first in the lower half. */
static uint32_t fetch(struct at_simt_thread *reader, struct at_simt_thread *const *names, int transposed) {
    const int lane = reader->index % AT_WARP;
    uint16_t pair[2];
    for (int i = 0; i < 2; i++) {
        const int along = 2 * (lane % 4) + i, row = transposed ? along : lane / 4,
                  column = transposed ? lane / 4 : along;
        const uint8_t *from = ((const struct request *)names[row]->deposit)->row + 2 * column;
        if (transposed || i == 0)
            read_for(reader, from - (uintptr_t)from % 4); /* what is beside it, the row's lane reads anyway */
        memcpy(&pair[i], from, sizeof pair[i]);
    }
    return pair[0] | (uint32_t)pair[1] << 16;
}

static void load(struct at_simt_thread *const *members, int n) {
    const int count = members[0]->from / 2, transposed = members[0]->from % 2;
    for (int lane = 0; lane < n; lane++)
        for (int m = 0; m < count; m++)
            ((const struct request *)members[lane]->deposit)->out[m] =
                fetch(members[lane], members + SIDE * m, transposed);
}

/* NOLINTNEXTLINE(readability-non-const-parameter): written when the warp has met */
void at_simt_load_matrix(int count, int transposed, const void *row, uint32_t *out, struct at_simt_place place) {
    struct at_simt_thread *self = at_simt_thread();
    const struct request mine = { row, out };
    self->place = place;
    if (self->index % AT_WARP < SIDE * count && !at_simt_machine.unchecked) {
        check_row(row);
        at_shadow_access_at(row, ROW_BYTES, AT_ACCESS_READ, __builtin_return_address(0));
    }
    at_simt_warp_operation(AT_SIMT_MATRIX, 0xffffffffu, 0, 2 * count + (transposed != 0), &mine, load, place);
}
