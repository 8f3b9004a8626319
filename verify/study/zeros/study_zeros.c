/* attest study zeros: zero outputs of operators over rows, by themselves and in whole blocks.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A gate that is closed makes an output 0, and what is multiplied with it need not be read; but a GPU leaves out blocks, not elements.
 * Beside each share of blocks stands what it would be if zeros fell where they may: the elements' share to the power of 16, of 256. */
#include "verify/study/zeros/study_zeros.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "attest/env.h"
#include "attest/op.h"
#include "datasets/language/case.h"
#include "verify/cli/commands.h"

struct evaluation {
    const struct at_problem *problem;
    struct at_eval eval;
};

static at_status evaluate(void *context, int64_t begin, int64_t end, int worker) {
    struct evaluation *e = context;
    struct at_eval eval = e->eval;
    (void)worker;
    return e->problem->op->evaluate(e->problem, NULL, begin, end, &eval);
}

static double share(int64_t part, int64_t of) { return of ? (double)part / (double)of : (double)NAN; }

static void print(const char *name, const struct at_zeros *z) {
    const double zero = share(z->zero, z->elements);
    printf("  %s: %.2f %% of %" PRId64 " elements are 0\n", name, 100 * zero, z->elements);
    printf("    of %" PRId64 " blocks of 1 x 16 %.3g %%; independent zeros: %.3g %%\n", z->strips,
           100 * share(z->zero_strips, z->strips), 100 * pow(zero, AT_ZEROS_SIDE));
    printf("    of %" PRId64 " blocks of 16 x 16 %.3g %%; independent zeros: %.3g %%\n", z->blocks,
           100 * share(z->zero_blocks, z->blocks), 100 * pow(zero, AT_ZEROS_SIDE * AT_ZEROS_SIDE));
}

static at_status count_case(const struct at_case *c) {
    at_status status = AT_OK;
    struct at_case_data data = { 0 };
    const struct at_problem *p = &data.problem;
    struct evaluation e = { .problem = p };
    struct at_zeros zeros;
    AT_TRY_OUT(at_case_build(c, &data));
    if (p->op->kind != AT_KIND_ROWS)
        AT_FAIL_OUT(AT_USAGE, "study zeros: operator %s, wanted one over rows of activations", p->op->name);
    AT_TRY_OUT(p->op->check(p));
    for (int t = 0; t < p->op->n_tensors; t++)
        if (p->op->tensors[t].role != AT_IN) {
            e.eval.value[t] = calloc((size_t)at_tensor_count(&p->tensors[t]) + 1, sizeof(double));
            if (!e.eval.value[t])
                AT_FAIL_OUT(AT_NO_MEMORY, "study zeros: no memory for %s", p->op->tensors[t].name);
        }
    AT_TRY_OUT(at_parallel(p->op->rows(p), 16, at_threads(), evaluate, &e));
    printf("%s\n", c->id);
    for (int t = 0; t < p->op->n_tensors; t++)
        if (e.eval.value[t]) {
            const int64_t rows = p->op->rows(p), n = at_tensor_count(&p->tensors[t]);
            at_zeros_count(p->tensors[t].format, rows, rows ? n / rows : 0, e.eval.value[t], &zeros);
            print(p->op->tensors[t].name, &zeros);
        }
out:
    for (int t = 0; t < AT_MAX_TENSORS; t++)
        free(e.eval.value[t]);
    at_case_data_release(&data);
    return status;
}

static at_status study(const struct at_args *args) {
    const char *line = at_args_get(args, "--case");
    struct at_case_list list = { 0 };
    if (!line)
        return AT_FAIL(AT_USAGE, "study zeros: wanted --case LINE");
    at_status status = at_case_parse(line, "study", "--case", &list);
    for (int64_t i = 0; i < list.n && status == AT_OK; i++)
        status = count_case(&list.items[i]);
    at_case_list_release(&list);
    return status;
}

static int run_zeros(const struct at_args *args) {
    const at_status status = study(args);
    return status != AT_OK ? at_report_failure(status) : 0;
}

const struct at_study at_study_zeros = { .name = "zeros", .run = run_zeros };
