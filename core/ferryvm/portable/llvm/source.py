# SPDX-License-Identifier: Apache-2.0
"""Plain form as LLVM IR: a function without attributes of a processor, which calls intrinsics only.

Block parameters are phi instructions, the local variables of statics are allocated in the entry. No
instruction has a fast-math flag, `nsw` or `inbounds`: all wraps and rounds as the region IR says.
"""

from __future__ import annotations

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
)
from ferryvm.ir.loop.preheader import Labels, lead_to
from ferryvm.ir.passes.dead_code import remove_dead_code
from ferryvm.isa.element import Element
from ferryvm.isa.emitter import Atomic, Condition
from ferryvm.isa.trap import Trap
from ferryvm.isa.type import CANONICAL_NAN, F32, F64, I32, I64, Type
from ferryvm.portable.c.source import origin
from ferryvm.portable.interface import ArrayArgument
from ferryvm.portable.llvm.text import TYPES, InstructionText, constant, element_type
from ferryvm.portable.plain import LocalArray, PlainFunction

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


class FunctionText(InstructionText):
    """A function in plain form as LLVM IR."""

    def __init__(
        self,
        function: PlainFunction,
        space: str = "",
        has_exact_division: bool = True,
        has_barred_sums: bool = False,
    ) -> None:
        """`space`: that of arrays and results, such as ` addrspace(1)`; `has_exact_division`:
        quotients and roots of f32 are rounded as IEEE 754 says; `has_barred_sums`: floats that
        loops carry pass through an operation that no compiler of the receiver's looks through, so
        that it cannot compute sums in another order."""
        super().__init__(f"ptr{space}")
        self.is_device = bool(space)
        self.has_exact_division, self.has_barred_sums = has_exact_division, has_barred_sums
        while expand(function.body):
            pass
        remove_dead_code(function.body)
        _part_edges(function.body)
        self.plain, self.body = function, function.body
        self.declared: dict[str, str] = {}
        self.names: dict[Value, str] = {}
        self.phis: dict[Parameter, str] = {}
        """The phi instructions of the parameters of blocks."""
        self.labels = {block: f"b{n}" for n, block in enumerate(self.body.blocks)}
        self.ends: dict[Block, str] = {}
        """The label in which a block ends."""

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
        self.carried = self._carried() if self.has_barred_sums else frozenset()
        for block in self.body.blocks[1:]:
            for parameter in block.parameters:
                self.phis[parameter] = self.names[parameter] = self._name()
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
        given.append(f"{self.pointer if is_pointer else TYPES[parameter.type]} %{name}")

    def _value(self, value: Value) -> str:
        if not isinstance(value, Constant):
            name = self.names[value]
            if isinstance(value, Parameter) and value in self.plain.pointers:
                return self._new(f"ptrtoint {self.pointer} {name} to i64")
            return name
        if value.type is BOOLEAN:
            return "true" if value.bits else "false"
        return constant(value.word_type, value.bits)

    def _block(self, block: Block) -> None:
        self._open(self.labels[block])
        if block is self.body.blocks[0]:
            self._begin()
        else:
            self.lines.append(f"phis {self.labels[block]}")
            for parameter in block.parameters:
                if parameter in self.carried:
                    self.names[parameter] = self._barred(parameter)
        for operation in block.operations:
            made = self._made(operation)
            if operation.type is not None:
                assert made is not None
                self.names[operation] = made
        self._terminator(block.end)
        self.ends[block] = self._here

    def _begin(self) -> None:
        """Make the variables of the function."""
        for number, t in self.plain.locals.items():
            self._add(f"%s.{number} = alloca {TYPES[t]}")
        for parameter, array in self.plain.arrays.items():
            self._local_array(parameter, array)
        if self.carried:
            self._add("%zero.at = alloca i64")
            self._add("store volatile i64 0, ptr %zero.at")
            self._add("%zero.0 = load volatile i64, ptr %zero.at")

    def _local_array(self, parameter: Parameter, array: LocalArray) -> None:
        """Make an array that the function has for itself."""
        self.names[parameter] = f"%{array.name}"
        self._add(f"%{array.name} = alloca {array_type(array)}, align 8")

    def _made(self, operation: Operation) -> str | None:
        """The name of an operation's value, after its instructions."""
        rule: Callable[[Operation], str | None] | None = getattr(
            self, f"_do_{operation.name}", None
        )
        return rule(operation) if rule is not None else self._pure(operation)

    def _carried(self) -> frozenset[Parameter]:
        """The floats that loops carry from one iteration to the next."""
        edges = [edge for block in self.body.blocks for edge in block.end.edges if edge.is_back]
        return frozenset(
            each for edge in edges for each in edge.block.parameters if each.type in (F32, F64)
        )

    def _barred(self, parameter: Parameter) -> str:
        """A float after an exclusive or with zero, which only a volatile load knows."""
        t, zero = parameter.word_type, "%zero.0"
        if t is F32:
            zero = self._new("trunc i64 %zero.0 to i32")
        c, bits = TYPES[t], f"i{t.bits}"
        word = self._new(f"bitcast {c} {self.phis[parameter]} to {bits}")
        same = self._new(f"xor {bits} {word}, {zero}")
        return self._new(f"bitcast {bits} {same} to {c}")

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
                yield f"  {self.phis[parameter]} = phi {TYPES[parameter.type]} {pairs}"

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
                        f"store {TYPES[value.type]} {self._value(value)}, {self.pointer} %{result.name}"
                    )
                self._add("ret i32 0")
            case _:
                self._error(end)

    def _error(self, operation: Operation) -> None:
        self._add(f"ret i32 {int(operation.fact(0, Trap)) | operation.fact(1, int) << 8}")

    # --- operations -------------------------------------------------------------------------

    def _intrinsic(self, name: str, t: Type, *arguments: str, more: str = "") -> str:
        c = TYPES[t]
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
            return self._new(f"{_BINARY[name]} {TYPES[types[0]]} {a}, {b}")
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
            t = TYPES[operation.arguments[1].type]
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
        return self._new(f"{name} {TYPES[from_]} {value} to {TYPES[to]}")

    def _do_compare(self, operation: Operation) -> str:
        t, condition = operation.fact(0, Type), operation.fact(1, Condition)
        a, b = map(self._value, operation.arguments)
        base, _, sign = condition.value.partition("_")
        if t.is_float:
            return self._new(f"fcmp {'une' if base == 'ne' else 'o' + base} {TYPES[t]} {a}, {b}")
        name = f"{sign}{base}" if sign else base
        return self._new(f"icmp {name} {TYPES[t]} {a}, {b}")

    def _do_canonical(self, operation: Operation) -> str:
        return self._canonical(operation.fact(0, Type), self._value(operation.arguments[0]))

    def _canonical(self, t: Type, value: str) -> str:
        c = TYPES[t]
        is_nan = self._new(f"fcmp uno {c} {value}, {value}")
        nan = constant(t, CANONICAL_NAN[t])
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
        return self._new(f"load {TYPES[operation.word_type]}, ptr %s.{operation.fact(0, int)}")

    def _do_local_set(self, operation: Operation) -> None:
        (value,) = operation.arguments
        at = f"ptr %s.{operation.fact(0, int)}"
        self._add(f"store {TYPES[value.type]} {self._value(value)}, {at}")

    # --- arrays -----------------------------------------------------------------------------

    def _address(self, elements: Element, pointer: Value, index: Value) -> str:
        return self._element_at(elements, self.names[pointer], self._value(index))

    def _word(self, elements: Element, value: str) -> str:
        """An element as a word."""
        c = element_type(elements)
        return value if elements.bits == 64 else self._new(f"zext {c} {value} to i64")

    def _low(self, elements: Element, value: Value) -> str:
        """The low bytes of a word, or a float."""
        found = self._value(value)
        if elements.type.is_float or elements.bits == 64:
            return found
        return self._new(f"trunc i64 {found} to {element_type(elements)}")

    def _do_array_load(self, operation: Operation) -> str:
        elements = operation.fact(0, Element)
        at = self._address(elements, *operation.arguments)
        loaded = self._new(
            f"load {element_type(elements)}, {self._pointed(at)}, align {elements.bytes}"
        )
        return loaded if elements.type.is_float else self._word(elements, loaded)

    def _do_array_store(self, operation: Operation) -> None:
        elements = operation.fact(0, Element)
        pointer, index, value = operation.arguments
        at = self._address(elements, pointer, index)
        low = self._low(elements, value)
        self._store(elements, at, low)

    def _do_array_canonical(self, operation: Operation) -> None:
        elements, operands = operation.fact(0, Element), operation.arguments
        for pointer, index, value in zip(
            operands[::3], operands[1::3], operands[2::3], strict=True
        ):
            made = self._canonical(elements.type, self._value(value))
            at = self._address(elements, pointer, index)
            self._store(elements, at, made)

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
        is_behind = "false"  # two address spaces
        if self.spaces.get(target) == self.spaces.get(source):
            places = [self._new(f"ptrtoint {self._pointed(p)} to i64") for p in (target, source)]
            is_behind = self._new(f"icmp ugt i64 {', '.join(places)}")
        last = self._new(f"sub i64 {count}, 1")
        with self._counted(count) as at:
            from_end = self._new(f"sub i64 {last}, {at}")
            place = self._new(f"select i1 {is_behind}, i64 {from_end}, i64 {at}")
            taken = self._element_at(elements, source, place)
            c = element_type(elements)
            loaded = self._new(f"load {c}, {self._pointed(taken)}, align {elements.bytes}")
            self._store(elements, self._element_at(elements, target, place), loaded)

    def _do_array_update(self, operation: Operation) -> str:
        elements, update = operation.fact(0, Element), operation.fact(1, Atomic)
        pointer, index, value = operation.arguments
        at, low = self._address(elements, pointer, index), self._low(elements, value)
        operand = f"{element_type(elements)} {low}"
        made = f"atomicrmw {_UPDATES[update]} {self._pointed(at)}, {operand} monotonic"
        return self._word(elements, self._new(made))

    def _do_array_exchange(self, operation: Operation) -> str:
        elements, c = operation.fact(0, Element), element_type(operation.fact(0, Element))
        pointer, index, expected, value = operation.arguments
        at = self._address(elements, pointer, index)
        one, other = self._low(elements, expected), self._low(elements, value)
        pair = self._new(f"cmpxchg {self._pointed(at)}, {c} {one}, {c} {other} monotonic monotonic")
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


def array_type(array: LocalArray) -> str:
    """The type of an array of a group or a call."""
    return f"[{max(array.length, 1)} x {element_type(array.element)}]"
