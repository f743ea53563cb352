# SPDX-License-Identifier: Apache-2.0
"""Compilers that compile as a test says, and a gate that lets them when it is time."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ferryvm.backend import Code, Compiler, Options
from ferryvm.region.region import Region
from ferryvm.registry import Registry

from .registry import registry

Compile = Callable[[Region, Options], Code]

LLVM = Registry().get("llvm")
assert isinstance(LLVM, Compiler)
compile_by_llvm: Compile = LLVM.compile


class FunctionCompiler(Compiler):
    """Compiles by a function; refuses all regions for a reason, if it has one."""

    version = "1"

    def __init__(self, compile_: Compile, name: str = "mine", reason: str | None = None) -> None:
        self.name, self._compile, self._reason = name, compile_, reason

    def accepts(self, region: Region) -> str | None:
        return self._reason

    def compile(self, region: Region, options: Options) -> Code:
        return self._compile(region, options)


def with_compiler(compile_: Compile, name: str = "mine", reason: str | None = None) -> Registry:
    """What is installed, and such a compiler."""
    return registry(FunctionCompiler(compile_, name, reason), name=name)


class Gate:
    """Compiles when it is let, as llvm does, or raises what it is told to."""

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error
        self.began, self.may = threading.Event(), threading.Event()
        self.regions: list[str] = []

    def compile(self, region: Region, options: Options) -> Code:
        self.regions.append(region.name)
        self.began.set()
        assert self.may.wait(60)
        if self.error is not None:
            raise self.error
        return compile_by_llvm(region, options)
