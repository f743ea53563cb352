# SPDX-License-Identifier: Apache-2.0
"""The `ferry` command as a user meets it: what goes where, and how it ends."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from ferryvm.isa import INSTRUCTIONS

from ..command import ferry

ROOT = Path(__file__).parents[2]
FIB = (
    "(define (fib n) (if (< n 2) n (+ (fib (- n 1)) (fib (- n 2)))))\n(print! (fib 20))\n(fib 9)\n"
)
SPIN = "(define n 0)\n(print! 1)\n(while #t\n  (set! n (+ n 1)))\n"


TAKING_SIGINT = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from ferryvm.cli import main
main()
"""
"""A command that does not inherit an ignored SIGINT, as from a shell's background."""


@pytest.fixture
def fib(tmp_path: Path) -> Path:
    path = tmp_path / "fib.skiff"
    path.write_text(FIB)
    return path


@pytest.mark.rotate("backend", most=2)
def test_run_prints_the_program_s_output_and_nothing_else(fib: Path, backend: str) -> None:
    assert ferry("run", fib, "--backend", backend) == (0, "6765\n", "")


def test_stats_to_stdout(fib: Path) -> None:
    code, out, err = ferry("run", fib, "--stats", "-", "--count", "--backend", "switch")
    assert (code, err) == (0, "")
    output, _, metrics = out.partition("\n")
    assert output == "6765"
    stats = json.loads(metrics)
    assert (stats["backend"], stats["status"], stats["result"]) == ("switch", "halt", 34)
    assert (stats["result_type"], stats["result_bits"]) == ("i64", "0x22")
    assert set(stats["seconds"]) == {"load", "prepare", "run", "compile"}
    assert all(stats["seconds"][name] > 0 for name in ("load", "prepare", "run"))
    assert stats["instructions"] > 10_000


def test_stats_without_count_have_no_instructions(fib: Path, tmp_path: Path) -> None:
    assert ferry("run", fib, "--stats", tmp_path / "s.json")[0] == 0
    assert json.loads((tmp_path / "s.json").read_text())["instructions"] is None


@pytest.mark.parametrize(("text", "result"), [("(/ 0.0 0.0)", "nan"), ("(/ -1.0 0.0)", "-inf")])
def test_stats_hold_numbers_that_json_has_not_as_text(
    tmp_path: Path, text: str, result: str
) -> None:
    (tmp_path / "p.skiff").write_text(text)
    code, out, _ = ferry("run", tmp_path / "p.skiff", "--stats", "-")
    assert code == 0
    assert json.loads(out)["result"] == result


def test_fuel_save_and_resume_on_other_backends(fib: Path, tmp_path: Path) -> None:
    saved = tmp_path / "s.ferry"
    code, out, err = ferry("run", fib, "--fuel", 1000, "--save", saved, "--backend", "reference")
    assert (code, out) == (0, "")
    assert f"{fib}:1:" in err
    assert "out of fuel after 1000 instructions" in err
    assert f"state saved in {saved}" in err
    again = tmp_path / "t.ferry"
    code, out, _ = ferry(
        "resume", saved, "--backend", "switch", "--fuel", 5000, "--save", again, "--stats", "-"
    )
    assert code == 0
    assert json.loads(out)["instructions"] == 6000
    assert json.loads(out)["status"] == "fuel"
    assert ferry("resume", again, "--backend", "threaded") == (0, "6765\n", "")


@pytest.mark.rotate("backend", most=2)
def test_trap_shows_source_line_and_calls(tmp_path: Path, backend: str) -> None:
    path = tmp_path / "t.skiff"
    path.write_text("(print! 7)\n(define (f x)\n  (/ 1 x))\n(define (g y) (+ 1 (f y)))\n(g 0)\n")
    code, out, err = ferry("run", path, "--backend", backend, "--stats", tmp_path / "s.json")
    assert (code, out) == (1, "7\n")
    lines = err.splitlines()
    assert lines[0] == f"ferry: {path}:3:3: trap: integer division by zero"
    assert lines[1:3] == ["      (/ 1 x))", "      ^"]
    assert [line.split()[1] for line in lines[3:]] == ["f", "g", "main"]
    assert json.loads((tmp_path / "s.json").read_text())["trap"] == "INTEGER_DIVIDE_BY_ZERO"


def test_trap_of_an_image_whose_source_is_gone_shows_the_place_alone(tmp_path: Path) -> None:
    source = tmp_path / "t.skiff"
    source.write_text("(/ 1 0)")
    assert ferry("compile", source)[0] == 0
    source.unlink()
    code, _, err = ferry("run", tmp_path / "t.fvm")
    assert code == 1
    assert err.splitlines() == [
        f"ferry: {source}:1:1: trap: integer division by zero",
        f"    in main at {source}:1:1",
    ]


def test_assembling_a_disassembly_gives_the_same_bytes(fib: Path, tmp_path: Path) -> None:
    image, text, again = tmp_path / "a.fvm", tmp_path / "b.fasm", tmp_path / "c.fvm"
    assert ferry("compile", fib, "-o", image) == (0, "", "")
    code, out, _ = ferry("dis", image)
    text.write_text(out)
    assert code == 0
    assert ferry("asm", text, "-o", again) == (0, "", "")
    assert image.read_bytes() == again.read_bytes()
    assert ferry("run", again) == (0, "6765\n", "")
    assert ferry("verify", image, again, fib) == (0, "", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("run", "missing.skiff"), "missing.skiff: cannot be read: No such file or directory"),
        (
            ("run", "."),
            "'.' is a folder; a file is expected",
        ),
        (("run", "ok.skiff", "--backend", "thread"), "no backend 'thread'; did you mean"),
        (("run", "ok.skiff", "--fuel", "-1"), "-1 is not in the range 0<=x<="),
        (("run", "ok.skiff", "--heap-limit", "4X"), "'4X' is no size such as 65536, 64K"),
        (("run", "ok.skiff", "--stats", "no/s.json"), "no/s.json: cannot be written: No such"),
        (("run", "binary.skiff"), "binary.skiff: not UTF-8 text (byte 0)"),
        (("run", "text.fvm"), "text.fvm: not a ferryvm program image (.fvm)"),
        (("run", "faulty.skiff"), "faulty.skiff:1:2: no function 'pront!'"),
        (("run", "faulty.fasm"), "faulty.fasm:2:1: no instruction 'i64.ad'"),
        (("run", "unverifiable.fasm"), "V30 at pc 0 (unverifiable.fasm:2:1): i64.add: operand"),
        (("run", "empty.fasm"), "empty.fasm"),
        (("run", "host.fasm"), "host.fasm:3:1: no host function 'nosuch'"),
        (("run", "ok.skiff", "--stats", "ok.skiff"), "ok.skiff: is the input; name another file"),
        (("run", "ok.skiff", "--save", "./ok.skiff"), "ok.skiff: is the input; name another file"),
        (("compile", "ok.skiff", "-o", "ok.skiff"), "ok.skiff: is the input; name another file"),
        (("resume", "ok.skiff"), "ok.skiff: is a program, no saved state; `ferry run` starts it"),
        (
            ("asm", "ok.skiff"),
            "ok.skiff: a .fasm file expected; `ferry compile` takes other languages",
        ),
        (("compile", "ok.skiff", "-o", "no/x.fvm"), "no/x.fvm: cannot be written: No such file"),
        (("isa", "i64.ad"), "no instruction 'i64.ad'; did you mean 'i64.and'?"),
        (("run", "ok.skiff", "--fuel", str(1 << 63)), "is not in the range 0<=x<="),
        (("run", "ok.skiff", "--stack-limit", "8"), "a stack has at least 1024"),
        (("run", "ok.skiff", "--fuel", "1", "--save", "no/s.ferry"), "no/s.ferry: cannot be"),
        (("rum", "ok.skiff"), "No such command 'rum'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "ok.skiff").write_text("(print! 1)")
    (tmp_path / "binary.skiff").write_bytes(b"\xff\xfe")
    (tmp_path / "text.fvm").write_text("hello")
    (tmp_path / "faulty.skiff").write_text("(pront! 1)")
    (tmp_path / "faulty.fasm").write_text(".function main\ni64.ad\nhalt\n")
    (tmp_path / "unverifiable.fasm").write_text(".function main\ni64.add\nhalt\n")
    (tmp_path / "empty.fasm").write_text("")
    (tmp_path / "host.fasm").write_text(".host nosuch\n.function main\nhost nosuch\nhalt\n")
    code, out, err = ferry(*arguments, cwd=tmp_path)
    assert (code, out) == (2, "")
    assert message in err
    assert err.startswith("ferry: ")
    assert len([line for line in err.splitlines() if not line.startswith("    ")]) == 1


def test_a_file_that_is_not_written_keeps_its_content(tmp_path: Path) -> None:
    (tmp_path / "bad.skiff").write_text("(oops)")
    (tmp_path / "out.fvm").write_bytes(b"precious")
    assert ferry("compile", "bad.skiff", "-o", "out.fvm", cwd=tmp_path)[0] == 2
    assert (tmp_path / "out.fvm").read_bytes() == b"precious"


def test_figures_of_an_earlier_run_stay_when_a_run_cannot_start(tmp_path: Path) -> None:
    (tmp_path / "s.json").write_text("{}")
    assert ferry("run", "missing.skiff", "--stats", "s.json", cwd=tmp_path)[0] == 2
    assert (tmp_path / "s.json").read_text() == "{}"


@pytest.mark.parametrize("command", ["run {} > /dev/full", "isa > /dev/full", "run {} >&-"])
def test_output_that_cannot_be_written_is_one_line(fib: Path, command: str) -> None:
    shell = f"{sys.executable} -m ferryvm.cli {command.format(fib)}"
    done = subprocess.run(
        shell, check=False, shell=True, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
    assert "output cannot be written" in done.stderr


def test_verify_reports_every_file(tmp_path: Path) -> None:
    (tmp_path / "a.fasm").write_text(".function main\ni64.add\nhalt\n")
    (tmp_path / "b.fasm").write_text(".function main\nnop\n")
    code, out, err = ferry("verify", "a.fasm", "b.fasm", cwd=tmp_path)
    assert (code, out) == (2, "")
    assert "a.fasm: V30" in err
    assert "b.fasm: V20" in err


def test_empty_program_runs(tmp_path: Path) -> None:
    (tmp_path / "empty.skiff").write_text("")
    assert ferry("run", tmp_path / "empty.skiff") == (0, "", "")


def test_closed_output_is_no_traceback(tmp_path: Path) -> None:
    path = tmp_path / "p.skiff"
    path.write_text("(define i 0)\n(while (< i 100000) (print! i) (set! i (+ i 1)))")
    command = f"{sys.executable} -m ferryvm.cli run {path} | head -1"
    done = subprocess.run(
        command, check=False, shell=True, capture_output=True, text=True, timeout=120
    )
    assert (done.stdout, done.stderr) == ("0\n", "")


def test_text_with_a_byte_order_mark_is_read(tmp_path: Path) -> None:
    (tmp_path / "p.skiff").write_bytes(b"\xef\xbb\xbf(print! 1)\r\n")
    assert ferry("run", tmp_path / "p.skiff") == (0, "1\n", "")


def test_a_flood_of_faults_is_cut(tmp_path: Path) -> None:
    (tmp_path / "p.skiff").write_text("x " * 5000 + "\n" + ")" * 5000)
    code, _, err = ferry("run", tmp_path / "p.skiff")
    assert code == 2
    assert len(err) < 20_000
    assert "more" in err.splitlines()[-1]


@pytest.mark.rotate("backend", most=1)
def test_ctrl_c_stops_a_loop_says_where_and_saves(tmp_path: Path, backend: str) -> None:
    path, saved = tmp_path / "spin.skiff", tmp_path / "s.ferry"
    path.write_text(SPIN)
    arguments = ["run", str(path), "--backend", backend, "--save", str(saved)]
    process = subprocess.Popen(
        [sys.executable, "-c", TAKING_SIGINT, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "1\n"  # it runs
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130
    lines = err.splitlines()
    assert lines[0] == f"ferry: state saved in {saved}"
    assert lines[1].startswith(f"ferry: {path}:")
    assert lines[1].endswith("interrupted")
    assert lines[4].startswith("    in main at ")
    code, out, err = ferry("resume", saved, "--fuel", 1000, "--stats", "-")
    assert (code, json.loads(out)["status"]) == (0, "fuel")


def test_backends_lists_name_version_and_state() -> None:
    code, out, _ = ferry("backends")
    assert code == 0
    rows = {line.split()[0]: line.split() for line in out.splitlines()[1:]}
    assert set(rows) >= {"reference", "switch", "threaded"}
    assert all(rows[name][-1] == "usable" for name in ("reference", "switch", "threaded"))


def test_diff_reports_agreement_program_by_program(fib: Path, tmp_path: Path) -> None:
    other = tmp_path / "trap.skiff"
    other.write_text("(print! 1)\n(/ 1 0)\n")
    code, out, err = ferry("diff", fib, other, "--backends", "switch,threaded")
    assert (code, err) == (0, "")
    rows = [line.split() for line in out.splitlines()[1:]]
    assert [(row[0], row[1], row[2]) for row in rows] == [
        (str(file), backend, "agree") for file in (fib, other) for backend in ("switch", "threaded")
    ]
    assert len({row[4] for row in rows[:2]}) == 1
    words = ["--backends", "switch,llvm", "--schedule", "environment"]
    code, out, err = ferry("diff", other, *words)
    assert (code, err) == (0, "")
    assert out.count(" agree ") == 1


@pytest.mark.nightly
def test_diff_moves_between_all_backends_by_default(tmp_path: Path) -> None:
    other = tmp_path / "trap.skiff"
    other.write_text("(print! 1)\n(/ 1 0)\n")
    code, out, err = ferry("diff", other, "--schedule", "every-boundary")
    assert (code, err) == (0, "")
    assert "reference, llvm, opencl, switch, threaded" in out


def test_diff_of_what_cannot_be_compared_is_one_line(fib: Path) -> None:
    assert ferry("diff", fib, "--backends", "none")[0] == 2
    assert ferry("diff", "missing.skiff")[0] == 2
    code, out, err = ferry("diff", "missing.skiff", fib, "--backends", "switch")
    assert (code, err) == (2, "ferry: missing.skiff: cannot be read: No such file or directory\n")
    assert out.splitlines()[1].split()[1:3] == ["switch", "agree"]
    code, _, err = ferry("diff", fib, "--backends", "switch", "--against", "switch")
    assert code == 2
    assert "nothing to compare with 'switch'" in err


def test_isa_lists_the_table_and_one_meaning() -> None:
    code, out, _ = ferry("isa")
    assert code == 0
    assert len(out.splitlines()) == len(INSTRUCTIONS)
    _, out, _ = ferry("isa", "i64.div_s")
    assert "trap INTEGER_DIVIDE_BY_ZERO if (b == 0)" in out


def test_repl_keeps_definitions_across_inputs_and_faults() -> None:
    given = """\
(define x 4)
(define (f y)
  (* x y))
(f 5)
(f)
(set! x 7)
(/ 1 0)
:backend reference
(f 6)
:backend none
(print! "text")
:quit
(never reached)
"""
    code, out, err = ferry("repl", given=given)
    assert code == 2
    assert out == "=> 20\n=> 42\ntext\n"
    assert "integer division by zero" in err
    assert "no backend 'none'" in err
    assert "never" not in err


def test_repl_runs_on_the_default_policy_and_goes_back_to_it() -> None:
    given = "(define x 4)\n:backend\n:backend switch\n:backend\n:backend mixed\n:backend\nx\n"
    code, out, err = ferry("repl", given=given)
    assert (code, err) == (0, "")
    shown = [line.partition(" ")[0] for line in out.splitlines()]
    assert shown == ["mixed", "switch", "mixed", "=>"]
    assert out.startswith("mixed (of llvm, opencl, reference, switch, threaded, vliw, mixed)\n")
    assert out.endswith("=> 4\n")


def test_repl_without_a_fault_ends_well() -> None:
    assert ferry("repl", given="(print! 1)\n(+ 1\n 2)\n") == (0, "1\n=> 3\n", "")


def test_metrics_show_a_result_that_is_a_reference(tmp_path: Path) -> None:
    path = tmp_path / "p.skiff"
    path.write_text("(define-struct point (x i64)) (make-point 3)")
    done = ferry("run", "--backend", "switch", "--stats", "-", str(path))
    stats = json.loads(done.out)
    found = stats["result"], stats["result_type"], stats["result_bits"]
    assert found == ("<point x=3>", "point", None)


def test_repl_shows_structs_arrays_strings_and_null() -> None:
    given = """(define-struct point (x f64) (next point))
(define p (make-point 1.5 null))
(set-point-next! p p)
p
(array i32 1 2 3)
"text"
null
"""
    lines = ("<point x=1.5 next=<point ...>>", "<i32[] of 3: 1, 2, 3>", '"text"', "null")
    done = ferry("repl", "--backend", "switch", given=given)
    assert done == (0, "".join(f"=> {line}\n" for line in lines), "")


def test_repl_reports_an_input_that_never_ends() -> None:
    code, out, err = ferry("repl", given="(define x\n")
    assert (code, out) == (2, "")
    assert "1:1" in err


@pytest.mark.parametrize("command", ["explain", "diff --backends switch", "repl --backend switch"])
def test_limits_are_options_of_commands_that_run_programs(command: str, tmp_path: Path) -> None:
    path, text = tmp_path / "p.skiff", "(define v (make-array i64 100000))\n(array-length v)\n"
    path.write_text(text)
    words = [*command.split(), "--object-limit", "64K", "--heap-limit", "64K"]
    is_repl = words[0] == "repl"
    done = ferry(*words, *([] if is_repl else [str(path)]), given=text if is_repl else "")
    if words[0] == "diff":
        assert done.code == 0
        assert "agree" in done.out
    else:
        assert done.code == (2 if is_repl else 1)
        assert "heap exhausted: " in done.out + done.err
