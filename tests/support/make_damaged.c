/* Makes damaged archives and gives each to the commands that read archives; says what they did.
 * SPDX-License-Identifier: Apache-2.0
 *
 * make_damaged ATTEST FOLDER SEED FIRST STEP END GOOD.h5...: files FIRST, FIRST + STEP, ... below END, of the good files in
 * turn, as FOLDER/<number>.h5, one at a time. A command is at fault that a signal ends, that takes more than SECONDS of
 * processor time and 2 more for each MB of the file, whose exit code is none of a refusal or a result, that refuses without naming the file, or that leaves
 * half a file. Prints each fault, each file that the HDF5 library did not survive ("killer NUMBER COMMAND ..."), and the
 * sums; exit 1 when there was a fault. */
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/damage.h"

enum { SECONDS = 5, MAX_GOOD = 16, PATH_BYTES = 512, SAID_BYTES = 1 << 14 };

static const char *const kinds[] = { "csv", "ipynb", "svg", "html" };
enum { SHOW, EXPORT, MERGE, DRIFT, REPRODUCE, COMPARE, COMMANDS };
static const char *const names[COMMANDS] = { "show", "export", "merge", "drift", "reproduce", "compare" };

struct state {
    const char *attest, *folder;
    struct at_bytes good[MAX_GOOD];
    const char *good_path[MAX_GOOD];
    int n_good;
    long runs, answered, refused, killed, late, faults;
};

static int read_file(const char *path, struct at_bytes *bytes) {
    char piece[1 << 16];
    FILE *in = fopen(path, "rb");
    if (!in)
        return 0;
    for (size_t n; (n = fread(piece, 1, sizeof piece, in)) > 0;)
        at_bytes_add(bytes, piece, n);
    fclose(in);
    return bytes->n > 0;
}

static int write_file(const char *path, const struct at_bytes *bytes) {
    FILE *out = fopen(path, "wb");
    const int written = out && fwrite(bytes->data, 1, bytes->n, out) == bytes->n;
    return out && fclose(out) == 0 && written;
}

/* Deletes the files of a folder; whether one of them was half written. */
static int sweep(const char *folder) {
    char path[2 * PATH_BYTES];
    int half = 0;
    DIR *dir = opendir(folder);
    if (!dir)
        return 0;
    for (const struct dirent *entry; (entry = readdir(dir));) {
        const size_t n = strlen(entry->d_name);
        half |= n > 4 && strcmp(entry->d_name + n - 4, ".tmp") == 0;
        snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        unlink(path);
    }
    closedir(dir);
    return half;
}

/* Runs it with stdout and stderr in `said`; the wait status, and the processor time of it and its children. */
static int run(char **argv, rlim_t limit, const char *out, char *said, double *seconds) {
    struct rusage used;
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        /* What no limit of attest's ends shall not hold up a test. */
        const struct rlimit processor = { limit + 1, limit + 1 }, none = { 0, 0 };
        setrlimit(RLIMIT_CPU, &processor);
        setrlimit(RLIMIT_CORE, &none);
        const int in = open("/dev/null", O_RDONLY), to = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        if (in >= 0 && to >= 0 && dup2(in, 0) == 0 && dup2(to, 1) == 1 && dup2(to, 2) == 2)
            execv(argv[0], argv);
        _exit(127);
    }
    if (child < 0 || wait4(child, &status, 0, &used) != child || (WIFEXITED(status) && WEXITSTATUS(status) == 127)) {
        fprintf(stderr, "make_damaged: %s could not be run\n", argv[0]);
        exit(3);
    }
    *seconds = (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
               1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
    FILE *in = fopen(out, "rb");
    said[in ? fread(said, 1, SAID_BYTES - 1, in) : 0] = 0;
    if (in)
        fclose(in);
    return status;
}

/* NULL when the command did as it must. The good one of two files may be the one that is of no use. */
static const char *judge(int status, double seconds, rlim_t limit, const char *path, const char *other,
                         const char *said) {
    static char text[96];
    if (WIFSIGNALED(status)) {
        snprintf(text, sizeof text, "died (%s)", strsignal(WTERMSIG(status)));
        return text;
    }
    if (!(seconds <= (double)limit)) {
        snprintf(text, sizeof text, "took %.1f s of processor time", seconds);
        return text;
    }
    const int code = WEXITSTATUS(status);
    if (code > 4) {
        snprintf(text, sizeof text, "exit %d", code);
        return text;
    }
    return (code == 2 || code == 3) && !strstr(said, path) && !strstr(said, other)
               ? "refuses without the name of the file"
               : NULL;
}

static void give(struct state *s, long number, int command, const char *path, const char *damage, int good) {
    char exported[PATH_BYTES], merged[PATH_BYTES], out[PATH_BYTES];
    static char said[SAID_BYTES];
    struct stat info;
    double seconds;
    snprintf(exported, sizeof exported, "%s/exported", s->folder);
    snprintf(merged, sizeof merged, "%s/merged/m.h5", s->folder);
    snprintf(out, sizeof out, "%s/said", s->folder);
    const char *other = s->good_path[good], *kind = kinds[number / s->n_good % 4];
    const int turn = number / s->n_good % 2 == 0;
    const char *const argv[COMMANDS][8] = {
        { s->attest, "show", path },
        { s->attest, "export", path, "--to", kind, "--out", exported },
        { s->attest, "merge", path, "--out", merged },
        { s->attest, "drift", turn ? path : other, turn ? other : path },
        { s->attest, "reproduce", "mma-bk-16", "--from", path },
        { s->attest, "compare", turn ? path : other, turn ? other : path },
    };
    const rlim_t limit =
        SECONDS + 2 * (s->good[good].n / 1000000); /* compare reads two files, by guard.c a second for each MB */
    const int status = run((char **)argv[command], limit, out, said, &seconds);
    const char *fault =
        judge(status, seconds, limit, path, command == DRIFT || command == COMPARE ? other : path, said);
    const int died = strstr(said, "the HDF5 library died") != NULL,
              late = strstr(said, "does not come to an end") != NULL;
    if (stat(merged, &info) == 0 && (!WIFEXITED(status) || WEXITSTATUS(status) != 0) && !fault)
        fault = "has failed and left an archive";
    snprintf(exported, sizeof exported, "%s/merged", s->folder);
    const int half = sweep(exported);
    snprintf(exported, sizeof exported, "%s/exported", s->folder);
    if ((sweep(exported) || half) && !fault)
        fault = "left half a file";
    s->runs++;
    s->killed += died;
    s->late += late;
    s->answered += WIFEXITED(status) && WEXITSTATUS(status) != 2 && WEXITSTATUS(status) != 3;
    s->refused += WIFEXITED(status) && (WEXITSTATUS(status) == 2 || WEXITSTATUS(status) == 3) && !died && !late;
    if (died || late)
        printf("killer %ld %s %s\n", number, names[command], died ? "died" : "late");
    if (fault) {
        s->faults++;
        printf("fault %ld %s %s (%s; %s): %.400s\n", number, names[command], fault, damage, other, said);
    }
}

static int one_file(struct state *s, uint64_t seed, long number, int commands) {
    char path[PATH_BYTES], damage[AT_DAMAGE_NAME];
    struct splitmix random = { seed + (uint64_t)number * 0x9e3779b97f4a7c15u };
    struct at_bytes bytes = { 0 };
    const int good = (int)(number % s->n_good), other = (int)((number + 1 + number / s->n_good) % s->n_good);
    at_damage(&s->good[good], &s->good[other], &random, &bytes, damage);
    snprintf(path, sizeof path, "%s/%ld.h5", s->folder, number);
    const int written = write_file(path, &bytes);
    for (int c = 0; c < COMMANDS && written; c++)
        if (commands >> c & 1)
            give(s, number, c, path, damage, good);
    at_bytes_release(&bytes);
    if (!getenv("AT_DAMAGED_KEEP"))
        unlink(path);
    return written;
}

int main(int argc, char **argv) {
    static struct state s;
    char path[PATH_BYTES];
    if (argc < 8 || argc - 7 > MAX_GOOD) {
        fprintf(stderr, "usage: %s ATTEST FOLDER SEED FIRST STEP END GOOD.h5...\n", argv[0]);
        return 2;
    }
    s.attest = argv[1];
    s.folder = argv[2];
    for (int i = 7; i < argc; i++, s.n_good++) {
        s.good_path[s.n_good] = argv[i];
        if (!read_file(argv[i], &s.good[s.n_good])) {
            fprintf(stderr, "%s: cannot be read\n", argv[i]);
            return 3;
        }
    }
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof path, "%s/%s", s.folder, i ? "merged" : "exported");
        mkdir(path, 0777);
    }
    const char *only = getenv("AT_DAMAGED_COMMAND");
    int commands = 0;
    for (int c = 0; c < COMMANDS; c++)
        commands |= (!only || strcmp(only, names[c]) == 0) << c;
    for (long i = strtol(argv[4], NULL, 10); i < strtol(argv[6], NULL, 10); i += strtol(argv[5], NULL, 10))
        if (!one_file(&s, strtoull(argv[3], NULL, 10), i, commands)) {
            fprintf(stderr, "%s: cannot be written to\n", s.folder);
            return 3;
        }
    printf("sums %ld runs, %ld answered, %ld refused, %ld died in the library, %ld late, %ld faults\n", s.runs,
           s.answered, s.refused, s.killed, s.late, s.faults);
    for (int i = 0; i < s.n_good; i++)
        at_bytes_release(&s.good[i]);
    return s.faults > 0;
}
