/* Loading a launch file's device code, packing its arguments, launching it.
 * SPDX-License-Identifier: Apache-2.0 */
#include "kernels/launch/device_code.h"

#include "attest/op.h"

#include <stdio.h>
#include <string.h>

enum { GRID_X_MAX = INT32_MAX, GRID_MAX = 65535, BLOCK_MAX = 1024, CLUSTER_MAX = 16, PORTABLE_CLUSTER = 8 };
enum { SHARED_AS_IS = 48 << 10, SHARED_MAX = 1 << 20 };
static const int64_t workspace_max = INT64_C(1) << 40;

/* ---- loading ---- */

static size_t bytes_of(enum at_arg_kind kind) {
    static const size_t bytes[] = { [AT_ARG_POINTER] = 8,
                                    [AT_ARG_NULL] = 8,
                                    [AT_ARG_I32] = 4,
                                    [AT_ARG_U32] = 4,
                                    [AT_ARG_I64] = 8,
                                    [AT_ARG_F32] = 4,
                                    [AT_ARG_MAP] = sizeof(struct at_driver_map) };
    return bytes[kind];
}

/* The driver reads as many arguments as the kernel has parameters, whatever was packed. */
static at_status check_arguments(const struct at_device_code *code, int i) {
    const struct at_plan_kernel *k = &code->plan->kernels[i];
    size_t offset, bytes;
    int n = 0;
    while (n <= AT_PLAN_ARGS && code->driver->parameter(code->functions[i], (size_t)n, &offset, &bytes) == 0) {
        if (n < k->n_args && bytes != bytes_of(k->args[n].kind))
            return AT_FAIL(AT_USAGE, "%s: kernels[%d].args[%d]: %s has %zu bytes, and parameter %d of %s has %zu",
                           code->plan->path, i, n, k->args[n].text, bytes_of(k->args[n].kind), n, k->name, bytes);
        n++;
    }
    if (n != k->n_args)
        return AT_FAIL(AT_USAGE, "%s: kernels[%d].args: there are %d, and %s has %d parameters", code->plan->path, i,
                       k->n_args, k->name, n);
    return AT_OK;
}

static at_status find_kernels(struct at_device_code *code) {
    char doing[400];
    for (int i = 0; i < code->plan->n_kernels; i++) {
        const char *name = code->plan->kernels[i].name;
        snprintf(doing, sizeof doing, "looking for kernel %s in %.120s", name, code->plan->code_name);
        AT_TRY(at_driver_said(code->driver, code->driver->function(&code->functions[i], code->module, name), doing));
        /* A capture later must not be the first to want it. */
        AT_TRY(at_driver_said(code->driver, code->driver->function_load(code->functions[i]), doing));
        AT_TRY(check_arguments(code, i));
    }
    return AT_OK;
}

at_status at_device_code_load(struct at_device_code *code) {
    char log[700] = "", doing[1200];
    int options[] = { AT_JIT_ERROR_LOG, AT_JIT_ERROR_LOG_BYTES };
    /* NOLINTNEXTLINE(performance-no-int-to-ptr): the second option's value is a number in a pointer's place */
    void *values[] = { log, (void *)(uintptr_t)(sizeof log - 1) };
    const int said = code->driver->load(&code->module, code->plan->code, 2, options, values);
    if (said != 0) {
        code->module = NULL;
        for (char *c = log; *c; c++)
            *c = *c == '\n' || *c == '\r' || *c == '\t' ? ' ' : *c;
        snprintf(doing, sizeof doing, "loading %s%s%s%s", code->plan->code_name, log[0] ? " (" : "", log,
                 log[0] ? ")" : "");
        return at_driver_said(code->driver, said, doing);
    }
    return find_kernels(code);
}

at_status at_device_code_unload(struct at_device_code *code) {
    void *module = code->module;
    code->module = NULL;
    memset(code->functions, 0, sizeof code->functions);
    return module ? at_driver_said(code->driver, code->driver->unload(module), "unloading the device code") : AT_OK;
}

/* ---- numbers of a job ---- */

static at_status fill_values(const struct at_device_code *code, const struct at_problem *problem,
                             struct at_launch_expression_values *values) {
    *values = (struct at_launch_expression_values){ .problem = problem, .sms = code->driver->multiprocessors };
    for (int i = 0; i < code->plan->scope.n; i++) {
        char field[AT_NAMED_BYTES + 8];
        snprintf(field, sizeof field, "let.%s", code->plan->scope.named[i]);
        AT_TRY(
            at_device_code_value(code, field, &code->plan->named[i], values, INT64_MIN, INT64_MAX, &values->named[i]));
    }
    return AT_OK;
}

at_status at_device_code_value(const struct at_device_code *code, const char *field,
                               const struct at_launch_expression *expression,
                               const struct at_launch_expression_values *values, int64_t least, int64_t most,
                               int64_t *value) {
    if (at_launch_expression_value(expression, values, value) != AT_OK) {
        char what[300];
        snprintf(what, sizeof what, "%s", at_error_message());
        return AT_FAIL(AT_USAGE, "%s: %s: %s", code->plan->path, field, what);
    }
    if (*value < least || *value > most)
        return AT_FAIL(AT_USAGE, "%s: %s: \"%s\" is %lld here, wanted %lld to %lld", code->plan->path, field,
                       expression->text, (long long)*value, (long long)least, (long long)most);
    return AT_OK;
}

/* Code for an architecture alone runs there alone; other code on later ones of its generation, PTX on all later ones. */
static int is_for(const struct at_plan *plan, int sm) {
    if (plan->sm_class == 'a')
        return plan->sm == sm;
    if (plan->is_ptx && plan->sm_class == 0)
        return plan->sm <= sm;
    return plan->sm / 10 == sm / 10 && plan->sm <= sm;
}

static void say_dtypes(unsigned dtypes, char *why, size_t size) {
    snprintf(why, size, "for");
    for (int f = 0; f < AT_FORMAT_COUNT; f++)
        if (dtypes >> f & 1)
            snprintf(why + strlen(why), size - strlen(why), " %s", at_format_info((enum at_format)f)->name);
    snprintf(why + strlen(why), size - strlen(why), " alone");
}

/* Does the file look at a parameter of its operator, in an argument or in any expression? */
static int has_scalar(const struct at_launch_expression *e, const struct at_scalar *scalar) {
    for (int i = 0; i < e->n; i++)
        if (e->steps[i].what == AT_DO_SCALAR && e->steps[i].scalar == scalar)
            return 1;
    return 0;
}

static int looks_at(const struct at_plan *plan, const struct at_scalar *scalar) {
    int found = has_scalar(&plan->workspace, scalar);
    for (int i = 0; i < plan->n_requires; i++)
        found |= has_scalar(&plan->needs[i], scalar);
    for (int i = 0; i < plan->scope.n; i++)
        found |= has_scalar(&plan->named[i], scalar);
    for (int k = 0; k < plan->n_kernels; k++)
        for (int a = 0; a < plan->kernels[k].n_args; a++)
            found |= plan->kernels[k].args[a].param == scalar || has_scalar(&plan->kernels[k].args[a].value, scalar);
    return found;
}

/* A parameter that operators came to have later, which this job sets and the file passes over: a right kernel without it would
 * look wrong. NULL: none. */
static const char *passed_over(const struct at_plan *plan, const struct at_problem *problem) {
    const struct at_scalar *s;
    for (int i = 0; (s = at_op_scalar_at(plan->op, i)) != NULL; i++) {
        const double value = s->announced ? at_scalar_get(problem, s) : 0;
        const int is_default = s->announced && value <= s->value && value >= s->value;
        if (s->announced && !is_default && !looks_at(plan, s))
            return s->name;
    }
    return NULL;
}

at_status at_device_code_declines(const struct at_device_code *code, const struct at_problem *problem, int *declines,
                                  char *why, size_t size) {
    const struct at_plan *plan = code->plan;
    struct at_launch_expression_values values;
    *declines = 1;
    if (problem->op != plan->op) {
        snprintf(why, size, "for %s alone", plan->op->name);
        return AT_OK;
    }
    if (plan->dtypes && !(plan->dtypes >> problem->dtype & 1)) {
        say_dtypes(plan->dtypes, why, size);
        return AT_OK;
    }
    if (!is_for(plan, code->driver->sm)) {
        snprintf(why, size, "for sm_%d%.1s, and this device is sm_%d", plan->sm, &plan->sm_class, code->driver->sm);
        return AT_OK;
    }
    if (passed_over(plan, problem)) {
        snprintf(why, size, "no argument and no expression of it has %s", passed_over(plan, problem));
        return AT_OK;
    }
    AT_TRY(fill_values(code, problem, &values));
    for (int i = 0; i < plan->n_requires; i++) {
        char field[32];
        int64_t value;
        snprintf(field, sizeof field, "requires[%d]", i);
        AT_TRY(at_device_code_value(code, field, &plan->needs[i], &values, INT64_MIN, INT64_MAX, &value));
        if (value == 0) {
            snprintf(why, size, "wants %s", plan->needs[i].text);
            return AT_OK;
        }
    }
    *declines = 0;
    return AT_OK;
}

at_status at_device_code_workspace(const struct at_device_code *code, const struct at_problem *problem,
                                   int64_t *bytes) {
    struct at_launch_expression_values values;
    AT_TRY(fill_values(code, problem, &values));
    return at_device_code_value(code, "workspace", &code->plan->workspace, &values, 0, workspace_max, bytes);
}

/* ---- arguments ---- */

union argument {
    uint64_t pointer;
    int32_t i32;
    uint32_t u32;
    int64_t i64;
    float f32;
};

struct arguments {
    union argument values[AT_PLAN_ARGS];
    struct at_driver_map maps[AT_PLAN_MAPS]; /* one of each is enough: they are the same for all kernels */
    void *at[AT_PLAN_ARGS + 1];
};

/* An address in an argument's tensor or workspace, or one behind its end. A tensor that the job does not have is NULL. */
static at_status pack_pointer(const struct at_device_code *code, const char *field, const struct at_plan_arg *arg,
                              const struct at_launch *launch, const struct at_launch_expression_values *values,
                              union argument *out) {
    const struct at_tensor *t = arg->tensor >= 0 ? &launch->problem->tensors[arg->tensor] : NULL;
    void *base = t ? t->data : launch->workspace;
    int64_t beyond;
    out->pointer = 0;
    if (!base)
        return AT_OK;
    AT_TRY(at_device_code_value(code, field, &arg->value, values, 0, t ? at_tensor_bytes(t) : launch->workspace_bytes,
                                &beyond));
    out->pointer = (uint64_t)(uintptr_t)base + (uint64_t)beyond;
    return AT_OK;
}

static at_status pack(const struct at_device_code *code, const char *field, const struct at_plan_arg *arg,
                      const struct at_launch *launch, const struct at_launch_expression_values *values,
                      union argument *out) {
    int64_t number;
    switch (arg->kind) {
    case AT_ARG_POINTER:
        return pack_pointer(code, field, arg, launch, values, out);
    case AT_ARG_NULL:
        out->pointer = 0;
        return AT_OK;
    case AT_ARG_F32:
        out->f32 = (float)(arg->factor * (arg->param ? at_scalar_get(launch->problem, arg->param) : 1));
        return AT_OK;
    case AT_ARG_I32:
        AT_TRY(at_device_code_value(code, field, &arg->value, values, INT32_MIN, INT32_MAX, &number));
        out->i32 = (int32_t)number;
        return AT_OK;
    case AT_ARG_U32:
        AT_TRY(at_device_code_value(code, field, &arg->value, values, 0, UINT32_MAX, &number));
        out->u32 = (uint32_t)number;
        return AT_OK;
    default:
        return at_device_code_value(code, field, &arg->value, values, INT64_MIN, INT64_MAX, &out->i64);
    }
}

static at_status pack_all(const struct at_device_code *code, int i, const struct at_launch *launch,
                          const struct at_launch_expression_values *values, struct arguments *out) {
    const struct at_plan_kernel *k = &code->plan->kernels[i];
    for (int a = 0; a < k->n_args; a++) {
        const struct at_plan_arg *arg = &k->args[a];
        char field[64];
        snprintf(field, sizeof field, "kernels[%d].args[%d]", i, a);
        if (arg->kind == AT_ARG_MAP) {
            AT_TRY(at_device_code_map(code, &code->plan->maps[arg->tensor], values, &out->maps[arg->tensor]));
            out->at[a] = &out->maps[arg->tensor];
        } else {
            AT_TRY(pack(code, field, arg, launch, values, &out->values[a]));
            out->at[a] = &out->values[a];
        }
    }
    return AT_OK;
}

/* ---- launches ---- */

static at_status three(const struct at_device_code *code, int i, const char *name,
                       const struct at_launch_expression from[3], const struct at_launch_expression_values *values,
                       const int64_t most[3], struct at_driver_dims *out) {
    unsigned *const to[] = { &out->x, &out->y, &out->z };
    for (int d = 0; d < 3; d++) {
        char field[64];
        int64_t value;
        snprintf(field, sizeof field, "kernels[%d].%s[%d]", i, name, d);
        AT_TRY(at_device_code_value(code, field, &from[d], values, strcmp(name, "grid") != 0, most[d], &value));
        *to[d] = (unsigned)value;
    }
    return AT_OK;
}

static at_status set_shared(const struct at_device_code *code, int i, unsigned bytes) {
    if (bytes <= SHARED_AS_IS)
        return AT_OK;
    char doing[64];
    snprintf(doing, sizeof doing, "asking for %u bytes of shared memory", bytes);
    return at_driver_said(code->driver,
                          code->driver->function_set(code->functions[i], AT_FUNCTION_MAX_SHARED, (int)bytes), doing);
}

static at_status set_cluster(const struct at_device_code *code, int i, const struct at_launch_expression_values *values,
                             struct at_driver_launch *config) {
    static const int64_t most[] = { CLUSTER_MAX, CLUSTER_MAX, CLUSTER_MAX };
    struct at_driver_attribute *a = &config->attributes[config->n_attributes];
    if (!code->plan->kernels[i].has_cluster)
        return AT_OK;
    AT_TRY(three(code, i, "cluster", code->plan->kernels[i].cluster, values, most, &a->value.cluster));
    a->id = AT_LAUNCH_CLUSTER;
    config->n_attributes++;
    if (a->value.cluster.x * a->value.cluster.y * a->value.cluster.z <= PORTABLE_CLUSTER)
        return AT_OK;
    return at_driver_said(code->driver, code->driver->function_set(code->functions[i], AT_FUNCTION_ANY_CLUSTER, 1),
                          "asking for a cluster of more than 8 blocks");
}

static at_status launch_one(const struct at_device_code *code, int i, const struct at_launch *launch,
                            const struct at_launch_expression_values *values, struct arguments *arguments,
                            int64_t *launches) {
    static const int64_t grid_most[] = { GRID_X_MAX, GRID_MAX, GRID_MAX }, block_most[] = { BLOCK_MAX, BLOCK_MAX, 64 };
    const struct at_plan_kernel *k = &code->plan->kernels[i];
    struct at_driver_attribute attributes[AT_LAUNCH_ATTRIBUTES] = { 0 };
    struct at_driver_launch config = { .stream = launch->stream, .attributes = attributes };
    char field[64], doing[320];
    int64_t wanted, shared;
    snprintf(field, sizeof field, "kernels[%d].when", i);
    AT_TRY(at_device_code_value(code, field, &k->when, values, INT64_MIN, INT64_MAX, &wanted));
    if (!wanted)
        return AT_OK;
    AT_TRY(three(code, i, "grid", k->grid, values, grid_most, &config.grid));
    if (config.grid.x == 0 || config.grid.y == 0 || config.grid.z == 0)
        return AT_OK;
    AT_TRY(three(code, i, "block", k->block, values, block_most, &config.block));
    snprintf(field, sizeof field, "kernels[%d].smem", i);
    AT_TRY(at_device_code_value(code, field, &k->shared, values, 0, SHARED_MAX, &shared));
    config.shared_bytes = (unsigned)shared;
    AT_TRY(set_shared(code, i, config.shared_bytes));
    AT_TRY(set_cluster(code, i, values, &config));
    if (k->pdl) {
        attributes[config.n_attributes].id = AT_LAUNCH_PDL;
        attributes[config.n_attributes++].value.allowed = 1;
    }
    AT_TRY(pack_all(code, i, launch, values, arguments));
    snprintf(doing, sizeof doing, "launching %s", k->name);
    AT_TRY(at_driver_said(code->driver, code->driver->launch(&config, code->functions[i], arguments->at, NULL), doing));
    ++*launches;
    return AT_OK;
}

at_status at_device_code_launch(const struct at_device_code *code, const struct at_launch *launch, int64_t *launches) {
    struct at_launch_expression_values values;
    struct arguments arguments = { 0 };
    *launches = 0;
    if (!code->module)
        return AT_FAIL(AT_BUG, "%s is launched before it was loaded", code->plan->path);
    AT_TRY(fill_values(code, launch->problem, &values));
    for (int i = 0; i < code->plan->n_kernels; i++)
        AT_TRY(launch_one(code, i, launch, &values, &arguments, launches));
    return AT_OK;
}
