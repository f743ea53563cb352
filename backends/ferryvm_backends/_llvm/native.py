# SPDX-License-Identifier: Apache-2.0
"""From LLVM IR to callable native code, through the cache."""

from __future__ import annotations

import ctypes
import functools
import importlib.util
import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import llvmlite
import llvmlite.binding as llvm

import ferryvm
from ferryvm.machine.control import ABI_VERSION
from ferryvm_backends._llvm import cache

if TYPE_CHECKING:
    from llvmlite import ir  # only building needs it: loading from the cache does not wait for it

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


def compile_module(module: ir.Module, merge_tails: bool = True) -> bytes:
    """The object code of a module, optimised for this processor.

    `merge_tails`: let LLVM make one copy of block ends that are alike. In one function of many
    handlers it would join all their ends, dispatch included: without, the loop benchmark takes half
    the time.
    """
    target = _target()
    module.triple = target.triple
    parsed = llvm.parse_assembly(str(module))
    parsed.verify()
    # Handlers are short and nearly straight: LLVM's full pipeline makes them no faster, takes five
    # times as long, and sinks what blocks have in common, which is merging tails too.
    passes = llvm.create_new_module_pass_manager()
    passes.add_instruction_combine_pass()
    passes.add_sroa_pass()
    passes.add_instruction_combine_pass()
    passes.run(parsed, llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options()))
    if merge_tails:
        return bytes(target.emit_object(parsed))
    # The code generator's switch is one for the whole process, hence set back.
    llvm.set_option("ferryvm", "-enable-tail-merge=0")
    try:
        return bytes(target.emit_object(parsed))
    finally:
        llvm.set_option("ferryvm", "-enable-tail-merge=1")


class NativeCode:
    """A loaded object; addresses stay good as long as this lives."""

    def __init__(self, content: bytes) -> None:
        empty = llvm.parse_assembly("")
        self._engine = llvm.create_mcjit_compiler(empty, _target())
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
    build: Callable[[], tuple[ir.Module, bytes]],
    merge_tails: bool = True,
) -> tuple[NativeCode, bytes]:
    """The native code of a module, and the notes that its builder keeps beside it.

    Built only if the cache has none. `packages`: what the module is woven from; a change in their
    files makes a new entry. `merge_tails`: as for `compile_module`.
    """
    woven_from = ("ferryvm.isa", "ferryvm.machine", "ferryvm_backends._llvm", *packages)
    key = cache.key(_facts(), _sources(woven_from))

    def compile_all() -> bytes:
        _log.info("building the %s interpreter, once for this machine and version", name)
        module, notes = build()
        return len(notes).to_bytes(8, "little") + notes + compile_module(module, merge_tails)

    content = cache.get(name, key, compile_all)
    end = 8 + int.from_bytes(content[:8], "little")
    return NativeCode(content[end:]), content[8:end]
