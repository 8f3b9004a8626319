/* Angles of a rotary position embedding, and their cosines and sines: what a table of them is filled by.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Of `rot` channels pair i turns by position * base^(-2 i / rot). Plain double arithmetic (plain_math.h), so that a table
 * has the same bits on every machine, and a GPU that reads it cannot differ from a host in an angle. */
#ifndef AT_ROTARY_H
#define AT_ROTARY_H

#include <stdint.h>

/* base^(-2 pair / rot), at most 1e-14 of it off; base from 1 on, 0 <= 2 pair < rot. */
double at_rotary_frequency(double base, int64_t rot, int64_t pair);

/* cos and sin of 0 <= angle <= 2^26, at most 3e-16 off. */
void at_rotary_cos_sin(double angle, double *cosine, double *sine);

/* Column of a table's row `position`, in double: rot/2 cosines, then rot/2 sines. */
double at_rotary_entry(double base, int64_t rot, int64_t position, int64_t column);

#endif
