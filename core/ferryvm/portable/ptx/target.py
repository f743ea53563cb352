# SPDX-License-Identifier: Apache-2.0
"""The files of the target `ptx`."""

from __future__ import annotations

import dataclasses

from ferryvm.portable.llvm.device import NVIDIA, device_module
from ferryvm.portable.llvm.emit import emit_text
from ferryvm.portable.llvm.member import member_module
from ferryvm.portable.opencl.target import with_status
from ferryvm.portable.plain import PlainFunction
from ferryvm.portable.target import Written, harness

GROUP = 128
"""Work-items of a group."""

_MAKEFILE = """\
# Proves the kernel @NAME@ with its golden vectors on a device of CUDA: make check [DEVICE=ITS NUMBER]

PYTHON ?= python3
DEVICE ?= 0

check:
	$(PYTHON) check.py "$(DEVICE)"

.PHONY: check
"""


def write_ptx(function: PlainFunction) -> Written:
    """The kernel, a harness in Python."""
    interface = with_status(function.launch or function.interface)
    if function.member is None:
        interface = dataclasses.replace(interface, group=GROUP)
        module = device_module(dataclasses.replace(function, interface=interface), NVIDIA)
    else:
        module = member_module(function, interface, NVIDIA)
    name = interface.name
    text = emit_text(module, "ptx", NVIDIA.triple, NVIDIA.processor)
    files = {
        f"{name}.ptx": text,
        f"{name}.ll": module,
        "check.py": harness("check_ptx.py"),
        "golden.py": harness("golden.py"),
        "Makefile": _MAKEFILE.replace("@NAME@", name),
    }
    build = {"language": "PTX 6.0", "processor": f"{NVIDIA.processor} and later", "flags": []}
    return Written(interface, files, build)
