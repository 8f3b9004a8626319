/* Bulk copies as kernels/device/tma.h sees them: between global and shared memory, by boxes of a tensor or plain bytes.
 * C and C++.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_SIMT_BULK_H
#define AT_SIMT_SIMT_BULK_H

#include "kernels/simt/simt.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { AT_SIMT_TENSOR_DIMS = 5 };

/* A tensor in global memory and the box that one copy moves; dimension 0 is the innermost. Its rules were checked when
 * it was made. */
struct at_simt_tensor_map {
    uint8_t *base;
    int rank, element_bytes, swizzle;
    int64_t size[AT_SIMT_TENSOR_DIMS], stride[AT_SIMT_TENSOR_DIMS]; /* elements; bytes */
    int box[AT_SIMT_TENSOR_DIMS];
};

/* The box whose first element has these coordinates, to shared memory at `to`; elements outside the tensor are zeros.
 * All bytes of the box count at the mbarrier when it has landed, which is no earlier than somebody's wait needs it. */
void at_simt_tensor_load(void *to, const struct at_simt_tensor_map *map, const int32_t *at, void *mbarrier,
                         struct at_simt_place place);
/* `bytes`, a multiple of 16, from global memory to shared memory. */
void at_simt_bulk_load(void *to, const void *from, int bytes, void *mbarrier, struct at_simt_place place);
/* From shared memory to global memory, in groups of the thread; elements outside the tensor are left out. */
void at_simt_tensor_store(const struct at_simt_tensor_map *map, const int32_t *at, const void *from,
                          struct at_simt_place place);
void at_simt_bulk_store(void *to, const void *from, int bytes, struct at_simt_place place);
void at_simt_bulk_commit(struct at_simt_place place);
/* Waits for all groups but the last `but`: until their sources have been read, or until they are over. */
void at_simt_bulk_wait(int but, int only_read, struct at_simt_place place);

/* Arrives at an mbarrier whose present phase now also waits for `bytes` of bulk copies. */
void at_simt_mbarrier_arrive_expect(void *at, uint32_t bytes, struct at_simt_place place);

#ifdef __cplusplus
}
#endif
#endif
