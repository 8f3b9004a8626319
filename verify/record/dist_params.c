/* How the scores of a recording become weights: the keys of the case language, or a case's own.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/record/dist_source.h"

static const char *const allowed[] = {
    "causal", "scale", "sigma", "window", "taps", "edge", "relu_pre", "clip", "gamma"
};

static int is_allowed(const char *word, size_t n) {
    for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++)
        if (strlen(allowed[i]) == n && memcmp(allowed[i], word, n) == 0)
            return 1;
    return 0;
}

/* Only keys of the evaluation: sizes and data come from the source. */
static at_status check_words(const char *text) {
    for (const char *word = text; *word;) {
        word += strspn(word, " \t");
        const size_t length = strcspn(word, " \t"), key = strcspn(word, "= \t");
        if (length && !is_allowed(word, key))
            return AT_FAIL(AT_USAGE,
                           "--params: found '%.*s', wanted causal, scale, sigma, window, taps, edge, relu_pre, clip or "
                           "gamma, each as key=value",
                           (int)(length < 64 ? length : 64), word);
        word += length;
    }
    return AT_OK;
}

/* A case with the source's heads and these parameters: the parser knows their defaults and ranges. */
static at_status parse(const struct at_dist_source *source, int softmax, const char *text, struct at_case_list *cases) {
    char line[4096];
    AT_TRY(check_words(text));
    if (snprintf(line, sizeof line, "%s h=%lld hk=%lld d=%lld sq=1 sk=1 %s",
                 softmax ? "softmax_prefill" : "asynct_prefill", (long long)source->h, (long long)source->hk,
                 (long long)source->d, text) >= (int)sizeof line)
        return AT_FAIL(AT_USAGE, "--params: the text is too long");
    AT_TRY(at_case_parse(line, "line", "--params", cases));
    if (cases->n != 1)
        return AT_FAIL(AT_USAGE, "--params: found values for %lld recordings, wanted one value a key",
                       (long long)cases->n);
    return AT_OK;
}

static at_status take(const struct at_dist_source *source, const struct at_problem *problem, int softmax,
                      struct at_dist_params *params) {
    const int64_t h = problem->sizes.h;
    const char *beyond = problem->op->beyond_scale ? problem->op->beyond_scale(problem) : NULL;
    if (beyond)
        return AT_FAIL(AT_UNSUPPORTED, "%s; recordings count those of scale q.k", beyond);
    params->heads = calloc((size_t)(source->n_layers * h), sizeof *params->heads);
    if (!params->heads)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %lld heads", (long long)h);
    params->softmax = softmax;
    params->causal = problem->params.causal;
    for (int64_t i = 0; i < source->n_layers * h; i++) {
        if (!softmax)
            at_asynct_head_init(problem, i % h, &params->heads[i]);
        params->heads[i].scale = (double)problem->params.scale;
    }
    for (int64_t i = 0; source->reader && i < source->n_layers; i++)
        AT_TRY(at_dist_own_params(source, softmax, i, params->heads + i * h, &params->own));
    return AT_OK;
}

at_status at_dist_params_make(const struct at_dist_source *source, int softmax, const char *text,
                              struct at_dist_params *params) {
    struct at_case_list cases = { 0 };
    struct at_case_data data = { 0 };
    at_status status = AT_OK;
    *params = (struct at_dist_params){ 0 };
    if (!source->reader)
        return take(source, &source->data.problem, softmax, params);
    AT_TRY_OUT(parse(source, softmax, text, &cases));
    AT_TRY_OUT(at_case_build(&cases.items[0], &data));
    AT_TRY_OUT(take(source, &data.problem, softmax, params));
out:
    at_case_data_release(&data);
    at_case_list_release(&cases);
    return status;
}

void at_dist_params_release(struct at_dist_params *params) {
    free(params->heads);
    *params = (struct at_dist_params){ 0 };
}

at_status at_dist_params_text(const struct at_dist_source *source, int softmax, const char *text, char *out,
                              size_t size) {
    struct at_case_list cases = { 0 };
    at_status status = AT_OK;
    size_t used = 0;
    out[0] = 0;
    if (source->reader)
        AT_TRY_OUT(parse(source, softmax, text, &cases));
    for (const char *word = source->reader ? cases.items[0].id : source->cases.items[0].id; *word;) {
        word += strspn(word, " ");
        const size_t length = strcspn(word, " "), key = strcspn(word, "= ");
        if (is_allowed(word, key) && used + length + 2 < size)
            used += (size_t)snprintf(out + used, size - used, "%s%.*s", used ? " " : "", (int)length, word);
        word += length;
    }
out:
    at_case_list_release(&cases);
    return status;
}
