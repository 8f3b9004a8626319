/* Tables of an archive as they stand in the file: looked up and released.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/archive/frame.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const struct at_frame *at_frame_find(const struct at_frames *frames, const char *group) {
    for (int i = 0; i < frames->n; i++)
        if (strcmp(frames->items[i].group, group) == 0)
            return &frames->items[i];
    return NULL;
}

const struct at_frame_column *at_frame_column(const struct at_frame *frame, const char *name) {
    for (int i = 0; frame && i < frame->n_columns; i++)
        if (strcmp(frame->columns[i].name, name) == 0)
            return &frame->columns[i];
    return NULL;
}

double at_frame_number(const struct at_frame_column *column, int64_t row, int place) {
    if (!column)
        return NAN;
    const int64_t i = (row - column->first) * column->width + place;
    switch (column->kind) {
    case AT_FRAME_F64:
        return column->at.f64[i];
    case AT_FRAME_U64:
        return (double)column->at.u64[i];
    case AT_FRAME_FLAG:
    case AT_FRAME_I64:
        return column->has_missing && column->at.i64[i] == -1 ? NAN : (double)column->at.i64[i];
    case AT_FRAME_TEXT:
        break;
    }
    return NAN;
}

const char *at_frame_text(const struct at_frame_column *column, int64_t row) {
    if (column && column->kind == AT_FRAME_TEXT)
        return column->at.text[(row - column->first) * column->width];
    if (column && column->kind == AT_FRAME_FLAG)
        return column->flag[column->at.i64[(row - column->first) * column->width]];
    return "";
}

void at_frame_forget(struct at_frame_column *c) {
    if (c->kind == AT_FRAME_TEXT)
        for (int64_t i = 0; c->at.text && i < c->rows * c->width; i++)
            free(c->at.text[i]);
    free(c->at.text); /* whatever the kind: one address */
    c->at.text = NULL;
    c->rows = 0;
}

static void release_column(struct at_frame_column *c) {
    at_frame_forget(c);
    free(c->name);
    free(c->units);
    free(c->long_name);
    free(c->flag_text);
    free(c->flag);
}

void at_frames_release(struct at_frames *frames) {
    for (int i = 0; i < frames->n; i++) {
        struct at_frame *frame = &frames->items[i];
        for (int c = 0; c < frame->n_columns; c++)
            release_column(&frame->columns[c]);
        free(frame->columns);
        free(frame->group);
        free(frame->type);
    }
    free(frames->items);
    free(frames->request);
    free(frames->build);
    free(frames->version);
    *frames = (struct at_frames){ 0 };
}
