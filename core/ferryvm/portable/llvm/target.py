# SPDX-License-Identifier: Apache-2.0
"""The files of the target `llvm`."""

from __future__ import annotations

from ferryvm.portable.c.check import check_text
from ferryvm.portable.c.declaration import header_text
from ferryvm.portable.c.source import origin
from ferryvm.portable.llvm.source import llvm_text
from ferryvm.portable.plain import PlainFunction
from ferryvm.portable.target import Written, harness

_MAKEFILE = """\
# Compiles @NAME@.ll by clang 15 or later, and proves it with its golden vectors: make check

CC = clang
NATIVE := $(shell echo | $(CC) -march=native -E - > /dev/null 2>&1 && echo -march=native)
CFLAGS ?= -O3 $(NATIVE)
PYTHON ?= python3
CLANG := $(filter-out __clang_major__,$(shell echo __clang_major__ | $(CC) -E -P -x c - 2> /dev/null))

all: lib@NAME@.so

has-clang:
	@test "$(CLANG)" -ge 15 2> /dev/null || \\
	{ echo "@NAME@.ll needs clang 15 or later; $(CC) is version $(or $(CLANG),unknown): make CC=NAME"; exit 2; }

lib@NAME@.so: @NAME@.ll | has-clang
	$(CC) -Wno-override-module -ffp-contract=off $(CFLAGS) -fPIC -shared -o $@ @NAME@.ll -lm

check-program: check.c @NAME@.ll @NAME@.h | has-clang
	$(CC) -std=c11 -Wno-override-module -ffp-contract=off $(CFLAGS) -o $@ check.c @NAME@.ll -lm

check: check-program lib@NAME@.so
	./check-program vectors.txt
	@if command -v $(PYTHON) > /dev/null; then $(PYTHON) check.py lib@NAME@.so; \\
	else echo "$(PYTHON) is not here: check.py was not run"; fi

.PHONY: all check has-clang
"""


def write_llvm(function: PlainFunction) -> Written:
    """The module, the header, the harnesses of C."""
    interface = function.interface
    name = interface.name
    files = {
        f"{name}.ll": llvm_text(function),
        f"{name}.h": header_text(interface, origin(function)),
        "check.c": check_text(interface),
        "check.py": harness("check.py"),
        "golden.py": harness("golden.py"),
        "Makefile": _MAKEFILE.replace("@NAME@", name),
    }
    build = {"language": "LLVM IR", "compilers": ["LLVM 15"], "flags": ["-ffp-contract=off"]}
    return Written(interface, files, build)
