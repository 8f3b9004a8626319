/* A recording: a source, its parameters, and what of it is counted, layer by layer.
 * SPDX-License-Identifier: Apache-2.0 */
#ifndef AT_DIST_RECORD_H
#define AT_DIST_RECORD_H

#include <pthread.h>

#include "verify/record/dist_device.h"
#include "verify/record/dist_source.h"
#include "verify/record/dist_unit.h"

/* What was asked for; NULL: the default. */
struct at_dist_request {
    const char *input, *attention, *params, *layers, *bins, *dtype, *what;
    int shard, shards; /* from 0; 0 of 1: everything */
};

struct at_dist_recording {
    struct at_dist_source source;
    struct at_dist_params params;
    struct at_dist_shape shape;
    enum at_format dtype; /* q, k and v as they are counted */
    int shard, shards;
    int *dealt;                    /* [n_layers requests] whose shard each is; NULL: all are this one's */
    struct at_dist_device *device; /* NULL: threads of this process count; the caller's */
    pthread_mutex_t
        *lock; /* of copies of a recording that have devices of their own: held while one reads the source or adds
                              to a layer, and while it calls step(). NULL: there is one */
    struct at_run_record record; /* request and provenance */
};

/* Opens the source and checks everything that can be wrong with the request or with sizes. */
at_status at_dist_recording_open(const struct at_dist_request *request, struct at_dist_recording *recording);
void at_dist_recording_close(struct at_dist_recording *recording);
/* Is the request of layer i in this shard? Requests are dealt by their scores, so that shards take as long. */
int at_dist_recording_has(const struct at_dist_recording *recording, int64_t i, int64_t request);
/* What the writer of the archive wants to know; its pointers are the recording's. */
struct at_dist_head at_dist_recording_head(const struct at_dist_recording *recording);

/* Reads, counts and names one unit. `layer` has the recording's shape. step (may be NULL) hears of queries that are
 * counted, a tile at a time. */
at_status at_dist_recording_unit(struct at_dist_recording *recording, struct at_dist_workers *workers, int64_t i,
                                 int64_t request, struct at_dist_layer *layer, struct at_dist_unit_row *row,
                                 void (*step)(void *context, int64_t queries), void *context);

#endif
