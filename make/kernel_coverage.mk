# The runner of `attest coverage`: the CUDA kernels with gcc's counters of branches, for the SIMT machine without its access
# hooks. Built when it is asked for, and by the tests.
# SPDX-License-Identifier: Apache-2.0
COVER := build/simt-coverage
COVER_STAMP := $(COVER)/flags
# -O0 and nothing inlined: a condition of the source is a branch, and there are no others. Counters are found by a section of the program, not by
# constructors: the runner writes those of one kernel at a time (kernels/runner/coverage.c).
COVER_FLAGS = $(patsubst -O%,-O0,$(filter-out -fsanitize=thread -fsanitize=bounds-strict -fno-hoist-adjacent-loads,$(SIMT_FLAGS))) \
              -Dalways_inline=unused --coverage -fprofile-info-section=at_coverage -fprofile-update=single
COVER_OBJ := $(patsubst %.cu,$(COVER)/%.o,$(DEVICE_VARIANTS))
$(COVER_STAMP): .always
	$(Q)mkdir -p $(@D); $(call stamp,$@,$(CXX) $(COVER_FLAGS))

$(COVER)/%.o: %.cu $(COVER_STAMP) make/simt_object.sh
	$(call say,COVER,$<)
	$(Q)mkdir -p $(@D) && $(CXX) $(COVER_FLAGS) -MMD -MP -x c++ -c $< -o $@ && make/simt_object.sh $@ at_kernel_

$(BUILD)/gen/coverage_table.c: .always
	$(Q)make/write_tables.sh kernels $(DEVICE_VARIANTS) > $@.new && { cmp -s $@.new $@ && rm $@.new || mv $@.new $@; }
# Where `attest coverage` finds the sources, what the compiler noted of them, and the gcov that reads it.
$(BUILD)/attest-cpu-coverage.txt: $(COVER_OBJ)
	$(Q)printf 'tree\t%s\nnotes\t%s\ngcov\t%s\n' '$(CURDIR)' '$(abspath $(COVER))' "$$($(CXX) -print-prog-name=gcov)" > $@
$(BUILD)/attest-cpu-coverage: $(RUNNER_FRAME) $(call obj,kernels/runner/coverage.c) $(BUILD)/gen/coverage_table.o $(COVER_OBJ) $(BUILD)/libreference.a | $(BUILD)/attest-cpu-coverage.txt
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) $^ -o $@ $(BLAS_LIBS) -lgcov -ldw -lm
# Tested in the plain build alone: the others hold the same kernels.
TESTED_COVERAGE := $(if $(SAN)$(filter 1,$(COVERAGE))$(findstring clang,$(CC)),,$(BUILD)/attest-cpu-coverage)

.PHONY: coverage-runner
coverage-runner: deps-present $(BUILD)/attest $(BUILD)/attest-cpu-coverage ## what `attest coverage` counts a kernel's branches with
