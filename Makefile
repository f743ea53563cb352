# SPDX-License-Identifier: Apache-2.0
# `make check` runs what continuous integration runs.

PYTHON ?= python

.PHONY: check lint types imports test docs

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

docs:
	ferry isa --markdown > docs/isa.md
