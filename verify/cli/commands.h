/* The commands of attest; each lives in its own cmd_NAME.c.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_COMMANDS_H
#define AT_COMMANDS_H

#include "verify/cli/options.h"

extern const struct at_command at_command_list;
extern const struct at_command at_command_verify;
extern const struct at_command at_command_replay;
extern const struct at_command at_command_show;
extern const struct at_command at_command_selftest;
extern const struct at_command at_command_bench;
extern const struct at_command at_command_study;
extern const struct at_command at_command_record;
extern const struct at_command at_command_drift;
extern const struct at_command at_command_merge;
extern const struct at_command at_command_export; /* notebooks_export/cmd_export.c */
extern const struct at_command at_command_doctor;

/* Prints the trail's message ("attest: ...") and gives the exit code of the status. */
int at_report_failure(at_status status);

#endif
