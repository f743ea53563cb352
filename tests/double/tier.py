# SPDX-License-Identifier: Apache-2.0
"""A compiler with quick code and good code: quick code runs an iteration an entry."""

from __future__ import annotations

import dataclasses
import threading
from collections.abc import Callable

from ferryvm.backend import Activity, Capabilities, Code, Options, Tiers
from ferryvm.machine.control import ControlBlock, Status
from ferryvm.region.region import Region
from ferryvm.wrapper import CodeWrapper

from .code import NativeFunction
from .compiler import FunctionCompiler, compile_by_llvm
from .registry import registry

AGAIN = 5
"""Entries after it has run long from which code says that it has gone on."""


class TieredCompiler(FunctionCompiler):
    """Compiles as llvm does; quick code counts its entries as its work."""

    capabilities = Capabilities(tiers=Tiers(quick=1, recompile_after=7))

    def __init__(self, error: Exception | None = None) -> None:
        """`error`: good code is not made for this reason."""
        super().__init__(self._made)
        self.error, self.registry = error, registry(self, name=self.name)
        self.levels: list[int] = []
        """Of what it was asked for."""
        self.codes: list[QuickCode] = []
        self.meanwhile: Callable[[], object] = lambda: None
        """Called while good code is made."""
        self.has_gone_on = threading.Event()

    def _made(self, region: Region, options: Options) -> Code:
        self.levels.append(options.optimize)
        plain = dataclasses.replace(options, recompile_after=0, cache=False)
        if options.recompile_after:
            self.codes.append(QuickCode(compile_by_llvm(region, plain), options, self.has_gone_on))
            return self.codes[-1]
        if len(self.levels) > 1:
            self.meanwhile()
        if self.error is not None:
            raise self.error
        return CodeWrapper(compile_by_llvm(region, plain))


class QuickCode(CodeWrapper):
    """Code that comes back after each iteration, and with LONG after some."""

    def __init__(self, inner: Code, options: Options, has_gone_on: threading.Event) -> None:
        super().__init__(inner)
        self._after, self._has_gone_on = options.recompile_after, has_gone_on
        self._entries, self.reason = 0, ""
        self._native = NativeFunction(self._enter)
        self.address = self._native.address

    def _enter(self, control: ControlBlock) -> int:
        self._entries += 1
        if self._entries >= self._after + AGAIN:
            self._has_gone_on.set()
        is_long = self._entries % self._after == 0
        control.status = Status.LOST if self.reason else Status.LONG if is_long else Status.LEAVE
        return control.status

    @property
    def lost(self) -> str:
        return self.reason

    @property
    def long(self) -> str:
        return f"it was entered {self._after} times" if self._entries >= self._after else ""

    def activity(self) -> Activity:
        return Activity(self._entries)
