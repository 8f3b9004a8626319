/* JSON lines as results come.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/report/report_stream.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "verify/report/report_text.h"
#include "verify/result/record.h"

at_status at_stream_open(const char *path, int strict, struct at_stream *stream) {
    const int is_stdout = strcmp(path, "-") == 0;
    *stream = (struct at_stream){ is_stdout ? stdout : fopen(path, "we"), path, strict };
    return stream->file ? AT_OK : AT_FAIL(AT_IO, "%s: cannot be written: %s", path, strerror(errno));
}

/* What a reader would have to work out again comes in front of the fields that the journal has. */
static at_status put_line(const struct at_stream *stream, const struct at_result *r) {
    char place[256] = "", *line = NULL;
    if (r->worst_index >= 0 && r->compared > 0)
        at_result_worst(r, place, sizeof place);
    json_t *text = json_string(place);
    char *quoted = text ? json_dumps(text, JSON_ENCODE_ANY) : NULL;
    at_status status = quoted ? AT_OK : AT_FAIL(AT_NO_MEMORY, "no memory to write a result as JSON");
    json_decref(text);
    AT_TRY_OUT(status);
    AT_TRY_OUT(at_result_to_json(r, &line));
    fprintf(stream->file, "{\"fails\":%s,\"place\":%s,%s\n",
            at_state_fails(r->state, r->expect, stream->strict) ? "true" : "false", quoted, line + 1);
out:
    free(quoted);
    free(line);
    return status;
}

at_status at_stream_results(void *context, const struct at_result *results, int n) {
    const struct at_stream *stream = context;
    for (int i = 0; i < n; i++)
        AT_TRY(put_line(stream, &results[i]));
    if (fflush(stream->file) != 0)
        return AT_FAIL(AT_IO, "%s: cannot be written: %s",
                       strcmp(stream->path, "-") == 0 ? "standard output" : stream->path, strerror(errno));
    return AT_OK;
}

at_status at_stream_close(struct at_stream *stream) {
    FILE *file = stream->file;
    stream->file = NULL;
    if (!file || file == stdout)
        return AT_OK;
    const int failed = ferror(file) | fclose(file);
    return failed ? AT_FAIL(AT_IO, "%s: could not be written to the end", stream->path) : AT_OK;
}
