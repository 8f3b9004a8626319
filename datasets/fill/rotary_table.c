/* Tables of rotary positions, row by row.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/fill/rotary_table.h"

#include "attest/rotary.h"

void at_rotary_rows(const struct at_tensor *table, double base, int64_t begin, int64_t end) {
    const int64_t rot = table->shape[1], pairs = rot / 2;
    for (int64_t pair = 0; pair < pairs; pair++) {
        const double frequency = at_rotary_frequency(base, rot, pair);
        for (int64_t position = begin; position < end; position++) {
            double cosine, sine;
            at_rotary_cos_sin((double)position * frequency, &cosine, &sine);
            at_store(table->format, table->data, (size_t)(position * rot + pair), cosine);
            at_store(table->format, table->data, (size_t)(position * rot + pairs + pair), sine);
        }
    }
}

void at_rotary_quarters(const struct at_tensor *table, const struct at_random *random, int64_t begin, int64_t end) {
    const int64_t rot = table->shape[1];
    for (int64_t i = begin * rot; i < end * rot; i++) {
        const int quarters = (int)at_random_below(random, (uint64_t)i, 8);
        at_store(table->format, table->data, (size_t)i, 0.25 * (quarters < 4 ? quarters - 4 : quarters - 3));
    }
}
