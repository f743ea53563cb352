# SPDX-License-Identifier: Apache-2.0
"""Maps of Python functions over arrays."""

from __future__ import annotations

import contextlib
import math
import traceback
import weakref

import numpy as np
import pytest

import ferryvm
from ferryvm import CallError

XS = np.arange(6.0)


def test_maps_give_the_values_of_the_function() -> None:
    found = ferryvm.map(lambda x, y, a: a * x + y, XS, XS[::-1].copy(), a=2.0)
    assert np.array_equal(found, 2.0 * XS + XS[::-1])


def test_shapes_and_several_results_are_kept() -> None:
    def both(x, k):
        return x + k, x > k

    total, above = ferryvm.map(both, XS.reshape(2, 3), k=3)
    assert np.array_equal(total, XS.reshape(2, 3) + 3)
    assert above.dtype == bool
    assert np.array_equal(above, XS.reshape(2, 3) > 3)


def test_results_of_several_kinds_are_those_of_numpy_array() -> None:
    found = ferryvm.map(lambda x: 0 if x < 3 else x, XS)
    wanted = np.array([0 if x < 3 else x for x in XS])
    assert found.dtype == wanted.dtype
    assert np.array_equal(found, wanted)


@pytest.mark.parametrize("dtype", ["f4", "i8", "i4", "i2", "u1", "?"])
def test_elements_are_numpy_s_scalars(dtype: str) -> None:
    given = np.array([1, 0, 1, 1], dtype)
    found = ferryvm.map(lambda x: x, given)
    assert found.dtype == given.dtype
    assert np.array_equal(found, given)


def test_ranges_give_python_s_integers() -> None:
    def look(i, table):
        return table[i] * 2

    found = ferryvm.map(look, range(2, -1, -1), table=np.array([1.5, 2.5, 3.5]))
    assert found.tolist() == [7.0, 5.0, 3.0]


def test_results_go_into_arrays_that_are_given() -> None:
    xs = XS.copy()
    assert ferryvm.map(lambda x: x * 2, xs, out=xs) is xs
    assert np.array_equal(xs, XS * 2)
    with pytest.raises(CallError, match="out is int64; an array of float64 is needed, as numpy"):
        ferryvm.map(lambda x: x * 2, xs, out=np.zeros(6, np.int64))


def test_the_first_item_that_raises_raises() -> None:
    def root(x):
        return math.sqrt(x)

    with pytest.raises(ValueError, match="math domain error") as caught:
        ferryvm.map(root, np.array([[4.0, 1.0], [-1.0, -2.0]]))
    assert str(caught.value).endswith(", in item 1, 0 of a map")
    lines = [frame.line for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert lines[-1] == "return math.sqrt(x)"


def test_exceptions_that_are_not_python_s_have_their_arguments_and_a_note() -> None:
    def looked_up(x):
        if x > 1:
            raise KeyError("x")
        return x

    with pytest.raises(KeyError) as caught:
        ferryvm.map(looked_up, XS)
    assert caught.value.args == ("x",)
    assert caught.value.__notes__ == ["in item 2 of a map"]
    with pytest.raises(AssertionError, match=r"^in item 2 of a map$"):
        ferryvm.map(ferryvm.function("def small(x):\n    assert x < 2\n    return x"), XS)


def test_items_that_leave_64_bits_are_finished_by_python() -> None:
    @ferryvm.function
    def remainder(x, k):
        return int(x) * k % 1000003

    found = ferryvm.map(remainder, XS, k=1 << 62)
    assert found.tolist() == [int(x) * (1 << 62) % 1000003 for x in XS]
    assert "CPython ran remainder 4 times: OverflowError at line" in str(remainder.explain())
    with pytest.raises(OverflowError) as caught:
        ferryvm.map(lambda x, k: int(x) * k, XS, k=1 << 62)
    assert str(caught.value).endswith(", in item 2 of a map")


TABLE = np.array([1.5, 2.5, 3.5])


def test_items_see_arrays_of_free_names_and_print_in_order(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def shown(i):
        if i > 0:
            print("item", i, f"{TABLE[i]:.2f}")
        return TABLE[i]

    assert ferryvm.map(shown, range(3)).tolist() == TABLE.tolist()
    assert capsys.readouterr().out == "item 1 2.50\nitem 2 3.50\n"


def test_arrays_that_do_not_fit_are_named() -> None:
    with pytest.raises(
        CallError, match=r"map of f: x and y have different shapes, \(6,\) and \(5,"
    ):
        ferryvm.map(ferryvm.function("def f(x, y): return x + y"), XS, XS[:5])
    with pytest.raises(
        CallError, match="no argument is an array of elements; call <lambda> itself"
    ):
        ferryvm.map(lambda x: x, 1.0)
    with pytest.raises(CallError, match="map of <lambda>: missing a required argument: 'y'"):
        ferryvm.map(lambda x, y: x, XS)
    with pytest.raises(
        TypeError, match="map takes a Python function, or a function of an instance"
    ):
        ferryvm.map("sqrt", XS)


@pytest.mark.parametrize("backend", ["reference", "switch", "llvm", "opencl"])
def test_maps_run_on_every_backend(backend: str) -> None:
    @ferryvm.function(backend=backend)
    def escape(x, limit):
        z, count = x - x, 0
        while z * z < 4.0 and count < limit:
            z = z * z + x
            count += 1
        return count

    given = np.linspace(-2.0, 1.0, 40)
    found = ferryvm.map(escape, given, limit=50)
    assert found.tolist() == [escape.__wrapped__(x, 50) for x in given]


def test_results_of_maps_are_freed_with_the_last_name() -> None:
    def twice(x):
        return x + x

    first = weakref.ref(ferryvm.map(twice, XS))
    assert first() is None
    held = [ferryvm.map(twice, XS + n) for n in range(5)]
    ferryvm.map(twice, held[0], out=held[1])
    for n in (0, 2, 3, 4):
        assert np.array_equal(held[n], 2 * (XS + n))
    assert np.array_equal(held[1], 4 * XS)


def test_fresh_results_of_any_length_share_one_object() -> None:
    @ferryvm.function
    def twice(x):
        return x + x

    given = [np.arange(float(length)) for length in (64, 1, 63)]
    held = [ferryvm.map(twice, xs) for xs in given]
    (plan,) = twice.maps.values()
    objects = plan.version.function.__ferryvm__[0].machine.objects
    top = objects.control.object_top
    held += [ferryvm.map(twice, xs) for xs in given]
    assert objects.control.object_top == top
    assert len(objects.space.hosts) == len(given)
    objects.force()  # none is there after a collection
    held.append(ferryvm.map(twice, given[0]))
    assert all(np.array_equal(each, 2 * np.arange(float(len(each)))) for each in held)


@pytest.mark.parametrize("has_out", [False, True])
def test_later_maps_raise_and_go_on_like_the_first(has_out: bool) -> None:
    def divided(x, k):
        if x == 3:
            return k * k // 4, k / x
        return int(x), k / x

    for k in (8, 9, 1 << 40, 10, 1 << 31):
        out = (np.zeros(6, np.int64), np.zeros(6)) if has_out else None
        if k == 1 << 40:
            with pytest.raises(OverflowError, match=r"in item 2 of a map"):
                ferryvm.map(divided, XS + 1, out=out, k=k)
            continue
        found = ferryvm.map(divided, XS + 1, out=out, k=k)
        wanted = [divided(x, k) for x in XS + 1]
        assert [each.tolist() for each in found] == [
            list(each) for each in zip(*wanted, strict=True)
        ]
        with pytest.raises(CallError, match="x and y have different shapes"):
            ferryvm.map(lambda x, y: x + y, XS, XS[: k % 5])


def test_a_map_in_an_item_of_the_same_map_gets_another_instance() -> None:
    def shown(x):
        print(x)
        return x + 1

    inner: list[object] = []

    class Stream:
        def write(self, text: str) -> None:
            if not inner:
                inner.append(None)
                inner.extend(ferryvm.map(shown, -XS).tolist())

    ferryvm.map(shown, XS)
    with contextlib.redirect_stdout(Stream()):  # type: ignore[type-var]  # print needs no more
        assert ferryvm.map(shown, XS).tolist() == (XS + 1).tolist()
    assert inner == [None, *(1 - XS)]


def test_later_maps_check_the_arrays_for_results() -> None:
    def twice(x):
        return x + x

    xs, out = np.arange(4.0), np.zeros(4)
    for _ in range(3):
        assert ferryvm.map(twice, xs, out=out) is out
        assert out.tolist() == [0, 2, 4, 6]
        with pytest.raises(CallError, match=r"out has the shape \(3,\)"):
            ferryvm.map(twice, xs, out=np.zeros(3))
    out.flags.writeable = False
    with pytest.raises(CallError, match="out is read-only"):
        ferryvm.map(twice, xs, out=out)
    with pytest.raises(CallError, match="contiguous"):
        ferryvm.map(twice, np.arange(8.0)[::2], out=np.zeros(4))


def test_code_around_the_items_of_a_map_does_not_run_on_a_device() -> None:
    @ferryvm.function(backend="opencl")
    def affine(x):
        return 2.0 * x + 1.0

    xs = np.arange(40.0)
    for _ in range(60):  # the code around them is hot then
        assert np.array_equal(ferryvm.map(affine, xs), 2.0 * xs + 1.0)
    shown = str(affine.explain())
    assert "everything to opencl" in shown
    assert shown.count(": interpreted") == 2
    assert "launches is 1, wanted >= 1" in shown
