/* The commands of attest; each lives in its own cmd_NAME.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_COMMANDS_H
#define AT_COMMANDS_H

#include "verify/cli/options.h"

extern const struct at_command at_command_list;
extern const struct at_command at_command_cases;
extern const struct at_command at_command_verify;
extern const struct at_command at_command_replay;
extern const struct at_command at_command_declarations;
extern const struct at_command at_command_certify;
extern const struct at_command at_command_fit;
extern const struct at_command at_command_stack;
extern const struct at_command at_command_show;
extern const struct at_command at_command_compare;
extern const struct at_command at_command_selftest;
extern const struct at_command at_command_coverage;
extern const struct at_command at_command_bench;
extern const struct at_command at_command_reproduce;
extern const struct at_command at_command_study;
extern const struct at_command at_command_record;
extern const struct at_command at_command_drift;
extern const struct at_command at_command_merge;
extern const struct at_command at_command_export; /* notebooks_export/cmd_export.c */
extern const struct at_command at_command_doctor;
extern const struct at_command at_command_help_topics;

/* Every command, in the order of `attest --help`; NULL ends the list. main.c */
extern const struct at_command *const at_commands[];
/* What `attest --help` says; its parts about topics (commands/cmd_help.c) and exit codes. */
void at_put_usage(FILE *out);
void at_put_topics(FILE *out);
void at_put_exit_codes(FILE *out);

/* Prints the trail's message ("attest: ...") and gives the exit code of the status. */
int at_report_failure(at_status status);

#endif
