/* The result of judging one output tensor of one variant on one case; what every report shows.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_RESULT_H
#define AT_RESULT_H

#include <stdint.h>

#include "attest/ledger.h"
#include "attest/run_mode.h"
#include "attest/status.h"

/* What a state means for its run; reports, exit codes and the exporter go by this alone. A new state is a line of
 * AT_STATE_LIST and the judge that gives it. */
enum at_state_class {
    AT_CLASS_GOOD,     /* judged and right */
    AT_CLASS_VACUOUS,  /* judged, and nothing is proved: fails the run with --strict */
    AT_CLASS_WRONG,    /* judged, fails the run */
    AT_CLASS_EXPECTED, /* judged, fails the run unless its case expects this state */
    AT_CLASS_BROKEN,   /* there is no result to judge, which fails the run */
    AT_CLASS_DECLINED  /* not judged, for a stated reason */
};

/* name, class, meaning */
/* clang-format off */
#define AT_STATE_LIST(X)                                                                                     \
    X(PASS,         GOOD,     "judged by a reference that could have failed it")                             \
    X(VACUOUS,      VACUOUS,  "within its limit, but the limit would have passed a wrong result too")        \
    X(WRONG,        WRONG,    "a value beyond its limit or off the model, or a non-finite class differs")    \
    X(DIRTY,        WRONG,    "wrote outside its outputs, left an element unwritten, or changed an input")   \
    X(RACY,         WRONG,    "a race or illegal synchronisation, or bits changed that were said to repeat") \
    X(MISPREDICTED, WRONG,    "the GPU's bits differ from the SIMT run's")                                   \
    X(LAUNDERED,    EXPECTED, "a NaN or a born Inf became an ordinary number")                               \
    X(OVERFLOWED,   EXPECTED, "overflowed exactly as its declared arithmetic does")                          \
    X(CRASHED,      BROKEN,   "the runner died")                                                             \
    X(HUNG,         BROKEN,   "the watchdog fired")                                                          \
    X(ERROR,        BROKEN,   "a call failed")                                                               \
    X(UNSUPPORTED,  DECLINED, "the variant's own supports() declined")                                       \
    X(SKIPPED,      DECLINED, "not run, for the reason given")                                               \
    X(IMPOSSIBLE,   WRONG,    "a time below what the bytes and operations of the case take on any hardware")
/* clang-format on */

enum at_state {
#define X(name, class, meaning) AT_STATE_##name,
    AT_STATE_LIST(X)
#undef X
        AT_STATE_COUNT
};
const char *at_state_name(enum at_state state);
const char *at_state_meaning(enum at_state state);
/* AT_CLASS_BROKEN for a state that this program does not know. */
enum at_state_class at_state_class(enum at_state state);
at_status at_state_parse(const char *name, enum at_state *state);
/* 1 when a result of this state fails the run; `expect`: the states its case expects, with commas ("" none). */
int at_state_fails(enum at_state state, const char *expect, int strict);

struct at_result;
/* Marks what a result does not have: no worst element, nothing counted. The rest is as it is. */
void at_result_begin(struct at_result *result);
/* Sets the cause. What is too long loses its middle: how it begins names the runner, and what a dying program says last
 * (the message of a Python exception) says why. */
void at_result_set_cause(struct at_result *result, const char *text);

enum { AT_HIST_BINS = 64, AT_RESULT_DECOYS = 32 };
/* err_hist bin i counts elements with log2(error/limit) in [i - 56, i - 55), i = 1 .. 62; bin 0: error 0 or
 * below; bin 63: at or beyond. So bins >= 56 are beyond the limit. */

/* Fate of one decoy: a letter in decoy_fate, decoys in the order of decoy_names. */
enum at_decoy_fate { AT_DECOY_INERT = 'i', AT_DECOY_REJECTED = 'r', AT_DECOY_PASSED = 'p' };

/* A claim whose limits are as many times those of f32 is named as a loose one (two bits). What a judge should see: a uniform
 * scale error of one in so many. */
enum { AT_LOOSE = 4, AT_SCALE_SEEN = 32 };

struct at_result {
    int64_t plan_index; /* position of the case x variant in the whole plan, the same in every shard */
    int tensor_index;   /* of the tensor in the operator's table; (plan_index, tensor_index) is the order of a run */
    char case_id[1024], role[32], expect[24];
    char op[48], family[64], variant[96], path[160], runner[64], tensor[32];
    char sha256[65];    /* of the variant's source file, "" if the runner does not say */
    char numerics[640]; /* at_numerics_format: what the variant declares on this problem */
    char format[8];     /* of the tensor */
    enum at_state state;
    char cause[384]; /* likely cause or reason, one line; "" for a plain PASS */
    int64_t total, compared, wrong, nan_got, nan_want, inf_got, inf_want;
    double err_max, err_rms, err_rel_l2; /* error = |got - exact| over finite pairs */
    double rms;                          /* of the exact result */
    uint64_t ulp_p50, ulp_p99, ulp_p999, ulp_max;
    double limit_median, limit_max, ratio_max; /* error/limit; 0/0 is 0; NaN where there is no limit */
    uint64_t err_hist[AT_HIST_BINS];
    int judged_by_limit, judged_by_model; /* which references decided */
    int within;                           /* all inside the limit */
    int64_t model_equal, model_compared; /* elements equal to (or within the interval of) the model; 0 of 0: no model */
    int model_exact;                     /* the model allows no deviation and every bit was equal */
    double aggregate_ratio; /* largest sum over errors / what roundings to nearest allow; NaN: not tested */
    double resolution;      /* smallest uniform scale error that would have been seen; NaN: none would */
    double looseness; /* median limit over that of f32 arithmetic in any order; NaN: a model judged, or there is none */
    int n_decoys;
    char decoy_fate[AT_RESULT_DECOYS + 1];
    char decoy_names[640]; /* comma-separated, in the order of decoy_fate */
    char required_inert[256];
    /* the worst element: flat index, its coordinates, values */
    int64_t worst_index, worst_at[4];
    int worst_rank;
    double worst_got, worst_want, worst_limit, worst_model;
    int64_t rerun_compared, rerun_different;
    int64_t predicted_compared, predicted_different; /* with the SIMT run of the same source */
    int64_t batch_compared, batch_different;         /* solo and permuted batch; 0 of 0: not checked */
    int64_t graph_compared, graph_different;         /* captured with one key, replayed; 0 of 0: not checked */
    int graph_other_path;                            /* the capture launched other kernels or grids */
    int has_ledger;
    struct at_ledger ledger; /* declared arithmetic where modelled, else the exact evaluation */
    int ledger_modelled;
    double p_zero_share;                         /* share of visible keys with p == 0; NaN when not attention */
    int kept;                                    /* the job's tensors are in /witness; journal only */
    double seconds;                              /* never archived */
    char repro[1400];                            /* the command that repeats it */
#define X(name, meaning) int64_t counter_##name; /* -1: not counted */
    AT_COUNTER_LIST(X)
#undef X
};

#endif
