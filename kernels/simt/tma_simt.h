/* kernels/device/tma.h for the SIMT machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_TMA_SIMT_H
#define AT_TMA_SIMT_H

#include "kernels/simt/simt_bulk.h"

#define __grid_constant__

struct at_tensor_map {
    at_simt_tensor_map m;
};

static inline int at_tensor_map_encode(at_tensor_map *map, const at_tensor_box *t) {
    at_simt_tensor_map &m = map->m;
    m = {};
    if (at_tensor_box_wrong(t))
        return 1; /* cudaErrorInvalidValue */
    if (const int failure = at_simt_host_call())
        return failure;
    m.base = static_cast<uint8_t *>(const_cast<void *>(t->base));
    m.rank = t->rank;
    m.element_bytes = t->element_bytes;
    m.swizzle = t->swizzle;
    for (int i = 0; i < t->rank; i++) {
        m.size[i] = t->size[i];
        m.stride[i] = i ? t->stride[i] : t->element_bytes;
        m.box[i] = t->box[i];
    }
    return 0;
}

#define AT_SHARED_TILES(TYPE, name) AT_SHARED_DYNAMIC(TYPE, name)

static inline void at_mbarrier_arrive_expect(at_mbarrier *b, uint32_t bytes, AT_PLACE) {
    at_simt_mbarrier_arrive_expect(b, bytes, { file, line });
}

/* Coordinates in an array: one name for every number of dimensions. */
template <int N>
static inline void at_tensor_load(void *to, const at_tensor_map &map, const int (&at)[N], at_mbarrier *b, AT_PLACE) {
    static_assert(N >= 1 && N <= 5, "tensors of 1 to 5 dimensions");
    at_simt_tensor_load(to, &map.m, at, b, { file, line });
}
template <int N>
static inline void at_tensor_store(const at_tensor_map &map, const int (&at)[N], const void *from, AT_PLACE) {
    static_assert(N >= 1 && N <= 5, "tensors of 1 to 5 dimensions");
    at_simt_tensor_store(&map.m, at, from, { file, line });
}
static inline void at_tensor_prefetch(const at_tensor_map &) {}
static inline void at_bulk_load(void *to, const void *from, int bytes, at_mbarrier *b, AT_PLACE) {
    at_simt_bulk_load(to, from, bytes, b, { file, line });
}
static inline void at_bulk_store(void *to, const void *from, int bytes, AT_PLACE) {
    at_simt_bulk_store(to, from, bytes, { file, line });
}
static inline void at_bulk_commit(AT_PLACE) { at_simt_bulk_commit({ file, line }); }
template <int N> void at_bulk_wait_read(AT_PLACE) { at_simt_bulk_wait(N, 1, { file, line }); }
template <int N> void at_bulk_wait(AT_PLACE) { at_simt_bulk_wait(N, 0, { file, line }); }

#endif
