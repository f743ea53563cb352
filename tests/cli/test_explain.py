# SPDX-License-Identifier: Apache-2.0
"""`ferry explain`, and `ferry run` with a policy and a trace."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from .test_cli import TAKING_SIGINT, ferry

LOOP = "(define i 0)\n(while (< i 1000)\n  (set! i (+ i 1)))\n(print! i)\n"
POLICY = """
[profile]
loop_threshold = 20
[[rule]]
name = "counted"
backends = [{ name = "llvm", background = false }]
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "p.skiff"
    path.write_text(LOOP)
    return path


@pytest.fixture
def policy(tmp_path: Path) -> Path:
    path = tmp_path / "hot.toml"
    path.write_text(POLICY)
    return path


def test_a_policy_runs_the_program(program: Path, policy: Path) -> None:
    code, out, err = ferry("run", program, "--policy", policy, "--stats", "-")
    assert (code, err) == (0, "")
    output, _, stats = out.partition("\n")
    assert output == "1000"
    assert json.loads(stats)["backend"] == "mixed"


def test_explain_prints_every_region_and_the_totals(program: Path, policy: Path) -> None:
    code, out, err = ferry("explain", program, "--policy", policy, "--count")
    assert (code, err) == (0, "1000\n")
    lines = out.splitlines()
    assert lines[0] == f"main/loop.1, pc 7 ({program}:2:11): installed"
    assert lines[1] == "    why       reached 20 times"
    assert lines[2] == "    rules     rule 1 'counted': it takes everything"
    assert lines[3].startswith(("    llvm      compiled in ", "    llvm      from the cache in "))
    assert lines[4].startswith("              entered once, ")
    assert lines[4].endswith(" ms in its code, 7852 instructions")
    table = [line.split() for line in lines[5:-1]]
    assert table[0] == ["backend", "entries", "time", "of", "time", "instructions", "of", "them"]
    assert [row[0] for row in table[1:]] == ["llvm", "threaded", "the"]
    assert table[1][-2] == "7852"
    assert lines[-1].startswith("halt; ")


def test_rules_say_which_region_they_are_about_where_there_are_several(tmp_path: Path) -> None:
    path, policy = tmp_path / "n.skiff", tmp_path / "none.toml"
    path.write_text(
        "(define n 0)\n(define i 0)\n(while (< i 9)\n  (set! i (+ i 1))\n  (define j 0)\n"
        "  (while (< j 9)\n    (set! n (+ n 1))\n    (set! j (+ j 1))))\n(print! n)\n"
    )
    policy.write_text(
        "[profile]\nloop_threshold = 20\n"
        "[[rule]]\nname = 'none'\nwhen = { not = { kind = 'scope' } }\naction = 'interpret'\n"
        "[[rule]]\nbackends = [{ name = 'llvm', background = false }]\n"
    )
    code, out, err = ferry("explain", path, "--policy", policy)
    assert (code, err) == (0, "81\n")
    said = 'rule 1 \'none\': no exception: kind is "{}", wanted "scope" (about main/{})'
    assert out.splitlines()[1:4] == [
        "    why       reached 20 times",
        f"    rules     {said.format('nest', 'nest.1')}",
        f"              {said.format('loop', 'loop.1.1')}",
    ]


def test_rules_that_say_the_same_again_are_a_line(program: Path, tmp_path: Path) -> None:
    policy = tmp_path / "later.toml"
    policy.write_text(POLICY.replace("background", "threshold = 100, background"))
    code, out, _ = ferry("explain", program, "--policy", policy)
    assert code == 0
    lines = out.splitlines()
    assert lines[1:4] == [
        "    why       reached 100 times",
        "    rules     rule 1 'counted': it takes everything, asked 2 times",
        "    llvm      not asked: its threshold is 100",
    ]


def test_explain_as_json_is_one_document(program: Path, policy: Path) -> None:
    code, out, err = ferry("explain", program, "--policy", policy, "--json")
    assert (code, err) == (0, "1000\n")
    document = json.loads(out)
    assert (document["status"], document["instructions"]) == ("halt", None)
    (region,) = document["regions"]
    assert region["considered"] == [
        {"region": "main/loop.1", "decision": "rule 1 'counted': it takes everything", "passed": []}
    ]
    assert [share["backend"] for share in document["shares"]] == ["llvm", "threaded"]


def test_explain_without_a_policy_is_about_the_default_one(program: Path) -> None:
    code, out, _ = ferry("explain", program)
    assert code == 0
    assert out.startswith(
        "nothing was compiled: no place got hot\nnot hot\n    main/loop.1, pc 7 ("
    )
    assert "reached 1001 of 100000 times" in out


def test_explain_of_an_interpreter_alone_says_so(program: Path) -> None:
    code, out, _ = ferry("explain", program, "--backend", "switch")
    assert code == 0
    assert out.startswith("nothing was compiled: backend 'switch' runs alone\n")


def test_explain_of_a_program_that_traps_prints_the_report_too(
    tmp_path: Path, policy: Path
) -> None:
    path = tmp_path / "t.skiff"
    path.write_text(LOOP + "(/ 1 (- i 1000))\n")
    code, out, err = ferry("explain", path, "--policy", policy)
    assert code == 1
    assert "main/loop.1" in out
    assert out.splitlines()[-1].startswith("trap; ")
    assert err.startswith(f"1000\nferry: {path}:5:1: trap: integer division by zero")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--policy", "{policy}", "--backend", "llvm"), "--backend and --policy: one of them"),
        (("--policy", "{folder}/none.toml"), "none.toml: cannot be read: No such file"),
        (("--policy", "{bad}"), "bad.toml:2:13: rule[1].backends[1]"),
        (("--backend", "lvm"), "no backend 'lvm'; did you mean 'llvm'?"),
    ],
)
@pytest.mark.parametrize("command", ["run", "explain"])
def test_a_policy_that_cannot_be_used_is_one_line(
    program: Path, policy: Path, command: str, arguments: tuple[str, ...], message: str
) -> None:
    bad = program.parent / "bad.toml"
    bad.write_text('[[rule]]\nbackends = ["llvn"]\n')
    filled = [one.format(policy=policy, folder=program.parent, bad=bad) for one in arguments]
    code, out, err = ferry(command, program, *filled)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


# --- the trace ------------------------------------------------------------------------------


def test_a_trace_is_written(program: Path, policy: Path, tmp_path: Path) -> None:
    trace = tmp_path / "trace.json"
    assert ferry("run", program, "--policy", policy, "--trace", trace) == (0, "1000\n", "")
    found = {event.get("cat") for event in json.loads(trace.read_text())}
    assert found == {None, "compilation", "entry", "placement", "transfer"}


def test_a_trace_is_written_when_the_program_traps(tmp_path: Path, policy: Path) -> None:
    path, trace = tmp_path / "t.skiff", tmp_path / "trace.json"
    path.write_text(LOOP + "(/ 1 0)\n")
    code, out, _ = ferry("run", path, "--policy", policy, "--trace", trace)
    assert (code, out) == (1, "1000\n")
    assert json.loads(trace.read_text())[-1]["args"]["status"] == "TRAP"


def test_a_trace_is_written_when_the_program_is_interrupted(tmp_path: Path) -> None:
    path, trace = tmp_path / "spin.skiff", tmp_path / "trace.json"
    path.write_text("(define n 0)\n(print! 1)\n(while #t\n  (set! n (+ n 1)))\n")
    command = [sys.executable, "-c", TAKING_SIGINT, "run", str(path), "--trace", str(trace)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=os.environ
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "1\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "interrupted" in err
    statuses = [
        event["args"]["status"]
        for event in json.loads(trace.read_text())
        if event.get("cat") == "entry"
    ]
    assert statuses[-1] == "INTERRUPTED"


@pytest.mark.parametrize("name", ["p.skiff", "none/trace.json", "."])
def test_a_trace_that_cannot_be_written_is_one_line_before_anything_runs(
    program: Path, tmp_path: Path, name: str
) -> None:
    code, out, err = ferry("run", program, "--trace", tmp_path / name)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert program.read_text() == LOOP


def test_a_shadow_is_explained_and_compared_with(program: Path, tmp_path: Path) -> None:
    policy = tmp_path / "paranoid.toml"
    policy.write_text(f"[shadow]\nagainst = 'switch'\n{POLICY}")
    code, out, err = ferry("explain", program, "--policy", policy)
    assert (code, err) == (0, "1000\n")
    lines = out.splitlines()
    assert "    shadow    compared once" in lines
    assert lines[4].endswith(" ms in its code, 7852 instructions")  # code that counts is run anyway
    name, entries, *_ = lines[-3].rsplit(maxsplit=4)
    assert (name.split(), entries) == (["switch", "(shadow)"], "1")
    code, out, err = ferry("run", program, "--policy", policy)
    assert (code, out, err) == (0, "1000\n", "")


def test_a_shadow_that_cannot_be_is_one_line(program: Path, tmp_path: Path) -> None:
    policy = tmp_path / "paranoid.toml"
    policy.write_text("shadow.against = 'llvm'")
    code, out, err = ferry("run", program, "--policy", policy)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "llvm" in err


def test_the_seconds_of_compilers_are_told(program: Path, policy: Path) -> None:
    code, out, _ = ferry("run", program, "--policy", policy, "--stats", "-")
    assert code == 0
    assert json.loads(out.partition("\n")[2])["seconds"]["compile"] > 0
