/* Writing a file of notebooks_export/templates.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "notebooks_export/templates.h"

void at_template_put(FILE *f, const char *name) {
    for (int i = 0; at_templates[i].name; i++)
        if (strcmp(at_templates[i].name, name) == 0)
            for (const char *const *line = at_templates[i].lines; *line; line++)
                fprintf(f, "%s\n", *line);
}
