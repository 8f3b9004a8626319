# Installing under PREFIX, and a bundle for hosts with nothing installed. Programs find what belongs to them from where they lie.
# SPDX-License-Identifier: Apache-2.0
PREFIX ?= /usr/local
# PREFIX is where it will be found, DESTDIR what a package maker puts in front of it.
DESTDIR ?=
# 1: the wrong kernels of `attest selftest` go along.
MUTANTS ?= 0
ifneq ($(filter-out 0 1,$(MUTANTS)),)
$(error MUTANTS=$(MUTANTS): wanted 0 or 1)
endif
WRONG_KERNELS := $(if $(filter 1,$(MUTANTS)),$(addprefix $(BUILD)/,attest-mutants mutants.tsv))
# attest-cuda goes along where `make cuda` has been.
INSTALLED := $(BUILD)/attest $(BUILD)/attest-cpu $(BUILD)/attest-so $(WRONG_KERNELS) $(if $(NVCC),$(wildcard $(BUILD)/attest-cuda $(BUILD)/attest-so-cuda))

.PHONY: install uninstall bundle
install: deps-present $(INSTALLED) ## programs, data, man page, completion, header and the Python runners under PREFIX (MUTANTS=1: what selftest needs)
	$(Q)make/install.sh $(DESTDIR)$(PREFIX) $(INSTALLED)
	@echo "installed: $(PREFIX)/bin/attest"
uninstall: ## take away what install put under PREFIX
	$(Q)make/install.sh --remove $(DESTDIR)$(PREFIX)

# xz, unless the name ends otherwise: BUNDLE=build/attest-bundle.tar.gz for a host whose tar knows no xz.
BUNDLE ?= build/attest-bundle.tar.xz
CUDA ?= auto
ifneq ($(filter-out auto 0 1,$(CUDA)),)
$(error CUDA=$(CUDA): wanted auto, 0 or 1)
endif
BUNDLED := $(BUILD)/attest $(BUILD)/attest-cpu $(BUILD)/attest-so $(WRONG_KERNELS)
BUNDLED_CUDA := $(if $(filter auto0 0%,$(CUDA)$(if $(NVCC),1,0)),,$(addprefix $(BUILD)/bundle/,attest-cuda attest-so-cuda $(if $(WRONG_KERNELS),attest-cuda-mutants)))
# Lines of kernels go along with the wrong ones alone, for compute-sanitizer.
# What a kernel is compiled to is packed within the program: unpacked, it would be six times as much.
COMPRESSED = $(if $(findstring compress-mode,$(shell $(NVCC) --help)),--compress-mode=size,-Xfatbin -compress-all)
bundle: deps-present $(BUNDLED) ## build/attest-bundle.tar.xz: for a GPU host with nothing installed (CUDA=0: without attest-cuda; MUTANTS=1)
	$(Q)$(if $(BUNDLED_CUDA),$(RECURSE) -j$(JOBS) nvcc-present $(BUNDLED_CUDA) ARCH='$(ARCH) $(PTX_ARCH)' NVCC_EXTRA='$(COMPRESSED)' LINEINFO='$(if $(WRONG_KERNELS),-lineinfo)' \
	   CUDA_DIR=$(BUILD)/bundle/cuda CUDA_PROGRAMS=$(BUILD)/bundle)
	$(Q)make/bundle.sh $(BUNDLE) $(BUNDLED) $(BUNDLED_CUDA)
