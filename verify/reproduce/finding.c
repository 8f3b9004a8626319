/* Claims against measurements.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/reproduce/finding.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "build_info.h"
#include "verify/reproduce/terms.h"

const char *at_claim_verdict_name(enum at_claim_verdict verdict) {
    static const char *const names[AT_CLAIM_VERDICTS] = { "supported", "refuted", "not seen" };
    return names[verdict];
}

/* Where a figure is from that no run gave: a table of nvcc's, or this program. */
static void note_origin(const struct at_evidence *evidence, struct at_finding *f) {
    for (int i = 0; i < f->claim->n_terms; i++)
        if (f->claim->terms[i].kind->by_nvcc) {
            snprintf(f->file, sizeof f->file, "resources.tsv");
            snprintf(f->device, sizeof f->device, "nvcc");
            snprintf(f->date, sizeof f->date, "%s", evidence->resources_date);
            return;
        }
    snprintf(f->file, sizeof f->file, "computed here");
    snprintf(f->commit, sizeof f->commit, "%s", AT_COMMIT);
}

static int is_measured(const struct at_claim *claim) {
    for (int i = 0; i < claim->n_terms; i++)
        if (claim->terms[i].kind->measured)
            return 1;
    return 0;
}

/* The terms that are (1) or are not (0) rows of archives. *missing: one has no value, and f->why says why. */
static at_status find_terms(struct at_term_sources *sources, const struct at_run_evidence *run, int measured,
                            struct at_finding *f, int *missing) {
    *missing = 0;
    for (int i = 0; i < f->claim->n_terms && !*missing; i++) {
        const struct at_term *term = &f->claim->terms[i];
        struct at_term_value v = { .value = (double)NAN };
        if (term->kind->measured != measured)
            continue;
        AT_TRY(term->kind->find(sources, run, term, &v));
        f->values[i] = v.value;
        snprintf(f->notes[i], sizeof f->notes[i], "%s", v.note);
        *missing = v.why[0] != 0;
        if (*missing)
            snprintf(f->why, sizeof f->why, "%s", v.why);
    }
    return AT_OK;
}

/* How many of a claim's rows an archive has, to say of the one that has most what it lacks. */
static at_status rows_there(struct at_term_sources *sources, const struct at_run_evidence *run,
                            const struct at_claim *claim, int *there) {
    *there = 0;
    for (int i = 0; i < claim->n_terms; i++) {
        struct at_term_value v = { .value = (double)NAN };
        if (!claim->terms[i].kind->measured)
            continue;
        AT_TRY(claim->terms[i].kind->find(sources, run, &claim->terms[i], &v));
        *there += v.why[0] == 0;
    }
    return AT_OK;
}

/* The newest archive that has all rows; if none has, the one with most, whose gap is the reason. */
static at_status find_measured(struct at_term_sources *sources, struct at_finding *f, int *missing) {
    const struct at_evidence *evidence = sources->evidence;
    const struct at_run_evidence *best = NULL;
    int most = -1;
    *missing = 1;
    for (int i = 0; i < evidence->n && *missing; i++) {
        int there;
        AT_TRY(rows_there(sources, &evidence->runs[i], f->claim, &there));
        if (there <= most)
            continue;
        most = there;
        best = &evidence->runs[i];
        AT_TRY(find_terms(sources, best, 1, f, missing));
    }
    if (!best || *missing)
        return AT_OK;
    snprintf(f->file, sizeof f->file, "%s", best->file);
    snprintf(f->device, sizeof f->device, "%s", best->device);
    snprintf(f->date, sizeof f->date, "%s", best->date);
    snprintf(f->commit, sizeof f->commit, "%s", best->commit);
    return AT_OK;
}

static at_status judge(struct at_finding *f) {
    const struct at_claim *claim = f->claim;
    AT_TRY(at_claim_ours(claim, f->values, &f->ours));
    if (isnan(f->ours)) {
        snprintf(f->why, sizeof f->why, "its terms give no number: %.200s", claim->ours);
        return AT_OK;
    }
    f->verdict = at_rule_meets(claim, f->ours, f->why, sizeof f->why) ? AT_SUPPORTED : AT_REFUTED;
    return AT_OK;
}

static at_status find(struct at_term_sources *sources, struct at_finding *f) {
    int missing;
    if (*f->claim->unseen) {
        snprintf(f->why, sizeof f->why, "%s", f->claim->unseen);
        return AT_OK;
    }
    if (is_measured(f->claim)) {
        AT_TRY(find_measured(sources, f, &missing));
    } else {
        missing = 0;
        note_origin(sources->evidence, f);
    }
    if (missing)
        return AT_OK;
    AT_TRY(find_terms(sources, NULL, 0, f, &missing));
    return missing ? AT_OK : judge(f);
}

at_status at_findings_make(const struct at_claims *claims, const char *chosen, const struct at_evidence *evidence,
                           struct at_finding **findings, int *n) {
    struct at_term_sources sources = { .evidence = evidence };
    at_status status = AT_OK;
    *n = 0;
    *findings = calloc((size_t)claims->n + 1, sizeof **findings);
    if (!*findings)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %d claims", claims->n);
    for (int i = 0; i < claims->n && status == AT_OK; i++) {
        if (!chosen[i])
            continue;
        struct at_finding *f = &(*findings)[(*n)++];
        *f = (struct at_finding){ .claim = &claims->items[i], .verdict = AT_NOT_SEEN, .ours = (double)NAN };
        for (int t = 0; t < AT_CLAIM_TERMS; t++)
            f->values[t] = (double)NAN;
        status = find(&sources, f);
    }
    if (sources.simt)
        at_runner_close(sources.simt);
    return status;
}
