# SPDX-License-Identifier: Apache-2.0
"""Exceptions: the search for a handler, and the transfer of control to it.

    throw ── find ──> a clause and its frame ──> operands cut, values pushed, pc at the handler
               └────> none: the trap UNCAUGHT_EXCEPTION; no frame was changed

This is the definition for all backends, and what the engine does for those that leave with THROW.
The search ends before anything changes, so an exception is not part of the state, and there are no
half-unwound frames. (The alternative, unwinding frame by frame, would lose the stack trace of an
uncaught exception.)
"""

from __future__ import annotations

from collections.abc import Collection

from ferryvm.isa import BY_MNEMONIC, Trap
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.type import I64, Reference, signed
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.named_tuple import NamedTuple
from ferryvm.program import HOST_TAG, MAX_TAG_VALUES, Clause, Program

HOST_RECORD = -1
"""The tag in the record of an exception that a host function raised; its first value is a handle,
the number of the exception in `Machine.raised`."""

_THROW = BY_MNEMONIC["throw"].opcode
_CALLS = frozenset(BY_MNEMONIC[name].opcode for name in ("call", "call_indirect"))


class Thrown(NamedTuple):
    """An exception while its handler is searched for."""

    tag: int
    """Number of its tag, or HOST_RECORD."""
    words: tuple[int, ...]
    """Its values as words."""

    def record(self, program: Program) -> tuple[int, ...]:
        """The words of its record in a program, deepest first, see `record_types`."""
        types = (I64,) if self.tag == HOST_RECORD else program.tags[self.tag].parameters
        places = [isinstance(t, Reference) for t in types]
        references = [word for word, is_one in zip(self.words, places, strict=True) if is_one]
        numbers = [0 if is_one else word for word, is_one in zip(self.words, places, strict=True)]
        no_references = (0,) * (program.record_references - len(references))
        no_numbers = (0,) * (MAX_TAG_VALUES - len(numbers))
        return (*references, *no_references, self.tag & I64.mask, *numbers, *no_numbers)


class Target(NamedTuple):
    """The clause that catches an exception, and the frame that it belongs to."""

    clause: Clause
    fp: int


def thrown(machine: Machine) -> Thrown | None:
    """The exception that the instruction at pc throws; None if its record is invalid: its tag does
    not exist, a reference is of another type than the tag's, no host function raised it here, or
    too many did since."""
    program, control, stack = machine.program, machine.control, machine.memory.stack
    sp, pc = control.sp, control.pc
    if program.code.opcodes[pc] == _THROW:
        tag = program.code.immediates[pc]
        return Thrown(tag, tuple(stack[sp - len(program.tags[tag].parameters) : sp]))
    number, *words = stack[sp - 1 - MAX_TAG_VALUES : sp]
    tag = signed(I64, number)
    if tag == HOST_RECORD:
        is_known = machine.raised.get(words[0]) is not None
        return Thrown(tag, (words[0],)) if is_known else None
    if not 0 <= tag < len(program.tags):
        return None
    end = sp - 1 - MAX_TAG_VALUES
    references, found = iter(stack[end - program.record_references : end]), []
    for t, word in zip(program.tags[tag].parameters, words, strict=False):
        if isinstance(t, Reference):
            assert machine.objects is not None  # a program with such a type has some
            word = next(references)
            if not machine.objects.is_reference(word, t):
                return None
        found.append(word & t.mask)
    return Thrown(tag, tuple(found))


def find(machine: Machine, tags: Collection[int]) -> Target | None:
    """The innermost clause around pc that catches one of these tags, or all exceptions.

    The search covers the frames of the innermost call from outside: the frames around it belong to
    the caller of a host function, which gets the exception first.
    """
    clauses, stack = machine.verified.clauses, machine.memory.stack
    known, opcodes = clauses.chains, machine.program.code.opcodes
    pc, fp = machine.control.pc, machine.control.fp
    while True:
        covering = known.get(pc)  # a call of `covering` takes a third of a frame's time
        if covering is None:
            covering = clauses.covering(pc)
        for clause in covering:
            if clause.tag is None or clause.tag in tags:
                return Target(clause, fp)
        distance = stack[fp + 1]
        if not distance:
            return None
        pc, fp = stack[fp] - 1, fp - distance
        if opcodes[pc] not in _CALLS:
            return None


def enter_handler(machine: Machine, target: Target, exception: Thrown) -> None:
    """Cut the stack to the operands that the clause keeps, push the exception, and continue at the
    handler."""
    clause, fp = target
    program, control, stack = machine.program, machine.control, machine.memory.stack
    owner = machine.verified.owner(clause.handler)
    sp = fp + HEADER_WORDS + len(program.functions[owner].locals) + clause.depth
    pushed: tuple[int, ...] = ()
    if clause.tag is not None:
        pushed = exception.words
    elif clause.record:
        pushed = exception.record(program)
    for word in pushed:
        stack[sp] = word
        sp += 1
    control.pc, control.sp, control.fp = clause.handler, sp, fp


def unwind(machine: Machine, counting: bool) -> Status:
    """RUNNING if a handler catches the exception that is thrown at pc. Otherwise the machine's
    status: TRAP in the state before, INTERRUPTED at the handler."""
    control = machine.control
    exception = thrown(machine)
    target = None
    if exception is not None:
        target = find(machine, catching_tags(machine, exception))
    if exception is None or target is None:
        kind = Trap.INVALID_RECORD if exception is None else Trap.UNCAUGHT_EXCEPTION
        control.status, control.trap = Status.TRAP, kind
        return Status.TRAP
    enter_handler(machine, target, exception)
    if counting:
        control.fuel -= 1
    status = Status.INTERRUPTED if control.interrupt else Status.RUNNING
    control.status = status
    return status


def catching_tags(machine: Machine, exception: Thrown) -> Collection[int]:
    """The tags that catch an exception: its own tag; for a host function's exception, the tags of
    its classes."""
    if exception.tag != HOST_RECORD:
        return (exception.tag,)
    error = machine.raised.get(exception.words[0])
    return host_tags(machine, error) if error is not None else ()


def host_tags(machine: Machine, error: BaseException) -> Collection[int]:
    """The tags that catch an exception of a host function: those of its class and its bases."""
    names = {f"{HOST_TAG}{each.__name__}" for each in type(error).__mro__}
    return [number for number, tag in enumerate(machine.program.tags) if tag.name in names]


def catch_thrown(machine: Machine, exception: Thrown) -> bool:
    """True if a clause catches an exception that left a call made by the host function at pc;
    control is then at its handler."""
    target = find(machine, catching_tags(machine, exception))
    if target is None:
        return False
    enter_handler(machine, target, exception)
    return True


def catch_raised(machine: Machine, error: BaseException) -> bool:
    """True if a clause catches the Python exception that the host function called at pc raised;
    control is then at the handler, and the exception has a handle."""
    target = find(machine, host_tags(machine, error))
    if target is None:
        return False
    enter_handler(machine, target, Thrown(HOST_RECORD, (machine.raised.add(error),)))
    return True


def raised_by_host(machine: Machine) -> BaseException | None:
    """The host function's exception that the program throws again at pc, found by its handle; None
    if the program throws an exception of its own."""
    exception = thrown(machine)
    if exception is None:
        return None
    name = machine.program.tags[exception.tag].name if exception.tag != HOST_RECORD else HOST_TAG
    return machine.raised.get(exception.words[0]) if name.startswith(HOST_TAG) else None
