/* Which fields of a declaration a case tests: would a kernel with another value of the field have been rejected on it?
 * SPDX-License-Identifier: Apache-2.0
 *
 * A declared order of arithmetic is a claim like any other, and rounding hides most of it: a case on which every
 * neighbour of a declaration gives the same bits says nothing about that field. So each neighbour is modelled as the
 * declaration is, and its values go to the comparison as if a kernel had left them. Nothing is launched. */
#ifndef AT_DECLARED_H
#define AT_DECLARED_H

#include "attest/op.h"
#include "verify/judge/neighbours.h"

/* How a claim of a declaration can be refuted. */
enum at_refuted {
    AT_REFUTED_NOT,      /* no claim about this operator's results, or one that gives others up (free_order) */
    AT_REFUTED_MODEL,    /* a neighbour's modelled values are rejected */
    AT_REFUTED_RELAUNCH, /* repeats: equal launches compared bit by bit */
    AT_REFUTED_BATCHES,  /* batch_invariant: parts of the batch compared with the whole */
    AT_REFUTED_POISON    /* tail: what stands in rows that no request owns changes from launch to launch */
};
enum at_refuted at_declared_refuted(const struct at_op *op, const struct at_numerics *declared, int field);

/* What one case says of one declaration; bit f: field f of the list. */
struct at_declared_test {
    uint64_t tested;   /* some neighbour, or the launches that the field speaks of, would have been rejected */
    uint64_t modelled; /* fields of which a neighbour has a model here: without one there is nothing to tell apart */
    /* Bit i: neighbour i of at_neighbours() has a model here; is rejected. */
    unsigned has_model[AT_FIELD_COUNT], rejected[AT_FIELD_COUNT];
};

/* The rows that are looked at: those that end requests first, then an even spread, until they cost `work` multiply-adds a
 * neighbour (a single row may cost more). `wanted`: fields to look at. Statuses of op->model for the declaration itself;
 * a declaration that does not fit the problem is AT_USAGE or AT_UNSUPPORTED. */
at_status at_declared_try(const struct at_problem *problem, const struct at_numerics *declared, uint64_t wanted,
                          double work, struct at_declared_test *test);

#endif
