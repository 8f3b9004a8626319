/* A record with every kind of value in it, the same on every call: what tests of files and reports write.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_SAMPLE_RECORD_H
#define AT_SAMPLE_RECORD_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verify/result/record.h"

static inline void at_sample_ledger(struct at_result *r, int i) {
    r->has_ledger = 1;
    r->ledger_modelled = i % 2;
    for (int s = 0; s < AT_STAGE_COUNT; s++) {
        struct at_ledger_row *row = &r->ledger.stage[s];
        row->count = 1000u + (uint64_t)s;
        row->zero = 3;
        row->max_abs = 0.1 * (s + 1) * (i + 1);
        row->has_first = s == AT_STAGE_qk_acc;
        if (row->has_first) {
            row->inf = 2;
            row->to_inf = UINT64_MAX;
            row->first = (struct at_place){ .b = 1, .h = 2, .q = 3, .k = 4, .step = -1 };
        }
    }
    r->ledger.inf_made = 7;
    r->ledger.clamped_low = 1u << 20;
    r->ledger.has_laundered = i % 3 == 0;
    if (r->ledger.has_laundered) {
        r->ledger.laundered = 5;
        r->ledger.first_laundered = (struct at_place){ .b = 0, .h = 1, .q = 0, .k = 9, .step = 12 };
    }
}

static inline void at_sample_numbers(struct at_result *r, int i) {
    r->total = r->compared = 2048;
    r->err_max = 1.0 / 3.0 * (i + 1);
    r->err_rms = 4.9406564584124654e-324;
    r->err_rel_l2 = i % 4 == 1 ? INFINITY : 1e-3;
    r->rms = -0.0;
    r->ulp_p50 = 0;
    r->ulp_p99 = 2;
    r->ulp_p999 = (uint64_t)INT64_MAX + 1;
    r->ulp_max = i % 2 ? UINT64_MAX : 3;
    r->limit_median = 0.004;
    r->limit_max = 0.008;
    r->ratio_max = i % 5 == 4 ? NAN : 0.25 + 0.01 * i;
    for (int b = 0; b < AT_HIST_BINS; b++)
        r->err_hist[b] = (uint64_t)b * (uint64_t)i;
    r->judged_by_limit = 1;
    r->judged_by_model = r->model_exact = i % 2;
    r->within = 1;
    r->model_equal = r->model_compared = i % 2 ? 2048 : 0;
    r->worst_index = i % 4 == 3 ? -1 : 17;
    r->worst_rank = 3;
    for (int a = 0; a < 4; a++)
        r->worst_at[a] = a < 3 ? a + 3 : -1;
    r->worst_got = 0.5;
    r->worst_want = 0.25;
    r->worst_limit = 1.2e-3;
    r->worst_model = NAN;
    r->rerun_compared = 2048;
    r->p_zero_share = i % 2 ? 0.698 : NAN;
    r->seconds = 0.125 * i;
}

/* Result i: states in turn, ten plan positions a case pair, two tensors each. */
static inline void at_sample_result(struct at_result *r, int i) {
    static const char *const variants[] = { "00_blas_f32", "00_blas_p_bf16", "00_f16_accumulate" };
    memset(r, 0, sizeof *r);
    at_result_begin(r);
    if (i >= 8) { /* the first eight are in the golden file of version 1, which had no such columns */
        r->graph_compared = 2048;
        r->graph_different = i;
        r->graph_other_path = i % 2;
        r->counter_global_sectors = i * 1000003LL;
        r->counter_lane_accesses = i % 3;
    }
    r->plan_index = i / 2;
    r->tensor_index = i % 2 ? 8 : 7;
    int c = (i / 2) / 3;
    snprintf(r->case_id, sizeof r->case_id,
             "asynct_decode b=2 h=8 hk=4 sq=1 sk=%d/17/256 d=128 page=16 dtype=bf16 data=normal seed=%d", 100 + c, c);
    snprintf(r->role, sizeof r->role, "smoke");
    snprintf(r->op, sizeof r->op, "asynct_attention");
    snprintf(r->family, sizeof r->family, "asynct_decode");
    snprintf(r->variant, sizeof r->variant, "%s", variants[(i / 2) % 3]);
    snprintf(r->path, sizeof r->path, "kernels/asynct_decode/%s.c", r->variant);
    snprintf(r->runner, sizeof r->runner, "cpu");
    snprintf(r->sha256, sizeof r->sha256, "%064d", (i / 2) % 3);
    snprintf(r->numerics, sizeof r->numerics, "free_order=0 qk_unit=f32_fma p=%s pv_unit=f32",
             (i / 2) % 3 == 1 ? "bf16" : "f32");
    snprintf(r->tensor, sizeof r->tensor, "%s", i % 2 ? "lse" : "out");
    snprintf(r->format, sizeof r->format, "bf16");
    r->state = (enum at_state)(i % AT_STATE_COUNT);
    if (r->state != AT_STATE_PASS)
        snprintf(r->cause, sizeof r->cause, "cause of \xc3\xbc \"%d\" & <more>\ttab \x1b[31m", i);
    if (r->state == AT_STATE_WRONG)
        r->wrong = 9;
    r->n_decoys = 3;
    snprintf(r->decoy_fate, sizeof r->decoy_fate, "rip");
    snprintf(r->decoy_names, sizeof r->decoy_names, "zeros,sign,last_key");
    snprintf(r->required_inert, sizeof r->required_inert, "%s", i % 7 == 3 ? "halo" : "");
    at_sample_numbers(r, i);
    if (i % 2 == 0)
        at_sample_ledger(r, i);
    snprintf(r->repro, sizeof r->repro, "attest replay '%s/%s %s'", r->family, r->variant, r->case_id);
}

/* A record of n results. 1 on success; release with at_run_record_release(). */
static inline int at_sample_record(struct at_run_record *record, int n) {
    at_run_record_init(record);
    record->request = strdup("{\"cases\":\"smoke:*\",\"cases_hash\":\"0123456789abcdef\",\"seed\":1}");
    record->provenance = strdup("{\"blas\":\"OpenBLAS 0.3.21\",\"commit\":\"abc\",\"environment\":{\"denormals\":true},"
                                "\"version\":\"1.0.0\"}");
    struct at_result *r = malloc(sizeof *r);
    int ok = r && record->request && record->provenance;
    for (int i = 0; i < n && ok; i++) {
        at_sample_result(r, i);
        ok = at_run_record_add(record, r) == AT_OK;
    }
    free(r);
    return ok;
}

#endif
