# SPDX-License-Identifier: Apache-2.0
"""Random kernels without races, whose variables change their types from item to item."""

from __future__ import annotations

import linecache
import random
from typing import Any

import ferryvm

GROUP = 4
_HELPER = """\
def other(tile, me, v):
    ferryvm.barrier()
    found = tile[3 - me]
    ferryvm.barrier()
    return found + v
"""
_HEAD = """\
def f(out, x, y, n):
    me, g = ferryvm.local_item(), ferryvm.group_number()
    tile = ferryvm.group_array(4, "f64")
    a, b, c = 0, 0.0, x[me]
"""
_END = """\
    out[ferryvm.item(), 0] = a
    out[ferryvm.item(), 1] = b
    out[ferryvm.item(), 2] = c
"""


def random_kernel(seed: int) -> tuple[Any, str]:
    """A kernel over (out, x, y, n), of shapes (n, 3), 4 and n / 4, in groups of 4; and its text."""
    text = _HELPER + _HEAD + _Writer(seed).text() + _END
    file = f"<random kernel {seed}>"
    linecache.cache[file] = len(text), None, text.splitlines(keepends=True), file
    names: dict[str, Any] = {"ferryvm": ferryvm, "__name__": file}
    exec(compile(text, file, "exec"), names)  # noqa: S102  # our own text
    return ferryvm.kernel(names["f"]), text


class _Writer:
    def __init__(self, seed: int) -> None:
        self._random, self._lines, self._loops = random.Random(seed), list[str](), 0

    def text(self) -> str:
        self._block("    ", 0)
        self._lines.append("    tile[me] = a")
        self._wait("    ")
        self._block("    ", 0)
        return "".join(f"{line}\n" for line in self._lines)

    def _name(self) -> str:
        return self._random.choice("abc")

    def _value(self, depth: int = 0) -> str:
        r = self._random
        leaves = [
            str(r.randrange(4)),
            str(r.randrange(4) + 0.5),
            self._name(),
            "x[me]",
            "y[g]",
            "me",
        ]
        kind = r.randrange(8)
        if kind == 7 and depth < 2:
            return f"({self._value(depth + 1)} {r.choice('+-*')} {self._value(depth + 1)})"
        return [*leaves, "n", "n"][kind]

    def _condition(self) -> str:
        r = self._random
        return r.choice(
            [
                f"me {r.choice(['<', '>', '==', '!='])} {r.randrange(4)}",
                f"x[me] > {r.randrange(3)}",
                f"n > {r.randrange(4)}",
                f"{self._name()} < {self._value()}",
                f"g == {r.randrange(2)}",
            ]
        )

    def _plain(self, indent: str, depth: int) -> None:
        kind = self._random.randrange(5)
        if kind == 3 and depth < 3:
            self._lines.append(f"{indent}if {self._condition()}:")
            self._plain(indent + "    ", depth + 1)
            if self._random.random() < 0.5:
                self._lines.append(f"{indent}else:")
                self._plain(indent + "    ", depth + 1)
        else:
            operator = "=" if kind < 4 else self._random.choice(["+=", "-="])
            self._lines.append(f"{indent}{self._name()} {operator} {self._value()}")

    def _wait(self, indent: str) -> None:
        kind = self._random.random()
        if kind < 0.1:
            self._lines.append(f"{indent}{self._name()} = other(tile, me, {self._value()})")
            return
        if kind < 0.3:
            of = self._random.choice(["sum", "max", "scan", "scan_before", "broadcast"])
            self._lines.append(
                f"{indent}{self._name()} = ferryvm.group_{of}({self._value()} * 1.0)"
            )
            return
        neighbour = f"tile[(me + {self._random.randrange(4)}) % 4]"
        for line in ("ferryvm.barrier()", f"{self._name()} = {neighbour}", "ferryvm.barrier()"):
            self._lines.append(indent + line)

    def _block(self, indent: str, depth: int) -> None:
        for _ in range(self._random.randrange(1, 4)):
            kind = self._random.randrange(7)
            if kind == 3:
                self._lines.append(f"{indent}tile[me] = {self._name()}")
                self._wait(indent)
            elif kind == 4 and depth < 2:
                self._loops += 1
                count = self._random.choice(["2", "n", "3"])
                self._lines.append(f"{indent}for i{self._loops} in range({count}):")
                self._block(indent + "    ", depth + 1)
            elif kind == 5 and depth < 2:
                self._lines.append(f"{indent}if n > {self._random.randrange(4)}:")
                self._block(indent + "    ", depth + 1)
            else:
                self._plain(indent, 0)
