# SPDX-License-Identifier: Apache-2.0
"""A campaign finds what goes wrong, survives it, and comes to the same whoever does the work."""

from __future__ import annotations

import dataclasses
import inspect
import re
import selectors
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ferryvm import child
from ferryvm.backend import Forcing
from ferryvm.errors import FerryError
from ferryvm.image import to_bytes
from ferryvm.testing import disagreement
from ferryvm.testing.differential import Verdict
from ferryvm.testing.fuzz import Campaign, CampaignPlan, Finding, Report, TrialOutcome
from ferryvm.testing.fuzz.notes import Stage
from ferryvm.testing.generate import LIMITS, OBJECT_LIMITS, ProgramKind, generate
from ferryvm.testing.schedule import Schedule

from ...campaign_seed import Hits, seed_with_hits
from ...tier import nightly, sample

PROGRAMS = 10


def seed() -> int:
    return seed_with_hits(PROGRAMS)[0]


def hit() -> Hits:
    """Numbers of the programs on which bad backends go wrong."""
    return seed_with_hits(PROGRAMS)[1]


def plan(backend: str, **fields: object) -> CampaignPlan:
    return CampaignPlan(seed(), (backend,), "switch", (ProgramKind.BYTECODE,), **fields)  # type: ignore[arg-type]


def outcomes(report: Report, kind: ProgramKind = ProgramKind.BYTECODE) -> dict[TrialOutcome, int]:
    return {outcome: n for (k, outcome), n in report.outcomes.items() if k is kind and n}


def good(report: Report) -> int:
    counts = outcomes(report)
    return counts.get(TrialOutcome.HALTED, 0) + counts.get(TrialOutcome.TRAPPED, 0)


@pytest.mark.nightly
@pytest.mark.usefixtures("bad_backends")
@pytest.mark.parametrize(
    ("name", "how"), [("dying", "SIGSEGV"), nightly(("exiting", "exit code 3"))]
)
def test_backend_that_ends_the_process_is_found_and_the_campaign_goes_on(
    name: str, how: str, tmp_path: Path
) -> None:
    folder = tmp_path / "found"
    report = Campaign(plan(name, save=str(folder)), 2, PROGRAMS).run()
    assert report.programs == PROGRAMS
    assert outcomes(report)[TrialOutcome.CRASH] == len(hit()) == PROGRAMS - good(report)
    assert sorted(finding.number for finding in report.findings) == [*hit()]
    ((first, *_),) = report.groups
    assert first.signature == ("crash", name, how, "")
    assert first.number == hit()[0]
    for finding in report.findings:
        path = folder / f"{seed()}-bytecode-{finding.number}.fvm"
        assert finding.path == str(path)
        assert path.read_bytes() == to_bytes(generate(seed(), finding.number))
        what, line, *_ = path.with_suffix(".txt").read_text().splitlines()
        assert what == f"crash: {how}, in {name}"
        assert line == CampaignPlan.command(report.plan, finding.number)
    assert len(list(folder.iterdir())) == 2 * len(hit())


@pytest.mark.nightly
@pytest.mark.usefixtures("bad_backends")
def test_backend_that_cannot_be_stopped_is_found_with_the_place_where_it_hangs(
    tmp_path: Path,
) -> None:
    chosen = plan("hanging", save=str(tmp_path), patience=1.0)
    report = Campaign(chosen, 1, 1, first=hit()[0]).run()
    assert outcomes(report)[TrialOutcome.HANG] == 1
    assert report.programs == 1
    (finding,) = report.findings
    assert (finding.number, finding.backends) == (hit()[0], "hanging")
    assert "in _hang" in Path(str(finding.path)).with_suffix(".txt").read_text()


@pytest.mark.usefixtures("bad_backends")
def test_backend_that_does_not_come_back_is_stopped_and_differs(tmp_path: Path) -> None:
    chosen = plan("spinning", save=str(tmp_path), patience=1.0)
    report = Campaign(chosen, 1, 1, first=hit()[0]).run()
    assert report.programs == 1
    (finding,) = report.findings
    assert (finding.number, finding.backends, finding.what) == (hit()[0], "spinning", "failure")
    reason = "(not bisected: comparing took all the time)"
    assert finding.text.endswith(f"it was still running after 1 s there {reason}")
    assert str(finding.path).endswith(f"{seed()}-bytecode-{hit()[0]}.disagreement")
    assert disagreement.load(str(finding.path)).patience == 1.0


@pytest.mark.nightly
@pytest.mark.usefixtures("bad_backends")
def test_bisecting_takes_no_longer_than_the_patience(tmp_path: Path) -> None:
    chosen = plan("lingering", save=str(tmp_path), patience=0.5)
    report = Campaign(chosen, 1, PROGRAMS).run()
    assert {finding.outcome for finding in report.findings} == {TrialOutcome.DISAGREE}
    for finding in report.findings:
        assert finding.what == "local"
        assert finding.text.endswith(" (not bisected: it was not found within 0.5 s)")
        assert disagreement.load(str(finding.path)).parting is None


@pytest.mark.nightly
@pytest.mark.usefixtures("bad_backends")
def test_what_a_backend_raises_in_prepare_is_blamed_on_no_instruction() -> None:
    chosen = dataclasses.replace(plan("unprepared"), schedules=tuple(Schedule))
    report = Campaign(chosen, 1, PROGRAMS).run()
    assert [finding.number for finding in report.findings] == [*hit()]
    (group,) = report.groups
    assert group[0].signature == ("disagree", "unprepared", "failure in prepare", "")
    start = "switch and unprepared: failure: none here, in prepare: ValueError: too many registers"
    assert group[0].text.startswith(f"{start} (campaign.py:")
    assert group[0].text.endswith(" in prepare) there")


def test_there_are_no_more_jobs_than_programs() -> None:
    report = Campaign(plan("threaded"), 99999, 2).run()
    assert (report.programs, report.jobs) == (2, 2)


@pytest.mark.usefixtures("bad_backends")
def test_backend_that_differs_is_found_with_the_instruction_and_saved_to_be_replayed(
    tmp_path: Path,
) -> None:
    report = Campaign(plan("lying", save=str(tmp_path)), 1, PROGRAMS).run()
    found = [finding.number for finding in report.findings]
    assert found
    assert set(found) <= set(hit())  # it lies about programs that come to a halt
    assert outcomes(report)[TrialOutcome.DISAGREE] == len(found)
    assert report.verdicts["lying", Verdict.DISAGREE] == len(found)
    for finding in report.findings:
        assert (finding.backends, finding.mnemonic) == ("lying", "halt")
        assert str(finding.path).endswith(f"{seed()}-bytecode-{finding.number}.disagreement")
        one = disagreement.load(str(finding.path))
        assert to_bytes(one.program) == to_bytes(generate(seed(), finding.number))
        assert (one.good, one.bad) == ("switch", "lying")
        assert one.origin == report.plan.command(finding.number)


@pytest.mark.usefixtures("bad_backends")
def test_what_a_backend_raises_is_a_disagreement() -> None:
    report = Campaign(plan("raising"), 1, PROGRAMS).run()
    assert [finding.number for finding in report.findings] == [*hit()]
    assert report.findings[0].what == "failure"
    assert "ZeroDivisionError: of all things" in report.findings[0].text
    assert report.findings[0].path is None


@pytest.mark.usefixtures("bad_backends")
def test_backend_that_refuses_everything_is_unsupported_and_never_agrees() -> None:
    report = Campaign(plan("refusing"), 1, 10).run()
    assert outcomes(report) == {TrialOutcome.UNSUPPORTED: 10}
    assert report.uncompared == ["refusing"]
    assert report.reasons == {
        "refusing": "backend 'refusing' refuses the program: it is none I like"
    }
    assert report.verdicts["refusing", Verdict.AGREE] == 0


@pytest.mark.usefixtures("bad_backends")
def test_what_a_backend_builds_once_is_not_held_against_its_first_program() -> None:
    report = Campaign(plan("building", patience=1.0), 1, 4).run()
    assert report.findings == []
    assert good(report) == 4


@pytest.mark.nightly
@pytest.mark.usefixtures("bad_backends")
def test_what_a_backend_prints_does_not_disturb_the_campaign() -> None:
    report = Campaign(plan("noisy"), 1, 10).run()
    assert good(report) == report.programs == 10


@pytest.mark.nightly
@pytest.mark.usefixtures("bad_backends")
@pytest.mark.parametrize("name", sample(["lying", "dying"], 1))
def test_outcome_does_not_depend_on_the_number_of_workers(name: str) -> None:
    def summary(jobs: int) -> object:
        kinds = (ProgramKind.BYTECODE, ProgramKind.SKIFF, ProgramKind.IMAGE)
        chosen = CampaignPlan(seed(), (name, "threaded"), "switch", kinds)
        report = Campaign(chosen, jobs, 24 if name == "dying" else 90).run()
        groups = [(group[0], len(group)) for group in report.groups]
        return +report.outcomes, +report.verdicts, [(str(one), n) for one, n in groups]

    assert summary(1) == summary(3)


@pytest.mark.nightly
def test_worker_that_takes_too_much_memory_is_replaced_and_nothing_is_lost() -> None:
    usual = Campaign(plan("threaded"), 1, 6).run()
    campaign, workers = Campaign(plan("threaded", memory=1), 1, 6), set[object]()
    report = campaign.run(lambda _: workers.update(campaign._children))
    assert report.outcomes == usual.outcomes
    assert report.verdicts == usual.verdicts
    assert len(workers) > 1


@pytest.mark.nightly
def test_worker_is_not_replaced_for_the_memory_of_whoever_started_it() -> None:
    ballast = b"x" * (400 << 20)
    campaign, workers = Campaign(plan("threaded", memory=380 << 20), 1, 6), set[object]()
    campaign.run(lambda _: workers.update(campaign._children))
    assert len(workers) == 1
    assert len(ballast) == 400 << 20


@pytest.mark.nightly
def test_trials_may_begin_anywhere_and_come_to_the_same() -> None:
    whole = Campaign(plan("threaded"), 2, 30).run()
    parts = [Campaign(plan("threaded"), 1, n, first=at).run() for at, n in ((0, 11), (11, 19))]
    assert parts[0].outcomes + parts[1].outcomes == +whole.outcomes


def test_ctrl_c_ends_a_campaign_with_what_it_has() -> None:
    def interrupt(report: Report) -> None:
        if report.programs > 10:
            raise KeyboardInterrupt

    report = Campaign(plan("threaded"), 2).run(interrupt)
    assert report.is_interrupted
    assert report.programs > 10
    assert good(report) == report.programs


def test_campaign_ends_when_its_time_is_over() -> None:
    report = Campaign(plan("threaded"), 1, seconds=0.5).run()
    assert report.seconds >= 0.5
    assert good(report) == report.programs > 0


@pytest.mark.usefixtures("bad_backends")
def test_campaign_ends_after_as_many_findings_as_asked() -> None:
    report = Campaign(plan("lying"), 1, most_findings=2).run()
    assert len(report.findings) >= 2
    assert report.programs < 1000


@pytest.mark.nightly
@pytest.mark.usefixtures("bad_backends")
def test_finding_with_a_huge_text_is_heard_cut_while_the_campaign_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = Campaign(plan("shouting", patience=2.0), 1, first=hit()[0])

    def loop(_: object) -> None:
        """Deal one program, then end the campaign while it runs."""
        campaign._start()
        (child,) = campaign._children
        while not child.is_ready:
            campaign._hear(child)
        child.deal(hit()[0], hit()[0] + 1)
        while child.notes.stage is not Stage.RUNNING:
            time.sleep(0.0001)

    monkeypatch.setattr(campaign, "_loop", loop)
    report = campaign.run()
    (finding,) = report.findings
    assert finding.outcome is TrialOutcome.DISAGREE
    assert re.search(r"! \.\.\. \d+ characters \.\.\. !", finding.text)


def test_worker_has_time_to_start_and_more_with_more_patience(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("ferryvm.testing.fuzz.campaign._LONGEST_START", 0.0)
    # A process that starts takes longer than one that is forked.
    monkeypatch.setattr(child, "_start", inspect.unwrap(child._start))
    assert Campaign(plan("threaded", patience=100.0), 1, 1).run().findings == []
    where = r"between programs \(no progress in 0\.006 s, at (File|no place)"
    with pytest.raises(FerryError, match=f"^a worker got no further {where}"):
        Campaign(plan("threaded", patience=1e-3), 1, 1).run()


@pytest.mark.usefixtures("bad_backends")
def test_findings_never_take_the_place_of_earlier_ones(tmp_path: Path) -> None:
    for again in (1, 2):
        chosen = plan("raising", save=str(tmp_path))
        Campaign(chosen, 1, hit()[0] + 1).run()
        assert len(list(tmp_path.iterdir())) == again
    names = sorted(path.name for path in tmp_path.iterdir())
    stem = f"{seed()}-bytecode-{hit()[0]}"
    assert names == [f"{stem}{end}.disagreement" for end in ("-2", "")]


def test_folder_that_cannot_be_written_is_told_before_anything_runs(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(FerryError, match=f"^{file}: findings cannot be saved there: "):
        Campaign(plan("threaded", save=str(file)), 1, 1).run()


def test_worker_that_cannot_begin_is_an_error_in_one_line() -> None:
    with pytest.raises(FerryError, match=r"^a worker ended between programs \(exit code 1\): .*no"):
        Campaign(plan("nosuch"), 1, 1).run()


def test_workers_end_when_their_parent_is_gone(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    program = (
        "import sys, time, pathlib\n"
        "from ferryvm.testing.fuzz import Campaign, CampaignPlan\n"
        "def note(report):\n"
        "    if report.programs:\n"
        "        pids = [str(c.process.pid) for c in campaign._children]\n"
        "        pathlib.Path(sys.argv[1]).write_text(' '.join(pids) + '.')\n"
        "campaign = Campaign(CampaignPlan(1, ('threaded',), 'switch'), 2)\n"
        "campaign.run(note)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", program, pids])
    while not (pids.exists() and pids.read_text().count(" ") == 1):
        assert parent.poll() is None
        time.sleep(0.02)
    parent.kill()
    parent.wait()
    workers = [Path("/proc") / pid for pid in pids.read_text().rstrip(".").split()]
    for _ in range(600):
        if not any(_is_running(worker) for worker in workers):
            break
        time.sleep(0.05)
    assert not any(_is_running(worker) for worker in workers)


def _is_running(process: Path) -> bool:
    try:
        return ") Z " not in (process / "stat").read_text()
    except OSError:
        return False


def test_finding_is_the_same_after_a_trip_through_a_pipe() -> None:
    finding = Finding(
        3, ProgramKind.IMAGE, TrialOutcome.ERROR, "", "message", "a\nb", "detail", "halt", "p"
    )
    assert Finding.from_json(finding.to_json()) == finding


def test_plan_is_the_same_after_a_trip_through_a_pipe() -> None:
    forcing = frozenset(Forcing)
    chosen = plan("mixed", weights="w.toml", save="folder", policy="p.toml", forcing=forcing)
    assert CampaignPlan.from_json(chosen.to_json()) == chosen
    assert "\n" not in chosen.to_json()


def test_line_that_repeats_a_trial_has_the_patience_that_it_had() -> None:
    assert "--patience 1.5" in plan("threaded", patience=1.5).command(3)
    assert "--patience" not in plan("threaded").command(3)


def test_programs_have_limits_of_objects_in_turn_and_each_line_names_its_own() -> None:
    kinds = (ProgramKind.BYTECODE, ProgramKind.IMAGE)
    chosen = CampaignPlan(seed(), ("threaded",), "switch", kinds)
    assert tuple(chosen.limits(n).objects for n in range(0, 6, 2)) == OBJECT_LIMITS
    assert {chosen.limits(n) for n in range(1, 9, 2)} == {LIMITS}
    assert f"--object-limit {OBJECT_LIMITS[2]}" in chosen.command(4)
    assert "--object-limit" not in chosen.command(1)
    same = dataclasses.replace(chosen, object_limit=77)
    assert {same.limits(n).objects for n in range(9)} == {77}
    assert "--object-limit 77" in same.command(1)
    assert CampaignPlan.from_json(same.to_json()) == same


def test_line_that_repeats_a_trial_has_its_policy_and_what_was_forced() -> None:
    line = plan("mixed", policy="my p.toml", forcing=frozenset([Forcing.DEOPT])).command(3)
    assert "--backends mixed --against switch --force-deopt --policy 'my p.toml'" in line


def test_a_signal_while_a_worker_is_started_ends_with_the_report(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    campaign = Campaign(plan("threaded"), 1, PROGRAMS)

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(selectors.DefaultSelector, "register", interrupt)
    report = campaign.run()
    assert (report.is_interrupted, report.programs) == (True, 0)
