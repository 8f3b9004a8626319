/* The child process of a test program.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_FIND_CHILD_H
#define AT_FIND_CHILD_H

#include <sys/types.h>

/* A process whose parent is this one, ended but not waited for included; 0 when there is none, -1 without /proc. */
pid_t at_find_child(void);

#endif
