/* Probing problems: inputs of our own, what a variant left on them, and how far a declaration's model is from that.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_PROBE_H
#define AT_PROBE_H

#include "datasets/language/case.h"
#include "verify/runner/launch.h"

enum { AT_PROBE_ROWS = 512, AT_PROBES_MAX = 32 };

/* What a probe's inputs are. */
enum at_probe_kind {
    AT_PROBE_DRAWN,  /* as the case language draws them */
    AT_PROBE_RISING, /* attention: keys grow along the request, so that the maximum rises from step to step */
    AT_PROBE_CENTRED, /* attention: scores lower by the logarithm of the number of keys, so that the log-sum-exp is near 0 */
    AT_PROBE_LARGE,  /* both factors of a product, or q and k, so large that sums in f16 overflow now and then */
    AT_PROBE_QK,     /* attention: +M and -M among units in each q.k; a key's weight shows what survived */
    AT_PROBE_PV,     /* attention: weights equal; +M and -M among units down each column of V */
    AT_PROBE_PARTS,  /* the same over so many keys that partial results show */
    AT_PROBE_PRODUCT /* of matrices: +M and -M among units down each column of the second factor */
};

/* One probe of one variant. */
struct at_probe {
    const char *name;
    enum at_probe_kind kind;
    struct at_case_data data;
    struct at_outputs got;
    double *value[AT_MAX_TENSORS], *width[AT_MAX_TENSORS]; /* [elements of output t] of the model that is tried */
    int64_t n_rows, row[AT_PROBE_ROWS];                    /* that models are tried on */
};

/* How a variant is probed: what of the case language it takes. */
struct at_probe_layout {
    const struct at_family *family;
    enum at_format dtype;
    int64_t d, page, causal; /* attention */
    const char *more;        /* products: " out=f32"; rows: " gamma_per=tensor" */
};

/* The first layout that the variant takes, of dtype `only` (AT_FORMAT_COUNT: any). AT_UNSUPPORTED when it takes none. */
at_status at_probe_find_layout(struct at_runner *runner, int variant, enum at_format only,
                               struct at_probe_layout *layout);

/* A probe as planned. `size`: keys of a request, or products of an element; `b`: requests, or columns. */
struct at_probe_plan {
    const char *name;
    enum at_probe_kind kind;
    int b, size, rows; /* rows: that models are tried on, at most AT_PROBE_ROWS */
    const char *data;  /* what is drawn, before the kind changes it */
    int apart;         /* masks: terms that are not 0 are so far apart; 0: 1 */
    const char *line;  /* neither attention nor products: the case but for family and format */
};
/* The probes of a layout; one without a name ends them. */
const struct at_probe_plan *at_probe_plans(const struct at_probe_layout *layout);

/* Builds the inputs, runs the variant once with `order` (at_run_mode) and keeps the outputs. AT_UNSUPPORTED when it is declined or
 * fails. Release it in any case. */
at_status at_probe_open(struct at_runner *runner, int variant, const struct at_probe_layout *layout,
                        const struct at_probe_plan *plan, int64_t order, struct at_probe *probe);
void at_probe_release(struct at_probe *probe);
/* 1 when two runs of one problem left the same bits. */
int at_probe_same(const struct at_probe *a, const struct at_probe *b);

/* How far a model is from what a variant left. */
struct at_distance {
    double
        far; /* sum over elements of log2(1 + ulps outside the model's interval); 0: all bits are in it; infinite: no model */
    double width;           /* the same of the intervals' widths; 0: the model is one value everywhere */
    int64_t off, looked_at; /* elements outside; elements */
};
/* Adds the probe's elements to *distance, row by row, until `far` is past `enough`. A declaration without a model of this
 * problem makes it infinite. */
at_status at_probe_distance(struct at_probe *probe, const struct at_numerics *numerics, double enough,
                            struct at_distance *distance);

#endif
