# SPDX-License-Identifier: Apache-2.0
"""Calls of compiled Python functions: exceptions, limits, refusals, free names."""

from __future__ import annotations

import functools
import math
import re
import runpy
import traceback
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ferryvm
from ferryvm import UnsupportedError

LIMIT = 3


def _traced(call: Callable[[], object]) -> tuple[BaseException, list[str]]:
    """What a call raises, and the lines of this file in its traceback."""
    with pytest.raises(Exception, match=r".") as caught:
        call()
    frames = traceback.extract_tb(caught.value.__traceback__)
    return caught.value, [frame.line or "" for frame in frames if frame.filename == __file__]


@ferryvm.function
def quotient(a, b):
    return a / b


@ferryvm.function
def put(xs, i, value):
    xs[0] = 1
    xs[i] = inverse(value)
    return xs[0]


def inverse(value):
    return 1 / value


def test_exceptions_are_those_of_python_with_its_lines() -> None:
    error, lines = _traced(lambda: quotient(1, 0))
    assert type(error) is ZeroDivisionError
    assert error.__context__ is None
    assert lines[-1] == "return a / b"


def test_exceptions_after_a_store_have_the_lines_of_all_functions() -> None:
    xs = np.zeros(3)
    error, lines = _traced(lambda: put(xs, 1, 0))
    assert type(error) is ZeroDivisionError
    assert str(error) == str(_traced(lambda: inverse(0))[0])
    assert lines[-2:] == ["xs[i] = inverse(value)", "return 1 / value"]
    error, lines = _traced(lambda: put(xs, 3, 2))
    assert type(error) is IndexError
    assert lines[-1] == "xs[i] = inverse(value)"
    assert xs.tolist() == [1, 0, 0]
    assert put(xs, -1, 2) == 1
    assert xs.tolist() == [1, 0, 0.5]


def test_python_takes_over_where_a_number_leaves_64_bits() -> None:
    @ferryvm.function
    def cube(n):
        return n * n * n

    assert cube(1 << 20) == 1 << 60
    assert cube(1 << 30) == 1 << 90
    assert cube(1 << 70) == 1 << 210
    assert "OverflowError at line" in str(cube.explain())
    assert "does not fit into 64 bits" in str(cube.explain())


def test_python_goes_on_in_the_middle_after_stores() -> None:
    @ferryvm.function
    def sums(xs, n):
        total = 0
        for i, x in enumerate(xs):
            total += scaled(n, i) + int(x)
            xs[i] += i
        return total

    xs, wanted = np.ones(4), np.ones(4)
    assert sums(xs, 1 << 62) == sums.__wrapped__(wanted, 1 << 62) > 1 << 63
    assert np.array_equal(xs, wanted)
    assert "CPython ran sums once: OverflowError at line" in str(sums.explain())


def scaled(n, i):
    return n * (i % 3) + i


def test_recursion_without_end_is_python_s_error() -> None:
    @ferryvm.function
    def deep(xs, n):
        xs[0] = n
        return deep(xs, n + 1) + 1

    with pytest.raises(RecursionError):
        deep(np.zeros(1), 0)


def test_free_names_are_looked_at_in_each_call() -> None:
    global LIMIT

    @ferryvm.function
    def below(x):
        return x < LIMIT

    assert below(3) is False
    LIMIT = 4
    try:
        assert below(3) is True
    finally:
        LIMIT = 3


def test_functions_of_closures_are_looked_at_in_each_call() -> None:
    step = 1

    @ferryvm.function
    def next_(x):
        return x + step

    assert next_(1) == 2
    step = 2.5
    assert next_(1) == 3.5


def test_arguments_are_passed_as_python_does() -> None:
    @ferryvm.function
    def weighted(a, b=2, *, factor=1.0):
        return (a + b) * factor

    assert weighted(1) == 3.0
    assert weighted(b=4, a=1) == 5.0
    assert weighted(1, 2, factor=2.0) == 6.0
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'a'"):
        weighted()


def test_none_is_an_argument_in_every_call() -> None:
    @ferryvm.function
    def divided(x, y=None):
        return x if y is None else x / y

    assert [divided(3, None), divided(3, None), divided(3), divided(3, 2)] == [3, 3, 3, 1.5]


def test_lambdas_and_texts_are_functions_too() -> None:
    assert ferryvm.function(lambda x: x * x)(3) == 9
    text = """
    def double(x):
        return 2 * x
    """
    assert ferryvm.function(text)(2.5) == 5.0


def test_a_text_is_named_by_its_function_and_the_call_that_has_it() -> None:
    texts = [f"def f(x):\n    return {{x: {number}}}" for number in range(2)]
    found = []
    for text in (*texts, texts[0]):
        with pytest.raises(UnsupportedError) as caught:
            ferryvm.function(text)(1)
        found.append(str(caught.value).partition(": f: ")[0])
    line = re.search(r"<text of f, test_function\.py:(\d+)>:2$", found[0])
    assert line is not None
    assert f"test_function.py:{line[1]}, 2>:2" in found[1]
    assert found[2] == found[0]
    with pytest.raises(SyntaxError, match=r"<text, test_function\.py:\d+>, line 1"):
        ferryvm.function("def f(:")


@pytest.mark.parametrize(
    ("text", "arguments", "message"),
    [
        ("return {x}", (1,), ":2: f: cannot compile a set"),
        (f"return {' + '.join(['x'] * 500)}", (1,), "f: an expression has too many parts"),
        ("return [x, [1]]", (1,), ":2: f: a list of int and list of int; give its items one type"),
        ("return {x: 1}", (1,), ":2: f: cannot compile a dict"),
        ("yield x", (1,), ":2: f: cannot compile yield"),
        ("global y; y = x", (1,), ":2: f: cannot compile an assignment to a global"),
        ("return sorted(x)", (1,), ":2: f: cannot iterate over int"),
        ("return sorted([x], key=1)", (1,), ":2: f: cannot compile a call of a value"),
        ("return x.upper()", (1,), ":2: f: cannot compile the method 'upper'"),
        ("return x + 'a'", (1,), ":2: f: cannot compile int . 'a'"),
        ("return x[i := 0]", ((1, 2.5),), ":2: f: the index of a tuple must be a number"),
        (
            "x[0] = [[1.0]]",
            (np.zeros((2, 2)),),
            ":2: f: cannot store list of list of float into a part of array of float64, 2-d; write",
        ),
        ("return x + 1", (np.zeros(2),), "1-d . int; write a loop over the elements, or map"),
        ("return x.T", (np.zeros((2, 2)),), "2-d; pass a.T.copy.., or exchange the indices"),
        ("return x[[0, 1]]", (np.zeros(2),), "must be an int, found list of int; write a loop"),
        ("return ['Buzz', str(x)]", (1,), "cannot compile a list of texts; a list has numbers"),
        (
            "return x",
            ([1, [2.0]],),
            "argument x: item 1 of the list is list of float where those before are int",
        ),
        ("return x", ([{}],), "argument x: a dict is not supported; pass the values"),
        ("return x + b'a'", ("a",), "cannot compile str . b'a'"),
        ("return x.split('a')", ("a",), "cannot compile the method 'split'"),
        ("return x.strip('a')", ("a",), "cannot compile the method 'strip' of str; write a loop"),
        ("return x", (["a"],), "argument x: a list of str is not supported; its items must be"),
        ("return x", (np.zeros(2, "f2"),), "array of float16 is not supported; pass a.astype"),
        ("return x", (np.zeros(4)[::2],), "not contiguous is not supported; pass a.copy"),
        ("return x", (np.zeros(2, "M8[s]"),), "array of datetime64.s. is not supported"),
        ("return x", (np.array([None]),), "array of object is not supported"),
        ("return x", (np.ma.array([1.0]),), "a masked array is not supported"),
    ],
)
def test_what_cannot_be_compiled_is_named(text: str, arguments: Any, message: str) -> None:
    function = ferryvm.function(f"def f(x):\n    {text}")
    with pytest.raises(UnsupportedError, match=message):
        function(*arguments)


def test_python_runs_what_cannot_be_compiled_if_that_is_allowed() -> None:
    @ferryvm.function(strict=False)
    def listed(x):
        return [x, [x]]

    with pytest.warns(RuntimeWarning, match="a list of int and list of int; .*; CPython runs it"):
        assert listed(1) == [1, [1]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert listed(2) == [2, [2]]
    assert "CPython ran listed 2 times: a list of int and list of int" in str(listed.explain())


def test_explain_lists_what_was_compiled() -> None:
    @ferryvm.function
    def half(x):
        return x / 2 if x else None

    assert str(half.explain()) == "half has not been called"
    assert (half(3), half(0.0)) == (1.5, None)
    half(np.ones(2)[0])
    assert str(half.explain()).splitlines() == [
        "half(x: int) -> None or float",
        "half(x: float) -> None or float",
        "half(x: numpy.float64) -> None or numpy.float64",
    ]


def test_print_is_python_s(capsys: pytest.CaptureFixture[str]) -> None:
    @ferryvm.function
    def shown(n, x):
        print("n =", n, f"{x:.2f}", (n, x), [n], sep=" | ", end="!")

    shown(3, 0.5)
    assert capsys.readouterr().out == "n = | 3 | 0.50 | (3, 0.5) | [3]!"


def test_calls_from_several_threads_do_not_meet() -> None:
    from concurrent.futures import ThreadPoolExecutor

    @ferryvm.function
    def count(n):
        total = 0
        for k in range(n):
            total += k
        return total

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(count, [20_000] * 16)) == [199_990_000] * 16


def test_keyword_only_arguments_are_not_taken_by_position() -> None:
    @ferryvm.function
    def scaled(x, *, factor):
        return x * factor

    assert scaled(2, factor=3) == 6
    with pytest.raises(TypeError, match="positional argument"):
        scaled(2, 3)  # type: ignore[misc]  # that is what is tested


def test_the_sign_of_a_free_zero_is_seen() -> None:
    zero = 0.0

    @ferryvm.function
    def signed():
        return math.copysign(1.0, zero)

    assert signed() == 1.0
    zero = -0.0
    assert signed() == -1.0


def test_a_wrapper_of_a_compiled_function_is_called() -> None:
    @ferryvm.function
    def inner(x):
        return x + 1

    @functools.wraps(inner)
    def wrapper(x):
        return 2 * inner(x)

    assert ferryvm.function(lambda x: wrapper(x))(3) == 8


def test_functions_with_the_same_options_have_one_engine() -> None:
    def half(x):
        return x / 2

    one, other = ferryvm.function(half), ferryvm.function(lambda x: x)
    assert one._engine is other._engine
    assert ferryvm.function(backend="switch")(half)._engine is not one._engine
    assert (one(1), other(2)) == (0.5, 2)
    with pytest.raises(ferryvm.FerryError, match="nothing-of-that-name"):
        ferryvm.function(backend="nothing-of-that-name")(half)


def test_calls_after_the_first_take_other_types_names_and_wrong_counts() -> None:
    compiled = ferryvm.function(backend="threaded")(lambda a, b=2.0: a / b)
    for _ in range(2):
        assert repr(compiled(3.0, 1.5)) == "2.0"
        assert repr(compiled(3, 2)) == "1.5"
        assert compiled(3.0) == compiled(b=2.0, a=3.0) == compiled(3.0, b=2) == 1.5
        with pytest.raises(ZeroDivisionError, match="division by zero"):
            compiled(1.0, 0.0)
        with pytest.raises(TypeError, match="positional arguments but 3 were given"):
            compiled(1.0, 2.0, 3.0)
        with pytest.raises(TypeError, match="missing 1 required positional argument: 'a'"):
            compiled(b=1.0)
    assert isinstance(compiled, type(ferryvm.function(lambda a: a)))


def test_large_integers_in_tuples_and_ranges_are_left_to_python() -> None:
    first = ferryvm.function(lambda values: values[0])
    assert first((1 << 70, 1)) == 1 << 70
    last = ferryvm.function("def last(values):\n    for value in values: pass\n    return value")
    assert last(range(1 << 70, (1 << 70) + 3)) == (1 << 70) + 2


def test_a_format_that_raises_goes_to_the_clause_around_it() -> None:
    @ferryvm.function
    def shown(x):
        try:
            print(f"{x:d}")
        except ValueError as e:
            return len(str(e))
        return 0

    assert shown(2.5) == len("Unknown format code 'd' for object of type 'float'")


def test_parts_of_arrays_that_are_read_only_are_not_assigned() -> None:
    array = np.arange(4.0)
    array.flags.writeable = False
    for text in ("x[:2] = 1", "x[1:] = x[:-1]", "x[:2] = 1, 2", "x.fill(0)"):
        with pytest.raises(ValueError, match="read-only"):
            ferryvm.function(f"def f(x): {text}")(array)
    assert array.tolist() == [0, 1, 2, 3]


_OUTER = """
def made(shift):
    def outer(n):
        def inner(i):
            return i * shift

        return sum(inner(i) for i in range(n))

    return outer
"""


def test_a_closure_may_have_any_name(tmp_path: Path) -> None:
    (tmp_path / "with_outer.py").write_text(_OUTER, "utf-8")
    module = runpy.run_path(str(tmp_path / "with_outer.py"))
    assert ferryvm.function(module["made"](2))(3) == 6


_TABLE = """
table = {"a": lambda x: x + 1,
    "b": lambda x: x - 1, "c": lambda x: x * 2,
    "d": (lambda x: x *
        3), "e": lambda x: x * 4}
"""


def test_lambdas_within_a_statement_of_several_lines_are_found(tmp_path: Path) -> None:
    (tmp_path / "table.py").write_text(_TABLE, "utf-8")
    table = runpy.run_path(str(tmp_path / "table.py"))["table"]
    assert [ferryvm.function(each)(5) for each in table.values()] == [6, 4, 10, 15, 20]
