# Mutants: each patch makes one wrong kernel, an object with one global symbol; its head is described in make/write_tables.sh.
# SPDX-License-Identifier: Apache-2.0
MUTANT_PATCHES := $(sort $(wildcard tests/mutants/*/*.patch))
MUTANT_HEADS := $(shell grep -HE '^(mutant-of|runs-on):' /dev/null $(MUTANT_PATCHES) | sed 's/:\([a-z-]*\): */=\1=/')
MUTANT_OF := $(subst =mutant-of=,=,$(filter-out %=runs-on=device,$(MUTANT_HEADS)))
HOST_MUTANTS := $(foreach v,$(VARIANTS:kernels/%.c=%),$(patsubst %=$(v),%,$(filter %=$(v),$(MUTANT_OF))))
# A mutant's object, by its patch: those of host variants are made with the build's own flags.
mutant_obj = $(patsubst tests/mutants/%.patch,$(BUILD)/mutants/%.o,$(filter $(HOST_MUTANTS),$(1))) \
             $(patsubst tests/mutants/%.patch,$(SIMT)/mutants/%.o,$(filter-out $(HOST_MUTANTS),$(1)))

# Of a CUDA kernel: what its sources are, the object's own .d says. Of a host variant: linked with objects of its family.
# -Og: half the time to compile and a sixth more to run, and most mutants are judged on a few cases.
$(SIMT)/mutants/%.o: tests/mutants/%.patch $(SIMT_STAMP) make/build_mutant.sh make/mutant_copy.sh make/simt_object.sh
	$(call say,MUTANT,$<)
	$(Q)CXX='$(CXX)' SIMT_FLAGS='$(SIMT_FLAGS) -Og -DAT_FEW_INSTANCES' make/build_mutant.sh $< $@ $(BUILD)
define host_mutants_of
$(BUILD)/mutants/$(1)/%.o: tests/mutants/$(1)/%.patch $(call obj,$(filter kernels/$(1)/%,$(VARIANTS)) $(HOST_SRC)) \
                           make/build_mutant.sh make/mutant_copy.sh
	$$(call say,MUTANT,$$<)
	$$(Q)CC='$$(CC)' CFLAGS='$$(CFLAGS_ALL)' make/build_mutant.sh $$< $$@ $$(BUILD)
endef
$(foreach f,$(sort $(patsubst tests/mutants/%/,%,$(dir $(HOST_MUTANTS)))),$(eval $(call host_mutants_of,$(f))))

# Written again when its content changes: a patch that is gone changes no file that a rule could name.
$(BUILD)/gen/mutant_table.c: .always
	$(Q)make/write_tables.sh kernels $(MUTANT_PATCHES) > $@.new && { cmp -s $@.new $@ && rm $@.new || mv $@.new $@; }
ifneq ($(SAN),thread)
$(BUILD)/mutants.tsv: .always
	$(Q)make/write_tables.sh mutant-list $(MUTANT_PATCHES) > $@.new && { cmp -s $@.new $@ && rm $@.new || mv $@.new $@; }
$(BUILD)/attest-mutants: $(RUNNER_FRAME) $(call mutant_obj,$(MUTANT_PATCHES)) $(BUILD)/gen/mutant_table.o $(BUILD)/libreference.a | $(BUILD)/mutants.tsv
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) $^ -o $@ $(BLAS_LIBS) -ldw -lm
endif

# Mechanical mutants: every barrier, fence, wait and commit of a CUDA kernel left out in turn.
$(BUILD)/mechanical.tsv: $(DEVICE_OBJ) tests/mutants/redundant.txt make/mechanical.sh
	$(Q)make/mechanical.sh list tests/mutants/redundant.txt $(SIMT) $(DEVICE_VARIANTS) > $@.new && mv $@.new $@
# Tested in the plain build alone: the others hold the same kernels.
MECHANICAL := $(if $(SAN)$(filter 1,$(COVERAGE))$(findstring clang,$(CC)),,$(BUILD)/mechanical.tsv)

.PHONY: mechanical
mechanical: programs $(BUILD)/mechanical.tsv ## leave out every barrier, fence, wait and commit of every CUDA kernel in turn: each must be missed
	@$(BUILD)/attest selftest --mechanical
