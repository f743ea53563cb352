# SPDX-License-Identifier: Apache-2.0
"""`ferry fuzz` as a user meets it: tables, exit codes, one clear line for what is unusable."""

from __future__ import annotations

import os
import re
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ..campaign_seed import seed_with_hits
from ..command import Ended, ferry
from ..double.distribution import python_path
from ..tier import sample

FUZZ = ("fuzz", "--jobs", 1)
"""With one worker: each is a process that has to start."""

COLUMNS = "programs halted trapped stopped diverged unsupported refused disagree malformed error crash hang"


@pytest.fixture
def environment(campaign_site: Path) -> dict[str, str]:
    """An environment in which a plugin of bad backends is installed."""
    return {**os.environ, "PYTHONPATH": python_path(campaign_site)}


def rows(output: str) -> dict[str, dict[str, int]]:
    """The table: kind, column, number."""
    lines = [line.split() for line in output.splitlines()]
    heads = next(words[1:] for words in lines if words[:1] == ["kind"])
    assert heads == COLUMNS.split()
    kinds = [words for words in lines if words and words[0] in ("bytecode", "skiff", "image")]
    return {words[0]: dict(zip(heads, map(int, words[1:]), strict=True)) for words in kinds}


def campaign_that_finds(*words: object, environment: dict[str, str]) -> Ended:
    """A campaign of the first seed on which it ends with 1."""
    for seed in range(3, 20):
        done = ferry(*FUZZ, "--seed", seed, "--programs", 24, *words, environment=environment)
        if done.code == 1:
            break
    assert done.code == 1, done.err
    return done


@pytest.mark.parametrize("backends", sample([["--backends", "switch,threaded"], []], 1), ids=str)
def test_campaign_without_findings_prints_a_table_and_ends_with_0(backends: list[str]) -> None:
    done = ferry(*FUZZ, "--seed", 4, "--programs", 10, *backends)
    assert (done.code, done.err) == (0, "")
    table = rows(done.out)
    assert [table[kind]["programs"] for kind in ("bytecode", "skiff")] == [9, 1]
    for row in table.values():
        assert row["programs"] == row["halted"] + row["trapped"]
    last = done.out.splitlines()[-1]
    assert last.startswith("seed 4, 1 job: 10 programs in ")


@pytest.mark.nightly
def test_kinds_and_schedules_may_be_named_several_times() -> None:
    kinds = [word for kind in ("image", "bytecode", "bytecode") for word in ("--kind", kind)]
    schedules = ["--schedule", "random", "--schedule", "every-boundary"]
    done = ferry(*FUZZ, "--programs", 9, "--seed", 1, "--backends", "switch", *kinds, *schedules)
    assert done.code == 0, done.err
    table = rows(done.out)
    assert {kind: row["programs"] for kind, row in table.items()} == {"image": 3, "bytecode": 6}


def test_disagreement_is_shown_saved_and_can_be_replayed_and_repeated(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    bad = ["--backends", "lying", "--against", "switch", "--kind", "bytecode"]
    words = [*FUZZ, "--seed", 2, "--programs", 24, *bad, "--save", tmp_path / "found"]
    done = ferry(*words, environment=environment)
    assert done.code == 1
    count = rows(done.out)["bytecode"]["disagree"]
    assert count > 1
    first, file, *others = done.err.splitlines()
    start = f"ferry: disagree at halt ({count} times): switch and lying: local 0 of main: 0x"
    assert first.startswith(start)
    assert not others
    assert len(list((tmp_path / "found").iterdir())) == count

    shown = ferry("replay", file.strip(), environment=environment)
    assert shown.code == 1
    assert "local 0 of main" in shown.out + shown.err

    number = file.strip().removesuffix(".disagreement").split("-")[-1]
    again = ferry(
        *FUZZ, "--seed", 2, "--first", number, "--programs", 1, *bad, environment=environment
    )
    assert again.code == 1
    line, repeat = again.err.splitlines()
    assert line == first.replace(f" ({count} times)", "")
    assert repeat.split()[:2] == ["ferry", "fuzz"]
    assert ferry(*repeat.split()[1:], environment=environment).err == again.err


@pytest.mark.nightly
def test_crash_is_a_finding_of_its_own(environment: dict[str, str]) -> None:
    seed, (first, *_) = seed_with_hits(10)
    bad = ["--backends", "threaded,dying", "--against", "switch", "--kind", "bytecode"]
    some = ["--seed", seed, "--first", first, "--programs", 2]
    done = ferry(*FUZZ, *some, *bad, environment=environment)
    assert done.code == 1
    row = rows(done.out)["bytecode"]
    assert row["programs"] == 2 == row["crash"] + row["halted"] + row["trapped"]
    assert row["crash"] > 0
    assert "SIGSEGV, in dying\n" in done.err


def test_backend_that_refuses_everything_ends_with_2(environment: dict[str, str]) -> None:
    words = [*FUZZ, "--programs", 6, "--backends", "refusing,threaded", "--against", "switch"]
    done = ferry(*words, environment=environment)
    assert done.code == 2
    assert [row["unsupported"] for row in rows(done.out).values()] == [6, 0]
    reason = "backend 'refusing' refuses the program: it is none I like"
    assert done.err == f"ferry: refusing could run none of them: {reason}\n"


@pytest.mark.nightly
def test_campaign_in_which_nothing_was_compared_ends_with_2() -> None:
    words = [*FUZZ, "--seed", 5, "--programs", 1, "--kind", "image"]
    done = ferry(*words, "--backends", "switch")
    assert rows(done.out)["image"]["refused"] == 1
    assert done.code == 2
    assert done.err == "ferry: switch was compared on none of them: nothing is shown\n"


@pytest.mark.nightly
def test_policy_puts_mixed_execution_under_test(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    policy = tmp_path / "my policy.toml"
    policy.write_text('[[rule]]\nname = "all"\nbackends = ["forging"]\n')
    words = ["--kind", "bytecode", "--against", "switch", "--policy", policy]
    done = ferry(*FUZZ, "--seed", 3, *words, "--programs", 2, environment=environment)
    reason = "no region was compiled: nothing is shown of compilers"
    assert (done.code, done.err) == (2, f"ferry: {reason}\n")

    done = campaign_that_finds(*words, "--force-hot", environment=environment)
    assert re.search(r" a second and job, \d+ regions compiled\n$", done.out)
    first, repeat = done.err.splitlines()[:2]
    assert "switch and mixed" in first
    assert f" --against switch --force-hot --policy '{policy}' --object-limit " in repeat
    again = ferry(*shlex.split(repeat)[1:], environment=environment)
    assert (again.code, again.err.splitlines()[-1]) == (1, repeat)


@pytest.mark.nightly
def test_disagreement_under_a_policy_can_be_replayed_without_its_file(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    policy = tmp_path / "policy.toml"
    chain = '{ name = "forging", cache = false }'  # here a replay keeps no code either
    policy.write_text(f'[[rule]]\nname = "all"\nbackends = [{chain}]\n')
    words = ["--against", "switch", "--policy", policy, "--force-hot", "--save", tmp_path / "found"]
    campaign_that_finds(*words, environment=environment)
    policy.unlink()
    file = min((tmp_path / "found").glob("*-bytecode-*.disagreement"))
    shown = ferry("replay", file, environment=environment)
    assert (shown.code, shown.err) == (1, "")
    assert "switch and mixed, schedule none" in shown.out
    missing = ferry("replay", file)
    assert missing.code == 2
    assert missing.err.startswith(f"ferry: {file}: no backend 'forging' (known: ")
    assert missing.err.count("\n") == 1


def test_policy_with_faults_is_told_before_anything_runs(tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    policy.write_text('shadows = 1\n[[rule]]\nname = "all"\nbackends = ["lvm"]\n')
    done = ferry("fuzz", "--policy", policy)
    assert (done.code, done.out) == (2, "")
    assert "unknown key; did you mean 'shadow'?" in done.err
    assert "unknown backend \"lvm\"; did you mean 'llvm'?" in done.err


@pytest.mark.nightly
def test_interpreter_that_is_to_be_forced_ends_with_2() -> None:
    words = ["--programs", 6, "--backends", "threaded", "--against", "switch"]
    done = ferry(*FUZZ, *words, "--force-deopt", "--force-hot")
    assert done.code == 2
    reason = "backend 'threaded' has nothing to force: deopt, hot"
    assert done.err == f"ferry: threaded could run none of them: {reason}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--backends", "swich"], "no backend 'swich'; did you mean 'switch'? (known: "),
        (["--backends", "reference"], "nothing to compare with 'reference': name another backend"),
        (["--seconds", "1", "--programs", "1"], "--programs and --seconds: one of the two says"),
        (["--save", __file__], f"{__file__}: findings cannot be saved there: "),
        (["--weights", "nosuch.toml"], "nosuch.toml: cannot be read: "),
        (["--policy", "nosuch.toml"], "nosuch.toml: cannot be read: "),
        (["--backends", "mixed"], "no backend 'mixed' (known: "),
        (["--kind", "poem"], "Invalid value for '--kind': 'poem' is not one of"),
        (["--programs", "0"], "Invalid value for '--programs': 0 is not in the range"),
        (["--seconds", "0"], "Invalid value for '--seconds': 0"),
        (["--seconds", "nan"], "--seconds is nan: a number of seconds is expected"),
        (["--patience", "inf"], "--patience is inf: a number of seconds is expected"),
        (["--first", "9" * 20], f"Invalid value for '--first': {'9' * 20} is not in the range 0<="),
        (["--save", ""], "Invalid value for '--save': it is empty; a folder is expected"),
        (["--object-limit", "-1"], "Invalid value for '--object-limit': '-1' is no size such as"),
        (["--object-limit", "9" * 15 + "G"], "cannot reserve "),
        (["--jobs", "0"], "Invalid value for '--jobs': 0 is not in the range"),
    ],
)
def test_what_is_unusable_is_told_in_one_line(words: list[str], message: str) -> None:
    done = ferry("fuzz", *words)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith(f"ferry: {message}")
    assert done.err.count("\n") == 1


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("number", "code", "word"),
    sample([(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")], 1),
)
def test_signal_ends_with_the_table_so_far(number: signal.Signals, code: int, word: str) -> None:
    command = [sys.executable, "-m", "ferryvm.cli", "fuzz", "--seconds", "600", "--jobs", "2"]
    child = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, process_group=0
    )
    _wait_for_worker(child.pid)
    os.killpg(child.pid, number)
    output, errors = child.communicate(timeout=120)
    assert child.returncode == code
    assert errors == f"ferry: {word}\n"
    assert "\nseed " in output
    table = rows(output)
    assert (
        table["bytecode"]["programs"]
        == table["bytecode"]["halted"] + (table["bytecode"]["trapped"])
    )


def _wait_for_worker(pid: int) -> None:
    """Wait until a process has started another one."""
    children = Path(f"/proc/{pid}/task/{pid}/children")
    while not children.read_text():
        time.sleep(0.02)


def test_hosts_that_no_program_could_call_are_refused() -> None:
    code, out, err = ferry("fuzz", "--programs", 1, "--kind", "image", "--hosts", "mine:twice")
    message = "ferry: --hosts: no program of --kind image calls host functions\n"
    assert (code, out, err) == (2, "", message)
