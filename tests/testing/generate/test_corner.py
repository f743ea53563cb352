# SPDX-License-Identifier: Apache-2.0
"""What is rare in random programs, and what compilers get wrong: it occurs, ends, and runs
alike."""

from __future__ import annotations

import functools
from collections import Counter

import pytest

from ferryvm.region.graph import graph
from ferryvm.testing import Differ, Verdict
from ferryvm.testing.generate import (
    LIMITS,
    MOST_INSTRUCTIONS,
    Corner,
    ProgramKind,
    Weights,
    generate,
)
from ferryvm.testing.generate.corner import MANY_LOCALS, _trip_count
from ferryvm.testing.generate.literal import I32, I64
from ferryvm.verify import Verified, verify

from ...tier import sample
from .settled import SETTLED, settled

COUNT = 400
SEED = 20
STATEMENTS = {
    Corner.IRREDUCIBLE: "[statement]\nirreducible = 60",
    Corner.FORGED: "[statement]\nforge = 60",
    Corner.WRAPPING: "[statement]\nwrap = 60",
    Corner.DEEP: "[statement]\ndeep = 60",
    Corner.LOCALS: "[chance]\nmany_locals = 1.0",
    Corner.OBJECTS: "[chance]\nobjects = 1.0",
    Corner.LINKED: "[chance]\nobjects = 1.0\n[object_statement]\nlist = 300",
    Corner.GARBAGE: "[chance]\nobjects = 1.0\n[object_statement]\ngarbage = 300",
    Corner.HOARD: "[chance]\nobjects = 1.0\n[object_statement]\nhoard = 300",
    Corner.CAUGHT: "[chance]\nobjects = 1.0\n[statement]\ntry = 60",
    Corner.RECORD: "[chance]\nobjects = 1.0\n[statement]\ntry = 60",
    Corner.LAUNCH: "[chance]\nlaunches = 1.0\n[launch_statement]\nlaunch = 60",
    Corner.SKELETON: "[chance]\nlaunches = 1.0\nobjects = 1.0\nskeletons = 1.0",
}


@functools.cache
def programs() -> tuple[tuple[Verified, Counter[Corner]], ...]:
    found = []
    for number in range(COUNT):
        occurred: Counter[Corner] = Counter()
        program = generate(SEED, number, weights=SETTLED, occurred=occurred)
        found.append((verify(program), occurred))
    return tuple(found)


def having(corner: Corner) -> list[Verified]:
    return [program for program, occurred in programs() if occurred[corner]]


def is_irreducible(program: Verified) -> bool:
    functions = range(len(program.program.functions))
    return any(graph(program, number).irreducible for number in functions)


@pytest.mark.nightly
def test_each_corner_occurs_in_its_share_of_programs() -> None:
    shares = {corner: len(having(corner)) / COUNT for corner in Corner}
    assert 0.05 < shares[Corner.IRREDUCIBLE] < 0.25
    assert 0.04 < shares[Corner.FORGED] < 0.25
    assert 0.08 < shares[Corner.WRAPPING] < 0.35
    assert 0.003 < shares[Corner.DEEP] < 0.05
    assert 0.003 < shares[Corner.LOCALS] < 0.03
    assert 0.06 < shares[Corner.HOARD] < 0.25
    assert 0.05 < shares[Corner.CAUGHT] < 0.2
    assert 0.01 < shares[Corner.RECORD] < 0.1
    assert 0.15 < shares[Corner.LAUNCH] < 0.3


@pytest.mark.nightly
def test_cycles_have_several_entries() -> None:
    found = having(Corner.IRREDUCIBLE)
    assert sum(map(is_irreducible, found)) > 0.9 * len(found)
    others = [program for program, occurred in programs() if not occurred[Corner.IRREDUCIBLE]]
    assert not any(map(is_irreducible, others))


@pytest.mark.nightly
def test_large_frames_are_large() -> None:
    for program in having(Corner.LOCALS):
        assert max(len(one.locals) for one in program.program.functions) >= MANY_LOCALS
    for program in having(Corner.DEEP):
        assert max(program.frame_words) > 100


@pytest.mark.parametrize("programs", sample([4, 40], 1))
@pytest.mark.parametrize("corner", Corner)
def test_programs_of_one_corner_end_and_run_alike(
    corner: Corner, programs: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("weights") / "weights.toml"
    file.write_text(STATEMENTS[corner])
    weights = settled(Weights.load(file))
    differ = Differ(["threaded"], "switch", limits=LIMITS, most=MOST_INSTRUCTIONS + 1)
    occurred: Counter[Corner] = Counter()
    for number in range(programs):
        program = verify(generate(19, number, ProgramKind.BYTECODE, weights, occurred))
        (comparison,) = differ.compare(program)
        assert comparison.verdict is Verdict.AGREE, (number, comparison)
        assert comparison.instructions <= MOST_INSTRUCTIONS, number
    assert occurred[corner] > programs // 3


@pytest.mark.parametrize(
    ("t", "start", "step", "relation", "bound", "expected"),
    [
        (I64, 0, 1, "lt_s", 5, (5, False)),
        (I64, 2**63 - 2, 1, "gt_s", 0, (2, True)),  # from the largest to the smallest
        (I32, 2**32 - 2, 1, "gt_u", 7, (2, True)),
        (I32, 1, -1, "ne", 2**32 - 1, (2, False)),  # which is -1, signed or not: `ne` cannot tell
        (I64, 3, 1, "ge_u", 0, (None, False)),
    ],
)
def test_turns_of_a_loop_are_known_before_it_runs(
    t: int, start: int, step: int, relation: str, bound: int, expected: tuple[int | None, bool]
) -> None:
    turns, wraps = _trip_count(t, start, step, relation, bound)
    assert turns == expected[0]
    assert wraps == expected[1] or relation == "ne"
