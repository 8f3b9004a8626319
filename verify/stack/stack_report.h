/* What a run of a stack says: by step, by layer, launches by kind; as text, JSON lines, and tables of an archive.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_STACK_REPORT_H
#define AT_STACK_REPORT_H

#include "verify/commands/content.h"
#include "verify/stack/stack_run.h"

/* A step as the plan has it, in an archive. */
struct at_stack_plan_row {
    int64_t step, times, launches;
    char name[AT_STACK_NAME], kind[AT_STACK_NAME], family[64], variant[96], shapes[256];
    double work;
};
/* Owned rows, one a step. */
at_status at_stack_plan_rows(const struct at_stack_plan *plan, struct at_stack_plan_row **rows);

/* Steps with what they launch, and launches by kind. */
void at_stack_put_plan(const struct at_stack_plan_row *rows, int64_t n, FILE *out);
/* Each output of each step over all layers; then flows that go from layer to layer, by layer. */
void at_stack_put_steps(const struct at_stack_row *rows, int64_t n, FILE *out);
void at_stack_put_layers(const struct at_stack_row *rows, int64_t n, FILE *out);
/* Both, turn by turn where there are several. */
void at_stack_put_turns(const struct at_stack_row *rows, int64_t n, FILE *out);

/* A line a row, sorted keys: those of the table. */
at_status at_stack_put_json(const struct at_stack_row *rows, int64_t n, const struct at_table *table, const char *path);

/* How the replay went; steps and kinds of one graph; the replays of two sides in turns, none unless there are two. */
void at_stack_put_replayed(const struct at_stack_replayed *replayed, FILE *out);
void at_stack_put_costs(const struct at_stack_cost *rows, int64_t n, int has_layers, FILE *out);
void at_stack_put_sides(const struct at_stack_cost *rows, int64_t n, FILE *out);

/* Powers of two between a magnitude and f16's largest number. */
double at_stack_headroom(double largest);

extern const struct at_table at_stack_table_steps, at_stack_table_turns, at_stack_table_plan, at_stack_table_graph,
    at_stack_table_loss;
extern const struct at_content at_content_stack_steps, at_content_stack_turns, at_content_stack_plan,
    at_content_stack_graph, at_content_stack_loss;

#endif
