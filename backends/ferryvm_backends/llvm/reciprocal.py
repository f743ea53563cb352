# SPDX-License-Identifier: Apache-2.0
"""Vector divisions by multiplication with a reciprocal, where the processor's divider is the
bottleneck of a block: the quotient is correctly rounded, as the divider's.

    y ≈ 1/b, a little above it     q ≈ a·y, improved by its remainder     r = a - b·q
    q + r·y rounds to q ?  ── yes ─> q          no, or a or b is extreme ─> a / b by the divider

The test proves the quotient. If |y| ≥ |1/b|, with the sign of b, the exact quotient q + (a - b·q)/b
is between q and q + r·y. Both round to q, and rounding is monotonic, so the quotient rounds to q,
too. This needs no bound on the error of q, which decides only how often the test fails: once in 2²²
divisions. It needs

- |y| ≥ (1 + 2⁻⁴⁰)·|1/b|. The processor's approximation has the relative error ε, |ε| ≤ 2⁻¹⁴ (Intel
  64 and IA-32 Architectures Software Developer's Manual, VRCP14PD). With e = 1 + 2⁻³⁸ - b·y₀ the
  value y₀·(1 + e + e²) is (1 + 2⁻³⁸·(1 - ε …) + ε³)/b, of which |ε³| ≤ 2⁻⁴², and three roundings
  change it by less than 2⁻⁵².
- no underflow in r, whose rounding is then less than the excess of y. If the exponents of a and b
  are from -511 to 512, all products are multiples of 2⁻⁶¹⁶.

Infinities, NaNs and a divisor of 0 make the test fail, as NaN is equal to nothing. A dividend of 0
has the quotient a·y, with its sign.

A block has so many of its divisions replaced that the divider and the multipliers take the same
time. Divisions that depend on their own result from the iteration before are left: the divider has
the shorter latency.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ferryvm_backends._llvm.codegen import host_processor

_FEATURES = ("+avx512f", "+avx512vl", "+avx512dq")

_DIVISION, _ROOT = 2.0, 3.0
"""Cycles of the divider for an element of 64 bits, on Intel's processors since Skylake (uops.info,
VDIVPD and VSQRTPD)."""

_PORTS = 2
"""Vector operations in a cycle."""

_REPLACED = {"one": 13, "integer": 14, "any": 19}
"""Vector operations of a division that is replaced, by its kind: of a constant, by a converted
integer, or else."""

_GAIN = 0.85
"""Time of a block that is worth a change, at most, of that before."""

_WIDTHS = (8, 4)
"""Elements of a vector of the processor, the most first."""


def has_reciprocals() -> bool:
    """True if the processor approximates reciprocals of f64, and its divider is slow against its
    multipliers; AMD's Zen 4 has half of the multipliers."""
    name, features = host_processor()
    return not name.startswith("znver") and {*_FEATURES} <= {*features.split(",")}


class _Division(NamedTuple):
    line: int
    lanes: int
    dividend: str
    divisor: str
    kind: str

    @property
    def width(self) -> int:
        """Elements of the vectors in which the processor has it."""
        return min(self.lanes, _WIDTHS[0])


_FUNCTION = re.compile(r"^define .*?^}", re.MULTILINE | re.DOTALL)
_LABEL = re.compile(r"^\S+:")
_DEFINED = re.compile(r"^ +(%\S+) = (.*)")
_NAME = re.compile(r"%[-\w.$]+")
_VECTOR = re.compile(r"<(\d+) x (double|i64)>")
_DIVIDES = re.compile(r"^ +%\S+ = fdiv <(\d+) x double> (splat \(double \S+\)|%\S+), (%[-\w.$]+)")
_FREE = re.compile(r"= (?:phi|load|bitcast|shufflevector|insertelement|extractelement|freeze)\b")
_NODE = re.compile(r"^!(\d+) =", re.MULTILINE)


def with_reciprocals(text: str) -> str | None:
    """LLVM IR of which divisions are replaced by calls of functions to be inlined; None if none
    is."""
    made: dict[str, str] = {}

    def replaced(found: re.Match[str]) -> str:
        lines = found[0].split("\n")
        defined = {m[1]: m[2] for m in map(_DEFINED.match, lines) if m}
        for block in _blocks(lines):
            _replace(lines, block, defined, made)
        return "\n".join(lines)

    changed = _FUNCTION.sub(replaced, text)
    if not made:
        return None
    node = 1 + max(map(int, _NODE.findall(text)), default=-1)
    parts = [changed, *(each.replace("!RARE", f"!{node}") for each in made.values())]
    parts += [d for d in _declarations() if d.split("@")[1].split("(")[0] not in text]
    return "\n".join([*parts, f'!{node} = !{{!"branch_weights", i32 1048576, i32 1}}', ""])


def _blocks(lines: Sequence[str]) -> Iterator[range]:
    """The lines of each basic block that has a division of vectors."""
    starts = [0, *(n for n, line in enumerate(lines) if _LABEL.match(line)), len(lines)]
    for start, end in itertools.pairwise(starts):
        if any(" fdiv <" in line for line in lines[start:end]):
            yield range(start, end)


def _replace(lines: list[str], block: range, defined: dict[str, str], made: dict[str, str]) -> None:
    """Replace divisions of a block until the divider is no bottleneck. `defined`: the instructions
    of the function, by their results; `made`: receives the functions that are called, by name."""
    divisions = [
        d for d in _divisions(lines, block, defined) if not _recurs(lines[d.line], defined)
    ]
    divider, multipliers = _cycles(lines[n] for n in block)
    parts: dict[_Division, int] = {}
    units = [d for d in divisions for _ in range(d.lanes // d.width)]
    for each in sorted(units, key=lambda d: (_REPLACED[d.kind], d.line)):
        less, more = divider - _DIVISION * each.width, multipliers + _REPLACED[each.kind] / _PORTS
        if max(less, more) >= max(divider, multipliers):
            break
        divider, multipliers = less, more
        parts[each] = parts.get(each, 0) + 1
    before = max(_cycles(lines[n] for n in block))
    if max(divider, multipliers) > _GAIN * before:
        return
    for each, count in parts.items():
        t = f"<{each.lanes} x double>"
        name = f"quotient.{each.kind}.v{each.lanes}.{count}"
        made[name] = _function(name, each, count)
        result = lines[each.line].split("=")[0]
        lines[each.line] = f"{result}= call {t} @{name}({t} {each.dividend}, {t} {each.divisor})"


def _divisions(lines: Sequence[str], block: range, defined: dict[str, str]) -> Iterator[_Division]:
    for n in block:
        found = _DIVIDES.match(lines[n])
        if found and int(found[1]) in (4, 8, 16, 32):
            kind = "any"
            if re.match(r"[su]itofp ", defined.get(found[3], "")):
                kind = "integer"
            if found[2] == "splat (double 1.000000e+00)":
                kind = "one" if kind == "integer" else "any"
            yield _Division(n, int(found[1]), found[2], found[3], kind)


def _recurs(line: str, defined: dict[str, str]) -> bool:
    """True if a division depends on its own result."""
    found = _DEFINED.match(line)
    assert found is not None
    seen: set[str] = set()
    waiting = _NAME.findall(found[2])
    while waiting:
        name = waiting.pop()
        if name == found[1]:
            return True
        if name not in seen:
            seen.add(name)
            waiting += _NAME.findall(defined.get(name, ""))
    return False


def _cycles(lines: Iterator[str]) -> tuple[float, float]:
    """Cycles of the divider, and those of the other units, for a block's vectors."""
    divider = operations = 0.0
    for line in lines:
        found = _VECTOR.search(line)
        if not found or _FREE.search(line):
            continue
        lanes = int(found[1])
        if " fdiv " in line:
            divider += _DIVISION * lanes
        elif "@llvm.sqrt." in line:
            divider += _ROOT * lanes
        else:
            weight = 3 if " mul " in line else 1
            operations += weight * max(1, lanes / min(lanes, _WIDTHS[0]))
    return divider, operations / _PORTS


def _function(name: str, division: _Division, count: int) -> str:
    """A function that divides, the last `count` vectors of the operands by reciprocals."""
    lanes, width = division.lanes, division.width
    t = f"<{lanes} x double>"
    code = _Code(width)
    units = lanes // width
    pairs = [(code.part(lanes, "%a", u), code.part(lanes, "%b", u)) for u in range(units)]
    divided = [code.new(f"fdiv {code.t} {a}, {b}") for a, b in pairs[: units - count]]
    found = [code.quotient(a, b, division.kind) for a, b in pairs[units - count :]]
    passed = found[0][1]
    for _, passes in found[1:]:
        passed = code.new(f"and {code.mask} {passed}, {passes}")
    bits = code.new(f"bitcast {code.mask} {passed} to i{width}")
    whole = code.new(f"icmp eq i{width} {bits}, -1")
    code.lines.append(f"br i1 {whole}, label %end, label %rare, !prof !RARE\nrare:")
    again = [code.new(f"fdiv {code.t} {a}, {b}") for a, b in pairs[units - count :]]
    code.lines.append("br label %end\nend:")
    either = [
        code.new(f"phi {code.t} [ {q}, %start ], [ {slow}, %rare ]")
        for (q, _), slow in zip(found, again, strict=True)
    ]
    result = code.joined([*divided, *either])
    body = "\n".join(code.lines)
    return (
        f"define internal {t} @{name}({t} %a, {t} %b) alwaysinline nounwind {{\nstart:\n{body}\n"
        f"ret {t} {result}\n}}"
    )


class _Code:
    """Instructions on vectors of a width."""

    def __init__(self, width: int) -> None:
        self.width = width
        self.t, self.integers = f"<{width} x double>", f"<{width} x i64>"
        self.mask = f"<{width} x i1>"
        self.lines: list[str] = []
        self._numbers = itertools.count()

    def new(self, instruction: str) -> str:
        """The result of an instruction."""
        name = f"%n{next(self._numbers)}"
        self.lines.append(f"{name} = {instruction}")
        return name

    def part(self, lanes: int, value: str, unit: int) -> str:
        """A vector of a wider one."""
        if lanes == self.width:
            return value
        wide, first = f"<{lanes} x double>", unit * self.width
        order = ", ".join(f"i32 {first + n}" for n in range(self.width))
        return self.new(
            f"shufflevector {wide} {value}, {wide} poison, <{self.width} x i32> <{order}>"
        )

    def joined(self, parts: list[str]) -> str:
        """A vector of narrower ones, a power of two of them."""
        width = self.width
        while len(parts) > 1:
            t = f"<{width} x double>"
            width *= 2
            order = ", ".join(f"i32 {n}" for n in range(width))
            parts = [
                self.new(f"shufflevector {t} {a}, {t} {b}, <{width} x i32> <{order}>")
                for a, b in zip(parts[::2], parts[1::2], strict=True)
            ]
        return parts[0]

    def quotient(self, a: str, b: str, kind: str) -> tuple[str, str]:
        """The quotients, and the elements in which they are right."""
        t = self.t
        minus = self.new(f"fneg {t} {b}")
        above = _splat(1 + 2.0**-38)
        name, bits = f"llvm.x86.avx512.rcp14.pd.{64 * self.width}", f"{t} zeroinitializer, i8 -1"
        y = self.new(f"call {t} @{name}({t} {b}, {bits})")
        e = self._fma(minus, y, above)
        y = self._fma(y, self._fma(e, e, e), y)
        first = self.new(f"fmul {t} {a}, {y}")
        q = self._fma(self._fma(minus, first, a), y, first)
        is_some = ""
        if kind != "one":
            is_some = self.new(f"fcmp une {t} {a}, zeroinitializer")
            q = self.new(f"select {self.mask} {is_some}, {t} {q}, {t} {first}")
        passes = self.new(f"fcmp oeq {t} {self._fma(self._fma(minus, q, a), y, q)}, {q}")
        if kind == "any":
            passes = self.new(f"and {self.mask} {passes}, {self._is_moderate(b)}")
        if kind != "one":
            is_none = self.new(f"xor {self.mask} {is_some}, splat (i1 true)")
            allowed = self.new(f"or {self.mask} {is_none}, {self._is_moderate(a)}")
            passes = self.new(f"and {self.mask} {passes}, {allowed}")
        return q, passes

    def _is_moderate(self, a: str) -> str:
        """The elements with an exponent from -511 to 512: its two highest bits differ."""
        integers = self.integers
        bits = self.new(f"bitcast {self.t} {a} to {integers}")
        twice = self.new(f"add {integers} {bits}, {bits}")
        differ = self.new(f"xor {integers} {bits}, {twice}")
        highest = self.new(f"and {integers} {differ}, splat (i64 {1 << 62})")
        return self.new(f"icmp ne {integers} {highest}, zeroinitializer")

    def _fma(self, a: str, b: str, c: str) -> str:
        t = self.t
        return self.new(f"call {t} @llvm.fma.v{self.width}f64({t} {a}, {t} {b}, {t} {c})")


def _splat(number: float) -> str:
    return f"splat (double {number!r})"


def _declarations() -> Iterator[str]:
    for width in _WIDTHS:
        t = f"<{width} x double>"
        yield f"declare {t} @llvm.fma.v{width}f64({t}, {t}, {t})"
        yield f"declare {t} @llvm.x86.avx512.rcp14.pd.{64 * width}({t}, {t}, i8)"
