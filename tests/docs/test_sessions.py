# SPDX-License-Identifier: Apache-2.0
"""Python and shell on the pages do what the pages say.

A page's `python` blocks share one namespace, in their order. A block that starts with `>>>` is a
session whose output is checked; one whose first line is `# NAME.py` is a module that later blocks
can import. In a `console` block each line after `$` is a command, what follows is all it prints,
where `...` stands for anything, times for example.
"""

from __future__ import annotations

import doctest
import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ..command import ferry
from ..tier import nightly

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
GUIDE = DOCS / "adding-an-instruction.md"  # its blocks change the sources: a test of its own
CASES = "core/ferryvm/testing/conformance/cases/instruction/integer_i64.txt"
BLOCK = re.compile(r"^```(?P<language>\w+)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
MODULE = re.compile(r"# (\w+)\.py\n")
LONG = ("docs/export.md", "docs/fuzzing.md", "docs/vliw.md", "docs/writing-a-backend.md")
"""Pages whose examples run campaigns, conformance, proofs and simulations for seconds: nightly."""
LONG_COMMANDS = ("ferry diff --schedule every-boundary",)
"""Beginnings of commands on other pages that take seconds: nightly."""

TRIES = 3
"""Runs of a command that compiles in the background, one of which has to print what is expected."""

COMMAND = re.compile(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def _blocks(page: Path, language: str) -> list[str]:
    text = page.read_text(encoding="utf-8")
    return [match["body"] for match in BLOCK.finditer(text) if match["language"] == language]


def _pages(language: str) -> list[object]:
    pages = sorted([*DOCS.glob("**/*.md"), ROOT / "README.md"])
    found = [page for page in pages if page != GUIDE and _blocks(page, language)]
    names = [str(page.relative_to(ROOT)) for page in found]
    return [
        pytest.param(page, id=name, marks=pytest.mark.nightly if name in LONG else ())
        for page, name in zip(found, names, strict=True)
    ]


@pytest.mark.parametrize("page", _pages("python"))
def test_python_on_the_page_does_what_the_page_says(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    namespace: dict[str, object] = {"__name__": "page"}
    before = set(sys.modules)
    output: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for body in _blocks(page, "python"):
        module = MODULE.match(body)
        if module:
            Path(f"{module[1]}.py").write_text(body, encoding="utf-8")
            importlib.invalidate_caches()
        else:
            assert body.startswith(">>>"), body.split("\n")[0]
            session = doctest.DocTestParser().get_doctest(body, namespace, page.name, None, 0)
            runner.run(session, out=output.append, clear_globs=False)
            namespace = session.globs
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) == str(tmp_path / f"{name}.py"):
            del sys.modules[name]
    assert not runner.failures, "".join(output)


def _run(command: list[str], folder: Path, **environment: str) -> str:
    """All that a command shows, errors included."""
    done = subprocess.run(
        command,
        cwd=folder,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    return _shown(done.stdout)


def _shown(output: str) -> str:
    """What a command prints, without notices about a first build."""
    lines = [line.rstrip() for line in output.splitlines()]
    return "".join(f"{line}\n" for line in lines if not line.startswith("ferry: building "))


def _sources(root: Path) -> str:
    return os.pathsep.join(str(root / name) for name in ("core", "backends"))


@pytest.mark.parametrize("is_long", [False, nightly(True)], ids=["short", "long"])
@pytest.mark.parametrize("page", _pages("console"))
def test_commands_on_the_page_print_what_it_says(page: Path, is_long: bool, tmp_path: Path) -> None:
    if page.name == "README.md" and page.parent == ROOT:
        (program,) = _blocks(page, "skiff")
        (tmp_path / "primes.skiff").write_text(program, encoding="utf-8")
    shutil.copytree(ROOT / "examples", tmp_path / "examples")
    commands = [
        match
        for body in _blocks(page, "console")
        for match in COMMAND.findall(body)
        if is_long or not match[0].startswith(LONG_COMMANDS)
    ]
    assert commands
    for command, expected in commands:
        name, *arguments = command.split()
        assert name == "ferry"
        printed = "".join(f"{line.rstrip()}\n" for line in expected.splitlines())
        # Where the machine is busy a program may end before its code is compiled: once more then.
        for _ in range(TRIES):
            found = _shown(ferry(*arguments, cwd=tmp_path, merged=True).out)
            same = doctest.OutputChecker().check_output(printed, found, doctest.ELLIPSIS)
            if same:
                break
        assert same, f"{command} printed\n{found}"


@pytest.mark.nightly
def test_following_the_guide_adds_an_instruction(tmp_path: Path) -> None:
    for name in ("core", "backends", "tests/conformance", "tests/double"):
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignored)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    for name in (
        "bytecode",
        "command",
        "conftest",
        "native",
        "processor_time",
        "quick",
        "tier",
        "warm",
    ):
        shutil.copy(ROOT / "tests" / f"{name}.py", tmp_path / "tests")
    declaration, try_it = _blocks(GUIDE, "python")
    golden, printed = _blocks(GUIDE, "text")
    place = re.match(r"# at the end of (\S+)\n", declaration)
    assert place
    for file, text in ((place[1], declaration), (CASES, golden)):
        with (tmp_path / file).open("a", encoding="utf-8") as stream:
            stream.write("\n" + text)
    (tmp_path / "try_it.py").write_text(try_it, encoding="utf-8")
    environment = {
        "PYTHONPATH": _sources(tmp_path),
        "FERRYVM_CACHE_DIR": str(tmp_path / "cache"),
    }
    assert _run([sys.executable, "try_it.py"], tmp_path, **environment) == printed
    wanted = "abs_checked"
    pytest_ = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-n",
        "0",
        "-p",
        "no:cacheprovider",
        "-k",
        wanted,
        "-m",
        "",  # in both tiers
    ]
    # Not on threaded, whose building takes too long here.
    chosen = ["--ferry-backend", "reference", "--ferry-backend", "switch"]
    files = [*chosen, "tests/conformance/test_backends.py"]
    report = _run([*pytest_, *files], tmp_path, **environment)
    assert re.search(r"^4 passed", report, re.MULTILINE), report
