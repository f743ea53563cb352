# SPDX-License-Identifier: Apache-2.0
"""Kernels in Python: `ferryvm.kernel` and `ferryvm.launch`.

    launch(f, n, out, x, group=64)  ──>  a version of f for groups of 64 and the kinds of out and x
                                    ──>  n / 64 groups, each of which is a launch of 64 items

The items of a group wait for each other at barriers, and share its arrays. Arrays of the caller are
read and written where they are.
"""

from __future__ import annotations

import functools
import operator
import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, NoReturn, ParamSpec

from ferryvm.failure import shown
from ferryvm.policy import Policy
from ferryvm.policy.model import check_chosen
from ferryvm.python.control_flow.kernel_source import Layout
from ferryvm.python.group.kernel_launch import LaunchedKernel
from ferryvm.python.hosted.work_item import KernelError

if TYPE_CHECKING:
    from ferryvm.python.call.explanation import FunctionExplanation

P = ParamSpec("P")

MOST_DIMENSIONS = 3
"""The largest number of dimensions of a launch."""


Form = tuple[LaunchedKernel, tuple[int, ...]]
"""Launches of one form, and the numbers of items, or of groups, along each axis."""

_MOST_FORMS = 64

_PLAIN = {(int, group, backend) for group in (int, type(None)) for backend in (str, type(None))}
"""Types of the numbers of items and members, and the name of the backend, by which a form is looked
up at once."""


class Kernel(Generic[P]):
    """A Python function that `ferryvm.launch` calls for each of many items; made by
    `ferryvm.kernel`."""

    __ferryvm_launches__ = True

    def __init__(self, function: Callable[P, None]) -> None:
        if not isinstance(function, types.FunctionType) or function.__name__ == "<lambda>":
            raise TypeError(
                f"ferryvm.kernel takes a function that def defines, found {shown(function)}"
            )
        functools.update_wrapper(self, function)
        self.__name__ = function.__name__
        self.function = function
        """The function itself, as CPython has it."""
        self._launched: dict[tuple[Layout, str | None, Policy | None, bool], LaunchedKernel] = {}
        self.forms: dict[tuple[int, int | None, str | None], Form] = {}
        """Forms of launches by numbers of items and of members, and the backend, of those that give
        no more than that."""

    def __repr__(self) -> str:
        return f"<ferryvm.kernel {self.function.__qualname__}>"

    def __reduce__(self) -> str:
        """By name, as a function."""
        return self.function.__qualname__

    def __call__(self, *_args: P.args, **_kwargs: P.kwargs) -> NoReturn:
        """Refuse: an item alone is no launch. Raises KernelError."""
        name = self.__name__
        raise KernelError(f"{name} is a kernel; write ferryvm.launch({name}, n, ...)")

    def launched(
        self, layout: Layout, backend: str | None, policy: Policy | None, is_checked: bool = False
    ) -> LaunchedKernel:
        """Its launches of a form, on a backend or under a policy. `is_checked`: that items are
        independent."""
        key = layout, backend, policy, is_checked
        found = self._launched.get(key)
        if found is None or found.__ferryvm_function__ is not self.function:
            found = LaunchedKernel(self.function, backend, policy, layout, is_checked)
            self._launched[key] = found
        return found

    def note_form(self, key: tuple[int, int | None, str | None], form: Form) -> None:
        """Note a form that is expected to be wanted again."""
        if len(self.forms) >= _MOST_FORMS:
            self.forms = {}
        self.forms[key] = form

    def explain(self) -> FunctionExplanation:
        """The versions that were compiled, by forms of launches and kinds of arguments, and what
        the engine did with each."""
        from ferryvm.python.call.explanation import FunctionExplanation

        found = [each.explain() for each in self._launched.values()]
        versions = tuple(version for each in found for version in each.versions)
        notes = tuple(note for each in found for note in each.notes)
        return FunctionExplanation(self.__name__, versions, notes)


def kernel(function: Callable[P, None], /) -> Kernel[P]:
    """A kernel: a Python function that `ferryvm.launch` calls for each of many items; a decorator.

    `function`: returns nothing, and is compiled for the types of arguments as by
    `ferryvm.function`. docs/kernels.md has the rules. Raises TypeError for anything else.
    """
    return Kernel(function)


def launch(
    kernel: Kernel[...],
    n: int | Sequence[int],
    /,
    *arguments: Any,
    group: int | Sequence[int] | None = None,
    backend: str | None = None,
    policy: Policy | None = None,
    check: Literal["independence"] | None = None,
) -> None:
    """Call a kernel for each of `n` items, in groups of `group` items that wait for each other.

    `n`: the number of items, or a tuple with one for each of up to three axes, the last of which
    changes fastest; multiples of `group`, which has as many numbers. Without `group` the items are
    independent. `arguments`: the same for all items; arrays of NumPy are read and written where
    they are; a `DeviceArray` remains on the device that has run the items. `backend`, `policy`: as
    of `Engine`. `check`: "independence" runs it on the backend `reference`, slowly, and raises
    KernelError for two items of which one accesses what the other one writes.

    Raises KernelError for sizes that do not fit, and where items do not all wait at one barrier;
    UnsupportedError for what cannot be compiled; what an item raises, with a note that names the
    item: then others may have run or not.
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(f"launch takes a kernel, made by ferryvm.kernel; found {shown(kernel)}")
    key = n, group, backend
    is_plain = policy is None is check and (type(n), type(group), type(backend)) in _PLAIN
    if is_plain:
        form = kernel.forms.get(key)  # type: ignore[arg-type]  # it is of these types
        if form is not None and form[0].__ferryvm_function__ is kernel.function:
            form[0].launch(form[1], arguments)
            return
    layout, counts = arranged(kernel.__name__, n, group)
    if check not in (None, "independence"):
        raise KernelError(f"{kernel.__name__}: check is {shown(check)}; 'independence' is possible")
    if check and (policy is not None or backend not in (None, "reference")):
        raise KernelError(f"{kernel.__name__}: a check takes no policy, and the backend reference")
    check_chosen(backend, policy)
    launched = kernel.launched(layout, backend, policy, bool(check))
    if is_plain:
        kernel.note_form(key, (launched, counts))  # type: ignore[arg-type]  # likewise
    launched.launch(counts, arguments)


launch.__ferryvm_launches__ = True  # type: ignore[attr-defined]  # see `kernel_call`


def arranged(
    name: str, n: int | Sequence[int], group: int | Sequence[int] | None
) -> tuple[Layout, tuple[int, ...]]:
    """The form of a launch of a kernel, and the numbers of its items, or groups if there are some.
    Raises KernelError."""
    items = _sizes(name, "n", n)
    for size in items:
        if size < 0:
            raise KernelError(f"{name}: n is {shown(n)}; a number of items is 0 or more")
        if size >> 63:
            raise KernelError(f"{name}: n is {shown(n)}, which does not fit into 64 bits")
    if group is None:
        return Layout(len(items), None), items
    sizes = _sizes(name, "group", group)
    if len(sizes) != len(items):
        message = f"n has {len(items)} dimensions and group has {len(sizes)}; both need as many"
        raise KernelError(f"{name}: {message}")
    for size, of in zip(items, sizes, strict=True):
        if of < 1:
            raise KernelError(f"{name}: group is {shown(group)}; a group has 1 item or more")
        if size % of:
            whole = -(-size // of) * of
            raise KernelError(
                f"{name}: {size} items are no multiple of the group of {of}; launch {whole}, and test "
                "the index where an item stores"
            )
    return Layout(len(items), sizes), tuple(s // of for s, of in zip(items, sizes, strict=True))


def _sizes(name: str, what: str, given: int | Sequence[int]) -> tuple[int, ...]:
    try:
        found = tuple(operator.index(each) for each in given)  # type: ignore[union-attr]  # or TypeError
    except TypeError:
        try:
            return (operator.index(given),)  # type: ignore[arg-type]  # or TypeError
        except TypeError:
            wanted = "an int, or a tuple of up to three"
            raise KernelError(f"{name}: {what} is {shown(given)}; {wanted} is needed") from None
    if not 1 <= len(found) <= MOST_DIMENSIONS:
        wanted = f"1 to {MOST_DIMENSIONS} are possible"
        raise KernelError(f"{name}: {what} has {len(found)} dimensions; {wanted}")
    return found
