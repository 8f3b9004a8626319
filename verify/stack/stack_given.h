/* Weights, inputs and parameters of a stack from a file of tensors, in the place of what would be drawn.
 * SPDX-License-Identifier: Apache-2.0
 *
 * The file is one that at_reader_open() reads (safetensors, npz, HDF5, a folder of npy). Names: FLOW for an input or weight outside of
 * the layers, layers.N.FLOW within; STEP.TENSOR, layers.N.STEP.TENSOR for a tensor of a step's operator that no flow feeds (alpha of
 * a norm, sigma of a gate; `attest help tensors FAMILY`); targets for what at_stack_loss_take() compares with. Numbers are rounded to
 * the format that the stack has, to nearest even; shapes may differ as long as there are as many elements. What the file lacks is
 * drawn; what the stack lacks is an error, as a misspelt weight would be drawn unnoticed. */
#ifndef AT_STACK_GIVEN_H
#define AT_STACK_GIVEN_H

#include "datasets/readers/reader.h"
#include "verify/stack/stack_values.h"

#define AT_STACK_TARGETS "targets"

struct at_stack_given {
    const char *path; /* borrowed */
    struct at_reader *reader;
    int64_t drawn; /* inputs and weights that the file lacks, each layer's its own */
    /* Of steps that have run: tensors that no flow feeds and the file lacks, so that their case made them. */
    int64_t parameters;
};

/* AT_USAGE for a tensor whose name means nothing in this plan, with the nearest that does. */
at_status at_stack_given_open(const char *path, const struct at_stack_plan *plan, struct at_stack_given *given);
void at_stack_given_close(struct at_stack_given *given);

/* Inputs and weights of a part of the file in a layer (-1: outside), those that have been drawn; and parameters of a step's problem, which
 * its case has made. AT_USAGE for another number of elements or a tensor that is none of numbers. */
at_status at_stack_given_flows(struct at_stack_given *given, const struct at_stack_plan *plan, enum at_stack_part part,
                               int64_t layer, struct at_stack_value *values);
at_status at_stack_given_step(struct at_stack_given *given, const struct at_stack_planned *step, int64_t layer,
                              struct at_problem *problem);

#endif
