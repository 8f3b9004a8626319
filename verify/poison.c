/* Poison in the rows that no request owns.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/poison.h"

#include <math.h>
#include <stdlib.h>

#include "attest/attention.h"
#include "datasets/random.h"

/* 1 for every slot that holds a key of some request. */
static uint8_t *owned_slots(const struct at_problem *p) {
    uint8_t *owned = calloc((size_t)p->sizes.slots + 1, 1);
    for (int64_t r = 0; owned && r < p->sizes.b; r++)
        for (int64_t t = 0, n = at_tensor_i32(&p->tensors[AT_ATTN_SEQ_LENS], r); t < n; t++)
            owned[at_attn_slot(p, r, t)] = 1;
    return owned;
}

static double poison(enum at_tail tail, enum at_poison_turn turn, int is_key, enum at_format format, uint32_t bits) {
    const double sign = bits & 1 ? -1 : 1, spread = 1 + (double)(bits >> 9) * 0x1p-23;
    if (tail == AT_TAIL_FINITE)
        return sign * at_format_info(format)->max / 2;
    return is_key && turn == AT_POISON_JUDGED ? sign * 512 * spread : (double)NAN;
}

int at_has_unowned(const struct at_problem *p) {
    return at_op_tensor_index(p->op, "block_table") >= 0 && p->sizes.page > 0;
}

at_status at_poison_unowned(const struct at_problem *p, enum at_tail tail, enum at_poison_turn turn, uint64_t seed) {
    if (!at_has_unowned(p))
        return AT_OK;
    uint8_t *owned = owned_slots(p);
    if (!owned)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a map of %lld key rows", (long long)p->sizes.slots);
    const int64_t row = p->sizes.hk * p->sizes.d;
    for (int which = AT_ATTN_K; which <= AT_ATTN_V; which++) {
        const struct at_tensor *x = &p->tensors[which];
        const struct at_random random = { seed, at_random_stream("poison", (uint64_t)which) };
        for (int64_t slot = 0; x->data && slot < p->sizes.slots; slot++)
            for (int64_t i = slot * row; !owned[slot] && i < (slot + 1) * row; i++)
                at_store_code(x->format, x->data, (size_t)i,
                              at_encode(x->format, poison(tail, turn, which == AT_ATTN_K, x->format,
                                                          at_random_bits(&random, (uint64_t)i))));
    }
    free(owned);
    return AT_OK;
}
