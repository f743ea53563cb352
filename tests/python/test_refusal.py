# SPDX-License-Identifier: Apache-2.0
"""Arguments and constructs at the edges of what is compiled: Python's own behaviour, or a clear
refusal."""

from __future__ import annotations

import copy
import enum
import pickle
import warnings
from collections import namedtuple
from typing import Any

import numpy as np
import pytest

import ferryvm
from ferryvm import UnsupportedError
from ferryvm.python.call import function as function_module


@ferryvm.function
def shared(x):
    return x + 1


class _Doubled(np.ndarray):
    def __getitem__(self, index: Any) -> Any:
        return 2 * super().__getitem__(index)


class _Level(enum.IntEnum):
    LOW = 1


_Point = namedtuple("_Point", "x y")  # an untyped one


@pytest.mark.parametrize(
    ("argument", "message"),
    [
        (np.ones(2).view(_Doubled), "a _Doubled is not supported; pass numpy.asarray.a."),
        (_Level.LOW, "a _Level is not supported; pass int.a."),
        (_Point(1, 2), "a _Point is not supported; pass tuple.a."),
        (object(), "an object is not supported; pass the numbers and arrays in it"),
    ],
)
def test_instances_of_other_classes_are_refused_with_a_conversion(
    argument: object, message: str
) -> None:
    with pytest.raises(UnsupportedError, match=message):
        ferryvm.function(lambda x: x[0])(argument)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("async def g(): pass", "an async function; write an ordinary one"),
        ("with x: pass", "with; open files and take locks in the caller"),
        ("class A: pass", "a class; define it outside"),
        ("try: pass\n    except* ValueError: pass", "except.; write except"),
        ("return {1: x}", "a dict; number its keys, and write a list"),
        ("return x(1)", "a call of int"),
        ("return tuple([x])", "a call of tuple; write the items out"),
        ("return [x].__getitem__(0)", "the method '__getitem__'; write lambda i: xs"),
        ("return lambda y: x", "a function that is returned, stored or printed"),
    ],
)
def test_constructs_are_refused_with_what_to_write(body: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=rf":2: f: cannot compile {message}"):
        ferryvm.function(f"def f(x):\n    {body}")(1)


@pytest.mark.parametrize(
    "body", ["return sorted([x, x])", "return [x, x].sort()", "return max(x, 1j)"]
)
def test_refusals_in_built_in_functions_have_the_line_of_the_call(body: str) -> None:
    with pytest.raises(UnsupportedError, match=r":3: f: cannot compile complex [<>] complex: "):
        ferryvm.function(f"def f(x):\n    x += 1\n    {body}")(2j)


def test_a_refusal_in_a_built_in_function_that_is_mapped_has_its_name_alone() -> None:
    with pytest.raises(UnsupportedError, match=r"^max: cannot compile complex"):
        ferryvm.map(max, np.array([1j]), 1j)


@pytest.mark.parametrize("index", ["x > 0", "a[0] > 0"])
@pytest.mark.parametrize("body", ["return a[{}]", "a[{}] = 1"])
def test_a_bool_is_no_index_of_an_array(body: str, index: str) -> None:
    with pytest.raises(UnsupportedError, match="bool as an index of an array; write int"):
        ferryvm.function(f"def f(a, x):\n    {body.format(index)}")(np.arange(3), 2)


def test_a_name_that_is_not_defined_raises_where_python_comes_to_it() -> None:
    @ferryvm.function
    def scaled(x):
        return x * nowhere if x > 0 else nothing(x)  # noqa: F821  # that is the point

    for argument, name in ((1, "nowhere"), (-1, "nothing")):
        with pytest.raises(NameError, match=f"name '{name}' is not defined") as caught:
            scaled(argument)
        assert caught.value.name == name
    globals()["nowhere"] = 3
    try:
        assert scaled(2) == 6
    finally:
        del globals()["nowhere"]
    with pytest.raises(NameError, match="nowhere"):
        scaled(2)


def test_compiled_functions_are_pickled_by_name_and_copied_like_functions() -> None:
    assert pickle.loads(pickle.dumps(shared)) is shared
    assert copy.copy(shared) is copy.deepcopy(shared) is shared
    apart = ferryvm.function(backend="switch")(_third)
    made = pickle.loads(pickle.dumps(apart))
    assert (made(3), made._engine is apart._engine) == (1.0, True)


def _third(x):
    return x / 3


def test_arguments_are_compared_with_annotations() -> None:
    @ferryvm.function
    def weighted(n: int, x: float, xs: np.ndarray = np.ones(1)) -> float:  # noqa: B008  # never changed
        return n * x * xs[0]

    assert weighted(2, 3) == weighted(np.int64(2), np.float32(3)) == weighted(True, 6.0) == 6
    with pytest.raises(UnsupportedError, match="argument n: it is annotated as int, and is float"):
        weighted(2.5, 1.0)
    with pytest.raises(UnsupportedError, match="argument xs: it is annotated as ndarray"):
        weighted(2, 1.0, (1,))  # type: ignore[arg-type]  # that is what is tested


def test_arrays_that_overlap_are_refused_by_their_names() -> None:
    @ferryvm.function
    def shift(x, y):
        for i in range(len(x)):
            y[i] = x[i] + 1

    a = np.zeros(4)
    with pytest.raises(UnsupportedError, match="shift: argument y shares memory with argument x"):
        shift(a[:-1], a[1:])
    assert a.tolist() == [0, 0, 0, 0]
    with pytest.warns(RuntimeWarning, match="shares memory"):
        ferryvm.function(strict=False)(shift.__wrapped__)(a[:-1], a[1:])
    assert a.tolist() == [0, 1, 2, 3]


def test_a_refused_function_is_compiled_again_only_after_a_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    tries: list[object] = []

    class Version(function_module.Version):
        def __init__(self, *arguments: Any) -> None:
            tries.append(arguments)
            super().__init__(*arguments)

    monkeypatch.setattr(function_module, "Version", Version)
    offset: object = "text"

    def below(x):
        return x + offset

    @ferryvm.function(strict=False)
    def called(x):
        return len({x: 1}) if offset == "text" else below(x)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        assert [called(3) for _ in range(3)] == [1, 1, 1]
        assert len(tries) == 1
        offset = 2
        assert called(3) == 5
        assert len(tries) > 1


def test_arrays_of_a_map_that_overlap_are_refused_by_their_names() -> None:
    a = np.zeros(4)
    with pytest.raises(ferryvm.FerryError, match=r"map of _third: argument out shares memory"):
        ferryvm.map(_third, a[:-1], out=a[1:])


def test_functions_that_assign_variables_are_no_values() -> None:
    def once(f, x):
        return f(x)

    def passed(n):
        total = 0

        def add(x):
            nonlocal total
            total += x
            return total

        return once(lambda x: add(x), n)  # that is what is tested

    def named(n):
        total = 0

        def add(x):
            nonlocal total
            total += x
            return total

        return once(add, n)

    def read_by_another(n):
        total = 0

        def apply(f, x):
            nonlocal total
            total += x
            return f(x)

        return apply(lambda x: x + total, n)

    for function, message in (
        (passed, "cannot compile <lambda>, which assigns 'total'"),
        (named, "cannot compile add, which assigns 'total'"),
        (read_by_another, "cannot pass function <lambda>, which uses 'total', to a function"),
    ):
        with pytest.raises(UnsupportedError, match=message):
            ferryvm.function(function)(1)


def test_items_whose_kinds_would_grow_without_end_are_refused_with_their_line() -> None:
    def doubled(a, b):
        last = b.pop()
        b[0] += last  # a tuple of twice as many, if `a` is such a list, too
        a[0] = (0, 0)

    def f(a):
        found = [(2, 1.0)]
        found[0] = (a[0], 3.0)  # makes items of `a` such items, too
        return found

    with pytest.raises(
        UnsupportedError, match=r"test_refusal\.py:\d+: f: items of a list have more"
    ):
        ferryvm.function(f)([(1, 2.0)])
    with pytest.raises(UnsupportedError, match=r"test_refusal\.py:\d+: doubled: items of a list"):
        ferryvm.function(doubled)([], [1.5, 2.5])
    assert ferryvm.function(f)([1]) == f([1])


@pytest.mark.parametrize("given", ["mine.toml", {"rule": []}])
def test_what_is_no_policy_is_refused_with_how_to_read_one(given: Any) -> None:
    with pytest.raises(TypeError, match=r"policy is .*; a Policy is needed; ferryvm\.policy\.load"):
        ferryvm.function(lambda x: x, policy=given)
    with pytest.raises(TypeError, match="a Policy is needed"):
        ferryvm.launch(ferryvm.kernel(_stores_nothing), 1, policy=given)
    with pytest.raises(TypeError, match="a Policy is needed"):
        ferryvm.Engine(policy=given)


@pytest.mark.parametrize("given", [["llvm"], 3, b"llvm"])
def test_what_is_no_name_of_a_backend_is_refused(given: Any) -> None:
    expected = r"backend is .*; the name of one is needed"
    with pytest.raises(TypeError, match=expected):
        ferryvm.function(lambda x: x, backend=given)
    with pytest.raises(TypeError, match=expected):
        ferryvm.launch(ferryvm.kernel(_stores_nothing), 1, backend=given)
    with pytest.raises(TypeError, match=expected):
        ferryvm.Engine(given)


def _stores_nothing() -> None:
    pass
