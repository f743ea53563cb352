# SPDX-License-Identifier: Apache-2.0
"""Shrinking a program with Hypothesis.

A program is a sequence of whole numbers (see `unit`). Hypothesis' shrinker takes a failing sequence
and makes it simpler while it still fails; what fails here is a candidate that shows the
disagreement. The sequence that restores the whole program is supplied through `fuzz_one_input`,
which stores it in a database, from where an ordinary run of the test takes it.
docs/decisions/2026-11-21-reduction.md has the reasons.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from hypothesis import HealthCheck, Phase, Verbosity, given, settings
from hypothesis import strategies as st
from hypothesis.database import InMemoryExampleDatabase
from hypothesis.errors import Flaky, HypothesisException

from ferryvm.errors import FerryError
from ferryvm.notice import Log
from ferryvm.program import Program
from ferryvm.testing.reduction.interest import Interest
from ferryvm.testing.reduction.unit import NumberChoice, Units
from ferryvm.verify import verify

_log = Log("ferryvm")

_MOST_CHOICES = 3000
"""Choices that one iteration can take: Hypothesis' sequences have a limited length."""


class _Shows(Exception):  # noqa: N818 - how a candidate "fails"
    """The candidate shows the disagreement."""


def shrink(interest: Interest) -> None:
    """Make `interest.best` smaller until an iteration brings nothing."""
    while interest.best is not None:
        before = interest.best_size
        _shrink_once(interest, interest.best)
        if interest.best_size == before:
            return


def _shrink_once(interest: Interest, program: Program) -> None:
    try:
        units = Units(verify(program))
    except FerryError:  # an image that no assembler laid out has no listing
        return
    if len(units.choices) > _MOST_CHOICES:
        _log.info("%d choices are too many for the shrinker", len(units.choices))
        return

    @settings(
        database=InMemoryExampleDatabase(),
        phases=[Phase.reuse, Phase.shrink],
        deadline=None,
        suppress_health_check=list(HealthCheck),
        verbosity=Verbosity.quiet,
        report_multiple_bugs=False,
    )
    @given(_tree(units.choices, 0, len(units.choices)))
    def candidate(tree: object) -> None:
        chosen: list[int] = []
        _flatten(tree, chosen)
        try:
            built = units.build(chosen)
        except FerryError:
            return
        if interest(built):
            raise _Shows

    try:
        candidate.hypothesis.fuzz_one_input(_start(units.choices))  # type: ignore[attr-defined]  # added by given
        _log.info("this release of Hypothesis does not take the whole program as a start")
    except _Shows:
        with contextlib.suppress(_Shows, Flaky, HypothesisException):
            candidate()


def _tree(choices: Sequence[NumberChoice], first: int, last: int) -> st.SearchStrategy[object]:
    """The choices as nested pairs, which the shrinker also tries to simplify as a whole."""
    if last - first == 0:
        return st.none()
    if last - first == 1:
        return st.integers(0, choices[first].most)
    middle = (first + last) // 2
    return st.tuples(_tree(choices, first, middle), _tree(choices, middle, last))


def _flatten(tree: object, into: list[int]) -> None:
    if isinstance(tree, tuple):
        for part in tree:
            _flatten(part, into)
    elif isinstance(tree, int):
        into.append(tree)


def _start(choices: Sequence[NumberChoice]) -> bytes:
    """The bytes that `fuzz_one_input` reads the starting choices from: each in as many whole
    bytes as its largest value needs, since the largest value is all ones."""
    return b"".join(one.start.to_bytes((one.most.bit_length() + 7) // 8, "big") for one in choices)
