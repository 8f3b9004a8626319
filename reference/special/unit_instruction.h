/* The unit's instructions by their names in PTX: a function, with ftz or without, of one format, alone or in pairs.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_UNIT_INSTRUCTION_H
#define AT_UNIT_INSTRUCTION_H

#include "special/special.h"

#ifdef __cplusplus
extern "C" {
#endif

enum at_special_format { AT_SPECIAL_F32, AT_SPECIAL_F16, AT_SPECIAL_BF16 };

struct at_special_instruction {
    const char *name; /* "ex2.approx.ftz.f32" */
    enum at_special_function function;
    int ftz;
    enum at_special_format format;
    uint16_t (*narrow)(uint16_t x); /* NULL: f32 */
};

int at_special_instruction_count(void);
const struct at_special_instruction *at_special_instruction_at(int i);
/* NULL if there is none of that name. */
const struct at_special_instruction *at_special_instruction_find(const char *name);
/* How many arguments it has: 2^32 or 2^16. */
int64_t at_special_arguments(const struct at_special_instruction *instruction);
/* Results of n codes x of its format. x and y may be the same. */
void at_special_results(const struct at_special_instruction *instruction, int64_t n, const uint32_t *x, uint32_t *y);

#ifdef __cplusplus
}
#endif
#endif
