# SPDX-License-Identifier: Apache-2.0
"""LLVM for this processor: its target machine, modules in its own form, and its loader.

Importing this module loads LLVM, which takes longer than most programs run: a run in an interpreter
with cached code needs only `loader`.
"""

from __future__ import annotations

import contextlib
import functools
import threading
from collections.abc import Callable, Iterator

import llvmlite.binding as llvm
from llvmlite.binding import ffi

from ferryvm_backends._llvm.loader import NativeCode


@functools.cache
def target_machine(level: int = 2) -> llvm.TargetMachine:
    """LLVM's description of this processor, and how code for it is made.

    `level`: of LLVM's code generator, from 0, the soonest done, to 3.
    """
    return _target_machine(level)


def _target_machine(level: int = 2) -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu, features = host_processor()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu,
        features=features,
        opt=level,
        reloc="static",
        codemodel="jitdefault",
    )


_generation = threading.Lock()


@contextlib.contextmanager
def _generation_of(reduces_strength: bool) -> Iterator[None]:
    """Context in which code is generated, one module at a time; without the reduction of strength
    in loops if that is not wanted.

    LLVM has a switch of the process for it and none of a function. While it is off, code that
    another user of llvmlite generates in another thread lacks the pass, too, and is right as well.
    """
    with _generation:
        if reduces_strength:
            yield
            return
        llvm.set_option("ferryvm", "-disable-lsr=true")
        try:
            yield
        finally:
            llvm.set_option("ferryvm", "-disable-lsr=false")


def object_code(module: llvm.ModuleRef, level: int = 2, *, reduces_strength: bool = True) -> bytes:
    """The object code of a module; `level`: of LLVM's code generator; `reduces_strength`: in
    loops."""
    with _generation_of(reduces_strength):
        return bytes(target_machine(level).emit_object(module))


def assembly(module: llvm.ModuleRef, *, reduces_strength: bool = True) -> str:
    """The assembly of a module, otherwise as `object_code`."""
    with _generation_of(reduces_strength):
        return str(target_machine().emit_assembly(module))


@functools.cache
def host_processor() -> tuple[str, str]:
    """Name and features of this processor, cached, since every loaded object needs them."""
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


class _Module(llvm.ModuleRef):  # type: ignore[misc]  # llvmlite has no types
    """An LLVM module in a context of its own, which is disposed of with it.

    A context holds the constants and types of its modules until it is disposed of, which LLVM's
    global one never is: 0.5 KiB for each region of llvm, 12 KiB for one of vliw.
    """

    owned_context: object
    """The context's address: Python may finalize the context of a garbage cycle first, and the
    object no longer knows it then."""

    def _dispose(self) -> None:
        super()._dispose()
        ffi.lib.LLVMPY_ContextDispose(self.owned_context)


def parsed(text: str) -> llvm.ModuleRef:
    """LLVM's own form of a module's text. Raises RuntimeError for a text that is wrong."""
    module = _module(llvm.parse_assembly, text)
    module.verify()
    return module


def parsed_text(text: str) -> llvm.ModuleRef:
    """LLVM's own form of a module of functions for this processor, from their text. Raises
    RuntimeError for one that is wrong."""
    target = target_machine()
    head = f'target triple = "{target.triple}"\ntarget datalayout = "{target.target_data}"\n'
    return parsed(head + text)


def loaded(bitcode: bytes) -> llvm.ModuleRef:
    """LLVM's own form of a module's bitcode."""
    return _module(llvm.parse_bitcode, bitcode)


def _module(parse: Callable[..., llvm.ModuleRef], content: str | bytes) -> _Module:
    context = llvm.create_context()
    reference = parse(content, context)
    # From here on the module disposes of it: finalized first, it would take the module with it.
    context._owned = True
    module = _Module(reference._ptr, context)
    module.owned_context = context._ptr
    reference.detach()
    return module


class ObjectCode(NativeCode):
    """An object that LLVM has loaded."""

    def __init__(self, content: bytes) -> None:
        empty = llvm.parse_assembly("")
        # The engine owns its target machine and frees it.
        self._engine = llvm.create_mcjit_compiler(empty, _target_machine())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(content))
        self._engine.finalize_object()

    def address(self, symbol: str) -> int:
        return int(self._engine.get_global_value_address(symbol))
