/* Command line of the runners: help, list, version, and the start of the conversation.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/runner/main_shared.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifndef AT_VERSION
#define AT_VERSION "unversioned"
#endif

static const char *base_name(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static struct at_kernel_list kernels_of(const struct at_runner_place *place) {
    return place->kernels.n ? place->kernels
                            : (struct at_kernel_list){ at_kernel_count(), at_kernel_at, at_kernel_mutant_of };
}

static int print_help(const char *name, const struct at_runner_place *place) {
    printf("%s: runs kernel variants on %s for attest\n\n"
           "usage: %s              speak the runner protocol on standard input and output\n"
           "       %s --list       the variants it has\n"
           "       %s --version | --help\n%s\n"
           "attest starts it by itself (--runner cpu, --runner cuda). The protocol is described in "
           "kernels/runner/PROTOCOL.md.\n"
           "example: attest verify 'asynct_decode/*' --runner './%s'\n",
           name, place->words, name, name, name, place->more_help ? place->more_help : "", name);
    return 0;
}

static int print_list(const struct at_runner_place *place) {
    const struct at_kernel_list kernels = kernels_of(place);
    for (int i = 0; i < kernels.n; i++) {
        const struct at_kernel_entry *entry = kernels.at(i);
        printf("%s/%s  %s\n", entry->family, entry->name, entry->kernel->summary);
    }
    return 0;
}

static int serve(const char *name, const struct at_runner_place *place) {
    char device_text[256];
    struct at_device *device;
    const int out = at_serve_claim_stdout();
    if (out < 0) {
        fprintf(stderr, "%s: cannot set standard output aside: %s\n", name, strerror(errno));
        return at_status_exit_code(AT_ENVIRONMENT);
    }
    device = place->open(place->context, device_text, sizeof device_text);
    if (!device) {
        fprintf(stderr, "%s: %s\n", name, device_text);
        return at_status_exit_code(AT_ENVIRONMENT);
    }
    const struct at_serve all = { .name = name,
                                  .device_text = device_text,
                                  .device = device,
                                  .kernels = kernels_of(place),
                                  .in = STDIN_FILENO,
                                  .out = out,
                                  .after_job = place->after_job };
    at_serve_end_with(&all.in);
    const at_status status = at_serve(&all);
    place->close(place->context);
    return at_status_exit_code(status);
}

int at_runner_main(int argc, char **argv, const struct at_runner_place *place) {
    const char *name = base_name(argc > 0 ? argv[0] : "attest-runner");
    const char *word = argc > 1 ? argv[1] : "";
    if (argc > 2 ||
        (word[0] && strcmp(word, "--help") != 0 && strcmp(word, "--list") != 0 && strcmp(word, "--version") != 0)) {
        fprintf(stderr, "%s: unknown argument '%s'; known are --list, --version and --help\n", name,
                argc > 2 ? argv[2] : word);
        return at_status_exit_code(AT_USAGE);
    }
    if (strcmp(word, "--help") == 0)
        return print_help(name, place);
    if (strcmp(word, "--list") == 0)
        return print_list(place);
    if (strcmp(word, "--version") == 0) {
        printf("%s %s, runner protocol %d\n", name, AT_VERSION, AT_PROTOCOL_VERSION);
        return 0;
    }
    if (isatty(STDIN_FILENO))
        fprintf(stderr, "%s: speaking the runner protocol; --help says more\n", name);
    return serve(name, place);
}
