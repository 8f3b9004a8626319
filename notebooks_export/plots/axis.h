/* Axes of a plot: their ends, their ticks, and where a value lies.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_AXIS_H
#define AT_AXIS_H

#include <stddef.h>

#include "notebooks_export/plots/plots.h"

/* Ticks at first, first + step, ..., last: exponents on a log axis, quarters on one of percent. */
struct at_axis {
    enum at_axis_scale scale;
    double first, last, step;
};

/* An axis over values from least to most (least > most: over none) with about `ticks` ticks. */
struct at_axis at_axis_of(enum at_axis_scale scale, double least, double most, int ticks);
/* Whether a value has a place on an axis of this scale. */
int at_axis_takes(enum at_axis_scale scale, double value);
/* 0 at the beginning of the axis, 1 at its end. */
double at_axis_share(const struct at_axis *axis, double value);
/* The share of tick t, and its text. */
double at_axis_tick(const struct at_axis *axis, double t, char *text, size_t size);

#endif
