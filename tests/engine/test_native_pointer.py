# SPDX-License-Identifier: Apache-2.0
"""Pointers that native host functions are made of, held against the signatures."""

from __future__ import annotations

import ctypes
import gc
import math
import weakref
from typing import Any

import pytest

import ferryvm
from ferryvm import HostFunction, native_host
from ferryvm.machine.host import Determinism, HostError

from .native_call import calling


def answer(function: HostFunction, signature: str, *arguments: float) -> object:
    """The result of a program that passes its arguments on."""
    instance = ferryvm.Engine("threaded").instantiate(calling(signature), hosts=[function])
    return instance.call("call", *arguments)


def test_pointers_of_all_kinds() -> None:
    sqrt = ctypes.CDLL(None).sqrt
    address = ctypes.cast(sqrt, ctypes.c_void_p).value

    class Compiled:
        """As a Numba cfunc: an address, and perhaps a function of ctypes."""

    compiled: Any = Compiled()
    compiled.address = address
    for pointer in (sqrt, address, ctypes.c_void_p(address), compiled):
        function = native_host("f", "(f64) -> (f64)", pointer)
        assert function(2.25) == 1.5
        assert answer(function, "(f64) -> (f64)", 2.0) == math.sqrt(2.0)
    compiled.ctypes = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(address)
    assert native_host("f", "(f64) -> (f64)", compiled)(2.25) == 1.5
    with pytest.raises(
        HostError, match=r"is to be \(i64\) -> \(f64\), but its pointer is c_double"
    ):
        native_host("f", "(i64) -> (f64)", compiled)


def test_cffi_pointer_is_held_against_the_signature() -> None:
    cffi = pytest.importorskip("cffi", reason="cffi is not installed")
    ffi = cffi.FFI()
    ffi.cdef("double sqrt(double); int printf(const char *, ...); int64_t labs(int64_t);")
    library = ffi.dlopen(None)
    assert answer(native_host("f", "(f64) -> (f64)", library.sqrt), "(f64) -> (f64)", 2.25) == 1.5
    assert answer(native_host("f", "(i64) -> (i64)", library.labs), "(i64) -> (i64)", -7) == 7
    untyped = ffi.cast("void *", library.sqrt)
    assert native_host("f", "(f64) -> (f64)", untyped)(2.25) == 1.5
    for kind, signature in (
        ("int32_t (*)(void *, float)", "(i64 f32) -> (i32)"),
        ("void (*)(unsigned, size_t)", "(i32 i64)"),
    ):
        native_host("f", signature, ffi.cast(kind, 1))
    for pointer, message in (
        (library.sqrt, r"is to be \(i64\) -> \(i64\), but its pointer is double\(\*\)\(double\)"),
        (library.printf, r"int\(\*\)\(char \*, ...\) is variadic, whose calls differ in C"),
        (ffi.cast("float (*)(int8_t)", 1), r"is to be .* but its pointer is float\(\*\)\(int8_t\)"),
        (ffi.cast("int64_t (*)(int64_t)", 0), "its pointer is 0; the address of a function"),
        (ffi.NULL, "its pointer is 0; the address of a function"),
        (ffi.new("int *"), "its pointer is <cdata 'int \\*'.*; the address of a function"),
        (ffi.new("struct { int a; } *")[0], "is no pointer; a ctypes or cffi function"),
    ):
        with pytest.raises(HostError, match=f"^native host function f.*{message}"):
            native_host("f", "(i64) -> (i64)", pointer)


@pytest.mark.filterwarnings("ignore")  # what Numba says of versions is not ours
def test_numba_cfunc_is_called_and_held_against_the_signature() -> None:
    numba = pytest.importorskip("numba", reason="Numba is not installed, nor among what tests need")

    @numba.cfunc("float64(float64, int64)")  # type: ignore[untyped-decorator] # Numba's
    def scaled(x: float, n: int) -> float:
        return x * n

    function = native_host("f", "(f64 i64) -> (f64)", scaled)
    assert answer(function, "(f64 i64) -> (f64)", 1.5, 4) == 6.0
    with pytest.raises(HostError, match=r"but its pointer is c_double \(c_double, c_"):
        native_host("f", "(f64) -> (f64)", scaled)


def test_address_that_llvmlite_compiled_to_lives_as_long_as_the_host_function() -> None:
    llvm = pytest.importorskip("llvmlite.binding")
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    text = """
define i64 @thrice(i64 %x) {
  %y = mul i64 %x, 3
  ret i64 %y
}
"""
    machine = llvm.Target.from_default_triple().create_target_machine()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(text), machine)
    engine.finalize_object()
    address = engine.get_function_address("thrice")
    function = native_host("f", "(i64) -> (i64)", address, keep_alive=engine)
    alive = weakref.ref(engine)
    del engine
    gc.collect()
    assert alive() is not None
    assert answer(function, "(i64) -> (i64)", -14) == -42
    del function
    gc.collect()
    assert alive() is None


@pytest.mark.parametrize(
    ("pointer", "message"),
    [
        (0, "its pointer is 0; the address of a function is expected"),
        (-1, "its pointer is -1"),
        (1 << 64, "its pointer is 18446744073709551616"),
        (ctypes.c_void_p(None), "its pointer is 0"),
        (ctypes.CFUNCTYPE(None)(), "its pointer is 0"),
        (True, r"its pointer is True \(bool\); a ctypes or cffi function"),
        (math.sqrt, r"its pointer is <built-in function sqrt> \(builtin_function_or_method\)"),
        (ctypes.pythonapi.PyErr_CheckSignals, "needs the GIL, programs call without it"),
        (
            ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_int32)(lambda n: n),
            r"is to be \(f64\) -> \(f64\), but its pointer is c_double \(c_int\)",
        ),
        (
            ctypes.CFUNCTYPE(ctypes.c_float, ctypes.c_double)(lambda n: n),
            r"but its pointer is c_float \(c_double\)",
        ),
    ],
)
def test_what_is_no_pointer_is_refused(pointer: object, message: str) -> None:
    with pytest.raises(HostError, match=f"^native host function f.*{message}"):
        native_host("f", "(f64) -> (f64)", pointer)


@pytest.mark.parametrize(
    ("signature", "message"),
    [
        ("f64 -> f64", "has no parentheses"),
        ("(double) -> (f64)", "there is no type 'double'"),
        ("(f64) -> (f64 f64)", "2 results, at most 1"),
    ],
)
def test_wrong_signatures_are_refused(signature: str, message: str) -> None:
    with pytest.raises(HostError, match=message):
        native_host("f", signature, ctypes.CDLL(None).sqrt)


def test_it_is_declared_pure_or_replayable() -> None:
    sqrt = ctypes.CDLL(None).sqrt
    pure = native_host("f", "(f64) -> (f64)", sqrt, pure=True)
    assert pure.determinism is Determinism.PURE
    with pytest.raises(HostError, match="pure and replayable"):
        native_host("f", "(f64) -> (f64)", sqrt, pure=True, replayable=True)


def test_a_program_with_another_signature_is_refused() -> None:
    function = native_host("f", "(f64) -> (f64)", ctypes.CDLL(None).sqrt)
    with pytest.raises(HostError, match="the program imports it as"):
        ferryvm.Engine("threaded").instantiate(calling("(f32) -> (f32)"), hosts=[function])
