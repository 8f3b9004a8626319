/* Calling a plain C function of a shared library, by attest_launch.h.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SO_PLAIN_H
#define AT_SO_PLAIN_H

#include "kernels/runner/so_tvm_ffi.h"

/* v->function on the problem: 0, or what it returned, with the reason that it left in `why`. */
int at_so_call_plain(const struct at_so_variant *v, const struct at_problem *problem, const struct at_so_place *place,
                     char *why, size_t size);
/* v->supports_function on the problem: NULL when the variant takes it or there is no such function, else the reason. */
const char *at_so_ask_plain(const struct at_so_variant *v, const struct at_problem *problem,
                            const struct at_so_place *place);

#endif
