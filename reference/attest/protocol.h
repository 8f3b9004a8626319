/* The runner protocol: lines of text between attest and a program that owns a device and runs kernels.
 * SPDX-License-Identifier: Apache-2.0
 *
 * kernels/runner/PROTOCOL.md is the full description, with a transcript. A line is a verb and fields
 * `key=value`, separated by single spaces and ended by '\n'; values are percent-escaped, so a line holds
 * printable ASCII only. Parsers treat the other side as hostile: every number has a range, every text a
 * length, and nothing is allocated. All failures are AT_PROTOCOL, with what was found and what is wanted. */
#ifndef AT_PROTOCOL_H
#define AT_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#include "attest/op.h"
#include "attest/run_mode.h"
#include "attest/way.h"

/* The version is that of the grammar: verbs, their fields, and how a size, a parameter and a tensor are written. Which
 * of them an operator has is none of it. The two sides must agree exactly. */
enum { AT_PROTOCOL_VERSION = 5 };
enum {
    AT_LINE_BYTES = 16384, /* longest line, its '\n' included */
    AT_LINE_FIELDS = 96,   /* most fields of a line */
    AT_MAX_VARIANTS = 4096,
    AT_NONCE_BYTES = 16,
    AT_INHERITED_FD = 3 /* where attest puts the shared memory's descriptor */
};
/* Largest block, workspace or tensor a line may name: far above any machine, far below overflow. */
#define AT_PROTOCOL_MAX_BYTES ((int64_t)1 << 46)

/* How tensors travel: in shared memory, or behind the lines on the same pipes. */
enum at_transport { AT_TRANSPORT_MEMFD, AT_TRANSPORT_INLINE, AT_TRANSPORT_COUNT };
const char *at_transport_name(enum at_transport transport);
at_status at_transport_parse(const char *name, enum at_transport *transport);

/* ---- lines ---- */

/* A line being written. Too long a line is remembered and reported by at_line_end(). */
struct at_line {
    size_t n;
    int full;
    char text[AT_LINE_BYTES + 1];
};
void at_line_begin(struct at_line *line, const char *verb);
void at_line_text(struct at_line *line, const char *key, const char *value);
void at_line_i64(struct at_line *line, const char *key, int64_t value);
void at_line_f64(struct at_line *line, const char *key, double value); /* hexadecimal: exact */
/* Appends the '\n'; AT_PROTOCOL when the line did not fit. */
at_status at_line_end(struct at_line *line);

/* A line taken apart in place: verb and unescaped values point into the caller's text. */
struct at_message {
    const char *verb;
    int n;
    struct {
        const char *key, *value;
    } field[AT_LINE_FIELDS];
};
/* `text` holds one line without its '\n' and is changed. */
at_status at_message_parse(char *text, struct at_message *message);
/* AT_PROTOCOL for another verb. */
at_status at_message_expect(const struct at_message *message, const char *verb);
/* Value of the first field of that name, NULL if none. */
const char *at_message_get(const struct at_message *message, const char *key);
/* Copies; the field must exist and fit with its terminator. */
at_status at_message_text(const struct at_message *message, const char *key, char *out, size_t size);
/* A decimal integer in [min, max]. */
at_status at_message_i64(const struct at_message *message, const char *key, int64_t min, int64_t max, int64_t *out);
/* The same in [0, most] for a field that may be left out: then 0. */
at_status at_message_optional_i64(const struct at_message *message, const char *key, int64_t most, int64_t *out);
/* A floating-point number, decimal or hexadecimal; nan and inf are taken. */
at_status at_message_f64(const struct at_message *message, const char *key, double *out);

/* Bytes that arrive on a pipe and have not been used yet. */
struct at_inbox {
    size_t begin, end;
    char data[AT_LINE_BYTES];
};
/* Room for reading: at least 1 byte, unless a line or payload is waiting to be taken. */
char *at_inbox_room(struct at_inbox *inbox, size_t *room);
void at_inbox_added(struct at_inbox *inbox, size_t n);
/* *line = the next whole line, terminated in place and valid until the next call on this inbox; NULL when
 * more bytes are needed. AT_PROTOCOL for a line beyond AT_LINE_BYTES or a byte that is not printable ASCII. */
at_status at_inbox_line(struct at_inbox *inbox, char **line);
/* Moves up to n waiting bytes to out (payload of the inline transport); returns how many. */
size_t at_inbox_take(struct at_inbox *inbox, void *out, size_t n);

/* ---- messages ---- */

/* runner -> attest: first line; then one `variant` line per kernel, then `ready`. */
struct at_hello {
    int64_t version;
    char name[64], device[256];
    int transport[AT_TRANSPORT_COUNT]; /* 1 for each one the runner speaks */
    int variants;
    int sequences; /* it knows `hold` and `replays` */
    /* Parameters that it takes of those that runners may be older than: "operator.name", with commas between. */
    char takes[512];
};
at_status at_hello_format(const struct at_hello *hello, struct at_line *line);
at_status at_hello_parse(const struct at_message *message, struct at_hello *hello);
/* All that this program knows. */
void at_takes_all(char *takes, size_t size);
/* A parameter of the problem that only runners which say so take, with another value than the default, and that `takes`
 * does not have; NULL: there is none. */
const struct at_scalar *at_takes_lacks(const char *takes, const struct at_problem *problem);

struct at_variant_text {
    char family[64], name[96], path[160], sha256[65], summary[256], source[64], numerics[640];
    char mutant_of[160]; /* family/name that it was made of, by a fault; "": it is no mutant */
    int untimed;         /* it refuses every job with timings */
    int asked;           /* numerics are of one problem; of each the reply to a question has its own */
};
at_status at_variant_format(int index, const struct at_variant_text *variant, struct at_line *line);
/* `index` is the one expected next: variants are announced in order, without gaps. */
at_status at_variant_parse(const struct at_message *message, int index, struct at_variant_text *variant);

/* attest -> runner: which transport. The nonce stands at the start of the memory behind fd, so that a
 * runner on another host, or one that did not inherit the descriptor, finds out and refuses. */
struct at_open {
    enum at_transport transport;
    int fd;                        /* memfd only */
    int64_t memory;                /* memfd only: bytes of the block */
    uint8_t nonce[AT_NONCE_BYTES]; /* memfd only */
};
at_status at_open_format(const struct at_open *open, struct at_line *line);
at_status at_open_parse(const struct at_message *message, struct at_open *open);

struct at_job_tensor {
    int index; /* the operator's tensor index */
    char name[32];
    enum at_role role;
    struct at_tensor shape; /* data is NULL */
    int64_t offset, bytes;  /* within the block */
};

/* attest -> runner: run one variant on one problem. */
struct at_job {
    int64_t id;
    int variant;
    char op[48];
    int64_t memory; /* memfd: bytes of the block now, at least `used`; inline: 0 */
    int64_t used;   /* the block's bytes in use, guard bands included; inline: they follow the line */
    double timeout; /* seconds after which attest kills the runner */
    /* Operator, format, sizes and parameters, without tensors. Parsed: op is NULL when this program does not know it, and
     * `lacks` names a size of the operator that the line does not have. Neither can be run; both can be answered. */
    struct at_problem problem;
    char lacks[64];
    struct at_run_mode mode;
    int n_tensors;
    struct at_job_tensor tensor[AT_MAX_TENSORS];
};
/* problem.op is `op`. */
at_status at_job_format(const struct at_job *job, struct at_line *line);
/* Also checks that tensors lie inside [0, used), are aligned to their elements, and are as long as
 * their shape says; their contents are not read. */
at_status at_job_parse(const struct at_message *message, struct at_job *job);

enum at_reply_kind {
    AT_REPLY_DONE,
    AT_REPLY_UNSUPPORTED,
    AT_REPLY_FAILED,
    /* What a runner that watches every access found; the block's contents are then of no use. */
    AT_REPLY_RACY,
    AT_REPLY_DIRTY,
    AT_REPLY_DEADLOCKED,
    AT_REPLY_COUNT
};

/* runner -> attest: what became of a job. After an inline `done`, `bytes` bytes follow: the whole block. */
struct at_reply {
    enum at_reply_kind kind;
    int64_t id;
    double seconds;   /* done only */
    int capturable;   /* done only: the launch can be captured in a graph; a C variant runs as it is launched */
    int64_t path;     /* done only: hash of what was launched, kernels, grids and shared memory; 0: not known */
    int64_t launches; /* done only: kernels that were launched; 0: none, or not known */
    char
        way[AT_WAY_SIZE]; /* done only: which of its kernels a variant that chooses took; "": no choice, or not known */
    int64_t bytes;        /* done only; 0 for memfd */
    int has_counters;
    struct at_counters counters;
    struct at_timing timing;
    int timed_outputs; /* done, timed: the block has what a timed launch left */
    int declares;      /* done, asked: it says what it declares on this problem; else that is what its line says */
    char numerics[640];
    char reason[512];
};
at_status at_reply_format(const struct at_reply *reply, struct at_line *line);
at_status at_reply_parse(const struct at_message *message, struct at_reply *reply);

#endif
