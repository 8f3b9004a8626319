/* The distributions of an archive, for each kind of export; nothing where there are none.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_EXPORT_DISTRIBUTIONS_H
#define AT_EXPORT_DISTRIBUTIONS_H

#include "notebooks_export/export.h"
#include "notebooks_export/figures.h"
#include "verify/archive/distributions.h"

at_status at_export_distributions_csv(struct at_export *e);
at_status at_figures_distributions(const struct at_export *e, const struct at_figure_sink *sink);

/* Counts [bins] of quantity `what` in layer i, all heads together. one: room for as many. AT_USAGE when a sum does not
 * fit. */
at_status at_export_pooled(const struct at_distributions *d, enum at_dist_what what, int64_t i, uint64_t *counts,
                           uint64_t *one);

#endif
