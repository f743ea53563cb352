# SPDX-License-Identifier: Apache-2.0
"""Loads and stores of native code, by the part of the machine's state that they access.

Control block, statics, stack and heap never overlap. Type-based alias metadata tells LLVM so, with
one type for each part: a store to the heap does not make it reload the control block.
"""

from __future__ import annotations

from ferryvm.machine.control import ControlBlock
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import WORD, word
from ferryvm_backends._llvm.handler import BYTE, POINTER

_FIXED = frozenset(
    [
        "functions",
        "heap",
        "natives",
        "object_end",
        "objects",
        "stack",
        "stack_end",
        "statics",
        "table",
        "types",
    ]
)
"""Fields that nothing changes while native code runs."""


STREAMED = " streamed"
"""Ends the name of a part of memory in accesses that `ferryvm_backends.llvm.streaming` finds by it
in optimised code: they may overlap others of the part."""


class Storage:
    """Memory accesses at a builder."""

    def __init__(self, builder: ir.IRBuilder) -> None:
        self.builder = builder
        self._tags: dict[str, str] = {}

    def tag(self, part: str) -> str:
        """The metadata of an access to a part."""
        found = self._tags.get(part)
        if found is None:
            kind = self._kind(part)
            tag = self.builder.module.add_metadata(f"{kind}, {kind}, i64 0")
            found = self._tags[part] = f"!tbaa {tag}"
        return found

    def _kind(self, part: str) -> str:
        add, whole = self.builder.module.add_metadata, part.removesuffix(STREAMED)
        above = add('!"ferryvm"') if whole == part else self._kind(whole)
        return add(f'!"{part}", {above}, i64 0')

    def offset(self, pointer: ir.Value, bytes_: int | ir.Value) -> ir.Value:
        """A pointer that many bytes further."""
        if isinstance(bytes_, int):
            if not bytes_:
                return pointer
            bytes_ = word(bytes_)
        return self.builder.gep(pointer, [bytes_], source_etype=BYTE)

    def pointer(self, address: ir.Value) -> ir.Value:
        """An address as a pointer."""
        return self.builder.inttoptr(address, POINTER)

    def scope(self, own: str, other: str) -> str:
        """The metadata of an access to one of two sets of objects that have no bytes in common."""
        add = self.builder.module.add_metadata
        domain = add('!"objects"')
        mine, others = (add(add(f'!"{name}", {domain}')) for name in (own, other))
        return f", !alias.scope {mine}, !noalias {others}"

    def load(
        self,
        pointer: ir.Value,
        part: str,
        t: ir.Type = WORD,
        align: int = 8,
        fixed: bool = False,
        scope: str = "",
    ) -> ir.Value:
        """The value at a pointer into a part of the state; `scope`: metadata, see `scope`."""
        if fixed:
            metadata = f"!invariant.load {self.builder.module.add_metadata('')}"
        else:
            metadata = self.tag(part) + scope
        return self.builder.load(pointer, align, t, metadata)

    def store(
        self, value: ir.Value, pointer: ir.Value, part: str, align: int = 8, scope: str = ""
    ) -> None:
        """Store at a pointer into a part of the state; `scope`: metadata, see `scope`."""
        self.builder.store(value, pointer, align, self.tag(part) + scope)

    def field(self, control: ir.Value, name: str) -> ir.Value:
        """A field of the control block, as a word or, if it is shorter, an i32."""
        field = getattr(ControlBlock, name)
        t = ir.IntType(8 * field.size)
        where = self.offset(control, field.offset)
        return self.load(where, "control", t, field.size, fixed=name in _FIXED)

    def set_field(self, control: ir.Value, name: str, value: ir.Value) -> None:
        """Store a field of the control block."""
        field = getattr(ControlBlock, name)
        self.store(value, self.offset(control, field.offset), "control", field.size)
