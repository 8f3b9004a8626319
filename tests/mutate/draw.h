/* A sample of mutants: which sites, and what each becomes.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_MUTATE_DRAW_H
#define AT_MUTATE_DRAW_H

#include "tests/mutate/sites.h"

/* Some files with all their sites. */
struct population {
    struct source *sources; /* [n_sources], owned */
    struct site_list *sites;
    int n_sources;
    int64_t n; /* sites of all files together */
};
at_status population_open(const char *const *paths, int n, struct population *population);
void population_release(struct population *population);

struct drawn {
    const struct source *source;
    const struct site *site;
    const char *text; /* what stands there instead */
};
/* Draw number i of a seed, 0 <= i < n: every site once, in an order in which each comes as likely as any other, and one of
 * its texts, each as likely. The same files and seed give the same draws, whatever was drawn before. `order` is made by
 * population_order. */
uint32_t *population_order(const struct population *population,
                           uint64_t seed); /* NULL: no memory; the caller frees it */
struct drawn population_draw(const struct population *population, const uint32_t *order, uint64_t seed, int64_t i);

/* Writes the mutated source. */
at_status drawn_write(const struct drawn *drawn, const char *path);

#endif
