/* The operator descriptor: everything the verifier knows of an operator, as one table.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A folder reference/<name>/ defines `const struct at_op at_op_<name>`; the build finds it by its
 * path and writes the table that at_op_find() searches. */
#ifndef AT_OP_H
#define AT_OP_H

#include <stddef.h>

#include "attest/domain.h"
#include "attest/ledger.h"
#include "attest/numerics.h"
#include "attest/problem.h"

/* ---- sizes and parameters ---- */

/* A dimension of a tensor: a shared size, one more than b, or AT_DIM_OWN(i): entry i of the operator's own table. */
enum at_dim {
    AT_DIM_NONE,
#define X(name, meaning) AT_DIM_##name,
    AT_SIZE_LIST(X)
#undef X
        AT_DIM_b_plus_1,
    AT_DIM_OWN_FIRST
};
#define AT_DIM_OWN(i) ((enum at_dim)(AT_DIM_OWN_FIRST + (i)))

enum at_scalar_type {
    AT_SCALAR_SIZE,   /* int64_t, 0 or more */
    AT_SCALAR_INT,    /* int32_t */
    AT_SCALAR_FLOAT,  /* float */
    AT_SCALAR_CHOICE, /* int32_t: i stands for text(i) */
    AT_SCALAR_SET,    /* int32_t: bit i stands for text(i) */
    AT_SCALAR_FORMAT, /* int32_t: enum at_format, one of `formats` */
    AT_SCALAR_FIXED   /* no field, a length of tensors that never changes: `value` */
};

/* A size or parameter. Its value lies `place` bytes into struct at_problem. With a `key` a case line may set it:
 * NAME=number, or the words of text(), those of a set with colons between. */
struct at_scalar {
    const char *name; /* on the wire and in messages */
    enum at_scalar_type type;
    int place;    /* AT_OWN_PLACE */
    double value; /* default */
    const char *meaning;
    const char *key;            /* of the case language; NULL: no case sets it */
    double least, most;         /* what a case may say; both 0 for a float: anything finite */
    const char *(*text)(int i); /* NULL past the end */
    unsigned formats;           /* bit f: enum at_format f */
    const char *word;           /* sizes: what one place along it is called: "row" */
    int quiet;                  /* a case's id has it only where its line says it */
    /* Parameters: runners are older than it. A value that is not the default goes to those alone that say they take it
     * (kernels/runner/PROTOCOL.md, `takes`). */
    int announced;
};
#define AT_OWN_PLACE(type, member) ((int)(offsetof(struct at_problem, own) + offsetof(struct type, member)))

/* The shared sizes and parameters as one row of fields, sizes first; an operator says which it uses by their bits. */
enum at_shared_index {
#define X(name, meaning) AT_SHARED_##name,
    AT_SIZE_LIST(X)
#undef X
#define X(type, name, value, meaning) AT_SHARED_##name,
        AT_PARAM_LIST(X)
#undef X
            AT_SHARED_COUNT
};
#define AT_USES(name) ((uint64_t)1 << AT_SHARED_##name)

/* ---- tensors ---- */

/* A field of struct at_numerics as a bit; an order of the terms of q.k, of any dot product of the operator's rows. */
#define AT_DECLARES(field) (UINT64_C(1) << AT_FIELD_##field)
#define AT_DECLARES_QK \
    (AT_DECLARES(qk_unit) | AT_DECLARES(qk_lanes) | AT_DECLARES(qk_run) | AT_DECLARES(qk_tree) | AT_DECLARES(guard))

enum at_role { AT_IN, AT_OUT, AT_INOUT };
/* The format of a tensor: the problem's activation type, fixed, or what op->own_format says. */
enum at_format_rule { AT_FORMAT_DTYPE, AT_FORMAT_F32, AT_FORMAT_I32, AT_FORMAT_OWN, AT_FORMAT_F64 };

/* What a tensor holds, which decides how a case fills it. NONE: outputs, and inputs that nothing fills. */
enum at_fill {
    AT_FILL_NONE,
    AT_FILL_QUERIES, /* of requests; keys and values lie in slots, those of nobody hold NaN */
    AT_FILL_KEYS,
    AT_FILL_VALUES,
    AT_FILL_QUERY_START, /* indices of requests, by attention.h */
    AT_FILL_SEQ_LENS,
    AT_FILL_KEY_START, /* absent when page > 0 */
    AT_FILL_BLOCK_TABLE,
    AT_FILL_SLOT_MAPPING, /* slot of each new token, -1 for padding */
    AT_FILL_POSITIONS,    /* place of each new token in its request, 0 for padding */
    AT_FILL_ROTARY,       /* cosines and sines of positions (rotary.h), of the operator's own `base` */
    AT_FILL_SIGMA,        /* parameters of heads, by the keys of their names */
    AT_FILL_TAPS,
    AT_FILL_GAMMA,
    AT_FILL_DECAY,    /* slopes of heads: by the key slope, or as AT_FILL_SLOPE; exact data: 0, a decay of exactly 1 */
    AT_FILL_ALIBI,    /* slopes of heads: ALiBi's, times the operator's own `alibi`; absent where that is 0 */
    AT_FILL_ROWS,     /* activations; a row is the last dimension */
    AT_FILL_RESIDUAL, /* added to the first tensor of AT_FILL_ROWS */
    AT_FILL_SLOPE,    /* weights of channels: 0.5 to 2, */
    AT_FILL_FACTOR,   /* about 1 with both signs, */
    AT_FILL_SHIFT,    /* about 0 */
    AT_FILL_LEFT,     /* rows of the two factors of a product */
    AT_FILL_RIGHT,
    AT_FILL_RIGHT_COLUMNS, /* the second factor, a row of AT_FILL_RIGHT down each column; absent where that one is there */
    AT_FILL_UNIFORM,       /* numbers of [0, 1), whole multiples of 2^-24; the ends now and then */
    AT_FILL_ELEMENTS,      /* argument of an elementwise function */
    AT_FILL_PATTERN_A,     /* codes for one tensor-core instruction */
    AT_FILL_PATTERN_B,
    AT_FILL_PATTERN_C,
    AT_FILL_BIAS,     /* one a column of a product: to 8 either way; exact data: integers */
    AT_FILL_PARAMETER /* one element: the operator's own parameter of the tensor's name */
};

struct at_tensor_spec {
    const char *name;
    enum at_role role;
    enum at_format_rule format;
    enum at_dim dims[AT_MAX_RANK]; /* AT_DIM_NONE ends the list */
    const char *meaning;
    enum at_fill fill;
    int optional; /* an output that a problem may lack: then it has no elements, and nothing is judged */
};

/* What an evaluation of rows is asked for and where it goes. Arrays are indexed by the operator's
 * tensor index and hold the whole output tensor, flat; an evaluation of rows [row0, row1) writes
 * those rows' elements only, so that row ranges can run on different threads. NULL: not wanted. */
struct at_eval {
    double *value[AT_MAX_TENSORS];
    double *limit[AT_MAX_TENSORS];
    struct at_ledger *ledger;
    const void *prepared; /* what the operator's prepare() made of this problem, or NULL */
    /* Intermediates of a row (attention): n values over its visible keys, for the stages score,
     * scaled, gate_in and p. Called in ascending key order, one call per stage and row. */
    void (*trace)(void *context, int64_t row, enum at_stage stage, int64_t n, const double *values);
    void *trace_context;
};

/* What the roundings to nearest of an operator's intermediates can do to one output, as far as the declaration names
 * them. Row by row: what is left out, or said too little of, stays part of the limit. An error of rounding r moves element
 * i by at most unit_ri; x is the exact output. */
enum at_moment { AT_MOMENT_SLOPE, AT_MOMENT_MEAN, AT_MOMENT_COUNT }; /* weight of element i: x_i; 1 */
struct at_roundings {
    int tensor;
    const double *exact; /* [elements] x */
    double *share;       /* [elements] sum over r of unit_ri: at most what the element's limit charges for them */
    double u;            /* unit roundoff of those roundings; 0: there are none */
    /* Called for each rounding r that is not known to be exact: `value` (not 0) is rounded, and moved[m] is
     * sum_i weight_i unit_ri, signs kept. */
    void (*rounding)(void *context, int64_t row, double value, const double moved[AT_MOMENT_COUNT]);
    void *context;
};

/* ---- operators ---- */

/* What kind of work it is: which data families suit it, what its automatic scale is. */
enum at_kind {
    AT_KIND_ROWS,      /* independent rows of activations: norms and their like */
    AT_KIND_ATTENTION, /* requests of queries and keys; the first tensors are those of attention.h */
    AT_KIND_COPY,      /* requests and their slots, nothing computed */
    AT_KIND_PRODUCT,   /* of two matrices */
    AT_KIND_ELEMENTS,  /* a function of one argument */
    AT_KIND_CHOICE,    /* independent rows of logits, of each of which one place is chosen */
    AT_KIND_PATTERNS   /* operands of one tensor-core instruction, its parameter `instruction`; a row each */
};

/* How the scores of an attention become the weights of its values. */
enum at_weights { AT_WEIGHTS_NONE, AT_WEIGHTS_GATE, AT_WEIGHTS_SOFTMAX };

/* A way of being wrong that the comparison must be able to reject. */
struct at_decoy_spec {
    const char *name, *meaning;
};

struct at_op {
    const char *name, *summary, *source;
    const struct at_tensor_spec *tensors;
    int n_tensors;
    const struct at_decoy_spec *decoys; /* the operator's own, beside the general ones of verify */
    int n_decoys;

    enum at_kind kind;
    enum at_weights weights;
    uint64_t uses;               /* AT_USES of each shared size and parameter */
    const struct at_scalar *own; /* its own table */
    int n_own;
    /* Keys of its cases in the order of a case's id, NULL at the end: those of the case language (attest list --help
     * has them) and those of its own table. */
    const char *const *keys;
    const struct at_factor *const *domain; /* what its cases may differ in (domain.h), NULL at the end */
    unsigned dtypes;                       /* bit f: enum at_format f; 0: f32, f16 and bf16 */
    /* NULL: none. Attention: what a kernel of scale q.k alone does not compute of this problem, as such kernels decline it. */
    const char *(*beyond_scale)(const struct at_problem *problem);
    int has_ledger;        /* evaluations fill a ledger worth keeping */
    int has_trace;         /* and call at_eval.trace */
    int takes_mean_square; /* rows: exact data make it a square */
    uint64_t declares;     /* AT_DECLARES of each field of a declaration that its model reads */
    /* NULL: all of them. Those among them that it reads on this problem. */
    uint64_t (*declares_on)(const struct at_problem *problem);

    /* NULL: nothing to add. Sets sizes, shared or own, and own parameters that follow from others once a case's keys are
     * read; `given` says which of its own table the case set: bit i, entry i. */
    void (*complete)(struct at_problem *problem, unsigned given);
    /* Of tensors with AT_FORMAT_OWN. */
    enum at_format (*own_format)(const struct at_problem *problem, int tensor);

    /* Is this a problem of the operator: sizes, parameters, shapes, contents of index tensors.
     * AT_USAGE with what was found and what is wanted. Every other function assumes it passed. */
    at_status (*check)(const struct at_problem *problem);
    /* Independent rows: (token, query head) for attention, in that order; token for norms. */
    int64_t (*rows)(const struct at_problem *problem);
    /* The elements of output tensor `tensor` that belong to `row`: [*first, *first + *count). */
    void (*row_span)(const struct at_problem *problem, int tensor, int64_t row, int64_t *first, int64_t *count);
    /* Multiply-adds of one row, for planning and progress. */
    double (*row_work)(const struct at_problem *problem, int64_t row);

    /* Exact value in double of the operator on the stored inputs, not rounded to the output format.
     * With `limit` arrays: also the per-element limit of |kernel - value| for a kernel with these
     * numerics, rounding of the output and the reference's own error included; +inf where the
     * declared arithmetic has no limit (an f16 accumulator that can overflow: class RANGE).
     * `numerics` may be NULL when no limit is wanted. Non-finite values propagate. */
    at_status (*evaluate)(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0,
                          int64_t row1, struct at_eval *eval);
    /* The value a kernel with these numerics must produce, rounded to the output's format, through
     * reference/tensor_core and never through kernel source. `limit` arrays receive the deviation
     * still allowed (0: to the bit). AT_UNSUPPORTED when the numerics declare no order. The ledger
     * is that of the declared arithmetic. */
    at_status (*model)(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0, int64_t row1,
                       struct at_eval *eval);
    /* The exact value of the operator made wrong in way `decoy` (index into decoys). Elements the
     * fault does not touch equal evaluate()'s. */
    at_status (*decoy)(const struct at_problem *problem, const struct at_numerics *numerics, int decoy, int64_t row0,
                       int64_t row1, struct at_eval *eval);

    /* NULL: nothing is gained. What evaluate, model and decoy decode at every call, decoded once for a caller of many, who
     * hands it back as at_eval.prepared as long as the inputs stay as they are; freed with free(). NULL where there is no
     * memory: they work without. */
    void *(*prepare)(const struct at_problem *problem);

    /* NULL: the result is values. Of an operator that moves bits (AT_KIND_COPY, and others in part): the codes of output
     * tensor `tensor`, in its format, payloads of NaNs and signs of zeros as they must be. computed[i], 0 before, becomes 1
     * where element i is computed and has no code to ask for. */
    void (*bits)(const struct at_problem *problem, int tensor, void *codes, unsigned char *computed);

    /* NULL: any value within a limit is right. Where right values are some of those within it: 1 when `got`, a finite value
     * within the limit of element `element`, is one of them; `modelled`: within what is left of the declared arithmetic. */
    int (*admits)(const struct at_problem *problem, const struct at_numerics *numerics, int modelled, int tensor,
                  int64_t element, double got);

    /* ---- errors that average out; NULL: no intermediate is known to be rounded to nearest ----
     * Fills out->u, and for rows [row0, row1) out->share, which is 0 before; calls out->rounding. */
    at_status (*roundings)(const struct at_problem *problem, const struct at_numerics *numerics, int64_t row0,
                           int64_t row1, struct at_roundings *out);

    /* ---- batches: does a result depend on what else is in the launch? ----
     * The dimension along which a problem is cut into units that do not know of each other; AT_DIM_NONE: it is not cut.
     * Without functions a unit is a place along `batch`, in every tensor that begins with that dimension. */
    enum at_dim batch;
    /* NULL: `batch` is n, no more. Sizes of the part that holds units[0..n); then those of its tensors that the rule does
     * not give are filled, and their bits returned. */
    void (*part_sizes)(const struct at_problem *problem, const int64_t *units, int64_t n, struct at_problem *part);
    unsigned (*part_fill)(const struct at_problem *problem, const int64_t *units, int64_t n, struct at_problem *part);
    /* Rows that belong to a unit; NULL: row u to unit u. No rows: nothing to compare. */
    void (*unit_rows)(const struct at_problem *problem, int64_t unit, int64_t *first, int64_t *count);

    /* ---- rows that belong together; NULL: none do ----
     * The request that a row belongs to, and the row of the same token and the next head. */
    int64_t (*request_of_row)(const struct at_problem *problem, int64_t row);
    int64_t (*next_head_row)(const struct at_problem *problem, int64_t row);

    /* Are the values of inputs that count all finite? NULL: all of every input counts. */
    int (*inputs_finite)(const struct at_problem *problem);

    /* ---- what a time is set against; NULL: nothing ----
     * Floating-point operations, scores computed, and elements of a tensor that a launch has to move at least
     * (NULL: all of it). */
    double (*flops)(const struct at_problem *problem);
    double (*scores)(const struct at_problem *problem);
    int64_t (*moved)(const struct at_problem *problem, int tensor);
};

/* The operator of that name, NULL if none; at_op_count()/at_op_at() walk the table. */
const struct at_op *at_op_find(const char *name);
int at_op_count(void);
const struct at_op *at_op_at(int i);
/* What its prepare() makes of a problem, NULL if it has none; for the caller to free(). */
void *at_op_prepare(const struct at_problem *problem);

/* Index of the tensor called `name` in op->tensors, -1 if none; of the first that is filled so. */
int at_op_tensor_index(const struct at_op *op, const char *name);
int at_op_filled_index(const struct at_op *op, enum at_fill fill);
/* The formats that activations may have: bits. */
unsigned at_op_dtypes(const struct at_op *op);

/* One of the shared sizes and parameters. */
const struct at_scalar *at_shared_scalar(enum at_shared_index which);
/* The sizes and parameters of an operator: the shared ones it uses, then its own; NULL past the end. */
const struct at_scalar *at_op_scalar_at(const struct at_op *op, int i);
/* By name, NULL if none. */
const struct at_scalar *at_op_scalar(const struct at_op *op, const char *name);
int at_scalar_is_size(const struct at_scalar *field);
/* A field's value; floats are exact in double. */
double at_scalar_get(const struct at_problem *problem, const struct at_scalar *field);
void at_scalar_set(struct at_problem *problem, const struct at_scalar *field, double value);
/* Defaults of all sizes and parameters, shared and the operator's own; the rest of *problem is 0. */
void at_problem_init(struct at_problem *problem, const struct at_op *op, enum at_format dtype);

/* Fills problem->tensors[i] shape and format from the operator's table and problem's sizes; data stays
 * as it is. A tensor with a dimension of size 0 gets rank 0 and counts 0 elements. */
void at_problem_shape(struct at_problem *problem);
/* `count` places along the first dimension, from `from` of src to `to` of dst. */
void at_tensor_copy_rows(struct at_tensor *dst, int64_t to, const struct at_tensor *src, int64_t from, int64_t count);
/* Are elements [first, first + count) all finite? */
int at_tensor_finite(const struct at_tensor *tensor, int64_t first, int64_t count);
/* Length of a dimension of the problem's operator. */
int64_t at_dim_size(const struct at_problem *problem, enum at_dim dim);
void at_dim_set(struct at_problem *problem, enum at_dim dim, int64_t size);
/* What one place along a dimension is called: "token", "head". Different for the dimensions of one operator. */
const char *at_dim_word(const struct at_op *op, enum at_dim dim);

/* A family of kernels: kernels/families.txt maps it to its operator and constraint. */
struct at_family {
    const char *name, *op;
    int decode; /* constraint sq=1: one query per request */
};
const struct at_family *at_family_find(const char *name);
int at_family_count(void);
const struct at_family *at_family_at(int i);

#endif
