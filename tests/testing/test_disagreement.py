# SPDX-License-Identifier: Apache-2.0
"""A disagreement's file holds all that is needed, and a bad one is refused in one line."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ferryvm
from ferryvm.errors import FerryError
from ferryvm.machine.memory import Limits
from ferryvm.testing import Differ, Schedule, Verdict
from ferryvm.testing.bisect import Bisector, unstable
from ferryvm.testing.disagreement import (
    Disagreement,
    DisagreementError,
    Shown,
    from_text,
    load,
    record,
    save,
    show_again,
    to_text,
)
from ferryvm.verify import verify

from ..double.meaning import with_wrong
from .test_bisect import FLOATS, program

LIMITS = Limits(stack=1 << 16, heap=1 << 20, first_heap=4096)


@pytest.fixture(scope="module")
def one() -> Disagreement:
    differ = Differ(["wrong-shift"], registry=with_wrong(), limits=LIMITS, most=9000)
    verified = program()
    (comparison,) = differ.compare(verified)
    return record(differ, verified, comparison, seed=7, origin="a test")


@pytest.mark.parametrize(
    ("bad", "schedule"),
    [
        ("wrong-shift", Schedule.NONE),
        ("wrong-uncounted", Schedule.NONE),
        ("wrong-sp", Schedule.EVERY_BOUNDARY),
        ("wrong-raise", Schedule.NONE),
        ("wrong-shift", Schedule.RANDOM),
    ],
)
def test_saved_disagreement_is_loaded_whole(tmp_path: Path, bad: str, schedule: Schedule) -> None:
    differ = Differ([bad], registry=with_wrong())
    seed, comparison = next(
        (seed, comparison)
        for seed in range(50)
        for comparison in differ.compare(program(), schedule, seed)
        if comparison.difference is not None
    )
    made = record(differ, program(), comparison, schedule, seed)
    save(made, tmp_path / "d")
    again = load(tmp_path / "d")
    assert to_text(again) == to_text(made)
    assert again.parting == made.parting
    assert dataclasses.replace(again, program=made.program) == made


def test_loaded_disagreement_shows_again(one: Disagreement) -> None:
    again = from_text(to_text(one).encode(), "d")
    (comparison,) = again.differ(with_wrong()).compare(
        verify(again.program), again.schedule, again.seed
    )
    assert comparison.verdict is Verdict.DISAGREE
    assert comparison.difference == again.difference


def test_file_is_self_contained_and_readable(one: Disagreement) -> None:
    content = json.loads(to_text(one))
    assert content["good"] == "reference"
    assert content["bad"] == "wrong-shift"
    assert content["seed"] == 7
    assert content["limits"] == {
        "stack": 65536,
        "heap": 1048576,
        "first_heap": 4096,
        "objects": 4294967296,
        "is_tight": False,
    }
    assert content["versions"]["backend wrong-shift"] == "1"
    assert {"ferryvm", "python", "numpy", "llvmlite", "machine"} <= set(content["versions"])
    assert "\n".join(content["listing"]) + "\n" == ferryvm.disassemble(one.program)
    assert content["difference"]["field"] == one.difference.field
    assert len(content["parting"]["good_trace"]) == len(content["parting"]["bad_trace"]) == 20
    assert content["parting"]["good_trace"][-1]["mnemonic"] == "i64.shl"


def test_moved_disagreement_names_the_backend_that_went_wrong() -> None:
    differ = Differ(["switch", "wrong-sp", "threaded"], registry=with_wrong())
    (comparison,) = differ.compare(program(), Schedule.EVERY_BOUNDARY)
    made = record(differ, program(), comparison, Schedule.EVERY_BOUNDARY)
    assert made.bad == "wrong-sp"
    assert made.backends == ("switch", "wrong-sp", "threaded")


def test_disagreement_that_cannot_be_bisected_is_one_all_the_same(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def find(self: Bisector, **_: object) -> None:
        raise unstable(self.bad)

    monkeypatch.setattr(Bisector, "find", find)
    differ = Differ(["wrong-shift"], registry=with_wrong())
    (comparison,) = differ.compare(program())
    made = record(differ, program(), comparison)
    assert (made.bad, made.difference, made.parting) == ("wrong-shift", comparison.difference, None)
    save(made, tmp_path / "d")
    assert load(tmp_path / "d").parting is None


def test_backend_that_keeps_state_across_machines_disagrees_and_the_reason_is_saved(
    tmp_path: Path,
) -> None:
    differ = Differ(["wrong-once"], registry=with_wrong())
    (comparison,) = differ.compare(program())
    assert comparison.verdict is Verdict.DISAGREE
    made = record(differ, program(), comparison)
    assert (made.bad, made.difference, made.parting) == ("wrong-once", comparison.difference, None)
    reason = "backend 'wrong-once' does not do the same twice: nothing to search by"
    assert made.unbisected == reason
    save(made, tmp_path / "d")
    assert load(tmp_path / "d").unbisected == reason


def test_whatever_bisecting_raises_the_disagreement_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    def find(self: Bisector, **_: object) -> None:
        raise KeyError("no\nplace")

    monkeypatch.setattr(Bisector, "find", find)
    differ = Differ(["wrong-shift"], registry=with_wrong())
    (comparison,) = differ.compare(program())
    made = record(differ, program(), comparison)
    assert (made.difference, made.parting) == (comparison.difference, None)
    assert made.unbisected is not None
    assert made.unbisected.startswith("KeyError: 'no\\nplace' (test_disagreement.py:")


def test_bisecting_ends_when_its_time_is_over() -> None:
    differ = Differ(["wrong-spin"], registry=with_wrong(), patience=0.2)
    (comparison,) = differ.compare(program())
    assert comparison.difference is not None
    for seconds, reason in (
        (0.0, "comparing took all the time"),
        (0.1, "it was not found within 0.1 s"),
    ):
        made = record(differ, program(), comparison, seconds=seconds)
        assert (made.parting, made.unbisected) == (None, reason)


def test_backend_that_cannot_prepare_is_not_bisected() -> None:
    differ = Differ(["wrong-prepare"], registry=with_wrong())
    (comparison,) = differ.compare(program())
    made = record(differ, program(), comparison)
    assert made.parting is None
    assert made.unbisected is not None
    assert made.unbisected.startswith(
        "pc: none, preparing the program failed on wrong-prepare: "
        "ValueError: too many registers (meaning.py:"
    )


def _recorded(bad: str, schedule: Schedule) -> Disagreement:
    """A disagreement as a campaign finds it, after a comparison without moves."""
    differ = Differ([bad], registry=with_wrong())
    expected = differ.finish(differ.start(program()))
    differ.compare(program(), expected=expected)
    seed, comparison = next(
        (seed, comparison)
        for seed in range(50)
        for comparison in differ.compare(program(), schedule, seed, expected=expected)
        if comparison.difference is not None
    )
    return record(differ, program(), comparison, schedule, seed)


def _again(one: Disagreement) -> Shown:
    return show_again(one.differ(with_wrong()), verify(one.program), one)


@pytest.mark.parametrize("schedule", [Schedule.RANDOM, Schedule.EVERY_BOUNDARY])
def test_what_a_backend_kept_from_an_earlier_schedule_shows_again(schedule: Schedule) -> None:
    one = _recorded("wrong-keeping", schedule)
    if schedule is Schedule.RANDOM:
        alone = one.differ(with_wrong()).compare(program(), schedule, one.seed)
        assert [comparison.verdict for comparison in alone] == [Verdict.AGREE]
    shown = _again(one)
    assert (shown.schedule, shown.difference) == (schedule, one.difference)


def test_random_moves_are_repeated_among_all_backends_also_those_not_reached() -> None:
    names = ["switch", "threaded", "wrong-raise"]
    differ = Differ(names, registry=with_wrong())
    verified = verify(ferryvm.compile("(define x (* 2 3))"))
    for seed in range(50):
        (comparison,) = differ.compare(verified, Schedule.RANDOM, seed)
        if comparison.difference is not None and len(comparison.backends) < 4:
            break
    made = record(differ, verified, comparison, Schedule.RANDOM, seed)
    assert made.backends == tuple(names)
    assert _again(made).comparison == comparison


def test_place_that_was_saved_shows_what_no_comparison_does() -> None:
    one = dataclasses.replace(_recorded("wrong-sp", Schedule.RANDOM), schedule=Schedule.NONE)
    shown = _again(one)
    assert shown.comparison is None
    assert shown.parting is not None
    assert one.parting is not None
    assert shown.parting.pc == one.parting.pc
    assert shown.difference == one.parting.difference


def test_search_shows_what_the_saved_place_does_not() -> None:
    made = _recorded("wrong-leaving", Schedule.RANDOM)
    assert made.parting is not None
    elsewhere = dataclasses.replace(made.parting, entered=made.parting.number)
    shown = _again(dataclasses.replace(made, schedule=Schedule.NONE, parting=elsewhere))
    assert shown.comparison is None
    assert shown.parting is not None
    assert shown.parting.entered < shown.parting.number


def test_backends_that_agree_now_agree_in_every_way(one: Disagreement) -> None:
    assert _again(dataclasses.replace(one, bad="switch", backends=("switch",))) == Shown()


def test_file_made_without_patience_has_the_usual_one(one: Disagreement) -> None:
    content = json.loads(to_text(one))
    del content["patience"], content["unbisected"]
    assert to_text(from_text(json.dumps(content).encode(), "d")) == to_text(one)


def test_comparison_is_repeated_with_its_patience() -> None:
    differ = Differ(["wrong-spin"], registry=with_wrong(), patience=0.2)
    (comparison,) = differ.compare(program())
    made = record(differ, program(), comparison, seconds=0.0)
    again = from_text(to_text(made).encode(), "d")
    assert again.differ(with_wrong()).patience == 0.2
    assert _again(again).difference == made.difference


def test_file_that_cannot_be_written_or_read_is_one_line(tmp_path: Path, one: Disagreement) -> None:
    with pytest.raises(DisagreementError, match=r"/no/d: cannot be written: No such file"):
        save(one, tmp_path / "no" / "d")
    with pytest.raises(DisagreementError, match=r"/d: cannot be read: No such file"):
        load(tmp_path / "d")


def _set(*keys: str, value: Any) -> Callable[[dict[str, Any]], None]:
    def change(content: dict[str, Any]) -> None:
        for key in keys[:-1]:
            content = content[key]
        content[keys[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_set("format", value="x"), 'not a disagreement file: no "format": "ferryvm disagreement"'),
        (_set("version", value=1), "version 1 of the format; this is 2"),
        (
            _set("schedule", value="randm"),
            "schedule: Input should be 'none', 'random', 'environment', 'every-boundary', 'collect', 'suspend' or 'independence', found 'randm'",
        ),
        (
            _set("forcing", value=["hott"]),
            "'hot', 'deopt', 'parallel' or 'independence', found 'hott'",
        ),
        (_set("good", value=3), "good: Input should be a valid string, found 3"),
        (_set("bad", value="x"), "bad: 'x' is none of the backends"),
        (
            _set("backends", value="wrong-shift"),
            "backends: Input should be a valid array, found 'wrong-shift'",
        ),
        (_set("backends", value=[1]), "backends[0]: Input should be a valid string, found 1"),
        (_set("seed", value=True), "seed: Input should be a valid integer, found True"),
        (_set("most", value=-1), "most: Input should be greater than or equal to 0, found -1"),
        (_set("patience", value=0), "patience: Input should be greater than 0, found 0"),
        (_set("limits", value=None), "limits: Input should be an object, found None"),
        (_set("limits", "stack", value=8), "a stack has at least 1024"),
        (_set("extra", value=1), "extra: Extra inputs are not permitted, found 1"),
        (
            _set("versions", "numpy", value=1),
            "versions.numpy: Input should be a valid string, found 1",
        ),
        (
            _set("difference", "field", value=None),
            "difference.field: Input should be a valid string, found None",
        ),
        (_set("parting", "mode", value="count"), "parting.mode: Input should be 'counting', "),
        (
            _set("parting", "pc", value=1.5),
            "parting.pc: Input should be a valid integer, found 1.5",
        ),
        (
            _set("parting", "good_trace", value=[3]),
            "parting.good_trace[0]: Input should be an object, found 3",
        ),
        (_set("parting", "after", value=[["a"]]), "parting.after[0][1]: Field required"),
        (_set("policy", value="x"), "policy: Input should be a valid array, found 'x'"),
        (_set("policy", value=["[", "]"]), "policy:1:"),
        (
            _set("policy", value=["whole_program = 1"]),
            "policy:1:1: whole_program: found 1 (allowed: true or false)",
        ),
        (_set("image", value=["?"]), "image: not base64"),
        (_set("image", value=["AAAA"]), "image: not a ferryvm program image"),
    ],
)
def test_bad_file_is_refused_in_one_line(
    one: Disagreement, change: Callable[[dict[str, Any]], None], message: str
) -> None:
    content = json.loads(to_text(one))
    change(content)
    with pytest.raises(DisagreementError) as raised:
        from_text(json.dumps(content).encode(), "x.disagreement")
    assert str(raised.value).startswith("x.disagreement: ")
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    "content", [b"", b"\xff\xfe", b"[1, 2]", b"[" * 100_000, b"{" + b'"a": 1' + b"0" * 9000 + b"}"]
)
def test_file_of_another_kind_is_refused_in_one_line(content: bytes) -> None:
    with pytest.raises(FerryError) as raised:
        from_text(content, "x")
    assert str(raised.value).startswith("x: not a disagreement file: ")
    assert "\n" not in str(raised.value)


def test_disagreement_in_an_environment_is_saved_and_shown_again(tmp_path: Path) -> None:
    differ = Differ(["wrong-environment"], registry=with_wrong())
    verified = verify(ferryvm.compile(FLOATS))
    seed, comparison = next(
        (seed, comparison)
        for seed in range(50)
        for comparison in differ.compare(verified, Schedule.ENVIRONMENT, seed)
        if comparison.difference is not None
    )
    made = record(differ, verified, comparison, Schedule.ENVIRONMENT, seed)
    assert made.parting is not None
    save(made, tmp_path / "d")
    again = load(tmp_path / "d")
    assert again.parting == made.parting
    shown = show_again(again.differ(with_wrong()), verified, again)
    assert (shown.schedule, shown.difference) == (Schedule.ENVIRONMENT, again.difference)

    content = json.loads(to_text(made))
    content["parting"]["environment"] = "stormy"
    with pytest.raises(DisagreementError) as caught:
        from_text(json.dumps(content).encode(), "d")
    assert str(caught.value) == (
        "d: parting.environment: found 'stormy' "
        "(allowed: usual, flush, down, up, zero, flush-up, flags)"
    )
