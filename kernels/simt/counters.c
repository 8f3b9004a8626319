/* Requests of warps, put together from the accesses of their lanes.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/simt/counters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SECTOR = 32, BANKS = 32, WORD = 4, PASS_BYTES = BANKS * WORD };

/* What the lanes of a warp did at one place for the same time. */
struct request {
    uint64_t address[AT_WARP];
    uint32_t lanes; /* that came */
    int bytes, shared;
};

/* One place in the code, for one warp of one resident block. */
struct site {
    const void *where;
    struct at_simt_block *block;
    int warp;
    uint32_t n, capacity, times[AT_WARP]; /* how often each lane came */
    struct request *requests;
};

int at_counters_on;
static struct at_counters counts;
static struct site *sites; /* open addressing; n_slots is a power of two */
static uint32_t n_slots, n_sites;

static void *must(void *memory) {
    if (!memory) {
        fprintf(stderr, "attest-cpu: no memory to count accesses\n");
        exit(3);
    }
    return memory;
}

static void forget(void) {
    for (uint32_t i = 0; i < n_slots; i++)
        free(sites[i].requests);
    free(sites);
    sites = NULL;
    n_slots = n_sites = 0;
}

void at_counters_job(void) {
    at_counters_on = 0;
    counts = (struct at_counters){ 0 };
    forget();
}

const struct at_counters *at_counters_get(void) { return &counts; }

/* ---- sites ---- */

static struct site *slot_of(const void *where, const struct at_simt_block *block, int warp) {
    uint64_t hash = ((uint64_t)(uintptr_t)where ^ (uint64_t)(uintptr_t)block << 7) + (uint64_t)warp;
    hash *= 0x9e3779b97f4a7c15u;
    for (uint32_t i = (uint32_t)(hash >> 40);; i++) {
        struct site *s = &sites[i & (n_slots - 1)];
        if (!s->where || (s->where == where && s->block == block && s->warp == warp))
            return s;
    }
}

static void grow(void) {
    struct site *old = sites;
    const uint32_t n = n_slots;
    n_slots = n ? 2 * n : 1024;
    sites = must(calloc(n_slots, sizeof *sites));
    for (uint32_t i = 0; i < n; i++)
        if (old[i].where)
            *slot_of(old[i].where, old[i].block, old[i].warp) = old[i];
    free(old);
}

static struct site *site_of(const void *where, const struct at_simt_thread *self) {
    if (2 * n_sites >= n_slots)
        grow();
    struct site *s = slot_of(where, self->in, self->index / AT_WARP);
    if (!s->where) {
        *s = (struct site){ .where = where, .block = self->in, .warp = self->index / AT_WARP };
        n_sites++;
    }
    return s;
}

/* ---- what a request costs ---- */

static int by_value(const void *a, const void *b) {
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Different values of address / unit over the bytes of lanes [first, first + n), sorted, each once; at most 2 n of
 * them: an access that straddles. */
static int distinct(const struct request *r, int first, int n, int unit, uint64_t *out) {
    int m = 0, kept = 0;
    for (int lane = first; lane < first + n; lane++)
        if (r->lanes >> lane & 1)
            for (uint64_t u = r->address[lane] / (uint64_t)unit;
                 u <= (r->address[lane] + (uint64_t)r->bytes - 1) / (uint64_t)unit; u++)
                out[m++] = u;
    qsort(out, (size_t)m, sizeof *out, by_value);
    for (int i = 0; i < m; i++)
        if (i == 0 || out[i] != out[i - 1])
            out[kept++] = out[i];
    return kept;
}

/* Passes over the banks: lanes that ask for the same word are served together; wide accesses go by parts of the warp
 * that ask for 128 bytes. */
static int wavefronts(const struct request *r) {
    const int lanes = r->bytes <= WORD ? AT_WARP : PASS_BYTES / r->bytes;
    uint64_t words[AT_WARP * 5];
    int sum = 0;
    for (int first = 0; first < AT_WARP; first += lanes) {
        int in_bank[BANKS] = { 0 }, most = 0;
        const int n = distinct(r, first, lanes, WORD, words);
        for (int i = 0; i < n; i++) {
            const int now = ++in_bank[words[i] % BANKS];
            most = now > most ? now : most;
        }
        sum += most;
    }
    return sum;
}

static void count_request(const struct request *r) {
    uint64_t sectors[AT_WARP * 2];
    if (r->shared) {
        counts.shared_requests++;
        counts.shared_wavefronts += wavefronts(r);
        return;
    }
    counts.global_requests++;
    counts.global_sectors += distinct(r, 0, AT_WARP, SECTOR, sectors);
    counts.global_bytes += (int64_t)__builtin_popcount(r->lanes) * r->bytes;
}

/* ---- events ---- */

void at_counters_access(const struct at_spot *spot, const void *address, int bytes, enum at_access access,
                        const void *where) {
    const struct at_simt_thread *self = at_simt_thread();
    const int lane = self->index % AT_WARP;
    if (!spot->name || bytes < 1 || bytes > 16)
        return;
    struct site *s = site_of(where, self);
    const uint32_t i = s->times[lane]++;
    if (i >= s->capacity) {
        s->capacity = s->capacity ? 2 * s->capacity : 16;
        s->requests = must(realloc(s->requests, s->capacity * sizeof *s->requests));
    }
    for (; s->n <= i; s->n++)
        s->requests[s->n] = (struct request){ .bytes = bytes, .shared = spot->shared };
    s->requests[i].lanes |= 1u << lane;
    s->requests[i].address[lane] = (uint64_t)(uintptr_t)address;
    counts.lane_accesses++;
    counts.atomics += access == AT_ACCESS_ATOMIC;
}

void at_counters_warp_operation(void) { counts.warp_operations += at_counters_on; }

void at_counters_flush(struct at_simt_block *block) {
    for (uint32_t i = 0; at_counters_on && i < n_slots; i++) {
        struct site *s = &sites[i];
        if (s->block != block || s->n == 0)
            continue;
        for (uint32_t r = 0; r < s->n; r++)
            count_request(&s->requests[r]);
        s->n = 0;
        memset(s->times, 0, sizeof s->times);
    }
}

void at_counters_barrier(struct at_simt_block *block) {
    counts.barriers += at_counters_on;
    at_counters_flush(block);
}
