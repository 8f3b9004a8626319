/* A design as a case file: its lines, what of the domain is impossible, and a file's lines as cases that are had.
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "datasets/language/case_keys.h"
#include "verify/design/design.h"

/* ---- out ---- */

void at_design_print(const struct at_design *design, FILE *out) {
    const int seeded = at_key_index(design->domain.op, "seed") >= 0;
    for (int64_t i = 0; i < design->n_rows; i++) {
        fputs(design->rows[i].line, out);
        if (seeded)
            fprintf(out, " seed=%lld", (long long)design->n_loaded + i + 1);
        fputc('\n', out);
    }
}

/* "05_streaming: d=1,5,31,100; dtype=f32" */
static void print_refusals(const struct at_design *design, int v, FILE *out) {
    const char *mark = ": ";
    int n = 0;
    for (int f = 0; f < design->domain.n; f++)
        for (int c = 0; c < design->domain.factors[f].n + design->domain.factors[f].n_far; c++) {
            if (design->takes[f][c] >> v & 1)
                continue;
            if (n++ == 0)
                fprintf(out, "#   %s", at_runner_variant(design->runner, design->variants[v])->name);
            fprintf(out, "%s%s", mark,
                    *design->domain.factors[f].classes[c] ? design->domain.factors[f].classes[c] : "(none)");
            mark = "; ";
        }
    if (n)
        fputc('\n', out);
}

static int refused_pairs(const struct at_design *design) {
    const struct at_family_factor *factors = design->domain.factors;
    int n = 0;
    for (int f = 0; f < design->domain.n; f++)
        for (int g = 0; g < f; g++)
            for (int c = 0; c < factors[f].n; c++)
                for (int d = 0; d < factors[g].n; d++)
                    n += !(design->speaks[f][c][g] >> d & 1);
    return n;
}

void at_design_print_impossible(const struct at_design *design, FILE *out) {
    static const char *const tuples[] = { "", "class", "pair", "triple" };
    int64_t all, had, impossible;
    at_cover_counts(design, &all, &had, &impossible);
    fprintf(out,
            "# %s: %lld cases; of %lld (variant, %s)s %lld are had, %lld are impossible. The case language refuses %d "
            "pairs of classes.\n",
            design->domain.family->name, (long long)design->n_loaded + design->n_rows, (long long)all,
            tuples[design->strength], (long long)had, (long long)impossible, refused_pairs(design));
    for (int v = 0; v < design->n_variants; v++)
        if (!(design->has_base >> v & 1))
            fprintf(out, "#   %s takes no case\n", at_runner_variant(design->runner, design->variants[v])->name);
        else
            print_refusals(design, v, out);
}

/* ---- in ---- */

struct loaded {
    struct at_design *design;
    uint64_t takes;
    int matched;
};

/* Factors k and on of a combination; `tuple`: of the classes before. */
static void count_tuples(struct at_design *design, const struct at_design_combination *c, const uint32_t *has, int k,
                         int64_t tuple, uint64_t takes) {
    if (k == design->strength) {
        design->covered[c->first + tuple] |= takes;
        return;
    }
    const int f = c->factors[k], n = design->domain.factors[f].n;
    for (int class = 0; class < n; class ++)
        if (has[f] >> class & 1)
            count_tuples(design, c, has, k + 1, tuple * n + class, takes);
}

/* Every tuple of classes that the line has. */
static at_status count_match(void *context, const uint32_t *has) {
    struct loaded *line = context;
    struct at_design *design = line->design;
    line->matched = 1;
    for (int64_t i = 0; i < design->n_combinations; i++)
        count_tuples(design, &design->combinations[i], has, 0, 0, line->takes);
    for (int f = 0; f < design->domain.n; f++)
        for (int c = 0; c < AT_DOMAIN_CLASSES; c++)
            if (has[f] >> c & 1) {
                design->far_done[f][c] |= line->takes;
                design->takes[f][c] |= line->takes;
            }
    return AT_OK;
}

static at_status load_line(struct at_design *design, const char *text, FILE *kept) {
    struct at_design_row row = { 0 };
    struct loaded line = { .design = design };
    const size_t length = strcspn(text, "#\n"), name = strlen(design->domain.family->name);
    if (length >= sizeof row.line || strncmp(text, design->domain.family->name, name) != 0 || text[name] != ' ')
        return AT_OK;
    memcpy(row.line, text, length);
    AT_TRY(at_design_ask_line(design, &row));
    line.takes = row.takes;
    AT_TRY(at_domain_match(&design->domain, row.line, count_match, &line));
    design->n_loaded += line.matched;
    if (kept && line.matched)
        fprintf(kept, "%s\n", row.line);
    return AT_OK;
}

at_status at_design_load(struct at_design *design, const char *path, FILE *kept) {
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t size = 0;
    at_status status = AT_OK;
    if (!file)
        return AT_FAIL(errno == ENOENT ? AT_NOT_FOUND : AT_IO, "%s: %s", path, strerror(errno));
    while (status == AT_OK && getline(&text, &size, file) >= 0)
        status = load_line(design, text, kept);
    if (status == AT_OK && ferror(file))
        status = AT_FAIL(AT_IO, "%s: %s", path, strerror(errno));
    free(text);
    fclose(file);
    return status;
}

at_status at_design_stated(const struct at_design *design, const char *path, int64_t *cases, int64_t *had) {
    const char *name = design->domain.family->name;
    FILE *file = fopen(path, "r");
    char *text = NULL;
    size_t size = 0;
    int found = 0;
    if (!file)
        return AT_FAIL(errno == ENOENT ? AT_NOT_FOUND : AT_IO, "%s: %s", path, strerror(errno));
    while (!found && getline(&text, &size, file) >= 0) {
        long long n, m;
        if (strncmp(text, "# ", 2) != 0 || strncmp(text + 2, name, strlen(name)) != 0 || text[2 + strlen(name)] != ':')
            continue;
        found = sscanf(text + 2 + strlen(name), ": %lld cases; of %*d (variant, %*[a-z])s %lld are had", &n, &m) == 2;
        *cases = found ? n : 0;
        *had = found ? m : 0;
    }
    free(text);
    fclose(file);
    return found ? AT_OK : AT_FAIL(AT_NOT_FOUND, "%s does not say what it has of %s", path, name);
}
