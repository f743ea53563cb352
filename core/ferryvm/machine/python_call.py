# SPDX-License-Identifier: Apache-2.0
"""Calls of a program by a built-in function of Python: from objects to stack words and back.

    self ──> (data, owners …)     data: │ the `DataField`s │ rows of `Identity` │
    args ──> words of the stack ──> run(control) ──> HALT: the result as an object
      │                                       └────> anything else: `left(args, error)`
      └─ not exactly these types, in use, another thread, changed names: `otherwise(*args)`

A *caller* belongs to a `CallForm`: a C function `PyObject *f(PyObject *self, PyObject *args,
PyObject *named)` (METH_VARARGS | METH_KEYWORDS) that a backend generates. It calls functions of
Python's limited API, and some that read functions and cells. It reads two fields of objects by their offsets: the
type of each, and `Possession.free`; `ferryvm.engine.built_in` tests both before.
"""

from __future__ import annotations

import enum

from ferryvm.isa.type import WORD_BYTES
from ferryvm.named_tuple import NamedTuple


class Boxed(enum.Enum):
    """Types of objects that a caller unboxes, or boxes."""

    FLOAT = "float"
    """A word of type f64."""
    INT = "int"
    """A word of type i64; a larger int is for `otherwise`."""
    BOOL = "bool"
    """A word of type i32."""
    NONE = "None"
    """No word; only as a result."""


class CallForm(NamedTuple):
    """Calls that one caller serves."""

    parameters: tuple[Boxed, ...]
    result: Boxed
    releases: bool
    """True to release the interpreter lock while the program runs. A program that soon ends in any
    case need not."""


API = (
    "PyTuple_Size", "PyTuple_GetItem", "PyTuple_New", "PyTuple_SetItem", "PyBytes_AsString",
    "PyFloat_AsDouble", "PyFloat_FromDouble", "PyLong_AsLongLongAndOverflow",
    "PyLong_FromLongLong", "PyObject_Call", "PyEval_SaveThread", "PyEval_RestoreThread",
    "PyThread_get_thread_ident", "PyErr_Fetch", "PyErr_NormalizeException",
    "PyException_SetTraceback", "Py_IncRef", "Py_DecRef", "PyDict_Size", "PyDict_GetItem",
    "PyFunction_GetCode", "PyFunction_GetDefaults", "PyFunction_GetKwDefaults", "PyCell_Get",
    "PyList_GetItem", "PyObject_CallObject",
)  # fmt: skip
"""Functions of Python that native code may call."""

TYPE_OFFSET = WORD_BYTES
"""Bytes from the start of an object to the address of its type, in a build of CPython with an
interpreter lock that does not count all references."""


class DataField(enum.IntEnum):
    """Words of the data."""

    FLOAT = 0
    INT = 1
    BOOL = 2
    TRUE = 3
    FALSE = 4
    NONE = 5
    """Addresses of types and objects, to here."""
    OTHERWISE = 6
    LEFT = 7
    """Callables."""
    IDENTITIES = 8
    """The number of rows that follow the fields."""
    FREE = 9
    """Address of the field of a `Possession`."""
    ARMED = 10
    """Address of the `ArmedWord`s."""
    CONTROL = 11
    """Address of the control block."""
    STACK = 12
    """Address of the first argument's word."""
    ENTRY = 13
    SP = 14
    FP = 15
    """Registers at the entry."""
    RETURN_PC = 16
    DISTANCE = 17
    """The header of the stub's frame."""
    HALT = 18
    """pc of the stub's `halt`."""
    IDLE_STATUS = 19
    IDLE_PC = 20
    IDLE_SP = 21
    IDLE_FP = 22
    """Registers between calls."""


class Reader(enum.IntEnum):
    """Functions that an identity reads an object by."""

    NAME = 0
    """An item of a dict, by its key."""
    CODE = 1
    DEFAULTS = 2
    NAMED_DEFAULTS = 3
    """Of a function."""
    CELL = 4
    """The content of a cell."""


class Identity(NamedTuple):
    """An object that the code depends on: a call is for `otherwise` if another one, or none, is
    found in its place. A row of the data has these words, with addresses."""

    reader: Reader
    place: object
    """The dict, function or cell."""
    key: str | None
    """Of a name."""
    value: object
    """The object that must be there; `ABSENT` for none."""


ABSENT = object()
"""No object, in an `Identity`."""


class ArmedWord(enum.IntEnum):
    """Words by which `ferryvm.engine.call.Calls` lets code enter the machine."""

    THREAD = 0
    """The thread that may do so while no call is active; 0 for none."""
    RUN = 1
    """Address of a C function as `ferryvm.backend.DirectEntry.run`; 0 if there is none."""
    TAKEN = 2
    """1 once `left` has taken the call over: it will give the execution back. Before that the
    exception of a signal handler may end `left`, which is called again then, with it."""


MOST_ATTEMPTS = 8
"""Calls of `left` at most. The exception that it raises in the last attempt before it has taken
the call is that of the call."""
