# SPDX-License-Identifier: Apache-2.0
"""Host calls performed between runs of an interpreter: `ferryvm.machine.host_loop.HOST_LOOP`.

One function serves all interpreters. It calls functions of Python's limited API.
"""

from __future__ import annotations

import functools

from ferryvm import cache
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.host_loop import PERFORMED, ROWS, CallRow, HostLoopRequest
from ferryvm.machine.item_map import ItemOutcome
from ferryvm_backends._llvm import ir, native
from ferryvm_backends._llvm.arithmetic import WORD, word
from ferryvm_backends._llvm.handler import INT32, POINTER
from ferryvm_backends._llvm.loader import NativeCode
from ferryvm_backends._llvm.word_code import WordCode

_SYMBOL = "ferry_host_loop"
_NOTHING = ir.VoidType()


def address() -> int:
    """The address of the function. Raises BackendError."""
    return _loaded().address(_SYMBOL)


def soon() -> int:
    """The same. Raises NotYetError while it is compiled, in the background."""
    return native.soon(_entry(), _loaded).address(_SYMBOL)


def _entry() -> cache.Entry:
    return cache.Entry("host-loop", cache.key([native.key("ferryvm_backends._llvm"), _SYMBOL]))


@functools.cache
def _loaded() -> NativeCode:
    def build() -> bytes:
        from ferryvm_backends._llvm.build import compile_loops  # it takes LLVM

        return compile_loops(module())

    return native.made(_entry(), build)[0]


def module() -> ir.Module:
    """The function as LLVM IR."""
    made = ir.Module(_SYMBOL)
    function = ir.Function(made, ir.FunctionType(INT32, [POINTER]), _SYMBOL)
    function.attributes |= {"nounwind", '"no-builtins"'}
    _HostLoop(function).build()
    return made


class _HostLoop(WordCode):
    def __init__(self, function: ir.Function) -> None:
        super().__init__(function)
        self._request = self.builder.ptrtoint(function.args[0], WORD)
        self._control = self._given("control")
        self._api: dict[str, ir.Function] = {}

    def build(self) -> None:
        """Emit the function."""
        builder = self.builder
        self._set_failed(0)
        again = self.function.append_basic_block("again")
        builder.branch(again)
        builder.position_at_end(again)
        self._return_if(builder.icmp_unsigned("!=", self._run(), word(Status.HOST)), None)
        self._check()
        self._set("fuel", builder.sub(self._get("fuel"), self._given("counting")))
        before = self.at(self._given("drives"))
        self._perform()
        is_entered = builder.icmp_unsigned("!=", self.at(self._given("drives")), before)
        self._return_if(is_entered, PERFORMED)
        builder.branch(again)

    def _run(self) -> ir.Value:
        """Run the machine, and suspended items of launches; the status that it was left with."""
        builder = self.builder
        state = self._call("PyEval_SaveThread", POINTER)
        self._status = self.variable(self._entered("run", INT32, self._pointer(self._control)))
        resume = self._given("resume")
        with builder.if_then(builder.icmp_unsigned("!=", resume, word(0))):
            is_due = self.variable(word(1))

            def is_left() -> ir.Value:
                status = builder.load(self._status)
                is_launch = builder.icmp_unsigned("==", status, word(Status.LAUNCH))
                return builder.and_(is_launch, builder.icmp_unsigned("!=", is_due_now(), word(0)))

            def is_due_now() -> ir.Value:
                return builder.load(is_due)

            with self.while_(is_left):
                given = (self._pointer(self._given("map")), self._pointer(self._control))
                outcome = self._entered("resume", WORD, *given)
                is_done = builder.icmp_unsigned("==", outcome, word(ItemOutcome.DONE))
                builder.store(builder.zext(is_done, WORD), is_due)
                builder.store(self._half("status"), self._status)
        self._call("PyEval_RestoreThread", _NOTHING, state)
        return builder.load(self._status)

    def _check(self) -> None:
        """Return unless the machine is at a call of a row, and nothing interrupts it."""
        builder = self.builder
        pc, sp = self._get("pc"), self._get("sp")
        number = builder.and_(pc, word(ROWS - 1))
        row = builder.add(self._given("rows"), builder.mul(number, word(WORD_BYTES * len(CallRow))))
        known, size, wanted = (self.at(row, WORD_BYTES * each) for each in CallRow)
        top = builder.add(self._get("fp"), size)
        self._exit_id = self._half("exit_id")
        for found, expected in ((known, pc), (top, sp), (self._exit_id, wanted)):
            self._return_if(builder.icmp_unsigned("!=", found, expected), Status.HOST)
        is_past = builder.icmp_unsigned(">", sp, self._given("stack_words"))
        self._return_if(is_past, Status.HOST)
        is_set = builder.icmp_unsigned("!=", self._half("interrupt"), word(0))
        self._return_if(is_set, Status.HOST)

    def _perform(self) -> None:
        """Perform the call; return if it raises."""
        builder = self.builder
        performing = self._pointer(self._given("performing"))
        function = self._call("PyList_GetItem", POINTER, performing, self._exit_id)
        self._call("Py_IncRef", _NOTHING, function)  # the call may replace it
        result = self._call("PyObject_CallObject", POINTER, function, self._pointer(word(0)))
        self._call("Py_DecRef", _NOTHING, function)
        is_raised = builder.icmp_unsigned("==", builder.ptrtoint(result, WORD), word(0))
        with builder.if_then(is_raised, likely=False):
            self._set_failed(1)
            builder.ret(ir.Constant(INT32, int(Status.HOST)))
        self._call("Py_DecRef", _NOTHING, result)

    # --- pieces -----------------------------------------------------------------------------

    def _return_if(self, condition: ir.Value, status: int | None) -> None:
        """`status`: None for the one that the machine was left with."""
        with self.builder.if_then(condition, likely=False):
            found = self.builder.load(self._status) if status is None else word(status)
            self.builder.ret(self.builder.trunc(found, INT32))

    def _entered(self, name: str, result: ir.Type, *arguments: ir.Value) -> ir.Value:
        """The result of a function of the request, as a word."""
        kind = ir.FunctionType(result, [POINTER for _ in arguments])
        callee = ir.Callee(self._pointer(self._given(name)), kind)
        found = self.builder.call(callee, [*arguments])
        return self.builder.zext(found, WORD) if result is INT32 else found

    def _call(self, name: str, result: ir.Type, *arguments: ir.Value) -> ir.Value:
        """A call of a function of Python's API."""
        if name not in self._api:
            kind = ir.FunctionType(result, [each.type for each in arguments])
            self._api[name] = ir.Function(self.function.module, kind, name)
        return self.builder.call(self._api[name], arguments)

    def _given(self, name: str) -> ir.Value:
        return self.at(self._request, vars(HostLoopRequest)[name].offset)

    def _set_failed(self, value: int) -> None:
        self.put(word(value), self._request, vars(HostLoopRequest)["failed"].offset)

    def _get(self, name: str) -> ir.Value:
        return self.at(self._control, vars(ControlBlock)[name].offset)

    def _set(self, name: str, value: ir.Value) -> None:
        self.put(value, self._control, vars(ControlBlock)[name].offset)

    def _half(self, name: str) -> ir.Value:
        """A half word of the control block, as a word."""
        offset: int = vars(ControlBlock)[name].offset
        pointer = self._pointer(self.builder.add(self._control, word(offset)))
        return self.builder.zext(self.builder.load(pointer, typ=INT32, align=4), WORD)

    def _pointer(self, number: ir.Value) -> ir.Value:
        return self.builder.inttoptr(number, POINTER)
