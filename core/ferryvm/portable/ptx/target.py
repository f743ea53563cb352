# SPDX-License-Identifier: Apache-2.0
"""The files of the target `ptx`."""

from __future__ import annotations

import dataclasses

from ferryvm.portable.llvm.device import NVIDIA, device_module
from ferryvm.portable.llvm.emit import emit_text
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
    interface = dataclasses.replace(with_status(function.interface), group=GROUP)
    function = dataclasses.replace(function, interface=interface)
    name = interface.name
    module = device_module(function, NVIDIA)
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
