# attest: `make help` lists the targets and the knobs. What stands here builds attest and attest-cpu and names what people
# type; make/ has the parts for mutants, CUDA, the demonstration and installing.
# SPDX-License-Identifier: Apache-2.0

SHELL := /bin/bash
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules
comma := ,
ifeq ($(origin CC),default)
CC := gcc
endif

# --- knobs -------------------------------------------------------------------------------------
SAN ?=
COVERAGE ?= 0
DEV ?= 0
V ?= 0
DEPS ?= 1
ifneq ($(filter-out address undefined thread,$(SAN)),)
$(error SAN=$(SAN): known sanitizers are address, undefined, thread)
endif

CONFIG := cpu$(if $(SAN),-$(SAN))$(if $(filter 1,$(COVERAGE)),-coverage)$(if $(findstring clang,$(CC)),-clang)
BUILD ?= build/$(CONFIG)
Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-8s %s\n' '$(1)' '$(2)')

# --- dependencies found ------------------------------------------------------------------------
PKGS := openblas hdf5 gsl jansson zlib
PKG_CFLAGS := $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
# Debian's hdf5.pc leaves out the high-level library, which holds dimension scales.
PKG_LIBS := $(patsubst -lhdf5,-lhdf5_hl -lhdf5,$(shell pkg-config --libs $(PKGS) 2>/dev/null))

# Debian's shared HDF5 brings libcurl and thirty others, which is two thirds of what it takes to start attest: where its
# static archives are (and libsz, which they want), they go into the program itself.
HDF5_DIR := $(patsubst -L%,%,$(firstword $(filter -L%/hdf5/serial,$(PKG_LIBS))))
HDF5_STATIC := $(and $(HDF5_DIR),$(wildcard $(HDF5_DIR)/libhdf5_hl.a),$(wildcard $(HDF5_DIR)/libhdf5.a),$(findstring /,$(shell $(CC) -print-file-name=libsz.so)))
ATTEST_LIBS := $(if $(HDF5_STATIC),$(HDF5_DIR)/libhdf5_hl.a $(HDF5_DIR)/libhdf5.a $(filter-out -lhdf5_hl -lhdf5,$(PKG_LIBS)) -lsz -ldl,$(PKG_LIBS))

BLAS_LIBS := $(shell pkg-config --libs openblas 2>/dev/null)
TEST_LIBS := -lcmocka -lmpfr -lgmp

WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wno-missing-field-initializers \
        $(if $(filter 1,$(DEV)),-Werror)
OPT := -O2 -g -ffp-contract=off
VERSION := $(shell sed -n 's/^\#\# \([0-9][^ ]*\).*/\1/p' CHANGELOG.md | head -n 1)
COMMIT := $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
DEFS := -D_GNU_SOURCE -DAT_VERSION='"$(VERSION)"'
CFLAGS_ALL = -std=c11 $(OPT) $(WARN) $(DEFS) -Ireference -I. -I$(BUILD)/gen $(PKG_CFLAGS) -pthread \
             $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer) \
             $(if $(filter undefined,$(SAN)),-fno-sanitize-recover=undefined) \
             $(if $(filter 1,$(COVERAGE)),--coverage -fprofile-update=atomic) $(CFLAGS)
# The old kind of run path also serves the libraries of libraries: a bundle needs no environment variable.
LDFLAGS_ALL = -pthread -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/lib' $(if $(SAN),-fsanitize=$(SAN)) $(if $(filter 1,$(COVERAGE)),--coverage -Wl$(comma)-u$(comma)__gcov_dump) $(LDFLAGS)

# Kernels for the SIMT machine: every access calls the machine, and every index beyond an array, under names of its own, so
# that the rest of the program may be built with any sanitizer. One global symbol a variant. DEV changes nothing here:
# `make lint` wants no warning. -O1: a third less to compile than -O2, and runs as fast, since the machine takes the time.
CXX ?= g++
SIMT_FLAGS = -std=c++20 -O1 -g1 -fsanitize=thread -fsanitize=bounds-strict -fno-hoist-adjacent-loads -mfma -mf16c -ffp-contract=off -fno-exceptions \
             $(filter-out -Wstrict-prototypes -Wmissing-prototypes -Wshadow -Werror,$(WARN)) $(DEFS) -Ireference -I.

# --- sources, all found by path ----------------------------------------------------------------
OPERATORS := $(sort $(filter-out attest tensor_core special fast norm gated rotation cache,$(notdir $(patsubst %/,%,$(wildcard reference/*/)))))
FAMILIES := $(shell sed -n 's/^\([a-z][a-z0-9_]*\) .*/\1/p' kernels/families.txt 2>/dev/null)
# 90 and up call a library of the device's vendor: C, in attest-cuda alone (make/cuda.mk).
VENDOR_VARIANTS := $(sort $(foreach f,$(FAMILIES),$(wildcard kernels/$(f)/9[0-9]_*.c)))
VARIANTS := $(sort $(filter-out $(VENDOR_VARIANTS),$(foreach f,$(FAMILIES),$(wildcard kernels/$(f)/[0-9][0-9]_*.c))))
DEVICE_VARIANTS := $(sort $(foreach f,$(FAMILIES),$(wildcard kernels/$(f)/[0-9][0-9]_*.cu)))

REFERENCE_SRC := $(wildcard $(foreach r,attest tensor_core special norm gated rotation cache,reference/$(r)/*.c)) \
                 $(foreach o,$(OPERATORS),$(wildcard reference/$(o)/*.c))
FAST_SRC := $(wildcard reference/fast/*.c)
found = $(sort $(shell find $(1) -name '$(2)'))
DATASETS_SRC := $(call found,datasets,*.c)
VERIFY_SRC := $(filter-out verify/main.c,$(call found,verify,*.c))
PLOTS_SRC := $(wildcard notebooks_export/plots/*.c)
EXPORT_SRC := $(filter-out notebooks_export/template_put.c,$(wildcard notebooks_export/*.c)) # that one is of every page
TEMPLATES := $(sort $(wildcard notebooks_export/templates/*.py notebooks_export/templates/*.css))
DISPATCH_SRC := $(wildcard kernels/dispatch/*.c)
HOST_SRC := $(wildcard kernels/host/*.c) $(DISPATCH_SRC)
# These choose among the family's kernels, so that programs have them where they have those: on the SIMT machine and on a GPU.
DISPATCHERS := $(filter %/39_dispatch.c,$(VARIANTS))
SIMT_SRC := $(wildcard kernels/simt/*.c) kernels/device/tensor_box.c
CUDA_SRC := kernels/runner/main_cuda.c $(addprefix kernels/runner/cuda_,device.c graph.c sequence.c) # make/cuda.mk builds them
# Of launch files: attest-cuda and the tests; driver_abi.c wants the CUDA toolkit's header.
LAUNCH_SRC := $(filter-out kernels/launch/driver_abi.c,$(wildcard kernels/launch/*.c))
SO_SRC := $(wildcard kernels/runner/so_*.c) # of attest-so, whose kernels come from a shared library
RUNNER_SHARED_SRC := $(addprefix kernels/runner/,serve.c job.c sequence.c block.c main_shared.c)
RUNNER_SRC := $(filter-out kernels/runner/main_%.c kernels/runner/coverage.c $(CUDA_SRC) $(SO_SRC),$(wildcard kernels/runner/*.c))
ORACLE_SRC := $(wildcard tests/oracle/*.c) \
              $(filter-out tests/support/make_%.c,$(wildcard tests/support/*.c))
TEST_SRC := $(filter-out $(if $(filter thread,$(SAN)),tests/kernels/simt/%.c),$(call found,tests,test_*.c))
MAKER_SRC := $(wildcard tests/support/make_*.c)
GEN_SRC := $(BUILD)/gen/operator_table.c $(BUILD)/gen/family_table.c
KERNEL_TABLE := $(BUILD)/gen/kernel_table.c
TEMPLATE_TABLE := $(BUILD)/gen/template_table.c

obj = $(patsubst %.c,$(BUILD)/%.o,$(filter-out $(BUILD)/%,$(1))) $(patsubst %.c,%.o,$(filter $(BUILD)/%,$(1)))
# Loops that are written to vectorise, which gcc does from -O3 on. Private: build_info.h names OPT.
$(call obj,$(FAST_SRC) reference/attest/format.c reference/asynct_attention/rows.c reference/gemm/element.c reference/tensor_core/fdpa.c $(SIMT_SRC) $(wildcard reference/special/*.c)): private OPT := $(OPT) -O3
# Known to these alone: elsewhere the same source gives the same object in every checkout.
$(call obj,datasets/language/datasets_dir.c $(TEST_SRC)): private DEFS += -DAT_SOURCE_DIR='"$(CURDIR)"' -DAT_BUILD_DIR='"$(abspath $(BUILD))"'
LIBS := $(BUILD)/libexport.a $(BUILD)/libverify.a $(BUILD)/libplots.a $(BUILD)/libdatasets.a $(BUILD)/libfast.a $(BUILD)/libreference.a
SIMT_OBJ := $(call obj,$(SIMT_SRC))
# What g++ makes of the CUDA kernels and their mutants is one and the same in every configuration, and most of a build.
SIMT := build/simt
DEVICE_OBJ := $(patsubst %.cu,$(SIMT)/%.o,$(DEVICE_VARIANTS))
# Everything of a runner but its kernels and their table.
RUNNER_FRAME := $(call obj,kernels/runner/main_cpu.c kernels/runner/main_shared.c $(RUNNER_SRC) $(HOST_SRC)) $(SIMT_OBJ)
TESTS := $(patsubst %.c,$(BUILD)/%,$(TEST_SRC))
MAKERS := $(patsubst %.c,$(BUILD)/%,$(MAKER_SRC))
PROGRAMS := $(BUILD)/attest $(BUILD)/attest-cpu $(BUILD)/attest-so $(BUILD)/attest-mutants

.PHONY: all programs links
all: programs ## build the programs and link them as build/attest, build/attest-cpu, ...
programs: deps-present $(PROGRAMS) links
# What was built is also found as build/NAME.
link_programs = mkdir -p build && for p in attest attest-cpu attest-cuda attest-so attest-so-cuda attest-mutants attest-demo mutants.tsv; do \
   [ ! -e $(BUILD)/$$p ] || ln -sfn $(abspath $(BUILD))/$$p build/$$p; done
links: $(PROGRAMS)
	$(Q)$(link_programs)

# A build tree made with other flags is rebuilt: every object depends on this stamp.
STAMP := $(BUILD)/flags
SIMT_STAMP := $(SIMT)/flags
stamp = printf '%s' '$(subst ','"'"',$(2))' | cmp -s - $(1) || printf '%s' '$(subst ','"'"',$(2))' > $(1)
$(shell mkdir -p $(BUILD)/gen $(SIMT); $(call stamp,$(STAMP),$(CC) $(CFLAGS_ALL) $(LDFLAGS_ALL)); \
        $(call stamp,$(SIMT_STAMP),$(CXX) $(SIMT_FLAGS)))

# --- generated tables --------------------------------------------------------------------------
# Written again only when their content changes, so that adding a file rebuilds just the table.
$(BUILD)/gen/operator_table.c: .always
	$(Q)make/write_tables.sh operators $(OPERATORS) > $@.new && { cmp -s $@.new $@ && rm $@.new || mv $@.new $@; }
$(BUILD)/gen/family_table.c: .always
	$(Q)make/write_tables.sh families kernels/families.txt > $@.new && { cmp -s $@.new $@ && rm $@.new || mv $@.new $@; }
$(BUILD)/gen/kernel_table.c: .always
	$(Q)make/write_tables.sh kernels $(VARIANTS) $(DEVICE_VARIANTS) > $@.new && { cmp -s $@.new $@ && rm $@.new || mv $@.new $@; }
$(TEMPLATE_TABLE): .always
	$(Q)make/write_tables.sh templates $(TEMPLATES) > $@.new && { cmp -s $@.new $@ && rm $@.new || mv $@.new $@; }
$(BUILD)/gen/build_info.h: .always
	$(Q)printf '#define AT_COMMIT "%s"\n#define AT_BUILD_FLAGS "%s"\n#define AT_COMPILER "%s"\n' '$(COMMIT)' \
	   '-std=c11 $(OPT)$(if $(SAN), -fsanitize=$(SAN))' "$$($(CC) --version | head -n 1)" > $@.new \
	   && { cmp -s $@.new $@ && rm $@.new || mv $@.new $@; }
.PHONY: .always
.always:

# --- compile and link --------------------------------------------------------------------------
$(BUILD)/%.o: %.c $(STAMP) | $(BUILD)/gen/build_info.h
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS_ALL) -MMD -MP -c $< -o $@
$(BUILD)/gen/%.o: $(BUILD)/gen/%.c $(STAMP)
	$(call say,CC,$<)
	$(Q)$(CC) $(CFLAGS_ALL) -MMD -MP -c $< -o $@

$(SIMT)/%.o: %.cu $(SIMT_STAMP) make/simt_object.sh
	$(call say,SIMT,$<)
	$(Q)mkdir -p $(@D) && $(CXX) $(SIMT_FLAGS) -MMD -MP -x c++ -c $< -o $@ && make/simt_object.sh $@ at_kernel_

# A deleted file must leave the archive too: it is made anew each time.
define archive
$(BUILD)/$(1): $(call obj,$(2))
	$$(call say,AR,$$@)
	$$(Q)rm -f $$@ && ar rcs $$@ $$^
endef
$(eval $(call archive,libreference.a,$(REFERENCE_SRC) $(GEN_SRC)))
$(eval $(call archive,libfast.a,$(FAST_SRC)))
$(eval $(call archive,libdatasets.a,$(DATASETS_SRC)))
$(eval $(call archive,libplots.a,$(PLOTS_SRC) notebooks_export/template_put.c $(TEMPLATE_TABLE)))
$(eval $(call archive,libverify.a,$(VERIFY_SRC)))
$(eval $(call archive,libexport.a,$(EXPORT_SRC)))
$(eval $(call archive,liboracle.a,$(ORACLE_SRC)))

$(BUILD)/attest: $(call obj,verify/main.c) $(LIBS)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) $^ -o $@ $(ATTEST_LIBS) -lm
ifeq ($(SAN),thread)
# The runners have one thread, which switches stacks in a way that ThreadSanitizer does not know: the plain ones serve.
PLAIN := attest-cpu attest-so attest-mutants attest-demo mutants.tsv
$(addprefix $(BUILD)/,$(PLAIN)) &: .always
	$(Q)$(MAKE) --no-print-directory SAN= BUILD=build/cpu $(addprefix build/cpu/,$(PLAIN)) && \
	   cp -p $(addprefix build/cpu/,$(PLAIN)) $(BUILD)/
else
$(BUILD)/attest-cpu: $(RUNNER_FRAME) $(call obj,$(VARIANTS) $(KERNEL_TABLE)) $(DEVICE_OBJ) $(BUILD)/libreference.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) $^ -o $@ $(BLAS_LIBS) -ldw -lm
$(BUILD)/attest-so: $(call obj,kernels/runner/main_so.c $(SO_SRC) $(RUNNER_SRC)) $(SIMT_OBJ) $(BUILD)/libreference.a
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) $^ -o $@ -ldw -lm -ldl
endif
$(TESTS): $(BUILD)/%: $(BUILD)/%.o $(BUILD)/liboracle.a $(LIBS) $(call obj,$(RUNNER_SRC) $(LAUNCH_SRC) $(DISPATCH_SRC)) $(SIMT_OBJ)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) $(filter %.o,$^) $(filter-out $(LIBS),$(filter %.a,$^)) $(LIBS) -o $@ \
	   $(PKG_LIBS) $(TEST_LIBS) -ldw -lm
# What stands in for the CUDA driver where launch files are tested.
FAKE_DRIVER := $(BUILD)/tests/kernels/launch/fake_driver.so
$(FAKE_DRIVER): tests/kernels/launch/fake_driver.c kernels/launch/driver.h $(STAMP)
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(CFLAGS_ALL) -fPIC -shared $< -o $@
$(BUILD)/tests/kernels/launch/test_launch_device: | $(FAKE_DRIVER)
$(BUILD)/tests/support/make_damaged: $(call obj,tests/support/damage.c tests/support/reader_files.c)
$(MAKERS): $(BUILD)/%: $(BUILD)/%.o $(LIBS)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) $(filter %.o,$^) $(LIBS) -o $@ $(PKG_LIBS) -lm

# libFuzzer's own main; built by `make fuzz` alone.
FUZZER := $(BUILD)/tests/fuzz/fuzz_reader
$(FUZZER): $(call obj,tests/fuzz/fuzz_reader.c tests/support/reader_exercise.c tests/support/reader_files.c) $(LIBS)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) -fsanitize=fuzzer $^ -o $@ $(PKG_LIBS) -lm

include make/mutants.mk make/mutate.mk make/cuda.mk make/demo.mk make/install.mk make/kernel_coverage.mk

# --- what people type --------------------------------------------------------------------------
.PHONY: help
help: ## this list
	@echo "attest: judge GPU attention kernels against plain C references"; echo
	@sed -n 's/^\([a-z][a-z-]*\):.*## \(.*\)/\1\t\2/p' Makefile make/*.mk | \
	   while IFS=$$'\t' read -r t d; do printf '  make %-12s %s\n' "$$t" "$$d"; done
	@echo; echo "  knobs: CC=gcc|clang SAN=address|undefined|thread COVERAGE=1 DEV=1 (warnings are errors)"
	@echo "         V=1 (show commands) DEPS=0 (install nothing) BUILD=DIR JOBS=N FUZZ_SECONDS=60"
	@echo "         N=300 SEED=S ONLY='kernels/gemm/*' MUTATE_MIN=PERCENT SHARD=i/n MERGE=n (make mutate)"
	@echo "         PREFIX=DIR DESTDIR=DIR MUTANTS=1 (install and bundle take the wrong kernels along) CUDA=0 (a bundle without) ARCH='-gencode ...'"

.PHONY: doctor deps deps-present
doctor: ## what is found, what is missing, what that costs, and the package that brings it
	@make/dependencies.sh doctor
deps: ## install what is missing (Debian/Ubuntu; sudo when not root)
	@make/dependencies.sh install
deps-present:
	@make/dependencies.sh check build

JOBS ?= $(shell nproc)
# Instrumented programs are several times slower: nothing there is judged by the clock.
SLOW := $(if $(SAN)$(filter 1,$(COVERAGE)),AT_SLOW_BUILD=1)
RECURSE = $(MAKE) --no-print-directory

.PHONY: check check-fast tests-built
tests-built: deps-present $(TESTS) $(MAKERS) $(MUTATE) $(BUILD)/attest-demo
check: ## every test, full effort (installs what is missing first)
	@$(if $(filter 1,$(DEPS)),make/dependencies.sh install test)
	@$(RECURSE) -j$(JOBS) programs tests-built $(MECHANICAL) $(TESTED_COVERAGE)
	@$(SLOW) AT_EFFORT=full BUILD=$(abspath $(BUILD)) tests/run_tests.sh $(TESTS) $(sort $(wildcard tests/*/test_*.sh tests/python/test_*.py))
check-fast: ## every test on fewer inputs, under a minute on two quiet cores
	@$(if $(filter 1,$(DEPS)),make/dependencies.sh install test)
	@$(RECURSE) -j$(JOBS) programs tests-built $(MECHANICAL) $(TESTED_COVERAGE)
	@$(SLOW) AT_EFFORT=fast BUILD=$(abspath $(BUILD)) tests/run_tests.sh $(TESTS) $(sort $(wildcard tests/*/test_*.sh tests/python/test_*.py))

.PHONY: check-units
check-units: ## the C test programs alone, on fewer inputs
	@$(if $(filter 1,$(DEPS)),make/dependencies.sh install test)
	@$(RECURSE) -j$(JOBS) programs tests-built
	@$(SLOW) AT_EFFORT=fast BUILD=$(abspath $(BUILD)) tests/run_tests.sh $(TESTS)

.PHONY: asan ubsan tsan
asan: ## all tests under AddressSanitizer (with leaks)
	@$(RECURSE) SAN=address check-fast
ubsan: ## all tests under UndefinedBehaviorSanitizer
	@$(RECURSE) SAN=undefined check-fast
tsan: ## all tests under ThreadSanitizer
	@echo "tests/kernels/simt: left out, the machine has one thread and switches stacks by hand"
	@$(RECURSE) SAN=thread check-fast

FUZZ_SECONDS ?= 60
FUZZ_FORMATS := safetensors npy npz hdf5 archive distributions
.PHONY: fuzz
fuzz: ## libFuzzer on every reader of files, FUZZ_SECONDS=60 for each (needs clang)
	@command -v clang > /dev/null || { echo "make fuzz: clang is not installed" >&2; exit 3; }
	@$(RECURSE) CC=clang SAN=address BUILD=build/fuzz CFLAGS='$(CFLAGS) -fsanitize=fuzzer-no-link' build/fuzz/tests/fuzz/fuzz_reader
	@tests/fuzz/run_fuzz.sh build/fuzz/tests/fuzz/fuzz_reader build/fuzz/found $(FUZZ_SECONDS) $(FUZZ_FORMATS)

.PHONY: lint format format-check
lint: ## layer rules, names, banned calls, symbols, headers alone, shellcheck, clang-format, clang-tidy
	@$(if $(filter 1,$(DEPS)),make/dependencies.sh install lint)
	@$(RECURSE) -j$(JOBS) programs
	@BUILD=$(abspath $(BUILD)) tests/lint/lint.sh
format: ## rewrite the sources with clang-format
	@git ls-files '*.c' '*.h' | xargs clang-format -i

.PHONY: coverage
coverage: ## line coverage of reference/, verify/, datasets/ and notebooks_export/; fails under 90 %
	@$(if $(filter 1,$(DEPS)),make/dependencies.sh install lint)
	@mkdir -p build/cpu-coverage && find build/cpu-coverage -name '*.gcda' -delete # what an older run had reached
	@$(RECURSE) COVERAGE=1 check-fast
	@make/coverage.sh build/cpu-coverage

.PHONY: bench-reference
bench-reference: programs ## speed of the fast tier beside OpenBLAS's own dgemm
	@build/attest bench reference

.PHONY: notebooks
notebooks: programs ## record the activations, make the worked notebooks from notebooks_export/worked and run them
	$(Q)mkdir -p build/notebooks && rm -f build/notebooks/minilm.h5* && $(BUILD)/attest record minilm --out build/notebooks/minilm.h5
	$(Q)for n in fp16_headroom asynct_sparsity; do \
	   $(BUILD)/attest export build/notebooks/minilm.h5 --to ipynb --cells notebooks_export/worked/$$n.py --out build/notebooks && \
	   /usr/bin/python3 tests/python/worked_notebooks.py run build/notebooks/$$n.ipynb notebooks_export/$$n.ipynb || exit 1; done
	$(Q)cp datasets/measurements/h200_asynct_model.json build/notebooks/asynct_model.json && rm -f build/notebooks/asynct_docs.h5* && \
	   $(BUILD)/attest record datasets/activations/asynct_docs.safetensors --attention asynct --params causal=1 --out build/notebooks/asynct_docs.h5 && \
	   $(BUILD)/attest export build/notebooks/asynct_docs.h5 --to ipynb --cells notebooks_export/worked/asynct_model.py --out build/notebooks && \
	   /usr/bin/python3 tests/python/worked_notebooks.py run build/notebooks/asynct_model.ipynb notebooks_export/asynct_model.ipynb

.PHONY: clean
clean: ## remove build/
	$(Q)rm -rf build

.SECONDARY:
-include $(shell find $(BUILD) $(SIMT) $(wildcard $(COVER)) -name '*.d' 2>/dev/null)
