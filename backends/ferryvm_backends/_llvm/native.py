# SPDX-License-Identifier: Apache-2.0
"""Native code of an interpreter: from the cache, or built and put there."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import logging
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm

import ferryvm
from ferryvm import cache
from ferryvm.backend import BackendError
from ferryvm.machine.control import ABI_VERSION
from ferryvm_backends._llvm import cache_entry

_log = logging.getLogger("ferryvm")

PUBLISH = "ferry_publish"
"""Name of the function behind `NativeCode.publisher`; `cell.define_publish` makes it."""

_PROCESSORS = ("x86_64", "amd64", "aarch64", "arm64")
"""Where LLVM has the calling convention that handlers use."""


@functools.cache
def target_machine(level: int = 2) -> llvm.TargetMachine:
    """LLVM's description of this processor, and how code for it is made.

    `level`: of LLVM's code generator, from 0, the soonest done, to 3.
    """
    return _target_machine(level)


def _target_machine(level: int = 2) -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    cpu, features = _processor()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=cpu,
        features=features,
        opt=level,
        reloc="static",
        codemodel="jitdefault",
    )


@functools.cache
def _processor() -> tuple[str, str]:
    """Name and features of this processor; asked for once, since every loaded object needs them."""
    return llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()


def _facts() -> list[str]:
    """What native code depends on besides the sources it is woven from."""
    return [
        ferryvm.__version__,
        str(ABI_VERSION),
        llvmlite.__version__,
        str(llvm.llvm_version_info),
        llvm.get_default_triple(),
        *_processor(),
    ]


def _sources(names: Iterable[str]) -> list[Path]:
    """All files of packages, and modules, that native code is woven from, in a fixed order."""
    files = [Path(ferryvm.__file__).with_name("program.py")]  # the code record
    for name in names:
        spec = importlib.util.find_spec(name)
        assert spec is not None
        if spec.submodule_search_locations is None and spec.origin is not None:
            files.append(Path(spec.origin))
        for location in spec.submodule_search_locations or ():
            found = Path(location).rglob("*")
            files += sorted(p for p in found if p.suffix in (".py", ".toml"))
    return files


@functools.cache
def key(package: str, *others: str) -> str:
    """The key of what is made from a backend's sources and other packages', on this machine."""
    woven_from = ("ferryvm.isa", "ferryvm.machine", "ferryvm_backends._llvm", package, *others)
    return cache.key(_facts(), _sources(woven_from))


class _Module(llvm.ModuleRef):  # type: ignore[misc]  # llvmlite has no types
    """An LLVM module in a context of its own, which goes with it.

    A context keeps the constants and types of its modules until it is disposed of, which LLVM's
    global one never is: 0.5 KiB for each region of llvm, 12 KiB for one of vliw.
    """

    def _dispose(self) -> None:
        super()._dispose()
        llvm.ContextRef._dispose(self._context)


def parsed(text: str) -> llvm.ModuleRef:
    """LLVM's own form of a module's text. Raises RuntimeError for a text that is wrong."""
    module = _module(llvm.parse_assembly, text)
    module.verify()
    return module


def loaded(bitcode: bytes) -> llvm.ModuleRef:
    """LLVM's own form of a module's bitcode."""
    return _module(llvm.parse_bitcode, bitcode)


def _module(parse: Callable[..., llvm.ModuleRef], content: str | bytes) -> _Module:
    context = llvm.create_context()
    reference = parse(content, context)
    # From here on the module disposes of it: of what is garbage together Python may finalize the
    # context first, which would take the module with it.
    context._owned = True
    module = _Module(reference._ptr, context)
    reference.detach()
    return module


class NativeCode:
    """A loaded object; addresses stay good as long as this lives."""

    def __init__(self, content: bytes) -> None:
        empty = llvm.parse_assembly("")
        # The engine owns its target machine and frees it.
        self._engine = llvm.create_mcjit_compiler(empty, _target_machine())
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(content))
        self._engine.finalize_object()

    def address(self, symbol: str) -> int:
        """Address of a function or variable."""
        return int(self._engine.get_global_value_address(symbol))

    def function_address(self, symbol: str) -> int:
        """Address of a function."""
        return int(self._engine.get_function_address(symbol))

    def function(self, symbol: str) -> Callable[[int], None]:
        """A C function from a control block's address to nothing; it releases the GIL."""
        return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.function_address(symbol))

    def publisher(self) -> Callable[[int, int], None]:
        """Stores a word at an address, at once and after all stores before it."""
        # It keeps the GIL, which takes longer to give back than a store.
        kind = ctypes.PYFUNCTYPE(None, ctypes.c_void_p, ctypes.c_uint64)
        return kind(self.function_address(PUBLISH))


def processor_problem() -> str | None:
    """Why there is no native code for this processor; None if there is."""
    if platform.machine().lower() not in _PROCESSORS:
        return f"no native code for {platform.machine()} (only for {', '.join(_PROCESSORS)})"
    return None


def load_or_build(package: str, merge_tails: bool = True) -> tuple[NativeCode, bytes]:
    """The native code of the backend in `package`, and the notes that its builder left with it.

    Built only if the cache has none; a change in a file that it is woven from makes a new entry.
    Where the cache cannot be used it is built by each process, and that is told.
    `merge_tails`: as for `build.compile_module`. Raises BackendError.
    """
    name = _name(package)

    def build() -> bytes:
        _log.info("building native code of %s, which takes some seconds", name)
        return _build_in_process(package, merge_tails)

    payload = cache.Entry(name, key(package)).get(build, cache_entry.fault)
    notes, code = cache_entry.unpacked(payload)
    return NativeCode(code), notes


def _name(package: str) -> str:
    return package.rpartition(".")[2]


def environment() -> dict[str, str]:
    """Of a child: it finds the very packages that this process runs."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


def _build_in_process(package: str, merge_tails: bool) -> bytes:
    """What `build` yields, from a process of its own; Ctrl-C ends both."""
    command = [sys.executable, "-m", "ferryvm_backends._llvm.build", package, str(os.getpid())]
    if not merge_tails:
        command.append("--keep-tails-apart")
    try:
        done = subprocess.run(command, env=environment(), capture_output=True, check=False)
    except OSError as error:
        message = f"{_name(package)}: cannot start {sys.executable!r} to build native code"
        raise BackendError(f"{message}: {error.strerror}") from None
    if done.returncode:
        lines = done.stderr.decode(errors="replace").strip().splitlines()
        cause = lines[-1] if lines else f"exit code {done.returncode}"
        raise BackendError(f"{_name(package)}: building native code failed: {cause}")
    return done.stdout
