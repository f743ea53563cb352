# SPDX-License-Identifier: Apache-2.0
"""The files of the target `opencl`."""

from __future__ import annotations

import dataclasses

from ferryvm.ir.c.opencl import BY_F64
from ferryvm.portable.identifier import identifiers
from ferryvm.portable.interface import Interface
from ferryvm.portable.opencl.check import check_text
from ferryvm.portable.opencl.source import opencl_text
from ferryvm.portable.plain import PlainFunction
from ferryvm.portable.target import Written, harness

FLAGS = ("-cl-std=CL1.2",)
"""Options of clBuildProgram."""

DIVISION = "-cl-fp32-correctly-rounded-divide-sqrt"
"""The option for devices that divide numbers of f32 as IEEE 754 says, where they are asked to. On
others f64 serves: the macro `BY_F64`."""

_MAKEFILE = """\
# Proves the kernel @NAME@ with its golden vectors on a device: make check [DEVICE=PART OF ITS NAME]

CC ?= cc
CFLAGS ?= -O2
LDLIBS ?= -lOpenCL
PYTHON ?= python3
DEVICE ?=

HAS_PYTHON := $(shell $(PYTHON) -c "import pyopencl" 2> /dev/null && echo yes)
HAS_C := $(shell echo "int main(void) { return 0; }" | $(CC) -include CL/cl.h -x c -o /dev/null - $(LDLIBS) 2> /dev/null && echo yes)
CHECKS := $(if $(HAS_C),check-c) $(if $(HAS_PYTHON),check-python)

check: $(if $(strip $(CHECKS)),$(CHECKS),check-nothing)

check-c: check-program
	DEVICE="$(DEVICE)" ./check-program vectors.txt

check-python:
	$(PYTHON) check.py "$(DEVICE)"

check-nothing:
	@echo "needs pyopencl for $(PYTHON), or CL/cl.h and libOpenCL for $(CC)"; exit 2

check-program: check.c
	$(CC) -std=c11 -Wall -Wextra -Werror $(CFLAGS) -o $@ check.c $(LDLIBS)

clean:
	rm -rf check-program __pycache__

.PHONY: check check-c check-python check-nothing clean
"""


def write_opencl(function: PlainFunction) -> Written:
    """The source of the kernel, the harnesses."""
    interface = with_status(function.launch or function.interface)
    name, by_f64 = interface.name, f"-D{BY_F64}"
    files = {
        f"{name}.cl": opencl_text(function, interface),
        "check.c": check_text(interface, [*FLAGS, DIVISION], [*FLAGS, by_f64]),
        "check.py": harness("check_opencl.py"),
        "golden.py": harness("golden.py"),
        "Makefile": _MAKEFILE.replace("@NAME@", name),
    }
    build = {
        "language": "OpenCL C 1.2",
        "flags": list(FLAGS),
        "division": {"flag": DIVISION, "otherwise": by_f64},
    }
    return Written(interface, files, build)


def with_status(interface: Interface) -> Interface:
    """The interface of a kernel, whose last argument points to the status."""
    taken = [*interface.names, *(result.name for result in interface.results)]
    (status,) = identifiers(["status"], interface.name, taken)
    return dataclasses.replace(interface, status=status)
