# SPDX-License-Identifier: Apache-2.0
"""From LLVM IR to callable native code, through the cache."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import logging
import struct
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm
from llvmlite import ir

import ferryvm
from ferryvm.machine.control import ABI_VERSION
from ferryvm_backends._llvm import cache

_log = logging.getLogger("ferryvm")


@functools.cache
def _target() -> llvm.TargetMachine:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    # Code and data of one object lie together, so the small code model's short distances hold.
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=2,
        reloc="static",
        codemodel="jitdefault",
    )


def _facts() -> list[str]:
    """What native code depends on besides the sources it is woven from."""
    return [
        ferryvm.__version__,
        str(ABI_VERSION),
        llvmlite.__version__,
        str(llvm.llvm_version_info),
        llvm.get_default_triple(),
        llvm.get_host_cpu_name(),
        llvm.get_host_cpu_features().flatten(),
    ]


def _sources(packages: Iterable[str]) -> list[Path]:
    """All files of these packages, in a fixed order."""
    files = []
    for package in packages:
        spec = importlib.util.find_spec(package)
        assert spec is not None
        for location in spec.submodule_search_locations or ():
            folder = Path(location)
            files += sorted(p for p in folder.iterdir() if p.suffix in (".py", ".toml"))
    return files


def compile_module(module: ir.Module, sink: bool = True) -> bytes:
    """The object code of a module, optimised for this processor.

    `sink`: let LLVM merge the tails of blocks that end alike. In one function of many handlers that
    makes every handler jump through several shared tails, a quarter of the loop benchmark's time.
    """
    target = _target()
    module.triple = target.triple
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=2))
    if sink:
        passes = builder.getModulePassManager()
    else:
        passes = llvm.create_new_module_pass_manager()
        passes.add_instruction_combine_pass()
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
    passes.run(parsed, builder)
    return bytes(target.emit_object(parsed))


class NativeCode:
    """Loaded objects; addresses stay good as long as this lives."""

    def __init__(self, objects: Sequence[bytes]) -> None:
        empty = llvm.parse_assembly("")
        self._engine = llvm.create_mcjit_compiler(empty, _target())
        for content in objects:
            self._engine.add_object_file(llvm.ObjectFileRef.from_data(content))
        self._engine.finalize_object()

    def address(self, symbol: str) -> int:
        """Address of a function or variable."""
        return int(self._engine.get_global_value_address(symbol))

    def function(self, symbol: str) -> Callable[[int], None]:
        """A C function from a control block's address to nothing; it releases the GIL."""
        return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self._engine.get_function_address(symbol))


def load_or_build(
    name: str,
    packages: Iterable[str],
    build: Callable[[], Iterable[ir.Module]],
    sink: bool = True,
) -> NativeCode:
    """The native code of `build`'s modules; built only if the cache has none.

    `packages`: what the modules are woven from; a change in their files makes a new entry.
    """
    woven_from = ("ferryvm.isa", "ferryvm.machine", "ferryvm_backends._llvm", *packages)
    key = cache.key(_facts(), _sources(woven_from))

    def compile_all() -> bytes:
        _log.info("building the %s interpreter, once for this machine and version", name)
        return _join([compile_module(module, sink) for module in build()])

    return NativeCode(_split(cache.get(name, key, compile_all)))


def _join(parts: list[bytes]) -> bytes:
    return struct.pack(f"<{1 + len(parts)}Q", len(parts), *map(len, parts)) + b"".join(parts)


def _split(content: bytes) -> list[bytes]:
    (count,) = struct.unpack_from("<Q", content)
    sizes = struct.unpack_from(f"<{count}Q", content, 8)
    parts = []
    offset = 8 + 8 * count
    for size in sizes:
        parts.append(content[offset : offset + size])
        offset += size
    return parts
