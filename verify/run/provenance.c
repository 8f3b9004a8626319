/* Request and provenance of a run.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/run/provenance.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>

#include "build_info.h"
#include "fast/fast.h"

static at_status dump(json_t *object, char **text) {
    *text = object ? json_dumps(object, JSON_SORT_KEYS | JSON_COMPACT) : NULL;
    json_decref(object);
    return *text ? AT_OK : AT_FAIL(AT_NO_MEMORY, "no memory for the run's description");
}

static json_t *selection(const struct at_selection *s) {
    json_t *globs = json_array();
    for (int i = 0; i < s->n_globs; i++)
        json_array_append_new(globs, json_string(s->globs[i]));
    return json_pack("{s:o, s:s, s:s}", "variants", globs, "cases", s->case_line ? "" : s->cases_glob, "case",
                     s->case_line ? s->case_line : "");
}

at_status at_provenance_build(const char *device, char **text) {
    return dump(json_pack("{s:s, s:s, s:s, s:s, s:s, s:s, s:s}", "tool", "attest " AT_VERSION, "commit", AT_COMMIT,
                          "flags", AT_BUILD_FLAGS, "compiler", AT_COMPILER, "device", device, "blas",
                          at_fast_blas_name(), "numeric_environment",
                          "round to nearest even, subnormals kept, no contraction"),
                text);
}

at_status at_provenance_fill(const struct at_session_options *o, const struct at_plan *plan,
                             const struct at_runner *runner, const struct at_sandbox *box,
                             struct at_run_record *record) {
    char hash[32], seed[32];
    snprintf(hash, sizeof hash, "%016" PRIx64, plan->cases_hash);
    snprintf(seed, sizeof seed, "%" PRIu64, o->seed);
    json_t *request = json_pack("{s:o, s:s, s:s, s:s, s:b, s:I, s:f, s:s}", "selection", selection(&o->selection),
                                "cases_hash", hash, "seed", seed, "runner", o->runner, "strict", o->strict, "again",
                                (json_int_t)o->again, "limit_factor", o->limit_factor, "keep", at_keep_name(o->keep));
    if (o->set_aside && request)
        json_object_set_new(request, "set_aside", json_integer((json_int_t)o->set_aside));
    if (o->last_failed && request)
        json_object_set_new(request, "last_failed", json_true());
    if (box && request)
        json_object_set_new(request, "sandbox", json_string(at_sandbox_text(box)));
    AT_TRY(dump(request, &record->request));
    return at_provenance_build(at_runner_device(runner), &record->provenance);
}
