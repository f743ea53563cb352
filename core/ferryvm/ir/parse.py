# SPDX-License-Identifier: Apache-2.0
"""The region IR from text, as `ferryvm.ir.text` writes it. docs/ir.md describes the form.

One line is a module, a body, the head of a block, or an operation. Names of values and labels of
blocks may be used before they are defined. This module checks the syntax; `ferryvm.ir.verify`
checks the meaning.
"""

from __future__ import annotations

import dataclasses
import json
import re
from typing import NoReturn, TypeVar

from ferryvm.errors import suggestion
from ferryvm.float_environment import in_ours
from ferryvm.ir.graph import (
    BOOLEAN,
    Block,
    Body,
    Boolean,
    Constant,
    Edge,
    FrameState,
    Module,
    Operation,
    Parameter,
    Phase,
    Static,
    Terminator,
    Value,
    ValueType,
    Virtual,
)
from ferryvm.ir.group.record import Group
from ferryvm.ir.operation import SHAPES, AttributeKind, IrError, Role
from ferryvm.isa.element import Element
from ferryvm.isa.emitter import Atomic, Condition, FunctionField
from ferryvm.isa.mathematics import FUNCTIONS
from ferryvm.isa.mathematics.table import TABLES
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import Type, from_float

__all__ = ["parse_module"]

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<comment>;.*)
    | (?P<text>"(?:[^"\\]|\\.)*")
    | (?P<value>%\d+)
    | (?P<constant>(?:i32|i64|f32|f64):[^\s,()\[\]{}]+)
    | (?P<word>[A-Za-z_][\w./\#-]*)
    | (?P<number>\d+)
    | (?P<sign>->|[@:=,()\[\]{}^])
    )""",
    re.VERBOSE | re.ASCII,
)

_TYPES: dict[str, ValueType] = {**{str(t): t for t in Type}, "boolean": BOOLEAN}

N = TypeVar("N")
V = TypeVar("V", Operation, Parameter)


@in_ours
def parse_module(text: str) -> Module:
    """The module of a text. Raises IrError with the number of the faulty line."""
    return _Parser(text).run()


@dataclasses.dataclass
class _Late:
    """A block whose operations are parsed after all names of the body are known."""

    block: Block
    lines: list[tuple[int, list[str]]]


class _Parser:
    def __init__(self, text: str) -> None:
        self.lines: list[tuple[int, list[str]]] = []
        for number, line in enumerate(text.splitlines(), 1):
            self.number = number
            tokens = self._split(line)
            if tokens:
                self.lines.append((number, tokens))
        self.tokens: list[str] = []
        self.at = 0

    def _fault(self, message: str) -> NoReturn:
        raise IrError(f"line {self.number}: {message}")

    def _split(self, line: str) -> list[str]:
        found: list[str] = []
        line, at = line.rstrip(), 0
        while at < len(line):
            match = _TOKEN.match(line, at)
            if match is None:
                self._fault(f"nothing can begin with {line[at:].strip()[:20]!r}")
            assert match.lastgroup is not None
            if match.lastgroup != "comment":
                found.append(match[match.lastgroup])
            at = match.end()
        return found

    # --- tokens of a line -------------------------------------------------------------------

    def _set_line(self, number: int, tokens: list[str]) -> None:
        self.number, self.tokens, self.at = number, tokens, 0

    @property
    def _next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _take(self, wanted: str = "") -> str:
        """The next token, which must be `wanted` if that is given."""
        found = self._next
        if not found or (wanted and found != wanted):
            expected = repr(wanted) if wanted else "more"
            self._fault(f"{expected} expected, found {repr(found) if found else 'the end'}")
        self.at += 1
        return found

    def _accepts(self, wanted: str) -> bool:
        if self._next != wanted:
            return False
        self.at += 1
        return True

    def _integer(self) -> int:
        found = self._take()
        if not found.isdecimal():
            self._fault(f"a number expected, found {found!r}")
        return int(found)

    def _field(self, name: str) -> int:
        self._take(name)
        self._take("=")
        return self._integer()

    def _name(self) -> str:
        found = self._take()
        if found.startswith('"'):
            try:
                return str(json.loads(found))
            except ValueError:
                self._fault(f"{found} is no text")
        return found

    def _one(self, kind: str, known: dict[str, N]) -> N:
        found = self._take()
        if found not in known:
            self._fault(f"no {kind} {found!r}{suggestion(found, known)}")
        return known[found]

    # --- modules and bodies -----------------------------------------------------------------

    def run(self) -> Module:
        """The module."""
        lines = iter([*self.lines, (self.lines[-1][0] + 1 if self.lines else 1, [])])
        self._set_line(*next(lines))
        self._take("module")
        name, counting = self._name(), self._accepts("counting")
        self._end()
        bodies: list[Body] = []
        number, tokens = next(lines)
        while tokens:
            self._set_line(number, tokens)
            body = self._body_head()
            late: list[_Late] = []
            number, tokens = next(lines)
            while tokens and not self._is_body(tokens):
                self._set_line(number, tokens)
                if tokens[-1] == ":":  # only the head of a block ends like this
                    late.append(_Late(Block(self._take(), 0), []))
                    body.blocks.append(late[-1].block)
                elif not late:
                    self._fault("the head of a block expected")
                late[-1].lines.append((number, tokens))
                number, tokens = next(lines)
            _BodyParser(self, body).run(late)
            bodies.append(body)
        self._set_line(number, [])
        if not bodies or not bodies[0].is_root:
            self._fault("a region expected first")
        for body in bodies[1:]:
            if body.is_root:
                self._fault(f"one region expected, {body.name} is another")
        lanes = [body for body in bodies[1:] if body.varying is not None]
        if len(lanes) > 1:
            self._fault(f"one body of lanes expected, {lanes[1].name} is another")
        functions = {body.function: body for body in bodies[1:] if body.varying is None}
        module = Module(name, bodies[0], functions, counting)
        module.lanes = lanes[0] if lanes else None
        return module

    @staticmethod
    def _is_body(tokens: list[str]) -> bool:
        return tokens[0] in ("region", "function", "lanes") and tokens[-1] != ":"

    def _body_head(self) -> Body:
        kind = self._take()
        if kind not in ("region", "function", "lanes"):
            self._fault(f"a region or function expected, found {kind!r}")
        name, function, entry = self._name(), self._field("function"), self._field("entry")
        parameters = 0
        results: list[Type] = []
        if kind == "region" and self._next == "parameters":
            parameters = self._field("parameters")
        lanes = self._field("lanes") if kind == "region" and self._next == "lanes" else 0
        if self._accepts("->"):
            while not results or self._next:
                results.append(self._one("type", {str(t): t for t in Type}))
        self._end()
        body = Body(name, function, entry, kind == "region", tuple(results), parameters)
        body.varying = set() if kind == "lanes" or lanes else None
        body.lanes = lanes
        return body

    def _end(self) -> None:
        if self._next:
            self._fault(f"the end of the line expected, found {self._next!r}")


class _BodyParser:
    """Reads the blocks of one body."""

    def __init__(self, parser: _Parser, body: Body) -> None:
        self.p, self.body = parser, body
        self.values: dict[str, Value] = {}
        self.virtual: dict[Value, Operation] = {}
        self.groups: dict[int, Group] = {}
        self.blocks = {block.label: block for block in body.blocks}

    def run(self, late: list[_Late]) -> None:
        """Fill the blocks."""
        p = self.p
        if len(self.blocks) < len(self.body.blocks):
            p._fault(f"two blocks of {self.body.name} have one label")
        for each in late:  # definitions first: they may be used before
            p._set_line(*each.lines[0])
            self._head(each.block)
            if each is late[0] and not self.body.is_root:
                self.body.parameters = len(each.block.parameters)
            for number, tokens in each.lines[1:]:
                p._set_line(number, tokens)
                if tokens[0].startswith("%"):
                    self._define(p._take(), self._typed(Operation))
        for each in late:
            for number, tokens in each.lines[1:]:
                p._set_line(number, tokens)
                self._operation(each.block)
                p._end()
            if each.block.terminator is None:
                p._fault(f"block {each.block.label} does not end")

    def _define(self, name: str, value: Value) -> None:
        if name in self.values:
            self.p._fault(f"{name} is defined twice")
        self.values[name] = value

    def _type(self) -> ValueType:
        self.p._take(":")
        return self.p._one("type", _TYPES)

    def _typed(self, kind: type[V]) -> V:
        """A new value of the type that comes next."""
        t = self._type()
        value = kind(t) if kind is Parameter else kind("", t)  # type: ignore[call-arg, arg-type]  # of an Operation
        if self.p._accepts("each"):
            if self.body.varying is None:
                self.p._fault("only a body of lanes has values of each lane")
            self.body.varying.add(value)
        return value

    def _head(self, block: Block) -> None:
        p = self.p
        p._take()
        p._take("@")
        block.pc = p._integer()
        p._take("(")
        while not p._accepts(")"):
            if block.parameters:
                p._take(",")
            name = p._take()
            if not name.startswith("%"):
                p._fault(f"the name of a value expected, found {name!r}")
            parameter = self._typed(Parameter)
            self._define(name, parameter)
            block.parameters.append(parameter)
        p._take(":")
        p._end()

    # --- operations -------------------------------------------------------------------------

    def _operation(self, block: Block) -> None:
        p = self.p
        if block.terminator is not None:
            p._fault(f"block {block.label} has ended")
        made: Operation | None = None
        if p._next.startswith("%"):
            value = self.values[p._take()]
            assert isinstance(value, Operation)
            made = value
            self._type()
            p._accepts("each")
            p._take("=")
        name = p._take()
        shape = SHAPES.get(name)
        if shape is None:
            p._fault(f"no operation {name!r}{suggestion(name, SHAPES)}")
        static = tuple(self._static(kind) for kind in shape.static)
        arguments: list[Value] = []
        while self._is_value(p._next):
            arguments.append(self._value())
            if not p._accepts(","):
                break
        if shape.role is Role.ENDS:
            if made is not None:
                p._fault(f"{name!r} yields no value")
            edges: list[Edge] = []
            while p._next and p._next != "@":
                edges.append(self._edge())
            end = Terminator(name, static, tuple(arguments), self._state(), tuple(edges))
            block.terminator = end
            return
        operation = made or Operation(name, None)
        operation.name, operation.static = name, static
        operation.arguments, operation.state = tuple(arguments), self._state()
        block.operations.append(operation)

    def _static(self, kind: AttributeKind) -> Static:
        p = self.p
        match kind:
            case AttributeKind.TYPE:
                return p._one("type", {str(t): t for t in Type})
            case AttributeKind.CONDITION:
                return p._one("condition", {c.value: c for c in Condition})
            case AttributeKind.TRAP:
                return p._one("trap", dict(Trap.__members__))
            case AttributeKind.FIELD:
                return p._one("field", dict(FunctionField.__members__))
            case AttributeKind.FLAG:
                return p._one("flag", {"true": True, "false": False})
            case AttributeKind.FUNCTIONS | AttributeKind.TAGS:
                p._take("(")
                numbers = []
                while not p._accepts(")"):
                    numbers.append(p._integer())
                return tuple(numbers)
            case AttributeKind.ELEMENTS:
                if p._next.isdecimal():
                    return p._integer()
                return p._one("element kind", {e.kind: e for e in Element})
            case AttributeKind.FUNCTION:
                return p._one("mathematical function", FUNCTIONS)
            case AttributeKind.TABLE:
                return p._one("table of constants", TABLES)
            case AttributeKind.UPDATE:
                return p._one("atomic update", {each.value: each for each in Atomic})
            case AttributeKind.NUMBER | AttributeKind.BYTES:
                return p._integer()

    @staticmethod
    def _is_value(token: str) -> bool:
        return token.startswith(("%", "i32:", "i64:", "f32:", "f64:")) or token in (
            "true",
            "false",
            "canonical",
        )

    def _value(self) -> Value:
        p = self.p
        token = p._take()
        if token == "canonical":  # only a state can refer to a virtual value
            p._take("(")
            raw = self._value()
            p._take(")")
            if raw not in self.virtual:
                self.virtual[raw] = Virtual(raw)
            return self.virtual[raw]
        if token.startswith("%"):
            if token not in self.values:
                p._fault(f"{token} is not defined")
            return self.values[token]
        if token in ("true", "false"):
            return self._constant(BOOLEAN, int(token == "true"))
        name, colon, text = token.partition(":")
        t = _TYPES.get(name) if colon else None
        if t is None or isinstance(t, Boolean):
            p._fault(f"a value expected, found {token!r}")
        return self._constant(t, self._bits(t, text))

    def _bits(self, t: Type, text: str) -> int:
        try:
            if t.is_float and not text.startswith("0x"):
                return from_float(t, float(text))
            number = int(text, 0)
        except ValueError:
            number = 1 << 64
        if not -(1 << (t.bits - 1)) <= number <= t.mask:
            self.p._fault(f"{text!r} is no {t}")
        return number & t.mask

    def _constant(self, t: ValueType, bits: int) -> Constant:
        known = self.body.constants
        if (t, bits) not in known:
            known[t, bits] = Constant(t, bits)
        return known[t, bits]

    def _edge(self) -> Edge:
        p = self.p
        label = p._take()
        if label not in self.blocks:
            p._fault(f"no block {label!r}{suggestion(label, self.blocks)}")
        p._take("(")
        arguments: list[Value] = []
        while not p._accepts(")"):
            if arguments:
                p._take(",")
            arguments.append(self._value())
        return Edge(self.blocks[label], arguments, p._accepts("^"))

    def _state(self) -> FrameState | None:
        p = self.p
        if not p._accepts("@"):
            return None
        pc = p._integer()
        p._take("[")
        words: list[Value | None] = []
        while not p._accepts("]"):
            words.append(None if p._accepts("_") else self._value())
        statics: list[tuple[int, Value]] = []
        pointer = None
        if p._accepts("{"):
            while not p._accepts("}"):
                place = p._take()
                p._take("=")
                if place == "hp":
                    pointer = self._value()
                elif place[0] == "s" and place[1:].isdecimal():
                    statics.append((int(place[1:]), self._value()))
                else:
                    p._fault(f"s and a number, or hp, expected, found {place!r}")
        header = p._field("header") if p._next == "header" else None
        phase = self._phase() if p._next == "phase" else None
        unpaid = p._field("unpaid") if p._next == "unpaid" else 0
        return FrameState(pc, tuple(words), tuple(statics), pointer, unpaid, header, phase)

    def _phase(self) -> Phase:
        """The phase of a state; of its group the text has only the number."""
        p = self.p
        number, region = p._field("phase"), p._field("region")
        group = self.groups.setdefault(number, Group(number, 0, 0))
        p._take("(")
        values: list[Value] = []
        while not p._accepts(")"):
            if values:
                p._take(",")
            values.append(self._value())
        return Phase(group, region, tuple(values))
