/* A set cover by the greedy rule, with what it left superfluous taken out again.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/coverage/fewest.h"

#include <stdlib.h>
#include <string.h>

/* What there is to take: each branch, then each function by its place, file by file. */
struct needs {
    int64_t n;
    char *takes;    /* [cases][n] */
    int64_t *times; /* [n]: by how many chosen cases */
};

static int64_t walk(const struct at_cover *cover, char *takes) {
    int64_t n = 0;
    for (int f = 0; f < cover->n; f++) {
        const struct at_cover_file *file = &cover->files[f];
        for (int l = 0; l < file->n; l++)
            for (int b = 0; b < file->lines[l].n_lists; b++)
                for (int k = 0; k < file->lines[l].lists[b].n; k++, n++)
                    if (takes)
                        takes[n] = file->lines[l].lists[b].taken[k] > 0;
        for (int i = 0, of, called; i < file->n_instances; i += of, n++) {
            of = at_cover_place(file, i, &called);
            if (takes)
                takes[n] = called > 0;
        }
    }
    return n;
}

static void forget_counts(struct at_cover *cover) {
    for (int f = 0; f < cover->n; f++) {
        struct at_cover_file *file = &cover->files[f];
        for (int l = 0; l < file->n; l++)
            for (int b = 0; b < file->lines[l].n_lists; b++)
                memset(file->lines[l].lists[b].taken, 0, (size_t)file->lines[l].lists[b].n * sizeof(int64_t));
        for (int i = 0; i < file->n_instances; i++)
            file->instances[i].calls = 0;
    }
}

/* Every case is seen in the frame of all of them, so that a need has one place. */
static at_status find_needs(const struct at_cover *each, int64_t n, struct needs *needs) {
    struct at_cover frame = { 0 };
    at_status status = AT_OK;
    for (int64_t i = 0; i < n; i++)
        AT_TRY_OUT(at_cover_merge(&frame, &each[i]));
    needs->n = walk(&frame, NULL);
    needs->takes = calloc((size_t)n * (size_t)needs->n + 1, 1);
    needs->times = calloc((size_t)needs->n + 1, sizeof *needs->times);
    if (!needs->takes || !needs->times)
        AT_FAIL_OUT(AT_NO_MEMORY, "no memory for %lld branches of %lld cases", (long long)needs->n, (long long)n);
    for (int64_t i = 0; i < n; i++) {
        forget_counts(&frame);
        AT_TRY_OUT(at_cover_merge(&frame, &each[i]));
        walk(&frame, needs->takes + i * needs->n);
    }
out:
    at_cover_release(&frame);
    return status;
}

static int64_t news_of(const struct needs *needs, int64_t i) {
    int64_t news = 0;
    for (int64_t k = 0; k < needs->n; k++)
        news += needs->takes[i * needs->n + k] && needs->times[k] == 0;
    return news;
}

static void choose(struct needs *needs, int64_t i, int by, char *chosen) {
    chosen[i] = by > 0;
    for (int64_t k = 0; k < needs->n; k++)
        needs->times[k] += by * needs->takes[i * needs->n + k];
}

/* 1: what it takes, others that are chosen take, too. */
static int is_superfluous(const struct needs *needs, int64_t i) {
    for (int64_t k = 0; k < needs->n; k++)
        if (needs->takes[i * needs->n + k] && needs->times[k] == 1)
            return 0;
    return 1;
}

at_status at_cover_fewest(const struct at_cover *each, const double *seconds, int64_t n, char *chosen) {
    struct needs needs = { 0 };
    at_status status = find_needs(each, n, &needs);
    memset(chosen, 0, (size_t)n);
    for (int64_t best = 0; status == AT_OK && best >= 0;) {
        double rate = 0;
        best = -1;
        for (int64_t i = 0; i < n; i++) {
            const double of = chosen[i] ? 0 : (double)news_of(&needs, i) / seconds[i];
            if (of > rate) {
                rate = of;
                best = i;
            }
        }
        if (best >= 0)
            choose(&needs, best, 1, chosen);
    }
    for (int64_t dearest = 0; status == AT_OK && dearest >= 0;) {
        dearest = -1;
        for (int64_t i = 0; i < n; i++)
            if (chosen[i] && is_superfluous(&needs, i) && (dearest < 0 || seconds[i] > seconds[dearest]))
                dearest = i;
        if (dearest >= 0)
            choose(&needs, dearest, -1, chosen);
    }
    free(needs.takes);
    free(needs.times);
    return status;
}
