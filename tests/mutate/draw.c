/* Draws mutants: a shuffle of all sites, by a seed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/mutate/draw.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/splitmix.h"

at_status population_open(const char *const *paths, int n, struct population *p) {
    memset(p, 0, sizeof *p);
    p->sources = calloc((size_t)n + 1, sizeof *p->sources);
    p->sites = calloc((size_t)n + 1, sizeof *p->sites);
    if (!p->sources || !p->sites)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %d files", n);
    for (; p->n_sources < n; p->n_sources++) {
        AT_TRY(source_open(paths[p->n_sources], &p->sources[p->n_sources]));
        AT_TRY(sites_find(&p->sources[p->n_sources], &p->sites[p->n_sources]));
        p->n += p->sites[p->n_sources].n;
    }
    return AT_OK;
}

void population_release(struct population *p) {
    for (int i = 0; p->sources && p->sites && i <= p->n_sources; i++) {
        sites_release(&p->sites[i]);
        source_release(&p->sources[i]);
    }
    free(p->sources);
    free(p->sites);
    memset(p, 0, sizeof *p);
}

uint32_t *population_order(const struct population *p, uint64_t seed) {
    struct splitmix random = { seed };
    uint32_t *order = malloc(((size_t)p->n + 1) * sizeof *order);
    for (int64_t i = 0; order && i < p->n; i++) {
        const int64_t j = (int64_t)(splitmix_next(&random) % (uint64_t)(i + 1));
        order[i] = order[j];
        order[j] = (uint32_t)i;
    }
    return order;
}

struct drawn population_draw(const struct population *p, const uint32_t *order, uint64_t seed, int64_t i) {
    struct splitmix random = { seed + order[i] };
    int file = 0;
    int64_t k = order[i];
    while (k >= p->sites[file].n)
        k -= p->sites[file++].n;
    const struct site *site = &p->sites[file].items[k];
    splitmix_next(&random);
    return (struct drawn){ &p->sources[file], site, site->texts[splitmix_next(&random) % (uint64_t)site->n] };
}

at_status drawn_write(const struct drawn *drawn, const char *path) {
    const struct source *s = drawn->source;
    FILE *file = fopen(path, "wb");
    if (!file)
        return AT_FAIL(AT_IO, "cannot write %s", path);
    fwrite(s->text, 1, drawn->site->begin, file);
    fputs(drawn->text, file);
    fwrite(s->text + drawn->site->end, 1, s->size - drawn->site->end, file);
    const int bad = ferror(file);
    return fclose(file) == 0 && !bad ? AT_OK : AT_FAIL(AT_IO, "cannot write %s", path);
}
