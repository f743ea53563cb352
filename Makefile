# SPDX-License-Identifier: Apache-2.0
# `make check` runs what continuous integration runs.

PYTHON ?= python

.PHONY: check lint types imports test slow slow-interpreters slow-faults slow-injection slow-llvm slow-opencl slow-cc slow-cc-installed slow-growth docs

check: lint types imports test

lint:
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

types:
	$(PYTHON) -m mypy

imports:
	lint-imports

test:
	$(PYTHON) -m pytest

# The campaigns whose results docs/trust.md states: some forty minutes.
slow: slow-interpreters slow-faults slow-injection slow-llvm slow-opencl slow-cc slow-growth

slow-interpreters:
	ferry fuzz --backends switch,threaded --programs 100000 --seed 20261121
	ferry fuzz --backends switch,threaded --programs 2000 --seed 20261122 --schedule every-boundary
	$(PYTHON) -m tests.faults.campaign
	$(PYTHON) -m tests.faults.campaign --native
	$(PYTHON) -m tests.fuzz.tight

slow-injection:
	$(PYTHON) -m tests.injection.campaign

slow-faults:
	$(PYTHON) -m tests.faults.compilers.campaign

slow-llvm:
	ferry fuzz --backends llvm --programs 500 --seed 20261123
	ferry fuzz --backends llvm --programs 800 --seed 20261124 --force-hot --schedule random
	ferry fuzz --backends llvm --programs 100 --seed 20261125 --force-hot --schedule every-boundary
	ferry fuzz --backends llvm --programs 400 --seed 20261126 --force-hot --force-deopt --schedule random
	ferry fuzz --policy tests/fuzz/speculation.toml --weights tests/fuzz/loops.toml --programs 1500 --seed 20261127 --schedule random
	ferry fuzz --policy tests/fuzz/shadow.toml --programs 500 --seed 20261128 --force-hot
	ferry fuzz --backends llvm --programs 1000 --seed 20261129 --kind image --force-hot

slow-opencl:
	ferry fuzz --backends opencl --programs 150 --seed 33 --force-hot --schedule random --patience 200
	ferry fuzz --backends opencl --programs 40 --seed 34 --force-hot --force-deopt --schedule random --patience 200
	ferry conformance --backend opencl --patience 900

slow-cc:
	@if $(PYTHON) -c "import ferryvm_cc" 2>/dev/null; then $(MAKE) slow-cc-installed; \
	else echo "ferryvm-cc is not installed: its campaigns are left out"; fi

slow-cc-installed:
	ferry fuzz --backends cc --programs 300 --seed 20261130 --force-hot --schedule random
	ferry fuzz --backends cc --programs 100 --seed 20261131 --force-hot --force-deopt --schedule random
	$(PYTHON) -m tests.engine.growing cc distinct 200 2000

# Bytes that a process keeps of each program that it has run; the last number is what is allowed.
slow-growth:
	for way in distinct same saved forked session; do \
		$(PYTHON) -m tests.engine.growing threaded $$way 2000 500 || exit 1; \
		$(PYTHON) -m tests.engine.growing switch $$way 2000 500 || exit 1; \
		$(PYTHON) -m tests.engine.growing llvm $$way 300 1500 || exit 1; \
	done
	$(PYTHON) -m tests.engine.growing llvm mixed 300 6000
	$(PYTHON) -m tests.engine.growing vliw distinct 200 2000
	$(PYTHON) -m tests.engine.growing vliw same 200 2000
	$(PYTHON) -m tests.engine.growing opencl distinct 100 6000

docs:
	ferry isa --markdown > docs/isa.md
