/* The list of contents that archives may have beside results. A feature adds its line here.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/bench/bench.h"
#include "verify/record/dist_table.h"
#include "verify/study/accumulate/study.h"
#include "verify/study/special/study_exp2.h"
#include "verify/study/tensor_core/study_tensor_core.h"

const struct at_content *const at_contents[] = {
    &at_content_distributions,
    &at_content_accumulate,
    &at_content_tensor_core,
    &at_content_probes,
    &at_content_exp2,
    &at_content_bench_kernels,
    NULL,
};
