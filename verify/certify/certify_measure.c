/* Launches of a certificate, and their bits beside the first launch's.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/certify/certify_measure.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "attest/buffer.h"
#include "verify/judge/job.h"

void at_bits_compare(const struct at_tensor *a, int64_t a_first, const struct at_tensor *b, int64_t b_first,
                     int64_t count, struct at_bits *bits) {
    bits->compared += count;
    for (int64_t i = 0; i < count; i++) {
        const double x = at_tensor_get(a, a_first + i);
        bits->not_zero += x != 0;
        if (at_load_code(a->format, a->data, (size_t)(a_first + i)) ==
            at_load_code(b->format, b->data, (size_t)(b_first + i)))
            continue;
        const uint64_t ulp = at_ulp_distance(a->format, x, at_tensor_get(b, b_first + i));
        bits->different++;
        bits->worst_ulp = ulp > bits->worst_ulp ? ulp : bits->worst_ulp;
    }
}

static void fail_row(struct at_certificate *row, const char *what, const char *reason) {
    at_certificate_set(row, AT_CERTIFIED_FAILED);
    snprintf(row->reason, sizeof row->reason, "%.90s: %.280s", what, reason);
}

static const char *dirt(const struct at_outputs *outputs) {
    for (int t = 0; t < AT_MAX_TENSORS; t++)
        if (outputs->dirty[t][0])
            return outputs->dirty[t];
    return "";
}

/* *broken: what the runner died of or found, or what hygiene did; "" else. */
static at_status launch(struct at_measure *m, int variant, const struct at_problem *p, struct at_run_reply *reply,
                        struct at_outputs *outputs, char *broken, size_t size) {
    const struct at_run_mode mode = { .order = (int64_t)m->launches };
    const uint64_t parts[] = { m->options->seed, m->c->hash, m->launches };
    const uint64_t seed = at_hash_bytes(parts, sizeof parts, AT_HASH_START);
    const double timeout = m->options->timeout > 0 ? m->options->timeout : at_launch_seconds(p);
    const enum at_poison_turn turn = m->launches ? AT_POISON_AGAIN : AT_POISON_JUDGED;
    const at_status status =
        m->launches++ == 1
            ? at_guarded_launch_elsewhere(m->runner, variant, p, turn, &mode, seed, timeout, reply, outputs)
            : at_guarded_launch(m->runner, variant, p, turn, &mode, seed, timeout, reply, outputs);
    *broken = 0;
    if (status == AT_CRASHED || status == AT_HUNG || status == AT_PROTOCOL) {
        *reply = (struct at_run_reply){ .outcome = AT_RUN_FAILED };
        snprintf(broken, size, "%s", at_error_message());
        at_error_clear();
        return AT_OK;
    }
    AT_TRY(status);
    if (reply->outcome == AT_RAN)
        snprintf(broken, size, "%s", outputs->is_dirty ? dirt(outputs) : "");
    else if (reply->outcome != AT_RUN_UNSUPPORTED)
        snprintf(broken, size, "%s", reply->reason[0] ? reply->reason : "failed");
    return AT_OK;
}

/* The same for a declaration that is asked for. */
static at_status declared_on(const struct at_measure *m, int variant, const struct at_problem *p,
                             struct at_numerics *numerics, char *broken, size_t size) {
    const at_status status = at_declared_on(m->runner, variant, p, numerics);
    *broken = 0;
    if (status != AT_CRASHED && status != AT_HUNG && status != AT_PROTOCOL)
        return status;
    snprintf(broken, size, "%s", at_error_message());
    return AT_OK;
}

/* ---- the case itself ---- */

static void all_rows(struct at_measure *m, enum at_certified value, const char *what, const char *reason) {
    for (int p = 0; p < AT_PROPERTY_COUNT; p++) {
        if (value == AT_CERTIFIED_FAILED)
            fail_row(&m->rows[p], what, reason);
        else
            snprintf(m->rows[p].reason, sizeof m->rows[p].reason, "%.90s: %.280s", what, reason);
    }
}

static void all_bits(const struct at_problem *p, const struct at_outputs *a, const struct at_outputs *b,
                     struct at_bits *bits) {
    *bits = (struct at_bits){ 0 };
    for (int t = 0; t < p->op->n_tensors; t++)
        if (a->tensors[t].data)
            at_bits_compare(&a->tensors[t], 0, &b->tensors[t], 0, at_tensor_count(&a->tensors[t]), bits);
}

/* Bits that change from launch to launch are no function of a request. */
static void does_not_repeat(struct at_measure *m, const struct at_bits *bits) {
    for (int p = 0; p < AT_PROPERTY_COUNT; p++) {
        const char *none = at_settings_none(m, (enum at_property)p);
        if (none) {
            snprintf(m->rows[p].reason, sizeof m->rows[p].reason, "%s", none);
            continue;
        }
        struct at_setting setting = at_setting_of(m, (enum at_property)p, -1, "the same launch again");
        setting.ran = 1;
        setting.compared = bits->compared;
        setting.different = bits->different;
        setting.worst_ulp = bits->worst_ulp;
        m->not_zero[p] = bits->not_zero;
        at_setting_end(m, &setting);
        if (m->declared.repeats) {
            snprintf(m->rows[p].claim, sizeof m->rows[p].claim, "repeats=1");
            m->rows[p].disagrees = 1;
        }
    }
}

at_status at_measure_first(struct at_measure *m, int *goes_on) {
    at_status status = AT_OK;
    struct at_outputs again = { 0 };
    struct at_run_reply reply;
    struct at_bits bits = { 0 };
    char broken[512];
    *goes_on = 0;
    AT_TRY_OUT(declared_on(m, m->variant, m->problem, &m->declared, broken, sizeof broken));
    if (broken[0]) {
        all_rows(m, AT_CERTIFIED_FAILED, "the case itself", broken);
        goto out;
    }
    for (int p = 0; p < AT_PROPERTY_COUNT; p++)
        AT_TRY_OUT(at_numerics_format(&m->declared, m->rows[p].numerics, sizeof m->rows[p].numerics));
    AT_TRY_OUT(launch(m, m->variant, m->problem, &reply, &m->first, broken, sizeof broken));
    if (broken[0]) {
        all_rows(m, AT_CERTIFIED_FAILED, "the case itself", broken);
        goto out;
    }
    if (reply.outcome == AT_RUN_UNSUPPORTED) {
        all_rows(m, AT_CERTIFIED_NA, AT_CERTIFY_DECLINES, reply.reason);
        goto out;
    }
    m->path = reply.path;
    AT_TRY_OUT(launch(m, m->variant, m->problem, &reply, &again, broken, sizeof broken));
    if (broken[0] || reply.outcome != AT_RAN) {
        all_rows(m, AT_CERTIFIED_FAILED, "the same launch again", broken[0] ? broken : reply.reason);
        goto out;
    }
    all_bits(m->problem, &m->first, &again, &bits);
    *goes_on = bits.different == 0;
    if (bits.different)
        does_not_repeat(m, &bits);
out:
    at_outputs_release(&again);
    return status;
}

/* ---- settings ---- */

struct at_setting at_setting_of(const struct at_measure *m, enum at_property property, int64_t size, const char *format,
                                ...) {
    struct at_setting setting = { .property = (int)property, .size = size, .variant = m->variant };
    va_list list;
    va_start(list, format);
    vsnprintf(setting.label, sizeof setting.label, format, list);
    va_end(list);
    return setting;
}

static void claim(struct at_certificate *row, const char *word) {
    const size_t n = strlen(row->claim);
    if (!strstr(row->claim, word))
        snprintf(row->claim + n, sizeof row->claim - n, "%s%s", n ? ", " : "", word);
}

/* What the declarations say of pair i of a trial: that its bits are the same, and the kernel's are not; or that its sums have
 * another order. */
static at_status ask_declaration(struct at_measure *m, struct at_setting *s, const struct at_trial *trial, int64_t i,
                                 int differs) {
    struct at_certificate *row = &m->rows[s->property];
    struct at_numerics there;
    enum at_declared_order order;
    char broken[512];
    AT_TRY(declared_on(m, s->variant, &trial->problem, &there, broken, sizeof broken));
    if (broken[0]) {
        fail_row(row, s->label, broken);
        return AT_OK;
    }
    AT_TRY(at_declared_compare(m->problem, &m->declared, trial->base[i], &trial->problem, &there, trial->other[i],
                               &order));
    if (order == AT_DECLARED_SAME)
        claim(row, "an order of sums");
    row->disagrees |= order == AT_DECLARED_SAME && differs;
    s->other_order |= order == AT_DECLARED_OTHER;
    return AT_OK;
}

/* Of a trial the pair with the most work. Pieces of a prompt are trials of one setting: of those that see ever more keys a few. */
static at_status ask_of_largest(struct at_measure *m, struct at_setting *s, const struct at_trial *trial) {
    int64_t largest = 0;
    double most = -1;
    for (int64_t i = 0; i < trial->n; i++) {
        const double work = m->problem->op->row_work(m->problem, trial->base[i]);
        if (work > most) {
            most = work;
            largest = i;
        }
    }
    if (most < 0 || !(most >= 2 * s->asked))
        return AT_OK;
    s->asked = most > 0 ? most : 1;
    return ask_declaration(m, s, trial, largest, 0);
}

static at_status compare_rows(struct at_measure *m, struct at_setting *s, const struct at_trial *trial,
                              const struct at_outputs *got) {
    enum { ENOUGH = 4 }; /* rows of a trial that differ and whose declared bits are looked at */
    const struct at_op *op = m->problem->op;
    struct at_bits bits = { 0 };
    int asked = 0;
    AT_TRY(ask_of_largest(m, s, trial));
    for (int64_t i = 0; i < trial->n; i++) {
        const int64_t before = bits.different;
        for (int t = 0; t < op->n_tensors; t++) {
            int64_t from, count, to, other_count;
            if (!m->first.tensors[t].data || !got->tensors[t].data)
                continue;
            op->row_span(m->problem, t, trial->base[i], &from, &count);
            op->row_span(&trial->problem, t, trial->other[i], &to, &other_count);
            at_bits_compare(&m->first.tensors[t], from, &got->tensors[t], to, count, &bits);
        }
        if (bits.different > before && !m->rows[s->property].disagrees && asked++ < ENOUGH)
            AT_TRY(ask_declaration(m, s, trial, i, 1));
    }
    s->compared += bits.compared;
    s->different += bits.different;
    s->worst_ulp = bits.worst_ulp > s->worst_ulp ? bits.worst_ulp : s->worst_ulp;
    m->not_zero[s->property] += bits.not_zero;
    return AT_OK;
}

at_status at_setting_try(struct at_measure *m, struct at_setting *s, const struct at_trial *trial) {
    struct at_certificate *row = &m->rows[s->property];
    struct at_outputs got = { 0 };
    struct at_run_reply reply;
    char broken[512];
    at_status status = AT_OK;
    if (s->declined || at_certificate_value(row) == AT_CERTIFIED_FAILED)
        return AT_OK;
    AT_TRY_OUT(launch(m, s->variant, &trial->problem, &reply, &got, broken, sizeof broken));
    if (broken[0]) {
        fail_row(row, s->label, broken);
    } else if (reply.outcome == AT_RUN_UNSUPPORTED) {
        s->declined = 1;
        snprintf(s->reason, sizeof s->reason, "%.300s", reply.reason);
    } else {
        s->ran = 1;
        s->path = reply.path;
        AT_TRY_OUT(compare_rows(m, s, trial, &got));
    }
out:
    at_outputs_release(&got);
    return status;
}

void at_setting_end(struct at_measure *m, const struct at_setting *s) {
    struct at_certificate *row = &m->rows[s->property];
    if (at_certificate_value(row) == AT_CERTIFIED_FAILED)
        return;
    row->declined += s->declined;
    if (s->declined && !row->reason[0])
        snprintf(row->reason, sizeof row->reason, "declines %.60s: %.300s", s->label, s->reason);
    if (s->declined || !s->ran)
        return;
    const int claims = s->is_batch && m->declared.batch_invariant;
    if (claims)
        claim(row, "batch_invariant=1");
    row->settings++;
    row->compared += s->compared;
    row->different += s->different;
    row->worst_ulp = s->worst_ulp > row->worst_ulp ? s->worst_ulp : row->worst_ulp;
    row->disagrees |= claims && s->different > 0;
    if ((s->different == 0 && !s->other_order) || (row->from[0] && row->from_size <= s->size))
        return;
    snprintf(row->from, sizeof row->from, "%s", s->label);
    snprintf(row->from_case, sizeof row->from_case, "%s", m->c->id);
    row->from_size = s->size;
    row->from_compared = s->compared;
    row->from_different = s->different;
    row->from_ulp = s->worst_ulp;
}
