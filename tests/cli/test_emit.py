# SPDX-License-Identifier: Apache-2.0
"""`ferry compile --regions` and `--emit` show what compilers are given and what they make of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from ferryvm.cli.command import ferry
from ferryvm.errors import FerryError
from ferryvm.ir.parse import parse_module

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FIB = str(EXAMPLES / "fib.skiff")


def show(*arguments: str) -> Result:
    return CliRunner().invoke(ferry, ["compile", *arguments])


def printed(*arguments: str) -> str:
    result = show(*arguments)
    assert result.exit_code == 0, result.exception or result.output
    return result.output


def refused(*arguments: str) -> str:
    """The message of an error; nothing is printed on standard output."""
    result = show(*arguments)
    assert result.exit_code
    if isinstance(result.exception, FerryError):
        assert not result.output
        return str(result.exception)
    return result.output.splitlines()[-1]


def test_regions_are_listed_with_kind_entry_and_size() -> None:
    lines = printed(FIB, "--regions").splitlines()
    assert [line.split()[0] for line in lines] == [
        "program",
        "main",
        "fib",
        "fib-by-loop",
        "fib-by-loop/loop.1",
    ]
    assert lines[-1].split()[1:4] == ["loop", "pc", "43"]
    assert lines[-1].endswith("fib.skiff:12:13")


@pytest.mark.parametrize("file", ["fib.skiff", "factorial.fasm"])
def test_the_ir_of_the_whole_program_is_shown_unless_a_region_is_named(file: str) -> None:
    module = parse_module(printed(str(EXAMPLES / file), "--emit", "ir"))
    assert module.name == "program"
    assert len(module.functions) >= 1


def test_the_ir_of_a_region_is_that_of_the_level() -> None:
    words = str(EXAMPLES / "words.skiff")
    arguments = (words, "--emit", "ir", "--region", "program", "--optimize")
    texts = [printed(*arguments, level) for level in ("0", "1", "2")]
    assert len(texts[1].splitlines()) < len(texts[0].splitlines())
    assert ["\nunchecked." in text for text in texts] == [False, False, True]


def test_the_ir_of_a_compiler_is_what_it_asks_for(tmp_path: Path) -> None:
    file = tmp_path / "thrown.skiff"
    text = "(define (f x) (throw x)) (define (g x) (try (f x) (catch (e) e))) (print! (g 3))"
    file.write_text(text, encoding="utf-8")
    texts = [
        printed(str(file), "--emit", "ir", "--region", "g", *backend)
        for backend in ((), ("--backend", "llvm"), ("--backend", "vliw"))
    ]
    assert [" = caught (" in each for each in texts] == [False, True, False]


def test_the_ir_of_a_launch_has_its_lanes_or_the_reason_that_it_has_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ferryvm_backends.llvm.build.vector_bits", lambda: 512)
    file, region = tmp_path / "launch.skiff", ("--region", "main/launch.1")
    text = "(define s 0) (define (item i a) {}) (for-each-item 9 (item (make-array i64 9)))"
    shown = []
    for item in ("(if (> (% i 5) 3) (array-set! a i 1) (array-set! a (% i 3) 2))", "(set! s i)"):
        file.write_text(text.format(item), encoding="utf-8")
        shown.append(printed(str(file), "--emit", "ir", "--backend", "llvm", *region))
        parse_module(shown[-1])
    assert "\nlanes item function=" in shown[0]
    assert "; not in lanes: " not in shown[0]
    assert "; not in lanes: its items write statics" in shown[1]


@pytest.mark.parametrize(
    ("stage", "text"), [("llvm", "define"), ("optimized", "define"), ("asm", "region:")]
)
def test_stages_of_the_compiler_are_shown(stage: str, text: str) -> None:
    assert text in printed(FIB, "--emit", stage, "--region", "fib-by-loop/loop.1")


def test_the_peephole_runs_over_assembly_only_if_asked_for() -> None:
    file = str(EXAMPLES / "factorial.fasm")
    lengths = [
        int(printed(file, "--regions", *option).split(" instructions")[0].split()[-1])
        for option in ((), ("--no-peephole",), ("--peephole",))
    ]
    assert lengths[0] == lengths[1] > lengths[2]


FAULTS = {
    ("--emit", "ll"): "no stage 'll'; did you mean 'llvm'?",
    ("--emit", "opencll"): "no stage 'opencll'; did you mean 'opencl'?",
    ("--emit", "opencl", "--backend", "llvm"): "no stage of backend 'llvm' 'opencl' "
    "(known: asm, ir, llvm, optimized)",
    ("--emit", "asm", "--backend", "switch"): "backend 'switch' compiles nothing",
    ("--emit", "asm", "--backend", "llvn"): "no backend 'llvn'; did you mean 'llvm'?",
    ("--emit", "ir", "--region", "fob"): "no region 'fob'; did you mean 'fib'?",
    ("--region", "fib"): "--region says what --emit shows: add --emit STAGE",
    ("--backend", "llvm"): "--backend says what --emit shows",
    ("--optimize", "1"): "--optimize says what --emit shows",
    ("--regions", "-o", "x.fvm"): "--regions writes no image: leave out --output",
    ("--regions", "--emit", "ir"): "show different things: leave out one",
    ("--html", "x.html"): "--html says what --emit shows: add --emit STAGE",
    ("--emit", "ir", "--html", "x.html"): "the stage 'ir' has no picture: leave out --html",
    (
        "--emit",
        "asm",
        "--html",
        "x.html",
    ): "backend 'llvm' has no picture of 'asm'; it has: nothing",
    ("--emit", "vliw", "--html", FIB): "is the input; name another file to write",
    ("--emit", "vliw", "--html", str(EXAMPLES)): "cannot be written: Is a directory",
    ("--emit", "ir", "--optimize", "7"): "7 is not in the range 0<=x<=3",
}


@pytest.mark.parametrize("arguments", FAULTS)
def test_a_wrong_request_is_one_clear_line(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = Path(FIB).read_bytes()
    assert FAULTS[arguments] in refused(FIB, *arguments)
    assert not list(tmp_path.iterdir())
    assert Path(FIB).read_bytes() == before


def test_the_file_is_named_where_it_is_wrong() -> None:
    assert "nothing.skiff: cannot be read" in refused("nothing.skiff", "--regions")
    assert refused(FIB, "--emit", "ir", "--region", "fob").startswith(f"{FIB}: no region")


def test_a_stage_tells_which_compiler_shows_it() -> None:
    assert "__kernel" in printed(FIB, "--emit", "opencl")


def test_a_picture_is_written_and_nothing_is_printed(tmp_path: Path) -> None:
    page = tmp_path / "loop.html"
    name = "fib-by-loop/loop.1"
    assert printed(FIB, "--emit", "vliw", "--region", name, "--html", str(page)) == ""
    text = page.read_text(encoding="utf-8")
    assert f"<title>Schedule of {name} on multi16" in text
    assert f"{FIB}:12" in text
    assert list(tmp_path.iterdir()) == [page]
