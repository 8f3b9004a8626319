/* The kernel of the persistent prefill variants, its launch and what it declines.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ATTENTION_PREFILL_PERSISTENT_H
#define AT_ATTENTION_PREFILL_PERSISTENT_H

#include "kernels/attention/prefill_consume.h"
#include "kernels/attention/prefill_redo.h"
#include "kernels/attention/tma_launch.h"
#include "kernels/device/instances.h"

template <class Kind>
__global__ void __launch_bounds__(AT_PREFILL_THREADS, 1)
    at_prefill(typename Kind::view a, const __grid_constant__ at_prefill_maps maps, at_prefill_layout layout,
               at_prefill_work work) {
    using room_of = at_prefill_room<Kind>;
    AT_SHARED_TILES(room_of, memory);
    room_of &room = *memory;
    /* From a lane of its own: the compiler then knows that it is the same for a warp. */
    const int warp = at_shuffle(0xffffffffu, (int)threadIdx.x / 32, 0), group = warp / AT_PREFILL_GROUP_WARPS - 1;
    at_prefill_keys<Kind> keys(a, maps, layout, room);
    at_prefill_queries<Kind> queries(a, maps, room);
    bool more = false;
    if (threadIdx.x == 96) {
        at_tensor_prefetch(maps.q);
        at_tensor_prefetch(maps.k);
        at_tensor_prefetch(maps.v);
        at_tensor_prefetch(maps.o);
        at_prefill_ask(a, work);
    }
    at_dependency_trigger();
    const bool loads = warp == 0 || warp == 2;
    if (loads) /* it looks for its first item while the others prepare shared memory */
        at_dependency_wait();
    if (warp == 0)
        more = keys.find(work);
    if (warp == 2)
        more = queries.find(work);
    room.begin();
    if (!loads)
        at_dependency_wait();
    if (group < 0) {
        at_registers_give<40>();
        if (warp == 0)
            keys.run(work, more);
        else if (warp == 1)
            at_prefill_store<Kind>(a, maps, room);
        else if (warp == 2)
            queries.run(work, more);
        at_barrier_arrive(AT_PREFILL_STORED, AT_PREFILL_THREADS);
        return;
    }
    at_registers_take<232>();
    bool nan;
    {
        at_prefill_consumer<Kind> consumer(a, room, group, warp % AT_PREFILL_GROUP_WARPS);
        consumer.run();
        nan = consumer.nan;
    }
    at_barrier(AT_PREFILL_STORED, AT_PREFILL_THREADS);
    if (at_ballot(0xffffffffu, nan))
        at_prefill_redo<Kind>(a, work, reinterpret_cast<float(*)[32][4]>(room.stages));
}

/* 64 tokens of one head of q or o. */
template <class T> at_tensor_box at_prefill_box_of_queries(const T *base, const struct at_sizes *z) {
    const int64_t row = z->h * z->d * (int64_t)sizeof(T), parts = z->d / AT_PREFILL_CHANNELS;
    return { .base = base,
             .rank = 3,
             .element_bytes = (int)sizeof(T),
             .size = { AT_PREFILL_CHANNELS, z->tokens, z->h * parts },
             .stride = { 0, row, AT_PREFILL_ROW },
             .box = { AT_PREFILL_CHANNELS, AT_PREFILL_QUERIES, (int)parts },
             .swizzle = AT_PREFILL_ROW };
}
/* A group of 8 BJ keys of one head of k or v: e has a third place for groups that begin in an odd row. */
template <class Order, class T>
at_tensor_box at_prefill_box_of_keys(const T *base, const struct at_sizes *z, int64_t slots) {
    const int64_t row = z->hk * z->d * (int64_t)sizeof(T), parts = z->d / AT_PREFILL_CHANNELS;
    return { .base = base,
             .rank = 5,
             .element_bytes = (int)sizeof(T),
             .size = { AT_PREFILL_CHANNELS, 3, Order::Q, z->hk * parts, (slots + Order::AFTER_J - 1) / Order::AFTER_J },
             .stride = { 0, row, Order::AFTER_Q * row, AT_PREFILL_ROW, Order::AFTER_J * row },
             .box = { AT_PREFILL_CHANNELS, 2, 4, (int)parts, Order::BJ },
             .swizzle = AT_PREFILL_ROW };
}

template <class Kind> int at_prefill_launch_of(const struct at_launch *launch) {
    using T = typename Kind::T;
    using order = typename Kind::order;
    const struct at_sizes *z = &launch->problem->sizes;
    const auto a = Kind::view::of(launch->problem);
    const at_prefill_work work = at_prefill_work::of(z);
    const int64_t slots = z->slots > 0 ? z->slots : 1; /* without any, nothing is copied but zeros */
    const T *k = z->slots > 0 ? a.k : a.q, *v = z->slots > 0 ? a.v : a.q;
    const int rows = z->page % 2 ? 1 : 2;
    at_prefill_maps maps{};
    const at_tensor_box boxes[6] = {
        at_prefill_box_of_queries<T>(a.q, z),       at_prefill_box_of_queries<T>(a.o, z),
        at_prefill_box_of_keys<order>(k, z, slots), at_prefill_box_of_keys<order>(v, z, slots),
        at_tma_rows(k, z->d, z->hk, slots, rows),   at_tma_rows(v, z->d, z->hk, slots, rows)
    };
    at_tensor_map *const to[6] = { &maps.q, &maps.o, &maps.k, &maps.v, &maps.k_rows, &maps.v_rows };
    if (work.items == 0)
        return 0;
    for (int i = 0; i < 6; i++)
        if (const int code = at_tensor_map_encode(to[i], &boxes[i]))
            return code;
    const unsigned most = at_multiprocessors(), blocks = work.items < most ? work.items : most;
    return at_launch_dependent(at_prefill<Kind>, dim3{ blocks, 1, 1 }, dim3{ AT_PREFILL_THREADS, 1, 1 }, 1,
                               (int64_t)sizeof(at_prefill_room<Kind>), launch->stream, a, maps,
                               at_prefill_layout{ (int)slots, rows, z->page % 16 == 0 }, work);
}
/* Kind<T, D, BJ>: a kind of prefill_items.h for a head size and groups of 8 BJ keys. */
template <template <class, int, int> class Kind, class T> int at_prefill_launch(const struct at_launch *launch) {
    const struct at_sizes *z = &launch->problem->sizes;
    const bool wide = z->page % AT_PREFILL_HALF == 0; /* contiguous keys are one page of 0 */
    if constexpr (AT_ALL_INSTANCES)
        if (z->d == 128)
            return wide ? at_prefill_launch_of<Kind<T, 128, 8>>(launch) : at_prefill_launch_of<Kind<T, 128, 2>>(launch);
    return wide ? at_prefill_launch_of<Kind<T, 64, 8>>(launch) : at_prefill_launch_of<Kind<T, 64, 2>>(launch);
}

static inline const char *at_prefill_declines(const struct at_problem *problem) {
    /* not reached: more work than an H200 does in hours */
    if (problem->sizes.h * problem->sizes.b * (problem->sizes.max_sq / AT_PREFILL_QUERIES + 1) >= 1 << 22)
        return "more items than are counted";
    if (!AT_ALL_INSTANCES && problem->sizes.d != 64)
        return AT_LEFT_OUT;
    return at_tma_declines(problem);
}

#endif
