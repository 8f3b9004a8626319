/* Cross entropy of logits, in double.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/stack/stack_loss.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* log sum exp less the logit of what was right. NaN where one of the row is; +inf where what was right has -inf. */
static double cross_entropy(const double *logits, int64_t n, int32_t right) {
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < n; i++)
        most = logits[i] > most ? logits[i] : most;
    for (int64_t i = 0; i < n; i++)
        sum += exp(logits[i] - most);
    return most + log(sum) - logits[right];
}

/* Losses of a window's tokens added up. */
struct window {
    double kernel, exact;
    int64_t tokens, not_finite;
};

static void add_window(const struct at_stack_loss *loss, enum at_format format, const struct at_stack_value *value,
                       const int32_t *targets, int64_t first, int64_t n, double *row, struct window *w) {
    *w = (struct window){ 0 };
    for (int64_t token = first; token < first + n; token++) {
        const int64_t at = token * loss->vocabulary;
        if (targets[token] < 0)
            continue;
        for (int64_t i = 0; i < loss->vocabulary; i++)
            row[i] = at_load(format, value->stored, (size_t)(at + i));
        const double kernel = cross_entropy(row, loss->vocabulary, targets[token]);
        const double exact = cross_entropy(value->exact + at, loss->vocabulary, targets[token]);
        if (!isfinite(kernel) || !isfinite(exact)) {
            w->not_finite++;
            continue;
        }
        w->kernel += kernel;
        w->exact += exact;
        w->tokens++;
    }
}

/* Means over all tokens; of the windows' mean differences the standard error of their mean. */
static at_status sum_up(struct at_stack_loss *loss, enum at_format format, const struct at_stack_value *value,
                        const int32_t *targets, int64_t length) {
    double *row = malloc(((size_t)loss->vocabulary + 1) * sizeof *row);
    double kernel = 0, exact = 0, mean = 0, squares = 0;
    int64_t n = 0;
    if (!row)
        return AT_FAIL(AT_NO_MEMORY, "no memory for logits");
    for (int64_t i = 0; i < loss->windows; i++) {
        struct window w;
        add_window(loss, format, value, targets, i * length, length, row, &w);
        loss->not_finite += w.not_finite;
        if (!w.tokens)
            continue;
        kernel += w.kernel;
        exact += w.exact;
        loss->tokens += w.tokens;
        const double difference = (w.kernel - w.exact) / (double)w.tokens, off = difference - mean;
        mean += off / (double)++n;
        squares += off * (difference - mean);
    }
    free(row);
    loss->kernel = kernel / (double)loss->tokens; /* NaN where no token has a loss */
    loss->exact = exact / (double)loss->tokens;
    loss->difference = (kernel - exact) / (double)loss->tokens;
    loss->standard_error = n > 1 ? sqrt(squares / (double)(n - 1) / (double)n) : (double)NAN;
    return AT_OK;
}

static at_status check_targets(const struct at_stack_given *given, const struct at_stack_loss *loss,
                               const int32_t *targets, int64_t n) {
    int64_t meant = 0;
    for (int64_t i = 0; i < n; i++) {
        if (targets[i] < -1 || targets[i] >= loss->vocabulary)
            return AT_FAIL(AT_USAGE, "%s: %s has %" PRId32 " at %" PRId64 ", wanted -1 (none) to %" PRId64, given->path,
                           AT_STACK_TARGETS, targets[i], i, loss->vocabulary - 1);
        meant += targets[i] >= 0;
    }
    return meant ? AT_OK : AT_FAIL(AT_USAGE, "%s: %s has no class at all", given->path, AT_STACK_TARGETS);
}

/* *targets: owned by the caller; *length: of a window. */
static at_status load_targets(const struct at_stack_given *given, const struct at_stack_flow *flow,
                              struct at_stack_loss *loss, int32_t **targets, int64_t *length) {
    const int at = at_reader_find(given->reader, AT_STACK_TARGETS);
    const struct at_file_tensor *file = at < 0 ? NULL : at_reader_tensor(given->reader, at);
    const int64_t elements = at_tensor_count(&flow->shape);
    *loss = (struct at_stack_loss){ .windows = 1 };
    memcpy(loss->flow, flow->name, sizeof loss->flow);
    if (!file || file->format != AT_I32 || !file->supported || file->rank < 1 || file->rank > 2)
        return AT_FAIL(AT_USAGE, "%s: found no %s of i32 [windows, tokens], which --loss wants", given->path,
                       AT_STACK_TARGETS);
    loss->vocabulary = flow->shape.rank > 1 ? flow->shape.shape[flow->shape.rank - 1] : 0;
    if (loss->vocabulary < 2 || file->count < 1 || file->count != elements / loss->vocabulary)
        return AT_FAIL(AT_USAGE,
                       "%s: %" PRId64 " %s, and %s has %" PRId64 " elements in rows of %" PRId64
                       ": wanted a row of logits for each",
                       given->path, file->count, AT_STACK_TARGETS, flow->name, elements, loss->vocabulary);
    loss->windows = file->rank == 2 ? file->shape[0] : 1;
    *length = file->count / loss->windows;
    *targets = malloc((size_t)file->count * sizeof **targets);
    if (!*targets)
        return AT_FAIL(AT_NO_MEMORY, "no memory for %s", AT_STACK_TARGETS);
    AT_TRY(at_reader_read(given->reader, at, 0, file->count, *targets));
    return check_targets(given, loss, *targets, file->count);
}

at_status at_stack_loss_check(const struct at_stack_given *given, const struct at_stack_flow *flow) {
    struct at_stack_loss loss;
    int32_t *targets = NULL;
    int64_t length;
    const at_status status = load_targets(given, flow, &loss, &targets, &length);
    free(targets);
    return status;
}

at_status at_stack_loss_take(const struct at_stack_given *given, const struct at_stack_flow *flow,
                             const struct at_stack_value *value, struct at_stack_loss *loss) {
    int32_t *targets = NULL;
    int64_t length;
    at_status status = load_targets(given, flow, loss, &targets, &length);
    if (status == AT_OK)
        status = sum_up(loss, flow->shape.format, value, targets, length);
    free(targets);
    return status;
}

void at_stack_loss_put(const struct at_stack_loss *loss, FILE *out) {
    fprintf(out, "loss of %s: %" PRId64 " tokens of %" PRId64 " windows", loss->flow, loss->tokens, loss->windows);
    if (loss->tokens)
        fprintf(out, ", nats a token: %.6f by kernels, %.6f in double, %+.2e", loss->kernel, loss->exact,
                loss->difference);
    if (isfinite(loss->standard_error))
        fprintf(out, " (standard error %.1e over windows)", loss->standard_error);
    if (loss->not_finite)
        fprintf(out, "; %" PRId64 " tokens have none that is a number", loss->not_finite);
    fputc('\n', out);
}
