# SPDX-License-Identifier: Apache-2.0
"""Random programs whose control flow is any graph: most have cycles that are entered in several
places.

Blocks go anywhere, by every kind of jump, with operands on the stack where the target wants some.
Each block does a little: arithmetic on locals, a static, a store or load, a division. Some
conditions are constants, so that passes find edges that are never taken. A local counts blocks and
ends the program.
"""

from __future__ import annotations

import random

import ferryvm
from ferryvm.verify import Verified, verify

_LOCALS = ("i64", "i64", "i64", "i32", "f64")
_NUMBERS = {"i64": ("0", "1", "-1", "7", "64", "256"), "i32": ("0", "1", "-1"), "f64": ("0.5",)}
_OPERATORS = {
    "i64": ("add", "sub", "mul", "and", "xor", "shl", "div_s", "rem_u"),
    "i32": ("add", "sub", "xor", "shr_u"),
    "f64": ("add", "sub", "mul", "div"),
}
_CORNERS = ("-1", "-1", "0", "-9223372036854775808")
"""What a division is checked for."""
_STACKS: tuple[tuple[str, ...], ...] = ((), (), (), (), ("f64",), ("i64", "i32"))
"""Types of the operands that may be on the stack where a block begins."""


class _Function:
    def __init__(self, rng: random.Random, blocks: int) -> None:
        self.rng = rng
        self.stacks = [(), *(rng.choice(_STACKS) for _ in range(blocks - 1))]
        self.lines: list[str] = []

    def text(self) -> str:
        """A function without parameters; it ends after some blocks."""
        locals_ = " ".join(_LOCALS)
        self.lines = [".function work (n i64) -> i64", f".local {locals_}"]
        for number in range(len(self.stacks)):
            self._block(number)
        self.lines += [":end", "local.get 1", "local.get 3", "i64.add", "return"]
        return "\n".join(self.lines)

    def _block(self, number: int) -> None:
        rng, put = self.rng, self.lines.append
        put(f":b{number}")
        for t in reversed(self.stacks[number]):
            put(f"local.set {self._local(t)}")
        self.lines += ["local.get 0", "i64.const 1", "i64.sub", "local.set 0"]
        self.lines += ["local.get 0", "i64.const 0", "i64.lt_s", "jump_if end"]
        for _ in range(rng.randrange(3)):
            self._statement()
        self._end(number)

    def _local(self, t: str) -> int:
        return self.rng.choice([n + 1 for n, each in enumerate(_LOCALS) if each == t])

    def _value(self, t: str) -> None:
        rng, put = self.rng, self.lines.append
        if rng.random() < 0.3:
            put(f"{t}.const {rng.choice(_NUMBERS[t])}")
            return
        put(f"local.get {self._local(t)}")
        if rng.random() < 0.6:
            self._value(t)
            put(f"{t}.{rng.choice(_OPERATORS[t])}")

    def _statement(self) -> None:
        rng, put = self.rng, self.lines.append
        match rng.randrange(6):
            case 0:
                self._value("i64")
                put("static.set count")
            case 1:
                put("static.get count")
                put(f"local.set {self._local('i64')}")
            case 2:
                put(f"i64.const {8 * rng.randrange(4)}")
                self._value("i64")
                put("i64.store")
            case 3:
                self.lines += [f"i64.const {8 * rng.randrange(4)}", "i64.load"]
                put(f"local.set {self._local('i64')}")
            case _:
                t = rng.choice(list(_NUMBERS))
                self._value(t)
                put(f"local.set {self._local(t)}")

    def _condition(self) -> None:
        rng, put = self.rng, self.lines.append
        if rng.random() < 0.15:
            put(f"i32.const {rng.randrange(2)}")
            return
        if rng.random() < 0.2:
            self._quotient()
        else:
            self._value("i64")
            put("i64.const 3")
        put(f"i64.{rng.choice(['lt_s', 'gt_u', 'eq', 'ne'])}")

    def _quotient(self) -> None:
        """A division, then two numbers of which its checks have just told something."""
        rng, put = self.rng, self.lines.append
        dividend, divisor = self._local("i64"), self._local("i64")
        self.lines += [f"local.get {divisor}", "i64.const 1", "i64.or", f"local.set {divisor}"]
        self.lines += [f"local.get {dividend}", f"local.get {divisor}", "i64.div_s"]
        put("static.set count")
        put(f"local.get {rng.choice([dividend, divisor, divisor])}")
        put(f"i64.const {rng.choice(_CORNERS)}")

    def _end(self, number: int) -> None:
        """Go on at some blocks that want the same operands, the next one among them or not."""
        rng, put = self.rng, self.lines.append
        stack = self.stacks[rng.randrange(len(self.stacks))]
        fit = [f"b{n}" for n, each in enumerate(self.stacks) if each == stack]
        for t in stack:
            self._value(t)
        kind = rng.randrange(8)
        if kind == 0:
            self._value("i32")
            put(f"jump_table {' '.join(rng.choices(fit, k=3))}")
        elif kind < 7:
            self._condition()
            put(f"{rng.choice(['jump_if', 'jump_unless'])} {rng.choice(fit)}")
            if number + 1 == len(self.stacks) or self.stacks[number + 1] != stack:
                put(f"jump {rng.choice(fit)}")
        else:
            put(f"jump {rng.choice(fit)}")


def any_graph(seed: int) -> Verified:
    """The program of a seed."""
    rng = random.Random(seed)
    work = _Function(rng, rng.randrange(4, 13)).text()
    main = "i64.const 60\ncall work\nstatic.set count\nhalt"
    data = ".data 0 i64 5 6 7 8"
    return verify(ferryvm.assemble(f".static count i64\n{data}\n.function main\n{main}\n{work}\n"))
