/* A journal: every step of a run on disk before it is spoken of.
 * SPDX-License-Identifier: Apache-2.0
 *
 * Format, version 1: JSON lines, each one object with a key "event", written by one write() and fsynced.
 *
 *   {"event":"start","format":1,"provenance":"<JSON text>","request":"<JSON text>"}
 *   {"event":"NAME","NAME":[{...}, ...]}       the entries of one step
 *   {"event":"end","n":<entries in all>,"shard":"1/4"}
 *
 * Entries of a step share a line, so a step is there whole or not at all. The last line is dropped when it has no
 * newline or is no JSON: that is what a kill or a power cut leaves. A bad line before the last is an error, because
 * something else has written to the file. A write that fails is cut off again, so a full disk loses the job, not the
 * file. Lines that threads append while one of them waits for the disk share the next fsync. Times and the shard belong
 * here and not into the archive. A lock keeps a second process away. */
#include "verify/run/journal_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "verify/result/record.h"

enum { FORMAT = 1 };

struct at_journal {
    char *path;
    int fd;
    const char *name; /* of the content */
    pthread_mutex_t lock;
    pthread_cond_t synced;
    int64_t length;          /* bytes of whole lines that were written */
    int64_t durable;         /* how many of these an fsync has covered */
    int64_t lines, entries;  /* finished steps, and what they hold */
    int syncing;             /* a thread waits for the disk */
    struct pending *pending; /* lines beyond `durable` */
};

/* A line that was written, of a thread that waits until it is durable. */
struct pending {
    struct pending *next;
    int64_t end; /* of the line in the file */
    int settled;
    int why, is_cut; /* then: 0, or errno and whether the file is as before */
};

/* What a scan of the file found. */
struct scan {
    const char *path;
    const struct at_journal_content *content;
    char *request, *provenance;
    int started, ended;
    int64_t lines, entries;
    char shard[32];
    int64_t length; /* up to the end of the last whole line, the end mark left out */
    int64_t file_bytes;
};

/* ---- reading ---- */

static at_status bad_line(const struct scan *scan, int64_t line, const char *wanted) {
    return AT_FAIL(AT_USAGE, "%s:%" PRId64 ": wanted %s", scan->path, line, wanted);
}

static at_status take_start(struct scan *scan, int64_t line, const json_t *json) {
    const char *request = json_string_value(json_object_get(json, "request"));
    const char *provenance = json_string_value(json_object_get(json, "provenance"));
    json_int_t format = json_integer_value(json_object_get(json, "format"));
    if (line != 1 || !request || !provenance)
        return bad_line(scan, line, "the start of a journal, once, with its request and provenance");
    if (format != FORMAT)
        return AT_FAIL(AT_UNSUPPORTED, "%s: journal format %" JSON_INTEGER_FORMAT ", this program reads %d", scan->path,
                       format, FORMAT);
    scan->request = strdup(request);
    scan->provenance = strdup(provenance);
    scan->started = 1;
    return scan->request && scan->provenance ? AT_OK : AT_FAIL(AT_NO_MEMORY, "%s: no memory", scan->path);
}

static at_status take_entries(struct scan *scan, int64_t line, const json_t *json) {
    const json_t *list = json_object_get(json, scan->content->name);
    char where[512];
    if (!json_is_array(list)) {
        snprintf(where, sizeof where, "\"%s\" to be an array", scan->content->name);
        return bad_line(scan, line, where);
    }
    snprintf(where, sizeof where, "%s:%" PRId64, scan->path, line);
    for (size_t i = 0; i < json_array_size(list); i++)
        AT_TRY(scan->content->take(scan->content->context, where, json_array_get(list, i)));
    scan->entries += (int64_t)json_array_size(list);
    scan->lines++;
    return AT_OK;
}

static at_status take_end(struct scan *scan, int64_t line, const json_t *json) {
    const char *shard = json_string_value(json_object_get(json, "shard"));
    if (!shard || strlen(shard) >= sizeof scan->shard)
        return bad_line(scan, line, "\"shard\" to be a short text");
    if (json_integer_value(json_object_get(json, "n")) != scan->entries)
        return bad_line(scan, line, "\"n\" to be the number of entries above");
    snprintf(scan->shard, sizeof scan->shard, "%s", shard);
    scan->ended = 1;
    return AT_OK;
}

static at_status take_line(struct scan *scan, int64_t line, const json_t *json) {
    const char *event = json_string_value(json_object_get(json, "event"));
    if (scan->ended)
        return bad_line(scan, line, "nothing after the end of the run");
    if (event && strcmp(event, "start") == 0)
        return take_start(scan, line, json);
    if (!scan->started)
        return bad_line(scan, line, "the start of a journal; this is no journal of attest");
    if (event && strcmp(event, scan->content->name) == 0)
        return take_entries(scan, line, json);
    if (event && strcmp(event, "end") == 0)
        return take_end(scan, line, json);
    char wanted[80];
    snprintf(wanted, sizeof wanted, "\"event\" to be start, %s or end", scan->content->name);
    return bad_line(scan, line, wanted);
}

/* A line that is no JSON: forgiven at the end, unless it is the whole file and somebody else's, which a new
 * run would overwrite. */
static at_status judge_torn(const struct scan *scan, int64_t line, int64_t position, const char *text, size_t n) {
    static const char head[] = "{\"event\":\"start\",";
    if (position < scan->file_bytes)
        return bad_line(scan, line, "a line of JSON; the file is damaged before its end");
    if (line == 1 && memcmp(text, head, n < sizeof head - 1 ? n : sizeof head - 1) != 0)
        return bad_line(scan, line, "the start of a journal; this is no journal of attest");
    return AT_OK;
}

/* *taken: the whole line was entries, and the content took them. */
static at_status take_fast(struct scan *scan, int64_t line, const char *text, int *taken) {
    char where[512];
    int64_t n = 0;
    *taken = 0;
    if (!scan->content->take_line || !scan->started || scan->ended)
        return AT_OK;
    snprintf(where, sizeof where, "%s:%" PRId64, scan->path, line);
    AT_TRY(scan->content->take_line(scan->content->context, where, text, &n));
    scan->entries += n;
    scan->lines += n > 0;
    *taken = n > 0;
    return AT_OK;
}

/* Reads from the start of `file` to its end. */
static at_status scan_file(FILE *file, struct scan *scan) {
    char *text = NULL;
    size_t size = 0;
    at_status status = AT_OK;
    int64_t line = 0, position = 0;
    for (ssize_t n; status == AT_OK && (n = getline(&text, &size, file)) > 0;) {
        int torn = text[n - 1] != '\n', taken = 0;
        if (!torn)
            status = take_fast(scan, line + 1, text, &taken);
        if (taken || status != AT_OK) {
            line++;
            position += n;
            scan->length = status == AT_OK ? position : scan->length;
            continue;
        }
        json_error_t error;
        json_t *json = torn ? NULL : json_loadb(text, (size_t)n, JSON_REJECT_DUPLICATES, &error);
        line++;
        position += n;
        if (json)
            status = take_line(scan, line, json);
        else
            status = judge_torn(scan, line, position, text, (size_t)n);
        if (json && status == AT_OK && !scan->ended)
            scan->length = position;
        json_decref(json);
    }
    if (status == AT_OK && ferror(file))
        status = AT_FAIL(AT_IO, "cannot read %s: %s", scan->path, strerror(errno));
    free(text);
    return status;
}

/* Scans through a duplicate of the descriptor, which stays open. */
static at_status scan_descriptor(int fd, struct scan *scan) {
    struct stat info;
    if (fstat(fd, &info) != 0)
        return AT_FAIL(AT_IO, "cannot read %s: %s", scan->path, strerror(errno));
    if (!S_ISREG(info.st_mode))
        return AT_FAIL(AT_USAGE, "%s is no regular file, and a journal must be one", scan->path);
    scan->file_bytes = info.st_size;
    int copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    FILE *file = copy >= 0 ? fdopen(copy, "r") : NULL;
    if (!file) {
        at_status status = AT_FAIL(AT_IO, "cannot read %s: %s", scan->path, strerror(errno));
        if (copy >= 0)
            close(copy);
        return status;
    }
    rewind(file);
    at_status status = scan_file(file, scan);
    fclose(file);
    return status;
}

at_status at_journal_file_read(const char *path, const struct at_journal_content *content, char **request,
                               char **provenance, char shard[32], int *finished) {
    struct scan scan = { .path = path, .content = content };
    *request = *provenance = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return AT_FAIL(errno == ENOENT ? AT_NOT_FOUND : AT_IO, "cannot read %s: %s", path, strerror(errno));
    at_status status = scan_descriptor(fd, &scan);
    close(fd);
    *request = scan.request;
    *provenance = scan.provenance;
    if (status == AT_OK && !scan.started)
        status = AT_FAIL(AT_USAGE, "%s has no whole line: no run was started", path);
    memcpy(shard, scan.shard, sizeof scan.shard);
    *finished = scan.ended;
    return status;
}

/* ---- writing ---- */

static at_status cannot_write(const struct at_journal *journal, int why, int cut) {
    return AT_FAIL(AT_IO, "cannot write %s: %s%s", journal->path, strerror(why),
                   cut ? "" : ", nor cut off what was written");
}

/* Cuts off what follows the first `length` bytes. Not being able to leaves a torn last line, which readers drop. */
static int cut_off(struct at_journal *journal, int64_t length) {
    journal->length = length;
    return ftruncate(journal->fd, length) == 0;
}

static at_status write_line(struct at_journal *journal, const char *text, size_t n) {
    size_t done = 0;
    while (done < n) {
        ssize_t written = pwrite(journal->fd, text + done, n - done, journal->length + (off_t)done);
        if (written >= 0)
            done += (size_t)written;
        else if (errno != EINTR) {
            const int why = errno;
            return cannot_write(journal, why, cut_off(journal, journal->length));
        }
    }
    journal->length += (int64_t)n;
    return AT_OK;
}

/* Ends the waits that an fsync of the first `length` bytes decides; why: 0, or its errno, and then every line waiting is lost. */
static void settle(struct at_journal *journal, int64_t length, int why) {
    const int is_cut = why && cut_off(journal, journal->durable);
    struct pending **at = &journal->pending;
    if (!why)
        journal->durable = length;
    while (*at) {
        struct pending *line = *at;
        if (!why && line->end > length) { /* written after the fsync began */
            at = &line->next;
            continue;
        }
        *at = line->next;
        line->settled = 1;
        line->why = why;
        line->is_cut = is_cut;
    }
    pthread_cond_broadcast(&journal->synced);
}

/* Has the disk keep what was written so far, whoever wrote it. The lock is open meanwhile. */
static void sync_for_all(struct at_journal *journal) {
    const int64_t length = journal->length;
    journal->syncing = 1;
    pthread_mutex_unlock(&journal->lock);
    const int why = fsync(journal->fd) == 0 ? 0 : errno;
    pthread_mutex_lock(&journal->lock);
    journal->syncing = 0;
    settle(journal, length, why);
}

enum { NO_STEP = -1 }; /* instead of a number of entries */

/* One line of so many entries, durable; on failure the file is as long as before. Threads that append at the same time
 * share an fsync: none waits longer than for the one at work and the next. */
static at_status append_line(struct at_journal *journal, const char *text, size_t n, int64_t entries) {
    pthread_mutex_lock(&journal->lock);
    at_status status = write_line(journal, text, n);
    if (status == AT_OK) {
        struct pending line = { .next = journal->pending, .end = journal->length };
        journal->pending = &line;
        while (!line.settled)
            if (journal->syncing)
                pthread_cond_wait(&journal->synced, &journal->lock);
            else
                sync_for_all(journal);
        status = line.why ? cannot_write(journal, line.why, line.is_cut) : AT_OK;
    }
    if (status == AT_OK && entries != NO_STEP) {
        journal->entries += entries;
        journal->lines++;
    }
    pthread_mutex_unlock(&journal->lock);
    return status;
}

static at_status append_json(struct at_journal *journal, json_t *json) {
    char *text = json ? json_dumps(json, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    json_decref(json);
    if (!text)
        return AT_FAIL(AT_BUG, "%s: a line of the journal is no valid JSON", journal->path);
    size_t n = strlen(text);
    text[n] = '\n'; /* in the place of the end mark; the length is passed */
    at_status status = append_line(journal, text, n + 1, NO_STEP);
    free(text);
    return status;
}

at_status at_journal_file_append(struct at_journal *journal, const char *const *entries, int64_t n) {
    char *text = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&text, &size);
    if (!stream)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory for %" PRId64 " entries", journal->path, n);
    fprintf(stream, "{\"event\":\"%s\",\"%s\":[", journal->name, journal->name);
    for (int64_t i = 0; i < n; i++)
        fprintf(stream, "%s%s", i ? "," : "", entries[i]);
    fputs("]}\n", stream);
    at_status status = AT_OK;
    if (fclose(stream) != 0)
        status = AT_FAIL(AT_NO_MEMORY, "%s: no memory for %" PRId64 " entries", journal->path, n);
    if (status == AT_OK)
        status = append_line(journal, text, size, n);
    free(text);
    return status;
}

/* ---- opening and closing ---- */

static at_status check_resume(const struct scan *scan, const struct at_journal_head *head) {
    char difference[512];
    if (at_json_difference(head->request, scan->request, difference, sizeof difference))
        return AT_FAIL(AT_USAGE, "cannot resume %s, it is of another request: %s", scan->path, difference);
    if (at_json_difference(head->provenance, scan->provenance, difference, sizeof difference))
        return AT_FAIL(AT_USAGE, "cannot resume %s, it is of another build or machine: %s", scan->path, difference);
    return AT_OK;
}

/* Decides what becomes of a file that exists, and cuts it to what stays. */
static at_status adopt(struct at_journal *journal, const struct at_journal_head *head, int resume, struct scan *scan) {
    AT_TRY(scan_descriptor(journal->fd, scan));
    if (scan->started && !resume && !scan->ended)
        return AT_FAIL(AT_USAGE,
                       "%s holds %" PRId64 " %s of a run that did not end: --resume continues it, "
                       "deleting the file forgets it",
                       journal->path, scan->entries, journal->name);
    if (scan->started && resume) {
        AT_TRY(check_resume(scan, head));
        journal->length = scan->length;
        journal->entries = scan->entries;
        journal->lines = scan->lines;
    } else {
        scan->content->forget(scan->content->context);
    }
    if (ftruncate(journal->fd, journal->length) != 0)
        return AT_FAIL(AT_IO, "cannot write %s: %s", journal->path, strerror(errno));
    journal->durable = journal->length;
    return AT_OK;
}

static at_status open_locked(struct at_journal *journal) {
    journal->fd = open(journal->path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (journal->fd < 0)
        return AT_FAIL(AT_IO, "cannot write %s: %s", journal->path, strerror(errno));
    if (flock(journal->fd, LOCK_EX | LOCK_NB) != 0)
        return AT_FAIL(AT_IO, "%s is being written by another process", journal->path);
    return AT_OK;
}

static at_status write_start(struct at_journal *journal, const struct at_journal_head *head) {
    return append_json(journal, json_pack("{ss si ss ss}", "event", "start", "format", FORMAT, "request",
                                          head->request ? head->request : "{}", "provenance",
                                          head->provenance ? head->provenance : "{}"));
}

at_status at_journal_file_open(const char *path, const struct at_journal_head *head, int resume,
                               const struct at_journal_content *content, struct at_journal **journal) {
    at_status status = AT_OK;
    struct at_journal *j = calloc(1, sizeof *j);
    struct scan scan = { .path = path, .content = content };
    *journal = NULL;
    if (!j)
        return AT_FAIL(AT_NO_MEMORY, "%s: no memory", path);
    j->fd = -1;
    pthread_mutex_init(&j->lock, NULL);
    pthread_cond_init(&j->synced, NULL);
    j->name = content->name;
    j->path = strdup(path);
    if (!j->path)
        AT_FAIL_OUT(AT_NO_MEMORY, "%s: no memory", path);
    AT_TRY_OUT(open_locked(j));
    AT_TRY_OUT(adopt(j, head, resume, &scan));
    if (j->length == 0)
        AT_TRY_OUT(write_start(j, head));
    *journal = j;
out:
    free(scan.request);
    free(scan.provenance);
    if (status != AT_OK)
        at_journal_abandon(j);
    return status;
}

int64_t at_journal_lines(const struct at_journal *journal) { return journal->lines; }

void at_journal_abandon(struct at_journal *journal) {
    if (!journal)
        return;
    if (journal->fd >= 0)
        close(journal->fd);
    pthread_cond_destroy(&journal->synced);
    pthread_mutex_destroy(&journal->lock);
    free(journal->path);
    free(journal);
}

at_status at_journal_finish(struct at_journal *journal, const char *shard) {
    at_status status = append_json(journal, json_pack("{ss sI ss}", "event", "end", "n", (json_int_t)journal->entries,
                                                      "shard", shard ? shard : ""));
    at_journal_abandon(journal);
    return status;
}
