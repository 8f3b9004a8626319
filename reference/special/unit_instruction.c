/* The table of the unit's instructions. A pair computes what two of them do.
 * SPDX-License-Identifier: Apache-2.0 */
#include "special/unit_instruction.h"

#include <string.h>

#define NARROW(name, function, ftz, format, narrow) \
    { name, AT_SPECIAL_##function, ftz, AT_SPECIAL_##format, narrow }, \
        { name "x2", AT_SPECIAL_##function, ftz, AT_SPECIAL_##format, narrow },
/* clang-format off */
static const struct at_special_instruction table[] = {
#define X(name, title) \
    { #name ".approx.f32", AT_SPECIAL_##name, 0, AT_SPECIAL_F32, NULL }, \
    { #name ".approx.ftz.f32", AT_SPECIAL_##name, 1, AT_SPECIAL_F32, NULL },
    AT_SPECIAL_FLUSHING_LIST(X)
#undef X
    { "tanh.approx.f32", AT_SPECIAL_tanh, 0, AT_SPECIAL_F32, NULL },
    NARROW("ex2.approx.f16",      ex2,  0, F16,  at_special_ex2_f16)
    NARROW("ex2.approx.ftz.bf16", ex2,  1, BF16, at_special_ex2_bf16_ftz)
    NARROW("tanh.approx.f16",     tanh, 0, F16,  at_special_tanh_f16)
    NARROW("tanh.approx.bf16",    tanh, 0, BF16, at_special_tanh_bf16)
};
/* clang-format on */
enum { COUNT = sizeof table / sizeof *table };

int at_special_instruction_count(void) { return COUNT; }

const struct at_special_instruction *at_special_instruction_at(int i) { return &table[i]; }

const struct at_special_instruction *at_special_instruction_find(const char *name) {
    for (int i = 0; i < COUNT; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    return NULL;
}

int64_t at_special_arguments(const struct at_special_instruction *instruction) {
    return (int64_t)1 << (instruction->narrow ? 16 : 32);
}

void at_special_results(const struct at_special_instruction *instruction, int64_t n, const uint32_t *x, uint32_t *y) {
    if (!instruction->narrow) {
        at_special_each(instruction->function, NULL, instruction->ftz, n, x, y);
        return;
    }
    for (int64_t i = 0; i < n; i++)
        y[i] = instruction->narrow((uint16_t)x[i]);
}
