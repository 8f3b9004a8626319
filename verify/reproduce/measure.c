/* The benchmark that claims need.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/reproduce/measure.h"

#include <stdlib.h>
#include <string.h>

#include "verify/reproduce/terms.h"

struct wanted {
    const struct at_term **terms; /* benched ones of the chosen claims */
    int n;
    const char **globs; /* kernels of theirs that the runner has, each once */
    int n_globs;
};

static at_status collect(const struct at_claims *claims, const char *chosen, struct wanted *w) {
    w->terms = calloc((size_t)claims->n * AT_CLAIM_TERMS + 1, sizeof *w->terms);
    w->globs = calloc((size_t)claims->n * AT_CLAIM_TERMS + 1, sizeof *w->globs);
    if (!w->terms || !w->globs)
        return AT_FAIL(AT_NO_MEMORY, "no memory for the terms of %d claims", claims->n);
    for (int i = 0; i < claims->n; i++)
        for (int t = 0; chosen[i] && t < claims->items[i].n_terms; t++)
            if (claims->items[i].terms[t].kind->benched)
                w->terms[w->n++] = &claims->items[i].terms[t];
    return w->n ? AT_OK : AT_FAIL(AT_USAGE, "reproduce: no chosen claim needs a benchmark; leave out --runner");
}

static int has_kernel(const struct at_runner *runner, const char *name) {
    const char *slash = strchr(name, '/');
    for (int i = 0; i < at_runner_variant_count(runner); i++) {
        const struct at_variant *v = at_runner_variant(runner, i);
        if (strncmp(v->family, name, (size_t)(slash - name)) == 0 && !v->family[slash - name] &&
            strcmp(v->name, slash + 1) == 0)
            return 1;
    }
    return 0;
}

static at_status select_kernels(const struct at_runner *runner, struct wanted *w) {
    for (int i = 0; i < w->n; i++) {
        const char *name = w->terms[i]->words[0];
        int known = !has_kernel(runner, name);
        for (int g = 0; g < w->n_globs; g++)
            known = known || strcmp(w->globs[g], name) == 0;
        if (!known)
            w->globs[w->n_globs++] = name;
    }
    if (w->n_globs)
        return AT_OK;
    return AT_FAIL(AT_NOT_FOUND, "reproduce: this runner has none of the kernels that the claims need, %s first",
                   w->terms[0]->words[0]);
}

static int is_wanted(void *context, const struct at_case *c, const struct at_variant *variant) {
    const struct wanted *w = context;
    for (int i = 0; i < w->n; i++)
        if (at_term_takes(w->terms[i], variant->family, variant->name, c->id))
            return 1;
    return 0;
}

at_status at_claims_measure(const struct at_claims *claims, const char *chosen, const char *spec, int64_t replays,
                            struct at_bench_run *run) {
    struct wanted w = { 0 };
    struct at_bench_request request = { .replays = replays, .wanted = is_wanted, .context = &w };
    struct at_runner *runner = NULL;
    at_status status = AT_OK;
    if (strcmp(spec, "cpu") == 0)
        AT_FAIL_OUT(AT_UNSUPPORTED,
                    "reproduce: --runner: found cpu, which has no clock worth reading, wanted cuda or a "
                    "command line that speaks the protocol and times");
    AT_TRY_OUT(collect(claims, chosen, &w));
    AT_TRY_OUT(at_runner_open(spec, &runner));
    AT_TRY_OUT(select_kernels(runner, &w));
    request.options = at_session_defaults();
    request.options.runner = spec;
    request.options.selection.globs = w.globs;
    request.options.selection.n_globs = w.n_globs;
    request.options.selection.cases_dir = "bench";
    request.options.selection.cases_glob = "*";
    status = at_bench_run(&request, runner, run);
out:
    if (runner)
        at_runner_close(runner);
    free(w.terms);
    free(w.globs);
    return status;
}
