# SPDX-License-Identifier: Apache-2.0
"""Host functions declared as C functions: an address with a signature.

    native_host("root", "(f64) -> (f64)", ctypes.CDLL("libm.so.6").sqrt)

The pointer may be a ctypes function, a cffi function pointer, an object with an `address` (a Numba
`cfunc`), or an int. The signature is checked against the types that the function declares, if it
does; the rest cannot be checked.
"""

from __future__ import annotations

import ctypes
import importlib
from typing import Any

from ferryvm.engine.host_declaration import determinism, parse_signature
from ferryvm.isa.type import Type
from ferryvm.machine.host import HostError, HostFunction
from ferryvm.machine.native import NativeFunction
from ferryvm.program import Signature, has_references

__all__ = ["native_host"]

_NEEDS_GIL = 4
"""ctypes' flag of functions that are called with the GIL held."""
_ALLOWED = "a ctypes or cffi function, an object with an address (a Numba cfunc), or an int"
_MOST = (1 << 64) - 1


def native_host(
    name: str,
    signature: str | Signature,
    pointer: object,
    *,
    keep_alive: object = None,
    summary: str = "",
    pure: bool = False,
    replayable: bool = False,
) -> HostFunction:
    """A host function that is a C function, which native code calls without leaving.

    `signature`: such as "(i64 f64) -> (f64)"; `pointer`: the C function; `keep_alive`: an object
    that must live as long as the pointer is used, beside the pointer itself; `pure`, `replayable`:
    as for `ferryvm.host`. The function is called without the GIL; a fault in it, or a wrong
    signature, ends or corrupts the process. Raises HostError for a pointer that cannot be called
    so.
    """
    if not isinstance(name, str) or not name:
        raise HostError(f"native host function: its name is {name!r}; a text is expected")
    if isinstance(signature, str):
        signature = parse_signature(signature)
    what = f"native host function {name}"
    if has_references(signature):
        raise HostError(
            f"{what} is {signature}; numbers alone are possible: a Python host function gets an "
            "array and can call C with `a.ctypes.data` and `a.size`"
        )
    address = _address(what, pointer)
    if not 0 < address <= _MOST:
        raise HostError(f"{what}: its pointer is {address}; the address of a function is expected")
    _check_declared(what, signature, pointer)
    if len(signature.results) > 1:
        raise HostError(f"{what} has {len(signature.results)} results, at most 1")
    function = NativeFunction(signature, address, (pointer, keep_alive))
    kind = determinism(name, pure, replayable)
    return HostFunction(name, signature, function, summary, determinism=kind)


def _address(what: str, pointer: object) -> int:
    if isinstance(pointer, ctypes._CFuncPtr):  # type: ignore[attr-defined]  # its one base class
        if pointer._flags_ & _NEEDS_GIL:
            raise HostError(f"{what}: {pointer!r} needs the GIL, programs call without it")
        return ctypes.cast(pointer, ctypes.c_void_p).value or 0
    if isinstance(pointer, ctypes.c_void_p):
        return pointer.value or 0
    found = getattr(pointer, "address", pointer)
    if type(pointer).__module__ == "_cffi_backend":
        ffi: Any = importlib.import_module("cffi").FFI()  # loaded already
        try:
            found = int(ffi.cast("uintptr_t", pointer))
        except (TypeError, NotImplementedError):
            raise HostError(f"{what}: {pointer!r} is no pointer; {_ALLOWED} is expected") from None
    if isinstance(found, bool) or not isinstance(found, int):
        kind = type(pointer).__name__
        raise HostError(f"{what}: its pointer is {pointer!r} ({kind}); {_ALLOWED} is expected")
    return found


def _check_declared(what: str, signature: Signature, pointer: object) -> None:
    """Check the signature against the types that a ctypes function, a Numba cfunc or a cffi pointer
    declares, if any."""
    if type(pointer).__module__ == "_cffi_backend":
        _check_cffi(what, signature, pointer)
        return
    if not isinstance(pointer, ctypes._CFuncPtr):  # type: ignore[attr-defined]
        pointer = getattr(pointer, "ctypes", None)  # as a Numba cfunc has
    types = getattr(pointer, "argtypes", None)
    if types is None or not isinstance(pointer, ctypes._CFuncPtr):  # type: ignore[attr-defined]
        return
    found = [_type(t) for t in types]
    result = getattr(pointer, "restype", None)
    results = [] if result is None else [_type(result)]
    if tuple(found) != signature.parameters or tuple(results) != signature.results:
        shown = ", ".join(t.__name__ for t in types)
        returned = getattr(result, "__name__", result)
        raise HostError(f"{what} is to be {signature}, but its pointer is {returned} ({shown})")


def _check_cffi(what: str, signature: Signature, pointer: object) -> None:
    """Check the signature against the type of a cffi pointer; `void *` says nothing."""
    ffi: Any = importlib.import_module("cffi").FFI()
    kind = ffi.typeof(pointer)
    if kind.kind == "pointer" and kind.item.kind == "void":
        return
    if kind.kind != "function":
        raise HostError(
            f"{what}: its pointer is {pointer!r}; the address of a function is expected"
        )
    if kind.ellipsis:
        raise HostError(
            f"{what}: {kind.cname} is variadic, whose calls differ in C; a function with as many "
            "parameters as the signature is expected"
        )
    found = tuple(_cffi_type(ffi, each) for each in kind.args)
    results = () if kind.result.kind == "void" else (_cffi_type(ffi, kind.result),)
    if found != signature.parameters or results != signature.results:
        raise HostError(f"{what} is to be {signature}, but its pointer is {kind.cname}")


def _cffi_type(ffi: Any, kind: Any) -> Type | None:
    """The type of a program that is passed like a type of cffi; None if there is none."""
    if kind.kind in ("pointer", "function"):
        return Type.I64
    if kind.kind not in ("primitive", "enum"):
        return None
    floats = {"float": Type.F32, "double": Type.F64, "long double": None}
    if kind.cname in floats:
        return floats[kind.cname]
    return {4: Type.I32, 8: Type.I64}.get(ffi.sizeof(kind))


def _type(kind: Any) -> Type | None:
    """The type of a program that is passed like a C type; None if there is none."""
    if not isinstance(kind, type):
        return None
    for t, candidates in _SAME.items():
        if issubclass(kind, candidates):
            return t
    if issubclass(kind, ctypes._Pointer | ctypes._CFuncPtr):  # type: ignore[attr-defined]
        return Type.I64
    return None


_SAME: dict[Type, tuple[type[Any], ...]] = {
    Type.I32: (ctypes.c_int32, ctypes.c_uint32),
    Type.I64: (
        *(ctypes.c_int64, ctypes.c_uint64, ctypes.c_size_t, ctypes.c_longlong),
        *(ctypes.c_ulonglong, ctypes.c_void_p, ctypes.c_char_p),
    ),
    Type.F32: (ctypes.c_float,),
    Type.F64: (ctypes.c_double,),
}
"""C types, by the type of a program that is passed like them."""
