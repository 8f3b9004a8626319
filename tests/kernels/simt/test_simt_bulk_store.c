/* The SIMT machine: what bulk stores ask of fences and waits.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/at_test.h"

#include "kernels/simt/simt_bulk.h"
#include "tests/support/simt_scene.h"

enum { THREADS = 64, TILE_WORDS = 1024 };
#define FENCE() at_simt_proxy_fence(HERE_PLACE)

struct tile {
    _Alignas(1024) uint32_t words[TILE_WORDS];
};

/* Stores: the source belongs to the copy until it has been read, the target until it is over. */
static enum store_fault {
    STORE_RIGHT,
    STORE_NOT_FENCED,
    STORE_NOT_ORDERED,
    SOURCE_WRITTEN,
    SOURCE_WRITTEN_AFTER_READ, /* right */
    SOURCE_OF_A_LATER_GROUP_WRITTEN,
    LEAVES,
    NOT_COMMITTED,
    TARGET_READ_AFTER_SOURCE,
    TARGET_READ_WHEN_OVER, /* right */
    TARGET_WRITTEN,
    SOURCE_UNWRITTEN,
    STORE_MISALIGNED
} store_fault;

static void uses_a_store(void *unused) {
    (void)unused;
    SHARED(struct tile, 1, tile);
    PUT(tile->words[TID], (uint32_t)TID + 7);
    PUT(tile->words[THREADS + TID], (uint32_t)TID + 71);
    if (store_fault != STORE_NOT_FENCED)
        FENCE();
    SYNC();
    if (store_fault == STORE_NOT_ORDERED)
        PUT(tile->words[TID], (uint32_t)TID);
    if (TID != 9)
        return;
    at_simt_bulk_store(at_simt_scene.out + (store_fault == STORE_MISALIGNED), tile->words, 4 * THREADS, HERE_PLACE);
    if (store_fault != NOT_COMMITTED)
        at_simt_bulk_commit(HERE_PLACE);
    at_simt_bulk_store(at_simt_scene.out + THREADS, tile->words + (store_fault == SOURCE_UNWRITTEN ? 96 : THREADS),
                       4 * THREADS, HERE_PLACE);
    if (store_fault != NOT_COMMITTED)
        at_simt_bulk_commit(HERE_PLACE);
    if (store_fault == LEAVES)
        return;
    if (store_fault == SOURCE_WRITTEN)
        PUT(tile->words[0], 0);
    if (store_fault == TARGET_WRITTEN)
        PUT(at_simt_scene.out[5], 0);
    at_simt_bulk_wait(1, 1, HERE_PLACE);
    if (store_fault == SOURCE_WRITTEN_AFTER_READ || store_fault == SOURCE_OF_A_LATER_GROUP_WRITTEN)
        PUT(tile->words[store_fault == SOURCE_OF_A_LATER_GROUP_WRITTEN ? THREADS : 0], 0);
    at_simt_bulk_wait(0, store_fault != TARGET_READ_WHEN_OVER, HERE_PLACE);
    if (store_fault == TARGET_READ_AFTER_SOURCE || store_fault == TARGET_READ_WHEN_OVER)
        (void)GET(at_simt_scene.out[5]);
}

static void stores(enum store_fault wrong, enum at_finding_kind kind, const char *words) {
    store_fault = wrong;
    for (uint64_t seed = 0; seed <= (uint64_t)at_test_effort(20); seed++) {
        at_simt_scene_run(uses_a_store, 1, THREADS, seed);
        at_simt_scene_expect(kind, words, NULL);
        for (int i = 0; i < 2 * THREADS && kind == AT_FINDING_NONE; i++)
            assert_int_equal(at_simt_scene.out[i], i + 7);
    }
}

static void test_rules_of_stores(void **state) {
    (void)state;
    stores(STORE_RIGHT, AT_FINDING_NONE, NULL);
    stores(SOURCE_WRITTEN_AFTER_READ, AT_FINDING_NONE, NULL);
    stores(TARGET_READ_WHEN_OVER, AT_FINDING_NONE, NULL);
    stores(STORE_NOT_FENCED, AT_FINDING_RACE, "without a proxy fence between them");
    stores(STORE_NOT_ORDERED, AT_FINDING_RACE, "byte");
    stores(SOURCE_WRITTEN, AT_FINDING_RACE, "which a bulk store reads that has not been waited for");
    stores(SOURCE_OF_A_LATER_GROUP_WRITTEN, AT_FINDING_RACE, "which a bulk store reads that has not been waited for");
    stores(LEAVES, AT_FINDING_RACE, "leaves the kernel before its bulk store has read its source");
    stores(NOT_COMMITTED, AT_FINDING_RACE, "leaves the kernel before its bulk store has read its source");
    stores(TARGET_READ_AFTER_SOURCE, AT_FINDING_RACE, "to which a bulk store of thread 9");
    stores(TARGET_WRITTEN, AT_FINDING_RACE, "to which a bulk store of thread 9");
    stores(SOURCE_UNWRITTEN, AT_FINDING_UNWRITTEN, "which nobody wrote");
    stores(STORE_MISALIGNED, AT_FINDING_BOUNDS, "both must be multiples");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rules_of_stores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
