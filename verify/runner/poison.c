/* Poison in the rows that no request owns.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/runner/poison.h"

#include <math.h>
#include <stdlib.h>

#include "attest/attention.h"
#include "datasets/fill/pool.h"
#include "datasets/fill/random.h"

/* 1 for every slot that holds a key of some request. */
static uint8_t *owned_slots(const struct at_problem *p) {
    uint8_t *owned = calloc((size_t)p->sizes.slots + 1, 1);
    for (int64_t r = 0; owned && r < p->sizes.b; r++)
        for (int64_t t = 0, n = at_tensor_i32(&p->tensors[AT_ATTN_SEQ_LENS], r); t < n; t++)
            owned[at_attn_slot(p, r, t)] = 1;
    return owned;
}

/* What goes into elements first .. first+n-1 of x: NaN, unless the kernel may count on finite values there. */
static void poison(const struct at_tensor *x, int is_key, enum at_tail tail, enum at_poison_turn turn,
                   const struct at_random *random, int64_t first, int64_t n) {
    enum { SOME = 256 };
    const double half = at_format_info(x->format)->max / 2;
    const int spreads = tail != AT_TAIL_FINITE && is_key && turn == AT_POISON_JUDGED;
    const int is_nan = tail != AT_TAIL_FINITE && !spreads;
    const uint64_t codes[] = { at_encode(x->format, half), at_encode(x->format, -half) };
    uint32_t bits[SOME];
    if (is_nan) {
        at_fill_code(x->format, x->data, (size_t)first, (size_t)n, at_encode(x->format, (double)NAN));
        return;
    }
    for (int64_t done = 0, some; done < n; done += some) {
        some = n - done < SOME ? n - done : SOME;
        at_random_words(random, (uint64_t)(first + done), some, bits);
        for (int64_t i = 0; i < some; i++) {
            const double large = (bits[i] & 1 ? -512 : 512) * (1 + (double)(bits[i] >> 9) * 0x1p-23);
            at_store_code(x->format, x->data, (size_t)(first + done + i),
                          spreads ? at_encode(x->format, large) : codes[bits[i] & 1]);
        }
    }
}

int at_has_unowned(const struct at_problem *p) {
    int64_t keys = 0;
    if (p->op->kind != AT_KIND_ATTENTION)
        return 0;
    for (int64_t r = 0; r < p->sizes.b; r++)
        keys += at_tensor_i32(&p->tensors[AT_ATTN_SEQ_LENS], r);
    return p->sizes.slots > keys;
}

at_status at_poison_unowned(const struct at_problem *p, enum at_tail tail, enum at_poison_turn turn, uint64_t seed) {
    if (!at_has_unowned(p))
        return AT_OK;
    uint8_t *owned = owned_slots(p);
    if (!owned)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a map of %lld key rows", (long long)p->sizes.slots);
    const int64_t row = p->sizes.hk * p->sizes.d;
    struct at_pool_span *spans;
    int64_t n;
    at_status status = AT_OK;
    AT_TRY_OUT(at_pool_spans(p, &spans, &n));
    for (int which = AT_ATTN_K; which <= AT_ATTN_V; which++) {
        const struct at_tensor *x = &p->tensors[which];
        const struct at_random random = { seed, at_random_stream("poison", (uint64_t)which) };
        for (int64_t i = 0; x->data && i < n; i++)
            for (int64_t slot = spans[i].first; slot < spans[i].end; slot++)
                if (!owned[slot])
                    poison(x, which == AT_ATTN_K, tail, turn, &random, slot * row, row);
    }
    free(spans);
out:
    free(owned);
    return status;
}
