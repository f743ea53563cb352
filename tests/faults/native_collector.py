# SPDX-License-Identifier: Apache-2.0
"""Planted faults of the native collector: its builder with one call left out, or one loop shorter.

Calls are numbered in the order in which they build code. Those of one function are made by
`forward` and by `collect`, the two functions of the module.
"""

from __future__ import annotations

import ctypes
import dataclasses
import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from ferryvm_backends._llvm import collector, ir, native
from ferryvm_backends._llvm.arithmetic import word
from ferryvm_backends._llvm.build import compile_loops
from ferryvm_backends._llvm.loader import NativeCode


@dataclasses.dataclass(frozen=True)
class NativeFault:
    """One call of a method of the builder that does something else."""

    method: str
    """`put`: a store; `forward_at`: forwarding one reference; `each`: a loop."""
    number: int
    about: str

    @property
    def name(self) -> str:
        """Its name, in reports."""
        return f"native-{self.method.replace('_', '-')}-{self.number}"


FAULTS = (
    NativeFault("put", 0, "The words of an object are not copied."),
    NativeFault("put", 1, "The place of an array's copy is not adjusted."),
    NativeFault("put", 2, "A copied object does not tell where its copy is."),
    NativeFault("forward_at", 0, "Statics are not forwarded."),
    NativeFault("forward_at", 1, "Words of frames are not forwarded."),
    NativeFault("forward_at", 2, "Fields are not forwarded."),
    NativeFault("forward_at", 3, "Elements are not forwarded."),
    NativeFault("forward_at", 4, "The references of handles are not forwarded."),
    NativeFault("forward_at", 5, "Fields of objects that only handles lead to are not forwarded."),
    NativeFault("forward_at", 6, "Elements of arrays that only handles lead to are not forwarded."),
    NativeFault("each", 0, "The last word of an object is not copied."),
    NativeFault("each", 1, "The last static is no root."),
    NativeFault("each", 2, "The last field with a reference is not forwarded."),
    NativeFault("each", 3, "The last element is not forwarded."),
    NativeFault("each", 4, "The last handle is no root."),
    NativeFault("mark", 0, "Elements outside are freed although their array is alive."),
    NativeFault("padding", 0, "Elements are not padded to words."),
)


class _Planting:
    """Counts calls of the methods, and changes the one of the fault."""

    def __init__(self, fault: NativeFault) -> None:
        self.fault = fault
        self.calls: dict[str, int] = {}
        self.has_hit = False

    def hits(self, method: str) -> bool:
        """True for the call that is to be changed."""
        number = self.calls.get(method, 0)
        self.calls[method] = number + 1
        found = (method, number) == (self.fault.method, self.fault.number)
        self.has_hit = self.has_hit or found
        return found


@functools.cache
def address_of(fault: NativeFault) -> int:
    """The address of the native collector with the fault."""
    planting = _Planting(fault)
    code, forwarder = collector._Code, collector._Collect
    put, each, element_bytes = code.put, code.each, code.element_bytes
    forward_at, mark = forwarder.forward_at, forwarder._mark
    is_inside: list[str] = []

    def other_put(self: Any, value: ir.Value, address: ir.Value, offset: int = 0) -> None:
        if is_inside or not planting.hits("put"):
            put(self, value, address, offset)

    @contextmanager
    def other_each(self: Any, count: ir.Value) -> Iterator[ir.Value]:
        if planting.hits("each"):
            is_none = self.builder.icmp_unsigned("==", count, word(0))
            less = self.builder.sub(count, word(1))
            count = self.builder.select(is_none, count, less)
        with each(self, count) as number:
            yield number

    def other_forward_at(self: Any, address: ir.Value) -> None:
        is_inside.append("forward_at")
        if not planting.hits("forward_at"):
            forward_at(self, address)
        is_inside.pop()

    def other_mark(self: Any, *operands: ir.Value) -> None:
        is_inside.append("mark")
        if not planting.hits("mark"):
            mark(self, *operands)
        is_inside.pop()

    def other_bytes(self: Any, length: ir.Value, size: ir.Value) -> ir.Value:
        if fault.method != "padding":
            return element_bytes(self, length, size)
        planting.has_hit = True
        return self.builder.and_(self.builder.mul(length, size), word(~7))

    with (
        mock.patch.object(code, "put", other_put),
        mock.patch.object(code, "each", other_each),
        mock.patch.object(code, "element_bytes", other_bytes),
        mock.patch.object(forwarder, "forward_at", other_forward_at),
        mock.patch.object(forwarder, "_mark", other_mark),
    ):
        module = collector.module()
    assert planting.has_hit, fault
    loaded: NativeCode = native.load(compile_loops(module))
    _loaded.append(loaded)
    return loaded.address(collector._SYMBOL)


_loaded: list[NativeCode] = []
"""Code that stays in memory: machines have its addresses."""

COLLECTOR = ctypes.PYFUNCTYPE(ctypes.c_uint64, ctypes.c_void_p)
"""The type of the function at such an address."""
