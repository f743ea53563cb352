# SPDX-License-Identifier: Apache-2.0
"""LLVM's passes over modules: in this process, or after many runs in a child that is replaced
regularly.

    module ─ bitcode ─> child ─ bitcode ─> module

llvmlite 0.50 never frees the instrumentation callbacks of a pass builder, 1.5 KiB for each run of
passes, and no builder can be used twice: LLVM leaves dangling callbacks in it. So runs are counted,
and the leak is bounded by `HERE` in this process, and by its end in the child.

    python -m ferryvm_backends._llvm.passes PARENT     the child
"""

from __future__ import annotations

import enum
import itertools
import os
import sys

import llvmlite.binding as llvm
from llvmlite.binding.newpassmanagers import NewPassManager

from ferryvm.backend import BackendError
from ferryvm.child import Child, environment, serve
from ferryvm.notice import Log
from ferryvm.process import end_with_parent
from ferryvm.service import ClosedError, EndedError, Service
from ferryvm_backends._llvm.codegen import loaded, target_machine

HERE = 8_192
"""Runs in this process: they leak 12 MiB, and are spared the start of a child."""

RENEWED = 8_192
"""Runs after which a child is followed by another one."""

_log = Log("ferryvm")


class Pipeline(enum.Enum):
    """The passes that are run."""

    LEVEL_0 = 0
    LEVEL_1 = 1
    LEVEL_2 = 2
    LEVEL_3 = 3
    SHORT = 4
    """Memory to registers, and simplifications of the result."""
    SHORTEST = 5
    """Memory to registers."""
    ARITHMETIC = 6
    """Calls of functions that are always inlined, memory to registers, simplifications of the
    result: for code without loops and accesses to memory."""
    INLINE = 7
    """Calls of functions that are always inlined."""


_runs = itertools.count()
"""Of this process."""


def improve(module: llvm.ModuleRef, pipeline: Pipeline) -> llvm.ModuleRef:
    """The module after a pipeline; it may be the same one. Raises BackendError where the child
    ends."""
    found = None if next(_runs) < HERE else _improved_elsewhere(module, pipeline)
    if found is not None:
        return found
    _run(module, pipeline)
    return module


def _run(module: llvm.ModuleRef, pipeline: Pipeline) -> None:
    level = pipeline.value if pipeline.value <= Pipeline.LEVEL_3.value else 2
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    if pipeline is Pipeline.LEVEL_0 or pipeline is Pipeline.LEVEL_1:
        tuning.loop_vectorization = tuning.slp_vectorization = False
    elif pipeline is Pipeline.LEVEL_2 or pipeline is Pipeline.LEVEL_3:
        tuning.loop_vectorization = tuning.slp_vectorization = True
    builder = llvm.create_pass_builder(target_machine(), tuning)
    if pipeline is Pipeline.ARITHMETIC:
        manager = llvm.create_new_module_pass_manager()
        manager.add_always_inliner_pass()
        manager.add_global_dead_code_eliminate_pass()
        manager.add_sroa_pass()
        manager.add_instruction_combine_pass()
        manager.add_simplify_cfg_pass()
    elif pipeline is Pipeline.INLINE:
        manager = llvm.create_new_module_pass_manager()
        manager.add_always_inliner_pass()
        manager.add_global_dead_code_eliminate_pass()
    elif pipeline is Pipeline.SHORT or pipeline is Pipeline.SHORTEST:
        manager = llvm.create_new_module_pass_manager()
        if pipeline is Pipeline.SHORT:
            manager.add_instruction_combine_pass()
        manager.add_sroa_pass()
        if pipeline is Pipeline.SHORT:
            manager.add_instruction_combine_pass()
    else:
        manager = builder.getModulePassManager()
    try:
        manager.run(module, builder)
    finally:
        # llvmlite 0.50 frees no manager, of 30 to 100 KiB each: the first base of its class is one
        # that has nothing to free.
        NewPassManager._dispose(manager)
        manager.detach()


_is_reported = False


def _start() -> Child:
    command = [sys.executable, "-m", "ferryvm_backends._llvm.passes", str(os.getpid())]
    return Child(command, environment())


_service = Service(_start)


def _improved_elsewhere(module: llvm.ModuleRef, pipeline: Pipeline) -> llvm.ModuleRef | None:
    """The module after a pipeline that a child has run; None where no child can be started."""
    global _is_reported
    try:
        message = bytes([pipeline.value]) + module.as_bitcode()
        return loaded(_service.request(message, most=RENEWED))
    except (ClosedError, EndedError):
        raise BackendError("llvm: the process that runs LLVM's passes has ended") from None
    except OSError as error:
        if not _is_reported:
            _log.warning("LLVM's passes leak 1.5 KiB each: no process: %s", error.strerror)
            _is_reported = True
        return None


def _answer(message: bytes) -> bytes:
    module = loaded(message[1:])
    _run(module, Pipeline(message[0]))
    return bytes(module.as_bitcode())


if __name__ == "__main__":
    end_with_parent(int(sys.argv[1]), lambda: None)  # the thread that started it may end before
    serve(_answer)
