/* The reference side of one case: exact values, limits, modelled values, and the decoys they are tried on.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_ANSWER_H
#define AT_ANSWER_H

#include "attest/op.h"

enum { AT_MAX_DECOYS = 32 };

/* Values of a corrupted result on the sampled rows only. */
struct at_decoy {
    const char *name, *meaning;
    double *value[AT_MAX_TENSORS]; /* sampled elements, rows in sample order */
    int counted[AT_MAX_TENSORS];   /* at_decoys_count() */
    int is_scaled;                 /* AT_DECOY_SCALED, which counts by other rules */
};

struct at_answer {
    const struct at_problem *problem; /* borrowed */
    int64_t rows;
    int n_outputs, outputs[AT_MAX_TENSORS];  /* tensor indices */
    int64_t count[AT_MAX_TENSORS];           /* elements of each output tensor */
    double *value[AT_MAX_TENSORS];           /* exact */
    void *bits[AT_MAX_TENSORS];              /* codes, of an operator that moves bits; NULL: none */
    unsigned char *computed[AT_MAX_TENSORS]; /* beside bits: 1 for elements without a code */
    struct at_ledger ledger;                 /* of the exact evaluation */
    int has_ledger;
    int wants_scaled;  /* the case requires AT_DECOY_SCALED */
    int fast_tier;     /* 1: exact values come from OpenBLAS, cross-checked */
    double fast_ratio; /* largest error/bound of that cross-check */

    /* Rows the decoys are tried on: all, or an even spread with each request's last row when that is too much. */
    int64_t n_sample, *sample;
    int64_t sample_count[AT_MAX_TENSORS];
    int n_decoys;
    struct at_decoy decoys[AT_MAX_DECOYS];
    int64_t decoy_split, decoy_splits, decoy_block; /* what the decoys were made for, of numerics; split -1: not yet */
    int decoy_exp;                                  /* and numerics->exp */
};

/* What depends on the variant's declared numerics. */
struct at_judgement {
    double *limit[AT_MAX_TENSORS]; /* +inf where the declared arithmetic has none */
    int has_model, model_is_part;  /* is_part: of some rows, which are finite as all are; the ledger stays empty */
    double *model[AT_MAX_TENSORS], *interval[AT_MAX_TENSORS];
    unsigned char *modelled[AT_MAX_TENSORS]; /* 1: the element has a modelled value; NULL: all have */
    /* Without a declared order, where inputs are not finite: values of the modelled run in one order, whose NaNs and
     * infinities are those of every order. NULL otherwise. */
    int has_classes;
    double *classes[AT_MAX_TENSORS];
    /* Without a declared order, where inputs are finite and some limit is +inf: the same, to tell the NaNs that follow an
     * overflow (inf - inf, inf * 0) from others. NULL otherwise. */
    double *overflow[AT_MAX_TENSORS];
    struct at_ledger ledger; /* of the modelled evaluation, whichever it was */
};

/* Evaluates the exact values of every output (fast tier when it is worth it, cross-checked on `seed`'s rows). */
at_status at_answer_open(const struct at_problem *problem, int threads, uint64_t seed, struct at_answer *answer);
void at_answer_close(struct at_answer *answer);

/* Limits and, where the numerics declare an order, modelled values: of all rows, or where `model_rows` is not 0 and modelling
 * all would take long, of so many rows drawn by `seed`, the last among them. */
at_status at_judgement_open(struct at_answer *answer, const struct at_numerics *numerics, int threads,
                            int64_t model_rows, uint64_t seed, struct at_judgement *judgement);
/* Limits and intervals times `factor`. */
void at_judgement_widen(const struct at_answer *answer, double factor, struct at_judgement *judgement);
void at_judgement_close(struct at_judgement *judgement);

/* Makes the decoys for a variant's split (kept while the split stays the same). */
at_status at_answer_decoys(struct at_answer *answer, const struct at_numerics *numerics, int threads);
/* Flat index into the whole output tensor of sampled element i (rows in sample order). */
int64_t at_sample_index(const struct at_answer *answer, int tensor, int64_t sample_row, int64_t within);

/* Evaluates one of op->evaluate/model/decoy over all rows on several threads, ledgers merged. */
enum at_evaluation { AT_EVALUATE_EXACT, AT_EVALUATE_MODEL };
at_status at_evaluate_rows(const struct at_problem *problem, const struct at_numerics *numerics,
                           enum at_evaluation what, int threads, struct at_eval *eval);

#endif
