/* wgmma: products of 64 rows by a warpgroup, which go on while its threads do other work.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A warp does its 16 rows when its lanes have met. Operands in shared memory are in use from then until the wait: the
 * shadow reports a write to them meanwhile. The sums are kept in wgmma_registers.c until the wait, and the registers
 * that will get them hold NaNs; touching those, or operands in registers, is reported too. Each warp must issue as many
 * as the others of its warpgroup; that is checked when they leave. */
#include "kernels/simt/wgmma.h"

#include <string.h>

#include "kernels/simt/clock.h"
#include "kernels/simt/counters.h"
#include "kernels/simt/finding.h"
#include "kernels/simt/left_out.h"
#include "kernels/simt/mma.h"
#include "kernels/simt/shadow.h"
#include "kernels/simt/warp.h"
#include "kernels/simt/wgmma_registers.h"

enum { ROWS = 16, OPERATIONS_MAX = 64, COLUMNS_MAX = 256, CHUNK_BYTES = 16, K_CHUNKS = 2, K_LINES = 16 };
enum { PLAIN_NAN = 0x7fffffff };

struct operation {
    uint32_t group;
    struct at_simt_matrix a, b; /* a.at NULL: in registers */
    int columns;
};

struct at_wgmma_warp {
    uint32_t group;  /* not committed yet */
    uint32_t issued; /* wgmma so far */
    int n_operations;
    struct operation operations[OPERATIONS_MAX];
};

void at_wgmma_begin(struct at_simt_block *block) {
    at_wgmma_registers_begin(block);
    for (int w = 0; block->wgmma && w < AT_WARPS_MAX; w++) {
        struct at_wgmma_warp *warp = &block->wgmma[w];
        warp->group = warp->issued = 0;
        warp->n_operations = 0;
    }
}

static struct at_wgmma_warp *warp_of(const struct at_simt_thread *thread) {
    struct at_simt_block *block = thread->in;
    if (!block->wgmma)
        block->wgmma = at_simt_allocate(AT_WARPS_MAX, sizeof *block->wgmma, "wgmma");
    return &block->wgmma[thread->index / AT_WARP];
}

/* ---- operands ---- */

/* Chunk i of 16 bytes of the rows from `first` on: two of every row, or, MN-major, 16 lines of k of every 8 rows. */
static const uint8_t *chunk_of(const struct at_simt_block *block, const struct at_simt_matrix *m, int first, int i) {
    const uint8_t *at = m->at;
    const int n = m->swizzle / CHUNK_BYTES, group = first / 8 + i / K_LINES, k = i % K_LINES;
    const int row = first + i / K_CHUNKS, chunk = i % K_CHUNKS;
    int64_t place;
    if (m->mn_major && !n)
        place = group * m->stride + k / 8 * m->leading + k % 8 * CHUNK_BYTES;
    else if (m->mn_major)
        place = group / n * m->leading + k / 8 * m->stride + k % 8 * m->swizzle + group % n * CHUNK_BYTES;
    else if (!n)
        place = row / 8 * m->stride + chunk * m->leading + row % 8 * CHUNK_BYTES;
    else
        place = row / 8 * m->stride + row % 8 * m->swizzle + chunk * CHUNK_BYTES;
    if (!n)
        return at + place;
    place += at - block->arena;
    return block->arena + (place ^ (place >> 7 & (n - 1)) * CHUNK_BYTES);
}

/* A thread that happens after only what happens before all lanes, by the least elements of their clocks: products are
 * made when the last of them has come. */
static void reader_after_all(struct at_simt_thread *const *members, struct at_simt_thread *reader, uint32_t *clock) {
    const struct at_simt_block *block = members[0]->in;
    const int width = at_clock_width_now(block), own = members[0]->index / AT_WARP * AT_WARP;
    *reader = *members[0];
    if (at_simt_machine.unchecked)
        return;
    reader->clock = clock;
    memcpy(clock, members[0]->clock, (size_t)width * sizeof *clock);
    for (int lane = 0; lane < AT_WARP; lane++) {
        const struct at_simt_thread *t = members[lane];
        clock[t->index] = t->epoch; /* its own element means nothing to a thread */
        at_clock_meet(clock, t->clock, own);
        at_clock_meet(clock + own + AT_WARP, t->clock + own + AT_WARP, width - own - AT_WARP);
    }
}

/* The elements of 16 bytes. */
static inline void decode_chunk(enum at_format format, int bytes, const uint32_t *words, double *x) {
    const int each = 4 / bytes;
    if (format == AT_F16)
        for (int j = 0; j < CHUNK_BYTES / 2; j++)
            x[j] = at_mma_element(AT_F16, words[j / 2], j % 2);
    else if (format == AT_BF16)
        for (int j = 0; j < CHUNK_BYTES / 2; j++)
            x[j] = at_mma_element(AT_BF16, words[j / 2], j % 2);
    else
        for (int j = 0; j < CHUNK_BYTES / bytes; j++)
            x[j] = at_mma_element(format, words[j / each], j % each);
}

static void read_matrix(struct at_simt_thread *reader, const struct at_simt_matrix *m, enum at_format format, int first,
                        int rows, struct at_tc_row *out) {
    const int bytes = (int)at_format_info(format)->bytes, n = CHUNK_BYTES / bytes;
    struct at_simt_self *running = at_simt_current;
    const int counting = at_counters_on;
    at_counters_on = 0;
    at_simt_current = &reader->self;
    for (int i = 0; i < rows * K_CHUNKS; i++) {
        const uint8_t *at = chunk_of(reader->in, m, first, i);
        uint32_t words[CHUNK_BYTES / 4];
        double x[CHUNK_BYTES];
        at_shadow_access_at(at, CHUNK_BYTES, AT_ACCESS_MULTIPLY, NULL);
        memcpy(words, at, sizeof words);
        decode_chunk(format, bytes, words, x);
        for (int j = 0; m->mn_major && j < n; j++)
            out[i / K_LINES * 8 + j].x[i % K_LINES] = x[j];
        if (!m->mn_major)
            memcpy(&out[i / K_CHUNKS].x[i % K_CHUNKS * n], x, (size_t)n * sizeof *x);
    }
    at_simt_current = running;
    at_counters_on = counting;
}

static void read_registers(struct at_simt_thread *const *members, enum at_format format, struct at_tc_row *out) {
    const int n = 4 / (int)at_format_info(format)->bytes;
    for (int lane = 0; lane < AT_WARP; lane++) {
        const struct at_simt_wgmma *w = members[lane]->deposit;
        for (int r = 0; r < 4; r++)
            for (int j = 0; j < n; j++)
                out[lane / 4 + 8 * (r % 2)].x[n * (lane % 4) + j + 4 * n * (r / 2)] =
                    at_mma_element(format, w->a[r], j);
    }
}

static void release_matrix(struct at_simt_thread *reader, const struct at_simt_matrix *m, int first, int rows) {
    struct at_simt_self *running = at_simt_current;
    at_simt_current = &reader->self;
    for (int i = 0; m->at && i < rows * K_CHUNKS; i++)
        at_shadow_multiplied(chunk_of(reader->in, m, first, i), CHUNK_BYTES);
    at_simt_current = running;
}

/* ---- issue ---- */

static void check_matrix(const struct at_simt_matrix *m) {
    const struct at_simt_thread *self = at_simt_thread();
    struct at_spot spot;
    if ((uintptr_t)m->at % CHUNK_BYTES || m->leading % CHUNK_BYTES || m->stride % CHUNK_BYTES)
        at_simt_report(AT_FINDING_BOUNDS, self->place,
                       "block %lld: thread %d multiplies a matrix whose address or offsets are no multiples of 16",
                       (long long)self->in->number, self->index);
    at_memory_find(m->at, CHUNK_BYTES, AT_ACCESS_READ, &spot, NULL);
    if (!spot.name || !spot.shared)
        at_simt_report(AT_FINDING_BOUNDS, self->place,
                       "block %lld: thread %d multiplies a matrix that is not in shared memory",
                       (long long)self->in->number, self->index);
}

/* Element i of a lane's part of the sums: four for each eight columns. */
static double sum_of(enum at_format format, const uint32_t *words, int i) {
    return format == AT_F32 ? at_mma_decode(AT_F32, words[i]) : at_mma_element(AT_F16, words[i / 2], i % 2);
}

static void multiply(struct at_simt_thread *const *members, int n) {
    static uint32_t clock[AT_CLOCK_WIDTH_MAX];
    static struct at_tc_row a[ROWS], b[COLUMNS_MAX];
    const struct at_simt_wgmma *first = members[0]->deposit;
    const struct at_tc_rule *rule;
    const struct at_tc_instruction *t = at_mma_instruction(first->kind, &rule);
    struct at_wgmma_warp *warp = warp_of(members[0]);
    struct at_simt_thread reader;
    uint32_t *at[AT_WARP] = { 0 }, *a_at[AT_WARP] = { 0 };
    const int words = first->columns / 8 * (rule->out == AT_F32 ? 4 : 2);
    const int row = members[0]->index / AT_WARP % AT_WARPGROUP_WARPS * ROWS;
    for (int lane = 0; lane < n; lane++) {
        at[lane] = ((const struct at_simt_wgmma *)members[lane]->deposit)->d;
        a_at[lane] = (uint32_t *)((const struct at_simt_wgmma *)members[lane]->deposit)->a;
    }
    if (warp->n_operations == OPERATIONS_MAX)
        at_simt_report(AT_FINDING_BOUNDS, members[0]->place, "more than %d wgmma that have not been waited for",
                       (int)OPERATIONS_MAX);
    reader_after_all(members, &reader, clock);
    if (first->a) {
        at_wgmma_registers_take(members, a_at, 4, "operands");
        read_registers(members, t->a, a);
    } else {
        read_matrix(&reader, &first->a_at, t->a, row, ROWS, a);
    }
    read_matrix(&reader, &first->b_at, t->b, 0, first->columns, b);
    for (int i = 0; i < ROWS; i++)
        at_tc_row_know(t->a, &a[i], t->k);
    for (int i = 0; i < first->columns; i++)
        at_tc_row_know(t->b, &b[i], t->k);
    struct at_wgmma_variable *sums = at_wgmma_registers_take(members, at, words, "sums");
    if (!sums->sums)
        sums->sums = at_simt_allocate(AT_WARP, sizeof *sums->sums, "sums of wgmma");
    for (int lane = 0; lane < n; lane++) {
        uint32_t *d = sums->sums[lane], c[AT_WGMMA_WORDS_MAX];
        if (first->fresh)
            memset(c, 0, sizeof c);
        else
            memcpy(c, sums->pending ? d : at[lane], (size_t)words * sizeof *c);
        for (int i = 0; i < first->columns / 2; i++) {
            const int column = i / 4 * 8 + 2 * (lane % 4) + i % 2, r = lane / 4 + 8 * (i / 2 % 2);
            at_mma_put(rule->out, d, i, at_tc_multiply_add_rows(t, rule, &a[r], &b[column], sum_of(rule->out, c, i)));
        }
        for (int i = 0; i < words; i++)
            at[lane][i] = PLAIN_NAN;
    }
    sums->pending = 1;
    sums->group = warp->group;
    sums->place = members[0]->place;
    warp->operations[warp->n_operations++] =
        (struct operation){ .group = warp->group,
                            .a = first->a ? (struct at_simt_matrix){ 0 } : first->a_at,
                            .b = first->b_at,
                            .columns = first->columns };
    warp->issued++;
}

void at_simt_wgmma(const struct at_simt_wgmma *operation, struct at_simt_place place) {
    struct at_simt_thread *self = at_simt_thread();
    self->place = place;
    if ((self->index / AT_WARP / AT_WARPGROUP_WARPS + 1) * AT_WARPGROUP_WARPS * AT_WARP > self->in->n)
        at_simt_report(AT_FINDING_RACE, place, "block %lld: thread %d multiplies outside a warpgroup: the block has %d",
                       (long long)self->in->number, self->index, self->in->n);
    if (operation->columns < 8 || operation->columns > COLUMNS_MAX || operation->columns % 8)
        at_simt_report(AT_FINDING_BOUNDS, place, "block %lld: thread %d multiplies %d columns; wanted 8, 16, ... 256",
                       (long long)self->in->number, self->index, operation->columns);
    check_matrix(&operation->b_at);
    if (!operation->a)
        check_matrix(&operation->a_at);
    if (operation->b_at.mn_major && operation->kind != AT_SIMT_WGMMA_K16_F16_F32 &&
        operation->kind != AT_SIMT_WGMMA_K16_BF16_F32 && operation->kind != AT_SIMT_WGMMA_K16_F16_F16)
        at_simt_report(AT_FINDING_BOUNDS, place,
                       "block %lld: thread %d multiplies an MN-major matrix of elements that have not 16 bits",
                       (long long)self->in->number, self->index);
    at_warp_operation(AT_SIMT_WGMMA, 0xffffffffu, 0, (int)operation->kind, operation, multiply, place);
}

/* ---- fence, commit, wait ---- */

static void fence(struct at_simt_thread *const *members, int n) {
    (void)n;
    at_wgmma_registers_fence(members[0]);
}

void at_simt_wgmma_fence(struct at_simt_place place) {
    if (at_simt_leaves_out(place))
        return;
    at_warp_operation(AT_SIMT_WGMMA_FENCE, 0xffffffffu, 0, 0, NULL, fence, place);
}

static void commit(struct at_simt_thread *const *members, int n) {
    (void)n;
    warp_of(members[0])->group++;
}

void at_simt_wgmma_commit(struct at_simt_place place) {
    if (at_simt_leaves_out(place))
        return;
    at_warp_operation(AT_SIMT_WGMMA_COMMIT, 0xffffffffu, 0, 0, NULL, commit, place);
}

/* All groups before `group` are over. */
static void finish(struct at_simt_thread *const *members, uint32_t group) {
    struct at_wgmma_warp *warp = warp_of(members[0]);
    const int row = members[0]->index / AT_WARP % AT_WARPGROUP_WARPS * ROWS;
    int left = 0;
    for (int i = 0; i < warp->n_operations; i++) {
        const struct operation *o = &warp->operations[i];
        if (o->group >= group) {
            warp->operations[left++] = *o;
            continue;
        }
        release_matrix(members[0], &o->a, row, ROWS);
        release_matrix(members[0], &o->b, 0, o->columns);
    }
    warp->n_operations = left;
    at_wgmma_registers_arrive(members[0], group);
}

static void wait(struct at_simt_thread *const *members, int n) {
    const struct at_wgmma_warp *warp = warp_of(members[0]);
    const uint32_t but = (uint32_t)members[0]->from;
    const uint32_t lead = members[0]->epoch;
    if (warp->group >= but)
        finish(members, warp->group - but);
    at_wgmma_registers_waited(members[0]);
    /* What the tensor core has read is booked on the first lane: every lane that has waited is ordered after it. */
    for (int i = 1; i < n; i++) {
        uint32_t *of_first = &members[i]->clock[members[0]->index];
        *of_first = *of_first > lead ? *of_first : lead;
    }
}

void at_simt_wgmma_wait(int but, struct at_simt_place place) {
    if (at_simt_leaves_out(place))
        return;
    at_warp_operation(AT_SIMT_WGMMA_WAIT, 0xffffffffu, 0, but, NULL, wait, place);
}

/* ---- the end ---- */

void at_wgmma_left(const struct at_simt_thread *thread) {
    const struct at_simt_block *block = thread->in;
    const int warp = thread->index / AT_WARP;
    if (!block->wgmma)
        return;
    if (block->wgmma[warp].n_operations > 0)
        at_simt_report(AT_FINDING_RACE, thread->place,
                       "block %lld: thread %d leaves the kernel with wgmma that have not been waited for",
                       (long long)block->number, thread->index);
    if (block->n_left < block->n)
        return;
    for (int w = 0; w < block->n / AT_WARP; w++)
        if (block->wgmma[w].issued != block->wgmma[w / AT_WARPGROUP_WARPS * AT_WARPGROUP_WARPS].issued)
            at_simt_report(
                AT_FINDING_RACE, thread->place, "block %lld: warp %d issues %u wgmma, warp %d of the same warpgroup %u",
                (long long)block->number, w, block->wgmma[w].issued, w / AT_WARPGROUP_WARPS * AT_WARPGROUP_WARPS,
                block->wgmma[w / AT_WARPGROUP_WARPS * AT_WARPGROUP_WARPS].issued);
}
