# SPDX-License-Identifier: Apache-2.0
"""Golden vectors: calls of a subject by the reference interpreter, arguments and outcome as bits.

Calls that do not end within their fuel are left out, since a receiver cannot wait for them. The
text form is made of words with white space between them:

    ferryvm-vectors 1 axpy            version and name
    v 7 1542                          a vector: its number, the status
    s 4000000000000000                a scalar argument
    a 2 3ff0000000000000 0            an array argument: its length, its elements
    = 1                               an array argument that is the same array as argument 1
    o 2 2 4008000000000000 0          argument 2 afterwards, if its elements have changed
    r 4014000000000000                a result; if the status is not 0 there is none
    .                                 the end of the vector

Numbers of vectors, lengths and statuses are decimal, bits are hexadecimal. Any NaN equals any NaN.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ferryvm.engine import Engine, TrapError
from ferryvm.engine.active_call import OutOfFuelError
from ferryvm.engine.independence import checking_engine
from ferryvm.errors import FerryError
from ferryvm.isa.element import Element
from ferryvm.isa.type import Type, from_float, to_python
from ferryvm.portable.refusal import ExportError
from ferryvm.portable.sample import ArrayInput, Input, inputs
from ferryvm.portable.sample_group import GroupSampler, GroupSizes
from ferryvm.portable.subject import Subject

if TYPE_CHECKING:
    from typing import Any

    from ferryvm.engine.instance import Instance

FUEL = 20_000
"""Instructions of one call."""

GROUP_FUEL = 70_000
"""Instructions of all launches of groups: less than a second, barriers included."""

FIRST_GROUP_FUEL = 140_000
"""Instructions of each of the first launches of groups, which have a second group along an axis, and
are made whatever they take."""

LONG_GROUP_FUEL = 800_000
"""Instructions of a launch of one group, if no launch ends within those."""

LEAST_FUEL = 3_000
"""Instructions that a launch has at least, since one that fails may need few."""

MOST_SKIPPED = 6
"""Launches in turn that are too long for the rest of the fuel, until no more are tried."""

ALL_FUEL = 300_000
"""Instructions of all calls: less than a second."""

LEAST_CALL = 100
"""Instructions that a call counts for at least, since it takes time apart from them."""

LAUNCH_FUEL = 150_000
"""Instructions of all launches without groups, whose accesses are checked."""

TRIES = 400
"""Calls that are tried."""


class Vector(NamedTuple):
    """One call and its outcome."""

    arguments: list[Input]
    status: int
    outputs: list[tuple[int, list[int]]]
    """Arrays that have changed: the number of the argument, the bits of the elements."""
    results: list[int]

    def without(self, places: Collection[int]) -> Vector:
        """The vector without some arguments, which are numbers."""
        if not places:
            return self
        rest = [place for place in range(len(self.arguments)) if place not in places]
        now = {place: number for number, place in enumerate(rest)}
        arguments: list[Input] = []
        for place in rest:
            each = self.arguments[place]
            if isinstance(each, ArrayInput) and each.same is not None:
                each = each._replace(same=now[each.same])
            arguments.append(each)
        outputs = [(now[place], bits) for place, bits in self.outputs]
        return self._replace(arguments=arguments, outputs=outputs)

    def text(self, number: int) -> str:
        """The vector in text form."""
        lines = [f"v {number} {self.status}"]
        for each in self.arguments:
            if isinstance(each, int):
                lines.append(f"s {each:x}")
            elif each.same is not None:
                lines.append(f"= {each.same}")
            else:
                lines.append(" ".join(["a", str(len(each.bits)), *(f"{b:x}" for b in each.bits)]))
        for place, bits in self.outputs:
            lines.append(" ".join(["o", str(place), str(len(bits)), *(f"{b:x}" for b in bits)]))
        lines += [f"r {bits:x}" for bits in self.results]
        return "\n".join([*lines, ".", ""])


class Vectors(NamedTuple):
    """The vectors of a function."""

    vectors: list[Vector]
    seed: int
    unfinished: int
    """Calls that were left out because they ran too long."""
    dependent: int
    """Launches that were left out because their items were not independent."""


def golden_vectors(
    subject: Subject, seed: int, count: int, size: int, groups: GroupSizes | None = None
) -> Vectors:
    """Up to so many vectors, whose text has at most so many bytes; half of them end with an error
    at most. `groups`: those that a launch has. Raises ExportError if no call ends."""
    found = _Found(count, size)
    calls = _Calls(subject)
    if groups is None:
        _call_all(calls, found, seed)
    else:
        _launch_all(calls, found, seed, groups)
    if not found.has_run:
        what = f"no call of {subject.origin} ended within {found.limit} instructions"
        position = subject.position(subject.entry)
        raise ExportError(what, "export a smaller part of it, such as one loop", position)
    return Vectors(found.vectors, seed, found.unfinished, found.dependent)


class _Found:
    """Vectors so far."""

    def __init__(self, count: int, size: int) -> None:
        """`count`, `size`: as of `golden_vectors`."""
        self.vectors: list[Vector] = []
        self.unfinished = self.dependent = 0
        self.limit = 0
        """The most instructions that a call was given."""
        self.has_run = False
        """True if there are vectors of more than launches without groups."""
        self._count, self._size, self._failing = count, size, 0
        self._seen: set[str] = set()

    @property
    def is_full(self) -> bool:
        """True if no more are wanted."""
        return len(self.vectors) >= self._count or self._size <= 0

    def try_call(self, calls: _Calls, arguments: list[Input], fuel: int) -> int:
        """Add the outcome of a call if it is wanted; the instructions that the call took."""
        key = repr(arguments)
        if key in self._seen:
            return 0
        self._seen.add(key)
        self.limit = max(self.limit, fuel)
        vector, spent = calls.call(arguments, fuel)
        if vector is None:
            self.unfinished += spent >= fuel
            self.dependent += spent < fuel
            return spent
        self._add(vector.without(calls.subject.folded))
        return spent

    def _add(self, vector: Vector) -> None:
        if vector.status:
            if 2 * self._failing > len(self.vectors):
                return
            self._failing += 1
        self._size -= len(vector.text(len(self.vectors) + 1))
        if self._size > 0:
            self.vectors.append(vector)


def _call_all(calls: _Calls, found: _Found, seed: int) -> None:
    """Call a function, or launch its items, with one input after the other."""
    subject = calls.subject
    left = LAUNCH_FUEL if calls.is_launch else ALL_FUEL
    wanted = inputs(calls.kinds, seed, subject.shapes, subject.axes, subject.folded, subject.pairs)
    for _, arguments in zip(range(TRIES), wanted, strict=False):
        if found.is_full or left <= 0:
            break
        left -= max(found.try_call(calls, arguments, FUEL), LEAST_CALL)
    found.has_run = bool(found.vectors)


def _launch_all(calls: _Calls, found: _Found, seed: int, sizes: GroupSizes) -> None:
    """Launch groups as often as the fuel allows, the fewer of them the more instructions a group
    has."""
    subject = calls.subject
    sampler = GroupSampler(calls.kinds, seed, subject.shapes, sizes, subject.folded)
    left, first, group, skipped = GROUP_FUEL, FIRST_GROUP_FUEL, 0, 0
    for _ in range(TRIES):
        if found.is_full or skipped > MOST_SKIPPED:
            break
        launch = sampler.next()
        is_first = launch.axis is not None
        if group * launch.groups > left and not launch.is_uneven and not is_first:
            skipped += 1
            continue
        before = len(found.vectors)
        fuel = first if is_first or not group else max(LEAST_FUEL, left)
        spent = found.try_call(calls, launch.made, fuel)
        left -= max(spent, LEAST_CALL)
        if is_first and 0 < group * 4 < GROUP_FUEL:
            left = max(left, GROUP_FUEL // 2)
        is_found = len(found.vectors) > before and launch.groups > 0
        found.has_run |= is_found
        if is_found and not found.vectors[-1].status:
            skipped, group = 0, max(group, spent // launch.groups)
            sampler.cover(launch.axis)
            sampler.limit(GROUP_FUEL // (12 * group + 1))
            sampler.may_share = group * 12 < GROUP_FUEL
        elif not group and left <= -GROUP_FUEL:
            if first == LONG_GROUP_FUEL:
                break
            left = first = LONG_GROUP_FUEL
            sampler.limit(1)
            sampler.cover(*range(sampler.axes))
        elif left <= 0:
            skipped += 1


def vector_text(name: str, vectors: Sequence[Vector]) -> str:
    """The text form of vectors of a function."""
    texts = [vector.text(number) for number, vector in enumerate(vectors, 1)]
    return f"ferryvm-vectors 1 {name}\n" + "".join(texts)


class _Calls:
    """Calls of a subject on the reference interpreter."""

    def __init__(self, subject: Subject) -> None:
        import numpy as np

        self.subject, self.np = subject, np
        self.kinds = [kind for _, kind in subject.parameters]
        self.is_launch = subject.item is not None
        self.engine = checking_engine() if self.is_launch else Engine("reference")
        self.instance: Instance = self.engine.instantiate(subject.verified.program)
        (export,) = subject.verified.program.exports
        self.name = export.name

    def call(self, arguments: Sequence[Input], fuel: int) -> tuple[Vector | None, int]:
        """The outcome of a call, None if it ran out of fuel or its items are not independent; and
        the fuel that it took."""
        given: list[Any] = []
        for (_, kind), argument in zip(self.subject.parameters, arguments, strict=True):
            if isinstance(argument, ArrayInput):
                assert isinstance(kind, Element)
                same = argument.same
                given.append(self._array(kind, argument.bits) if same is None else given[same])
            else:
                assert isinstance(kind, Type)
                given.append(to_python(kind, argument))
        status, results = 0, []
        control = self.instance.idle_execution().machine.control
        try:
            value = self.instance.call(self.name, *given, fuel=fuel)
        except OutOfFuelError as stopped:
            stopped.call.abandon()
            return None, fuel
        except TrapError as trap:
            status = _status(trap)
        except FerryError:
            if not self.is_launch:
                raise
            self.instance = self.engine.instantiate(self.subject.verified.program)
            return None, min(fuel - 1, fuel - control.fuel)  # items that are not independent
        else:
            results = self._results(value)
        outputs = list(self._outputs(arguments, given))
        return Vector(list(arguments), status, outputs, results), fuel - control.fuel

    def _array(self, element: Element, bits: list[int]) -> Any:
        integers = self.np.array(bits, f"u{element.bytes}")
        return integers.view(f"{'f' if element.type.is_float else element.kind[0]}{element.bytes}")

    def _results(self, value: object) -> list[int]:
        types = [t for _, t in self.subject.results]
        values = () if not types else (value,) if len(types) == 1 else value
        assert isinstance(values, tuple)
        return [bits_of(t, each) for t, each in zip(types, values, strict=True)]

    def _outputs(
        self, arguments: Sequence[Input], given: Sequence[Any]
    ) -> Iterator[tuple[int, list[int]]]:
        for place, argument in enumerate(arguments):
            if isinstance(argument, ArrayInput) and argument.same is None:
                after = given[place]
                bits = after.view(f"u{after.itemsize}").tolist()
                if bits != argument.bits:
                    yield place, bits


def _status(error: TrapError) -> int:
    """The status of an exported function for a trap."""
    line = error.position.line if error.position else 0
    return int(error.kind) | line << 8


def bits_of(t: Type, value: float) -> int:
    """The bits of a Python number."""
    return from_float(t, value) if t.is_float else int(value) & t.mask
