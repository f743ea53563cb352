# SPDX-License-Identifier: Apache-2.0
"""Exceptions in compiled Python functions are CPython's, with message, cause, context and lines."""

from __future__ import annotations

import ast
import re
import traceback
import types
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import ferryvm
from ferryvm.python.call import continuation
from ferryvm.python.control_flow.lower import Lowering
from ferryvm.python.control_flow.statement import Statements
from ferryvm.testing import check


class _MineError(ValueError):
    """An exception of a user."""

    def __init__(self, text: object, code: int = 0) -> None:
        super().__init__(text)
        self.code = code


def _caused(x):
    try:
        return 1 / x
    except ZeroDivisionError as e:
        raise ValueError("bad", x) from e


def _without_cause(x):
    try:
        return 1 / x
    except ZeroDivisionError:
        raise ValueError("bad") from None


def _in_context(x):
    try:
        return _inverse(x)
    except ZeroDivisionError:
        return 1 // x


def _inverse(x):
    return 1 / x


def _again(xs, i):
    try:
        return xs[i]
    except IndexError:  # noqa: TRY203  # under test
        raise


def _by_name(xs, i):
    try:
        return xs[i]
    except IndexError as e:  # noqa: TRY203  # under test
        raise e  # noqa: TRY201  # under test


def _with_message(xs, i):
    try:
        return xs[i]
    except IndexError as e:  # under test
        raise _MineError(str(e) + str(e.args), code=i) from e


def _passing(x):
    try:
        return _inverse(x)
    except ValueError:
        return 0.0


def _nested(x):
    try:
        try:
            return _inverse(x)
        finally:
            y = 1 // (x - 1)
    except KeyError:
        return y


def _handling_twice(x):
    try:
        try:
            y = 1 / x
        except ZeroDivisionError:
            y = 1 // x
    except ZeroDivisionError:
        y = 1 % x
    return y


def _called_in_a_clause(x):
    try:
        return 1 / x
    except ZeroDivisionError:
        return _handling_twice(x)


def _passing_clauses_in_a_clause(x):
    try:
        return _inverse(x)
    except ZeroDivisionError:
        return _passing_clauses(x)


def _passing_clauses(x):
    try:
        try:
            return _inverse(x)
        except ZeroDivisionError:
            return 1 // x
    except ValueError:
        return 0


def _unassigned_in_a_clause(x):
    try:
        return _inverse(x)
    except ZeroDivisionError:
        return _unassigned(x)


def _unassigned(x):
    if x:
        y = x
    return y


def _uncalled(x):
    if x:

        def inner(y):
            return y

    return inner(x)


def _lines(error: BaseException | None) -> list[object]:
    """An exception with its lines in this file, and those that it refers to."""
    if error is None:
        return []
    frames = traceback.extract_tb(error.__traceback__)
    of_file = [(each.name, each.lineno) for each in frames if each.filename == __file__]
    lines = [each for each in of_file if each[0] not in ("_outcome", __name__)]
    found: list[object] = [type(error), error.args, vars(error), lines, error.__suppress_context__]
    return [*found, _lines(error.__cause__), _lines(error.__context__)]


def _outcome(function: Callable[..., Any], arguments: Sequence[Any]) -> object:
    try:
        return function(*arguments)
    except Exception as error:  # noqa: BLE001  # to be compared
        return _lines(error)


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (_caused, (0,)),
        (_without_cause, (0,)),
        (_in_context, (0,)),
        (_again, (np.arange(3), 7)),
        (_by_name, (np.arange(3), 7)),
        (_with_message, (np.arange(3), -4)),
        (_passing, (0,)),
        (_nested, (0,)),
        (_nested, (1,)),
        (_handling_twice, (0,)),
        (_called_in_a_clause, (0,)),
        (_passing_clauses_in_a_clause, (0,)),
        (_unassigned_in_a_clause, (0,)),
        (_unassigned, (0,)),
        (_uncalled, (0,)),
    ],
)
def test_exceptions_have_causes_contexts_messages_and_lines_of_python(
    function: Callable[..., Any], arguments: Sequence[Any]
) -> None:
    found = _outcome(ferryvm.function(function), arguments)
    assert isinstance(found, list)
    assert found == _outcome(function, arguments)


def test_a_clause_that_tests_the_type_runs_in_compiled_code_for_callees_too() -> None:
    @ferryvm.function
    def total(xs, count):
        found = 0.0
        for i in range(count):
            try:
                found += _inverse(int(xs[i]))
            except (IndexError, ZeroDivisionError):
                found += 100
        return found

    assert total(np.array([0, 2, 0, 4]), 6) == 400.75
    assert "CPython" not in str(total.explain())


def test_results_of_clauses_that_python_runs_have_the_type_of_the_map() -> None:
    def half(x):
        try:
            return 10 // x
        except ZeroDivisionError as e:
            return len(str(e)) if x is None else 0.5

    with pytest.raises(ferryvm.FerryError, match=r"a result is 0\.5, where those before are int64"):
        ferryvm.map(half, [1, 0])


def test_recursion_too_deep_for_python_is_a_recursion_error_and_passes_clauses() -> None:
    @ferryvm.function
    def deep(xs, n):
        xs[0] += 1
        if n == 0:
            raise ValueError(f"at {n}")
        return deep(xs, n - 1)

    with pytest.raises(RecursionError, match=r"computed arguments .deep, .*more than 2000 calls"):
        deep(np.zeros(1), 2500)


def test_python_goes_on_in_inner_functions_that_are_lowered_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lowered: list[object] = []

    def counted(source: Any) -> Any:
        lowered.append(source)
        return Lowering(source)

    @ferryvm.function
    def powers(n):
        def scaled(x, k):
            y = x * k
            return y + 1

        total = n
        for k in range(6):
            total = scaled(total, k + 2)
        return total

    monkeypatch.setattr(continuation, "Lowering", counted)
    assert powers(1 << 62) == powers.__wrapped__(1 << 62) > 1 << 63
    assert len(lowered) == 1


def _stored(a, x):
    a[0] = int(a[0]) * x


def _stored_in_a_call(a, x):
    def scaled(n):
        return n * x

    a[1] = scaled(int(a[0]))


def _filled(a, x):
    a.fill(x * 2**62)


def _added(a, x):
    return a[1] + x * 2**62


def _narrow(a, x):
    b = np.zeros(2, np.int32)
    b[1] = len(a) and x << 40


@pytest.mark.rotate("function", "backend")
@pytest.mark.parametrize("backend", ["reference", "switch", "threaded", "llvm", "opencl", "vliw"])
@pytest.mark.parametrize(
    ("function", "shown"),
    [
        (_stored, r"a\[0\] = int\(a\[0\]\) \* x; the value is 18446744073709551616"),
        (_stored_in_a_call, r"a\[1\] = .*; the value is 18446744073709551616"),
        (_filled, r"a\.fill\(x \* 2\*\*62\); x = 4"),
        (_added, r"return a\[1\] \+ x \* 2\*\*62; x = 4"),
        (_narrow, r"b\[1\] = len\(a\) and x << 40; the value is 4398046511104"),
    ],
)
def test_an_integer_that_no_element_holds_is_shown_with_its_line(
    backend: str, function: Callable[..., Any], shown: str
) -> None:
    a = np.array([1 << 62, 1, 2])
    with pytest.raises(OverflowError):
        check(function, a, 4, backends=[backend])
    with pytest.raises(OverflowError) as raised:
        ferryvm.function(function, backend=backend)(a, 4)
    assert a.tolist() == [1 << 62, 1, 2]
    (note,) = raised.value.__notes__
    line = function.__code__.co_firstlineno
    assert re.fullmatch(rf".*test_exception\.py:(\d+): {shown}.*", note)
    assert line < int(note.split(":")[1]) <= line + 4


def test_an_integer_that_no_element_holds_is_shown_of_arguments_maps_and_scans() -> None:
    @ferryvm.function
    def put(a, x):
        a[0] = x

    def raised(i, a):
        a[i] = (i + 3_000_000) ** 4
        return i

    with pytest.raises(OverflowError) as large:
        put(np.zeros(1, np.int64), 1 << 70)
    assert large.value.__notes__[0].endswith("a[0] = x; x = 1180591620717411303424")
    with pytest.raises(OverflowError, match="in item 0 of a map") as item:
        ferryvm.map(raised, range(3), a=np.zeros(3, np.int64))
    assert "the value is 81000000000000000000000000, i = 0" in item.value.__notes__[0]
    wanted = "result 20 is 51090942171709440000, which does not fit into int64"
    with pytest.raises(OverflowError, match=wanted):
        ferryvm.scan(lambda a, b: a * b, range(1, 30))


def test_a_value_that_was_stored_before_is_not_shown_of_another_line() -> None:
    @ferryvm.function
    def later(a, x):
        try:
            a[7] = x << 62
        except IndexError as e:
            x += len(str(e)) * 0
        return np.int64(x << 62)

    with pytest.raises(OverflowError) as raised:
        later(np.zeros(2, np.int64), 2)
    assert raised.value.__notes__[0].endswith("return np.int64(x << 62); x = 2")
    with pytest.raises(OverflowError) as other:
        ferryvm.function(lambda x: x**0.5 * 1e308 // 1e-300 if x < 0 else int(x * 1e308 * 10))(5.0)
    assert not hasattr(other.value, "__notes__")


def test_items_that_python_finishes_share_the_code_of_statements(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    compiled: list[ast.stmt] = []

    def counted(self: Statements, node: ast.stmt) -> types.CodeType:
        compiled.append(node)
        return _COMPILED(self, node)

    def large(x, k):
        y = x * x * x * x + k
        return y % 1000 if y % 2 else y // 10**20

    monkeypatch.setattr(Statements, "compiled", counted)
    items = range(3_000_000, 3_000_040)
    for k in (0, 1):
        assert ferryvm.map(large, items, k=k).tolist() == [large(x, k) for x in items]
    assert 0 < len(compiled) < 20


def test_python_goes_on_with_the_values_of_each_call() -> None:
    @ferryvm.function
    def sums(n, k):
        def scaled(x):
            return x * k + 1

        total = n
        for i in range(3):
            total += scaled(total) + i
        return total

    for n, k in ((1 << 62, 3), (5, 1 << 61), (1 << 61, 7), (3, 4)):
        assert sums(n, k) == sums.__wrapped__(n, k)


_COMPILED = Statements.compiled
