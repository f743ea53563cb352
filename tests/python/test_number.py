# SPDX-License-Identifier: Apache-2.0
"""Numbers in compiled Python functions: operators and functions at edge values, compared with
CPython."""

from __future__ import annotations

import functools
import math
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import ferryvm
from ferryvm.python.fault import UnsupportedError
from ferryvm.testing.python_check import CheckedFunction, outcome_of

_EXACT = (
    *(f"a {op} b" for op in ("+", "-", "*", "/", "//", "%", ">>", "&", "|", "^")),
    *(f"a {op} b" for op in ("<", "<=", ">", ">=", "==", "!=")),
    *(
        "divmod(a, b)",
        "pow(a, b, 7)",
        "pow(a, -1, b)",
        "pow(3, a, b)",
        "a ** 2",
        "a and b or not a",
    ),
    *("-a", "+a", "~a", "abs(a)", "bool(a)", "int(a)", "float(a)", "round(a)", "round(a, b)"),
    *("min(a, b)", "max(a, b, 0)", "sum((a, b), start=a)", "a if a > b else b", "a < b < 3"),
    *("min([a, a], key=lambda v: -v)", "max((a, b), default=1)", "a in (b, 1)", "complex(a, b)"),
    *("complex(a) * b", "(a + 1j) / b", "(a * 1j) == b", "(a - 2j).conjugate().imag"),
    *("math.fmod(a, b)", "math.remainder(a, b)", "math.isclose(a, b)", "math.nextafter(a, b)"),
    *("math.frexp(a)", "math.modf(a)", "math.ulp(a)", "math.ldexp(a, b)", "math.fsum((a, b, a))"),
    *("math.floor(a)", "math.ceil(a)", "math.trunc(a)", "math.copysign(a, b)", "math.hypot(a, b)"),
    *("math.dist((a, b), (b, a))", "math.gcd(a, b)", "math.lcm(a, b)", "math.isqrt(a)"),
    *(
        "math.comb(a, b & 15)",
        "math.perm(a, b & 15)",
        "math.prod((a, b))",
        "math.sqrt(a)",
        "math.fabs(a)",
    ),
    *("a.bit_length()", "a.bit_count()", "a.is_integer()", "a.real + b.imag", "a.conjugate()"),
    *("isinstance(a, (int, complex))", "len(range(a, b, 3))", "[x for x in range(0, b & 31, a)]"),
    *(
        "np.add(a, b)",
        "np.minimum(a, b)",
        "np.clip(a, b, 3)",
        "np.sign(a)",
        "np.floor_divide(a, b)",
    ),
    *(
        "np.float64(a) // b",
        "np.int64(7) ** b",
        "np.uint64(5) - b",
        "np.isfinite(a)",
        "np.int32(a)",
    ),
)
"""Expressions of two numbers whose bits are the same everywhere."""

_INTEGERS = st.one_of(
    st.integers(-20, 70),
    st.sampled_from([n + d for n in (0, 1 << 31, 1 << 53, 1 << 62, 1 << 63) for d in (-1, 0, 1)]),
    st.integers(-(1 << 63), (1 << 63) - 1),
)
_FLOATS = st.one_of(
    st.floats(),
    st.sampled_from([0.0, -0.0, 0.5, 2.5, 1e22, 5e-324, 2.0**53, -(2.0**63), math.inf, math.nan]),
    st.integers(-(10**6), 10**6).map(lambda n: n / 1000),
)
_SCALARS = st.one_of(
    _FLOATS.map(np.float64),
    st.floats(width=32).map(np.float32),
    *(
        st.integers(np.iinfo(type_).min, np.iinfo(type_).max).map(type_)
        for type_ in (np.int64, np.uint64, np.int32, np.uint32, np.int16, np.uint8)
    ),
)
_NUMBERS = st.one_of(_INTEGERS, _INTEGERS, _FLOATS, _FLOATS, st.booleans(), _SCALARS)


@functools.cache
def _checked(expression: str, backend: str) -> CheckedFunction:
    text = f"import math\nimport numpy as np\ndef f(a, b): return {expression}"
    return CheckedFunction(ferryvm.function(text).__ferryvm_function__, backend)


def _compare(expression: str, backend: str, arguments: tuple[Any, ...]) -> None:
    function = _checked(expression, backend)
    wanted = outcome_of(function.__ferryvm_function__, arguments)
    try:
        difference = function.difference(wanted, arguments)
    except UnsupportedError:
        return
    assert difference is None, f"{expression} of {arguments}: {difference.text}"


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("x.hex()", "the method 'hex'; a text cannot be made"),
        ("int('12', x)", "texts are not parsed"),
        ("min(x)", "cannot iterate over float"),
        ("divmod(1j, x)", "cannot compile complex // float; complex numbers have"),
        ("cmath.asin(x)", "write it by cmath.log"),
        ("np.where(x > 1, x, 0)", "write a if condition else b"),
        ("math.sqrt(1j * x)", "write z.real, or a function of cmath"),
        ("1j < x", "compare abs(z)"),
        ("np.float16(x)", "write numpy.float32(x)"),
    ],
)
def test_what_numbers_lack_is_refused_at_its_line(expression: str, wanted: str) -> None:
    text = f"import cmath, math\nimport numpy as np\ndef f(x): return {expression}"
    with pytest.raises(UnsupportedError, match=re.escape(wanted)) as found:
        ferryvm.function(text)(2.0)
    assert found.value.position is not None
    assert (found.value.position.line, found.value.position.file[:8]) == (3, "<text of")


@pytest.mark.filterwarnings("ignore:Bitwise inversion:DeprecationWarning")  # from Python 3.12 on
@settings(
    max_examples=80,
    deadline=None,
    derandomize=True,
    database=None,
    phases=[Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
@given(st.sampled_from(_EXACT), _NUMBERS, _NUMBERS)
def test_numbers_are_those_of_cpython(expression: str, a: Any, b: Any) -> None:
    _compare(expression, "threaded", (a, b))


def test_hypot_is_that_of_cpython_in_its_last_bit() -> None:
    """The instruction f64.hypot has another last bit for one pair in 200."""
    generator = np.random.default_rng(20261127)
    xs = generator.uniform(1, 2, 3000) * 2.0 ** generator.integers(-900, 900, 3000)
    ys = xs * generator.uniform(0, 1, 3000) * 2.0 ** -generator.integers(0, 30, 3000)
    wanted = [math.hypot(x, y) for x, y in zip(xs.tolist(), ys.tolist(), strict=True)]
    found = ferryvm.map(lambda x, y: math.hypot(x, y), xs, ys)
    assert np.asarray(found).tolist() == wanted


@pytest.mark.nightly
@pytest.mark.filterwarnings("ignore:Bitwise inversion:DeprecationWarning")  # from Python 3.12 on
@settings(max_examples=20_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(_EXACT), _NUMBERS, _NUMBERS, st.sampled_from(["reference", "llvm", "switch"])
)
def test_numbers_are_those_of_cpython_on_backends(
    expression: str, a: Any, b: Any, backend: str
) -> None:
    _compare(expression, backend, (a, b))
