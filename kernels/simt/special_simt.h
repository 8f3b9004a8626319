/* kernels/device/special.h for the SIMT machine.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SPECIAL_SIMT_H
#define AT_SPECIAL_SIMT_H

#include <string.h>

#include "special/special.h"

#define AT_SPECIAL_INSTRUCTION(NAME, FUNCTION, FTZ) \
    static inline float NAME(float x) { \
        uint32_t code; \
        memcpy(&code, &x, sizeof code); \
        code = FUNCTION(code, FTZ); \
        memcpy(&x, &code, sizeof x); \
        return x; \
    }
#define X(name, title) \
    AT_SPECIAL_INSTRUCTION(at_##name##_approx, at_special_##name, 0) \
    AT_SPECIAL_INSTRUCTION(at_##name##_approx_ftz, at_special_##name, 1)
AT_SPECIAL_LIST(X)
#undef X
#undef AT_SPECIAL_INSTRUCTION

#define AT_SPECIAL_NARROW(NAME, FUNCTION) \
    static inline uint16_t NAME(uint16_t x) { return FUNCTION(x); } \
    static inline uint32_t NAME##x2(uint32_t x) { \
        return (uint32_t)FUNCTION((uint16_t)x) | (uint32_t)FUNCTION((uint16_t)(x >> 16)) << 16; \
    }
AT_SPECIAL_NARROW(at_ex2_approx_f16, at_special_ex2_f16)
AT_SPECIAL_NARROW(at_ex2_approx_ftz_bf16, at_special_ex2_bf16_ftz)
AT_SPECIAL_NARROW(at_tanh_approx_f16, at_special_tanh_f16)
AT_SPECIAL_NARROW(at_tanh_approx_bf16, at_special_tanh_bf16)
#undef AT_SPECIAL_NARROW

#endif
