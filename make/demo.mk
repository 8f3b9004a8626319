# The demonstration's own runner: the host variants, three CUDA kernels and two wrong ones. tests/cli/demo.sh says which, and
# nothing else is compiled for it. `make` then finds these objects made.
# SPDX-License-Identifier: Apache-2.0
DEMO_SOURCES := $(shell tests/cli/demo.sh sources)
DEMO_KERNELS := $(filter kernels/%,$(DEMO_SOURCES))
DEMO_MUTANTS := $(filter tests/mutants/%,$(DEMO_SOURCES))
DEMO_OBJ := $(patsubst %.cu,$(SIMT)/%.o,$(filter %.cu,$(DEMO_KERNELS))) $(call obj,$(filter %.c,$(DEMO_KERNELS))) \
            $(call mutant_obj,$(DEMO_MUTANTS))
$(BUILD)/gen/demo_table.c: .always
	$(Q)make/write_tables.sh kernels $(DEMO_KERNELS) $(DEMO_MUTANTS) > $@.new && { cmp -s $@.new $@ && rm $@.new || mv $@.new $@; }
ifneq ($(SAN),thread)
$(BUILD)/attest-demo: $(RUNNER_FRAME) $(DEMO_OBJ) $(BUILD)/gen/demo_table.o $(BUILD)/libreference.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) $^ -o $@ $(BLAS_LIBS) -ldw -lm
endif

.PHONY: demo
demo: ## a minute: host variants and CUDA kernels on recorded activations, a WRONG, a RACY, an archive and its page
	@$(if $(filter 1,$(DEPS)),make/dependencies.sh install build)
	@$(RECURSE) -j$(JOBS) $(BUILD)/attest $(BUILD)/attest-demo
	@$(link_programs)
	@tests/cli/demo.sh run $(abspath $(BUILD))
