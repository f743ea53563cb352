# SPDX-License-Identifier: Apache-2.0
"""`llvm` as a backend of whole programs, with the passes of ferryvm as usual and LLVM at its lowest
level."""

from __future__ import annotations

import dataclasses
import functools

from ferryvm.backend import Code, Interpreter, Options
from ferryvm.engine.mixed import Mixed
from ferryvm.policy import Policy
from ferryvm.region.region import Region
from ferryvm.registry import Registry
from ferryvm_backends.llvm import LlvmBackend


class QuickLlvm(LlvmBackend):
    """It compiles quickly."""

    def compile(self, region: Region, options: Options) -> Code:
        return super().compile(region, dataclasses.replace(options, quick=True))


@functools.cache
def quick_llvm() -> Interpreter:
    """As `runnable(Registry(), "llvm")`, but compiling quickly."""
    registry, policy = Registry(), Policy.for_compiler("llvm")
    interpreter = registry.get(policy.interpreter)
    assert isinstance(interpreter, Interpreter)
    find = {"llvm": QuickLlvm()}.__getitem__
    return Mixed("llvm", policy, interpreter, find, strict=registry.strict)
