/* Command line and conversation of a runner whose variants come from a shared library.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/runner/so_main.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernels/runner/so_device.h"

#ifndef AT_VERSION
#define AT_VERSION "unversioned"
#endif

/* The process's one library: a table of kernels is asked by number alone. */
static struct at_so_library library;

static const struct at_kernel_entry *kernel_at(int i) { return &library.declaration.variants[i].entry; }

static int print_help(const char *name, const char *where) {
    printf("%s: runs kernels of a shared library on %s for attest\n\n"
           "usage: %s LIBRARY.so           speak the runner protocol on standard input and output\n"
           "       %s --list LIBRARY.so    the variants that it declares\n"
           "       %s --version | --help\n\n"
           "What the library exports and declares: attest_launch.h, kernels/runner/python/README.md.\n"
           "example: attest verify --runner '%s ./libmine.so' --cases 'smoke:*'\n",
           name, where, name, name, name, name);
    return 0;
}

static int print_list(void) {
    for (int i = 0; i < library.declaration.n; i++)
        printf("%s/%s  %s\n", kernel_at(i)->family, kernel_at(i)->name, library.declaration.variants[i].summary);
    return 0;
}

/* Parameters that some variant takes; each variant declines by its own. */
static void join_takes(char *takes, size_t size) {
    size_t used = 0;
    takes[0] = 0;
    for (int i = 0; i < library.declaration.n && used < size; i++) {
        const char *more = library.declaration.variants[i].takes;
        if (more[0] && !strstr(takes, more))
            used += (size_t)snprintf(takes + used, size - used, "%s%s", used ? "," : "", more);
    }
}

static int serve(const char *name, const struct at_runner_place *place, int device_type, int out) {
    char device_text[256], takes[512];
    struct at_so_device so;
    struct at_device *inner = place->open(place->context, device_text, sizeof device_text);
    if (!inner) {
        fprintf(stderr, "%s: %s\n", name, device_text);
        return at_status_exit_code(AT_ENVIRONMENT);
    }
    at_so_device_init(&so, inner, device_type, &library);
    join_takes(takes, sizeof takes);
    const struct at_serve all = { .name = name,
                                  .device_text = device_text,
                                  .takes = takes,
                                  .device = &so.device,
                                  .kernels = { library.declaration.n, kernel_at },
                                  .in = STDIN_FILENO,
                                  .out = out };
    at_serve_end_with(&all.in);
    const at_status status = at_serve(&all);
    place->close(place->context);
    return at_status_exit_code(status);
}

int at_so_main(int argc, char **argv, const struct at_runner_place *place, int device_type) {
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    const char *name = slash ? slash + 1 : argc > 0 ? argv[0] : "attest-so";
    const char *word = argc > 1 ? argv[1] : "";
    const int list = strcmp(word, "--list") == 0;
    if (strcmp(word, "--help") == 0)
        return print_help(name, place->words);
    if (strcmp(word, "--version") == 0) {
        printf("%s %s, runner protocol %d\n", name, AT_VERSION, AT_PROTOCOL_VERSION);
        return 0;
    }
    if (argc != 2 + list || (word[0] == '-' && !list)) {
        fprintf(stderr, "%s: found %s%s, wanted LIBRARY.so; --help says more\n", name, argc > 1 ? word : "no argument",
                argc > 2 && !list ? " and more" : "");
        return at_status_exit_code(AT_USAGE);
    }
    const int out = list ? STDOUT_FILENO : at_serve_claim_stdout(); /* before its constructors can print */
    if (out < 0) {
        fprintf(stderr, "%s: cannot set standard output aside: %s\n", name, strerror(errno));
        return at_status_exit_code(AT_ENVIRONMENT);
    }
    const at_status status = at_so_library_open(argv[1 + list], &library);
    if (status != AT_OK) {
        fprintf(stderr, "%s: %s\n", name, at_error_message());
        return at_status_exit_code(status);
    }
    if (list)
        return print_list();
    if (isatty(STDIN_FILENO))
        fprintf(stderr, "%s: speaking the runner protocol; --help says more\n", name);
    return serve(name, place, device_type, out);
}
