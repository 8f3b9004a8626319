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

#endif
