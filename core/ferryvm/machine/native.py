# SPDX-License-Identifier: Apache-2.0
"""Native functions: host functions that are C functions, which native code calls by address.

    control.natives   │ function │ caller │ parameters │ results │     a row for each host import
                                     └──> void caller(function, first argument's address)

A *caller* belongs to a signature: it reads arguments from stack words, calls the function by the C
ABI and stores the result in the first argument's word. A row of zeros is an import for which code
leaves with HOST; all rows are zeros if nothing was bound.
"""

from __future__ import annotations

import ctypes
import enum
from typing import Any

from ferryvm.float_environment import ours
from ferryvm.isa.type import Type, ValueType
from ferryvm.program import Signature

NATIVE_WORDS = 4
"""Words of a row of the table (a power of two)."""


class NativeField(enum.IntEnum):
    """Words of a row."""

    FUNCTION = 0
    """Address of the C function; 0: native code does not call this import."""
    CALLER = 1
    """Address of the caller for its signature."""
    PARAMETERS = 2
    """Number of parameters."""
    RESULTS = 3
    """Number of results, 0 or 1."""


# ctypes passes subclasses of its types unconverted, so the bits of a NaN are preserved.
class _I32(ctypes.c_int32):
    pass


class _I64(ctypes.c_int64):
    pass


class _F32(ctypes.c_float):
    pass


class _F64(ctypes.c_double):
    pass


_TYPES: dict[ValueType, type[Any]] = {
    Type.I32: _I32,
    Type.I64: _I64,
    Type.F32: _F32,
    Type.F64: _F64,
}


class NativeFunction:
    """A C function that Python can call too, with numbers."""

    def __init__(self, signature: Signature, address: int, keep_alive: object = None) -> None:
        """`keep_alive`: an object that must live as long as this, so that the address remains
        valid."""
        self.signature, self.address, self.keep_alive = signature, address, keep_alive
        results = [_TYPES[t] for t in signature.results]
        self.types = [_TYPES[t] for t in signature.parameters]
        """ctypes of the parameters."""
        self.c_function = ctypes.CFUNCTYPE(results[0] if results else None, *self.types)(address)
        """Takes and returns values of these types; it releases the GIL."""

    def __call__(self, *arguments: Any) -> int | float | None:
        if len(arguments) != len(self.types):
            count = len(self.types)
            raise TypeError(f"a native function of {count} arguments was given {len(arguments)}")
        with ours():
            values = [t(a) for t, a in zip(self.types, arguments, strict=True)]
            result: Any = self.c_function(*values)
        return None if result is None else result.value
