# SPDX-License-Identifier: Apache-2.0
"""`ferry policy` as a user meets it."""

from __future__ import annotations

import json
from pathlib import Path

import tomli

from ferryvm.policy import DEFAULT, check, here
from ferryvm.policy.fact import vocabulary
from ferryvm.policy.schema import json_schema, markdown

from .. import command

GOOD = '[[rule]]\nbackends = ["llvm"]\n'


def ferry(*arguments: object, cwd: Path) -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a `ferry policy` command."""
    return command.ferry("policy", *arguments, cwd=cwd)


def test_check_says_nothing_about_good_policies(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(GOOD)
    (tmp_path / "b.toml").write_text("")
    assert ferry("check", "a.toml", "b.toml", cwd=tmp_path) == (0, "", "")


def test_check_tells_the_faults_of_all_files(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("x = 1\ny = 2\n")
    (tmp_path / "b.toml").write_text("[profile\n")
    (tmp_path / "c.toml").write_text(GOOD + GOOD)
    code, out, err = ferry("check", "a.toml", "none.toml", "b.toml", "c.toml", cwd=tmp_path)
    allowed = "(allowed: interpreter, profile, rule, shadow, whole_program)"
    assert (code, out) == (2, "")
    assert err.splitlines() == [
        "ferry: c.toml:3:1: warning: rule[2]: never reached: rule[1] takes everything",
        f"ferry: a.toml:1:1: x: unknown key {allowed}",
        f"a.toml:2:1: y: unknown key {allowed}",
        "none.toml: cannot be read: No such file or directory",
        "b.toml:1:9: the file: not TOML: expected ']' at the end of a table declaration",
    ]


def test_check_shows_the_first_faults_of_a_file_and_the_number_of_the_others(
    tmp_path: Path,
) -> None:
    (tmp_path / "a.toml").write_text("[[rule]]\nbackends = ['nothing']\n" * 1_000)
    (tmp_path / "b.toml").write_text(GOOD * 1_000)
    code, _, err = ferry("check", "a.toml", "b.toml", cwd=tmp_path)
    lines = err.splitlines()
    assert (code, len(lines)) == (2, 42)
    assert lines[19].startswith("ferry: b.toml:41:1: warning: rule[21]: never reached")
    assert lines[20] == "ferry: ... and 979 more"
    assert lines[40].startswith("a.toml:40:13: rule[20].backends[1]: unknown backend")
    assert lines[41] == "... and 980 more"


def test_check_knows_interpreters_from_compilers(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text('interpreter = "llvm"\nrule = [{ backends = ["switch"] }]\n')
    code, out, err = ferry("check", "a.toml", cwd=tmp_path)
    assert (code, out) == (2, "")
    interpreter, backend = err.splitlines()
    assert interpreter.startswith('ferry: a.toml:1:1: interpreter: "llvm" is a compiler (allowed: ')
    assert backend.startswith('a.toml:2:23: rule[1].backends[1]: "switch" is an interpreter (')


def test_warnings_alone_are_no_failure(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(GOOD + GOOD)
    code, out, err = ferry("check", "a.toml", cwd=tmp_path)
    assert (code, out) == (0, "")
    assert err.startswith("ferry: a.toml:3:1: warning: ")


def test_show_prints_the_default_policy_with_its_comments(tmp_path: Path) -> None:
    assert ferry("show", cwd=tmp_path) == (0, DEFAULT.read_text(), "")


def test_show_prints_a_file_with_every_key(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text(GOOD)
    code, out, err = ferry("show", "a.toml", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert "optimize = 2" in out
    names = check.KnownBackends(("llvm", "threaded"))
    assert check.read_text(out, "", names).policy == check.read_text(GOOD, "", names).policy


def test_show_refuses_a_bad_file(tmp_path: Path) -> None:
    (tmp_path / "a.toml").write_text("interpreter = 'none'")
    code, out, err = ferry("show", "a.toml", cwd=tmp_path)
    assert (code, out) == (2, "")
    assert err.startswith('ferry: a.toml:1:1: interpreter: unknown backend "none"')


def test_facts_lists_every_fact_and_those_of_this_machine(tmp_path: Path) -> None:
    code, out, err = ferry("facts", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()[1:]] == list(vocabulary())
    assert f"Here: {here().cpus}." in out


def test_schema_goes_to_standard_output_or_a_file(tmp_path: Path) -> None:
    code, out, err = ferry("schema", cwd=tmp_path)
    assert (code, err) == (0, "")
    assert json.loads(out) == json_schema()
    assert ferry("schema", "-o", "s.json", cwd=tmp_path) == (0, "", "")
    assert (tmp_path / "s.json").read_text() == out
    assert ferry("schema", "--markdown", cwd=tmp_path) == (0, f"{markdown()}\n", "")


def test_a_schema_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    code, out, err = ferry("schema", "-o", "none/s.json", cwd=tmp_path)
    assert (code, out) == (2, "")
    assert err == "ferry: none/s.json: cannot be written: No such file or directory\n"


def test_what_show_prints_by_default_is_toml(tmp_path: Path) -> None:
    _, out, _ = ferry("show", cwd=tmp_path)
    assert tomli.loads(out)["interpreter"] == "threaded"
