/* Results as JSON lines while a run goes on: what a program that repairs kernels, or a CI bot, reads.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_REPORT_STREAM_H
#define AT_REPORT_STREAM_H

#include <stdio.h>

#include "verify/result/result.h"

struct at_stream {
    FILE *file;
    const char *path; /* "-": standard output, which is not closed */
    int strict;
};

/* Empties the file at `path`, or takes standard output for "-". AT_IO. */
at_status at_stream_open(const char *path, int strict, struct at_stream *stream);
/* `context` is the stream. A line a result, flushed before this returns: its fields as in the journal, and before them "fails" (it
 * fails the run) and "place" ("o[token 3, head 2, channel 17]", the worst element; "" without one). AT_IO. */
at_status at_stream_results(void *context, const struct at_result *results, int n);
/* AT_IO when something was not written. A stream that was never opened is closed, too. */
at_status at_stream_close(struct at_stream *stream);

#endif
