/* The list of devices.
 * SPDX-License-Identifier: Apache-2.0 */
#include "verify/runner/devices.h"

#include "attest/env.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The names in CUDA_VISIBLE_DEVICES, as numbers, UUIDs or MIG instances. */
static int named(const char *text, char names[AT_MAX_DEVICES][AT_DEVICE_NAME]) {
    int n = 0;
    while (*text && n < AT_MAX_DEVICES) {
        const size_t length = strcspn(text, ",");
        if (length)
            snprintf(names[n++], AT_DEVICE_NAME, "%.*s", (int)length, text);
        text += length + (text[length] == ',');
    }
    return n;
}

/* A container may be given /dev/nvidia3 alone: CUDA numbers what there is from 0. */
static int counted(char names[AT_MAX_DEVICES][AT_DEVICE_NAME]) {
    int n = 0;
    for (int i = 0; i < AT_MAX_DEVICES; i++) {
        char path[32];
        snprintf(path, sizeof path, "/dev/nvidia%d", i);
        if (access(path, F_OK) == 0) {
            snprintf(names[n], AT_DEVICE_NAME, "%d", n);
            n++;
        }
    }
    return n;
}

static at_status add(const char *word, char seen[AT_MAX_DEVICES][AT_DEVICE_NAME], int n_seen,
                     struct at_device_list *list) {
    char *end;
    const long number = strtol(word, &end, 10);
    if (end == word || *end || number < 0 || number >= (n_seen ? n_seen : AT_MAX_DEVICES))
        return AT_FAIL(AT_USAGE, "--devices: found '%.40s', wanted all, or numbers from 0 to %d with commas", word,
                       (n_seen ? n_seen : AT_MAX_DEVICES) - 1);
    char *name = list->name[list->n];
    if (n_seen)
        memcpy(name, seen[number], AT_DEVICE_NAME);
    else
        snprintf(name, AT_DEVICE_NAME, "%ld", number);
    for (int i = 0; i < list->n; i++)
        if (strcmp(list->name[i], name) == 0)
            return AT_FAIL(AT_USAGE, "--devices: %ld is there twice", number);
    list->n++;
    return AT_OK;
}

at_status at_devices_parse(const char *text, struct at_device_list *list) {
    char seen[AT_MAX_DEVICES][AT_DEVICE_NAME] = { "" };
    const char *visible = getenv("CUDA_VISIBLE_DEVICES");
    *list = (struct at_device_list){ 0 };
    if (!text)
        return AT_OK;
    const int n = visible ? named(visible, seen) : counted(seen);
    if (strcmp(text, "all") == 0) {
        memcpy(list->name, seen, sizeof seen);
        list->n = list->there = n;
        return n ? AT_OK
                 : AT_FAIL(AT_ENVIRONMENT, "--devices all: %s; wanted a machine with GPUs, or numbers: --devices 0,1",
                           visible ? "CUDA_VISIBLE_DEVICES names none" : "there is no /dev/nvidia0 or other");
    }
    for (const char *at = text;; at++) {
        const size_t length = strcspn(at, ",");
        char word[48];
        snprintf(word, sizeof word, "%.*s", (int)(length < sizeof word ? length : sizeof word - 1), at);
        if (list->n == AT_MAX_DEVICES)
            return AT_FAIL(AT_USAGE, "--devices: more than %d", AT_MAX_DEVICES);
        AT_TRY(add(word, seen, n, list));
        at += length;
        if (!*at)
            break;
    }
    list->there = n > list->n ? n : list->n;
    return AT_OK;
}

int at_devices_jobs(const struct at_device_list *list) {
    const int processors = at_threads();
    if (list->n == 0)
        return processors;
    const int share = processors / list->there;
    return list->n * (share > 1 ? share : 1);
}
