/* Counter-based uniform, exponential and normal numbers.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/fill/random.h"

#include <math.h>
#include <string.h>

#include <Random123/philox.h>

enum { WORDS = 4 }; /* a Philox block */

static philox4x32_ctr_t block_of(const struct at_random *random, uint64_t block) {
    philox4x32_ctr_t counter = { { (uint32_t)block, (uint32_t)(block >> 32), (uint32_t)random->stream,
                                   (uint32_t)(random->stream >> 32) } };
    philox4x32_key_t key = { { (uint32_t)random->seed, (uint32_t)(random->seed >> 32) } };
    return philox4x32(counter, key);
}

uint64_t at_random_stream(const char *name, uint64_t part) {
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3u;
    return (hash ^ part) * 0x100000001b3u;
}

uint32_t at_random_bits(const struct at_random *random, uint64_t i) { return block_of(random, i / WORDS).v[i % WORDS]; }

void at_random_words(const struct at_random *random, uint64_t first, int64_t n, uint32_t *out) {
    for (int64_t done = 0; done < n;) {
        uint64_t at = first + (uint64_t)done;
        philox4x32_ctr_t words = block_of(random, at / WORDS);
        for (uint64_t w = at % WORDS; w < WORDS && done < n; w++)
            out[done++] = words.v[w];
    }
}

static double unit(uint32_t bits) { return ((double)bits + 0.5) * 0x1p-32; }

double at_random_uniform(const struct at_random *random, uint64_t i) { return unit(at_random_bits(random, i)); }

int64_t at_random_below(const struct at_random *random, uint64_t i, int64_t n) {
    return (int64_t)(((uint64_t)at_random_bits(random, i) * (uint64_t)n) >> 32);
}

double at_random_exponential(const struct at_random *random, uint64_t i) {
    return -at_portable_log(at_random_uniform(random, i));
}

/* x = m 2^e with m in [sqrt(1/2), sqrt(2)); ln m = 2 artanh(t), t = (m-1)/(m+1), |t| <= 0.1716; the series
 * stops at t^17/17, and what is left out is below 2 t^19/19 < 4e-16. */
double at_portable_log(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int64_t exponent = (int64_t)(bits >> 52) - 1023;
    bits = (bits & 0x000fffffffffffffu) | 0x3ff0000000000000u;
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 0x1.6a09e667f3bcdp0) { /* sqrt(2) */
        m *= 0.5;
        exponent++;
    }
    static const double inverse[] = { 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3 };
    double t = (m - 1) / (m + 1), s = t * t, sum = 0;
    for (size_t k = 0; k < sizeof inverse / sizeof *inverse; k++)
        sum = (sum + inverse[k]) * s;
    return (double)exponent * 0x1.62e42fefa39efp-1 + 2 * (t + t * sum); /* ln 2 */
}

/* cos and sin of 2 pi (bits + 1/2) 2^-32. The top two bits are the quadrant, the rest an angle a in
 * (0, pi/2); with c = a - pi/4, |c| < 0.786, the Taylor sums end below 1e-14, and
 * cos a = (cos c - sin c)/sqrt(2), sin a = (cos c + sin c)/sqrt(2). */
static void direction(uint32_t bits, double *x, double *y) {
    double c = (((double)(bits & 0x3fffffffu) + 0.5) * 0x1p-30 - 0.5) * 0x1.921fb54442d18p0; /* pi/2 */
    double s = c * c;
    static const double even[] = { 1.0 / 182, 1.0 / 132, 1.0 / 90, 1.0 / 56, 1.0 / 30, 1.0 / 12, 1.0 / 2 };
    static const double odd[] = { 1.0 / 210, 1.0 / 156, 1.0 / 110, 1.0 / 72, 1.0 / 42, 1.0 / 20, 1.0 / 6 };
    double cosine = 1, sine = 1;
    for (size_t k = 0; k < sizeof even / sizeof *even; k++) {
        cosine = 1 - s * even[k] * cosine;
        sine = 1 - s * odd[k] * sine;
    }
    sine *= c;
    double across = (cosine - sine) * 0x1.6a09e667f3bcdp-1, up = (cosine + sine) * 0x1.6a09e667f3bcdp-1;
    switch (bits >> 30) {
    case 0:
        *x = across, *y = up;
        break;
    case 1:
        *x = -up, *y = across;
        break;
    case 2:
        *x = -across, *y = -up;
        break;
    default:
        *x = up, *y = -across;
        break;
    }
}

/* The four normals of a block: two points, each from a radius word and an angle word. */
static void normal_block(const struct at_random *random, uint64_t block, double *out) {
    philox4x32_ctr_t words = block_of(random, block);
    for (int point = 0; point < 2; point++) {
        double radius = sqrt(-2 * at_portable_log(unit(words.v[2 * point]))), x, y;
        direction(words.v[2 * point + 1], &x, &y);
        out[2 * point] = radius * x;
        out[2 * point + 1] = radius * y;
    }
}

void at_random_normals(const struct at_random *random, uint64_t first, int64_t n, double *out) {
    for (int64_t done = 0; done < n;) {
        double block[WORDS];
        uint64_t at = first + (uint64_t)done;
        if (at % WORDS == 0 && n - done >= WORDS) {
            normal_block(random, at / WORDS, out + done);
            done += WORDS;
            continue;
        }
        normal_block(random, at / WORDS, block);
        for (uint64_t i = at % WORDS; i < WORDS && done < n; i++)
            out[done++] = block[i];
    }
}

void at_random_uniforms(const struct at_random *random, uint64_t first, int64_t n, double *out) {
    uint32_t words[64 * WORDS];
    for (int64_t done = 0, some; done < n; done += some) {
        some = n - done < 64 * WORDS ? n - done : 64 * WORDS;
        at_random_words(random, first + (uint64_t)done, some, words);
        for (int64_t i = 0; i < some; i++)
            out[done + i] = unit(words[i]);
    }
}
