/* Counts what the judge said of each mutant.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/mutate/score.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/mutate/equivalent.h"
#include "tests/mutate/sites.h"
#include "verify/result/record.h"

/* A mutant in one variant: a line of `mutants`, and what became of it. */
struct mutant {
    char *line; /* owned, cut into fields */
    const char *number, *file, *at, *kind, *old, *new, *fate, *patch, *left;
    int64_t site;
    char name[192], of[192];  /* family/mNNNN_variant, family/variant */
    int64_t judged, declined; /* results */
    enum at_state state;      /* of its first failing result, in the order of the plan; with killed */
    int killed, variants;     /* more than the first that it was put into */
    char by[1100];            /* role:case of that result */
};

struct sample {
    struct mutant *items;
    int n;
};

static int is(const char *a, const char *b) { return strcmp(a, b) == 0; }

/* build/mutate/1/gemm/m0017_01_x.patch: gemm/m0017_01_x of gemm/01_x. */
static void name_of(struct mutant *m) {
    const char *slash = strrchr(m->patch, '/'), *family = slash;
    if (!slash)
        return;
    while (family > m->patch && family[-1] != '/')
        family--;
    const int length = (int)(slash - family);
    const char *base = slash + 1, *under = strchr(base, '_');
    snprintf(m->name, sizeof m->name, "%.*s/%.*s", length, family, (int)strcspn(base, "."), base);
    if (under)
        snprintf(m->of, sizeof m->of, "%.*s/%.*s", length, family, (int)strcspn(under + 1, "."), under + 1);
}

static at_status read_mutants(const char *folder, struct sample *sample) {
    char path[4200], *line = NULL;
    size_t capacity = 0;
    at_status status = AT_OK;
    snprintf(path, sizeof path, "%s/mutants", folder);
    FILE *file = fopen(path, "r");
    if (!file)
        return AT_FAIL(AT_IO, "%s: %s", path, strerror(errno));
    while (getline(&line, &capacity, file) >= 0) {
        struct mutant *grown = realloc(sample->items, ((size_t)sample->n + 1) * sizeof *grown),
                      m = { .line = strdup(line) };
        char *rest = m.line;
        if (grown)
            sample->items = grown;
        if (!grown || !rest) {
            free(m.line);
            AT_FAIL_OUT(AT_NO_MEMORY, "no memory for mutants");
        }
        rest[strcspn(rest, "\n")] = 0;
        const char *fields[10] = { "", "", "", "0", "", "", "", "", "", "" };
        for (int i = 0; i < 10 && rest; i++)
            fields[i] = strsep(&rest, "\t");
        m.number = fields[0], m.file = fields[1], m.at = fields[2], m.site = strtoll(fields[3], NULL, 10);
        m.kind = fields[4], m.old = fields[5], m.new = fields[6], m.fate = fields[7], m.patch = fields[8],
        m.left = fields[9];
        name_of(&m);
        sample->items[sample->n++] = m;
    }
out:
    free(line);
    fclose(file);
    return status;
}

static struct mutant *find(struct sample *sample, const struct at_result *r) {
    char name[192];
    snprintf(name, sizeof name, "%s/%s", r->family, r->variant);
    for (int i = 0; i < sample->n; i++)
        if (is(sample->items[i].name, name))
            return &sample->items[i];
    return NULL;
}

static void note(struct mutant *m, const struct at_result *r) {
    if (at_state_class(r->state) == AT_CLASS_DECLINED)
        m->declined++;
    else
        m->judged++;
    if (m->killed || !at_state_fails(r->state, r->expect, 1))
        return;
    m->killed = 1;
    m->state = r->state;
    snprintf(m->by, sizeof m->by, "%s:%s", r->role, r->case_id);
}

static at_status read_results(const char *folder, struct sample *sample) {
    char path[4200], *line = NULL;
    size_t capacity = 0;
    at_status status = AT_OK;
    struct at_result *r = malloc(sizeof *r);
    snprintf(path, sizeof path, "%s/results.jsonl", folder);
    FILE *file = fopen(path, "r");
    if (!file || !r)
        AT_FAIL_OUT(AT_IO, "%s: %s", path, strerror(errno));
    while (getline(&line, &capacity, file) >= 0) {
        AT_TRY_OUT(at_result_from_json(line, path, r));
        struct mutant *m = find(sample, r);
        if (!m)
            AT_FAIL_OUT(AT_USAGE, "%s: %s/%s is no mutant of this sample", path, r->family, r->variant);
        note(m, r);
    }
out:
    free(line);
    free(r);
    if (file)
        fclose(file);
    return status;
}

struct totals {
    int drawn, refused, same, mutants, killed, equivalent, controls, bad;
    int by_state[AT_STATE_COUNT], of_kind[SITE_KIND_COUNT], killed_of_kind[SITE_KIND_COUNT];
};

static void count_kind(struct totals *t, const struct mutant *m) {
    for (int k = 0; k < SITE_KIND_COUNT; k++)
        if (is(m->kind, site_kind_name((enum site_kind)k))) {
            t->of_kind[k]++;
            t->killed_of_kind[k] += m->killed;
        }
}

static void count_control(struct totals *t, const struct mutant *m) {
    t->controls += !m->killed && m->judged;
    if (!m->killed)
        return;
    t->bad++;
    printf("CONTROL    %s, which nothing is wrong with, was killed: %s on %s\n", m->of, at_state_name(m->state), m->by);
}

/* What is changed, as much as fits a line of a table: the patch has it all. */
static void print_mutant(const char *fate, const struct mutant *m) {
    enum { MAX = 60 };
    const char *new = *m->new ? m->new : "(nothing)";
    printf("%-10s %s:%s  %s  %s: %.*s%s -> %.*s%s\n", fate, m->file, m->at, m->of, m->kind, MAX, m->old,
           strlen(m->old) > MAX ? "..." : "", MAX, new, strlen(new) > MAX ? "..." : "");
}

static void count_mutant(struct totals *t, const struct mutant *m, const struct equivalent *e) {
    t->mutants++;
    t->killed += m->killed;
    count_kind(t, m);
    if (m->killed)
        t->by_state[m->state]++;
    if (e && m->killed) {
        t->bad++;
        print_mutant("DISPROVED", m);
        printf("           line %d: %s; but %s on %s\n", e->number, e->reason, at_state_name(m->state), m->by);
    } else if (e) {
        t->equivalent++;
        print_mutant("equivalent", m);
        printf("           %s\n", e->reason);
    } else if (!m->killed) {
        print_mutant("SURVIVED", m);
        printf("           %lld results%s, in %d variant%s; %s\n", (long long)m->judged,
               m->judged ? "" : ", never judged", m->variants + 1, m->variants ? "s" : "", m->patch);
    }
}

static double percent(int n, int of) { return of ? 100.0 * n / of : 0; }

static void print_totals(const struct totals *t, const char *folder, const char *command) {
    printf("\nkilled by");
    for (int s = 0, n = 0; s < AT_STATE_COUNT; s++)
        if (t->by_state[s])
            printf("%s %d %s", n++ ? "," : "", t->by_state[s], at_state_name((enum at_state)s));
    printf("\nkilled of each kind:");
    for (int k = 0, n = 0; k < SITE_KIND_COUNT; k++)
        if (t->of_kind[k])
            printf("%s %s %d of %d", n++ ? "," : "", site_kind_name((enum site_kind)k), t->killed_of_kind[k],
                   t->of_kind[k]);
    printf("\n%d drawn: %d do not compile, %d are the same code as the original, %d were judged; %d controls passed\n",
           t->drawn, t->refused, t->same, t->mutants, t->controls);
    printf(
        "a survivor again: attest verify 'FAMILY/mNUMBER*' --runner %s/attest-mutate; its sources: patch -p1 < PATCH\n",
        folder);
    printf("of those not equivalent (%d of tests/mutants/equivalent.txt): %d of %d killed, %.1f %%\n", t->equivalent,
           t->killed, t->mutants - t->equivalent, percent(t->killed, t->mutants - t->equivalent));
    printf("%s: %d of %d killed, raw score %.1f %%\n", command, t->killed, t->mutants, percent(t->killed, t->mutants));
}

/* Mutants that were put into several variants have a line for each: the first, which stands for all, comes to know of the
 * rest. */
static int stands_for(const struct sample *sample, int i) {
    for (int k = 0; k < i; k++)
        if (is(sample->items[k].number, sample->items[i].number))
            return 0;
    return 1;
}

static void join(struct sample *sample) {
    for (int i = 0; i < sample->n; i++)
        for (int k = i + 1; k < sample->n && stands_for(sample, i); k++) {
            struct mutant *m = &sample->items[i];
            const struct mutant *other = &sample->items[k];
            if (!is(m->number, other->number))
                continue;
            m->judged += other->judged;
            m->left = other->left;
            m->variants++;
            if (!m->killed && other->killed) {
                m->killed = 1;
                m->state = other->state;
                memcpy(m->by, other->by, sizeof m->by);
                memcpy(m->of, other->of, sizeof m->of);
            }
        }
}

static void release(struct sample *sample) {
    for (int i = 0; i < sample->n; i++)
        free(sample->items[i].line);
    free(sample->items);
}

at_status survivors_print(const char *folder) {
    struct sample sample = { 0 };
    at_status status = AT_OK;
    AT_TRY_OUT(read_mutants(folder, &sample));
    AT_TRY_OUT(read_results(folder, &sample));
    join(&sample);
    for (int i = 0; i < sample.n; i++) {
        const struct mutant *m = &sample.items[i];
        if (stands_for(&sample, i) && is(m->fate, "mutant") && !is(m->kind, "nothing") && !m->killed && *m->left)
            printf("%s\t%s\t%s\t%lld\t%s\t%s\t%s\t%s\n", m->number, m->file, m->at, (long long)m->site, m->kind, m->old,
                   m->new, m->left);
    }
out:
    release(&sample);
    return status;
}

at_status score_print(const char *folder, const char *equivalents, const char *command, double least, int *bad) {
    struct sample sample = { 0 };
    struct equivalent_list list = { 0 };
    struct totals t = { 0 };
    at_status status = AT_OK;
    AT_TRY_OUT(equivalents_open(equivalents, &list));
    AT_TRY_OUT(read_mutants(folder, &sample));
    AT_TRY_OUT(read_results(folder, &sample));
    join(&sample);
    for (int i = 0; i < sample.n; i++) {
        const struct mutant *m = &sample.items[i];
        if (!stands_for(&sample, i))
            continue;
        const int control = is(m->kind, "nothing");
        t.drawn += !control;
        t.refused += is(m->fate, "refused");
        t.same += is(m->fate, "same");
        if (control)
            count_control(&t, m);
        else if (is(m->fate, "mutant"))
            count_mutant(&t, m, equivalent_find(&list, m->file, m->site, m->old, m->new, m->of));
    }
    if (t.controls == 0) {
        printf("CONTROL    none was judged and passed\n");
        t.bad++;
    }
    print_totals(&t, folder, command);
    if (percent(t.killed, t.mutants) < least) {
        fprintf(stderr, "mutate: the raw score is below MUTATE_MIN=%g\n", least);
        t.bad++;
    }
out:
    *bad = t.bad;
    release(&sample);
    equivalents_release(&list);
    return status;
}
