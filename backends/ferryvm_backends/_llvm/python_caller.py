# SPDX-License-Identifier: Apache-2.0
"""Built-in functions of Python that enter a program: see `ferryvm.machine.python_call`.

Each is code of its own for a form of calls, generated when it is first wanted and never freed: the
objects of built-in functions refer to it by address.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

from ferryvm import cache
from ferryvm.isa.frame import HEADER_WORDS
from ferryvm.isa.type import WORD_BYTES
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.machine.python_call import (
    MOST_ATTEMPTS,
    TYPE_OFFSET,
    ArmedWord,
    Boxed,
    CallForm,
    DataField,
    Identity,
    Reader,
)
from ferryvm_backends._llvm import ir, native
from ferryvm_backends._llvm.arithmetic import WORD, word
from ferryvm_backends._llvm.handler import BYTE, INT32, POINTER
from ferryvm_backends._llvm.loader import NativeCode

_SYMBOL = "ferry_python_caller"
_DOUBLE = ir.DoubleType()

_READERS = {
    Reader.NAME: "PyDict_GetItem",
    Reader.CODE: "PyFunction_GetCode",
    Reader.DEFAULTS: "PyFunction_GetDefaults",
    Reader.NAMED_DEFAULTS: "PyFunction_GetKwDefaults",
    Reader.CELL: "PyCell_Get",
}


def address(form: CallForm) -> int:
    """The address of the caller. Raises BackendError."""
    return _loaded(form).address(_SYMBOL)


@functools.cache
def _loaded(form: CallForm) -> NativeCode:
    def build() -> bytes:
        from ferryvm_backends._llvm.build import compile_loops  # it takes LLVM

        return compile_loops(module(form))

    names = [*(each.value for each in form.parameters), form.result.value, str(form.releases)]
    key = cache.key([native.key("ferryvm_backends._llvm"), _SYMBOL, *names])
    return native.made(cache.Entry("python-caller", key), build)[0]


def module(form: CallForm) -> ir.Module:
    """The caller as LLVM IR."""
    made = ir.Module(_SYMBOL)
    caller = ir.Function(made, ir.FunctionType(POINTER, [POINTER] * 3), _SYMBOL)
    caller.attributes |= {"nounwind", '"no-builtins"'}
    _Caller(caller, form).build()
    return made


class _Caller:
    """Builds a caller."""

    def __init__(self, function: ir.Function, form: CallForm) -> None:
        self._function, self._form = function, form
        self._builder = ir.IRBuilder(function.append_basic_block())
        self._self, self._args, self._named = function.args
        self._otherwise = function.append_basic_block("otherwise")
        self._api: dict[str, ir.Function] = {}

    def build(self) -> None:
        """Emit the function."""
        builder, form = self._builder, self._form
        self._overflow = builder.alloca(INT32, align=4)
        self._error, self._type, self._traceback, self._attempts, self._found = (
            builder.alloca(WORD, align=WORD_BYTES) for _ in range(5)
        )
        data = self._call("PyTuple_GetItem", POINTER, self._self, word(0))
        self._data = self._call("PyBytes_AsString", POINTER, data)
        self._refuse_names()
        size = self._call("PyTuple_Size", WORD, self._args)
        self._require(builder.icmp_unsigned("==", size, word(len(form.parameters))))
        given = [self._argument(n, each) for n, each in enumerate(form.parameters)]
        self._armed = self._object(DataField.ARMED)
        ident = self._call("PyThread_get_thread_ident", WORD)
        self._require(builder.icmp_unsigned("==", ident, self._armed_word(ArmedWord.THREAD)))
        run = self._armed_word(ArmedWord.RUN)
        self._require(builder.icmp_unsigned("!=", run, word(0)))
        self._compare_identities()
        pairs = zip(form.parameters, given, strict=True)
        words = [self._unboxed(each, value) for each, value in pairs]
        self._free = self._object(DataField.FREE)
        owner = self._load(self._free, WORD)
        self._require(builder.icmp_unsigned("!=", owner, word(0)))
        self._control = self._object(DataField.CONTROL)
        self._push(words)
        self._run(run, owner)
        self._return_result(owner)
        self._leave(owner)
        builder.position_at_end(self._otherwise)
        otherwise = self._object(DataField.OTHERWISE)
        builder.ret(self._call("PyObject_Call", POINTER, otherwise, self._args, self._named))

    # --- the call ---------------------------------------------------------------------------

    def _refuse_names(self) -> None:
        """Go on only without arguments by name: a dict of none is there after `f(*args, **{})`."""
        builder = self._builder
        self._store(word(0), self._found)
        with builder.if_then(builder.not_(self._is_null(self._named)), likely=False):
            self._store(self._call("PyDict_Size", WORD, self._named), self._found)
        size = self._load(self._found, WORD)
        self._require(builder.icmp_unsigned("==", size, word(0)))

    def _argument(self, number: int, boxed: Boxed) -> ir.Value:
        """An argument, of exactly the type."""
        value = self._call("PyTuple_GetItem", POINTER, self._args, word(number))
        type_ = self._load(self._at(value, TYPE_OFFSET), WORD)
        wanted = self._field(DataField[boxed.name])
        self._require(self._builder.icmp_unsigned("==", type_, wanted))
        return value

    def _compare_identities(self) -> None:
        """Go on only if all objects that the code depends on are in their places."""
        builder, append = self._builder, self._function.append_basic_block
        start, row = builder.block, append("row")
        builder.branch(row)
        builder.position_at_end(row)
        number = builder.phi(WORD)
        number.add_incoming(word(0), start)
        is_left = builder.icmp_unsigned("<", number, self._field(DataField.IDENTITIES))
        compare, compared = append("compare"), append("compared")
        builder.cbranch(is_left, compare, compared)
        builder.position_at_end(compare)
        offset = builder.mul(number, word(WORD_BYTES * len(Identity._fields)))
        rows = self._at(self._data, WORD_BYTES * len(DataField))
        at = builder.gep(rows, [offset], source_etype=BYTE)
        reader, place, key, value = (
            self._load(self._at(at, WORD_BYTES * each), WORD)
            for each in range(len(Identity._fields))
        )
        ready = append("ready")
        object_, name = self._pointer(place), self._pointer(key)
        choice = builder.switch(reader, self._otherwise)
        for each, function in _READERS.items():
            block = append("read")
            choice.add_case(word(each), block)
            builder.position_at_end(block)
            given = (object_, name) if each is Reader.NAME else (object_,)
            found = self._call(function, WORD, *given)
            self._store(found, self._found)
            if each is Reader.CELL:  # the only one that returns a new reference
                self._call("Py_DecRef", ir.VoidType(), self._pointer(found))
            builder.branch(ready)
        builder.position_at_end(ready)
        self._require(builder.icmp_unsigned("==", self._load(self._found, WORD), value))
        number.add_incoming(builder.add(number, word(1)), builder.block)
        builder.branch(row)
        builder.position_at_end(compared)

    def _unboxed(self, boxed: Boxed, value: ir.Value) -> ir.Value:
        """The word of an argument."""
        builder = self._builder
        if boxed is Boxed.FLOAT:
            return builder.bitcast(self._call("PyFloat_AsDouble", _DOUBLE, value), WORD)
        if boxed is Boxed.INT:
            found = self._call("PyLong_AsLongLongAndOverflow", WORD, value, self._overflow)
            is_large = builder.load(self._overflow)
            self._require(builder.icmp_unsigned("==", is_large, ir.Constant(INT32, 0)))
            return found
        number = builder.ptrtoint(value, WORD)
        is_true = builder.icmp_unsigned("==", number, self._field(DataField.TRUE))
        return builder.zext(is_true, WORD)

    def _push(self, words: Sequence[ir.Value]) -> None:
        """Store the frame and the registers of the call."""
        header = [self._field(DataField.RETURN_PC), self._field(DataField.DISTANCE)]
        self._stack = self._object(DataField.STACK)
        for number, each in enumerate([*words, *header]):
            self._store(each, self._at(self._stack, WORD_BYTES * number))
        registers = (DataField.ENTRY, DataField.SP, DataField.FP)
        self._set_registers(word(Status.RUNNING), [self._field(each) for each in registers])
        self._set_half("interrupt", word(0))

    def _set_registers(self, status: ir.Value, registers: Sequence[ir.Value]) -> None:
        for name, value in (("status", status), ("trap", word(0)), ("exit_id", word(0))):
            self._set_half(name, value)
        for name, value in zip(("pc", "sp", "fp"), registers, strict=True):
            self._store(value, self._of_control(name))

    def _run(self, run: ir.Value, owner: ir.Value) -> None:
        """Enter the machine. With the interpreter lock nobody can see that it is in use."""
        builder = self._builder
        kind = ir.FunctionType(INT32, [POINTER])
        callee = ir.Callee(self._pointer(run), kind)
        if not self._form.releases:
            self._status = builder.call(callee, [self._control])
            return
        self._store(word(0), self._free)
        state = self._call("PyEval_SaveThread", POINTER)
        self._status = builder.call(callee, [self._control])
        self._call("PyEval_RestoreThread", ir.VoidType(), state)

    def _return_result(self, owner: ir.Value) -> None:
        """Return the result of a call that has halted; else go on."""
        builder = self._builder
        halted = ir.Constant(INT32, int(Status.HALT))
        is_halted = builder.icmp_unsigned("==", self._status, halted)
        pc = self._load(self._of_control("pc"), WORD)
        is_there = builder.icmp_unsigned("==", pc, self._field(DataField.HALT))
        with builder.if_then(builder.and_(is_halted, is_there), likely=True):
            if self._form.releases:
                self._store(owner, self._free)
            builder.ret(self._boxed())

    def _boxed(self) -> ir.Value:
        """The result as an object."""
        builder, result = self._builder, self._form.result
        if result is Boxed.NONE:
            none = self._object(DataField.NONE)
            self._call("Py_IncRef", ir.VoidType(), none)
            return none
        place = self._at(self._stack, WORD_BYTES * (len(self._form.parameters) + HEADER_WORDS))
        if result is Boxed.FLOAT:
            number = builder.load(place, typ=_DOUBLE, align=WORD_BYTES)
            return self._call("PyFloat_FromDouble", POINTER, number)
        if result is Boxed.INT:
            return self._call("PyLong_FromLongLong", POINTER, self._load(place, WORD))
        half = builder.load(place, typ=INT32, align=4)
        is_false = builder.icmp_unsigned("==", half, ir.Constant(INT32, 0))
        true, false = self._object(DataField.TRUE), self._object(DataField.FALSE)
        found = builder.select(is_false, false, true)
        self._call("Py_IncRef", ir.VoidType(), found)
        return found

    # --- calls that do not halt -------------------------------------------------------------

    def _leave(self, owner: ir.Value) -> None:
        """Let Python go on: call `left` until it has taken the call."""
        builder = self._builder
        nothing = ir.VoidType()
        true = self._pointer(owner)
        again = self._function.append_basic_block("again")
        lost = self._function.append_basic_block("lost")
        if not self._form.releases:
            self._store(word(0), self._free)
        self._call("Py_DecRef", nothing, true)  # `left` puts another reference there
        none = self._field(DataField.NONE)
        self._call("Py_IncRef", nothing, self._pointer(none))
        self._store(none, self._error)
        self._store(word(MOST_ATTEMPTS), self._attempts)
        builder.branch(again)

        builder.position_at_end(again)
        taken = self._at(self._armed, WORD_BYTES * ArmedWord.TAKEN)
        self._store(word(0), taken)
        error = self._pointer(self._load(self._error, WORD))
        given = self._call("PyTuple_New", POINTER, word(2))
        with builder.if_then(self._is_null(given), likely=False):
            self._call("Py_DecRef", nothing, error)
            builder.branch(lost)
        self._call("Py_IncRef", nothing, self._args)
        self._call("PyTuple_SetItem", INT32, given, word(0), self._args)
        self._call("PyTuple_SetItem", INT32, given, word(1), error)
        left = self._object(DataField.LEFT)
        found = self._call("PyObject_Call", POINTER, left, given, self._pointer(word(0)))
        self._call("Py_DecRef", nothing, given)
        is_taken = builder.icmp_unsigned("!=", self._load(taken, WORD), word(0))
        is_value = builder.not_(self._is_null(found))
        with builder.if_then(builder.or_(is_taken, is_value), likely=True):
            builder.ret(found)
        attempts = builder.sub(self._load(self._attempts, WORD), word(1))
        self._store(attempts, self._attempts)
        with builder.if_then(builder.icmp_unsigned("==", attempts, word(0)), likely=False):
            builder.branch(lost)
        self._fetch()
        builder.branch(again)

        builder.position_at_end(lost)
        idle = (DataField.IDLE_PC, DataField.IDLE_SP, DataField.IDLE_FP)
        status = self._field(DataField.IDLE_STATUS)
        self._set_registers(status, [self._field(each) for each in idle])
        self._call("Py_IncRef", nothing, true)
        self._store(owner, self._free)
        builder.ret(self._pointer(word(0)))

    def _fetch(self) -> None:
        """Take the exception that is raised, with its traceback."""
        places, nothing = (self._type, self._error, self._traceback), ir.VoidType()
        self._call("PyErr_Fetch", nothing, *places)
        self._call("PyErr_NormalizeException", nothing, *places)
        traceback = self._pointer(self._load(self._traceback, WORD))
        with self._builder.if_then(self._builder.not_(self._is_null(traceback))):
            error = self._pointer(self._load(self._error, WORD))
            self._call("PyException_SetTraceback", INT32, error, traceback)
            self._call("Py_DecRef", nothing, traceback)
        self._call("Py_DecRef", nothing, self._pointer(self._load(self._type, WORD)))

    # --- pieces -----------------------------------------------------------------------------

    def _require(self, holds: ir.Value) -> None:
        """Go on only if it holds, else to the slow path."""
        onward = self._function.append_basic_block("onward")
        self._builder.cbranch(holds, onward, self._otherwise, (99, 1))
        self._builder.position_at_end(onward)

    def _call(self, name: str, result: ir.Type, *arguments: ir.Value) -> ir.Value:
        """A call of a function of Python's API."""
        if name not in self._api:
            kind = ir.FunctionType(result, [each.type for each in arguments])
            self._api[name] = ir.Function(self._function.module, kind, name)
        return self._builder.call(self._api[name], arguments)

    def _at(self, base: ir.Value, offset: int) -> ir.Value:
        return self._builder.gep(base, [word(offset)], source_etype=BYTE)

    def _load(self, place: ir.Value, kind: ir.Type) -> ir.Value:
        return self._builder.load(place, typ=kind, align=WORD_BYTES)

    def _store(self, value: ir.Value, place: ir.Value) -> None:
        self._builder.store(value, place, align=WORD_BYTES)

    def _field(self, field: DataField) -> ir.Value:
        return self._load(self._at(self._data, WORD_BYTES * field), WORD)

    def _object(self, field: DataField) -> ir.Value:
        return self._pointer(self._field(field))

    def _armed_word(self, number: ArmedWord) -> ir.Value:
        return self._load(self._at(self._armed, WORD_BYTES * number), WORD)

    def _of_control(self, name: str) -> ir.Value:
        offset: int = vars(ControlBlock)[name].offset
        return self._at(self._control, offset)

    def _set_half(self, name: str, value: ir.Value) -> None:
        half = self._builder.trunc(value, INT32)
        self._builder.store(half, self._of_control(name), align=4)

    def _pointer(self, number: ir.Value) -> ir.Value:
        return self._builder.inttoptr(number, POINTER)

    def _is_null(self, pointer: ir.Value) -> ir.Value:
        return self._builder.icmp_unsigned("==", self._builder.ptrtoint(pointer, WORD), word(0))
