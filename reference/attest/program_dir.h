/* Where the running program lies: what belongs to it is looked up from there, never from where it was built.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_PROGRAM_DIR_H
#define AT_PROGRAM_DIR_H

#include <stddef.h>

/* The folder of the running program, links resolved, without a slash at its end; "." where the system does not say. The
 * text is the thread's own and the same at every call. */
const char *at_program_dir(void);

/* share/attest of the folder above that one: where an installation has its data, whether it is there or not. */
const char *at_program_share(void);

/* Path of a file or folder that belongs to the program: `name` beside it (a build, a bundle), else in at_program_share() (an
 * installation). 1 where it can be read; 0 where it is in neither place: then `path` is where it would lie in the first. */
int at_program_file(const char *name, char *path, size_t size);

#endif
