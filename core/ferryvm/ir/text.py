# SPDX-License-Identifier: Apache-2.0
"""The region IR as text, for people and for tests. docs/ir.md describes the form.

b1 @12 (%4: i64, %5: f64):
  %6: i64 = add i64 %4, i64:1
  trap_if MEMORY_OUT_OF_BOUNDS %9 @14 [_ _ %4 canonical(%5) i64:0] {s2=%6 hp=%7} unpaid=3
  branch %8 b1(%6, %5)^ b2()

Reading the text back (`ferryvm.ir.parse`) and writing it again gives the same text.
"""

from __future__ import annotations

import enum
import json
import re

from ferryvm.float_environment import in_ours
from ferryvm.ir.graph import (
    Block,
    Body,
    Boolean,
    Constant,
    Edge,
    FrameState,
    Module,
    Operation,
    Value,
    Virtual,
)
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import F32, Type, format_value, from_float

__all__ = ["body_text", "constant_text", "module_text", "operation_text"]

_PLAIN = re.compile(r"[A-Za-z_][\w./#-]*", re.ASCII)
"""A name that needs no quotes."""


@in_ours
def module_text(module: Module) -> str:
    """The text of a module."""
    counting = " counting" if module.counting else ""
    head = f"module {_name(module.name)}{counting}\n"
    bodies = [*module.bodies, *([] if module.lanes is None else [module.lanes])]
    return "\n".join([head, *(body_text(b) for b in bodies)])


@in_ours
def body_text(body: Body) -> str:
    """The text of a body."""
    return _Printer(body).text()


@in_ours
def operation_text(body: Body, operation: Operation) -> str:
    """One line of `body_text`."""
    return _Printer(body).operation(operation)


class _Printer:
    def __init__(self, body: Body) -> None:
        self.body = body
        self.names: dict[Value, str] = {}
        for block in body.blocks:
            for value in (*block.parameters, *block.operations):
                if value.type is not None:
                    self.names[value] = f"%{len(self.names)}"

    def text(self) -> str:
        body = self.body
        kind = "region" if body.is_root else "function" if body.varying is None else "lanes"
        result = "".join(f" -> {' '.join(map(str, body.results))}" for _ in body.results[:1])
        head = f"{kind} {_name(body.name)} function={body.function} entry={body.entry}"
        if body.is_root and body.parameters:  # a function's are shown at its entry
            head += f" parameters={body.parameters}"
        if body.lanes:
            head += f" lanes={body.lanes}"
        head += result
        lines = [head]
        for block in body.blocks:
            lines += self._block(block)
        return "\n".join([*lines, ""])

    def _block(self, block: Block) -> list[str]:
        parameters = ", ".join(f"{self.names[p]}: {self._type(p)}" for p in block.parameters)
        lines = [f"{block.label} @{block.pc} ({parameters}):"]
        return lines + [f"  {self.operation(o)}" for o in (*block.operations, block.end)]

    def operation(self, operation: Operation) -> str:
        """The line of an operation."""
        words = [operation.name, *(_static(item) for item in operation.static)]
        if operation.arguments:
            words.append(", ".join(self._value(a) for a in operation.arguments))
        words += [self._edge(edge) for edge in getattr(operation, "edges", ())]
        if operation.state is not None:
            words.append(self._state(operation.state))
        text = " ".join(words)
        if operation.type is None:
            return text
        return f"{self.names.get(operation, '%?')}: {self._type(operation)} = {text}"

    def _type(self, value: Value) -> str:
        is_varying = self.body.varying is not None and value in self.body.varying
        return f"{value.type} each" if is_varying else str(value.type)

    def _edge(self, edge: Edge) -> str:
        arguments = ", ".join(self._value(a) for a in edge.arguments)
        return f"{edge.block.label}({arguments}){'^' if edge.is_back else ''}"

    def _value(self, value: Value) -> str:
        if isinstance(value, Constant):
            return constant_text(value)
        if value in self.names:
            return self.names[value]
        if isinstance(value, Virtual):
            return f"canonical({self._value(value.raw)})"
        return "%?"  # a fault that the verifier reports

    def _state(self, state: FrameState) -> str:
        words = " ".join("_" if w is None else self._value(w) for w in state.words)
        extra = [f"s{number}={self._value(value)}" for number, value in state.statics]
        if state.heap_pointer is not None:
            extra.append(f"hp={self._value(state.heap_pointer)}")
        text = f"@{state.pc} [{words}]"
        if extra:
            text += f" {{{' '.join(extra)}}}"
        if state.header is not None:
            text += f" header={state.header}"
        if state.phase is not None:
            values = ", ".join(map(self._value, state.phase.values))
            text += f" phase={state.phase.group.number} region={state.phase.region} ({values})"
        return f"{text} unpaid={state.unpaid}" if state.unpaid else text


def constant_text(constant: Constant) -> str:
    """A constant: its type, then its value; its bits if no decimal text reads back as them."""
    t = constant.type
    if isinstance(t, Boolean):
        return "true" if constant.bits else "false"
    value = format_value(t, constant.bits)
    is_exact = t is not F32 or from_float(t, float(value)) == constant.bits
    return f"{t}:{value}" if value != "nan" and is_exact else f"{t}:{constant.bits:#x}"


def _name(name: str) -> str:
    return name if _PLAIN.fullmatch(name) else json.dumps(name)


def _static(item: object) -> str:
    if isinstance(item, bool):
        return str(item).lower()
    if isinstance(item, tuple):
        return f"({' '.join(_static(each) for each in item)})"
    if isinstance(item, Trap | enum.IntEnum):
        return item.name
    if isinstance(item, Type | enum.Enum):
        return str(item.value)
    return str(item)
