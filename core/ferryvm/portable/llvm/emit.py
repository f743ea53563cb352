# SPDX-License-Identifier: Apache-2.0
"""Code of devices from LLVM IR, by the targets that llvmlite's LLVM has."""

from __future__ import annotations

import functools
import sys
import tempfile
from pathlib import Path
from typing import Any

from llvmlite import binding as llvm

from ferryvm import child
from ferryvm.errors import FerryError

_SECONDS = 120.0
"""Time limit of a process that emits a module."""


def emit_text(module: str, target: str, triple: str, processor: str) -> str:
    """Assembly of a module, whose internal functions are inlined. Raises FerryError for a target
    that this LLVM lacks."""
    made, machine = _parsed(module, target, triple, processor)
    text: str = machine.emit_assembly(made)
    return text


def emit_object(module: str, target: str, triple: str, processor: str) -> bytes:
    """As `emit_text`, the binary form.

    Emitted by a process of its own: the SPIR-V target of LLVM 22 has tables by the addresses of
    functions that outlive a module, so a second module in a process may get types and constants of
    the first one.
    """
    _found(target, triple)
    with tempfile.TemporaryDirectory() as folder:
        source, made = Path(folder) / "module.ll", Path(folder) / "module.bin"
        source.write_text(module, encoding="utf-8")
        words = [sys.executable, "-m", __name__, str(source), str(made), target, triple, processor]
        try:
            done = child.run(words, _SECONDS, child.environment())
        except OSError as error:
            reason = str(error) or f"it takes more than {_SECONDS:g} s"
            raise FerryError(f"target {target!r}: {reason}") from None
        if done.code:
            said = (done.errors.strip().splitlines() or [""])[-1]
            raise FerryError(f"target {target!r}: LLVM: {child.ending(done.code)}: {said}")
        return made.read_bytes()


@functools.cache
def _initialise() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def _found(target: str, triple: str) -> Any:
    _initialise()
    try:
        return llvm.Target.from_triple(triple)
    except RuntimeError as error:
        version = ".".join(map(str, llvm.llvm_version_info))
        what = f"target {target!r}: the LLVM {version} of llvmlite cannot make it"
        raise FerryError(f"{what}: {str(error).splitlines()[0]}") from None


def _parsed(text: str, target: str, triple: str, processor: str) -> tuple[Any, Any]:
    machine = _found(target, triple).create_target_machine(cpu=processor, opt=2)
    module = llvm.parse_assembly(text)
    module.data_layout = str(machine.target_data)
    module.verify()
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_simplify_cfg_pass()
    options = llvm.create_pipeline_tuning_options(speed_level=1)
    passes.run(module, llvm.create_pass_builder(machine, options))
    return module, machine


if __name__ == "__main__":
    _source, _made, *_words = sys.argv[1:]
    _module, _machine = _parsed(Path(_source).read_text(encoding="utf-8"), *_words)
    Path(_made).write_bytes(_machine.emit_object(_module))
