/* What commands have of features that they do not know: the contents that archives may have beside results (those of studies, from
 * their list, and the other features' here), and the benchmark of a runner that cheats when it is timed.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/bench/bench.h"
#include "verify/certify/certify_report.h"
#include "verify/commands/selftest_cheats.h"
#include "verify/record/dist_table.h"
#include "verify/stack/stack_report.h"
#include "verify/study/study_list.h"

static const struct at_content *const others[] = { &at_content_distributions, &at_content_bench_kernels,
                                                   &at_content_stack_plan,    &at_content_stack_steps,
                                                   &at_content_stack_turns,   &at_content_stack_graph,
                                                   &at_content_stack_loss,    &at_content_certificates };
enum { N_OTHERS = sizeof others / sizeof *others };

const struct at_content *at_content_at(int i) {
    if (i < N_OTHERS)
        return others[i];
    i -= N_OTHERS;
    for (int s = 0; at_studies[s]; s++)
        for (const struct at_content *const *c = at_studies[s]->contents; c && *c; c++)
            if (i-- == 0)
                return *c;
    return NULL;
}

at_status at_cheat_timed(const char *command, const char *line, const struct at_sandbox *box, int strict,
                         struct at_cheat_fate *fate) {
    return at_bench_cheat(command, line, box, strict, fate);
}
