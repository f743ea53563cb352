# SPDX-License-Identifier: Apache-2.0
"""Plain form as LLVM IR: a function without attributes of a processor, which calls intrinsics only.

Block parameters are phi instructions, the local variables of statics are allocated in the entry. No
instruction has a fast-math flag, `nsw` or `inbounds`: all wraps and rounds as the region IR says.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

from ferryvm.ir.function_body import expand
from ferryvm.ir.graph import (
    BOOLEAN,
    Block,
    Body,
    Constant,
    Operation,
    Parameter,
    Terminator,
    Value,
    ValueType,
)
from ferryvm.ir.loop.preheader import Labels, lead_to
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.isa.element import Element
from ferryvm.isa.emitter import Atomic, Condition
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import CANONICAL_NAN, F32, F64, I32, I64, Type, from_float, to_float
from ferryvm.portable.c.source import origin
from ferryvm.portable.interface import ArrayArgument
from ferryvm.portable.plain import PlainFunction

_TYPES: dict[ValueType, str] = {I32: "i32", I64: "i64", F32: "float", F64: "double", BOOLEAN: "i1"}

_BINARY = {
    **{name: name for name in ("add", "sub", "mul", "shl", "fadd", "fsub", "fmul", "fdiv")},
    "div_s": "sdiv",
    "div_u": "udiv",
    "rem_s": "srem",
    "rem_u": "urem",
    "shr_s": "ashr",
    "shr_u": "lshr",
    "bit_and": "and",
    "bit_or": "or",
    "bit_xor": "xor",
}
_ROUNDINGS = {
    "fsqrt": "sqrt",
    "fceil": "ceil",
    "ffloor": "floor",
    "ftrunc": "trunc",
    "fnearest": "rint",
    "ffma": "fma",
}
_ORDERS = {"lt": "slt", "gt": "sgt", "le": "sle", "ge": "sge"}
_CONVERSIONS = {
    "wrap": ("trunc", I64, I32),
    "extend_s": ("sext", I32, I64),
    "extend_u": ("zext", I32, I64),
    "promote": ("fpext", F32, F64),
    "demote": ("fptrunc", F64, F32),
}
_UPDATES = {
    Atomic.ADD: "add",
    Atomic.MIN_S: "min",
    Atomic.MIN_U: "umin",
    Atomic.MAX_S: "max",
    Atomic.MAX_U: "umax",
    Atomic.AND: "and",
    Atomic.OR: "or",
    Atomic.EXCHANGE: "xchg",
}


def llvm_text(function: PlainFunction) -> str:
    """The module of an exported function."""
    text = FunctionText(function)
    given = ", ".join(text.parameters())
    head = f"define i32 @{function.interface.name}({given})"
    parts = [f"; {origin(function)}", "", text.function(head), *text.declarations(), ""]
    return "\n".join(parts)


class FunctionText:
    """A function in plain form as LLVM IR."""

    def __init__(
        self, function: PlainFunction, space: str = "", has_exact_division: bool = True
    ) -> None:
        """`space`: that of arrays and results, such as ` addrspace(1)`; `has_exact_division`:
        quotients and roots of f32 are rounded as IEEE 754 says."""
        self.pointer, self.is_device = f"ptr{space}", bool(space)
        self.has_exact_division = has_exact_division
        while expand(function.body):
            pass
        remove_dead_code(function.body)
        _part_edges(function.body)
        self.plain, self.body = function, function.body
        self.lines: list[str] = []
        self.declared: dict[str, str] = {}
        self.names: dict[Value, str] = {}
        self.labels = {block: f"b{n}" for n, block in enumerate(self.body.blocks)}
        self.ends: dict[Block, str] = {}
        """The label in which a block ends."""
        self._count = 0
        self._here = ""

    def parameters(self) -> list[str]:
        """The declarations of its parameters, which are named by that."""
        interface = self.plain.interface
        given: list[str] = []
        parameters = iter(self.body.blocks[0].parameters)
        for argument in interface.arguments:
            self._parameter(
                next(parameters), argument.name, given, isinstance(argument, ArrayArgument)
            )
            if isinstance(argument, ArrayArgument):
                self._parameter(next(parameters), argument.length_name, given)
        return given + [f"{self.pointer} %{result.name}" for result in interface.results]

    def function(self, head: str) -> str:
        """The definition with a head."""
        for block in self.body.blocks[1:]:
            for parameter in block.parameters:
                self.names[parameter] = self._name()
        for block in self.body.blocks:
            self._block(block)
        return "\n".join([f"{head} {{", *self._with_phis(), "}", ""])

    def declarations(self) -> list[str]:
        """The declarations of what it calls, after it is made."""
        return [f"declare {text}" for text in self.declared.values()]

    def _parameter(
        self, parameter: Parameter, name: str, given: list[str], is_pointer: bool = False
    ) -> None:
        self.names[parameter] = f"%{name}"
        given.append(f"{self.pointer if is_pointer else _TYPES[parameter.type]} %{name}")

    def _name(self) -> str:
        self._count += 1
        return f"%v.{self._count}"

    def _label(self) -> str:
        self._count += 1
        return f"l.{self._count}"

    def _add(self, text: str) -> None:
        self.lines.append(f"  {text}")

    def _new(self, text: str) -> str:
        name = self._name()
        self._add(f"{name} = {text}")
        return name

    def _open(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self._here = label

    def _value(self, value: Value) -> str:
        if not isinstance(value, Constant):
            name = self.names[value]
            if isinstance(value, Parameter) and value in self.plain.pointers:
                return self._new(f"ptrtoint {self.pointer} {name} to i64")
            return name
        if value.type is BOOLEAN:
            return "true" if value.bits else "false"
        return _constant(value.word_type, value.bits)

    def _block(self, block: Block) -> None:
        self._open(self.labels[block])
        if block is self.body.blocks[0]:
            for number, t in self.plain.locals.items():
                self._add(f"%s.{number} = alloca {_TYPES[t]}")
            for parameter, array in self.plain.arrays.items():
                self.names[parameter] = f"%{array.name}"
                kind = f"[{array.length} x {_element(array.element)}]"
                self._add(f"%{array.name} = alloca {kind}, align 8")
        else:
            self.lines.append(f"phis {self.labels[block]}")
        for operation in block.operations:
            rule: Callable[[Operation], str | None] | None = getattr(
                self, f"_do_{operation.name}", None
            )
            made = rule(operation) if rule is not None else self._pure(operation)
            if operation.type is not None:
                assert made is not None
                self.names[operation] = made
        self._terminator(block.end)
        self.ends[block] = self._here

    def _with_phis(self) -> Iterator[str]:
        """The lines, with phi instructions for the parameters of blocks."""
        incoming: dict[str, list[tuple[Block, tuple[Value, ...]]]] = {}
        for block in self.body.blocks:
            for edge in block.end.edges:
                label = self.labels[edge.block]
                incoming.setdefault(label, []).append((block, tuple(edge.arguments)))
        parameters = {self.labels[block]: block.parameters for block in self.body.blocks}
        for line in self.lines:
            if not line.startswith("phis "):
                yield line
                continue
            label = line.removeprefix("phis ")
            for place, parameter in enumerate(parameters[label]):
                pairs = ", ".join(
                    f"[ {self._value(arguments[place])}, %{self.ends[block]} ]"
                    for block, arguments in incoming[label]
                )
                yield f"  {self.names[parameter]} = phi {_TYPES[parameter.type]} {pairs}"

    def _terminator(self, end: Terminator) -> None:
        match end.name:
            case "jump":
                self._add(f"br label %{self.labels[end.edges[0].block]}")
            case "branch":
                condition = self._value(end.arguments[0])
                one, other = (self.labels[edge.block] for edge in end.edges)
                assert one != other
                self._add(f"br i1 {condition}, label %{one}, label %{other}")
            case "switch":
                index = self._value(end.arguments[0])
                *cases, last = (self.labels[edge.block] for edge in end.edges)
                assert len({*cases, last}) == len(cases) + 1
                shown = " ".join(f"i64 {n}, label %{label}" for n, label in enumerate(cases))
                self._add(f"switch i64 {index}, label %{last} [ {shown} ]")
            case "return":
                results = self.plain.interface.results
                for result, value in zip(results, end.arguments, strict=True):
                    self._add(
                        f"store {_TYPES[value.type]} {self._value(value)}, {self.pointer} %{result.name}"
                    )
                self._add("ret i32 0")
            case _:
                self._error(end)

    def _error(self, operation: Operation) -> None:
        self._add(f"ret i32 {int(operation.fact(0, Trap)) | operation.fact(1, int) << 8}")

    # --- operations -------------------------------------------------------------------------

    def _intrinsic(self, name: str, t: Type, *arguments: str, more: str = "") -> str:
        c = _TYPES[t]
        full = f"@llvm.{name}.{'f' if t.is_float else 'i'}{t.bits}"
        types = ", ".join([c] * len(arguments)) + (", i1" if more else "")
        self.declared[full] = f"{c} {full}({types})"
        given = ", ".join(f"{c} {each}" for each in arguments)
        return self._new(f"call {c} {full}({given}{more})")

    def _pure(self, operation: Operation) -> str:
        name = operation.name
        types = [item for item in operation.static if isinstance(item, Type)]
        values = [self._value(argument) for argument in operation.arguments]
        if not self.has_exact_division and name in ("fdiv", "fsqrt") and types[0] is F32:
            return self._by_f64(name, values)
        if name in _BINARY:
            a, b = values
            return self._new(f"{_BINARY[name]} {_TYPES[types[0]]} {a}, {b}")
        if name in _ROUNDINGS:
            return self._intrinsic(_ROUNDINGS[name], types[0], *values)
        if name in ("clz", "ctz"):
            counted = "ctlz" if name == "clz" else "cttz"
            return self._intrinsic(counted, types[0], *values, more=", i1 false")
        if name == "popcnt":
            return self._intrinsic("ctpop", types[0], *values)
        if name in ("all", "any"):
            return self._new(f"{'and' if name == 'all' else 'or'} i1 {values[0]}, {values[1]}")
        if name == "none":
            return self._new(f"xor i1 {values[0]}, true")
        if name == "boolean_to_i32":
            return self._new(f"zext i1 {values[0]} to i32")
        if name == "select":
            t = _TYPES[operation.arguments[1].type]
            return self._new(f"select i1 {values[0]}, {t} {values[1]}, {t} {values[2]}")
        if name in _CONVERSIONS:
            made, from_, to = _CONVERSIONS[name]
            return self._converted(made, from_, values[0], to)
        if name in ("to_float_s", "to_float_u"):
            return self._converted(f"{name[-1]}itofp", types[1], values[0], types[0])
        if name in ("to_int_s", "to_int_u"):
            return self._converted(f"fpto{name[-1]}i", types[1], values[0], types[0])
        assert name == "reinterpret", name
        return self._converted("bitcast", types[1], values[0], types[0])

    def _by_f64(self, name: str, values: list[str]) -> str:
        """A quotient or root of f32 by f64, which rounds right; devices may have worse ones of
        f32."""
        wide = [self._converted("fpext", F32, value, F64) for value in values]
        if name == "fdiv":
            made = self._new(f"fdiv double {wide[0]}, {wide[1]}")
        else:
            made = self._intrinsic("sqrt", F64, *wide)
        return self._converted("fptrunc", F64, made, F32)

    def _converted(self, name: str, from_: Type, value: str, to: Type) -> str:
        return self._new(f"{name} {_TYPES[from_]} {value} to {_TYPES[to]}")

    def _do_compare(self, operation: Operation) -> str:
        t, condition = operation.fact(0, Type), operation.fact(1, Condition)
        a, b = map(self._value, operation.arguments)
        base, _, sign = condition.value.partition("_")
        if t.is_float:
            return self._new(f"fcmp {'une' if base == 'ne' else 'o' + base} {_TYPES[t]} {a}, {b}")
        name = f"{sign}{base}" if sign else base
        return self._new(f"icmp {name} {_TYPES[t]} {a}, {b}")

    def _do_canonical(self, operation: Operation) -> str:
        return self._canonical(operation.fact(0, Type), self._value(operation.arguments[0]))

    def _canonical(self, t: Type, value: str) -> str:
        c = _TYPES[t]
        is_nan = self._new(f"fcmp uno {c} {value}, {value}")
        nan = _constant(t, CANONICAL_NAN[t])
        return self._new(f"select i1 {is_nan}, {c} {nan}, {c} {value}")

    def _do_to_slot(self, operation: Operation) -> str:
        t, value = operation.fact(0, Type), self._value(operation.arguments[0])
        if t.is_float:
            value = self._converted("bitcast", t, value, t.integer)
        return value if t.bits == 64 else self._converted("zext", I32, value, I64)

    def _do_from_slot(self, operation: Operation) -> str:
        return self._from_slot(operation.fact(0, Type), self._value(operation.arguments[0]))

    def _from_slot(self, t: Type, value: str) -> str:
        if t.bits == 32:
            value = self._converted("trunc", I64, value, I32)
        return self._converted("bitcast", t.integer, value, t) if t.is_float else value

    def _do_error_if(self, operation: Operation) -> None:
        fails, passes = self._label(), self._label()
        condition = self._value(operation.arguments[0])
        self._add(f"br i1 {condition}, label %{fails}, label %{passes}")
        self._open(fails)
        self._error(operation)
        self._open(passes)

    def _do_local_get(self, operation: Operation) -> str:
        return self._new(f"load {_TYPES[operation.word_type]}, ptr %s.{operation.fact(0, int)}")

    def _do_local_set(self, operation: Operation) -> None:
        (value,) = operation.arguments
        at = f"ptr %s.{operation.fact(0, int)}"
        self._add(f"store {_TYPES[value.type]} {self._value(value)}, {at}")

    # --- arrays -----------------------------------------------------------------------------

    def _address(self, elements: Element, pointer: Value, index: Value) -> str:
        at = self._value(index)
        return self._new(
            f"getelementptr {_element(elements)}, {self.pointer} {self.names[pointer]}, i64 {at}"
        )

    def _word(self, elements: Element, value: str) -> str:
        """An element as a word."""
        c = _element(elements)
        return value if elements.bits == 64 else self._new(f"zext {c} {value} to i64")

    def _low(self, elements: Element, value: Value) -> str:
        """The low bytes of a word, or a float."""
        found = self._value(value)
        if elements.type.is_float or elements.bits == 64:
            return found
        return self._new(f"trunc i64 {found} to {_element(elements)}")

    def _do_array_load(self, operation: Operation) -> str:
        elements = operation.fact(0, Element)
        at = self._address(elements, *operation.arguments)
        loaded = self._new(
            f"load {_element(elements)}, {self.pointer} {at}, align {elements.bytes}"
        )
        return loaded if elements.type.is_float else self._word(elements, loaded)

    def _do_array_store(self, operation: Operation) -> None:
        elements = operation.fact(0, Element)
        pointer, index, value = operation.arguments
        at = self._address(elements, pointer, index)
        low = self._low(elements, value)
        self._add(f"store {_element(elements)} {low}, {self.pointer} {at}, align {elements.bytes}")

    def _do_array_canonical(self, operation: Operation) -> None:
        elements, operands = operation.fact(0, Element), operation.arguments
        c = _element(elements)
        for pointer, index, value in zip(
            operands[::3], operands[1::3], operands[2::3], strict=True
        ):
            made = self._canonical(elements.type, self._value(value))
            at = self._address(elements, pointer, index)
            self._add(f"store {c} {made}, {self.pointer} {at}, align {elements.bytes}")

    def _do_array_fill(self, operation: Operation) -> None:
        elements = operation.fact(0, Element)
        pointer, index, count, value = operation.arguments
        made, number = self._value(value), self._value(count)
        low = (
            self._from_slot(elements.type, made)
            if elements.type.is_float
            else self._low(elements, value)
        )
        start = self._address(elements, pointer, index)
        with self._counted(number) as at:
            self._store(elements, self._element_at(elements, start, at), low)

    @contextlib.contextmanager
    def _counted(self, number: str) -> Iterator[str]:
        """A loop from 0 up to a number of iterations."""
        before, head, body, behind = self._here, *(self._label() for _ in range(3))
        self._add(f"br label %{head}")
        self._open(head)
        at, next_ = self._name(), self._name()
        self._add(f"{at} = phi i64 [ 0, %{before} ], [ {next_}, %{body} ]")
        done = self._new(f"icmp uge i64 {at}, {number}")
        self._add(f"br i1 {done}, label %{behind}, label %{body}")
        self._open(body)
        yield at
        self._add(f"{next_} = add i64 {at}, 1")
        self._add(f"br label %{head}")
        self._open(behind)

    def _element_at(self, elements: Element, start: str, at: str) -> str:
        return self._new(f"getelementptr {_element(elements)}, {self.pointer} {start}, i64 {at}")

    def _store(self, elements: Element, place: str, value: str) -> None:
        c = _element(elements)
        self._add(f"store {c} {value}, {self.pointer} {place}, align {elements.bytes}")

    def _do_array_move(self, operation: Operation) -> None:
        elements = operation.fact(0, Element)
        to, at, from_, first, count = operation.arguments
        target, source = self._address(elements, to, at), self._address(elements, from_, first)
        if self.is_device:
            self._copy(elements, target, source, self._value(count))
            return
        size = self._new(f"shl i64 {self._value(count)}, {elements.shift}")
        name = "@llvm.memmove.p0.p0.i64"
        self.declared[name] = f"void {name}(ptr, ptr, i64, i1)"
        self._add(f"call void {name}(ptr {target}, ptr {source}, i64 {size}, i1 false)")

    def _copy(self, elements: Element, target: str, source: str, count: str) -> None:
        """Copy elements one after the other: from the last on if the target is behind the
        source."""
        c, p = _element(elements), self.pointer
        one, other = (self._new(f"ptrtoint {p} {each} to i64") for each in (target, source))
        is_behind = self._new(f"icmp ugt i64 {one}, {other}")
        last = self._new(f"sub i64 {count}, 1")
        with self._counted(count) as at:
            from_end = self._new(f"sub i64 {last}, {at}")
            place = self._new(f"select i1 {is_behind}, i64 {from_end}, i64 {at}")
            taken = self._element_at(elements, source, place)
            loaded = self._new(f"load {c}, {p} {taken}, align {elements.bytes}")
            self._store(elements, self._element_at(elements, target, place), loaded)

    def _do_array_update(self, operation: Operation) -> str:
        elements, update = operation.fact(0, Element), operation.fact(1, Atomic)
        pointer, index, value = operation.arguments
        at, low = self._address(elements, pointer, index), self._low(elements, value)
        made = f"atomicrmw {_UPDATES[update]} {self.pointer} {at}, {_element(elements)} {low} monotonic"
        return self._word(elements, self._new(made))

    def _do_array_exchange(self, operation: Operation) -> str:
        elements, c = operation.fact(0, Element), _element(operation.fact(0, Element))
        pointer, index, expected, value = operation.arguments
        at = self._address(elements, pointer, index)
        one, other = self._low(elements, expected), self._low(elements, value)
        pair = self._new(f"cmpxchg {self.pointer} {at}, {c} {one}, {c} {other} monotonic monotonic")
        return self._word(elements, self._new(f"extractvalue {{ {c}, i1 }} {pair}, 0"))


def _part_edges(body: Body) -> None:
    """Give edges blocks of their own where a block has several to the same one: a phi instruction
    tells values apart by blocks."""
    labels = Labels(body)
    made: list[Block] = []
    for block in body.blocks:
        made.append(block)
        targets: set[Block] = set()
        for edge in block.end.edges:
            if edge.block in targets:
                between = lead_to(labels.block(block, "edge"), edge.block, edge.arguments)
                between.end.edges[0].is_back = edge.is_back
                edge.block, edge.arguments, edge.is_back = between, [], False
                made.append(between)
            targets.add(edge.block)
    body.blocks[:] = made


def _element(elements: Element) -> str:
    return _TYPES[elements.type] if elements.type.is_float else f"i{elements.bits}"


def _constant(t: Type, bits: int) -> str:
    if not t.is_float:
        return str(bits - (1 << t.bits) if bits >> (t.bits - 1) else bits)
    if t is F64:
        return f"0x{bits:016X}"
    if bits & 0x7FFFFFFF > 0x7F800000:  # a NaN: the same payload, in the bits of a double
        return f"0x{(bits >> 31) << 63 | 0x7FF << 52 | (bits & 0x7FFFFF) << 29:016X}"
    return f"0x{from_float(F64, to_float(F32, bits)):016X}"
