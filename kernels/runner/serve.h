/* The runner's protocol loop, shared by every runner, and the small device interface below it.
 * SPDX-License-Identifier: Apache-2.0
 *
 * A runner's main saves its standard output with at_serve_claim_stdout(), fills a struct at_device and a
 * struct at_kernel_list and calls at_serve(). */
#ifndef AT_SERVE_H
#define AT_SERVE_H

#include "attest/kernel.h"
#include "attest/protocol.h"

/* One step of a sequence, its tensors where the device has them. */
struct at_device_step {
    const struct at_kernel *kernel;
    struct at_problem problem;
    int64_t workspace_bytes;
};

/* What the loop needs of a device. Errors are numbers of the device's own; 0 is success. */
struct at_device {
    void *state;
    /* Makes host bytes [0, used) of the block visible to kernels; *base is where they see them. */
    int (*load)(struct at_device *device, void *host, int64_t used, void **base);
    /* At least `bytes` of scratch, 256-byte aligned, valid until the next call. */
    int (*workspace)(struct at_device *device, int64_t bytes, void **workspace);
    /* Why a kernel does not take this problem, beside what it says itself; NULL: it does. May be NULL. */
    const char *(*declines)(struct at_device *device, const struct at_kernel *kernel, const struct at_problem *problem);
    /* Launches as `mode` says and waits until the work is done; fills seconds and counters of the reply. With a graph,
     * launch->problem has the sizes of the capture already. */
    int (*run)(struct at_device *device, const struct at_kernel *kernel, const struct at_launch *launch,
               const struct at_run_mode *mode, struct at_reply *reply);
    /* Times the launch over copies of the block's first `used` bytes. NULL: this device has no clock worth reading. */
    int (*time)(struct at_device *device, const struct at_kernel *kernel, const struct at_launch *launch, int64_t used,
                int replays, struct at_timing *timing);
    int keeps_timed; /* behind `time` the block has what one of the timed launches left, for `store` */
    /* Replays all steps as one graph, each time on the block's first `used` bytes as they were loaded; the last replay's results
     * stay. Fills seconds and launches of the reply, and costs of the steps. NULL: this device has no graphs; steps are run one by
     * one. An error is that of step *step. */
    int (*sequence)(struct at_device *device, const struct at_device_step *steps, int n, int64_t used, int replays,
                    struct at_step_cost *costs, struct at_reply *reply, int *step);
    /* Puts what kernels wrote back into the host's bytes. */
    int (*store)(struct at_device *device, void *host, int64_t used);
    /* 1 when the last run broke a rule that the device watches: *kind and what happened. May be NULL. */
    int (*found)(struct at_device *device, enum at_reply_kind *kind, char *reason, size_t size);
    /* One line for an error number. */
    const char *(*error)(int code);
};

/* The variants of a runner; the generated table, or a test's own. */
struct at_kernel_list {
    int n;
    const struct at_kernel_entry *(*at)(int i);
    /* family/name that one of them was made of, by a fault; "": it is no mutant. NULL: none is. */
    const char *(*mutant_of)(const struct at_kernel_entry *entry);
};
/* Of the generated table, which knows it by the heads of patches. */
const char *at_kernel_mutant_of(const struct at_kernel_entry *entry);

/* What one end of the conversation is made of. */
struct at_serve {
    const char *name;        /* of the runner */
    const char *device_text; /* of the machine, for people */
    const char *takes;       /* as in struct at_hello; NULL: all that this program knows */
    struct at_device *device;
    struct at_kernel_list kernels;
    int in, out;                                            /* descriptors the protocol runs on */
    void (*after_job)(const struct at_kernel_entry *entry); /* before its reply is sent; NULL: nothing to do */
};

/* Returns a private descriptor of standard output and points descriptor 1 at standard error, so that a
 * kernel's printf cannot break the protocol. -1 and errno on failure. */
int at_serve_claim_stdout(void);

/* Ends the process soon after the other side of *in is gone, in the middle of a job too: attest was killed, and a
 * kernel that hangs would use the machine until its alarm. *in stays valid as long as the process. */
void at_serve_end_with(const int *in);

/* Serves until `quit`, the end of input (AT_OK) or a line it does not understand (AT_PROTOCOL, after
 * telling the other side). AT_IO when the pipe fails. */
at_status at_serve(const struct at_serve *serve);

#endif
