/* The files of notebooks_export/templates, which the build makes part of the program.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_TEMPLATES_H
#define AT_TEMPLATES_H

#include <stdio.h>

/* lines: without their line ends; the last is NULL. */
struct at_template {
    const char *name; /* "reader.py" */
    const char *const *lines;
};

/* By name; the last has a NULL name. */
extern const struct at_template at_templates[];

/* The lines of the file of that name. */
void at_template_put(FILE *f, const char *name);

#endif
