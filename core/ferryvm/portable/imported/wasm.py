# SPDX-License-Identifier: Apache-2.0
"""Calls of a function in a WebAssembly module, whose arguments are copied into the module's
memory."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

from ferryvm.portable.harness.golden import (
    SCALARS,
    WIDTHS,
    Memory,
    arguments_of,
    expression,
    inputs_of,
    integers_of,
    results_of,
)

_FIRST = 1024
"""The place of the first array in memory."""

_PAGE = 1 << 16


class WasmFunction:
    """The function of a module in a file, in a runtime: the package `wasmtime`."""

    def __init__(self, runtime: Any, file: Path, manifest: Any) -> None:
        self.manifest = manifest
        self.store = runtime.Store()
        module = runtime.Module.from_file(self.store.engine, str(file))
        exports = runtime.Instance(self.store, module, []).exports(self.store)
        self.function, self.memory = exports[manifest["entry"]], exports["memory"]

    def call(self, arguments: list[Any]) -> tuple[int, list[Any]]:
        """The status and the results of a call."""
        places: dict[Memory, int] = {}
        given: list[Any] = []
        end = max(_FIRST, (self.manifest["build"].get("reserved", 0) + 7) & ~7)
        back: list[tuple[Memory, int]] = []
        for each, value in zip(inputs_of(self.manifest), arguments, strict=True):
            if not isinstance(value, Memory):
                given.append(value.value)
                continue
            size = value.length * WIDTHS[each["type"]]
            if value not in places:
                places[value] = end
                end += (size + 7) & ~7
                self._grow(end)
                self.memory.write(self.store, ctypes.string_at(value.address, size), places[value])
            if each["direction"] != "in":
                back.append((value, size))
            given += [places[value], value.length]
        for each in arguments_of(self.manifest, "lent"):
            length = expression(each["shape"][0], integers_of(self.manifest, arguments))
            given += [end, length]
            end += (length * WIDTHS[each["type"]] + 7) & ~7
        listed = results_of(self.manifest)
        self._grow(end + 8 * len(listed))
        given += [end + 8 * at for at in range(len(listed))]
        status = self.function(self.store, *given)
        for value, size in back:
            ctypes.memmove(value.address, self._read(places[value], size), size)
        results = [
            SCALARS[each["type"]].from_buffer_copy(self._read(end + 8 * at, 8))
            for at, each in enumerate(listed)
        ]
        return status, results

    def _grow(self, bytes_: int) -> None:
        missing = bytes_ - self.memory.data_len(self.store)
        if missing > 0:
            self.memory.grow(self.store, -(-missing // _PAGE))

    def _read(self, at: int, size: int) -> bytes:
        return bytes(self.memory.read(self.store, at, at + size))
