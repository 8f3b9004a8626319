/* Tables of a stack for people.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/stack/stack_report.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

double at_stack_headroom(double largest) { return log2(at_format_info(AT_F16)->max / largest); }

/* ---- the plan ---- */

at_status at_stack_plan_rows(const struct at_stack_plan *plan, struct at_stack_plan_row **rows) {
    *rows = calloc((size_t)plan->n_steps + 1, sizeof **rows);
    if (!*rows)
        return AT_FAIL(AT_NO_MEMORY, "no memory for a plan");
    for (int i = 0; i < plan->n_steps; i++) {
        const struct at_stack_planned *step = &plan->steps[i];
        const struct at_variant *v = at_stack_chosen(plan, &step->choice);
        struct at_stack_plan_row *row = &(*rows)[i];
        *row = (struct at_stack_plan_row){
            .step = i, .times = at_stack_times(plan, i), .launches = step->choice.launches, .work = step->work
        };
        snprintf(row->name, sizeof row->name, "%s", step->text->name);
        snprintf(row->kind, sizeof row->kind, "%s", step->text->kind);
        snprintf(row->family, sizeof row->family, "%s", v->family);
        snprintf(row->variant, sizeof row->variant, "%s", v->name);
        snprintf(row->shapes, sizeof row->shapes, "%s", step->shapes);
    }
    return AT_OK;
}

/* Of kinds in the order in which they come first. */
static void put_kinds(const struct at_stack_plan_row *rows, int64_t n, FILE *out) {
    int64_t all = 0, steps = 0;
    fprintf(out, "launches by kind:");
    for (int64_t i = 0; i < n; i++) {
        int64_t sum = 0;
        int first = 1;
        for (int64_t k = 0; k < n; k++) {
            const int same = strcmp(rows[k].kind, rows[i].kind) == 0;
            first &= !(same && k < i);
            sum += same ? rows[k].times * rows[k].launches : 0;
        }
        if (first)
            fprintf(out, " %s %" PRId64 ",", rows[i].kind, sum);
        all += rows[i].times * rows[i].launches;
        steps += rows[i].launches ? 0 : rows[i].times;
    }
    fprintf(out, " %" PRId64 " in all", all);
    if (steps)
        fprintf(out, "; %" PRId64 " steps run on the host, or their launches are not known", steps);
    fputc('\n', out);
}

void at_stack_put_plan(const struct at_stack_plan_row *rows, int64_t n, FILE *out) {
    fprintf(out, "%-11s %-10s %6s %8s %8s  %s\n", "STEP", "KIND", "TIMES", "LAUNCHES", "WORK", "VARIANT, SHAPES");
    for (int64_t i = 0; i < n; i++) {
        const struct at_stack_plan_row *r = &rows[i];
        fprintf(out, "%-11s %-10s %6" PRId64 " ", r->name, r->kind, r->times);
        if (r->launches)
            fprintf(out, "%8" PRId64, r->launches);
        else
            fprintf(out, "%8s", "-");
        fprintf(out, " %8.2g  %s/%s\n%*s%s\n", r->work, r->family, r->variant, 47, "", r->shapes);
    }
    put_kinds(rows, n, out);
}

/* ---- by step ---- */

/* The same output of the same step. */
static int is_same(const struct at_stack_row *a, const struct at_stack_row *b) {
    return a->step == b->step && strcmp(a->tensor, b->tensor) == 0;
}

static double relative(double error, double rms) { return error == 0 ? 0 : error / rms; }

/* One output over all layers. */
struct over_layers {
    const struct at_stack_row *first, *last, *worst; /* worst: where most enters */
    int64_t n, not_passed, not_finite;
    double ratio, headroom;
    char states[64];
};

static void add_state(struct over_layers *o, const struct at_stack_row *r) {
    const char *name = at_state_name(r->state);
    if (r->state != AT_STATE_PASS && !strstr(o->states, name)) {
        const size_t used = strlen(o->states);
        snprintf(o->states + used, sizeof o->states - used, "%s%s", used ? " " : "", name);
    }
    o->not_passed += r->state != AT_STATE_PASS;
}

static struct over_layers gather(const struct at_stack_row *rows, int64_t n, const struct at_stack_row *of) {
    struct over_layers o = { .headroom = INFINITY, .ratio = NAN };
    for (int64_t i = 0; i < n; i++) {
        const struct at_stack_row *r = &rows[i];
        if (!is_same(r, of))
            continue;
        o.first = o.first ? o.first : r;
        o.last = r;
        if (!o.worst ||
            relative(r->error.entered_rms, r->error.rms) > relative(o.worst->error.entered_rms, o.worst->error.rms))
            o.worst = r;
        o.n++;
        o.not_finite += r->error.nans + r->error.infinities;
        o.ratio = isnan(o.ratio) || r->ratio > o.ratio ? r->ratio : o.ratio;
        o.headroom = fmin(o.headroom, at_stack_headroom(r->error.largest));
        add_state(&o, r);
    }
    return o;
}

static void put_layer(int64_t layer, FILE *out) {
    if (layer < 0)
        fprintf(out, "%6s", "end");
    else
        fprintf(out, "%6" PRId64, layer);
}

static void put_output(const struct over_layers *o, FILE *out) {
    const struct at_stack_row *r = o->first, *w = o->worst;
    char verdict[96];
    if (o->not_passed)
        snprintf(verdict, sizeof verdict, "%s %" PRId64 "/%" PRId64, o->states, o->not_passed, o->n);
    else
        snprintf(verdict, sizeof verdict, "PASS %" PRId64, o->n);
    fprintf(out, "%-11s %-8s %-13s", r->name, r->tensor, verdict);
    if (isnan(o->ratio))
        fprintf(out, " %7s", "-");
    else
        fprintf(out, " %7.2g", o->ratio);
    fprintf(out, " %8.1e %8.1e", relative(r->error.entered_rms, r->error.rms),
            relative(w->error.entered_rms, w->error.rms));
    put_layer(w->layer, out);
    fprintf(out, " %8.1e %8.1e %8.1e %8.1e %6.1f %7" PRId64 "\n",
            relative(o->last->error.inherited_rms, o->last->error.rms), relative(r->error.error_rms, r->error.rms),
            relative(o->last->error.error_rms, o->last->error.rms), o->last->error.error_max, o->headroom,
            o->not_finite);
}

void at_stack_put_steps(const struct at_stack_row *rows, int64_t n, FILE *out) {
    fprintf(out,
            "\nby step, over its layers. Errors are rms, relative to the rms of the run in double: ENTERS, the kernel "
            "against "
            "the\nexact result on the inputs that it got (first layer; most, and where); INHERITS, what the errors of "
            "its inputs "
            "became;\nERROR, the kernel against the run in double (first and last layer; MAX: largest of the last "
            "layer). HEAD: "
            "powers of two\nbetween the largest magnitude and 65504\n"
            "%-11s %-8s %-13s %7s %8s %8s %5s %8s %8s %8s %8s %6s %7s\n",
            "STEP", "TENSOR", "VERDICTS", "RATIO", "ENTERS", "LARGEST", "LAYER", "INHERITS", "ERROR", "LAST", "MAX",
            "HEAD", "NAN,INF");
    for (int64_t i = 0; i < n; i++) {
        int seen = 0;
        for (int64_t k = 0; k < i && !seen; k++)
            seen = is_same(&rows[k], &rows[i]);
        if (seen)
            continue;
        const struct over_layers o = gather(rows, n, &rows[i]);
        put_output(&o, out);
    }
}

/* ---- by layer ---- */

/* Rows [begin, end) of one layer, or behind them. */
struct layer {
    const struct at_stack_row *begin, *end;
};

/* The step of the layer where the most error enters, by the flow's own rms; where its headroom is least. */
static const struct at_stack_row *most(const struct layer *l, int by_headroom) {
    const struct at_stack_row *best = NULL;
    double best_value = -INFINITY;
    for (const struct at_stack_row *r = l->begin; r < l->end; r++) {
        const double value = by_headroom ? r->error.largest : relative(r->error.entered_rms, r->error.rms);
        if (!best || value > best_value) {
            best = r;
            best_value = value;
        }
    }
    return best;
}

static void put_flow(const struct layer *l, const struct at_stack_row *r, int first, FILE *out) {
    put_layer(r->layer, out);
    fprintf(out, " %-8s %8.2g %8.1e %8.1e %8.1e %8.1e", r->flow, r->error.rms, r->error.error_max, r->error.error_rms,
            relative(r->error.error_rms, r->error.rms), relative(r->error.inherited_rms, r->error.rms));
    if (!first) {
        fputc('\n', out);
        return;
    }
    const struct at_stack_row *enters = most(l, 0), *large = most(l, 1);
    int64_t not_finite = 0, beyond = 0;
    for (const struct at_stack_row *x = l->begin; x < l->end; x++) {
        not_finite += x->error.nans + x->error.infinities;
        beyond += x->error.beyond;
    }
    char where[80];
    snprintf(where, sizeof where, "%.1e %.32s", relative(enters->error.entered_rms, enters->error.rms), enters->name);
    fprintf(out, "  %-19s %6.1f %-10s %7" PRId64 " %7" PRId64 "\n", where, at_stack_headroom(large->error.largest),
            large->name, not_finite, beyond);
}

/* The last row of each flow that goes on, or, outside of layers, of each flow. */
static void put_layer_flows(const struct layer *l, FILE *out) {
    int first = 1;
    for (const struct at_stack_row *r = l->begin; r < l->end; r++) {
        int is_last = r->carried || r->layer < 0;
        for (const struct at_stack_row *later = r + 1; later < l->end; later++)
            is_last &= strcmp(later->flow, r->flow) != 0;
        if (!is_last)
            continue;
        put_flow(l, r, first, out);
        first = 0;
    }
}

void at_stack_put_layers(const struct at_stack_row *rows, int64_t n, FILE *out) {
    int shown = 0;
    for (int64_t i = 0; i < n; i++)
        shown |= rows[i].carried || rows[i].layer < 0;
    if (!shown)
        return;
    fprintf(out,
            "\nby layer, flows that go on to the next: kernels against a run in double of the same stored inputs and "
            "weights, "
            "in which\nnothing is rounded. No verdict: errors of right kernels grow as they may\n"
            "%6s %-8s %8s %8s %8s %8s %8s  %-19s %6s %-10s %7s %7s\n",
            "LAYER", "FLOW", "RMS", "MAX", "ERROR", "RELATIVE", "INHERITS", "LARGEST ENTERS AT", "HEAD", "AT",
            "NAN,INF", ">65504");
    for (int64_t i = 0, next; i < n; i = next) {
        for (next = i + 1; next < n && rows[next].layer == rows[i].layer;)
            next++;
        const struct layer l = { rows + i, rows + next };
        put_layer_flows(&l, out);
    }
}

/* ---- by turn ---- */

void at_stack_put_turns(const struct at_stack_row *rows, int64_t n, FILE *out) {
    enum { FEW = 6 }; /* of more turns the prompts, the first and the last step are shown */
    const int64_t last = n > 0 ? rows[n - 1].turn : 0;
    const int several = n > 0 && last != rows[0].turn;
    for (int64_t i = 0, next; i < n; i = next) {
        for (next = i + 1; next < n && rows[next].turn == rows[i].turn;)
            next++;
        if (last >= FEW && rows[i].turn == 2)
            fprintf(out, "\nturns 2 to %" PRId64 ": not shown\n", last - 1);
        if (last >= FEW && rows[i].turn > 1 && rows[i].turn < last)
            continue;
        if (several)
            fprintf(out, "\nturn %" PRId64 "%s\n", rows[i].turn, rows[i].turn ? "" : ": the prompts");
        at_stack_put_steps(rows + i, next - i, out);
        at_stack_put_layers(rows + i, next - i, out);
    }
}
