# SPDX-License-Identifier: Apache-2.0
"""A campaign finds what compilers do wrong, alone, forced, and under a policy."""

from __future__ import annotations

import functools
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from ferryvm import policy as policies
from ferryvm.backend import Forcing
from ferryvm.image import to_bytes
from ferryvm.program import Program
from ferryvm.testing import Schedule, disagreement
from ferryvm.testing.differential import Verdict
from ferryvm.testing.fuzz import Campaign, CampaignPlan, Finding, Report, TrialOutcome
from ferryvm.testing.fuzz.notes import Notes
from ferryvm.testing.fuzz.trial import Judge
from ferryvm.testing.generate import ProgramKind, Weights, generate
from ferryvm.testing.mixed import policy_of

from ...campaign_seed import Hits, keeps_a_local, seed_with_hits
from ...double.campaign_compiler import NAMES, TURN

pytestmark = pytest.mark.usefixtures("bad_backends")

PROGRAMS = 10

WITHOUT_OBJECTS = Path(__file__).parent.parent / "generate" / "without_objects.toml"
"""Weights: the compilers of these tests refuse references."""

POLICY = """
[profile]
loop_threshold = 2
function_threshold = 1

[[rule]]
name = "all"
backends = [{{ name = "{compiler}", background = false }}]
"""


@functools.cache
def weights() -> Weights:
    return Weights.load(WITHOUT_OBJECTS)


def seed() -> int:
    return seed_with_hits(PROGRAMS, TURN, weights(), keeps_a_local)[0]


def hit() -> Hits:
    """Numbers of the programs on which bad compilers go wrong."""
    return seed_with_hits(PROGRAMS, TURN, weights(), keeps_a_local)[1]


def program(number: int) -> Program:
    return generate(seed(), number, weights=weights())


def plan(backend: str, **fields: object) -> CampaignPlan:
    kinds, file = (ProgramKind.BYTECODE,), str(WITHOUT_OBJECTS)
    return CampaignPlan(seed(), (backend,), "switch", kinds, weights=file, **fields)  # type: ignore[arg-type]


def run(chosen: CampaignPlan) -> Report:
    return Campaign(chosen, 1, PROGRAMS).run()


def under_policy(folder: Path, compiler: str, **fields: object) -> CampaignPlan:
    file = folder / "policy.toml"
    file.write_text(POLICY.format(compiler=compiler))
    return plan("mixed", policy=str(file), **fields)


def of(report: Report, outcome: TrialOutcome) -> int:
    return report.outcomes[ProgramKind.BYTECODE, outcome]


def test_code_that_does_nothing_wrong_is_no_finding_and_is_counted() -> None:
    report = run(plan("leaving"))
    assert report.findings == []
    assert report.verdicts["leaving", Verdict.AGREE] == PROGRAMS
    assert report.compiled >= PROGRAMS  # the whole program at least, in one form at least


def test_forced_hot_more_regions_are_compiled_and_all_still_agree() -> None:
    forced = run(plan("leaving", forcing=frozenset([Forcing.HOT])))
    assert forced.findings == []
    assert forced.compiled > 2 * run(plan("leaving")).compiled


@pytest.mark.nightly
def test_interpreter_that_is_forced_is_unsupported_and_never_agrees() -> None:
    report = run(plan("threaded", forcing=frozenset([Forcing.HOT])))
    assert of(report, TrialOutcome.UNSUPPORTED) == PROGRAMS
    assert report.uncompared == ["threaded"]
    assert report.reasons == {"threaded": "backend 'threaded' has nothing to force: hot"}


def test_compiled_code_that_differs_is_found(tmp_path: Path) -> None:
    report = run(plan("forging", save=str(tmp_path)))
    found = [finding.number for finding in report.findings]
    assert found
    assert set(found) <= set(hit())
    assert {finding.outcome for finding in report.findings} == {TrialOutcome.DISAGREE}
    assert {finding.backends for finding in report.findings} == {"forging"}


@pytest.mark.nightly
@pytest.mark.parametrize(
    "schedules",
    [(Schedule.NONE,), pytest.param((Schedule.NONE, Schedule.RANDOM), marks=pytest.mark.nightly)],
)
def test_compiled_code_that_ends_the_process_is_blamed_on_its_compiler(
    schedules: tuple[Schedule, ...],
) -> None:
    report = run(plan("deadly", schedules=schedules))
    assert [finding.number for finding in report.findings] == [*hit()]
    assert of(report, TrialOutcome.CRASH) == len(hit())
    (group,) = report.groups
    assert group[0].signature == ("crash", "deadly", "SIGSEGV", "")


def check_clumsy(finding: Finding, backend: str) -> None:
    """What a compiler raises has its traceback, and a disagreement with the program."""
    assert (finding.outcome, finding.backends) == (TrialOutcome.ERROR, backend)
    assert finding.what.startswith("in a compiler: KeyError (campaign_compiler.py:")
    assert "it raised KeyError: 'a register' (campaign_compiler.py:" in finding.text
    path = Path(str(finding.path))
    one = disagreement.load(str(path))
    assert to_bytes(one.program) == to_bytes(program(finding.number))
    assert (one.difference.field, one.difference.right) == ("failure", finding.text)
    assert 'raise KeyError("a register")' in path.with_suffix(".txt").read_text()


def test_what_a_compiler_raises_is_an_error_and_never_unsupported(tmp_path: Path) -> None:
    schedules = (Schedule.NONE, Schedule.RANDOM)
    report = run(plan("clumsy", save=str(tmp_path), schedules=schedules))
    assert [finding.number for finding in report.findings] == [*hit()]  # once, not in moves again
    for finding in report.findings:
        check_clumsy(finding, "clumsy")
    assert len(report.groups) == 1
    assert of(report, TrialOutcome.ERROR) == len(hit())
    assert report.verdicts["clumsy", Verdict.DISAGREE] == len(hit())
    assert report.verdicts["clumsy", Verdict.UNSUPPORTED] == 0


def test_what_a_compiler_raises_is_an_error_though_the_policy_would_go_on(tmp_path: Path) -> None:
    forced = under_policy(
        tmp_path, "clumsy", save=str(tmp_path / "found"), forcing=frozenset([Forcing.HOT])
    )
    report = run(forced)
    found = [finding.number for finding in report.findings]
    assert found
    assert set(found) <= set(hit())
    for finding in report.findings:
        check_clumsy(finding, "mixed")
    assert of(report, TrialOutcome.ERROR) == len(found)
    assert report.verdicts["mixed", Verdict.AGREE] == PROGRAMS - len(found)


@pytest.mark.nightly
def test_malformed_ir_is_a_finding_of_its_own_that_replays(tmp_path: Path) -> None:
    report = run(plan("careless", save=str(tmp_path)))
    assert [finding.number for finding in report.findings] == [*hit()]
    assert of(report, TrialOutcome.MALFORMED) == len(hit())
    (group,) = report.groups
    assert group[0].what == "malformed IR: it has no terminator"
    assert group[0].text.startswith("malformed IR: backend 'careless': region program: body ")
    replay = [sys.executable, "-m", "ferryvm.cli", "replay", str(group[0].path)]
    answer = subprocess.run(replay, capture_output=True, text=True, check=False)
    assert answer.returncode == 1
    assert "now:   failure: none on switch, malformed IR: backend 'careless'" in answer.stdout
    assert "(the same field)" in answer.stdout


@pytest.mark.nightly
def test_ferry_diff_calls_what_a_compiler_raises_an_error(tmp_path: Path) -> None:
    file = tmp_path / "hit.fvm"
    file.write_bytes(to_bytes(program(hit()[0])))
    command = [sys.executable, "-m", "ferryvm.cli", "diff", "--against", "switch", "--backends"]
    answer = subprocess.run(
        [*command, "clumsy,shy", str(file)], capture_output=True, text=True, check=False
    )
    assert answer.returncode == 1
    rows = [line.split() for line in answer.stdout.splitlines()]
    assert [row[2] for row in rows] == ["verdict", "error", "unsupported"]
    assert "in a compiler: backend 'clumsy': region program: it raised KeyError" in answer.stderr


@pytest.mark.nightly
def test_what_a_compiler_refuses_is_no_finding(tmp_path: Path) -> None:
    report = run(under_policy(tmp_path, "shy", forcing=frozenset([Forcing.HOT])))
    assert report.findings == []
    assert report.verdicts["mixed", Verdict.AGREE] == PROGRAMS
    alone = run(plan("shy"))
    assert alone.findings == []
    assert of(alone, TrialOutcome.UNSUPPORTED) == len(hit())
    assert alone.reasons["shy"].endswith(": not this one")


@pytest.mark.nightly
def test_difference_under_a_policy_is_saved_with_it_and_shows_again(tmp_path: Path) -> None:
    chosen = under_policy(tmp_path, "forging", save=str(tmp_path / "found"))
    report = run(chosen)
    assert report.compiled > 0
    finding = report.findings[0]
    assert (finding.outcome, finding.backends) == (TrialOutcome.DISAGREE, "mixed")
    one = disagreement.load(str(finding.path))
    assert one.policy == policies.load(str(chosen.policy), ["threaded", *NAMES])
    assert {"backend threaded", "backend forging"} <= one.versions.keys()
    assert "backend mixed" not in one.versions


@pytest.mark.nightly
def test_disagreement_without_mixed_execution_has_no_policy(tmp_path: Path) -> None:
    finding = run(plan("forging", save=str(tmp_path))).findings[0]
    one = disagreement.load(str(finding.path))
    assert one.policy is None
    assert "backend forging" in one.versions


@pytest.mark.nightly
def test_policy_under_which_nothing_is_compiled_shows_nothing_of_compilers(tmp_path: Path) -> None:
    chosen = under_policy(tmp_path, "leaving")
    Path(str(chosen.policy)).write_text("[profile]\nenabled = false\n")
    report = run(chosen)
    assert (report.findings, report.compiled, report.is_idle) == ([], 0, True)
    assert not run(under_policy(tmp_path, "leaving", forcing=frozenset([Forcing.HOT]))).is_idle
    assert not run(plan("threaded")).is_idle


def test_registry_has_the_policy_only_under_its_name() -> None:
    from ferryvm.backend import Compiler, Interpreter
    from ferryvm.errors import UnknownNameError
    from ferryvm.registry import Registry
    from ferryvm.testing.mixed import MixedRegistry

    registry = MixedRegistry(policies.default())
    assert policy_of(registry) is policies.default()
    assert isinstance(registry.get("mixed"), Interpreter)
    assert isinstance(registry.get("llvm"), Compiler)
    assert policy_of(Registry()) is None
    with pytest.raises(UnknownNameError, match="no backend 'mixed'"):
        MixedRegistry(None).get("mixed")


def test_one_program_in_so_many_is_thorough_and_the_others_take_forms_in_turn() -> None:
    chosen = CampaignPlan(
        seed(), ("threaded",), "switch", (ProgramKind.BYTECODE,), thorough_every=4
    )
    with tempfile.TemporaryFile() as file:
        judge = Judge(chosen, Notes(file.fileno(), chosen, is_new=True))
        efforts = []
        for number in range(5):
            judge.judge(number)
            efforts.append((judge.registry.effort.quick, judge.differ.form))
    assert efforts == [(False, None), (True, True), (True, False), (True, True), (False, None)]
    assert "--thorough-every 4" in chosen.command(3)
    assert "--thorough-every" not in plan("threaded").command(3)


@pytest.mark.nightly
def test_code_that_is_made_quickly_agrees() -> None:
    report = Campaign(plan("llvm", thorough_every=4), 1, 5).run()
    assert report.findings == []
    assert report.verdicts["llvm", Verdict.AGREE] == 5
    # Two forms of two programs, one of three, none of that which does not end.
    assert report.compiled >= 7
