/* A problem as attest_launch.h has it, and the calls with it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/runner/so_plain.h"

#include "kernels/runner/attest_launch.h"

enum { NUMBERS = 128 };

struct described {
    struct attest_launch launch;
    struct attest_tensor tensors[AT_MAX_TENSORS];
    int64_t stride[AT_MAX_TENSORS][AT_MAX_RANK];
    struct attest_number numbers[NUMBERS];
};

static void describe_tensors(const struct at_problem *problem, struct described *d) {
    for (int i = 0; i < problem->op->n_tensors; i++) {
        const struct at_tensor *from = &problem->tensors[i];
        const int n = d->launch.n_tensors;
        int64_t step = 1;
        if (!from->data)
            continue;
        for (int k = from->rank - 1; k >= 0; k--) {
            d->stride[n][k] = step;
            step *= from->shape[k];
        }
        d->tensors[d->launch.n_tensors++] = (struct attest_tensor){ .name = problem->op->tensors[i].name,
                                                                    .format = at_format_info(from->format)->name,
                                                                    .role = (int32_t)problem->op->tensors[i].role,
                                                                    .rank = from->rank,
                                                                    .shape = from->shape,
                                                                    .stride = d->stride[n],
                                                                    .data = from->data };
    }
}

static void describe_numbers(const struct at_problem *problem, struct described *d) {
    const struct at_scalar *field;
    for (int i = 0; (field = at_op_scalar_at(problem->op, i)) && d->launch.n_numbers < NUMBERS; i++) {
        const double real = at_scalar_get(problem, field);
        const int has_whole = real > -0x1p63 && real < 0x1p63; /* a NaN has none either */
        d->numbers[d->launch.n_numbers++] = (struct attest_number){ field->name, real, has_whole ? (int64_t)real : 0 };
    }
}

static void describe(const struct at_problem *problem, const struct at_so_place *place, struct described *d, char *why,
                     size_t size) {
    memset(d, 0, sizeof *d);
    d->launch = (struct attest_launch){ .version = ATTEST_LAUNCH_VERSION,
                                        .device = place->device_type,
                                        .op = problem->op->name,
                                        .dtype = at_format_info(problem->dtype)->name,
                                        .tensors = d->tensors,
                                        .numbers = d->numbers,
                                        .stream = place->stream,
                                        .why_bytes = (int64_t)size };
    d->launch.why = why;
    describe_tensors(problem, d);
    describe_numbers(problem, d);
}

int at_so_call_plain(const struct at_so_variant *v, const struct at_problem *problem, const struct at_so_place *place,
                     char *why, size_t size) {
    struct described d;
    int (*call)(const struct attest_launch *launch);
    memcpy(&call, &v->function, sizeof call); /* ISO C has no conversion between pointers to objects and to functions */
    describe(problem, place, &d, why, size);
    return call(&d.launch);
}

const char *at_so_ask_plain(const struct at_so_variant *v, const struct at_problem *problem,
                            const struct at_so_place *place) {
    struct described d;
    char unused[8];
    const char *(*call)(const struct attest_launch *launch);
    if (!v->supports_function)
        return NULL;
    memcpy(&call, &v->supports_function, sizeof call);
    describe(problem, place, &d, unused, sizeof unused);
    return call(&d.launch);
}
