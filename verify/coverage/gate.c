/* The gate: what is not taken and not explained, and what is explained and taken.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/coverage/report.h"

/* Of every hundred branches. */
enum { MAX_EXPLAINED = 1 };

typedef void put_fault(void *context, const struct at_cover_report *r, int file, int line, enum at_cover_fault fault);

static void put_nothing(void *context, const struct at_cover_report *r, int file, int line, enum at_cover_fault fault) {
    (void)context;
    (void)r;
    (void)file;
    (void)line;
    (void)fault;
}

/* A mark is worth something while its line did not run, or a branch of it was not taken. */
static int is_missed(const struct at_cover_line *line) {
    int missed;
    at_cover_line_branches(line, &missed);
    return missed || line->count == 0;
}

/* Functions nothing of which ran; their branches are faults of their own. */
static int64_t uncalled(const struct at_cover_report *r, int file, put_fault *put, void *context) {
    const struct at_cover_file *f = &r->cover.files[file];
    int64_t faults = 0;
    for (int i = 0, n, called; i < f->n_instances; i += n) {
        n = at_cover_place(f, i, &called);
        const int line = f->instances[i].line;
        if (called || (line <= f->n && f->lines[line - 1].reason))
            continue;
        put(context, r, file, line, AT_COVER_UNCALLED);
        faults++;
    }
    return faults;
}

int64_t at_cover_faults(const struct at_cover_report *r, put_fault *put, void *context) {
    int64_t faults = 0;
    put = put ? put : put_nothing;
    for (int i = 0; i < r->cover.n; i++) {
        const struct at_cover_file *f = &r->cover.files[i];
        if (!r->is_whole[i])
            continue;
        faults += uncalled(r, i, put, context);
        for (int l = 0; l < f->n; l++) {
            int missed;
            at_cover_line_branches(&f->lines[l], &missed);
            const int reached = f->lines[l].reason && !is_missed(&f->lines[l]), untaken = missed && !f->lines[l].reason;
            if (reached || untaken)
                put(context, r, i, l + 1, reached ? AT_COVER_REACHED : AT_COVER_UNTAKEN);
            faults += reached + untaken;
        }
    }
    return faults;
}

void at_cover_whole(const struct at_cover_report *r, struct at_cover_sum *sum) {
    *sum = (struct at_cover_sum){ 0 };
    for (int i = 0; i < r->cover.n; i++)
        if (r->is_whole[i])
            at_cover_count(&r->cover.files[i], sum);
}

int at_cover_gate(const struct at_cover_report *r) {
    struct at_cover_sum sum;
    at_cover_whole(r, &sum);
    int broken = 0, all = 1;
    for (int i = 0; i < r->n_variants; i++)
        broken |= r->variants[i].broken > 0;
    for (int i = 0; i < r->cover.n; i++)
        all &= r->is_whole[i];
    return at_cover_faults(r, NULL, NULL) == 0 && !broken &&
           (!all || 100 * sum.explained < MAX_EXPLAINED * sum.branches);
}
