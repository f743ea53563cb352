# SPDX-License-Identifier: Apache-2.0
"""`ferry doctor`: every backend's state and findings, and an exit code that scripts can use."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner

import ferryvm
from ferryvm.backend import Finding
from ferryvm.cli.command import ferry
from ferryvm.errors import UnknownNameError
from ferryvm.hooks import BackendEntry
from ferryvm.registry import Registry
from ferryvm_backends import ferryvm_backends

from ..command import ferry as run
from ..double.interpreter import Minimal
from ..double.registry import plugin

CARD = Finding("card 1", {"memory bytes": 3 << 30, "fast": True, "cores": 7, "maker": "Acme"})
OLD = Finding("library", {"version": "1.2"}, "it is older than 2.0", "pip install acme-runtime")


def backend(
    name: str, found: object = (), reason: str | None = None, error: BaseException | None = None
) -> BackendEntry:
    """A backend with these findings, or whose `examine` raises; `reason`: its probe's."""

    def examine(self: Minimal) -> object:
        if error is not None:
            raise error
        return found

    body = {"name": name, "examine": examine, "probe": lambda self: reason}
    return BackendEntry(name, type(name, (Minimal,), body))


Doctor = Callable[..., tuple[int, str]]


@pytest.fixture
def doctor(monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """Runs the command where there are only these backends; its exit code and output."""

    def run(entries: Sequence[BackendEntry], *arguments: str) -> tuple[int, str]:
        def made(log_faults: bool) -> Registry:
            found = Registry(discover=False, log_faults=log_faults)
            found.register(plugin(*entries), "test")
            return found

        monkeypatch.setattr("ferryvm.registry.Registry", made)
        done = CliRunner().invoke(ferry, ["doctor", *arguments], standalone_mode=False)
        if done.exception is not None:
            raise done.exception
        return done.return_value, done.output

    return run


def command(*arguments: str, **environment: str) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of the real command."""
    return run("doctor", *arguments, environment={**os.environ, **environment})


# --- what it prints -------------------------------------------------------------------------


def test_facts_are_aligned_and_the_problem_is_followed_by_its_remedy(doctor: Doctor) -> None:
    code, out = doctor([backend("acme", [CARD, OLD])])
    assert code == 0
    assert out.partition("\n\n")[2] == (
        "acme: usable\n"
        "    card 1\n"
        "        memory  3.0 GiB (3221225472)\n"
        "        fast    yes\n"
        "        cores   7\n"
        "        maker   Acme\n"
        "    library\n"
        "        version  1.2\n"
        "        problem  it is older than 2.0\n"
        "        remedy   pip install acme-runtime\n"
        "\n"
        "all usable; 1 problem found\n"
    )


def test_findings_of_one_subject_stand_under_one_heading(doctor: Doctor) -> None:
    slow, hot = Finding("card 1", problem="it is slow"), Finding("card 1", problem="it is hot")
    _, out = doctor([backend("acme", [CARD, slow, hot])])
    assert out.count("card 1") == 1
    assert "        problem  it is slow\n        problem  it is hot\n" in out


def test_the_machine_comes_first_with_versions_and_the_cache(
    doctor: Doctor, empty_cache: Path
) -> None:
    _, out = doctor([])
    lines = [line.split(maxsplit=1) for line in out.splitlines()]
    assert lines[0] == ["machine"]
    assert lines[1] == ["ferryvm", ferryvm.__version__]
    assert lines[2][0] == "Python"
    assert f"    cache directory    {empty_cache}\n" in out
    assert "    cache can be used  yes\n" in out


def test_a_cache_that_cannot_be_written_is_a_problem_of_the_machine(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("FERRYVM_CACHE_DIR", str(tmp_path / "file" / "cache"))
    code, out = doctor([backend("acme")])
    assert code == 0, "acme needs no cache"
    assert "cache can be used  no\n" in out
    assert (
        f"problem            cache {tmp_path}/file/cache cannot be used: Not a directory; " in out
    )
    assert "remedy             set FERRYVM_CACHE_DIR to a folder of your own " in out


def test_the_findings_of_a_backend_that_is_not_usable_are_shown_with_the_reason(
    doctor: Doctor,
) -> None:
    code, out = doctor([backend("acme", [OLD], reason="no card")])
    assert code == 1
    assert "acme: not usable\n    no card\n    library\n" in out
    assert out.endswith("\n1 of 1 not usable; 1 problem found\n")


def test_json_has_the_same_with_facts_as_values(doctor: Doctor) -> None:
    code, out = doctor([backend("acme", [CARD, OLD], reason="no card")], "--json")
    assert code == 1
    document = json.loads(out)
    assert document["machine"]["facts"]["ferryvm"] == ferryvm.__version__
    (section,) = document["backends"]
    card, old = section.pop("findings")
    assert section == {
        "name": "acme", "kind": "interpreter", "source": "test", "version": "1",
        "state": "not usable", "reason": "backend 'acme': no card",
    }  # fmt: skip
    assert card == {"subject": "card 1", "facts": dict(CARD.facts), "problem": "", "remedy": ""}
    assert (old["problem"], old["remedy"]) == (OLD.problem, OLD.remedy)
    assert document["warnings"] == []


def test_every_in_tree_backend_has_a_section() -> None:
    code, out, err = command(FERRYVM_PLUGINS="none")
    assert (code, err) == (0, "")
    for entry in ferryvm_backends():
        assert f"\n{entry.name}: usable\n" in out


# --- exit code ------------------------------------------------------------------------------


def test_one_backend_that_is_not_usable_makes_the_exit_code_1(doctor: Doctor) -> None:
    entries = [backend("acme"), backend("absent", reason="no card")]
    assert doctor(entries)[0] == 1


def test_with_a_name_only_that_backend_counts_and_is_shown(doctor: Doctor) -> None:
    entries = [backend("acme"), backend("absent", reason="no card")]
    code, out = doctor(entries, "--backend", "acme")
    assert code == 0
    assert "absent" not in out
    assert doctor(entries, "--backend", "absent")[0] == 1


def test_a_backend_that_does_not_load_makes_the_exit_code_1(doctor: Doctor) -> None:
    code, out = doctor([BackendEntry("torn", lambda: 1 / 0)])  # type: ignore[arg-type,return-value]  # what is tested
    assert code == 1
    assert "torn: broken\n    backend 'torn' of test does not load: ZeroDivisionError: " in out


def test_a_plugin_that_the_user_leaves_out_changes_no_exit_code(tmp_path: Path) -> None:
    (tmp_path / "late.py").write_text("", encoding="utf-8")
    folder = tmp_path / "late-1.dist-info"
    folder.mkdir()
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: late\nVersion: 1\n")
    (folder / "entry_points.txt").write_text("[ferryvm]\nlate = late\n")
    path = os.pathsep.join(filter(None, (str(tmp_path), os.environ.get("PYTHONPATH"))))
    code, out, err = command(PYTHONPATH=path, FERRYVM_PLUGINS="none")
    assert (code, err) == (0, "")
    assert "late:late: forbidden\n    plugin late:late is left out" in out


def test_an_unknown_name_is_an_error_with_a_suggestion(doctor: Doctor) -> None:
    with pytest.raises(UnknownNameError, match="no backend 'acne'; did you mean 'acme'"):
        doctor([backend("acme")], "--backend", "acne")
    code, out, err = command("--backend", "swich")
    assert (code, out) == (2, "")
    assert err.startswith("ferry: no backend 'swich'; did you mean 'switch'?")


def test_the_help_states_the_exit_codes() -> None:
    _, out, _ = command("--help")
    said = " ".join(out.split())
    assert "exit code is 0 if every backend can be used, 1 if one cannot" in said


# --- what a backend may do wrong ------------------------------------------------------------


WRONG: dict[str, tuple[object, str]] = {
    "nothing": (None, "its examine returned None, not a list of Finding"),
    "a text": ("all well", "its examine returned a str, not a list of Finding"),
    "a text in a list": (["well"], "its examine returned a str in its list, not a Finding"),
    "a subject": (
        [Finding(3)],  # type: ignore[arg-type]  # what is tested
        "its examine returned a finding with an int as its subject, not a text",
    ),
    "facts": (
        [Finding("x", [])],  # type: ignore[arg-type]  # what is tested
        "its examine returned a finding with a list as its facts, not a mapping",
    ),
    "a fact's name": (
        [Finding("x", {1: 2})],  # type: ignore[dict-item]  # what is tested
        "its examine returned a fact named by an int, not by a text",
    ),
    "a fact": (
        [Finding("x", {"size": None})],  # type: ignore[dict-item]  # what is tested
        "its examine returned the fact 'size' with None, not with a text, a number or a bool",
    ),
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_findings_that_are_none_are_told_in_one_line(doctor: Doctor, what: str) -> None:
    found, said = WRONG[what]
    code, out = doctor([backend("acme", found), backend("other", [CARD])])
    assert code == 0, "it can be used all the same"
    assert f"    acme\n        problem  {said}\n\nother: usable\n    card 1\n" in out


@pytest.mark.parametrize("error", [ValueError("two\nlines"), SystemExit("two lines")])
def test_an_examine_that_raises_is_told_in_one_line_and_harms_no_other(
    doctor: Doctor, error: BaseException
) -> None:
    code, out = doctor([backend("acme", error=error), backend("other", [CARD])])
    assert code == 0
    said = f"problem  its examine failed: {type(error).__name__}: two lines (test_doctor.py:"
    assert said in out
    assert "other: usable\n    card 1\n" in out


def test_line_breaks_in_findings_are_removed(doctor: Doctor) -> None:
    torn = Finding("card\n1", {"a\nfact": "two\nlines"}, "it\nis torn", "mend\nit")
    _, out = doctor([backend("acme", [torn])])
    assert "    card 1\n        a fact   two lines\n        problem  it is torn\n" in out
    assert "        remedy   mend it\n" in out


def test_a_backend_without_examine_finds_nothing(doctor: Doctor) -> None:
    code, out = doctor([Minimal])
    assert code == 0
    assert out.endswith("minimal: usable\n\nall usable; no problem found\n")
