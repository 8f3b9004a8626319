/* Which of several kernels a launch took, said by the variant that chooses.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A dispatcher calls at_took_way() where it decides, so that what is counted is what was launched. C and CUDA C++20 both read
 * this file. */
#ifndef AT_WAY_H
#define AT_WAY_H

#ifdef __cplusplus
extern "C" {
#endif

enum { AT_WAY_SIZE = 32 };

/* At most 31 printable characters without a space; static text. Of several in one launch the last one counts. */
void at_took_way(const char *name);
/* What this thread's launches said since at_way_forget(); "": nothing. */
const char *at_way_taken(void);
void at_way_forget(void);

#ifdef __cplusplus
}
#endif

#endif
