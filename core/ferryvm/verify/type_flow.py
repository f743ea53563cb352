# SPDX-License-Identifier: Apache-2.0
"""The pass over types and control flow: function by function, each reachable instruction once.

It assigns to every reachable instruction its function and its operand stack, the same on all paths,
and to every function the words of its largest frame. It relies on the checks of `structure`.

Operands that are references may have different types on different paths; then the instruction's
operand has their least common supertype. Where a path adds to what an instruction was visited with,
it is visited again.
"""

from __future__ import annotations

from collections.abc import Sequence

from ferryvm.clause import ClauseForest
from ferryvm.isa import INSTRUCTIONS, Flow, Immediate, Instruction, Type
from ferryvm.isa.declared_type import ArrayType, StructType, TypeHierarchy
from ferryvm.isa.frame import HEADER_WORDS, number_of, return_counts
from ferryvm.isa.struct import field_of
from ferryvm.isa.table import REF, Operand, T, Variable
from ferryvm.isa.type import I64, LAUNCH, ValueType, signed
from ferryvm.program import Clause, Program, record_types
from ferryvm.verify.refusal import VerifyCode, VerifyError, refusal
from ferryvm.verify.stack_map import Kinds, StackMap, Stacks, kind_of


def _kind_number(operand: Operand) -> int:
    """The kind number of an operand: 0 or more for a type, negative for an open type."""
    return -1 if isinstance(operand, Variable) else kind_of(operand)


_POPS = [tuple(_kind_number(t) for t in reversed(row.pops)) for row in INSTRUCTIONS]
_PUSHES = [tuple(_kind_number(t) for t in row.pushes) for row in INSTRUCTIONS]
_OPEN = [
    row.immediate is Immediate.ITEM or any(n < 0 for n in _POPS[row.opcode] + _PUSHES[row.opcode])
    for row in INSTRUCTIONS
]
_FLOWS = [row.flow for row in INSTRUCTIONS]
_FIELDS = frozenset(row.opcode for row in INSTRUCTIONS if row.immediate is Immediate.FIELDS)
_TYPES = frozenset(
    (Immediate.TYPE, Immediate.FIELDS, Immediate.STRUCT, Immediate.ARRAY, Immediate.FIELD)
)
_MOST_CHANGES = 64
"""Changes of an instruction's operand types by further paths: they bound the time that it takes."""
_LAUNCH = (kind_of(LAUNCH), kind_of(I64), kind_of(I64))
"""Kinds of the operands of a launch, topmost first."""
_THROWING = frozenset((Flow.CALL, Flow.CALL_INDIRECT, Flow.HOST, Flow.THROW))
"""The kinds of control flow of instructions that can throw."""


def caught_types(program: Program, clause: Clause) -> tuple[ValueType, ...]:
    """Types of the operands that a clause's handler gets above the ones that the clause keeps."""
    if clause.tag is not None:
        return program.tags[clause.tag].parameters
    return record_types(program.tags) if clause.record else ()


class TypeFlow:
    """The pass over types and flow."""

    def __init__(self, program: Program, clauses: ClauseForest, hierarchy: TypeHierarchy) -> None:
        self.program, self.clauses, self.hierarchy = program, clauses, hierarchy
        self.opcodes: list[int] = program.code.opcodes.tolist()
        self.immediates: list[int] = program.code.immediates.tolist()
        self.owners = [-1] * len(self.opcodes)
        self.states = [0] * len(self.opcodes)
        self.kinds = Kinds(hierarchy)
        self.stacks = Stacks(self.kinds)
        self._changes: dict[int, int] = {}
        """Of an instruction, how often a further path has changed its operand types."""
        self.static_kinds = [kind_of(static.type) for static in program.statics]
        self.parameter_kinds = [
            tuple(kind_of(t) for t in reversed(s.parameters)) for s in program.signatures
        ]
        self.result_kinds = [tuple(kind_of(t) for t in s.results) for s in program.signatures]

    def run(self) -> StackMap:
        words = [self._function(number) for number in range(len(self.program.functions))]
        return StackMap(self.owners, self.states, self.stacks, self.kinds, tuple(words))

    def _refuse(self, code: VerifyCode, message: str, pc: int) -> VerifyError:
        return refusal(self.program, code, message, pc)

    def _name(self, kind: int) -> str:
        return str(self.kinds.types[kind])

    def _function(self, number: int) -> int:
        """Check all instructions reachable from a function's entry; the words of its
        largest frame."""
        function = self.program.functions[number]
        parameter_kinds = self.parameter_kinds[function.signature]
        local_kinds = [*reversed(parameter_kinds), *(kind_of(t) for t in function.locals)]
        deepest = 0
        depths = self.stacks.depths
        pending: list[int] = []
        self._reach(number, function.entry, 0, pending, function.entry)
        while pending:
            pc = pending.pop()
            stack = self.states[pc]
            opcode = self.opcodes[pc]
            flow = _FLOWS[opcode]
            if flow is Flow.NEXT or flow is Flow.BRANCH:
                after = self._apply(pc, opcode, stack, local_kinds, len(parameter_kinds))
            elif flow is Flow.JUMP or flow is Flow.STOP:
                after = stack
            elif flow is Flow.TABLE:
                after = self._pop(pc, stack, _POPS[opcode])
            else:
                after = self._call_or_return(pc, opcode, stack, number)
            if self.clauses and flow in _THROWING:
                deepest = max(deepest, self._throw(pc, flow, stack, after, number, pending))
            if depths[after] > deepest:  # noqa: PLR1730 - max() is a call, in the hottest loop
                deepest = depths[after]
            if flow is Flow.NEXT or flow is Flow.BRANCH or flow.value[:4] in ("call", "host"):
                self._reach(number, pc + 1, after, pending, pc)
            if flow is Flow.JUMP or flow is Flow.BRANCH:
                self._reach(number, self.immediates[pc], after, pending, pc)
            elif flow is Flow.TABLE:
                for entry in range(pc + 1, pc + 2 + self.immediates[pc]):
                    self._reach(number, entry, after, pending, pc)
        return HEADER_WORDS + len(function.locals) + deepest

    def _throw(
        self, pc: int, flow: Flow, stack: int, after: int, function: int, pending: list[int]
    ) -> int:
        """Check that exceptions of an instruction can be caught; returns the operands of the
        largest handler."""
        remaining = self.stacks.depths[after] - self._results(pc, flow)
        deepest = 0
        for clause in self.clauses.covering(pc):
            if clause.depth > remaining:
                message = f"{remaining} operands are below its own, a clause leaves {clause.depth}"
                raise self._refuse(VerifyCode.CLAUSE_DEPTH, message, pc)
            caught = self.stacks.cut(stack, clause.depth)
            for t in caught_types(self.program, clause):
                caught = self.stacks.push(caught, kind_of(t))
            deepest = max(deepest, self.stacks.depths[caught])
            self._reach(function, clause.handler, caught, pending, pc)
        return deepest

    def _results(self, pc: int, flow: Flow) -> int:
        """The kinds of the operands that a call leaves when it returns."""
        immediate = self.immediates[pc]
        if flow is Flow.HOST:
            return len(self.program.hosts[immediate].signature.results)
        if flow is Flow.THROW:
            return 0
        if flow is Flow.CALL:
            immediate = self.program.functions[immediate].signature
        return len(self.result_kinds[immediate])

    def _reach(self, function: int, pc: int, stack: int, pending: list[int], source: int) -> None:
        if pc >= len(self.opcodes):
            message = "control runs past the end of the code"
            raise self._refuse(VerifyCode.FALLS_OFF_END, message, source)
        owner = self.owners[pc]
        if owner < 0:
            self.owners[pc] = function
            self.states[pc] = stack
            pending.append(pc)
        elif owner != function:
            names = [self.program.functions[f].name for f in (owner, function)]
            message = f"reached from function {names[0]!r} and from function {names[1]!r}"
            raise self._refuse(VerifyCode.SHARED_CODE, message, pc)
        elif self.states[pc] != stack:
            joined = self.stacks.join(self.states[pc], stack)
            if joined is not None:
                if joined != self.states[pc]:
                    self._change(pc, joined)
                    pending.append(pc)
                return
            left = self._show(self.states[pc])
            message = f"operands are {left} one way, {self._show(stack)} from pc {source}"
            raise self._refuse(VerifyCode.JOIN, message, pc)

    def _change(self, pc: int, stack: int) -> None:
        """Set the operand stack of an instruction that was visited with another one."""
        changes = self._changes[pc] = self._changes.get(pc, 0) + 1
        if changes > _MOST_CHANGES:
            message = f"its operands have other types on each of more than {_MOST_CHANGES} paths"
            raise self._refuse(VerifyCode.JOIN, message, pc)
        self.states[pc] = stack

    def _show(self, stack: int) -> str:
        kinds = [self._name(kind) for kind in self.stacks.kinds_of(stack)[-8:]]
        more = "... " if self.stacks.depths[stack] > 8 else ""
        return f"({more}{' '.join(kinds)})"

    def _pop(self, pc: int, stack: int, kinds: Sequence[int]) -> int:
        """The stack after popping operands of these kinds, given topmost first."""
        for kind in kinds:
            found = self.stacks.kinds[stack]
            if found != kind and not self.kinds.fits(found, kind):
                raise self._mismatch(pc, found, self._name(kind))
            stack = self.stacks.parents[stack]
        return stack

    def _mismatch(self, pc: int, found: int, wanted: str) -> VerifyError:
        if found < 0:
            message = f"operand of type {wanted} expected, the stack is empty"
            return self._refuse(VerifyCode.UNDERFLOW, message, pc)
        message = f"operand of type {wanted} expected, found {self._name(found)}"
        return self._refuse(VerifyCode.OPERAND_TYPE, message, pc)

    def _apply(
        self, pc: int, opcode: int, stack: int, local_kinds: list[int], parameters: int
    ) -> int:
        """The stack after an instruction that neither calls nor returns."""
        kinds, parents = self.stacks.kinds, self.stacks.parents
        if not _OPEN[opcode]:
            for kind in _POPS[opcode]:
                if kinds[stack] != kind and not self.kinds.fits(kinds[stack], kind):
                    raise self._mismatch(pc, kinds[stack], self._name(kind))
                stack = parents[stack]
            for kind in _PUSHES[opcode]:
                stack = self.stacks.push(stack, kind)
            return stack
        row = INSTRUCTIONS[opcode]
        if row.immediate is Immediate.ITEM:
            return self._item(pc, stack)
        bound = self._bind_immediate(pc, row, local_kinds, parameters)
        is_settled = bool(bound)  # all open types of an instruction are, or none
        if opcode in _FIELDS:
            stack = self._pop(pc, stack, self._field_kinds(self.immediates[pc]))
        for operand in reversed(row.pops):
            found = kinds[stack]
            wanted = _kind_number(operand)
            if wanted < 0:
                name = str(operand)
                wanted = bound.setdefault(name, found)
                if found != wanted and not is_settled:
                    joined = self.kinds.join(wanted, found)
                    if joined is not None:
                        wanted = bound[name] = found = joined
            if found < 0 or (found != wanted and not self.kinds.fits(found, wanted)):
                raise self._mismatch(pc, found, self._name(wanted) if wanted >= 0 else "any value")
            stack = parents[stack]
        for operand in row.pushes:
            kind = _kind_number(operand)
            stack = self.stacks.push(stack, bound[str(operand)] if kind < 0 else kind)
        return stack

    def _item(self, pc: int, stack: int) -> int:
        """The stack after a launch has pushed its next item and the arguments."""
        function = self.program.functions[self.immediates[pc]]
        kinds = self.parameter_kinds[function.signature]
        if not kinds or kinds[-1] != kind_of(I64) or self.result_kinds[function.signature]:
            signature = self.program.signatures[function.signature]
            message = f"function {function.name!r} takes an item: (i64 ...) -> () expected, found"
            raise self._refuse(VerifyCode.ITEM_SIGNATURE, f"{message} {signature}", pc)
        below = self._pop(pc, stack, _LAUNCH)
        self._pop(pc, below, kinds[:-1])
        for kind in reversed(kinds):
            stack = self.stacks.push(stack, kind)
        return stack

    def _bind_immediate(
        self, pc: int, row: Instruction, local_kinds: list[int], parameters: int
    ) -> dict[str, int]:
        """The open type `t` where the immediate (a local, a static) determines it."""
        index = self.immediates[pc]
        if row.immediate is Immediate.LOCAL:
            number = number_of(index, parameters)
            if number is None:
                message = f"word {signed(Type.I64, index)} of the frame is no local"
                raise self._refuse(VerifyCode.LOCAL, message, pc)
            if number >= len(local_kinds):
                message = f"local number {number} is not below {len(local_kinds)}"
                raise self._refuse(VerifyCode.LOCAL, message, pc)
            return {"t": local_kinds[number]}
        if row.immediate is Immediate.STATIC:
            return {"t": self.static_kinds[index]}
        if row.immediate in _TYPES:
            return self._bind_type(row.immediate, index)
        return {}

    def _bind_type(self, immediate: Immediate, index: int) -> dict[str, int]:
        """The open types where the immediate is a reference type or a field of one."""
        number, field = field_of(index) if immediate is Immediate.FIELD else (index, 0)
        bound = {REF.name: kind_of(self.hierarchy.references[number])}
        declared = self.hierarchy.declared(number)
        if isinstance(declared, ArrayType):
            bound[T.name] = kind_of(declared.element)
        elif isinstance(declared, StructType) and immediate is Immediate.FIELD:
            bound[T.name] = kind_of(declared.fields[field].type)
        return bound

    def _field_kinds(self, number: int) -> list[int]:
        """Kinds of the fields of a struct, the last one first."""
        declared = self.hierarchy.declared(number)
        assert isinstance(declared, StructType)  # `structure` has checked it
        return [kind_of(field.type) for field in reversed(declared.fields)]

    def _call_or_return(self, pc: int, opcode: int, stack: int, number: int) -> int:
        """The stack after a call, a host call or a return."""
        flow, immediate = _FLOWS[opcode], self.immediates[pc]
        if flow is Flow.HOST:
            signature = self.program.hosts[immediate].signature
            stack = self._pop(pc, stack, [kind_of(t) for t in reversed(signature.parameters)])
            for t in signature.results:
                stack = self.stacks.push(stack, kind_of(t))
            return stack
        if flow is Flow.THROW:
            row = INSTRUCTIONS[opcode]
            types: Sequence[Operand] = record_types(self.program.tags)
            if row.immediate is Immediate.TAG:
                types = self.program.tags[immediate].parameters
            return self._pop(pc, stack, [_kind_number(t) for t in reversed(types)])
        if flow is Flow.RETURN:
            if number == 0:
                raise self._refuse(VerifyCode.RETURN_IN_MAIN, "function 0 ends with halt", pc)
            own_signature = self.program.functions[number].signature
            results = self.result_kinds[own_signature]
            own = len(self.parameter_kinds[own_signature]), len(results)
            for what, found, has in zip(
                ("parameters", "results"), return_counts(immediate), own, strict=True
            ):
                if found != has:
                    name = self.program.functions[number].name
                    message = f"{found} {what}, function {name!r} has {has}"
                    raise self._refuse(VerifyCode.RESULTS, message, pc)
            self._pop(pc, stack, results[::-1])
            return stack
        signature_number = immediate
        if flow is Flow.CALL:
            signature_number = self.program.functions[immediate].signature
        stack = self._pop(pc, stack, _POPS[opcode])
        stack = self._pop(pc, stack, self.parameter_kinds[signature_number])
        for kind in self.result_kinds[signature_number]:
            stack = self.stacks.push(stack, kind)
        return stack
