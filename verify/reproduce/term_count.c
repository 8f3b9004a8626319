/* Terms that a run on the SIMT machine counts: sectors of global memory, passes over the banks, atomics, barriers.
 * SPDX-License-Identifier: Apache-2.0 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "attest/names.h"
#include "verify/reproduce/terms.h"
#include "verify/runner/launch.h"

enum { TIMEOUT_SECONDS = 60 };

static const char *const counters[] = {
#define X(name, meaning) #name,
    AT_COUNTER_LIST(X)
#undef X
};
enum { N_COUNTERS = sizeof counters / sizeof *counters };

static at_status check(const struct at_term *term) {
    struct at_case_list list = { 0 };
    char line[1024];
    AT_TRY(at_term_want(term, 3));
    int i = 0;
    while (i < N_COUNTERS && strcmp(counters[i], term->words[1]) != 0)
        i++;
    if (i == N_COUNTERS) {
        const char *near = at_nearest_name(term->words[1], counters, N_COUNTERS);
        return AT_FAIL(AT_USAGE, "%s: count: found \"%.40s\"%s%s%s, wanted a counter of `attest verify --counters`",
                       term->where, term->words[1], near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
    }
    at_term_line(term, 2, line, sizeof line);
    const at_status status = at_case_parse(line, "line", term->where, &list);
    const int64_t n = list.n;
    at_case_list_release(&list);
    AT_TRY(status);
    return n == 1 ? AT_OK : AT_FAIL(AT_USAGE, "%s: count: found \"%.200s\", wanted one case", term->where, line);
}

static int64_t counter(const struct at_counters *c, const char *name) {
#define X(field, meaning) \
    if (strcmp(#field, name) == 0) \
        return c->field;
    AT_COUNTER_LIST(X)
#undef X
    return -1;
}

static int variant_named(const struct at_runner *runner, const char *name) {
    char full[192];
    for (int i = 0; i < at_runner_variant_count(runner); i++) {
        const struct at_variant *v = at_runner_variant(runner, i);
        snprintf(full, sizeof full, "%s/%s", v->family, v->name);
        if (strcmp(full, name) == 0)
            return i;
    }
    return -1;
}

static at_status launch(struct at_runner *runner, const struct at_term *term, struct at_term_value *v) {
    const struct at_run_mode counting = { .counters = 1 };
    const int variant = variant_named(runner, term->words[0]);
    struct at_case_list list = { 0 };
    struct at_case_data data = { 0 };
    struct at_outputs outputs;
    struct at_run_reply reply;
    char line[1024];
    at_status status = AT_OK;
    if (variant < 0) {
        snprintf(v->why, sizeof v->why, "the SIMT machine has no kernel %s", term->words[0]);
        return AT_OK;
    }
    at_term_line(term, 2, line, sizeof line);
    AT_TRY_OUT(at_case_parse(line, "line", term->where, &list));
    AT_TRY_OUT(at_case_build(&list.items[0], &data));
    AT_TRY_OUT(at_guarded_launch(runner, variant, &data.problem, AT_POISON_JUDGED, &counting, 1, TIMEOUT_SECONDS,
                                 &reply, &outputs));
    at_outputs_release(&outputs);
    if (reply.outcome == AT_RAN && reply.has_counters)
        v->value = (double)counter(&reply.counters, term->words[1]);
    else
        snprintf(v->why, sizeof v->why, "%s was not counted: %.200s", term->words[0], reply.reason);
    snprintf(v->note, sizeof v->note, "SIMT machine, %.90s: %.40s", term->words[0], term->words[1]);
out:
    at_case_data_release(&data);
    at_case_list_release(&list);
    return status;
}

static at_status find(struct at_term_sources *sources, const struct at_run_evidence *run, const struct at_term *term,
                      struct at_term_value *v) {
    (void)run;
    v->value = (double)NAN;
    if (!sources->simt && at_runner_open("cpu", &sources->simt) != AT_OK) {
        snprintf(v->why, sizeof v->why, "no SIMT machine: %.300s", at_error_message());
        at_error_clear();
        return AT_OK;
    }
    return launch(sources->simt, term, v);
}

const struct at_term_kind at_term_count = { .name = "count",
                                            .wants = "FAMILY/VARIANT COUNTER FAMILY KEY=VALUE...",
                                            .meaning = "what the SIMT machine counts of one launch",
                                            .check = check,
                                            .find = find };
