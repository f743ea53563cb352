# SPDX-License-Identifier: Apache-2.0
# `make check` runs what continuous integration runs.

PYTHON ?= python

.PHONY: check lint types imports test slow docs site

check: lint types imports test site

lint:
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

types:
	$(PYTHON) -m mypy

imports:
	lint-imports

test:
	$(PYTHON) -m pytest

# What the default tier leaves out and the campaigns of docs/trust.md: some hours. Where it is cut off
# it goes on; `make slow JOBS=llvm` runs one group. The summary is in nightly/.
slow:
	$(PYTHON) -m tests.nightly $(JOBS)

docs:
	ferry isa --markdown > docs/isa.md

# All pages of docs/ and the API reference, into build/site. A warning is an error.
site:
	$(PYTHON) -m mkdocs build --strict
