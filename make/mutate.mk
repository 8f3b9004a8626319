# `make mutate`: a sample of token-level mutants of every kernel, judged on the committed selection of cases.
# SPDX-License-Identifier: Apache-2.0
MUTATE := $(BUILD)/tests/mutate/mutate
$(MUTATE): $(call obj,$(wildcard tests/mutate/*.c)) $(LIBS)
	$(call say,LINK,$@)
	$(Q)$(CC) $(LDFLAGS_ALL) $^ -o $@ $(PKG_LIBS) -lm

N ?= 300
SEED ?= $(shell date +%Y%m%d)
ONLY ?=
CASES ?= @check
MUTATE_MIN ?= 0
SHARD ?=
MERGE ?=
.PHONY: mutate
mutate: programs $(MUTATE) ## judge N=300 mutants of the kernels, drawn by SEED (default: today), on the cases of @check; ONLY='kernels/gemm/*'
	@N='$(N)' SEED='$(SEED)' SEED_GIVEN='$(filter-out file,$(origin SEED))' SHARD='$(SHARD)' MERGE='$(MERGE)' \
	   ONLY='$(ONLY)' CASES='$(CASES)' MUTATE_MIN='$(MUTATE_MIN)' JOBS='$(JOBS)' BUILD='$(BUILD)' SIMT='$(SIMT)' \
	   VARIANT_OBJECTS='$(DEVICE_OBJ) $(call obj,$(VARIANTS))' CC='$(CC)' CXX='$(CXX)' CFLAGS='$(CFLAGS_ALL)' SIMT_FLAGS='$(SIMT_FLAGS)' \
	   PLAIN_CFLAGS='$(filter-out -g,$(CFLAGS_ALL)) -ffunction-sections -fdata-sections -fno-asynchronous-unwind-tables' \
	   LINK_FLAGS='$(LDFLAGS_ALL)' \
	   RUNNER_FRAME='$(RUNNER_FRAME)' RUNNER_LIBS='$(BLAS_LIBS) -ldw -lm' make/mutate.sh
