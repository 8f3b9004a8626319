/* Test kernels that are wrong in one way each, and one that writes down what it sees.
 * SPDX-License-Identifier: Apache-2.0 */
#include "tests/support/launch_kernels.h"

#include "attest/attention.h"

#include <dirent.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- what they are made of ---- */

static const struct at_tensor *output(const struct at_launch *launch) {
    return &launch->problem->tensors[at_op_tensor_index(at_op_find("asynct_attention"), "o")];
}

/* 0 in every element. The sub-problems of a batch can be empty: then there is nothing to write. */
static float *zeros(const struct at_launch *launch) {
    const struct at_tensor *o = output(launch);
    if (o->data)
        memset(o->data, 0, (size_t)at_tensor_bytes(o));
    return (float *)o->data;
}

static int write_if(const struct at_launch *launch, int64_t i, float value, int condition) {
    float *o = zeros(launch);
    if (condition && i < at_tensor_count(output(launch)))
        o[i] = value;
    return 0;
}

static int alone(const struct at_launch *launch) { return launch->problem->sizes.b == 1; }
static int next(int *counter) { return (*counter)++; }

static int change_query(const struct at_launch *launch, int condition) {
    float *q = (float *)launch->problem->tensors[AT_ATTN_Q].data;
    zeros(launch);
    if (condition && q)
        q[0] += 1;
    return 0;
}

/* ---- values ---- */

static int bends(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const float *q = (const float *)p->tensors[AT_ATTN_Q].data, *v = (const float *)p->tensors[AT_ATTN_V].data;
    float *o = zeros(launch);
    for (int64_t i = 0; i < at_tensor_count(output(launch)); i++)
        o[i] = v[i % p->sizes.d] * (q[0] > 0 ? 1.03f : 1.0f);
    return 0;
}

static int copy_value(const struct at_launch *launch, const float *v) {
    float *o = zeros(launch);
    for (int64_t i = 0; i < at_tensor_count(output(launch)); i++)
        o[i] = v[i % launch->problem->sizes.d];
    return 0;
}

static int reads(const struct at_launch *launch) {
    return copy_value(launch, (const float *)launch->problem->tensors[AT_ATTN_V].data);
}

enum { KEPT = 16, KEPT_D = 64 };

/* `places`: how many addresses it remembers. */
static int keep(const struct at_launch *launch, int places, const void **address, float (*kept)[KEPT_D]) {
    const struct at_tensor *v = &launch->problem->tensors[AT_ATTN_V];
    int i = 0;
    while (i < places && address[i] && address[i] != v->data)
        i++;
    i = i < places ? i : places - 1;
    if (address[i] != v->data)
        memcpy(kept[i], v->data, (size_t)launch->problem->sizes.d * sizeof(float));
    address[i] = v->data;
    return copy_value(launch, kept[i]);
}

static int keeps(const struct at_launch *launch) {
    static const void *address[KEPT];
    static float kept[KEPT][KEPT_D];
    return keep(launch, KEPT, address, kept);
}

static int keeps_last(const struct at_launch *launch) {
    static const void *address[1];
    static float kept[1][KEPT_D];
    return keep(launch, 1, address, kept);
}

/* ---- writes ---- */

static int plain(const struct at_launch *launch) {
    zeros(launch);
    return 0;
}

static int unwritten(const struct at_launch *launch) {
    const struct at_tensor *o = output(launch);
    for (int64_t i = 0; i < at_tensor_count(o); i++)
        if (i != 5 && i != 7)
            ((float *)o->data)[i] = 0;
    return 0;
}

static int past(const struct at_launch *launch) {
    ((uint8_t *)zeros(launch))[at_tensor_bytes(output(launch)) + 8] ^= 0x40;
    return 0;
}

static int before(const struct at_launch *launch) {
    ((uint8_t *)zeros(launch))[-1] ^= 0x40;
    return 0;
}

static int before_input(const struct at_launch *launch) {
    zeros(launch);
    ((uint8_t *)launch->problem->tensors[AT_ATTN_V].data)[-1] ^= 0x40;
    return 0;
}

static int changes_input(const struct at_launch *launch) { return change_query(launch, 1); }
static int changes_alone(const struct at_launch *launch) { return change_query(launch, alone(launch)); }

static int changes_later(const struct at_launch *launch) {
    static int launches;
    return change_query(launch, next(&launches) > 0);
}

/* ---- what stands where ---- */

static int is_huge(float x) { return fabsf(x) == FLT_MAX / 2; }
static int is_1024(float x) { return fabsf(x) >= 512 && fabsf(x) <= 1024; }
static int is_nan(float x) { return isnan(x); }
static int is_odd(float x) { return !(fabsf(x) <= 512); }

static int in_row(const struct at_problem *p, int tensor, int64_t slot, int (*is)(float)) {
    const int64_t n = p->sizes.hk * p->sizes.d;
    const float *row = (const float *)p->tensors[tensor].data + slot * n;
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++)
        count += is(row[i]);
    return count == n ? 2 : count > 0;
}

static float whole_rows(const struct at_problem *p, int tensor, int (*is)(float)) {
    int rows = 0;
    for (int64_t slot = 0; slot < p->sizes.slots; slot++)
        rows += in_row(p, tensor, slot, is) == 2;
    return (float)rows;
}

static float owned_rows_odd(const struct at_problem *p) {
    int rows = 0;
    for (int64_t r = 0; r < p->sizes.b; r++)
        for (int64_t t = 0; t < at_tensor_i32(&p->tensors[AT_ATTN_SEQ_LENS], r); t++)
            rows += in_row(p, AT_ATTN_K, at_attn_slot(p, r, t), is_odd) ||
                    in_row(p, AT_ATTN_V, at_attn_slot(p, r, t), is_odd);
    return (float)rows;
}

static float both_signs(const struct at_problem *p) {
    const struct at_tensor *k = &p->tensors[AT_ATTN_K];
    int up = 0, down = 0;
    for (int64_t i = 0; i < at_tensor_count(k); i++) {
        const float x = ((const float *)k->data)[i];
        up |= x >= 512;
        down |= x <= -512;
    }
    return (float)(up && down);
}

static int sees(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    const float *o = (const float *)output(launch)->data;
    float seen[AT_SEEN_COUNT] = { 0 };
    for (int64_t i = 0; i < at_tensor_count(output(launch)); i++)
        seen[AT_SEEN_UNMARKED] += (float)!isnan(o[i]);
    seen[AT_SEEN_SLOTS] = (float)p->sizes.slots;
    seen[AT_SEEN_K_NAN] = whole_rows(p, AT_ATTN_K, is_nan);
    seen[AT_SEEN_K_1024] = whole_rows(p, AT_ATTN_K, is_1024);
    seen[AT_SEEN_K_HUGE] = whole_rows(p, AT_ATTN_K, is_huge);
    seen[AT_SEEN_V_NAN] = whole_rows(p, AT_ATTN_V, is_nan);
    seen[AT_SEEN_V_HUGE] = whole_rows(p, AT_ATTN_V, is_huge);
    seen[AT_SEEN_OWNED_BAD] = owned_rows_odd(p);
    seen[AT_SEEN_SIGNS] = both_signs(p);
    memcpy(zeros(launch), seen, sizeof seen);
    return 0;
}

static int echoes(const struct at_launch *launch) {
    static uint32_t last;
    const struct at_tensor *o = output(launch);
    const uint32_t now = ((const uint32_t *)o->data)[0];
    for (int64_t i = 0; i < at_tensor_count(o); i++)
        ((uint32_t *)o->data)[i] = last;
    last = now;
    return 0;
}

/* ---- bits that change ---- */

static int follows_poison(const struct at_launch *launch) {
    return write_if(launch, 3, 1, whole_rows(launch->problem, AT_ATTN_K, is_nan) > 0);
}

static int follows_v(const struct at_launch *launch) {
    const struct at_tensor *v = &launch->problem->tensors[AT_ATTN_V];
    float sum = 0;
    for (int64_t i = 0; i < at_tensor_count(v); i++)
        sum += is_odd(((const float *)v->data)[i]) ? 0 : ((const float *)v->data)[i];
    return write_if(launch, 3, sum, 1);
}

static int alternates(const struct at_launch *launch) {
    static int launches;
    return write_if(launch, 3, 1, next(&launches) % 2);
}

static int unsteady(const struct at_launch *launch) {
    static int launches;
    return write_if(launch, 3, 1, next(&launches) % 2);
}

static int once_differs(const struct at_launch *launch) {
    static int launches;
    return write_if(launch, 3, 1, next(&launches) == 1);
}

static int still_follows(const struct at_launch *launch) {
    static int launches;
    float *o = zeros(launch);
    if (at_tensor_count(output(launch)) > 4) {
        o[3] = whole_rows(launch->problem, AT_ATTN_K, is_nan) > 0 ? 1.0f : 0.0f;
        o[4] = next(&launches) % 2 ? -0.0f : 0.0f;
    }
    return 0;
}

static int twice_differs(const struct at_launch *launch) {
    static int launches;
    const int i = next(&launches);
    return write_if(launch, 3, 1, i == 1 || i == 2);
}

static int rarely_differs(const struct at_launch *launch) {
    static int launches;
    const int i = next(&launches);
    return write_if(launch, 3, 1, i == 1 || i == 3);
}

static int by_batch(const struct at_launch *launch) { return write_if(launch, 0, -0.0f, alone(launch)); }

static int by_place(const struct at_launch *launch) {
    const struct at_problem *p = launch->problem;
    return write_if(launch, 0, -0.0f, p->sizes.b > 1 && at_tensor_i32(&p->tensors[AT_ATTN_SEQ_LENS], 0) == 9);
}

/* ---- calls that fail ---- */

static int fails(const struct at_launch *launch) {
    (void)launch;
    return 7;
}

static int fails_later(const struct at_launch *launch) {
    static int launches;
    zeros(launch);
    return next(&launches) ? 7 : 0;
}

static int fails_alone(const struct at_launch *launch) {
    zeros(launch);
    return alone(launch) ? 7 : 0;
}

static int aborts_alone(const struct at_launch *launch) {
    zeros(launch);
    if (alone(launch))
        abort();
    return 0;
}

static int hangs(const struct at_launch *launch) {
    (void)launch;
    while (pause() != 0)
        ;
    return 0;
}

static int visitors(const char *folder) {
    int n = 0;
    DIR *dir = opendir(folder);
    for (const struct dirent *entry; dir && (entry = readdir(dir));)
        n += entry->d_name[0] != '.';
    if (dir)
        closedir(dir);
    return n;
}

static int meets(const struct at_launch *launch) {
    enum { NAPS = 6000, NAP_US = 10000 };
    const char *folder = getenv("AT_TEST_MEETING");
    char path[4200];
    snprintf(path, sizeof path, "%s/%ld", folder ? folder : "/nonexistent", (long)getpid());
    FILE *file = fopen(path, "w");
    if (!file)
        return 8;
    fclose(file);
    zeros(launch);
    for (int i = 0; i < NAPS && visitors(folder) < 2; i++)
        usleep(NAP_US);
    return visitors(folder) < 2 ? 7 : 0;
}
static int meets_too(const struct at_launch *launch) { return meets(launch); }

static const char *declines(const struct at_problem *problem) {
    return problem->sizes.d == 8 ? "head size 8 is too small" : NULL;
}

static const char *declines_alone(const struct at_problem *problem) {
    return problem->sizes.b == 1 ? "one request is too few" : NULL;
}

/* ---- the table ---- */

#define SAYS .free_order = 1, .qk_lanes = 1, .p = AT_F32, .pv_chunk = 1
#define STEADY \
    { SAYS, .repeats = 1, .batch_invariant = 1 }
#define KERNEL(function) \
    { .summary = #function, .source = "a test", .numerics = STEADY, .launch = function }

static const struct at_kernel kernels[AT_LK_COUNT] = {
    [AT_LK_ZEROS] = KERNEL(plain),
    [AT_LK_UNWRITTEN] = KERNEL(unwritten),
    [AT_LK_PAST] = KERNEL(past),
    [AT_LK_BEFORE] = KERNEL(before),
    [AT_LK_BEFORE_INPUT] = KERNEL(before_input),
    [AT_LK_CHANGES_INPUT] = KERNEL(changes_input),
    [AT_LK_CHANGES_LATER] = KERNEL(changes_later),
    [AT_LK_CHANGES_ALONE] = KERNEL(changes_alone),
    [AT_LK_SEES] = KERNEL(sees),
    [AT_LK_SEES_FINITE] = { .summary = "sees_finite",
                            .source = "a test",
                            .numerics = { SAYS, .repeats = 1, .tail = AT_TAIL_FINITE },
                            .launch = sees },
    [AT_LK_ECHOES] = KERNEL(echoes),
    [AT_LK_FOLLOWS_POISON] = KERNEL(follows_poison),
    [AT_LK_FOLLOWS_V] = KERNEL(follows_v),
    [AT_LK_ALTERNATES] = KERNEL(alternates),
    [AT_LK_TWICE_DIFFERS] = KERNEL(twice_differs),
    [AT_LK_RARELY_DIFFERS] = KERNEL(rarely_differs),
    [AT_LK_UNSTEADY] = { .summary = "unsteady", .source = "a test", .numerics = { SAYS }, .launch = unsteady },
    [AT_LK_ONCE_DIFFERS] = { .summary = "once", .source = "a test", .numerics = { SAYS }, .launch = once_differs },
    [AT_LK_STILL_FOLLOWS] = { .summary = "still", .source = "a test", .numerics = { SAYS }, .launch = still_follows },
    [AT_LK_BY_BATCH] = KERNEL(by_batch),
    [AT_LK_BY_PLACE] = KERNEL(by_place),
    [AT_LK_BY_BATCH_SAID] = { .summary = "by_batch_said",
                              .source = "a test",
                              .numerics = { SAYS, .repeats = 1 },
                              .launch = by_batch },
    [AT_LK_FAILS] = KERNEL(fails),
    [AT_LK_FAILS_LATER] = KERNEL(fails_later),
    [AT_LK_FAILS_ALONE] = KERNEL(fails_alone),
    [AT_LK_DECLINES] = { .summary = "declines",
                         .source = "a test",
                         .numerics = STEADY,
                         .supports = declines,
                         .launch = plain },
    [AT_LK_DECLINES_ALONE] = { .summary = "declines_alone",
                               .source = "a test",
                               .numerics = STEADY,
                               .supports = declines_alone,
                               .launch = plain },
    [AT_LK_ABORTS_ALONE] = KERNEL(aborts_alone),
    [AT_LK_HANGS] = KERNEL(hangs),
    [AT_LK_BENDS] = { .summary = "bends",
                      .source = "a test",
                      .numerics = { .free_order = 1, .qk_lanes = 1, .p = AT_E4M3, .pv_chunk = 1, .repeats = 1 },
                      .launch = bends },
    [AT_LK_KEEPS] = KERNEL(keeps),
    [AT_LK_KEEPS_LAST] = KERNEL(keeps_last),
    [AT_LK_READS] = KERNEL(reads),
    [AT_LK_MEETS] = KERNEL(meets),
    [AT_LK_MEETS_TOO] = KERNEL(meets_too),
};

const char *at_launch_name(enum at_launch_kernel kernel) {
    static char name[32];
    snprintf(name, sizeof name, "%02d_%s", (int)kernel, kernels[kernel].summary);
    return name;
}

static const struct at_kernel_entry *entry_at(int i) {
    static struct at_kernel_entry entry;
    entry = (struct at_kernel_entry){ "asynct_prefill", at_launch_name((enum at_launch_kernel)i),
                                      "tests/support/launch_kernels.c", &kernels[i], "" };
    return &entry;
}

int at_launch_serve(void) { return at_rig_serve_list(&(struct at_kernel_list){ AT_LK_COUNT, entry_at }); }

int at_launch_variant(const struct at_runner *runner, enum at_launch_kernel kernel) {
    return at_rig_find(runner, "asynct_prefill", at_launch_name(kernel));
}
