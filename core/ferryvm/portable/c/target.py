# SPDX-License-Identifier: Apache-2.0
"""The files of the target `c`."""

from __future__ import annotations

from ferryvm.portable.c.check import check_text
from ferryvm.portable.c.declaration import header_text
from ferryvm.portable.c.source import origin
from ferryvm.portable.c.text import c_text
from ferryvm.portable.plain import PlainFunction
from ferryvm.portable.target import Written, harness

FLAGS = ("-std=c11", "-ffp-contract=off")
"""Flags without which results may differ."""

_MAKEFILE = """\
# Builds @NAME@ and proves it with its golden vectors: make check

CC ?= cc
NATIVE := $(shell echo | $(CC) -march=native -E - > /dev/null 2>&1 && echo -march=native)
CFLAGS ?= -O3 $(NATIVE)
PYTHON ?= python3
FLAGS = @FLAGS@ -Wall -Wextra -Wconversion -Werror

all: lib@NAME@.so

lib@NAME@.so: @NAME@.c @NAME@.h
	$(CC) $(FLAGS) $(CFLAGS) -fPIC -shared -o $@ @NAME@.c -lm

check-program: check.c @NAME@.c @NAME@.h
	$(CC) $(FLAGS) $(CFLAGS) -o $@ check.c @NAME@.c -lm

check: check-program lib@NAME@.so
	./check-program vectors.txt
	@if command -v $(PYTHON) > /dev/null; then $(PYTHON) check.py lib@NAME@.so; \\
	else echo "$(PYTHON) is not here: check.py was not run"; fi

sanitize: check.c @NAME@.c @NAME@.h
	$(CC) $(FLAGS) -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all \\
	    -o check-sanitized check.c @NAME@.c -lm
	./check-sanitized vectors.txt

clean:
	rm -rf lib@NAME@.so check-program check-sanitized __pycache__

.PHONY: all check sanitize clean
"""


def write_c(function: PlainFunction) -> Written:
    """The source, the header, the harnesses."""
    interface = function.interface
    name = interface.name
    makefile = _MAKEFILE.replace("@NAME@", name).replace("@FLAGS@", " ".join(FLAGS))
    files = {
        f"{name}.c": c_text(function),
        f"{name}.h": header_text(interface, origin(function)),
        "check.c": check_text(interface),
        "check.py": harness("check.py"),
        "golden.py": harness("golden.py"),
        "Makefile": makefile,
    }
    build = {"language": "C11", "compilers": ["gcc", "clang"], "flags": list(FLAGS)}
    return Written(interface, files, build)
