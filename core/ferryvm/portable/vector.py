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
from ferryvm.portable.sample_group import group_inputs
from ferryvm.portable.subject import Subject

if TYPE_CHECKING:
    from typing import Any

    from ferryvm.engine.instance import Instance

FUEL = 20_000
"""Instructions of one call."""

GROUP_FUELS = (8_000, 80_000, 800_000)
"""Instructions of one launch of groups, and the next limits if none ends within one."""

GROUP_CALLS = 4
"""The fuel of all launches of groups, in those of one."""

ALL_FUEL = 600_000
"""Instructions of all calls: less than a second."""

DEPENDENT_FUEL = 500
"""Instructions that a launch whose items are not independent counts for."""

LAUNCH_FUEL = 60_000
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
    subject: Subject, seed: int, count: int, size: int, members: int | None = None
) -> Vectors:
    """Up to so many vectors, whose text has at most so many bytes; half of them end with an error
    at most. `members`: of the groups that a launch has. Raises ExportError if no call ends."""
    kinds = [kind for _, kind in subject.parameters]
    calls = _Calls(subject, FUEL if members is None else GROUP_FUELS[0])
    found: list[Vector] = []
    seen: set[str] = set()
    unfinished, dependent, failing = 0, 0, 0
    fuel = LAUNCH_FUEL if calls.is_launch else ALL_FUEL
    calls_wanted = inputs(kinds, seed, subject.shapes, subject.axes, subject.folded)
    if members is not None:
        fuel = GROUP_CALLS * calls.fuel
        sizes = subject.sizes or (members,)
        calls_wanted = group_inputs(kinds, seed, subject.shapes, sizes, subject.folded)
    for _, arguments in zip(range(TRIES), calls_wanted, strict=False):
        if len(found) >= count or fuel <= 0 or size <= 0:
            break
        key = repr(arguments)
        if key in seen:
            continue
        seen.add(key)
        vector, spent = calls.call(arguments)
        fuel -= spent
        if vector is None:
            unfinished += spent > 0
            dependent += not spent
            fuel -= 0 if spent else DEPENDENT_FUEL
            if members is not None and not found and fuel < 5 * calls.fuel < 5 * GROUP_FUELS[-1]:
                calls.fuel *= 10
                fuel = GROUP_CALLS * calls.fuel // 2
            continue
        vector = vector.without(subject.folded)
        if vector.status:
            if 2 * failing > len(found):
                continue
            failing += 1
        size -= len(vector.text(len(found) + 1))
        if size > 0:
            found.append(vector)
    if not found:
        what = f"no call of {subject.origin} ended within {calls.fuel} instructions"
        position = subject.position(subject.entry)
        raise ExportError(what, "export a smaller part of it, such as one loop", position)
    return Vectors(found, seed, unfinished, dependent)


def vector_text(name: str, vectors: Sequence[Vector]) -> str:
    """The text form of vectors of a function."""
    texts = [vector.text(number) for number, vector in enumerate(vectors, 1)]
    return f"ferryvm-vectors 1 {name}\n" + "".join(texts)


class _Calls:
    """Calls of a subject on the reference interpreter."""

    def __init__(self, subject: Subject, fuel: int) -> None:
        import numpy as np

        self.subject, self.np, self.fuel = subject, np, fuel
        self.is_launch = subject.item is not None
        self.engine = checking_engine() if self.is_launch else Engine("reference")
        self.instance: Instance = self.engine.instantiate(subject.verified.program)
        (export,) = subject.verified.program.exports
        self.name = export.name

    def call(self, arguments: Sequence[Input]) -> tuple[Vector | None, int]:
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
        try:
            value = self.instance.call(self.name, *given, fuel=self.fuel)
        except OutOfFuelError as stopped:
            stopped.call.abandon()
            return None, self.fuel
        except TrapError as trap:
            status = _status(trap)
        except FerryError:
            if not self.is_launch:
                raise
            self.instance = self.engine.instantiate(self.subject.verified.program)
            return None, 0  # items that are not independent
        else:
            results = self._results(value)
        outputs = list(self._outputs(arguments, given))
        return Vector(list(arguments), status, outputs, results), self._spent()

    def _spent(self) -> int:
        """Instructions of the last call."""
        return self.fuel - self.instance.idle_execution().machine.control.fuel

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
