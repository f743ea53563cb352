# SPDX-License-Identifier: Apache-2.0
"""The context that the native functions of one region share: choices, names, counts, types."""

from __future__ import annotations

from collections.abc import Sequence

from ferryvm.backend import Forcing, Options
from ferryvm.ir.graph import Body, Boolean, Module, ValueType
from ferryvm.ir.group.record import Group
from ferryvm.ir.loop.poll import lengthy_functions
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import ControlBlock, Status
from ferryvm_backends._llvm import ir
from ferryvm_backends._llvm.arithmetic import I1, LLVM_TYPE, WORD, word
from ferryvm_backends._llvm.handler import POINTER
from ferryvm_backends.llvm.early_store import EarlyStores, store_early
from ferryvm_backends.llvm.exit_stub import ExitStubs
from ferryvm_backends.llvm.storage import Storage
from ferryvm_backends.llvm.symbol import ACTIVITY, FAILURES, NEST_WORDS

INT32 = ir.IntType(32)

FORCED_IN: int = ControlBlock.scratch.offset  # type: ignore[attr-defined]  # a ctypes field
"""The offset in the control block of the number of places after which the next one gives up, where
that is forced."""

HOST_STACK_LIMIT = FORCED_IN + WORD_BYTES
"""The offset in the control block of the lowest address that recursion may use."""

THROWN = FORCED_IN + 2 * WORD_BYTES
"""The offset in the control block of the address of the values that an exception carries."""


class LoweringContext:
    """The context that the lowerings of a module's bodies share."""

    def __init__(self, module: Module, options: Options, polls: bool) -> None:
        """`polls`: look at the interrupt flag in loops."""
        self.native = ir.Module(module.name)
        self.options, self.polls = options, polls
        self.is_forced = Forcing.DEOPT in options.forcing
        self.guards = module.guards
        self.streams = module.streams
        self.lengthy = lengthy_functions(module)
        self.writers = ExitStubs(self.native)
        self.catches = any(o.name == "caught" for body in module.bodies for o in body.operations)
        """True if a call catches what its callee throws."""
        self.functions = {
            number: self.function(f"f{number}", body) for number, body in module.functions.items()
        }
        """The native function of each VM function, by number."""
        self.records: dict[Group, tuple[ir.Function, Body]] = {}
        """The functions that write the records of groups, with their bodies."""
        self._early: dict[Body, EarlyStores | None] = {}
        self.nests = FAILURES + len(self.guards)
        """The place in `ACTIVITY` from which on nests have theirs."""
        words = ir.ArrayType(WORD, self.nests + NEST_WORDS * len(module.nests))
        self.activity = ir.GlobalVariable(self.native, words, ACTIVITY)
        self.activity.initializer = ir.Constant(words, None)

    def early(self, body: Body) -> EarlyStores | None:
        """The early stores of a body, before its exits."""
        if body not in self._early:
            self._early[body] = store_early(body)
        return self._early[body]

    def function(self, name: str, body: Body) -> ir.Function:
        """A new native function for the body of a VM function."""
        parameters = [llvm_type(p.type) for p in body.blocks[0].parameters]
        function = self._function(name, result_type(body), [POINTER, WORD, *parameters])
        function.linkage = "internal"
        function.calling_convention = "fastcc"
        return function

    def entered(self, name: str) -> ir.Function:
        """A new native function from a control block to a status."""
        return self._function(name, INT32, [POINTER])

    def _function(self, name: str, result: ir.Type, parameters: Sequence[ir.Type]) -> ir.Function:
        # None of them has to terminate: LLVM must not treat an endless loop as unreachable, so
        # neither `mustprogress` nor `willreturn` is allowed here.
        function = ir.Function(self.native, ir.FunctionType(result, parameters), name)
        function.attributes.add("nounwind")
        function.args[0].add_attribute("noalias")
        return function

    def count(self, storage: Storage, place: int, more: ir.Value) -> ir.Value:
        """Add to a word of `ACTIVITY`; its new value."""
        where = self.activity_word(storage, place)
        total = storage.builder.add(storage.load(where, "activity"), more)
        storage.store(total, where, "activity")
        return total

    def activity_word(self, storage: Storage, place: int) -> ir.Value:
        """The address of a word of `ACTIVITY`."""
        indices = [word(0), word(place)]
        return storage.builder.gep(self.activity, indices, self.activity.value_type)


def llvm_type(t: ValueType) -> ir.Type:
    """The LLVM type of values of a type."""
    return I1 if isinstance(t, Boolean) else LLVM_TYPE[t]


def result_type(body: Body) -> ir.Type:
    """The return type of a body's native function: its result, if it has one, and how it
    ended."""
    return ir.LiteralStructType([LLVM_TYPE[body.result], INT32]) if body.result else INT32


RETURNED, LEFT, FIRST_TAG = 0, 1, 2
"""The ends of native functions, which they return besides a result. A number from `FIRST_TAG` on
is that of a tag which is thrown."""


def status_constant(status: Status) -> ir.Constant:
    """A status, as native code returns it."""
    return ir.Constant(INT32, int(status))


def at_start(function: ir.Function) -> ir.IRBuilder:
    """A builder in the first block of a new function."""
    return ir.IRBuilder(function.append_basic_block("start"))
