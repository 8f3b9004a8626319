/* attest bench: what its kinds share.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_BENCH_H
#define AT_BENCH_H

#include "verify/cli/commands.h"
#include "verify/commands/content.h"
#include "verify/result/record.h"
#include "verify/result/result_fields.h"
#include "verify/run/session.h"
#include "verify/runner/launch.h"

/* One variant on one case: what was verified, and the times that then count. */
struct at_bench_row {
    char case_id[1024], family[64], variant[96], path[160], sha256[65], numerics[640];
    char verdict[384];                     /* how it was verified, or why it was not timed */
    int timed;                             /* 0: verdict says why */
    int64_t rows_checked, compared, wrong; /* rows of the sample, their elements, and those that are off */
    int64_t model_equal, model_compared;   /* elements equal to the declared arithmetic; 0 of 0: no declared order */
    double cold, hot;                      /* seconds a launch; NaN: not timed */
    int replays, copies;                   /* of the graph; of the inputs that rotate */
    double bytes, flops;   /* that a dense evaluation moves at least, and does; flops NaN: not counted */
    double scores;         /* that score_counts counts, visible ones of all heads; NaN: another operator */
    double copy_rate;      /* bytes a second of a large copy within the device, in the same run */
    double source_seconds; /* the source's time for this idea and shape; NaN: none */
    char source[24];       /* its section */
    /* ---- peers ---- */
    int peer;                   /* it is of the peers' runner */
    char device[256];           /* what its runner calls its device */
    char beside[1024];          /* of a peer of another operator: the case it stands beside; "": its own */
    int turns;                  /* rounds timed */
    double cold_low, cold_high; /* least and largest cold of a round; NaN: not timed */
    double peer_cold;           /* cold of the case's fastest verified peer, on rows that are none; NaN: none */
    char fastest_peer[96];      /* its variant */
    /* ---- timed launches ---- */
    char state[16]; /* of enum at_state: what the row comes to */
    int64_t
        timed_compared; /* elements of a timed launch's outputs that were compared; 0: its runner brings none back */
    double floor;       /* seconds that a launch takes at least (at_bench_floor); NaN: not timed */
    char ceiling[96];   /* what the floor follows from */
};
/* Field i of a row, NULL past the end. */
const struct at_field *at_bench_field(int i);

/* Useful work of attention: 2 flops a multiply-add, QK and PV over the visible keys alone; of products; of score_counts
 * QK alone; NaN for other operators. */
double at_bench_flops(const struct at_problem *problem);
/* Visible scores of all heads for score_counts, NaN for other operators. */
double at_bench_scores(const struct at_problem *problem);
/* Bytes that any evaluation must move once: activations, the keys and values that requests own, parameters, outputs. */
double at_bench_bytes(const struct at_problem *problem);

/* Launches variant once and compares a sample of rows with the declared arithmetic, or with the limits where no order
 * is declared. Of big shapes rows_seed draws which, beside the first, the last and some at ends of requests; nothing of it
 * goes to the runner, as something of `seed` does, which marks and guard bytes follow from. row->wrong 0 and row->compared > 0: its times count. Failures of the kernel are verdicts in the row. */
at_status at_bench_verify(struct at_runner *runner, int variant, const struct at_problem *problem, uint64_t seed,
                          uint64_t rows_seed, struct at_bench_row *row);

/* The same of outputs of a timed launch, on other data as a rule: row->timed_compared and, where something is off, wrong,
 * state and verdict. */
at_status at_bench_judge_timed(const struct at_problem *problem, const struct at_numerics *numerics,
                               const struct at_outputs *outputs, uint64_t rows_seed, struct at_bench_row *row);

/* What a device cannot exceed: bytes a second of its memory, operations a second on factors of two bytes and of one, bytes
 * that its caches keep from one launch to the next. */
struct at_ceiling {
    char device[96];
    double bytes, flops, flops_of_bytes, cache;
};
struct at_ceilings {
    int n;
    struct at_ceiling *items;
};
/* Lines `bytes/s flop/s flop/s-of-one-byte cache NAME`, `#` comments; NAME `*` stands for every other device and must be there. */
at_status at_ceilings_load(const char *path, struct at_ceilings *all);
void at_ceilings_release(struct at_ceilings *all);
/* "BYTES:FLOPS[:CACHE]", the cache 0 where it is left out. */
at_status at_ceiling_parse(const char *text, struct at_ceiling *ceiling);
/* The longest name that the device's text has in it, else that of `*`. */
const struct at_ceiling *at_ceiling_find(const struct at_ceilings *all, const char *device);
/* Bytes that a right launch must read and write, whatever the values: those of at_bench_bytes, but the values of a gate's attention,
 * of which only rows are needed whose weight is not 0, and nothing where requests ask no query. */
double at_bench_needed_bytes(const struct at_problem *problem);
/* Seconds that no launch can do without: the needed bytes, less what caches may keep of `copies` copies that rotate, at the
 * ceiling's rate; the operations (a gate's attention: those of the scores alone); a nanosecond. 2 % off, for clocks. */
double at_bench_floor(const struct at_problem *problem, const struct at_ceiling *ceiling, int copies);

/* Whether the times of a row, medians of what its runner said, can be: two more jobs that differ in replays alone, by this process's
 * clock. Where replays take longer than the times leave room for, three times in a row, the row is IMPOSSIBLE and wrong; a runner that
 * dies or declines now is wrong, too. It sees nothing of a runner that makes fewer replays than it is asked for. */
at_status at_bench_check_clock(struct at_runner *runner, int variant, const struct at_problem *problem, uint64_t seed,
                               int64_t replays, struct at_bench_row *row);

/* The family of kernels to stand beside a case of a gate's attention: softmax's, of as many queries a request. NULL: none. */
const struct at_family *at_bench_peer_family(const struct at_case *c);
/* The case of that family with the same shapes, formats and data, added to `list`: the id without keys that the family does not
 * take, and without require= and expect=, which are about judging. AT_USAGE where that is no case. */
at_status at_bench_peer_case(const struct at_case *c, const struct at_family *family, struct at_case_list *list);
/* Median of n seconds, the upper of two middle ones; the array is sorted. n >= 1, no NaN. */
double at_bench_median(double *seconds, int n);
/* The rows of one case: peer_cold and fastest_peer of those that are no peers, by the peers among them that were verified and
 * timed. */
void at_bench_compare_peers(struct at_bench_row *rows, int n);

/* Parses a line of a table into `item`, or says what is wrong with it. */
typedef at_status at_bench_line(const char *line, const char *path, int number, void *item);
/* The items of a table, of `size` bytes each, in the order of its lines: for free(), also after a failure. */
at_status at_bench_table_load(const char *path, size_t size, at_bench_line *parse, void **items, int *n);

/* The source's times: a table of lines `variant b k microseconds section`, `#` comments. */
struct at_source_times {
    int n;
    struct at_source_time {
        char variant[96], section[24];
        int64_t b, k;
        double seconds;
    } * items;
};
at_status at_source_times_load(const char *path, struct at_source_times *times);
void at_source_times_release(struct at_source_times *times);
/* Fills source_seconds and source of a row; they stay as they are when the table has none. */
void at_source_times_find(const struct at_source_times *times, int64_t b, int64_t k, struct at_bench_row *row);

#include <stdio.h>
void at_bench_table(const struct at_bench_row *rows, int n, const char *device, FILE *out);

/* A benchmark: what is selected, and timed how often. */
struct at_bench_request {
    struct at_session_options options; /* selection and seed count */
    int64_t replays;
    uint64_t rows_seed; /* as of at_bench_verify; 0: drawn by the system, in each run others */
    struct at_runner
        *peer;          /* a runner whose variants are judged and timed in turns with the selected ones; NULL: none */
    int64_t turns;      /* rounds of timing, each row once in a round; 0: 1 */
    const char *beside; /* the source's times; NULL: those of datasets/bench */
    int strict;         /* a launch whose timed outputs nobody saw fails */
    struct at_ceiling ceiling; /* of the device, ours and peers'; no name: by its name in datasets/bench/ceilings.txt */
    /* Of the selected, which to run; NULL: all. */
    int (*wanted)(void *context, const struct at_case *c, const struct at_variant *variant);
    void *context;
};
struct at_bench_run {
    struct at_bench_row *rows;
    int n;
    struct at_run_record record; /* what was asked for, and what answered */
};
/* Verifies and times. To be released after a failure too. AT_NOT_FOUND: nothing to run. */
at_status at_bench_run(const struct at_bench_request *request, struct at_runner *runner, struct at_bench_run *run);
at_status at_bench_run_write(const struct at_bench_run *run, const char *path);
void at_bench_run_release(struct at_bench_run *run);
/* 1 when a row of ours fails: its state, and with `strict` times of launches whose outputs nobody saw. */
int at_bench_fails(const struct at_bench_row *row, int strict);
/* What dispatchers are to choose, by the times of these rows: for each family of attention, and each of its cases, the fastest
 * variant that repeats its bits, the one that is chosen (one within a hundredth of it), and the dispatcher's own time where it was timed;
 * printed, and with `folder` written to folder/FAMILY/dispatch_table.h, which kernels/dispatch/dispatch.h reads. *fails: `within`
 * is not 0, and a dispatcher was not timed at some shape, or took more than that many times the fastest's. AT_NOT_FOUND: nothing of attention. */
at_status at_bench_dispatch(const struct at_bench_row *rows, int n, const char *folder, double within, int *fails);
struct at_cheat_fate;
/* at_cheat_timed(). */
at_status at_bench_cheat(const char *command, const char *line, const struct at_sandbox *box, int strict,
                         struct at_cheat_fate *fate);

/* The kinds; each is a process's exit code. */
int at_bench_reference(const struct at_args *args);
int at_bench_simt(const struct at_args *args);
int at_bench_record(const struct at_args *args);
int at_bench_tensor_core(const struct at_args *args);
int at_bench_dispatch_of(const struct at_args *args); /* an archive's rows */
int at_bench_kernels(const struct at_args *args);

extern const struct at_table at_bench_table_kernels;
extern const struct at_content at_content_bench_kernels;

#endif
