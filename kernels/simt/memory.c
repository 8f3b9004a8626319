/* What lies at an address: a tensor, a variable of the block, something private, or nothing a kernel may touch.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "kernels/simt/cluster.h"
#include "kernels/simt/finding.h"
#include "kernels/simt/memory.h"

struct region {
    struct at_simt_region told;
    char name[48];
    struct at_shadow_cell *cells; /* NULL: read-only */
    int alone;                    /* it shares no byte with another */
};

static struct region *regions;
static struct span { /* where each begins and how long it is: looked at for every access */
    const uint8_t *base;
    uint64_t bytes;
} * spans;
static int n_regions;
/* Cells of the regions that may be written, one region's after another's. From job to job they stay, by their epochs
 * too old to count: to get such memory afresh takes longer than most jobs take to use it. */
static struct {
    struct at_shadow_cell *cells;
    size_t n;
} region_cells;
enum { KEPT_MAX = 8 << 20 }; /* cells; a job that has more of them, 352 MiB, gives them back */
struct at_memory_input at_memory_inputs[AT_MEMORY_CALLS];
struct at_memory_output at_memory_outputs[AT_MEMORY_CALLS];

static size_t cells_of(int64_t bytes) { return (size_t)bytes / AT_GRANULE + 1; }

/* Cells that cost memory only where they are touched. */
static struct at_shadow_cell *map_cells(size_t n) {
    void *memory = mmap(NULL, n * sizeof(struct at_shadow_cell), PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) {
        fprintf(stderr, "attest-cpu: no memory to watch %zu bytes\n", n * AT_GRANULE);
        exit(3);
    }
    return memory;
}

static void unmap_cells(struct at_shadow_cell *cells, size_t n) {
    if (cells)
        munmap(cells, n * sizeof *cells);
}

static void forget_regions(void) {
    unmap_cells(region_cells.cells, region_cells.n);
    region_cells.cells = NULL;
    region_cells.n = 0;
}

void at_memory_forget(void) {
    forget_regions();
    for (int i = 0; at_simt_machine.resident && i < AT_RESIDENT_MAX; i++) {
        struct at_simt_block *block = &at_simt_machine.resident[i];
        unmap_cells(block->cells, cells_of(AT_ARENA_BYTES));
        block->cells = NULL;
    }
}

/* Variables and tables of the program itself: __device__ variables are here. */
extern char __executable_start, end;

static int is_alone(const struct at_simt_region *told, int n, int which) {
    for (int i = 0; i < n; i++)
        if (i != which && told[i].base < told[which].base + told[which].bytes &&
            told[which].base < told[i].base + told[i].bytes)
            return 0;
    return 1;
}

/* Cells for as many bytes as the job's regions have: those of the job before where they are enough and not too many. */
static struct at_shadow_cell *cells_for(const struct at_simt_region *told, int n) {
    size_t wanted = 0;
    for (int i = 0; i < n; i++)
        wanted += told[i].read_only ? 0 : cells_of(told[i].bytes);
    wanted += cells_of(&end - &__executable_start);
    if (wanted > region_cells.n || region_cells.n > KEPT_MAX) {
        forget_regions();
        region_cells.cells = map_cells(wanted);
        region_cells.n = wanted;
    }
    return region_cells.cells;
}

void at_memory_job(const struct at_simt_region *told, int n) {
    struct at_shadow_cell *cells = cells_for(told, n);
    n_regions = 0;
    memset(at_memory_inputs, 0, sizeof at_memory_inputs);
    memset(at_memory_outputs, 0, sizeof at_memory_outputs);
    regions = realloc(regions, ((size_t)n + 1) * sizeof *regions);
    spans = realloc(spans, ((size_t)n + 1) * sizeof *spans);
    if (!regions || !spans) {
        fprintf(stderr, "attest-cpu: no memory for %d regions\n", n);
        exit(3);
    }
    for (int i = 0; i <= n; i++) {
        struct region *r = &regions[n_regions++];
        memset(r, 0, sizeof *r);
        if (i < n)
            r->told = told[i];
        else
            r->told = (struct at_simt_region){ .name = "the program's variables",
                                               .base = (uint8_t *)&__executable_start,
                                               .bytes = &end - &__executable_start };
        spans[i] = (struct span){ r->told.base, (uint64_t)r->told.bytes };
        snprintf(r->name, sizeof r->name, "%s", r->told.name);
        r->told.name = r->name;
        if (!r->told.read_only) { /* what nobody may write has no races */
            r->cells = cells;
            cells += cells_of(r->told.bytes);
        }
        r->alone = i < n && is_alone(told, n, i);
    }
}

/* Makes the variable that holds these bytes of shared memory the one touched last. */
static int in_variables(struct at_simt_block *like, int64_t at, int bytes) {
    for (int i = 0; i < like->n_variables; i++) {
        const struct at_shared_variable *v = &like->variables[i];
        if (at >= v->offset && at + bytes <= v->offset + v->bytes) {
            like->last_variable = i;
            return 1;
        }
    }
    return 0;
}

static int in_arena(const uint8_t *address, int bytes, struct at_spot *spot, const void *where) {
    struct at_simt_block *self = at_simt_thread()->in, *block = self, *like;
    if (!at_memory_in_arena(block, address)) {
        block = at_simt_machine.cluster > 1 ? at_cluster_reach(address, where) : NULL;
        if (!block)
            return 0;
    }
    const int64_t at = address - block->arena;
    like = in_variables(block, at, bytes) ? block : self; /* the block itself, or the one that asks */
    if (!block->cells)
        block->cells = map_cells(cells_of(AT_ARENA_BYTES));
    if (!at_memory_shared(block, like, at, bytes, spot) &&
        !(in_variables(self, at, bytes) && at_memory_shared(block, like, at, bytes, spot)))
        at_simt_report_at(AT_FINDING_BOUNDS, where,
                          "block %lld: thread %d reaches %d bytes of shared memory that belong to no variable",
                          (long long)self->number, at_simt_thread()->index, bytes);
    return 1;
}

static int in_region(const uint8_t *address, int bytes, enum at_access access, struct at_spot *spot,
                     const void *where) {
    for (int i = 0; i < n_regions; i++) {
        const int64_t at = address - spans[i].base;
        if ((uint64_t)at >= spans[i].bytes)
            continue;
        const struct region *r = &regions[i];
        if (at + bytes > r->told.bytes)
            break;
        if (r->told.read_only && access != AT_ACCESS_READ)
            at_simt_report_at(AT_FINDING_BOUNDS, where, "block %lld: thread %d writes to the input %s, byte %lld",
                              (long long)at_simt_thread()->in->number, at_simt_thread()->index, r->name, (long long)at);
        if (r->told.read_only && r->alone)
            *at_memory_input_of(where) = (struct at_memory_input){ spans[i].base, spans[i].bytes };
        else if (r->alone)
            at_memory_outputs[at_memory_call(where)] =
                (struct at_memory_output){ { spans[i].base, spans[i].bytes }, r->cells, r->name, r->told.unwritten };
        *spot = (struct at_spot){ r->cells, r->name, at, 0, 0, r->told.unwritten };
        return 1;
    }
    return 0;
}

const char *at_memory_tensor(const void *address, int64_t *byte) {
    for (int i = 0; i < n_regions - 1; i++) { /* the last is the program */
        *byte = (const uint8_t *)address - spans[i].base;
        if ((uint64_t)*byte < spans[i].bytes)
            return regions[i].name;
    }
    return NULL;
}

/* Names the nearest region: an index past the end belongs to the tensor it was meant for. */
static void report_outside(const uint8_t *address, int bytes, enum at_access access, const void *where) {
    const struct at_simt_thread *self = at_simt_thread();
    const struct region *near = NULL;
    int64_t least = INT64_MAX;
    for (int i = 0; i < n_regions - 1; i++) { /* the last is the program */
        const int64_t before = regions[i].told.base - address;
        const int64_t past = address + bytes - (regions[i].told.base + regions[i].told.bytes);
        const int64_t distance = before > past ? before : past;
        if (distance < least) {
            least = distance;
            near = &regions[i];
        }
    }
    at_simt_report_at(AT_FINDING_BOUNDS, where,
                      "block %lld: thread %d %s %d bytes outside every tensor%s%s, byte %+lld of its %lld",
                      (long long)self->in->number, self->index, access == AT_ACCESS_READ ? "reads" : "writes", bytes,
                      near ? "; the nearest is " : "", near ? near->name : "",
                      near ? (long long)(address - near->told.base) : 0LL, near ? (long long)near->told.bytes : 0LL);
}

void at_memory_find(const uint8_t *address, int bytes, enum at_access access, struct at_spot *spot, const void *where) {
    const struct at_simt_thread *self = at_simt_thread();
    spot->cells = NULL;
    spot->name = NULL; /* private to the thread */
    if (at_memory_own_stack(self, address))
        return;
    if (in_arena(address, bytes, spot, where))
        return;
    const uint8_t *threads = (const uint8_t *)self->in->threads;
    if (at_memory_of_launch(self, address) ||
        (address >= threads && address < (const uint8_t *)(self->in->threads + self->in->n)))
        return;
    if (!in_region(address, bytes, access, spot, where))
        report_outside(address, bytes, access, where);
}
