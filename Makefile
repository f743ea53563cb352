# SPDX-License-Identifier: Apache-2.0
# `make check` runs what continuous integration runs.

PYTHON ?= python

.PHONY: check lint types imports test slow docs

check: lint types imports test

lint:
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

types:
	$(PYTHON) -m mypy

imports:
	lint-imports

test:
	$(PYTHON) -m pytest -n 2

# The campaigns whose results docs/trust.md states: some ten minutes.
slow:
	ferry fuzz --backends switch,threaded --programs 100000 --seed 20261121
	ferry fuzz --backends switch,threaded --programs 2000 --seed 20261122 --schedule every-boundary
	$(PYTHON) -m tests.faults.campaign
	$(PYTHON) -m tests.faults.campaign --native

docs:
	ferry isa --markdown > docs/isa.md
