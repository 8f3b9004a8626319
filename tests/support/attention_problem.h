/* Small random attention problems for tests: ragged requests, pages in shuffled order, poison where
 * nothing may be read.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Works for every operator whose first tensors are those of attest/attention.h; f32 parameter tensors are
 * found by name (sigma = 1, taps = the pooled taps of that sigma, gamma = 1). A test changes tensors and
 * params afterwards as it likes: everything the problem points to is writable memory of its own. */
#ifndef AT_TEST_ATTENTION_PROBLEM_H
#define AT_TEST_ATTENTION_PROBLEM_H

#include "attest/attention.h"

/* What stands in q, k and v, before the scale factors and the rounding to dtype. */
enum at_test_fill {
    AT_TEST_NORMAL,    /* N(0,1) */
    AT_TEST_SAME_SIGN, /* |N(0,1)| */
    AT_TEST_INTEGERS,  /* -3 .. 3 */
    AT_TEST_WIDE       /* N(0,1) times 2^-8 .. 2^8 */
};

/* Members left 0 mean: h, d, b 1; hk = h; page contiguous; taps 3; scales 1; dtype f64 is not allowed. */
struct at_test_shape {
    int b, h, hk, d, page, taps, causal;
    const int *sq, *sk; /* b values each, 0 allowed; NULL: drawn from 0 .. max_sq, max_sk */
    int max_sq, max_sk;
    enum at_format dtype; /* AT_F32, AT_F16 or AT_BF16 */
    enum at_test_fill fill;
    double q_scale, k_scale, v_scale;
};

struct at_test_problem {
    struct at_problem problem; /* outputs have data == NULL, but shape and format */
    void *memory;              /* owns everything the inputs point to */
};

/* Same seed, same shape, same operator: same bits. Slots that belong to no key hold NaN, unmapped block
 * table entries -1, and the pool has two pages more than are used. params: the defaults, scale = 1/sqrt(d)
 * as f32, causal from the shape. AT_NO_MEMORY, or AT_USAGE for a dtype that is no activation type. */
at_status at_test_attention_problem(const struct at_op *op, const struct at_test_shape *shape, uint64_t seed,
                                    struct at_test_problem *out);
void at_test_problem_release(struct at_test_problem *problem);

/* Element of the tensor called `name`; a name or index that does not exist aborts the program. */
double at_test_get(const struct at_problem *problem, const char *name, int64_t i);
void at_test_set(struct at_problem *problem, const char *name, int64_t i, double value);
/* Sets every element. */
void at_test_set_all(struct at_problem *problem, const char *name, double value);

/* An at_eval with arrays for every output, each element pre-set to AT_TEST_UNWRITTEN. */
#define AT_TEST_UNWRITTEN (-12345.6789)
struct at_test_eval {
    struct at_eval eval; /* add ledger and trace as wanted */
    double *memory;
};
at_status at_test_eval_init(const struct at_problem *problem, int want_limit, struct at_test_eval *out);
void at_test_eval_release(struct at_test_eval *eval);
/* Elements of output tensor i (0 where a size is 0). */
int64_t at_test_count(const struct at_problem *problem, int tensor);

/* A counter of random numbers: uniform 64 bits, uniform in [0, 1), standard normal, integer 0 .. n-1. */
struct at_test_random {
    uint64_t state;
};
uint64_t at_test_bits(struct at_test_random *random);
double at_test_uniform(struct at_test_random *random);
double at_test_normal(struct at_test_random *random);
int at_test_below(struct at_test_random *random, int n);

#endif
