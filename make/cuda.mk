# CUDA: the same kernels by nvcc. Nothing of this is built but by `make cuda`, `make bundle` and `make resources`.
# SPDX-License-Identifier: Apache-2.0
NVCC := $(shell command -v nvcc 2>/dev/null)
CUDA_HOME := $(patsubst %/bin/nvcc,%,$(realpath $(NVCC)))
# For Hopper alone; a bundle also takes PTX along, for what is newer than sm_80 and is not Hopper.
ARCH ?= -gencode arch=compute_90a,code=sm_90a
PTX_ARCH := -gencode arch=compute_80,code=compute_80
# What compute-sanitizer names lines by, a third of what a kernel takes when it is packed.
LINEINFO ?= -lineinfo
# Where objects and programs go: a bundle's are compiled for more, and beside the others.
CUDA_DIR ?= $(BUILD)/cuda
CUDA_PROGRAMS ?= $(BUILD)
# 445: a launch takes a template lambda that gives the kernel of a head size, which is no parameter's type.
NVCC_FLAGS = -std=c++20 -O3 -fmad=false -diag-suppress 445 $(LINEINFO) $(ARCH) $(DEFS) -Ireference -I. -Xptxas -warn-spills $(NVCC_EXTRA)
CUDA_STAMP := $(CUDA_DIR)/flags

# An object is made again when nvcc's flags change; nothing is written where there is no nvcc.
$(if $(NVCC),$(shell mkdir -p $(CUDA_DIR); $(call stamp,$(CUDA_STAMP),$(NVCC) $(NVCC_FLAGS))))

CUDA_KERNEL_OBJ := $(patsubst %.cu,$(CUDA_DIR)/%.o,$(DEVICE_VARIANTS))
VENDOR_OBJ := $(call obj,$(VENDOR_VARIANTS) $(DISPATCHERS) $(DISPATCH_SRC))
CUDA_FRAME := $(call obj,$(CUDA_SRC) $(RUNNER_SHARED_SRC) $(LAUNCH_SRC) kernels/launch/driver_abi.c kernels/device/tensor_box.c)
$(BUILD)/gen/cuda_kernel_table.c: .always
	$(Q)make/write_tables.sh kernels $(DEVICE_VARIANTS) $(VENDOR_VARIANTS) $(DISPATCHERS) > $@.new && { cmp -s $@.new $@ && rm $@.new || mv $@.new $@; }
$(CUDA_DIR)/%.o: %.cu $(CUDA_STAMP)
	$(call say,NVCC,$<)
	$(Q)mkdir -p $(@D) && $(NVCC) $(NVCC_FLAGS) -MMD -MP -MF $(@:.o=.d) -c $< -o $@
	$(Q)make/host_object.sh $< $@
$(call obj,$(CUDA_SRC) kernels/launch/driver_abi.c): PKG_CFLAGS += -isystem $(CUDA_HOME)/include
# jansson reads launch files; its static archive, where there is one, lets the program be copied alone.
JANSSON := $(or $(filter /%,$(shell $(CC) -print-file-name=libjansson.a)),$(shell pkg-config --libs jansson 2>/dev/null))
cuda_link = $(CXX) $(LDFLAGS_ALL) $^ -o $@ $(JANSSON) -L$(CUDA_HOME)/lib64 -lcudart_static -ldl -lrt -lm
$(CUDA_PROGRAMS)/attest-cuda: $(CUDA_FRAME) $(BUILD)/gen/cuda_kernel_table.o $(CUDA_KERNEL_OBJ) $(VENDOR_OBJ) $(BUILD)/libreference.a
	$(call say,LINK,$@)
	$(Q)$(cuda_link)

# Kernels of a shared library: the frame without the kernels' table.
$(CUDA_PROGRAMS)/attest-so-cuda: $(call obj,kernels/runner/main_so_cuda.c $(SO_SRC) $(filter-out %/main_cuda.c,$(CUDA_SRC)) $(filter-out %/main_shared.c,$(RUNNER_SHARED_SRC))) $(BUILD)/libreference.a
	$(call say,LINK,$@)
	$(Q)$(cuda_link)

# Wrong kernels that a device must survive: they hang, crash, ask for too much. Their patches say `runs-on: device`.
CUDA_MUTANTS := $(patsubst %=runs-on=device,%,$(filter %=runs-on=device,$(MUTANT_HEADS)))
$(CUDA_DIR)/mutants/%.o: tests/mutants/%.patch $(CUDA_KERNEL_OBJ) make/build_mutant.sh make/mutant_copy.sh
	$(call say,NVCC,$<)
	$(Q)NVCC='$(NVCC)' NVCC_FLAGS='$(NVCC_FLAGS)' make/build_mutant.sh $< $@ $(BUILD)
$(BUILD)/gen/cuda_mutant_table.c: $(CUDA_MUTANTS) make/write_tables.sh
	$(Q)make/write_tables.sh kernels $(CUDA_MUTANTS) > $@
$(CUDA_PROGRAMS)/attest-cuda-mutants: $(CUDA_FRAME) $(BUILD)/gen/cuda_mutant_table.o $(CUDA_MUTANTS:tests/mutants/%.patch=$(CUDA_DIR)/mutants/%.o) $(BUILD)/libreference.a
	$(call say,LINK,$@)
	$(Q)$(cuda_link)

.PHONY: cuda nvcc-present resources
cuda: deps-present nvcc-present $(CUDA_PROGRAMS)/attest-cuda $(CUDA_PROGRAMS)/attest-so-cuda ## attest-cuda and attest-so-cuda, the runners that have a GPU (wants nvcc; ARCH='-gencode ...' for others than Hopper)
	$(Q)$(link_programs)
# Never instrumented, and with gcc alone, nvcc's host compiler.
nvcc-present:
	@[ -n "$(NVCC)" ] || { echo "nvcc is not on the PATH: the CUDA toolkit brings it, often in /usr/local/cuda/bin" >&2; exit 3; }
	@[ -z "$(SAN)$(filter 1,$(COVERAGE))$(findstring clang,$(CC))" ] || { echo "CUDA programs are built without SAN, COVERAGE and clang" >&2; exit 2; }

resources: deps-present nvcc-present ## registers, shared memory and spills of every CUDA kernel on every architecture (wants nvcc)
	$(Q)mkdir -p build && make/resources.sh '$(NVCC)' build/resources.tsv -std=c++20 -O3 -fmad=false $(DEFS) -Ireference -I.
