/* A study as `attest study` and the readers of archives know it.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_STUDY_LIST_H
#define AT_STUDY_LIST_H

#include "verify/cli/options.h"
#include "verify/commands/content.h"

struct at_study {
    const char *name;                         /* what is typed: attest study NAME */
    int (*run)(const struct at_args *args);   /* gives the exit code */
    const struct at_content *const *contents; /* what its archives hold, NULL at the end; NULL: it writes none */
};

/* Every study; NULL ends the list. verify/study/cmd_study.c, where a new study has its line and its options. */
extern const struct at_study *const at_studies[];

#endif
