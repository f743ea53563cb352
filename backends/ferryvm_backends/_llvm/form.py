# SPDX-License-Identifier: Apache-2.0
"""A program's code in a native interpreter's form, and the cells that are put into it.

    code        │ operation │ immediate │ operation │ immediate │ …     a cell of two words an instruction
    originals   │ operation │ operation │ …                             the instructions that cells replace
    counters    │ word │ word │ …                                       remaining counts of count cells
    entries     │ address │ address │ …                                 entries of installed code

A count or enter cell is another operation in the instruction's place. Cells change while the
program runs in another thread: each change is one store of a word, after the stores of the data
that the new operation needs. The program sees the old operation or the new one, and both are right.
"""

from __future__ import annotations

import abc
import ctypes
import threading
from array import array
from collections.abc import Callable, Container, Mapping
from typing import TYPE_CHECKING

from ferryvm.backend import Artifact, BackendError, DirectEntry
from ferryvm.isa import BY_MNEMONIC
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.python_call import CallForm
from ferryvm.machine.state import Machine
from ferryvm.machine.unwind import unwind
from ferryvm.named_tuple import NamedTuple
from ferryvm.program import RECORD_BYTES, Program, Signature

if TYPE_CHECKING:
    from ferryvm.machine.slot_code import SlotCode

MOST_TIMES = (1 << 63) - 1
"""The largest number of times that a cell can count to."""


_TEST = BY_MNEMONIC["launch.test"].opcode


def launch_tests(program: Program) -> frozenset[int]:
    """The pcs of the `launch.test`s of a program."""
    opcodes = program.code.opcodes
    return frozenset(pc for pc, opcode in enumerate(opcodes) if opcode == _TEST)


class CellOperations(NamedTuple):
    """The operations of cells."""

    counting: int
    enter: int
    launch: int
    """Of an enter cell at a `launch.test`."""


class Form:
    """One form of the code; it must be bound to the control block before it runs."""

    def __init__(
        self,
        code: array[int],
        cells: CellOperations,
        launches: Container[int],
        publish: Callable[[int, int], None],
    ) -> None:
        """`code`: two words an instruction, this form's own; `launches`: pcs of `launch.test`;
        `publish(address, value)` stores a word after all stores before it."""
        self.code = code
        self.originals = code[0::2]
        self.length = len(self.originals)
        """Instructions."""
        self.places: set[int] = set()
        """The pcs that have a cell."""
        self._count, self._publish = cells.counting, publish
        self._operations, self._launches = cells, launches
        nothing = bytes(WORD_BYTES * self.length)
        self._counters, self._entries = array("Q", nothing), array("Q", nothing)
        arrays = (code, self._counters, self._entries, self.originals)
        self._addresses = tuple(each.buffer_info()[0] for each in arrays)
        self._lock = threading.Lock()

    def bind(self, control: ControlBlock) -> None:
        """Make this form the one that the interpreter runs."""
        control.code, control.counters, control.entries, control.originals = self._addresses

    def count(self, pc: int, times: int) -> None:
        """As `Artifact.count`."""
        if not 1 <= times <= MOST_TIMES:
            raise BackendError(f"a cell cannot count {times} times; 1 to {MOST_TIMES} is allowed")
        with self._lock:
            self._check(pc)
            self._publish(self._addresses[1] + WORD_BYTES * pc, times)
            self._put(pc, self._count)

    def counted(self, pc: int) -> int:
        """As `Artifact.counted`."""
        with self._lock:
            self._check(pc)
            return self._counters[pc] if self.code[2 * pc] == self._count else 0

    def install(self, pc: int, address: int) -> None:
        """As `Artifact.install`."""
        if address <= 0:
            raise BackendError(f"pc {pc}: there is no function at address {address}")
        with self._lock:
            self._check(pc)
            self._publish(self._addresses[2] + WORD_BYTES * pc, address)
            is_launch = pc in self._launches
            self._put(pc, self._operations.launch if is_launch else self._operations.enter)

    def remove(self, pc: int) -> None:
        """As `Artifact.remove`."""
        with self._lock:
            self._check(pc)
            self._take(pc)

    def leave_hot(self, pc: int) -> None:
        """Take away the count cell that left with HOT, unless it was replaced meanwhile."""
        with self._lock:
            if self.code[2 * pc] == self._count and not self._counters[pc]:
                self._take(pc)

    def _check(self, pc: int) -> None:
        if not 0 <= pc < self.length:
            raise BackendError(f"no cell at pc {pc}; the code has {self.length} instructions")

    def _put(self, pc: int, operation: int) -> None:
        if pc not in self.places:
            self.places.add(pc)
            self._choose_before(pc)
        self._set_operation(pc, operation)

    def _take(self, pc: int) -> None:
        if pc in self.places:
            # The function remains in the entries: the program may be about to read it.
            self.places.remove(pc)
            self._set_operation(pc, self.originals[pc])
            self._choose_before(pc)

    def _set_operation(self, pc: int, operation: int) -> None:
        self._publish(self._addresses[0] + RECORD_BYTES * pc, operation)

    def _choose_before(self, pc: int) -> None:
        """Choose the operations again that may run across `pc`, where it has or had a cell."""

    def _set_original(self, pc: int, operation: int) -> None:
        """Change the operation at `pc`, or the one that its cell replaces."""
        self._publish(self._addresses[3] + WORD_BYTES * pc, operation)
        if pc not in self.places:
            self._set_operation(pc, operation)


class FormArtifact(Artifact):
    """A program in up to two forms, one that counts instructions and one that does not."""

    def __init__(self) -> None:
        self._forms: dict[bool, Form] = {}
        self._resumptions: dict[bool, Callable[[int, int], int]] = {}
        self._bare: Form | None = None
        """A form that never has cells, for several threads at once."""
        self._lock = threading.Lock()

    @abc.abstractmethod
    def _make(self, counting: bool) -> Form:
        """A form with no cells."""

    @abc.abstractmethod
    def _run(self, address: int, counting: bool) -> None:
        """Run the form that is bound to the control block at `address`."""

    def _call(self, counting: bool) -> Callable[[int], int] | None:
        """As `_run`, in any floating-point environment; returns the status. None: there is none."""
        return None

    @abc.abstractmethod
    def _resumption(self, counting: bool) -> int:
        """The address of a function as `ferryvm.machine.item_map.RESUME` that runs a form."""

    def _resume(self, machine: Machine, counting: bool) -> bool:
        """Run suspended items of the launch at which the form was left, and what follows; False if
        there is none that native code can take."""
        from ferryvm.machine.item_map import RESUME, ItemOutcome
        from ferryvm.machine.launch import learn_next

        objects = machine.objects
        if objects is None:  # compiled code left with LAUNCH where there is no launch
            return False
        resume = self._resumptions.get(counting)
        if resume is None:
            resume = self._resumptions[counting] = RESUME(self._resumption(counting))
        map_ = ctypes.addressof(objects.items.addresses)
        while True:
            outcome = resume(map_, machine.address)
            if outcome == ItemOutcome.DONE:
                return True
            if outcome == ItemOutcome.REFUSED or not learn_next(machine):
                return False

    @abc.abstractmethod
    def _slot_runner(self) -> int:
        """The address of `ferryvm.machine.slot_code.SlotCode`, for a form that counts nothing."""

    def bind_slots(self, control: ControlBlock) -> SlotCode | None:
        from ferryvm.machine.slot_code import SlotCode  # few programs suspend items
        from ferryvm_backends._llvm.chunk import chunk_loop

        with self._lock:
            if self._bare is None:
                self._bare = self._make(False)
        self._bare.bind(control)
        return SlotCode(self._slot_runner(), chunk_loop())

    def _form(self, counting: bool) -> Form:
        form = self._forms.get(counting)
        if form is None:
            with self._lock:  # another thread may want it for its cells at the same time
                form = self._forms.get(counting)
                if form is None:
                    form = self._forms[counting] = self._make(counting)
        return form

    def enter(self, machine: Machine, counting: bool) -> Status:
        form = self._form(counting)
        control = machine.control
        form.bind(control)
        self._run(machine.address, counting)
        return self._finish(machine, counting, control.status)

    def direct(self, machine: Machine, counting: bool) -> DirectEntry | None:
        call = self._call(counting)
        if call is None:
            return None
        self._form(counting).bind(machine.control)

        def resume(machine: Machine) -> int | None:
            return machine.control.status if self._resume(machine, counting) else None

        # ctypes.cast would report the limit of recursion as an error of its own.
        address = ctypes.c_void_p.from_buffer(call).value or 0  # type: ignore[arg-type]  # of C
        resumption = self._resumption(counting)
        return DirectEntry(call, self._finish, lambda: True, None, resume, address, resumption)

    def _finish(self, machine: Machine, counting: bool, left: int) -> Status:
        """The status that the form was left with, once its cell is seen to."""
        control = machine.control
        while True:
            if left == Status.THROW and unwind(machine, counting) is Status.RUNNING:
                self._run(machine.address, counting)
            elif left != Status.LAUNCH or not self._resume(machine, counting):
                break
            left = control.status
        left = control.status
        try:
            status = Status(left)
        except ValueError:
            message = f"compiled code left with status {left} at pc {control.pc}"
            control.status = Status.RUNNING
            raise BackendError(f"{message}, which there is not") from None
        if status is Status.HOT:
            self._form(counting).leave_hot(control.pc)
        return status

    def native_callers(self, imports: Mapping[int, Signature]) -> Mapping[int, int] | None:
        if not imports:
            return {}
        from ferryvm_backends._llvm import native_caller  # few programs import native functions

        return {number: native_caller.address(each) for number, each in imports.items()}

    def collector(self) -> int | None:
        from ferryvm_backends._llvm import collector  # most programs end before a collection

        return collector.soon()

    def item_writer(self) -> int | None:
        from ferryvm_backends._llvm import item_writer  # few programs suspend items

        return item_writer.soon()

    def host_loop(self) -> int | None:
        from ferryvm_backends._llvm import host_loop  # few programs make many host calls

        return host_loop.soon()

    def python_caller(self, form: CallForm) -> int | None:
        from ferryvm_backends._llvm import python_caller  # few functions are called that often

        return python_caller.address(form)

    def count(self, pc: int, times: int, counting: bool) -> None:
        self._form(counting).count(pc, times)

    def counted(self, pc: int, counting: bool) -> int:
        return self._form(counting).counted(pc)

    def install(self, pc: int, address: int, counting: bool) -> None:
        self._form(counting).install(pc, address)

    def remove(self, pc: int, counting: bool) -> None:
        self._form(counting).remove(pc)
