# SPDX-License-Identifier: Apache-2.0
"""The verifier: the only place that says whether a program can run.

What it guarantees of every instruction that can be reached, and backends rely on:

- its opcode and immediate are legal, and the places it jumps to exist;
- it belongs to one function, and control cannot run past the end of the code;
- the operand stack has one depth and one list of types there (the *stack map*), whichever way
  control came, and the operands that it pops are of its types;
- an exception that it throws arrives at the handlers of the clauses that cover it with their stack
  maps, the frame's operands cut to the clause's depth;
- a frame of its function never needs more words than `Verified.frame_words` says.

One pass over the code, each instruction once. Operand stacks are hash-consed lists: equal stacks
are one number, so pushing, popping and comparing at joins cost the same however deep a stack is.

Checks that need no types are done for all instructions at once, reachable or not; the others
only for what can be reached. The first fault found is raised.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence

from ferryvm.clause import ClauseForest, NestingFault
from ferryvm.errors import FerryError, Position
from ferryvm.isa import INSTRUCTIONS, Flow, Immediate, Instruction, Type
from ferryvm.isa.frame import HEADER_WORDS, number_of, return_counts
from ferryvm.isa.table import Operand
from ferryvm.isa.type import signed
from ferryvm.program import MAX_TAG_VALUES, RECORD_BYTES, Clause, Program, Signature

__all__ = ["Verified", "VerifyError", "verify"]

MAX_STATICS = 1 << 24
"""Statics that a program may have (128 MiB of them)."""

MAX_DATA_END = 1 << 32
"""Heap bytes that initial data may reach."""

MAX_PARAMETERS = 1000
"""Parameters that a signature may have. A signature is stated once and may be used by every
function and call: without a limit, checking them all could take time quadratic in the size."""

MAX_RESULTS = 1000
"""Results that a function may have; `return` moves them all for one unit of fuel."""

MAX_LOCALS = 1 << 15
"""Locals that a function may have, parameters not included. A call zeroes them for one unit of
fuel: without a limit, fuel would not bound time (docs/decisions/2026-11-23-fuel-and-locals.md)."""


HOST_TAG = "python."
"""How the names of tags begin that stand for exceptions of host functions."""

RECORD_TYPES = (Type.I64,) * (1 + MAX_TAG_VALUES)
"""An exception as operands: the number of its tag, then its values as words."""


class VerifyCode(enum.Enum):
    """Why a program is refused. The value is the stable code that tools can match."""

    NO_CODE = "V01"
    """The program has no functions or no code."""
    FUNCTION_ENTRY = "V02"
    """A function starts outside the code."""
    FUNCTION_SIGNATURE = "V03"
    """A signature does not exist, is stated twice, or has too many parameters or results."""
    MAIN_SIGNATURE = "V04"
    """Function 0 takes parameters or has results."""
    STATIC_BITS = "V05"
    """There are too many statics, or one starts with bits that its type has not."""
    TABLE_ENTRY = "V06"
    """The function table names a function that does not exist."""
    DATA_RANGE = "V07"
    """Initial data lies past the largest address or overlaps."""
    FUNCTION_LOCALS = "V08"
    """A function has too many locals."""
    OPCODE = "V10"
    """No instruction has this opcode, or reserved bytes are not zero."""
    IMMEDIATE = "V11"
    """The immediate is out of range for its kind."""
    LOCAL = "V12"
    """The function has no such local."""
    JUMP_TABLE = "V13"
    """A jump table is not followed by its jumps."""
    FALLS_OFF_END = "V20"
    """Control can run past the end of the code."""
    SHARED_CODE = "V21"
    """An instruction is reached from two functions."""
    RETURN_IN_MAIN = "V22"
    """Function 0 returns; it must end with halt."""
    RESULTS = "V23"
    """A return's number of results or of parameters is not the function's."""
    UNDERFLOW = "V30"
    """An operand is missing."""
    OPERAND_TYPE = "V31"
    """An operand has another type than the instruction takes."""
    JOIN = "V33"
    """Two ways to an instruction come with different operand stacks."""
    STATIC_TYPES = "V34"
    """static.load or static.store in a program whose statics are not all i64."""
    EXPORT = "V40"
    """Two exports have one name, or one has a function that does not exist."""
    TAG = "V41"
    """Two tags have one name, or one has too many values or wrong ones."""
    CLAUSE = "V42"
    """A clause has a range, handler, or tag that does not exist."""
    CLAUSE_NESTING = "V43"
    """Ranges of clauses cross, or an outer clause comes before an inner one."""
    CLAUSE_DEPTH = "V44"
    """Where an exception can come from there are fewer operands than stay in the handler."""


class VerifyError(FerryError):
    """A program was refused: `code`, and `pc` where one instruction is to blame (else None)."""

    def __init__(
        self, code: VerifyCode, message: str, pc: int | None, position: Position | None
    ) -> None:
        self.code, self.pc, self.position = code, pc, position
        where = "" if pc is None else f" at pc {pc}"
        source = f" ({position})" if position else ""
        super().__init__(f"{code.value}{where}{source}: {message}")


_KINDS = tuple(Type)
_NUMBER = {t: number for number, t in enumerate(Type)}


def _kind_number(operand: Operand) -> int:
    """0.. for a type, negative for an open type."""
    return _NUMBER[operand] if isinstance(operand, Type) else -1


def _kind_name(number: int) -> str:
    return str(_KINDS[number])


_POPS = [tuple(_kind_number(t) for t in reversed(row.pops)) for row in INSTRUCTIONS]
_PUSHES = [tuple(_kind_number(t) for t in row.pushes) for row in INSTRUCTIONS]
_OPEN = [any(n < 0 for n in _POPS[row.opcode] + _PUSHES[row.opcode]) for row in INSTRUCTIONS]
_FLOWS = [row.flow for row in INSTRUCTIONS]
_IMMEDIATES = [row.immediate for row in INSTRUCTIONS]
_OPCODE = {row.mnemonic: row.opcode for row in INSTRUCTIONS}
_LOCALS = frozenset(row.opcode for row in INSTRUCTIONS if row.immediate is Immediate.LOCAL)
_FAR = 1 << 32
"""Words from the header of a frame: no local is so far."""
_STATIC_INDIRECT = frozenset((_OPCODE["static.load"], _OPCODE["static.store"]))
_THROWING = frozenset((Flow.CALL, Flow.CALL_INDIRECT, Flow.HOST))
"""How control goes on after instructions that exceptions can come from."""
_ANY = 1 << 64
"""Above every immediate."""


class Verified:
    """A program that passed, with what the verifier learned. Only `verify` makes one.

    What comes out of a pickle, or is a deep copy, is verified again: a pickle proves nothing. A
    shallow copy is the same object.
    """

    def __init__(
        self,
        program: Program,
        owners: list[int],
        states: list[int],
        stacks: _Stacks,
        frame_words: tuple[int, ...],
        clauses: ClauseForest,
    ) -> None:
        self.program = program
        self.clauses = clauses
        """The clauses by the instructions that they cover."""
        self.frame_words = frame_words
        """Words of the largest frame of each function, from its header on."""
        self._owners, self._states, self._stacks = owners, states, stacks

    def __copy__(self) -> Verified:
        return self

    def __reduce__(self) -> tuple[Callable[[Program], Verified], tuple[Program]]:
        return verify, (self.program,)

    def is_reachable(self, pc: int) -> bool:
        """True if control can get to `pc`: only then has it a stack map."""
        return self._owners[pc] >= 0

    def owner(self, pc: int) -> int:
        """Number of the function that the instruction at `pc` belongs to, -1 if unreachable."""
        return self._owners[pc]

    def parameters(self, pc: int) -> int:
        """Parameters of the function that the instruction at `pc` belongs to."""
        return len(self.program.signature(self._owners[pc]).parameters)

    def operand_types(self, pc: int) -> tuple[Type, ...]:
        """Types of the operand stack before `pc`, deepest first."""
        return tuple(_KINDS[kind] for kind in self._stacks.kinds_of(self._states[pc]))

    def depth(self, pc: int) -> int:
        """Words of the operand stack before `pc`."""
        return self._stacks.depths[self._states[pc]]


def caught_types(program: Program, clause: Clause) -> tuple[Type, ...]:
    """Types of what a clause's handler gets on top of the operands that stay."""
    if clause.tag is not None:
        return program.tags[clause.tag].parameters
    return RECORD_TYPES if clause.record else ()


class _Stacks:
    """Hash-consed stacks of kinds; stack 0 is empty."""

    def __init__(self) -> None:
        self.parents, self.kinds, self.depths = [0], [-1], [0]
        self.known: dict[int, int] = {}
        self._skips = [0]
        """Of each stack, a shorter one some way down: so `cut` takes logarithmic time."""

    def push(self, stack: int, kind: int) -> int:
        key = stack * 8 + kind
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = len(self.parents)
            self.parents.append(stack)
            self.kinds.append(kind)
            self.depths.append(self.depths[stack] + 1)
        return found

    def cut(self, stack: int, depth: int) -> int:
        """The `depth` deepest operands of a stack that has as many.

        Skip pointers as in E. W. Myers, "An applicative random-access stack", 1983."""
        skips, depths, parents = self._skips, self.depths, self.parents
        for new in range(len(skips), len(parents)):
            parent = parents[new]
            skip = skips[parent]
            is_even = depths[parent] - depths[skip] == depths[skip] - depths[skips[skip]]
            skips.append(skips[skip] if is_even else parent)
        while depths[stack] > depth:
            stack = skips[stack] if depths[skips[stack]] >= depth else parents[stack]
        return stack

    def kinds_of(self, stack: int) -> list[int]:
        result = []
        while stack:
            result.append(self.kinds[stack])
            stack = self.parents[stack]
        return result[::-1]


def verify(program: Program) -> Verified:
    """The program, proved runnable. Raises VerifyError for the first fault found."""
    _check_tables(program)
    clauses = _check_clauses(program)
    _check_immediates(program)
    return _Checker(program, clauses).run()


def _refuse(program: Program, code: VerifyCode, message: str, pc: int | None = None) -> VerifyError:
    if pc is not None and program.code.opcodes[pc] < len(INSTRUCTIONS):
        message = f"{INSTRUCTIONS[program.code.opcodes[pc]].mnemonic}: {message}"
    position = program.source_map.position(pc) if pc is not None else None
    return VerifyError(code, message, pc, position)


def _check_tables(program: Program) -> None:
    """Everything but code."""

    def refuse(code: VerifyCode, message: str) -> VerifyError:
        return _refuse(program, code, message)

    count = len(program.code)
    if not program.functions or not count:
        raise refuse(VerifyCode.NO_CODE, "a program needs at least one function and its code")
    for function in program.functions:
        if not 0 <= function.entry < count:
            message = f"function {function.name!r} starts at {function.entry}, code has {count}"
            raise refuse(VerifyCode.FUNCTION_ENTRY, message)
        if not 0 <= function.signature < len(program.signatures):
            message = (
                f"function {function.name!r} has signature {function.signature}, "
                f"there are {len(program.signatures)}"
            )
            raise refuse(VerifyCode.FUNCTION_SIGNATURE, message)
        if len(function.locals) > MAX_LOCALS:
            found = f"function {function.name!r} has {len(function.locals)} locals"
            raise refuse(VerifyCode.FUNCTION_LOCALS, f"{found}, at most {MAX_LOCALS}")
    numbers: dict[Signature, int] = {}
    for number, signature in enumerate(program.signatures):
        _check_signature(program, f"signature {number}", signature, MAX_RESULTS)
        # call_indirect compares numbers, so equal signatures must have one number.
        earlier = numbers.setdefault(signature, number)
        if earlier != number:
            message = f"signature {number} is the same as signature {earlier}"
            raise refuse(VerifyCode.FUNCTION_SIGNATURE, message)
    for host in program.hosts:
        _check_signature(program, f"host import {host.name!r}", host.signature, 1)
    main = program.signature(0)
    if main.parameters or main.results:
        name = program.functions[0].name
        message = f"function {name!r} starts the program: () -> () expected, found {main}"
        raise refuse(VerifyCode.MAIN_SIGNATURE, message)
    if len(program.statics) > MAX_STATICS:
        message = f"{len(program.statics)} statics, at most {MAX_STATICS}"
        raise refuse(VerifyCode.STATIC_BITS, message)
    for static in program.statics:
        if not 0 <= static.bits <= static.type.mask:
            message = f"static {static.name!r} starts with {static.bits:#x}, not a {static.type}"
            raise refuse(VerifyCode.STATIC_BITS, message)
    for entry in program.table:
        if not 0 <= entry < len(program.functions):
            message = f"the table names function {entry}, there are {len(program.functions)}"
            raise refuse(VerifyCode.TABLE_ENTRY, message)
    _check_exports(program)
    _check_tags(program)
    end = 0
    for data in sorted(program.data, key=lambda data: data.address):
        if data.address < end or data.address + len(data.bytes) > MAX_DATA_END:
            size = f"{len(data.bytes)} bytes of data at {data.address}"
            message = f"{size} overlap others or pass {MAX_DATA_END:#x}"
            raise refuse(VerifyCode.DATA_RANGE, message)
        end = data.address + len(data.bytes)


def _check_exports(program: Program) -> None:
    names = set()
    for name, function in program.exports:
        if name in names:
            raise _refuse(program, VerifyCode.EXPORT, f"two exports are named {name!r}")
        names.add(name)
        if not 0 <= function < len(program.functions):
            message = f"export {name!r} is function {function}, there are {len(program.functions)}"
            raise _refuse(program, VerifyCode.EXPORT, message)


def _check_tags(program: Program) -> None:
    names = set()
    for name, parameters in program.tags:
        if name in names:
            raise _refuse(program, VerifyCode.TAG, f"two tags are named {name!r}")
        names.add(name)
        if len(parameters) > MAX_TAG_VALUES:
            message = f"tag {name!r} has {len(parameters)} values, at most {MAX_TAG_VALUES}"
            raise _refuse(program, VerifyCode.TAG, message)
        if name.startswith(HOST_TAG) and parameters != (Type.I64,):
            found = " ".join(map(str, parameters))
            message = f"tag {name!r} is of host exceptions: (i64) expected, found ({found})"
            raise _refuse(program, VerifyCode.TAG, message)


def _check_clauses(program: Program) -> ClauseForest:
    """The clauses, each legal by itself and nested as they must be."""
    count = len(program.code)
    for number, clause in enumerate(program.clauses):
        fault = None
        if not 0 <= clause.start < clause.end <= count:
            fault = f"covers pcs {clause.start} to {clause.end - 1}, code has {count}"
        elif not 0 <= clause.handler < count:
            fault = f"has its handler at {clause.handler}, code has {count}"
        elif clause.tag is not None and not 0 <= clause.tag < len(program.tags):
            fault = f"takes tag {clause.tag}, there are {len(program.tags)}"
        elif clause.tag is not None and clause.record:
            fault = "takes one tag and pushes a record, which only one of all tags does"
        elif clause.depth < 0:
            fault = f"leaves {clause.depth} operands"
        if fault is not None:
            raise _refuse(program, VerifyCode.CLAUSE, f"clause {number} {fault}")
    try:
        return ClauseForest(program.clauses)
    except NestingFault as fault:
        message = f"clause {fault.number}: {fault}"
        raise _refuse(program, VerifyCode.CLAUSE_NESTING, message) from None


def _check_signature(program: Program, what: str, signature: Signature, most_results: int) -> None:
    for part, types, most in (
        ("parameters", signature.parameters, MAX_PARAMETERS),
        ("results", signature.results, most_results),
    ):
        if len(types) > most:
            message = f"{what} has {len(types)} {part}, at most {most}"
            raise _refuse(program, VerifyCode.FUNCTION_SIGNATURE, message)


def _check_immediates(program: Program) -> None:
    """Opcodes and immediates of every instruction, reachable or not."""
    opcodes, immediates = program.code.opcodes.tolist(), program.code.immediates.tolist()
    # Opcode and reserved bytes as one number: it is the opcode where those are zero.
    heads = memoryview(program.code.tobytes()).cast("Q")[:: RECORD_BYTES // 8].tolist()
    if max(heads) >= len(INSTRUCTIONS):
        pc = next(pc for pc, head in enumerate(heads) if head >= len(INSTRUCTIONS))
        message = "reserved bytes are not zero"
        if opcodes[pc] >= len(INSTRUCTIONS):
            message = f"opcode {opcodes[pc]}, there are {len(INSTRUCTIONS)} instructions"
        raise _refuse(program, VerifyCode.OPCODE, message, pc)
    limits = {
        Immediate.NONE: 1,
        Immediate.I32: 1 << 32,
        Immediate.F32: 1 << 32,
        Immediate.STATIC: len(program.statics),
        Immediate.OFFSET: 1 << 32,
        Immediate.TARGET: len(opcodes),
        Immediate.FUNCTION: len(program.functions),
        Immediate.SIGNATURE: len(program.signatures),
        Immediate.HOST: len(program.hosts),
    }
    of_opcode = [limits.get(kind, _ANY) for kind in _IMMEDIATES]
    for pc, (opcode, immediate) in enumerate(zip(opcodes, immediates, strict=True)):
        if immediate < of_opcode[opcode]:
            continue
        kind = _IMMEDIATES[opcode]
        name = kind.value.partition(",")[0]
        message = f"{name} {immediate} is not below {limits[kind]}"
        if kind is Immediate.NONE:
            message = f"it takes no immediate, found {immediate}"
        raise _refuse(program, VerifyCode.IMMEDIATE, message, pc)
    # More exactly where a local can be reached, and has a function.
    for pc, opcode in enumerate(opcodes):
        if opcode in _LOCALS and not -_FAR <= signed(Type.I64, immediates[pc]) < _FAR:
            message = f"local {signed(Type.I64, immediates[pc])} words from the header of the frame"
            raise _refuse(program, VerifyCode.IMMEDIATE, message, pc)
    for pc, opcode in enumerate(opcodes):
        if opcode == _OPCODE["jump_table"]:
            jumps = immediates[pc] + 1
            following = opcodes[pc + 1 : pc + 1 + jumps]
            if following.count(_OPCODE["jump"]) != jumps:
                raise _refuse(program, VerifyCode.JUMP_TABLE, f"{jumps} jumps must follow", pc)
    if not all(static.type is Type.I64 for static in program.statics):
        for pc, opcode in enumerate(opcodes):
            if opcode in _STATIC_INDIRECT:
                message = "every static must be i64 for statics to be numbered at run time"
                raise _refuse(program, VerifyCode.STATIC_TYPES, message, pc)


class _Checker:
    """The pass over types and flow."""

    def __init__(self, program: Program, clauses: ClauseForest) -> None:
        self.program, self.clauses = program, clauses
        self.opcodes: list[int] = program.code.opcodes.tolist()
        self.immediates: list[int] = program.code.immediates.tolist()
        self.owners = [-1] * len(self.opcodes)
        self.states = [0] * len(self.opcodes)
        self.stacks = _Stacks()
        self.static_kinds = [_NUMBER[static.type] for static in program.statics]
        self.parameter_kinds = [
            tuple(_NUMBER[t] for t in reversed(s.parameters)) for s in program.signatures
        ]
        self.result_kinds = [tuple(_NUMBER[t] for t in s.results) for s in program.signatures]

    def run(self) -> Verified:
        words = [self._function(number) for number in range(len(self.program.functions))]
        return Verified(
            self.program, self.owners, self.states, self.stacks, tuple(words), self.clauses
        )

    def _refuse(self, code: VerifyCode, message: str, pc: int) -> VerifyError:
        return _refuse(self.program, code, message, pc)

    def _function(self, number: int) -> int:
        """Check all that is reachable from a function's entry; words of its largest frame."""
        function = self.program.functions[number]
        parameter_kinds = self.parameter_kinds[function.signature]
        local_kinds = [*reversed(parameter_kinds), *(_NUMBER[t] for t in function.locals)]
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
        """Check that exceptions of an instruction can be caught; operands of the largest handler."""
        kept = self.stacks.depths[after] - self._results(pc, flow)
        deepest = 0
        for clause in self.clauses.covering(pc):
            if clause.depth > kept:
                message = f"{kept} operands are below its own, a clause leaves {clause.depth}"
                raise self._refuse(VerifyCode.CLAUSE_DEPTH, message, pc)
            caught = self.stacks.cut(stack, clause.depth)
            for t in caught_types(self.program, clause):
                caught = self.stacks.push(caught, _NUMBER[t])
            deepest = max(deepest, self.stacks.depths[caught])
            self._reach(function, clause.handler, caught, pending, pc)
        return deepest

    def _results(self, pc: int, flow: Flow) -> int:
        """Operands that a call leaves when it returns."""
        immediate = self.immediates[pc]
        if flow is Flow.HOST:
            return len(self.program.hosts[immediate].signature.results)
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
            left = self._show(self.states[pc])
            message = f"operands are {left} one way, {self._show(stack)} from pc {source}"
            raise self._refuse(VerifyCode.JOIN, message, pc)

    def _show(self, stack: int) -> str:
        kinds = [_kind_name(kind) for kind in self.stacks.kinds_of(stack)[-8:]]
        more = "... " if self.stacks.depths[stack] > 8 else ""
        return f"({more}{' '.join(kinds)})"

    def _pop(self, pc: int, stack: int, kinds: Sequence[int]) -> int:
        """The stack without operands of these kinds, topmost first."""
        for kind in kinds:
            found = self.stacks.kinds[stack]
            if found != kind:
                raise self._mismatch(pc, found, _kind_name(kind))
            stack = self.stacks.parents[stack]
        return stack

    def _mismatch(self, pc: int, found: int, wanted: str) -> VerifyError:
        if found < 0:
            message = f"operand of type {wanted} expected, the stack is empty"
            return self._refuse(VerifyCode.UNDERFLOW, message, pc)
        message = f"operand of type {wanted} expected, found {_kind_name(found)}"
        return self._refuse(VerifyCode.OPERAND_TYPE, message, pc)

    def _apply(
        self, pc: int, opcode: int, stack: int, local_kinds: list[int], parameters: int
    ) -> int:
        """The stack after an instruction that neither calls nor returns."""
        kinds, parents = self.stacks.kinds, self.stacks.parents
        if not _OPEN[opcode]:
            for kind in _POPS[opcode]:
                if kinds[stack] != kind:
                    raise self._mismatch(pc, kinds[stack], _kind_name(kind))
                stack = parents[stack]
            for kind in _PUSHES[opcode]:
                stack = self.stacks.push(stack, kind)
            return stack
        row = INSTRUCTIONS[opcode]
        bound = self._bind_immediate(pc, row, local_kinds, parameters)
        for operand in reversed(row.pops):
            found = kinds[stack]
            wanted = _kind_number(operand)
            if wanted < 0:
                wanted = bound.setdefault(str(operand), found)
            if found != wanted or found < 0:
                name = _kind_name(wanted) if wanted >= 0 else "any value"
                raise self._mismatch(pc, found, name)
            stack = parents[stack]
        for operand in row.pushes:
            kind = _kind_number(operand)
            stack = self.stacks.push(stack, bound[str(operand)] if kind < 0 else kind)
        return stack

    def _bind_immediate(
        self, pc: int, row: Instruction, local_kinds: list[int], parameters: int
    ) -> dict[str, int]:
        """The open type `t` where the immediate (a local, a static) settles it."""
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
        return {}

    def _call_or_return(self, pc: int, opcode: int, stack: int, number: int) -> int:
        """The stack after a call, a host call or a return."""
        flow, immediate = _FLOWS[opcode], self.immediates[pc]
        if flow is Flow.HOST:
            signature = self.program.hosts[immediate].signature
            stack = self._pop(pc, stack, [_NUMBER[t] for t in reversed(signature.parameters)])
            for t in signature.results:
                stack = self.stacks.push(stack, _NUMBER[t])
            return stack
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
