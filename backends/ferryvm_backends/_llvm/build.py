# SPDX-License-Identifier: Apache-2.0
"""Building an interpreter's native code; run as a process of its own.

    python -m ferryvm_backends._llvm.build PACKAGE PARENT [--keep-tails-apart]     code on stdout

It is a process, because a running compilation of LLVM cannot be stopped in any other way, and
because one of the options is global to a process.
"""

from __future__ import annotations

import importlib
import signal
import sys

import llvmlite.binding as llvm

from ferryvm.process import end_with_parent
from ferryvm_backends._llvm import ir, passes
from ferryvm_backends._llvm.cache_entry import packed
from ferryvm_backends._llvm.codegen import object_code, parsed, target_machine
from ferryvm_backends._llvm.passes import Pipeline


def compile_quickly(module: ir.Module) -> bytes:
    """The object code of a module, as soon as it can be had: a tenth of the time, and several times
    slower."""
    reference = passes.improve(_parsed(module), Pipeline.SHORTEST)
    return object_code(reference, 0)


def compile_loops(module: ir.Module) -> bytes:
    """The object code of a small module with loops and functions to be inlined."""
    reference = passes.improve(_parsed(module), Pipeline.LEVEL_1)
    return object_code(reference)


def compile_module(module: ir.Module, merge_tails: bool) -> bytes:
    """The object code of a module, optimised for this processor.

    `merge_tails`: let LLVM make one copy of block ends that are alike. In one function of many
    handlers it would join all their ends, dispatch included: without, the loop benchmark takes half
    the time. Such a function has each block begin a cache line.
    """
    reference = optimised(module, merge_tails)
    return object_code(reference)


def optimised(module: ir.Module, merge_tails: bool) -> llvm.ModuleRef:
    """The module as `compile_module` hands it to the code generator, whose options are set."""
    # Handlers are short and nearly straight-line: LLVM's full pipeline makes them no faster, takes
    # five times as long, and sinks common code of blocks, which merges tails, too.
    reference = passes.improve(_parsed(module), Pipeline.SHORT)
    if not merge_tails:
        llvm.set_option("ferryvm", "-enable-tail-merge=0")
        # Each handler ends in a dispatch of its own, which LLVM does not duplicate for blocks with
        # many edges: one shared jump is predicted so badly that programs take twice as long on
        # Intel.
        llvm.set_option("ferryvm", "-tail-dup-pred-size=100000")
        llvm.set_option("ferryvm", "-tail-dup-succ-size=100000")
        # That is done before registers are allocated. To look for more while blocks are placed
        # takes two thirds of the time of the build, since each of 300 blocks has 300 successors.
        llvm.set_option("ferryvm", "-tail-dup-placement=0")
        # Where small handlers lie across cache lines, floating-point loops take 1.2 times as long:
        # without this, any change to any handler could move the others there.
        llvm.set_option("ferryvm", "-align-all-blocks=6")
    return reference


def _parsed(module: ir.Module) -> llvm.ModuleRef:
    module.triple = target_machine().triple
    return parsed(str(module))


def build(package: str, merge_tails: bool) -> bytes:
    """The content of the cache entry for the backend in `package`. The backend's `module.build()`
    returns the LLVM module and the notes."""
    module: ir.Module
    notes: bytes
    module, notes = importlib.import_module(f"{package}.module").build()
    return packed(notes, compile_module(module, merge_tails))


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    end_with_parent(int(sys.argv[2]))
    sys.stdout.buffer.write(build(sys.argv[1], "--keep-tails-apart" not in sys.argv[3:]))
