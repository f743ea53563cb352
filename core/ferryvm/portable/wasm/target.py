# SPDX-License-Identifier: Apache-2.0
"""The files of the target `wasm`."""

from __future__ import annotations

from ferryvm.portable.plain import PlainFunction
from ferryvm.portable.target import Written, harness
from ferryvm.portable.wasm.code import FunctionCode
from ferryvm.portable.wasm.encode import module, text

PAGE = 1 << 16
"""Bytes of a page of memory."""

_MAKEFILE = """\
# Proves @NAME@.wasm with its golden vectors: make check

NODE ?= node

check:
	$(NODE) check.mjs @NAME@.wasm

.PHONY: check
"""


def write_wasm(function: PlainFunction) -> Written:
    """The module in both formats, and a harness in JavaScript."""
    name = function.interface.name
    code = FunctionCode(function)
    pages = max(1, -(-code.reserved // PAGE))
    parts = name, code.parameters, code.locals, code.code, pages
    return Written(
        function.interface,
        {
            f"{name}.wasm": module(*parts),
            f"{name}.wat": text(*parts),
            "check.mjs": harness("check.mjs"),
            "Makefile": _MAKEFILE.replace("@NAME@", name),
        },
        {
            "language": "WebAssembly 2.0",
            "features": ["bulk-memory", "sign-extension"],
            "pointer": "i32, bytes in the exported memory; elements and results are aligned",
            "reserved": code.reserved,
            "flags": [],
        },
    )
