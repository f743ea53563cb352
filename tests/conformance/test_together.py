# SPDX-License-Identifier: Apache-2.0
"""Golden cases in fewer programs: none is left out, none passes that fails by itself."""

from __future__ import annotations

from collections import Counter

import pytest

from ferryvm.backend import Artifact
from ferryvm.engine import runnable
from ferryvm.isa import INSTRUCTIONS
from ferryvm.machine.control import Status
from ferryvm.machine.state import Machine
from ferryvm.registry import Registry
from ferryvm.testing.conformance.golden import cases_of
from ferryvm.testing.conformance.instruction import pieces, rotated_pieces
from ferryvm.testing.conformance.suite import Batch, Golden, ItemVerdict, checks, checks_of
from ferryvm.testing.conformance.together import batches, scripts
from ferryvm.verify import Verified

from ..double.interpreter import Wrong


def test_batches_have_every_instruction_once_but_those_left_out() -> None:
    every = [row.mnemonic for row in INSTRUCTIONS]
    assert [mnemonic for batch in batches() for mnemonic in batch] == every
    left = [mnemonic for batch in batches(frozenset({"i64.add"})) for mnemonic in batch]
    assert left == [mnemonic for mnemonic in every if mnemonic != "i64.add"]
    assert all(any(map(cases_of, batch)) for batch in batches())


@pytest.mark.parametrize("mnemonic", ["i64.add", "f32.min", "i32.div_s", "call", "heap.alloc"])
def test_each_case_of_an_instruction_is_in_one_dressing(mnemonic: str) -> None:
    rotated = list(rotated_pieces(mnemonic))
    smooth = [case for piece in rotated for case in piece.chosen]
    # The others are programs of their own: one that traps, or code of its own.
    assert len(smooth) + sum(not piece.chosen for piece in rotated) == len(cases_of(mnemonic))
    assert max(Counter(map(id, smooth)).values(), default=1) == 1
    dressed = sum(len(piece.chosen) or 1 for piece in pieces(mnemonic, False))
    assert dressed >= 2 * len(cases_of(mnemonic))


@pytest.mark.parametrize("is_counting", [False, True])
def test_scripts_of_a_batch_share_programs_and_end_as_stated(is_counting: bool) -> None:
    reference = runnable(Registry(), "reference")
    mnemonics = ("i64.add", "i32.xor", "f64.sqrt")
    found = list(scripts(mnemonics, is_counting, True, reference))
    assert [script.complaint for script in found] == [None] * len(found)
    assert len({id(script.program) for script in found}) == 1 < len(found)
    apart = list(scripts(mnemonics, is_counting, False, reference))
    assert len(apart) == len(found) == len({id(script.program) for script in apart})


def batch_of(golden: Golden, mnemonic: str) -> Batch:
    """The first batch with an instruction."""
    found = (check for check in checks_of(golden) if isinstance(check, Batch))
    return next(check for check in found if mnemonic in check.mnemonics)


class Off(Wrong):
    """It gives a wrong quotient."""

    name = "off"

    def __init__(self) -> None:
        super().__init__(self._off)

    @staticmethod
    def _off(real: Artifact, machine: Machine, counting: bool) -> Status:
        status = real.enter(machine, counting)
        if status is Status.HALT:
            machine.memory.stack[machine.control.sp - 1] ^= 1
        return status


@pytest.mark.parametrize("golden", [Golden.ROTATED, Golden.TOGETHER])
def test_a_wrong_result_is_named_with_its_case(golden: Golden) -> None:
    check = batch_of(golden, "i64.div_s")
    outcome = check.run(Off())
    assert outcome.verdict is ItemVerdict.FAILED
    assert outcome.script is not None
    assert ".txt:" in outcome.script.about
    assert check.run(Wrong()).verdict is ItemVerdict.PASSED


def test_what_is_named_alone_is_a_check_by_itself() -> None:
    label = "instruction/i64.add/plain"
    found = checks_of(Golden.TOGETHER, frozenset({label}))
    assert sum(check.label == label for check in found) == 1
    plain = [each for each in found if isinstance(each, Batch) and each.manner == "plain"]
    assert plain
    assert not any("i64.add" in check.mnemonics for check in plain)
    rest = [check.label for check in checks() if check.group != "instruction"]
    assert set(rest) <= {check.label for check in found}


def test_an_artifact_is_made_once_for_scripts_of_a_program_and_anew_after_a_failure() -> None:
    class Counting(Wrong):
        made = 0

        def prepare(self, program: Verified) -> Artifact:
            type(self).made += 1
            return super().prepare(program)

    check = batch_of(Golden.TOGETHER, "i64.div_s")
    reference = runnable(Registry(), "reference")
    scripts = list(check.scripts(reference))  # all alive, so that no two have one id
    programs = len({id(script.program) for script in scripts})
    assert check.run(Counting()).verdict is ItemVerdict.PASSED
    assert Counting.made <= programs + 1 < len(scripts)
