/* Axes of a plot.
 * SPDX-License-Identifier: Apache-2.0 */
#include "notebooks_export/plots/axis.h"

#include <math.h>

/* 1, 2 or 5 times a power of ten, so that `span` has at most about `ticks` of them. */
static double round_step(double span, int ticks) {
    const double least = span / ticks, power = pow(10, floor(log10(least)));
    const double times = least / power;
    return power * (times <= 1 ? 1 : times <= 2 ? 2 : times <= 5 ? 5 : 10);
}

static struct at_axis linear(double least, double most, int ticks) {
    struct at_axis a = { AT_AXIS_LINEAR, 0, 1, 1 };
    if (!(least <= most))
        return a;
    if (least == most) {
        least -= 0.5;
        most += 0.5;
    }
    a.step = round_step(most - least, ticks);
    a.first = a.step * floor(least / a.step + 1e-9);
    a.last = a.step * ceil(most / a.step - 1e-9);
    return a;
}

struct at_axis at_axis_of(enum at_axis_scale scale, double least, double most, int ticks) {
    struct at_axis a = { scale, 0, 1, 1 };
    const double base = scale == AT_AXIS_POWERS_OF_2 ? 2 : 10;
    if (scale == AT_AXIS_LINEAR)
        return linear(least, most, ticks);
    if (scale == AT_AXIS_PERCENT)
        return (struct at_axis){ scale, 0, 4, 1 };
    if (least <= most) {
        a.first = floor(log(least) / log(base) + 1e-9);
        a.last = ceil(log(most) / log(base) - 1e-9);
    }
    if (a.last == a.first)
        a.last++;
    a.step = floor((a.last - a.first + ticks - 1) / ticks);
    return a;
}

int at_axis_takes(enum at_axis_scale scale, double value) {
    const int any = scale == AT_AXIS_LINEAR, none_below = scale == AT_AXIS_PERCENT;
    return isfinite(value) && (any || (none_below ? value >= 0 : value > 0));
}

double at_axis_share(const struct at_axis *axis, double value) {
    switch (axis->scale) {
    case AT_AXIS_PERCENT:
        return value;
    case AT_AXIS_POWERS_OF_2:
        return (log2(value) - axis->first) / (axis->last - axis->first);
    case AT_AXIS_POWERS_OF_10:
        return (log10(value) - axis->first) / (axis->last - axis->first);
    case AT_AXIS_LINEAR:
        break;
    }
    return (value - axis->first) / (axis->last - axis->first);
}

double at_axis_tick(const struct at_axis *axis, double t, char *text, size_t size) {
    switch (axis->scale) {
    case AT_AXIS_PERCENT:
        snprintf(text, size, "%.0f %%", 25 * t);
        break;
    case AT_AXIS_POWERS_OF_2:
        snprintf(text, size, t < 0 ? "2^%.0f" : "%.0f", t < 0 ? t : exp2(t));
        break;
    case AT_AXIS_POWERS_OF_10:
        snprintf(text, size, "1e%.0f", t);
        break;
    case AT_AXIS_LINEAR:
        snprintf(text, size, "%.6g", fabs(t) < 1e-9 * axis->step ? 0 : t);
        break;
    }
    return (t - axis->first) / (axis->last - axis->first);
}
