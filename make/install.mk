# Installing under PREFIX, and a bundle for hosts with nothing installed. Programs find what belongs to them from where they lie.
# SPDX-License-Identifier: Apache-2.0
PREFIX ?= /usr/local
# 1: the wrong kernels of `attest selftest` go along.
MUTANTS ?= 0
ifneq ($(filter-out 0 1,$(MUTANTS)),)
$(error MUTANTS=$(MUTANTS): wanted 0 or 1)
endif
BIN = $(DESTDIR)$(PREFIX)/bin
SHARE = $(DESTDIR)$(PREFIX)/share/attest
MAN = $(DESTDIR)$(PREFIX)/share/man/man1
COMPLETIONS = $(DESTDIR)$(PREFIX)/share/bash-completion/completions
INSTALLED_DATA := cases bench activations measurements

# attest-cuda goes along where `make cuda` has been.
INSTALLED := $(addprefix $(BUILD)/,attest attest-cpu $(if $(filter 1,$(MUTANTS)),attest-mutants)) \
             $(if $(NVCC),$(wildcard $(BUILD)/attest-cuda))

.PHONY: install uninstall bundle
install: deps-present $(INSTALLED) ## programs, data, man page, completion and the Python client under PREFIX (MUTANTS=1: what selftest needs)
	$(Q)install -d $(BIN) $(MAN) $(COMPLETIONS) && install $(INSTALLED) $(BIN)
	$(Q)rm -rf $(addprefix $(SHARE)/,$(INSTALLED_DATA)) # a case file that is gone is gone here too
	$(Q)for d in $(INSTALLED_DATA); do install -D -m 644 -t $(SHARE)/$$d datasets/$$d/* || exit 1; done
	$(Q)$(if $(filter 1,$(MUTANTS)),install -m 644 $(BUILD)/mutants.tsv $(SHARE),rm -f $(BIN)/attest-mutants $(SHARE)/mutants.tsv)
	$(Q)install -m 644 kernels/runner/PROTOCOL.md README.md LICENSE $(SHARE)
	$(Q)install -D -m 755 -t $(SHARE)/python tests/python/runner_client.py
	$(Q)make/documents.sh man $(BUILD)/attest > $(MAN)/attest.1 && make/documents.sh bash $(BUILD)/attest > $(COMPLETIONS)/attest
	@echo "installed: $(PREFIX)/bin/attest, data in $(PREFIX)/share/attest"
uninstall: ## take away what install put under PREFIX
	$(Q)rm -f $(addprefix $(BIN)/,attest attest-cpu attest-cuda attest-mutants) $(MAN)/attest.1 $(COMPLETIONS)/attest
	$(Q)rm -rf $(SHARE)

# xz, unless the name ends otherwise: BUNDLE=build/attest-bundle.tar.gz for a host whose tar knows no xz.
BUNDLE ?= build/attest-bundle.tar.xz
CUDA ?= auto
ifneq ($(filter-out auto 0 1,$(CUDA)),)
$(error CUDA=$(CUDA): wanted auto, 0 or 1)
endif
BUNDLED := attest attest-cpu $(if $(filter 1,$(MUTANTS)),attest-mutants)
BUNDLED_CUDA := $(if $(filter auto0 0%,$(CUDA)$(if $(NVCC),1,0)),,attest-cuda $(if $(filter 1,$(MUTANTS)),attest-cuda-mutants))
# What a kernel is compiled to is packed within the program: unpacked, it would be six times as much.
COMPRESSED = $(if $(findstring compress-mode,$(shell $(NVCC) --help)),--compress-mode=size,-Xfatbin -compress-all)
bundle: deps-present $(addprefix $(BUILD)/,$(BUNDLED)) ## build/attest-bundle.tar.xz: for a GPU host with nothing installed (CUDA=0: without attest-cuda; MUTANTS=1)
	$(Q)$(if $(BUNDLED_CUDA),$(RECURSE) -j$(JOBS) nvcc-present $(addprefix $(BUILD)/bundle/,$(BUNDLED_CUDA)) \
	   ARCH='$(ARCH) $(PTX_ARCH)' NVCC_EXTRA='$(COMPRESSED)' CUDA_DIR=$(BUILD)/bundle/cuda CUDA_PROGRAMS=$(BUILD)/bundle)
	$(Q)make/bundle.sh $(BUNDLE) $(addprefix $(BUILD)/,$(BUNDLED) $(if $(filter 1,$(MUTANTS)),mutants.tsv)) $(addprefix $(BUILD)/bundle/,$(BUNDLED_CUDA))
