/* Contents of tensors that are only moved, as codes: a value in double would lose the payload of a NaN.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>

#include "attest/format.h"
#include "datasets/fill/families.h"

/* Among codes drawn at random a zero is rare, and so is a NaN in f32: a quarter have the largest exponent, an eighth no
 * bit but the sign. */
static uint64_t any_code(enum at_format format, uint32_t bits, uint32_t kind) {
    const struct at_format_info *f = at_format_info(format);
    const int width = 8 * (int)f->bytes;
    const uint64_t all = width < 64 ? ((uint64_t)1 << width) - 1 : UINT64_MAX, sign = (uint64_t)1 << (width - 1);
    const uint64_t largest = at_encode(format, (double)INFINITY) & ~sign, code = bits & all;
    switch (kind % 8) {
    case 0:
    case 1:
        return code | largest;
    case 2:
        return code & sign;
    default:
        return code;
    }
}

AT_FAMILY_CODES(at_codes_any_bits) {
    const struct at_random random = { data->seed, stream };
    for (int64_t i = 0; i < n; i++) {
        const uint64_t at = 2 * (uint64_t)(first + i);
        at_store_code(format, codes, (size_t)i,
                      any_code(format, at_random_bits(&random, at), at_random_bits(&random, at + 1)));
    }
}
