/* The order of states, and when a limit proves nothing.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/judge/verdict.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static void say(struct at_result *r, enum at_state state, const char *text) {
    r->state = state;
    snprintf(r->cause, sizeof r->cause, "%s", text);
}

static int changed_on_rerun(const struct at_evidence *e, struct at_result *r) {
    char text[256];
    if (!e->numerics->repeats || r->rerun_different == 0)
        return 0;
    snprintf(text, sizeof text,
             "%lld of %lld elements changed bits between two equal launches, the second with its tensors at other "
             "addresses, and the variant says they repeat",
             (long long)r->rerun_different, (long long)r->rerun_compared);
    say(r, AT_STATE_RACY, text);
    return 1;
}

static int is_mispredicted(const struct at_evidence *e, struct at_result *r) {
    char text[256];
    if (!e->numerics->repeats || r->predicted_different == 0)
        return 0;
    snprintf(text, sizeof text, "%lld of %lld elements differ in their bits from the SIMT run of the same source",
             (long long)r->predicted_different, (long long)r->predicted_compared);
    say(r, AT_STATE_MISPREDICTED, text);
    return 1;
}

static int follows_poison(const struct at_evidence *e, struct at_result *r) {
    char text[256];
    if (e->poison_read == 0)
        return 0;
    snprintf(text, sizeof text,
             "%lld elements follow what stands in key or value rows that no request owns (past seq_lens, or in spare "
             "pages)",
             (long long)e->poison_read);
    say(r, AT_STATE_WRONG, text);
    return 1;
}

/* What a capture at other lengths changes was decided by lengths, and a replay keeps the decision. */
static int fixed_at_capture(const struct at_evidence *e, struct at_result *r) {
    char text[320];
    if (!e->numerics->repeats || (r->graph_different == 0 && !r->graph_other_path))
        return 0;
    snprintf(
        text, sizeof text,
        "captured in a graph while the longest request had one key, and replayed: %lld of %lld elements have other "
        "bits%s; the launch is decided by lengths, not by capacity",
        (long long)r->graph_different, (long long)r->graph_compared,
        r->graph_other_path ? ", other kernels or grids are launched" : "");
    say(r, AT_STATE_WRONG, text);
    return 1;
}

static int changed_with_batch(const struct at_evidence *e, struct at_result *r) {
    char text[256];
    if (!e->numerics->batch_invariant || r->batch_different == 0)
        return 0;
    snprintf(text, sizeof text,
             "%lld of %lld elements changed bits with the batch around them, and the variant says they do not",
             (long long)r->batch_different, (long long)r->batch_compared);
    say(r, AT_STATE_RACY, text);
    return 1;
}

/* Non-finite values that became ordinary numbers, where the declared arithmetic does exactly that; else the variant is
 * plainly WRONG. Where nothing was modelled the exact value's class is all there is to go by. */
static int is_laundered(const struct at_evidence *e, struct at_result *r) {
    const struct at_comparison *c = e->comparison;
    const struct at_ledger *ledger = &e->judgement->ledger;
    char text[320];
    if (e->judgement->has_model || e->judgement->has_classes) {
        if (r->wrong || !(ledger->laundered || c->laundered))
            return 0;
        if (ledger->laundered) {
            const struct at_place *p = &ledger->first_laundered;
            snprintf(text, sizeof text,
                     "%llu non-finite gate inputs became ordinary numbers, first at request %lld, head %lld, query "
                     "%lld, key %lld; the modelled arithmetic does the same",
                     (unsigned long long)ledger->laundered, (long long)p->b, (long long)p->h, (long long)p->q,
                     (long long)p->k);
        } else {
            snprintf(text, sizeof text,
                     "%lld outputs are ordinary numbers where the exact result is not finite; the modelled "
                     "arithmetic does the same",
                     (long long)c->laundered);
        }
    } else {
        if (!c->laundered || r->wrong != c->laundered)
            return 0;
        snprintf(text, sizeof text,
                 "%lld outputs are ordinary numbers where the exact result is not finite (no declared order: "
                 "not modelled)",
                 (long long)c->laundered);
    }
    say(r, AT_STATE_LAUNDERED, text);
    return 1;
}

static int is_wrong(const struct at_evidence *e, struct at_result *r) {
    const struct at_comparison *c = e->comparison;
    char text[sizeof r->cause];
    if (r->wrong) {
        at_explain_wrong(e, text, sizeof text);
        say(r, AT_STATE_WRONG, text);
        return 1;
    }
    if (e->aggregate && e->aggregate->confirmed) {
        at_aggregate_say(e->aggregate, text, sizeof text);
        say(r, AT_STATE_WRONG, text);
        return 1;
    }
    /* On the model and yet beyond a finite limit: the derivation of the limit and the model contradict each other. Classes
     * are no limit's business: a weight of 10^-60 times an infinity is one, and NaN where the weight is 0 in f32. */
    if (e->judgement->has_model && c->beyond_limit > c->overflowed + c->laundered + c->reclassed) {
        snprintf(text, sizeof text,
                 "%lld elements equal the modelled value but lie beyond the derived limit: one of the two is wrong",
                 (long long)(c->beyond_limit - c->overflowed - c->laundered - c->reclassed));
        say(r, AT_STATE_WRONG, text);
        return 1;
    }
    return 0;
}

static int is_overflowed(const struct at_evidence *e, struct at_result *r) {
    char text[256];
    if (!e->comparison->overflowed)
        return 0;
    const struct at_ledger *l = e->judgement->has_model ? &e->judgement->ledger : &e->answer->ledger;
    int at = snprintf(text, sizeof text, "%lld outputs are not finite, as the declared arithmetic has them",
                      (long long)e->comparison->overflowed);
    for (int s = 0; s < AT_STAGE_COUNT; s++)
        if (l->stage[s].has_first) {
            const struct at_place *p = &l->stage[s].first;
            snprintf(text + at, sizeof text - (size_t)at,
                     "; first out of range at stage %s: request %lld, head %lld, query %lld, key %lld, step %lld",
                     at_stage_name((enum at_stage)s), (long long)p->b, (long long)p->h, (long long)p->q,
                     (long long)p->k, (long long)p->step);
            break;
        }
    say(r, AT_STATE_OVERFLOWED, text);
    return 1;
}

/* A P whose one rounding is larger than the scale that should be seen (FP8) is charged to every element, whichever way its roundings
 * go: a result that is too large everywhere hides behind it. With a declared order the model decides, and nothing hides. */
static int is_loose(const struct at_evidence *e, struct at_result *r) {
    static const double seen = 1.0 / AT_SCALE_SEEN;
    const enum at_format out = e->answer->problem->tensors[e->tensor].format, p = (enum at_format)e->numerics->p;
    char text[256];
    if (e->judgement->has_model || out == AT_I32 || !(r->resolution > seen) ||
        !(at_format_info(p)->u > seen && at_format_info(p)->u > at_format_info(out)->u))
        return 0;
    snprintf(
        text, sizeof text,
        "P declared in %s, in no order: a result times %.3g would have passed too; declare the order of sums, or the "
        "format that P has",
        at_format_info(p)->name, 1 + r->resolution);
    say(r, AT_STATE_VACUOUS, text);
    return 1;
}

static int is_vacuous(const struct at_evidence *e, struct at_result *r) {
    char text[sizeof r->cause];
    if (e->required_inert[0]) {
        snprintf(text, sizeof text, "the case requires decoys that change nothing here: %.200s", e->required_inert);
    } else if (e->decoys->passed) {
        int at = snprintf(text, sizeof text, "the %s would have let these wrong results through:",
                          r->judged_by_limit ? "limit" : "model's interval");
        for (int d = 0; d < e->decoys->n && at < (int)sizeof text - 40; d++)
            if (e->decoys->fate[d] == AT_DECOY_PASSED)
                at += snprintf(text + at, sizeof text - (size_t)at, " %s", e->answer->decoys[d].name);
    } else {
        return 0;
    }
    say(r, AT_STATE_VACUOUS, text);
    return 1;
}

void at_verdict(const struct at_evidence *e, struct at_result *r) {
    r->judged_by_model = e->judgement->has_model;
    r->judged_by_limit = !r->judged_by_model || e->judgement->model_is_part;
    r->cause[0] = 0;
    if (e->dirty) {
        say(r, AT_STATE_DIRTY, e->dirty);
        return;
    }
    if (changed_on_rerun(e, r) || follows_poison(e, r) || fixed_at_capture(e, r))
        return;
    /* Wrong bits often depend on the batch as well; that they are wrong, and where, says more. */
    const int is_odd = is_laundered(e, r) || is_wrong(e, r) || is_overflowed(e, r);
    if ((is_odd && r->state == AT_STATE_WRONG) || changed_with_batch(e, r) || is_mispredicted(e, r) || is_odd)
        return;
    if (r->compared == 0) {
        say(r, AT_STATE_SKIPPED, "the case has no element of this tensor");
        return;
    }
    if (e->other_data[0]) { /* what is wrong on the case's own data says more of a kernel than this */
        say(r, AT_STATE_WRONG, e->other_data);
        return;
    }
    if (is_vacuous(e, r) || is_loose(e, r))
        return;
    if (e->comparison->undecided) {
        say(r, AT_STATE_VACUOUS,
            "the declared accumulator can overflow here, so there is no limit, and no declared order to model");
        return;
    }
    say(r, AT_STATE_PASS, "");
}
