# SPDX-License-Identifier: Apache-2.0
"""The files of the target `spirv`."""

from __future__ import annotations

import dataclasses

from ferryvm.portable.llvm.device import OPENCL, device_module
from ferryvm.portable.llvm.emit import emit_object
from ferryvm.portable.llvm.member import member_module
from ferryvm.portable.opencl.target import with_status
from ferryvm.portable.plain import PlainFunction
from ferryvm.portable.target import Written, harness

_MAKEFILE = """\
# Proves the kernel @NAME@ with its golden vectors on a device: make check [DEVICE=PART OF ITS NAME]

PYTHON ?= python3
DEVICE ?=

check:
	$(PYTHON) check.py "$(DEVICE)"

.PHONY: check
"""


def write_spirv(function: PlainFunction) -> Written:
    """The kernel, a harness in Python."""
    interface = with_status(function.launch or function.interface)
    if function.member is None:
        module = device_module(dataclasses.replace(function, interface=interface), OPENCL)
    else:
        module = member_module(function, interface, OPENCL)
    name = interface.name
    files: dict[str, str | bytes] = {
        f"{name}.spv": emit_object(module, "spirv", OPENCL.triple, OPENCL.processor),
        f"{name}.ll": module,
        "check.py": harness("check_opencl.py"),
        "golden.py": harness("golden.py"),
        "Makefile": _MAKEFILE.replace("@NAME@", name),
    }
    build = {
        "language": "SPIR-V 1.2, OpenCL",
        "device": "one that takes programs in SPIR-V: OpenCL 2.1, or cl_khr_il_program",
        "flags": [],
    }
    return Written(interface, files, build)
