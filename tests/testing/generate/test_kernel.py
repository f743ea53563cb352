# SPDX-License-Identifier: Apache-2.0
"""Random kernels: all forms occur, items are independent between barriers, and most kernels end."""

from __future__ import annotations

import functools
import re
from collections import Counter

import pytest

from ferryvm import Engine, TrapError, skiff
from ferryvm.isa import Trap
from ferryvm.testing import Differ, Verdict
from ferryvm.testing.generate import (
    LIMITS,
    MOST_INSTRUCTIONS,
    ProgramKind,
    generate,
    skiff_source,
)
from ferryvm.testing.schedule import Schedule
from ferryvm.verify import verify

from ...tier import sample

SEED = 26
COUNT = 40


@functools.cache
def texts() -> tuple[str, ...]:
    kernel = ProgramKind.KERNEL
    return tuple(skiff_source(SEED, number, kind=kernel) for number in range(COUNT))


def test_all_forms_of_kernels_occur() -> None:
    text = "".join(texts())
    for form in (
        r"\(for-each-item [123]i64 \(group",
        r"\(for-each-item \d+i64 \(member",
        r"\(for-each-item \(\d+i64 \d+i64\) \(member",
        r"\(for-each-item \(\d+i64 \d+i64 \d+i64\) \(member",
        r"\(while \(< turn\d+ \d+i64\) (?:(?!turn).)*\(barrier\)",
        r"\(while \(< turn\d+ \(& ",
        r"\(while \(and ",
        r"\(if \(\S+ \(& same\d+ .*\(barrier\)",
        r"\(group-reduce (\+|\*|min|max|\^) ",
        r"\(group-reduce pure",
        r"\(group-scan ",
        r"\(group-scan-before ",
        r"\(group-broadcast ",
        r"\(meet\d+ at",
        r"\(try .*\(barrier\)",
        r"\(if \(= \S+ \d+i64\) \(set! cell",
        r"\(if \(and \(= g \d+i64\) \(= \S+ \d+i64\)\) \(set! cell",
        r"\(if \(= g \d+i64\) cell",
        r"\(barrier\) \(set! \S+ \(\S+ \S+ cell",
        r"\(array-set! tile\d+ at",
        r"\(array-ref tile\d+ \(- ",
        r"\(atomic-\w+! tile",
        r"\(atomic-add! all ",
        r"\(while \(< own\d+ \(& ",
        r"\(while \(and \(< own\d+ ",
        r"\(while \(.* own\d+ .*\(while \(.* own\d+ ",
        r"\(if \(\S+ \(& \(\+ own\d+ \S+\) \d+i64\) \d+i64\) \(set! found",
        r"\(if \(.*\(array-set! (tile\d+|to) \S+.* found",
        r"\(for-each-item \d+i64 \(note",
    ):
        assert re.search(form, text), form


@pytest.mark.nightly
def test_most_kernels_end_some_trap_and_few_diverge() -> None:
    ends = Counter[str]()
    for number in range(COUNT):
        program = generate(SEED, number, ProgramKind.KERNEL)
        execution = Engine("threaded", limits=LIMITS).start(program)
        try:
            execution.run(MOST_INSTRUCTIONS + 1)
            ends["halted"] += 1
        except TrapError as error:
            ends[error.kind.name] += 1
        assert execution.instructions <= MOST_INSTRUCTIONS
    assert ends["halted"] > COUNT // 2
    assert 0 < ends[Trap.BARRIER_DIVERGENCE.name] < COUNT // 4


@pytest.mark.parametrize("number", sample([*range(COUNT)], default=1))
def test_members_are_independent_and_are_the_same_anywhere_in_their_middle(number: int) -> None:
    differ = Differ(["switch"], limits=LIMITS, most=MOST_INSTRUCTIONS)
    program = verify(skiff.compile(texts()[number]))
    for schedule in (Schedule.INDEPENDENCE, Schedule.SUSPEND):
        (found,) = differ.compare(program, schedule, number)
        assert found.verdict is Verdict.AGREE, found
