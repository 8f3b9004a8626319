/* How much of a sum of rounding errors may be of one sign, when values lie so close together that they err alike.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A value x that is rounded to nearest errs by at most u |x|, and by how much hangs on where in its cell, the numbers that
 * round to the same one, it lies. Weights of a row of nearly equal scores, 0.01 +- 0.00001, all lie at one place of one
 * cell: thousands of errors of one sign, which no law of large numbers makes small. Where that place is nobody knows: a
 * kernel may round the weight before a division by the row's sum, or relative to another maximum. So each error is entered
 * under its place in a cell, and what counts is the largest sum over all shifts of the places together.
 *
 * Cells are taken as equally wide in log2 |x|. They are not: between two powers of two they go from 2u down to u, relative
 * to x. Both widths are kept and the larger sum counts. */
#ifndef AT_ALIKE_H
#define AT_ALIKE_H

enum { AT_ALIKE_WIDTHS = 2, AT_ALIKE_PLACES = 32 };

/* The errors of one unit of roundings by their places: how large they can be, signed by what they move. All 0: empty. */
struct at_alike {
    float error[AT_ALIKE_WIDTHS][AT_ALIKE_PLACES];
};

/* One rounding of a value other than 0 to a format of unit roundoff u, which moves the sum by `moved` where the value is too
 * small by the factor 1 - u (and by -moved where it is too large). */
void at_alike_add(struct at_alike *a, double value, double u, double moved);

/* Adds the errors of another unit, which has the same unknown shift. */
void at_alike_merge(struct at_alike *a, const struct at_alike *more);

/* The largest magnitude that the sum can have. 0 when empty. */
double at_alike_worst(const struct at_alike *a);

#endif
