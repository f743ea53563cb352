# SPDX-License-Identifier: Apache-2.0
"""Kernels in Python: launches, groups, and their errors."""

from __future__ import annotations

import pickle
import traceback

import numpy as np
import pytest

import ferryvm
from ferryvm import KernelError, UnsupportedError
from ferryvm.testing import PythonDifferenceError, check_kernel, run_kernel

XS = np.arange(16.0)


@ferryvm.kernel
def reverse_tiles(out, x):
    i, l = ferryvm.item(), ferryvm.local_item()
    tile = ferryvm.group_array(8, "f64")
    tile[l] = x[i]
    ferryvm.barrier()
    out[i] = tile[7 - l]


@pytest.mark.rotate("backend")
@pytest.mark.parametrize("backend", ["reference", "switch", "threaded", "llvm"])
def test_items_see_behind_a_barrier_what_others_of_the_group_wrote(backend: str) -> None:
    out = np.zeros_like(XS)
    ferryvm.launch(reverse_tiles, len(XS), out, XS, group=8, backend=backend)
    assert out.tolist() == XS.reshape(2, 8)[:, ::-1].ravel().tolist()


def test_places_of_items_follow_the_rows_of_arrays() -> None:
    @ferryvm.kernel
    def place(out):
        i, j = ferryvm.item(0), ferryvm.item(1)
        out[i, j, 0] = ferryvm.local_item() * 10 + ferryvm.local_item(axis=1)
        out[i, j, 1] = ferryvm.group_number(0) * 10 + ferryvm.group_number(1)
        out[i, j, 2] = ferryvm.group_size(0) * 10 + ferryvm.group_size(1)
        out[i, j, 3] = ferryvm.group_count(0) * 10 + ferryvm.group_count(1)
        out[i, j, 4] = ferryvm.item_count(0) * 10 + ferryvm.item_count(1)

    out = np.zeros((4, 6, 5), np.int64)
    ferryvm.launch(place, (4, 6), out, group=(2, 3), backend="switch")
    assert out[3, 4].tolist() == [11, 11, 23, 22, 46]
    assert out[0, 5].tolist() == [2, 1, 23, 22, 46]


def test_items_without_groups_are_plain() -> None:
    @ferryvm.kernel
    def scale(out, x, k=2.0):
        out[ferryvm.item()] = x[ferryvm.item()] * k + ferryvm.item_count()

    out = np.zeros_like(XS)
    ferryvm.launch(scale, len(XS), out, XS)
    assert np.array_equal(out, XS * 2.0 + 16)
    ferryvm.launch(scale, 2, out, XS, 3.0)
    assert out[:3].tolist() == [2.0, 5.0, 20.0]


def other_half(x, i):
    ferryvm.barrier()
    return x[i + ferryvm.group_size() // 2 - ferryvm.local_item()]


def test_functions_that_are_called_know_their_place_and_wait() -> None:
    @ferryvm.kernel
    def kernel(out, x):
        i = ferryvm.item()
        x[i] += 1.0
        out[i] = other_half(x, i)

    out, xs = np.zeros_like(XS), XS.copy()
    ferryvm.launch(kernel, len(XS), out, xs, group=4, backend="switch")
    assert out.tolist() == [3.0] * 4 + [7.0] * 4 + [11.0] * 4 + [15.0] * 4


def test_functions_that_are_called_may_be_the_first_to_use_a_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("barrier", "group_size", "local_item"):  # not imported yet
        monkeypatch.delitem(vars(ferryvm), name, raising=False)
    test_functions_that_are_called_know_their_place_and_wait()


def test_exceptions_name_line_item_and_group() -> None:
    @ferryvm.kernel
    def beyond(out, x):
        ferryvm.barrier()
        out[ferryvm.item()] = x[ferryvm.item() + 3]

    with pytest.raises(IndexError, match="index 16 is out of bounds") as caught:
        ferryvm.launch(beyond, 16, XS.copy(), XS, group=8, backend="switch")
    assert str(caught.value).endswith(", in item 13, item 5 of group 1 of kernel beyond")
    assert traceback.extract_tb(caught.value.__traceback__)[-1].name == "beyond"


def test_items_that_do_not_all_wait_are_named_with_their_lines() -> None:
    @ferryvm.kernel
    def diverge(n):
        if ferryvm.item() != n:
            ferryvm.barrier()

    wanted = r"diverge, group 1: .*: item 0 waits at .*test_kernel.py:\d+:\d+; item 1 has ended$"
    with pytest.raises(KernelError, match=wanted):
        ferryvm.launch(diverge, 16, 9, group=8, backend="switch")


def test_read_only_arrays_and_large_integers_end_a_launch() -> None:
    @ferryvm.kernel
    def multiply(out, k):
        out[ferryvm.item()] = k * ferryvm.item()

    out = np.zeros(4)
    with pytest.raises(OverflowError, match=r"multiply: an integer .*test_kernel.py:\d+\); "):
        ferryvm.launch(multiply, 4, out, 1 << 62)
    out.flags.writeable = False
    with pytest.raises(ValueError, match="assignment destination is read-only"):
        ferryvm.launch(multiply, 4, out, 1)


@pytest.mark.parametrize(
    ("n", "group", "message"),
    [
        (15, 8, "15 items are no multiple of the group of 8; launch 16, and test the index"),
        ((8, 8), 8, "n has 2 dimensions and group has 1; both need as many"),
        (-1, None, "n is -1; a number of items is 0 or more"),
        (1 << 63, None, "n is 9223372036854775808, which does not fit into 64 bits"),
        (8, 0, "group is 0; a group has 1 item or more"),
        (8.0, None, "n is 8.0; an int, or a tuple of up to three is needed"),
        ((1, 1, 1, 1), None, "n has 4 dimensions; 1 to 3 are possible"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(n: object, group: object, message: str) -> None:
    with pytest.raises(KernelError, match="^reverse_tiles: " + message):
        ferryvm.launch(reverse_tiles, n, XS, XS, group=group)  # type: ignore[arg-type]  # wrong


def refusal(*lines: str, group: int | None = 4, names: str = "out") -> str:
    """The error for a kernel of these lines."""
    body = "\n".join(f"    {line}" for line in lines)
    made = ferryvm.kernel(ferryvm.function(f"def f({names}):\n{body}").__ferryvm_function__)
    made.function.__globals__["ferryvm"] = ferryvm
    with pytest.raises(UnsupportedError) as caught:
        ferryvm.launch(made, 4, *[1] * (names.count(",") + 1), group=group)
    return str(caught.value)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["return 1"], "a kernel returns nothing; store the value into an array"),
        (["try:", "    pass", "finally:", "    pass"], "cannot compile try in a kernel"),
        (["if out:", "    t = ferryvm.group_array(4, 'f64')"], "outside of if, loops and"),
        (["t = ferryvm.group_array(ferryvm.item(), 'f64')"], "item() differs from item to item"),
        (["n = 3", "t = ferryvm.group_array(n, 'f64')"], "'n' is assigned in the kernel"),
        (["t = ferryvm.group_array(4, 'f8')"], "is one of 'f64', 'f32',"),
        (["t = ferryvm.group_array(4)"], "group_array takes a shape and a dtype"),
        (["i = ferryvm.item(1)"], "takes an axis that is written out; the launch has 1 dimension"),
        (["i = ferryvm.item(out)"], "takes an axis that is written out"),
        (["x = {1}"], "cannot compile a set"),
    ],
)
def test_unsupported_kernels_are_refused_in_one_line(lines: list[str], message: str) -> None:
    found = refusal(*lines)
    assert message in found
    assert "\n" not in found


@pytest.mark.parametrize("name", ["barrier", "local_item", "group_number", "group_size"])
def test_groups_are_needed_for_what_belongs_to_them(name: str) -> None:
    assert f"ferryvm.{name} needs groups; pass group=" in refusal(f"ferryvm.{name}()", group=None)


def test_kernels_run_in_launches_alone() -> None:
    with pytest.raises(KernelError, match=r"write ferryvm.launch\(reverse_tiles, n, ...\)"):
        reverse_tiles(XS, XS)
    with pytest.raises(KernelError, match=r"ferryvm\.barrier is called outside of a kernel"):
        ferryvm.barrier()
    assert pickle.loads(pickle.dumps(reverse_tiles)) is reverse_tiles
    with pytest.raises(UnsupportedError, match=r"ferryvm\.item belongs in a kernel"):
        ferryvm.function(lambda: ferryvm.item())()
    with pytest.raises(TypeError, match=r"launch takes a kernel, made by ferryvm\.kernel; found"):
        ferryvm.launch(len, 3)  # type: ignore[arg-type]  # wrong
    with pytest.raises(KernelError, match="reverse_tiles: missing a required argument: 'x'"):
        ferryvm.launch(reverse_tiles, 8, XS, group=8)
    with pytest.raises(UnsupportedError, match="argument x: a list in a kernel"):
        ferryvm.launch(reverse_tiles, 8, XS, [1.0], group=8)


@ferryvm.kernel
def update(a, old):
    i = ferryvm.item()
    old[i] = ferryvm.atomic_add(a, (0, i), 5)
    ferryvm.atomic_max(a, (0, i), old[i] + 1)
    ferryvm.atomic_min(a, (1, i), 3)
    ferryvm.atomic_and(a, (1, i), 6)
    ferryvm.atomic_or(a, (1, i), 8)
    ferryvm.atomic_exchange(a, (2, i), 7)
    old[i] += ferryvm.atomic_compare_exchange(a, (2, i), 7, i)


@pytest.mark.parametrize("dtype", [np.int32, np.uint32, np.int64])
def test_atomic_updates_return_the_former_element(dtype: type) -> None:
    given = np.arange(12).reshape(3, 4).astype(dtype)
    found, old = check_kernel(update, 4, given, np.zeros(4, dtype), backends=["switch"])
    assert found.tolist() == [[5, 6, 7, 8], [10, 10, 10, 10], [0, 1, 2, 3]]
    assert old.tolist() == [7, 8, 9, 10]


def test_atomic_updates_that_are_not_used_leave_items_independent() -> None:
    @ferryvm.kernel
    def count(bins, x):
        ferryvm.atomic_add(bins, x[ferryvm.item()], 1)

    bins = np.zeros(4, np.int64)
    ferryvm.launch(count, 4, bins, np.array([1, 3, 1, 1]), backend="switch")
    assert bins.tolist() == [0, 3, 0, 1]
    with pytest.raises(IndexError, match="index 4 is out of bounds"):
        ferryvm.launch(count, 1, bins, np.array([4]), backend="switch")
    with pytest.raises(UnsupportedError, match="atomic_add needs an array of int32, uint32,"):
        ferryvm.launch(count, 4, np.zeros(4), np.array([1]))
    with pytest.raises(TypeError, match="an atomic update needs an array of int32, uint32"):
        ferryvm.atomic_add(np.zeros(4), 0, 1)
    assert ferryvm.function(lambda a: ferryvm.atomic_add(a, 1, 2) + 1)(bins) == 4
    assert bins[1] == 5


def test_checked_kernels_are_those_of_cpython_or_the_difference_is_named() -> None:
    @ferryvm.kernel
    def large(out, k):
        out[ferryvm.item()] = k * ferryvm.item() // k

    out, _ = check_kernel(large, 4, np.zeros(4), 1 << 61, backends=["switch"])
    assert out.tolist() == [0.0, 1.0, 2.0, 3.0]
    with pytest.raises(PythonDifferenceError, match="large on switch: OverflowError"):
        check_kernel(large, 8, np.zeros(8), 1 << 61, backends=["switch"])
    with pytest.raises(IndexError, match="index 4 is out of bounds"):
        check_kernel(large, 5, np.zeros(4), 1, backends=["switch"])


def test_cpython_finds_items_that_do_not_all_wait() -> None:
    @ferryvm.kernel
    def diverge(n):
        if ferryvm.item() != n:
            ferryvm.barrier()

    wanted = r"group 1: .*: item 0 waits at .*test_kernel.py:\d+:13; item 1 has ended$"
    with pytest.raises(KernelError, match=wanted):
        run_kernel(diverge, 16, 9, group=8)
    with pytest.raises(KernelError, match=r"ferryvm\.barrier needs groups"):
        run_kernel(diverge, 16, 9)


def waiting(x):
    ferryvm.barrier()
    return x


def test_items_wait_at_one_barrier_with_variables_of_different_types() -> None:
    @ferryvm.kernel
    def mixed(out, x):
        me, value = ferryvm.local_item(), 0
        if me == 1:
            value = x[me]
        if me == 2:
            value = 0.5
        ferryvm.barrier()
        for _ in range(2):
            value = value / 2 if me else value + 3
            ferryvm.barrier()
        out[me] = value

    out, _ = check_kernel(mixed, 4, np.zeros(4), XS, group=4, backends=["switch"])
    assert out.tolist() == [6.0, 0.25, 0.125, 0.0]


def test_calls_that_wait_need_variables_of_one_type() -> None:
    @ferryvm.kernel
    def mixed(out, x):
        value = 0.0
        if ferryvm.item() == 1:
            value = x[1]
        out[ferryvm.item()] = waiting(value)

    with pytest.raises(UnsupportedError, match="may wait here with variables of different types"):
        ferryvm.launch(mixed, 4, np.zeros(4), XS, group=4)


@ferryvm.kernel
def turn(out, x, waits):
    i, me = ferryvm.item(), ferryvm.local_item()
    tile = ferryvm.group_array(4, "f64")
    tile[me] = x[i]
    if waits:
        ferryvm.barrier()
    out[me if waits == 2 else i] = tile[(me + 1) % 4]


def test_the_check_of_independence_names_items_and_lines() -> None:
    def checked(waits: int) -> None:
        ferryvm.launch(turn, 8, np.zeros(8), XS, waits, group=4, check="independence")

    checked(1)
    wanted = (
        r"turn: item 0 and item 1 of a group are not independent: item 0 read element 1 of the f64\[4\] "
        r"at \d+ at .*test_kernel.py:\d+:\d+, item 1 writes it at .*test_kernel.py:\d+:\d+$"
    )
    with pytest.raises(KernelError, match=wanted):
        checked(0)
    with pytest.raises(
        KernelError, match=r"^turn: group 0 and group 1 are not independent: group 0"
    ):
        checked(2)
    with pytest.raises(
        KernelError, match="turn: a check takes no policy, and the backend reference"
    ):
        ferryvm.launch(turn, 8, XS, XS, 1, group=4, check="independence", backend="llvm")
    with pytest.raises(KernelError, match="check is 'races'; 'independence' is possible"):
        ferryvm.launch(turn, 8, XS, XS, 1, group=4, check="races")  # type: ignore[arg-type]  # wrong


def test_items_of_several_axes_are_named_by_their_indices() -> None:
    @ferryvm.kernel
    def collide(out):
        out[ferryvm.item(0)] = ferryvm.item(1)

    wanted = (
        r"collide: item \(0, 0\) and item \(0, 1\) are not independent: item \(0, 0\) wrote element"
    )
    with pytest.raises(KernelError, match=wanted):
        ferryvm.launch(collide, (2, 2), np.zeros(2), check="independence")
    with pytest.raises(IndexError, match="index 2 is out of bounds") as caught:
        ferryvm.launch(collide, (4, 2), np.zeros(2), group=(2, 2), backend="switch")
    assert str(caught.value).endswith(
        ", in item (2, 0), item (0, 0) of group (1, 0) of kernel collide"
    )


@ferryvm.kernel
def combine(out, x, n):
    i, value = ferryvm.item(), 0.0
    if i < n:
        value = x[i]
    out[i, 0] = ferryvm.group_sum(value)
    out[i, 1] = ferryvm.group_min(x[i])
    out[i, 2] = ferryvm.group_max(x[i])
    out[i, 3] = ferryvm.group_scan(value)
    out[i, 4] = ferryvm.group_scan_before(np.int32(i))
    out[i, 5] = ferryvm.group_broadcast(i, 2)


def test_groups_combine_values_in_the_order_of_reductions() -> None:
    xs = np.random.default_rng(3).standard_normal(40)
    xs[[0, 1]] = 0.0, -0.0
    out, _, _ = check_kernel(combine, 40, np.zeros((40, 6)), xs, 30, group=20, backends=["switch"])
    parts = xs.reshape(2, 20)
    assert out[25, 1:3].tolist() == [parts[1].min(), parts[1].max()]
    assert np.allclose(out[[0, 39], 0], [parts[0].sum(), parts[1, :10].sum()], rtol=1e-14)
    assert np.allclose(out[:20, 3], parts[0].cumsum(), rtol=1e-14)
    assert out[23, 4:].tolist() == [20 + 21 + 22, 22]


def mean(value):
    return ferryvm.group_sum(value) / (ferryvm.group_size(0) * ferryvm.group_size(1))


def test_functions_and_groups_of_two_axes_combine_values() -> None:
    @ferryvm.kernel
    def centre(out, x):
        i, j = ferryvm.item(0), ferryvm.item(1)
        out[i, j] = x[i, j] - mean(x[i, j]) + ferryvm.group_scan(1)

    xs = np.arange(8, dtype=np.float32).reshape(2, 4)
    out, _ = check_kernel(centre, xs.shape, np.zeros((2, 4)), xs, group=(2, 2), backends=["switch"])
    assert out.tolist() == [[-1.5, 0.5, -1.5, 0.5], [4.5, 6.5, 4.5, 6.5]]


def test_values_that_groups_cannot_combine_are_refused() -> None:
    assert "group_sum takes an int, a float, or one of" in refusal("ferryvm.group_sum(True)")
    assert "ferryvm.group_max needs groups; pass group=" in refusal(
        "ferryvm.group_max(1)", group=None
    )
    mixed = ["v = 1", "if ferryvm.item():", "    v = 0.5", "v = ferryvm.group_sum(v)"]
    assert "may wait here with variables of different types" in refusal(*mixed)


FACTOR = 2.0


def own_place(value):
    return value * 10 + ferryvm.local_item()


def test_arguments_may_be_functions_that_know_the_place_of_the_item() -> None:
    @ferryvm.kernel
    def apply(out, f):
        out[ferryvm.item()] = f(ferryvm.item())

    for function, wanted in ((own_place, [0, 11, 20, 31]), (lambda i: i + FACTOR, [2, 3, 4, 5])):
        out, _ = check_kernel(apply, 4, np.zeros(4), function, group=2, backends=["switch"])
        assert out.tolist() == wanted


def test_free_names_that_change_are_arguments_and_explain_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    @ferryvm.kernel
    def scale(out, x):
        out[ferryvm.item()] = x[ferryvm.item()] * FACTOR

    out = np.zeros(4)
    for factor in (2.0, 3.0, 4.0):
        monkeypatch.setitem(globals(), "FACTOR", factor)
        ferryvm.launch(scale, 4, out, XS, group=2, backend="switch")
        assert out[3] == 3.0 * factor
    text = str(ferryvm.explain(scale))
    assert "array of float64, 1-d, FACTOR: float) in groups of 2 on switch" in text
    assert "compiled scale again once: FACTOR has changed" in text


def test_kernels_are_not_launched_or_called_in_kernels() -> None:
    assert "a kernel is launched by Python" in refusal("ferryvm.launch(ferryvm.kernel, 4)")
    made = refusal("from_tests(out, out)", names="out, from_tests")
    assert "cannot compile a call of" in made


def test_items_print_in_their_order_and_an_exception_of_print_ends_the_launch(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    @ferryvm.kernel
    def report(x):
        print("before", ferryvm.item())
        ferryvm.barrier()
        print("behind", ferryvm.local_item(), x[0])

    ferryvm.launch(report, 4, XS, group=2, backend="switch")
    before = [f"before {i}" for i in range(4)]
    behind = ["behind 0 0.0", "behind 1 0.0"]
    assert capsys.readouterr().out.splitlines() == [*before[:2], *behind, *before[2:], *behind]
    monkeypatch.setattr("builtins.print", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        ferryvm.launch(report, 4, XS, group=2, backend="threaded")
