/* Every class of every family's domain makes a case, and is found in its line again: ordinary ones, far ones, and far ones with
 * words of another factor's keys.
 * SPDX-License-Identifier: Apache-2.0 */
#include "datasets/design/domain_draw.h"
#include "datasets/language/case.h"

#include "tests/at_test.h"

struct drawn {
    const struct at_domain *domain;
    const int *classes;
    int found, matches;
};

static at_status each(void *context, const uint32_t *has) {
    struct drawn *drawn = context;
    int all = 1;
    for (int f = 0; f < drawn->domain->n; f++)
        all &= (int)(has[f] >> drawn->classes[f] & 1);
    drawn->found |= all;
    drawn->matches++;
    return AT_OK;
}

static at_status gather(void *context, const uint32_t *has) {
    uint32_t *seen = context;
    for (int f = 0; f < AT_DOMAIN_FACTORS; f++)
        seen[f] |= has[f];
    return AT_OK;
}

static int is_case(const char *line) {
    struct at_case_list cases = { 0 };
    const at_status status = at_case_parse(line, "test", "test", &cases);
    at_case_list_release(&cases);
    return status == AT_OK;
}

/* A line with this class, the others drawn too and none of them far; 0: none in many tries. */
static int draw_line(const struct at_domain *domain, int factor, int class, struct at_draws *draws, int *classes,
                     char *line, size_t size) {
    for (int tries = 0; tries < 400; tries++) {
        for (int f = 0; f < domain->n; f++)
            classes[f] = (int)at_draw_below(draws, domain->factors[f].n);
        classes[factor] = class;
        if (at_domain_line(domain, classes, draws, line, size) == AT_OK && is_case(line))
            return 1;
    }
    return 0;
}

static void check_class(const struct at_domain *domain, int factor, int class, struct at_draws *draws) {
    int classes[AT_DOMAIN_FACTORS] = { 0 };
    char line[AT_DOMAIN_LINE];
    struct drawn drawn = { .domain = domain, .classes = classes };
    /* A far class that contradicts all classes of another factor would be in no case. */
    at_assert_true(draw_line(domain, factor, class, draws, classes, line, sizeof line), "%s: no case has %s: '%s'",
                   domain->family->name, domain->factors[factor].factor->name, domain->factors[factor].classes[class]);
    at_assert_ok(at_domain_match(domain, line, each, &drawn));
    at_assert_true(drawn.found, "%s: %d matches, none with the classes that it was drawn from", line, drawn.matches);
}

static void each_class_is_found(void **state) {
    (void)state;
    for (int i = 0; i < at_family_count(); i++) {
        const int64_t granules[] = { 96, 256 };
        struct at_domain domain;
        struct at_draws draws = { .random = { 7, at_random_stream("match", (uint64_t)i) } };
        at_assert_ok(at_domain_open(at_family_at(i), granules, 2, &domain));
        for (int f = 0; f < domain.n; f++)
            for (int c = 0; c < domain.factors[f].n + domain.factors[f].n_far; c++)
                for (long n = at_test_effort(4); n > 0; n--)
                    check_class(&domain, f, c, &draws);
    }
}

/* A pair of classes that a line has not is not counted: every match is one that draws of its classes can give. */
static void counts_no_other_prefix(void **state) {
    (void)state;
    struct at_domain domain;
    uint32_t seen[AT_DOMAIN_FACTORS] = { 0 };
    at_assert_ok(at_domain_open(at_family_find("softmax_prefill"), NULL, 0, &domain));
    at_assert_ok(at_domain_match(
        &domain, "softmax_prefill h=2 hk=1 d=64 page=16 dtype=bf16 data=normal causal=1 b=1 sq=9 prefix=17", gather,
        seen));
    for (int f = 0; f < domain.n; f++)
        if (strcmp(domain.factors[f].factor->name, "prefix") == 0)
            for (int c = 0; c < domain.factors[f].n; c++)
                assert_true((seen[f] >> c & 1) == (strstr(domain.factors[f].classes[c], "prefix={page+1}") ||
                                                   strstr(domain.factors[f].classes[c], "prefix={keys+near}")));
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(each_class_is_found),
                                        cmocka_unit_test(counts_no_other_prefix) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
