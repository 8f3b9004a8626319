/* mutate: token-level mutants of kernels, for make/mutate.sh.
 * SPDX-License-Identifier: Apache-2.0
 *
 *   mutate sites FILE...                      every site: FILE:LINE, kind, what stands there, what can stand instead
 *   mutate draw SEED FOLDER FILE...           of each number on stdin, from 1 on, the draw: number, file, line, bytes from the
 *                                             file's beginning, kind, old, new; the mutated source as FOLDER/NUMBER
 *   mutate survivors FOLDER                                 what was not killed and can go into further variants
 *   mutate score FOLDER EQUIVALENT.txt COMMAND MIN          survivors and score of what was judged (tests/mutate/score.h)
 * Lines of fields with tabs between; a text that has several lines is written on one. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/mutate/draw.h"
#include "tests/mutate/score.h"

/* White space as one space, so that a text is one field. */
static void put_field(const char *text, size_t n) {
    int space = 0;
    putchar('\t');
    for (size_t i = 0; i < n; i++) {
        if (strchr(" \t\n", text[i])) {
            space = 1;
            continue;
        }
        if (space)
            putchar(' ');
        space = 0;
        putchar(text[i]);
    }
}

static void put_site(const struct source *s, const struct site *site) {
    printf("%s\t%d\t%zu\t%s", s->path, site->line, site->begin, site_kind_name(site->kind));
    put_field(s->text + site->begin, site->end - site->begin);
}

static at_status list_sites(const struct population *p) {
    for (int f = 0; f < p->n_sources; f++)
        for (int i = 0; i < p->sites[f].n; i++) {
            const struct site *site = &p->sites[f].items[i];
            put_site(&p->sources[f], site);
            for (int t = 0; t < site->n; t++)
                put_field(site->texts[t], strlen(site->texts[t]));
            putchar('\n');
        }
    return AT_OK;
}

static at_status draw(const struct population *p, char **args) {
    const uint64_t seed = strtoull(args[0], NULL, 10);
    char line[64];
    uint32_t *order = population_order(p, seed);
    at_status status = AT_OK;
    if (!order)
        return AT_FAIL(AT_NO_MEMORY, "no memory for an order");
    while (fgets(line, sizeof line, stdin)) {
        char path[4096];
        const int64_t number = strtoll(line, NULL, 10);
        if (number < 1 || number > p->n)
            AT_FAIL_OUT(AT_USAGE, "there is no draw '%.*s' of %lld places", (int)strcspn(line, "\n"), line,
                        (long long)p->n);
        const struct drawn drawn = population_draw(p, order, seed, number - 1);
        snprintf(path, sizeof path, "%s/%lld", args[1], (long long)number);
        AT_TRY_OUT(drawn_write(&drawn, path));
        printf("%lld\t", (long long)number);
        put_site(drawn.source, drawn.site);
        put_field(drawn.text, strlen(drawn.text));
        putchar('\n');
    }
out:
    free(order);
    return status;
}

static int usage(void) {
    fprintf(stderr, "usage: mutate sites FILE... | mutate draw SEED FOLDER FILE... | mutate survivors FOLDER | "
                    "mutate score FOLDER EQUIVALENT COMMAND MIN\n");
    return 2;
}

int main(int argc, char **argv) {
    const char *what = argc > 2 ? argv[1] : "";
    struct population p = { 0 };
    int bad = 0;
    at_status status = AT_OK;
    if (strcmp(what, "survivors") == 0 && argc == 3) {
        status = survivors_print(argv[2]);
    } else if (strcmp(what, "score") == 0 && argc == 6) {
        status = score_print(argv[2], argv[3], argv[4], strtod(argv[5], NULL), &bad);
    } else if (strcmp(what, "sites") == 0) {
        status = population_open((const char *const *)argv + 2, argc - 2, &p);
        if (status == AT_OK)
            status = list_sites(&p);
    } else if (strcmp(what, "draw") == 0 && argc > 4) {
        status = population_open((const char *const *)argv + 4, argc - 4, &p);
        if (status == AT_OK)
            status = draw(&p, argv + 2);
    } else {
        return usage();
    }
    population_release(&p);
    if (status != AT_OK)
        fprintf(stderr, "mutate: %s\n", at_error_message());
    return status != AT_OK ? at_status_exit_code(status) : bad != 0;
}
