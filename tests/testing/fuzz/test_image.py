# SPDX-License-Identifier: Apache-2.0
"""Mutated files: what they are made of, and what is looked for in them."""

from __future__ import annotations

import re
import tempfile
from collections import Counter

import pytest

from ferryvm import asm
from ferryvm.backend import Artifact
from ferryvm.engine.saved import STATE, unpack_state
from ferryvm.errors import FerryError
from ferryvm.image import ImageError, from_bytes, to_bytes
from ferryvm.testing.differential import Verdict
from ferryvm.testing.fuzz import image
from ferryvm.testing.fuzz.image import ImageFault, ImageJudge, Refused
from ferryvm.testing.fuzz.notes import Notes
from ferryvm.testing.fuzz.outcome import TrialOutcome, without_place
from ferryvm.testing.fuzz.plan import CampaignPlan
from ferryvm.testing.fuzz.trial import Judge
from ferryvm.testing.generate import LIMITS, ProgramKind, mutated_image
from ferryvm.testing.generate.chance import Chance
from ferryvm.testing.generate.mutation import mutate
from ferryvm.testing.generate.origin import fixed
from ferryvm.verify import Verified, verify

from ...tier import nightly

PLAN = CampaignPlan(1, ("threaded",), "switch", (ProgramKind.IMAGE,))


@pytest.fixture
def judge() -> Judge:
    with tempfile.TemporaryFile() as file:
        return Judge(PLAN, Notes(file.fileno(), PLAN, is_new=True))


@pytest.fixture
def images(judge: Judge) -> ImageJudge:
    return judge.images


STATES = [content for content in fixed(LIMITS) if content.startswith(STATE.magic)]


def test_files_that_mutations_start_from_run_alike(images: ImageJudge) -> None:
    assert len(STATES) >= 15
    for content in fixed(LIMITS):
        _, tried = images.judge(Chance(1), content, 0)
        assert tried
        assert {one.comparison.verdict for one in tried} == {Verdict.AGREE}


def test_mutated_image_depends_on_seed_and_number_alone() -> None:
    first = [mutated_image(7, number) for number in range(20)]
    assert first == [mutated_image(7, number) for number in range(20)]
    assert len({*first, *(mutated_image(8, number) for number in range(20))}) > 35


def test_mutations_alter_files_but_leave_many_of_them_plausible() -> None:
    found: Counter[str] = Counter()
    for number in range(400):
        content = fixed(LIMITS)[number % len(fixed(LIMITS))]
        changed = mutate(Chance(number), content)
        found["same"] += changed == content
        try:
            if changed.startswith(STATE.magic):
                unpack_state(changed, LIMITS, "mutant")
                found["state"] += 1
            else:
                verify(from_bytes(changed))
                found["program"] += 1
        except FerryError:
            found["refused"] += 1
    assert found["same"] < 60
    assert min(found["state"], found["program"]) > 20
    assert found["refused"] > 100


def _lie(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have `threaded` run another program than the one that it is given."""
    backend = judge.registry.get("threaded")
    prepare = backend.prepare

    def prepare_another(_: Verified) -> Artifact:
        return prepare(verify(asm.assemble(".function main\ni64.const 5\nhalt")))

    monkeypatch.setattr(backend, "prepare", prepare_another)


FOUR = to_bytes(asm.assemble(".function main\ni64.const 4\nhalt"))


def test_backend_that_differs_on_an_image_is_seen(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    _lie(judge, monkeypatch)
    _, tried = judge.images.judge(Chance(1), FOUR, 0)
    found = tried[0].comparison
    assert found.verdict is Verdict.DISAGREE
    assert str(found.difference) == "operand 0 of main: 0x4 here, 0x5 there"


def test_backend_that_differs_on_a_state_is_seen(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    _lie(judge, monkeypatch)
    _, tried = judge.images.judge(Chance(1), STATES[0], 0)
    assert tried[0].comparison.backends == ("threaded",)
    assert tried[0].comparison.verdict is Verdict.DISAGREE


def test_state_that_is_refused_where_it_could_be_reached_is_a_fault(
    images: ImageJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = unpack_state

    def refuse(content: bytes, limits: object, name: str) -> object:
        if name == "mutant":
            return real(content, LIMITS, name)
        raise ImageError("no")

    monkeypatch.setattr(image, "unpack_state", refuse)
    with pytest.raises(
        ImageFault, match=r"^saved by \w+ after \d+ instructions, then refused: no$"
    ):
        images.judge(Chance(1), STATES[0], 0)


@pytest.mark.parametrize("text", ["two\nlines", "x" * 2001, ""])
def test_refusal_that_is_not_one_clear_line_is_a_fault(
    images: ImageJudge, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    def refuse(*_: object) -> None:
        raise ImageError(text)

    monkeypatch.setattr(image, "from_bytes", refuse)
    with pytest.raises(ImageFault, match=r"^refused, but not in one clear line: "):
        images.judge(Chance(1), FOUR, 0)


def test_refusal_in_one_line_is_as_it_should_be(images: ImageJudge) -> None:
    with pytest.raises(Refused):
        images.judge(Chance(1), FOUR[:-1], 0)


def test_disassembly_that_assembles_to_something_else_is_a_fault(
    images: ImageJudge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asm, "disassemble", lambda _: ".function main\nhalt\n")
    number = next(n for n in range(1000) if Chance(n).flip(0.01))  # one in a hundred is checked
    with pytest.raises(ImageFault, match=r"^its disassembly assembles to another image$"):
        images.judge(Chance(number), FOUR, 0)


def test_any_other_exception_is_a_finding_that_says_where(
    judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise KeyError("k")

    monkeypatch.setattr(judge.images, "judge", fail)
    (finding,) = judge.judge(0)
    assert finding.outcome is TrialOutcome.ERROR
    assert finding.text.startswith("KeyError: 'k' (at test_image.py:")
    assert "Traceback" in finding.detail
    assert judge.notes.outcomes()[ProgramKind.IMAGE, TrialOutcome.ERROR] == 1


def test_signature_names_what_differs_without_its_place() -> None:
    assert without_place("local 2 of fib") == "local"
    assert without_place("heap at byte 40") == "heap"
    assert without_place("return pc of f") == "return pc"
    assert without_place("fuel left") == "fuel left"


@pytest.mark.parametrize(("states", "least"), [(30, 6), nightly((150, 12))])
def test_altered_states_are_half_refused_each_for_one_of_many_reasons(
    states: int, least: int
) -> None:
    reasons: Counter[str] = Counter()
    for number in range(states):
        try:
            unpack_state(mutated_image(3, number, ProgramKind.STATE), LIMITS, "state")
            reasons["good"] += 1
        except FerryError as error:
            reasons[re.sub(r"\d+|'[^']*'", "", str(error))] += 1
    assert "checksum" not in " ".join(reasons)
    assert 0.3 * states < reasons.pop("good") < 0.7 * states
    assert len(reasons) > least
    text = " ".join(reasons)
    for part in ("status", "trap", "control never", "the frame at", "outermost", "heap pointer"):
        assert part in text


@pytest.mark.nightly
def test_altered_states_run_alike_or_are_refused() -> None:
    plan = CampaignPlan(5, ("threaded",), "switch", (ProgramKind.STATE,))
    with tempfile.TemporaryFile() as file:
        judge = Judge(plan, Notes(file.fileno(), plan, is_new=True))
        for number in range(60):
            assert judge.judge(number) == []
        outcomes = judge.notes.outcomes()
    assert outcomes[ProgramKind.STATE, TrialOutcome.REFUSED] > 10
    assert (
        outcomes[ProgramKind.STATE, TrialOutcome.HALTED]
        + outcomes[ProgramKind.STATE, TrialOutcome.TRAPPED]
        > 10
    )
