/* Stub until distributions exist.
 * SPDX-License-Identifier: Apache-2.0 */
#include "notebooks_export/export_distributions.h"

at_status at_export_distributions_csv(struct at_export *e) { return e ? AT_OK : AT_BUG; }
at_status at_figures_distributions(const struct at_export *e, const struct at_figure_sink *sink) {
    return e && sink ? AT_OK : AT_BUG;
}
#include "notebooks_export/html.h"
at_status at_html_distributions(const struct at_export *e, FILE *f) { return e && f ? AT_OK : AT_BUG; }
