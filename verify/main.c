/* attest: finds the command and runs it.
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "attest/blas_alone.h"
#include "attest/blas_core.h"
#include "attest/env.h"
#include "attest/names.h"
#include "attest/program_dir.h"
#include "build_info.h"
#include "verify/archive/guard.h"
#include "verify/archive/reader_hdf5.h"
#include "verify/cli/commands.h"

/* clang-format off */ /* a line a command */
const struct at_command *const at_commands[] = {
    &at_command_list,
    &at_command_cases,
    &at_command_verify,
    &at_command_replay,
    &at_command_declarations,
    &at_command_certify,
    &at_command_fit,
    &at_command_coverage,
    &at_command_stack,
    &at_command_show,
    &at_command_compare,
    &at_command_selftest,
    &at_command_bench,
    &at_command_reproduce,
    &at_command_study,
    &at_command_record,
    &at_command_drift,
    &at_command_merge,
    &at_command_export,
    &at_command_doctor,
    &at_command_help_topics,
    NULL,
};
/* clang-format on */
enum { N_COMMANDS = sizeof at_commands / sizeof *at_commands - 1 };

void at_put_exit_codes(FILE *out) {
    fputs("exit codes:\n  0    all good\n  1    a verdict fails the run, a distribution has moved, a share was missed\n"
          "  2    usage: bad input, a name that does not exist\n"
          "  3    environment: a device, a runner, a file or memory is missing\n  4    nothing was judged\n"
          "  70   a bug of attest\n  130  interrupted by Ctrl-C (SIGINT); 143: by SIGTERM\n",
          out);
}

void at_put_usage(FILE *out) {
    fputs("attest judges GPU attention kernels against plain C references.\n\nusage: attest COMMAND "
          "[ARGUMENTS]\n\ncommands:\n",
          out);
    for (int i = 0; i < N_COMMANDS; i++)
        at_put_indented(at_commands[i]->summary, fprintf(out, "  %-13s ", at_commands[i]->name), 16, out);
    fputs("\n`attest COMMAND --help` or `attest help COMMAND` tells more. Topics of `attest help`:\n", out);
    at_put_topics(out);
    fputc('\n', out);
    at_put_exit_codes(out);
}

static int unknown_command(const char *name) {
    const char *names[N_COMMANDS];
    for (int i = 0; i < N_COMMANDS; i++)
        names[i] = at_commands[i]->name;
    const char *nearest = at_nearest_name(name, names, N_COMMANDS);
    return at_report_failure(AT_FAIL(AT_USAGE, "unknown command '%s'%s%s%s; `attest --help` lists them", name,
                                     nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : ""));
}

/* Results may have gone to a full disk without anybody looking at printf's value. */
static int flush_stdout(int code) {
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "attest: stdout: could not be written to the end\n");
        return code == 0 ? at_status_exit_code(AT_IO) : code;
    }
    return code;
}

/* Runners that lie beside this program are found by their names, after all that PATH already has: --runner 'attest-so ./mine.so'. */
static void extend_path(void) {
    char longer[8192];
    const char *path = getenv("PATH");
    const int n =
        snprintf(longer, sizeof longer, "%s%s%s", path ? path : "", path && *path ? ":" : "", at_program_dir());
    if (n < (int)sizeof longer)
        setenv("PATH", longer, 1);
}

static int run_guarded(const struct at_command *command, const struct at_args *args) {
    int ended = 0, code = 0;
    const at_status status = command->reads_archives ? at_guard_split(&ended, &code) : AT_OK;
    if (status != AT_OK)
        return at_report_failure(status);
    return ended ? code : command->run(args);
}

static int run(const struct at_command *command, int argc, char **argv) {
    struct at_args args;
    int help, code;
    at_status status = at_args_parse(command, argc, argv, &args, &help);
    if (status != AT_OK) {
        code = at_report_failure(status);
    } else if (help) {
        at_command_help(command);
        code = 0;
    } else {
        code = run_guarded(command, &args);
    }
    at_args_release(&args);
    return flush_stdout(code);
}

int main(int argc, char **argv) {
    if (argc < 2 || strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        at_put_usage(stdout);
        return flush_stdout(argc < 2 ? at_status_exit_code(AT_USAGE) : 0);
    }
    if (strcmp(argv[1], "--version") == 0) {
        printf("attest %s (%s)\n", AT_VERSION, AT_COMMIT);
        return flush_stdout(0);
    }
    at_status status = at_env_check();
    if (status != AT_OK)
        return at_report_failure(status);
    extend_path();
    at_blas_alone();
    at_blas_core_choose();
    at_reader_hdf5_register();
    for (int i = 0; i < N_COMMANDS; i++)
        if (strcmp(at_commands[i]->name, argv[1]) == 0)
            return run(at_commands[i], argc - 2, argv + 2);
    return unknown_command(argv[1]);
}
