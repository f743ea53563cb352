# SPDX-License-Identifier: Apache-2.0
"""Native host functions of Python callables, and programs that call one."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import ferryvm
from ferryvm import HostFunction, native_host
from ferryvm.engine.host_declaration import parse_signature
from ferryvm.isa import Type

_C = {
    Type.I32: ctypes.c_int32,
    Type.I64: ctypes.c_int64,
    Type.F32: ctypes.c_float,
    Type.F64: ctypes.c_double,
}


def host_function(signature: str, body: Callable[..., Any], name: str = "f") -> HostFunction:
    """A callable, which takes and gives values of the signature, as a C function."""
    found = parse_signature(signature)
    results = [_C[t] for t in found.results]
    kind = ctypes.CFUNCTYPE(results[0] if results else None, *(_C[t] for t in found.parameters))
    return native_host(name, signature, kind(body))


def calling(signature: str) -> ferryvm.Program:
    """Exports `call`, which calls the import `f` with its own arguments between two others."""
    found = parse_signature(signature)
    loads = "".join(f"    local.get {n}\n" for n in range(len(found.parameters)))
    under = "    i64.const 77\n"
    keep = ""
    if found.results:
        keep = f".local kept {found.results[0]}\n"
        after = "    local.set kept\n    drop\n    local.get kept\n"
    else:
        after = "    drop\n"
    body = f"{keep}{under}{loads}    host f\n{after}    return\n"
    return ferryvm.assemble(
        f".host f {signature}\n.export call\n.function start\n    halt\n"
        f".function call {signature}\n{body}"
    )
