# SPDX-License-Identifier: Apache-2.0
"""Modules of LLVM IR, which are their text: what they declare, their functions, and blocks of
these.

Module ── globals: Function ── Block: phis, lines, end
          GlobalVariable
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from ferryvm_backends._llvm.ir.value import (
    POINTER,
    Argument,
    Callee,
    Constant,
    FunctionType,
    Place,
    Type,
    Value,
)

_PLAIN = re.compile(r"[-a-zA-Z$._][-a-zA-Z0-9$._]*")


def _quoted(name: str) -> str:
    """A name in LLVM's syntax: in quotation marks, if it needs them."""
    if _PLAIN.fullmatch(name):
        return name
    escaped = re.sub(r'["\\]|[^ -~]', lambda found: f"\\{ord(found[0]) & 0xFF:02x}", name)
    return f'"{escaped}"'


class Module:
    """Functions and variables that are compiled together; its text is LLVM IR."""

    def __init__(self, name: str = "") -> None:
        self.name, self.triple, self.data_layout = name, "unknown-unknown-unknown", ""
        self.globals: dict[str, Function | GlobalVariable] = {}
        """By name, in the order in which they were made."""
        self._metadata: dict[str, str] = {}

    def add_metadata(self, text: str) -> str:
        """The name in instructions of a node of metadata, made of the text of its operands."""
        return self._metadata.setdefault(text, f"!{len(self._metadata)}")

    def intrinsic(self, name: str, result: Type, parameters: Iterable[Type]) -> Function:
        """A function of LLVM's own, declared once; the name spells its types out."""
        found = self.globals.get(name)
        if found is None:
            found = Function(self, FunctionType(result, parameters), name)
        assert isinstance(found, Function)
        return found

    def __str__(self) -> str:
        lines = [
            f"; {_quoted(self.name)}",
            f'target triple = "{self.triple}"',
            f'target datalayout = "{self.data_layout}"',
            "",
        ]
        for each in self.globals.values():
            each.write(lines)
        lines += [f"{name} = !{{ {text} }}" for text, name in self._metadata.items()]
        lines.append("")
        return "\n".join(lines)


class GlobalVariable(Place):
    """A variable of a module."""

    __slots__ = ("align", "global_constant", "initializer", "linkage")

    def __init__(self, module: Module, kind: Type, name: str) -> None:
        super().__init__(f"@{_quoted(name)}", kind)
        _declare(module, name, self)
        self.initializer: Constant | None = None
        self.global_constant, self.linkage, self.align = False, "", 0

    def write(self, lines: list[str]) -> None:
        """Add its text."""
        words = [self.reference, "="]
        words.append(self.linkage or ("external" if self.initializer is None else ""))
        words += ["constant" if self.global_constant else "global", self.value_type.text]
        if self.initializer is not None:
            words.append(self.initializer.reference)
        lines.append(" ".join(filter(None, words)) + (f", align {self.align}" * bool(self.align)))


class Function(Callee):
    """A function of a module: a declaration, until it has a block."""

    def __init__(self, module: Module, signature: FunctionType, name: str) -> None:
        super().__init__(Value(POINTER, f"@{_quoted(name)}"), signature)
        _declare(module, name, self)
        self.module, self.name = module, name
        self.linkage, self.calling_convention = "", ""
        self.attributes: set[str] = set()
        self.blocks: list[Block] = []
        self.args = tuple(
            Argument(kind, f"%.{number}") for number, kind in enumerate(signature.parameters, 1)
        )
        self._values, self._names = len(self.args), {""}
        self._suffixes: dict[str, int] = {}
        """The suffix of the last block with a given name."""

    def new_reference(self) -> str:
        """A name that no value of the function has."""
        self._values += 1
        return f"%.{self._values}"

    def append_basic_block(self, name: str = "block") -> Block:
        """A new block at the end, named alike."""
        found, number = name, self._suffixes.get(name, 0)
        while found in self._names:
            number += 1
            found = f"{name}.{number}"
        self._names.add(found)
        self._suffixes[name] = number
        block = Block(self, found)
        self.blocks.append(block)
        return block

    def write(self, lines: list[str]) -> None:
        """Add its text."""
        words = ["define" if self.blocks else "declare", self.linkage, self.calling_convention]
        words += [self.signature.result.text]
        head = " ".join(filter(None, words))
        arguments = ", ".join(map(str, self.args))
        attributes = " ".join(sorted(self.attributes))
        lines.append(f"{head} {self.reference}({arguments}) {attributes}")
        if self.blocks:
            lines.append("{")
            for block in self.blocks:
                block.write(lines)
            lines.append("}")


def _declare(module: Module, name: str, what: Function | GlobalVariable) -> None:
    if name in module.globals:
        raise ValueError(f"the module has two of {name!r}")
    module.globals[name] = what


class Block:
    """A basic block: phis, then instructions, then one that ends it."""

    __slots__ = ("end", "function", "lines", "name", "phis", "reference")

    def __init__(self, function: Function, name: str) -> None:
        self.function, self.name = function, name
        self.reference = f"%{_quoted(name)}"
        self.phis: list[PhiInstr] = []
        self.lines: list[str] = []
        self.end: str | SwitchInstr | None = None

    def write(self, lines: list[str]) -> None:
        """Add its text; one without an end is refused by LLVM."""
        lines.append(f"{self.reference[1:]}:")
        lines += map(str, self.phis)
        lines += self.lines
        if self.end is not None:
            lines.append(str(self.end))


class PhiInstr(Value):
    """A value that depends on where control comes from."""

    __slots__ = ("incoming",)

    def __init__(self, kind: Type, reference: str) -> None:
        super().__init__(kind, reference)
        self.incoming: list[str] = []

    def add_incoming(self, value: Value, block: Block) -> None:
        """It is this value where control comes from this block."""
        self.incoming.append(f"[{value.reference}, {block.reference}]")

    def __str__(self) -> str:
        return f"{self.reference} = phi {self.type.text} {', '.join(self.incoming)}"


class SwitchInstr:
    """A jump to one of many blocks."""

    def __init__(self, value: Value, default: Block) -> None:
        self._head = f"switch {value.type.text} {value.reference}, label {default.reference}"
        self._cases: list[str] = []

    def add_case(self, value: Value, block: Block) -> None:
        """Go to a block if it is this constant."""
        self._cases.append(f"{value.type.text} {value.reference}, label {block.reference}")

    def __str__(self) -> str:
        return f"{self._head} [{' '.join(self._cases)}]"
