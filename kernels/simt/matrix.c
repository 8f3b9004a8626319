/* ldmatrix, stmatrix: matrices of 8 x 8 elements between shared memory and the registers of a warp.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Two lanes read an element: the one that names its row, and the one that gets it. Both must be ordered after its
 * write; the instruction itself orders no memory. Requests are counted for the lanes that name rows. */
#include "kernels/simt/simt_matrix.h"

#include <string.h>

#include "kernels/simt/counters.h"
#include "kernels/simt/finding.h"
#include "kernels/simt/shadow.h"
#include "kernels/simt/warp.h"

enum { SIDE = 8, ROW_BYTES = 16 };

/* What a lane hands in. */
struct request {
    const uint8_t *row; /* of matrix lane / 8; others are not looked at */
    uint32_t *out;
};

static void check_row(const void *row, const char *does) {
    const struct at_simt_thread *self = at_simt_thread();
    struct at_spot spot;
    if ((uintptr_t)row % ROW_BYTES)
        at_simt_report(AT_FINDING_BOUNDS, self->place, "block %lld: thread %d %s an address that is no multiple of 16",
                       (long long)self->in->number, self->index, does);
    at_memory_find(row, ROW_BYTES, AT_ACCESS_READ, &spot, NULL);
    if (!spot.name || !spot.shared)
        at_simt_report(AT_FINDING_BOUNDS, self->place, "block %lld: thread %d %s memory that is not shared",
                       (long long)self->in->number, self->index, does);
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
        check_row(row, "loads a matrix row from");
        at_shadow_access_at(row, ROW_BYTES, AT_ACCESS_READ, __builtin_return_address(0));
    }
    at_warp_operation(AT_SIMT_MATRIX, 0xffffffffu, 0, 2 * count + (transposed != 0), &mine, load, place);
}

/* ---- and back ---- */

struct store {
    uint8_t *row;
    const uint32_t *from;
};

/* The elements a lane has of one matrix: two neighbours of a row, or one of each of two rows. */
static void put(struct at_simt_thread *writer, struct at_simt_thread *const *names, int transposed, uint32_t word) {
    struct at_simt_self *running = at_simt_current;
    const int lane = writer->index % AT_WARP, counting = at_counters_on;
    at_counters_on = 0;
    at_simt_current = &writer->self;
    for (int i = 0; i < 1 + transposed; i++) {
        const int along = 2 * (lane % 4) + i, row = transposed ? along : lane / 4,
                  column = transposed ? lane / 4 : along, bytes = transposed ? 2 : 4;
        uint8_t *to = ((const struct store *)names[row]->deposit)->row + 2 * column;
        const uint32_t elements = word >> 16 * i;
        at_shadow_access_at(to, bytes, AT_ACCESS_WRITE, NULL);
        memcpy(to, &elements, (size_t)bytes);
    }
    at_simt_current = running;
    at_counters_on = counting;
}

static void store(struct at_simt_thread *const *members, int n) {
    const int count = members[0]->from / 2, transposed = members[0]->from % 2;
    for (int lane = 0; lane < n; lane++)
        for (int m = 0; m < count; m++)
            put(members[lane], members + SIDE * m, transposed, ((const struct store *)members[lane]->deposit)->from[m]);
}

void at_simt_store_matrix(int count, int transposed, void *row, const uint32_t *from, struct at_simt_place place) {
    struct at_simt_thread *self = at_simt_thread();
    const struct store mine = { row, from };
    self->place = place;
    if (self->index % AT_WARP < SIDE * count && !at_simt_machine.unchecked)
        check_row(row, "stores a matrix row to");
    at_warp_operation(AT_SIMT_MATRIX_STORE, 0xffffffffu, 0, 2 * count + (transposed != 0), &mine, store, place);
}
