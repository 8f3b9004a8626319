/* Dependent launches as kernels/device/dependent.h sees them. C and C++.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SIMT_SIMT_DEPENDENT_H
#define AT_SIMT_SIMT_DEPENDENT_H

#include "kernels/simt/simt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The next launch is a dependent one: whatever it launches, and also where it fails. */
void at_simt_next_is_dependent(void);
/* The running thread waits for the launches before its own, which have ended. */
void at_simt_dependency_wait(struct at_simt_place place);

#ifdef __cplusplus
}
#endif
#endif
