/* Random numbers by counting: value i is a function of (seed, stream, i) and of nothing else, so the same
 * bits come out on any thread count, in any order, on any machine.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Bits: Philox4x32-10 of Random123 (key = seed, counter = block number and stream). Everything above the
 * bits uses +, -, *, / and sqrt of IEEE 754 doubles only: log, sin and cos are written out here, because a
 * libm's differ from machine to machine in the last place and a stored input must not. */
#ifndef AT_RANDOM_H
#define AT_RANDOM_H

#include <stdint.h>

/* One sequence of values. Sequences with different seeds or streams are independent. */
struct at_random {
    uint64_t seed, stream;
};

/* A stream number from a name and a part, so that "q" and "k" never share values. */
uint64_t at_random_stream(const char *name, uint64_t part);

/* Word i of the sequence: 32 uniform bits. */
uint32_t at_random_bits(const struct at_random *random, uint64_t i);
/* Words first .. first+n-1: four for the work of one. */
void at_random_words(const struct at_random *random, uint64_t first, int64_t n, uint32_t *out);
/* (bits + 1/2) 2^-32: in (0, 1), never an end, symmetric about 1/2. */
double at_random_uniform(const struct at_random *random, uint64_t i);
/* Uniform in 0 .. n-1, 1 <= n <= 2^32; off from uniform by less than n 2^-32. */
int64_t at_random_below(const struct at_random *random, uint64_t i, int64_t n);
/* -ln(uniform): exponential with mean 1. */
double at_random_exponential(const struct at_random *random, uint64_t i);
/* Values first .. first+n-1 of the standard normal sequence, by Box and Muller: values 2j and 2j+1 are the
 * two coordinates of one point. |value| <= 6.77, the largest that 32 bits of radius reach. */
void at_random_normals(const struct at_random *random, uint64_t first, int64_t n, double *out);
void at_random_uniforms(const struct at_random *random, uint64_t first, int64_t n, double *out);

/* Natural logarithm of a normal double x > 0, the same bits everywhere; relative error below 1e-14 away
 * from x = 1, absolute error below 1e-15 near it. */
double at_portable_log(double x);

#endif
