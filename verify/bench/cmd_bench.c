/* attest bench: times of verified kernels, of the fast tier, of recording, of the SIMT machine, of the tensor-core model.
 * SPDX-License-Identifier: Apache-2.0 */
#include <string.h>

#include "verify/bench/bench.h"

static const struct at_option options[] = {
    { "--cases", "GLOB", "kernels: which cases of datasets/bench, as role:id (default: all)" },
    { "--case", "LINE", "one case given as text" },
    { "--runner", "R", "kernels: cuda (default), or a command line that speaks the protocol and times" },
    { "--replays", "N", "kernels: graph replays, the median counts (default 20)" },
    { "--peer", "R",
      "kernels: a second runner: its variants of the family, beside asynct_* those of softmax_* on the same shapes, "
      "are "
      "verified and timed in turns with ours" },
    { "--turns", "N", "kernels: rounds, each row once in a round, medians over them (default 1; with --peer 3)" },
    { "--ceiling", "B:F[:C]",
      "kernels: what the devices cannot exceed, bytes and floating-point operations a second, and bytes of cache; a "
      "time below what follows is IMPOSSIBLE (default: by the device's name in datasets/bench/ceilings.txt)" },
    { "--tune", "DIR",
      "kernels, dispatch: write what dispatchers choose, DIR/FAMILY/dispatch_table.h, from these times (in this tree: "
      "kernels)" },
    { "--within", "X", "dispatch: fail where a dispatcher takes more than X times the fastest (default: report only)" },
    { "--strict", NULL, "kernels: times fail whose runner does not bring back what the timed launches wrote" },
    { "--beside", "FILE", "kernels: the source's times (default datasets/bench/source_times.txt)" },
    { "--out", "B.h5", "kernels: write the archive" },
    { "--seed", "S", "kernels: of marks and guard bytes" },
    { "--rows-seed", "S",
      "kernels: of the rows of big shapes that are checked (default: drawn anew in each run, and named where rows are "
      "wrong)" },
    { "--rounds", "N", "reference, simt, record, tensor-core: timed rounds, the median counts (default 5)" },
    { "--threads", "N", "reference, record: threads (default: processors)" },
    { "--min-share", "X",
      "reference: fail below this share of dgemm; record: of computing alone (default: report only)" },
    { "--golden", "FILE",
      "tensor-core: what the model must give (default datasets/measurements/h200_tensor_core.txt)" },
    { "--min-rate", "X", "tensor-core: fail below X million products a second (default: report only)" },
    { NULL, NULL, NULL },
};

static int run(const struct at_args *args) {
    if (args->n_words == 1 && strcmp(args->words[0], "reference") == 0)
        return at_bench_reference(args);
    if (args->n_words <= 2 && strcmp(args->words[0], "simt") == 0)
        return at_bench_simt(args);
    if (args->n_words == 1 && strcmp(args->words[0], "record") == 0)
        return at_bench_record(args);
    if (args->n_words <= 2 && strcmp(args->words[0], "tensor-core") == 0)
        return at_bench_tensor_core(args);
    if (strcmp(args->words[0], "dispatch") == 0)
        return at_bench_dispatch_of(args);
    return at_bench_kernels(args);
}

const struct at_command at_command_bench = {
    .name = "bench",
    .synopsis =
        "bench GLOB... | dispatch B.h5 | reference | record | simt [FAMILY/VARIANT] | tensor-core [GLOB] [options]",
    .summary = "times: of verified kernels on a GPU, what dispatchers choose by them, of the fast tier beside dgemm, "
               "of recording, of the SIMT machine, of "
               "the tensor-core model",
    .example = "attest bench 'asynct_decode/*' --runner cuda --out bench.h5",
    .options = options,
    .min_words = 1,
    .max_words = AT_MAX_WORDS,
    .run = run,
};
