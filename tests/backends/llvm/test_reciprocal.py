# SPDX-License-Identifier: Apache-2.0
"""Vector divisions by reciprocals: the bits of the divider, where it is the bottleneck."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.tier import nightly

import ferryvm
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.policy.condition import Like
from ferryvm.policy.predicate import Test, When
from ferryvm_backends._llvm import codegen
from ferryvm_backends._llvm.passes import Pipeline, improve
from ferryvm_backends.llvm import build, reciprocal
from ferryvm_backends.llvm.reciprocal import has_reciprocals, with_reciprocals

pytestmark = pytest.mark.skipif(not has_reciprocals(), reason="no approximate reciprocals of f64")

Floats = np.ndarray[tuple[int], np.dtype[np.float64]]

LOOP = """
define void @run(ptr noalias %dividends, ptr noalias %divisors, ptr noalias %results, i64 %n) {{
start:
  br label %loop
loop:
  %i = phi i64 [ 0, %start ], [ %next, %loop ]
{body}
  %next = add i64 %i, {step}
  %more = icmp ult i64 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret void
}}
"""

DIVISION = """
  %i{n} = add i64 %i, {first}
  %x{n} = getelementptr double, ptr %dividends, i64 %i{n}
  %y{n} = getelementptr double, ptr %divisors, i64 %i{n}
  %z{n} = getelementptr double, ptr %results, i64 %i{n}
  %a{n} = load <{lanes} x double>, ptr %x{n}, align 8
  %b{n} = {divisor}
  %q{n} = fdiv <{lanes} x double> {a}, %b{n}
  store <{lanes} x double> %q{n}, ptr %z{n}, align 8
"""

SHAPES = [
    ("any", 4),
    ("any", 8),
    ("any", 16),
    ("integer", 16),
    ("one", 4),
    ("one", 8),
    ("some one", 8),
]
"""Kinds of operands, and lanes."""


def text(kind: str, lanes: int) -> str:
    """A loop with two divisions of vectors."""
    t = f"<{lanes} x double>"
    body = ""
    for n in range(2):
        divisor = f"load {t}, ptr %y{n}, align 8"
        if kind in ("integer", "one"):
            body += f"  %w{n} = add i64 %i, {lanes * n}\n"
            body += f"  %v{n} = getelementptr i64, ptr %divisors, i64 %w{n}\n"
            body += f"  %read{n} = load <{lanes} x i64>, ptr %v{n}, align 8\n"
            divisor = f"sitofp <{lanes} x i64> %read{n} to {t}"
        a = "splat (double 1.000000e+00)" if kind.endswith("one") else f"%a{n}"
        body += DIVISION.format(n=n, lanes=lanes, divisor=divisor, a=a, first=lanes * n)
    return LOOP.format(body=body, step=2 * lanes)


def differing(found: Floats, expected: Floats) -> int:
    """The number of elements with other bits; all NaNs are alike."""
    same = found.view(np.uint64) == expected.view(np.uint64)
    return int(np.count_nonzero(~same & ~(np.isnan(found) & np.isnan(expected))))


class Division:
    """Compiled code that divides arrays, `made` of a text."""

    def __init__(self, kind: str, lanes: int) -> None:
        self.kind, self.lanes = kind, lanes
        made = with_reciprocals(text(kind, lanes))
        assert made is not None
        module = improve(codegen.parsed_text(made), Pipeline.INLINE)
        self.assembly = codegen.assembly(module)
        self._code = codegen.ObjectCode(codegen.object_code(module))
        arguments = [ctypes.c_void_p] * 3 + [ctypes.c_int64]
        self._run = ctypes.CFUNCTYPE(None, *arguments)(self._code.address("run"))

    def differs(self, a: Floats, b: Floats) -> int:
        """The number of quotients that are others than NumPy's."""
        if self.kind.endswith("one"):
            a = np.ones_like(a)
        divisors: Any = b
        if self.kind in ("integer", "one"):
            divisors = (b.view(np.uint64) >> np.uint64(11)).astype(np.int64) % (1 << 50) - 99
            divisors[::9] %= 40
            b = divisors.astype(np.float64)
        found = np.empty_like(a)
        self._run(a.ctypes.data, divisors.ctypes.data, found.ctypes.data, len(a))
        with np.errstate(all="ignore"):
            expected = a / b
        return differing(found, expected)


def near_halves(count: int, seed: int) -> tuple[Floats, Floats]:
    """Dividends and divisors whose quotients are next to the middle of two floats: with an odd b
    and M = ±k/b modulo 2^54, a = (b·M ± k)/2^54 is exact, and M has one bit more than a float."""
    rng = np.random.default_rng(seed)
    dividends: list[float] = []
    divisors: list[float] = []
    whole = 1 << 54
    while len(dividends) < count:
        b = int(rng.integers(1 << 52, 1 << 53)) | 1
        for k in (1, -1, 3, -3, 5):
            middle = k * pow(b, -1, whole) % whole
            dividends.append(float((b * middle - k) // whole))
            divisors.append(float(b))
    scale = 2.0 ** rng.integers(-30, 30, len(dividends))
    sign = rng.choice([-1.0, 1.0], len(dividends))
    return np.array(dividends)[:count] * scale[:count], (np.array(divisors) * sign)[:count]


def special() -> tuple[Floats, Floats]:
    """All pairs of numbers with special bits."""
    exponents = [0, 1, 2, 3, 53, 105, 106, 511, 512, 513, 1022, 1023, 1024, 1533, 1534, 1535, 1536]
    exponents += [2043, 2044, 2045, 2046, 2047]
    fractions = [0, 1, 2, (1 << 51), (1 << 52) - 2, (1 << 52) - 1, 0x5555555555555]
    bits = [e << 52 | f | s << 63 for e in exponents for f in fractions for s in (0, 1)]
    numbers = np.array(bits, dtype=np.uint64).view(np.float64)
    a, b = np.meshgrid(numbers, numbers)
    whole = a.size // 32 * 32
    return a.ravel()[:whole].copy(), b.ravel()[:whole].copy()


def random_pairs(batches: int, seed: int) -> Iterator[tuple[Floats, Floats]]:
    """Pairs of any bits, of numbers near 1, and of dividends of which many are 0."""
    rng = np.random.default_rng(seed)
    size = 1 << 16
    for _ in range(batches):
        bits = rng.integers(0, 1 << 64, (2, size), dtype=np.uint64)
        yield bits[0].view(np.float64).copy(), bits[1].view(np.float64).copy()
        near = (bits & np.uint64((1 << 52) - 1) | np.uint64(1023 << 52)).view(np.float64)
        yield near[0].copy(), near[1].copy()
        yield near[0] * rng.choice([0.0, -0.0, 1.0, -1e-300], size), near[1] - 0.5


def wrong(division: Division, batches: int = 1) -> int:
    """The number of wrong quotients among hard and random ones."""
    found = division.differs(*special()) + division.differs(*near_halves(2048, 7))
    return found + sum(division.differs(a, b) for a, b in random_pairs(batches, 11))


@pytest.mark.parametrize(
    ("kind", "lanes", "batches"),
    [
        *((kind, lanes, 1) for kind, lanes in SHAPES),
        *(nightly((kind, lanes, 200)) for kind, lanes in SHAPES),
    ],
)
def test_quotients_have_the_bits_of_the_divider(kind: str, lanes: int, batches: int) -> None:
    division = Division(kind, lanes)
    assert "vrcp14pd" in division.assembly
    assert wrong(division, batches) == 0


@pytest.mark.parametrize(
    "fault",
    [
        "no test of the quotient",
        "extreme exponents pass",
        "the reciprocal is too small",
        "sign of 0",
    ],
)
def test_a_fault_of_the_quotient_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    original = reciprocal._Code.new

    def new(self: Any, instruction: str) -> str:
        if fault == "no test of the quotient" and instruction.startswith("fcmp oeq"):
            instruction = instruction.replace("fcmp oeq", "fcmp true")
        if fault == "extreme exponents pass" and instruction.startswith("icmp ne <"):
            instruction = instruction.replace("icmp ne", "icmp uge")
        if fault == "sign of 0" and instruction.startswith("select"):
            condition, q, _ = instruction.split(", ")
            instruction = f"{condition}, {q}, {q}"
        return original(self, instruction)

    monkeypatch.setattr(reciprocal._Code, "new", new)
    if fault == "the reciprocal is too small":
        monkeypatch.setattr(reciprocal, "_splat", lambda number: f"splat (double {2 - number!r})")
    assert wrong(Division("any", 8)) > 0


def test_divisions_that_use_their_own_results_are_left() -> None:
    recurring = text("any", 8).replace(
        "%i = phi",
        "%last = phi <8 x double> [ zeroinitializer, %start ], [ %q0, %loop ]\n  %i = phi",
    )
    recurring = recurring.replace("%a0, %b0", "%last, %b0")
    made = with_reciprocals(recurring)
    assert made is not None
    assert "%q0 = fdiv" in made
    assert "%q1 = call" in made


def test_divisions_are_left_where_the_divider_is_no_bottleneck() -> None:
    busy = "".join(f"  %m{n} = fmul <8 x double> %a0, %b1\n" for n in range(60))
    assert with_reciprocals(text("any", 8).replace("  %q0", busy + "  %q0")) is None


def ratios(x: Any, y: Any, z: Any) -> Any:
    return x / (y * math.sqrt(abs(y))), z / (x * math.sqrt(abs(x)))


def test_maps_divide_by_reciprocals(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str | None] = []

    def spy(text: str) -> str | None:
        texts.append(with_reciprocals(text))
        return texts[-1]

    monkeypatch.setattr(build, "with_reciprocals", spy)
    options = Options(background=False, required=True, cache=False)
    when = When((Test("kind", (Like("launch"),)),))
    rules = (Rule(when=when, backends=(Choice("llvm", options),)),)
    policy = Policy(rules=rules, profile=Profile(loop_threshold=1))
    rng = np.random.default_rng(5)
    x, y, z = rng.choice([0.0, 1.5, -3.0, 7e300, 1e-310, 0.1, np.inf], (3, 1000))
    numbers = np.abs(x) + 1.0, np.abs(y) + 1.0
    found = ferryvm.map(ferryvm.function(policy=policy)(ratios), *numbers, z)
    with np.errstate(all="ignore"):
        a, b = numbers
        expected = a / (b * np.sqrt(b)), z / (a * np.sqrt(a))
    assert any(texts)
    assert [differing(f, e) for f, e in zip(found, expected, strict=True)] == [0, 0]
