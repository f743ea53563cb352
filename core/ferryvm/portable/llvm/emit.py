# SPDX-License-Identifier: Apache-2.0
"""Code of devices from LLVM IR, by the targets that llvmlite's LLVM has."""

from __future__ import annotations

import functools
from typing import Any

from llvmlite import binding as llvm

from ferryvm.errors import FerryError


def emit_text(module: str, target: str, triple: str, processor: str) -> str:
    """Assembly of a module, whose internal functions are inlined. Raises FerryError for a target
    that this LLVM lacks."""
    made, machine = _parsed(module, target, triple, processor)
    text: str = machine.emit_assembly(made)
    return text


def emit_object(module: str, target: str, triple: str, processor: str) -> bytes:
    """As `emit_text`, the binary form."""
    made, machine = _parsed(module, target, triple, processor)
    content: bytes = machine.emit_object(made)
    return content


@functools.cache
def _initialise() -> None:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


def _parsed(text: str, target: str, triple: str, processor: str) -> tuple[Any, Any]:
    _initialise()
    try:
        found = llvm.Target.from_triple(triple)
    except RuntimeError as error:
        version = ".".join(map(str, llvm.llvm_version_info))
        what = f"target {target!r}: the LLVM {version} of llvmlite cannot make it"
        raise FerryError(f"{what}: {str(error).splitlines()[0]}") from None
    machine = found.create_target_machine(cpu=processor, opt=2)
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
