/* What every report says of a result in the same words.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/report/report_text.h"

#include <math.h>
#include <string.h>

#include "attest/op.h"
#include "verify/report/report_families.h"
#include "verify/result/record.h"

static int has_word(const char *text, const char *word, size_t n) {
    while (*text) {
        size_t length = strcspn(text, " ");
        if (length == n && memcmp(text, word, n) == 0)
            return 1;
        text += length;
        text += strspn(text, " ");
    }
    return 0;
}

/* Appends those words of `from` whose presence in `in` is `wanted`. */
static void select_words(const char *from, const char *in, int wanted, char *text, size_t size) {
    size_t used = 0;
    text[0] = 0;
    while (*from) {
        size_t n = strcspn(from, " ");
        if (n && has_word(in, from, n) == wanted && used + n + 2 <= size) {
            if (used)
                text[used++] = ' ';
            memcpy(text + used, from, n);
            used += n;
            text[used] = 0;
        }
        from += n;
        from += strspn(from, " ");
    }
}

void at_case_common(const struct at_run_record *record, const struct at_family_rows *family, char *common,
                    size_t size) {
    char last[sizeof(((struct at_result *)0)->case_id)], kept[sizeof last];
    common[0] = 0;
    for (int64_t i = 0; i < family->n; i++) {
        const struct at_result *r = at_run_record_at(record, family->rows[i]);
        if (i && strcmp(last, r->case_id) == 0)
            continue;
        snprintf(kept, sizeof kept, "%s", i ? common : r->case_id);
        select_words(kept, r->case_id, 1, common, size);
        memcpy(last, r->case_id, sizeof last);
    }
}

void at_case_short(const char *case_id, const char *common, char *text, size_t size) {
    select_words(case_id, common, 0, text, size);
    if (!text[0])
        snprintf(text, size, "(as above)");
}

void at_result_decoys(const struct at_result *result, int *rejected, int *counted) {
    *rejected = *counted = 0;
    for (const char *fate = result->decoy_fate; *fate; fate++) {
        *rejected += *fate == AT_DECOY_REJECTED;
        *counted += *fate == AT_DECOY_REJECTED || *fate == AT_DECOY_PASSED;
    }
}

void at_result_decoys_of(const struct at_result *result, char fate, char *text, size_t size) {
    const char *name = result->decoy_names;
    size_t used = 0;
    text[0] = 0;
    for (const char *f = result->decoy_fate; *f && *name; f++) {
        size_t n = strcspn(name, ",");
        if (*f == fate && used + n + 3 <= size)
            used += (size_t)snprintf(text + used, size - used, "%s%.*s", used ? ", " : "", (int)n, name);
        name += n;
        name += *name == ',';
    }
}

double at_result_headroom(const struct at_result *result) {
    static const enum at_stage stages[] = { AT_STAGE_score, AT_STAGE_scaled, AT_STAGE_gate_in, AT_STAGE_qk_acc };
    double least = NAN;
    if (!result->has_ledger)
        return NAN;
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
        const struct at_ledger_row *row = &result->ledger.stage[stages[i]];
        if (row->count == 0)
            continue;
        const double bits = row->inf ? -INFINITY : at_ledger_headroom(row);
        if (!isnan(bits) && !(least <= bits))
            least = bits;
    }
    return least;
}

void at_result_worst(const struct at_result *result, char *text, size_t size) {
    const struct at_op *op = at_op_find(result->op);
    int tensor = op ? at_op_tensor_index(op, result->tensor) : -1;
    size_t used = (size_t)snprintf(text, size, "%s[", result->tensor);
    for (int i = 0; i < result->worst_rank && i < AT_MAX_RANK && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s %lld", i ? ", " : "",
                                 tensor < 0 ? "index" : at_dim_word(op, op->tensors[tensor].dims[i]),
                                 (long long)result->worst_at[i]);
    if (used < size)
        snprintf(text + used, size - used, "]");
}
