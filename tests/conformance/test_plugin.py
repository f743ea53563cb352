# SPDX-License-Identifier: Apache-2.0
"""The pytest plugin: one line in an author's file, and what it then reports."""

from __future__ import annotations

import subprocess
import sys

import pytest

import ferryvm.testing.conformance
from ferryvm.testing.conformance import suite
from ferryvm.testing.conformance.suite import checks, items

from ..tier import nightly

pytest_plugins = ["pytester"]

OUTSIDE = """
    from ferryvm.backend import Artifact, Capabilities, Interpreter
    from ferryvm.registry import Registry
    from ferryvm.testing.conformance import *

    class Mine(Interpreter):
        name = "mine"
        version = "1"
        capabilities = Capabilities(fuel=False)

        def accepts(self, program):
            return "too many statics" if len(program.program.statics) > 1 else None

        def prepare(self, program):
            real = Registry().get("reference").prepare(program)

            class MineArtifact(Artifact):
                def enter(self, machine, counting):
                    status = real.enter(machine, counting)
                    if status.name == "TRAP":
                        machine.control.sp -= 1
                    return status

            return MineArtifact()

    BACKEND = Mine()
"""


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    # Other tests may have imported Hypothesis, whose plugin pytest would rewrite.
    allowed = "ignore:Module already imported so cannot be rewritten"
    options = ("-p", "no:cacheprovider", "-W", "error", "-W", allowed)
    return pytester.runpytest_inprocess(*options, *arguments)


@pytest.mark.nightly
def test_one_line_and_a_name_are_the_whole_suite(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        'from ferryvm.testing.conformance import *\nBACKEND = "switch"\ndef test_mine(): pass\n'
    )
    result = run(pytester, "-k", "fuel/straight or test_mine", "-v")
    result.assert_outcomes(passed=5)
    result.stdout.fnmatch_lines(["*::test_conformance[[]fuel/straight/cuts[]] PASSED*"])


@pytest.mark.nightly
def test_backend_may_be_named_on_the_command_line_and_be_several(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("from ferryvm.testing.conformance import *\n")
    names = ("--ferry-backend", "switch", "--ferry-backend", "reference")
    result = run(pytester, *names, "-k", "value/nan/plain", "-v")
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(
        [
            "*test_conformance[[]switch:value/nan/plain[]] PASSED*",
            "*test_conformance[[]reference:value/nan/plain[]] PASSED*",
        ]
    )


@pytest.mark.nightly
def test_backend_on_the_command_line_goes_before_the_module_s(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(OUTSIDE)
    result = run(pytester, "--ferry-backend", "switch", "-k", "trap/in-main-divide")
    result.assert_outcomes(passed=3)


@pytest.mark.nightly
def test_backend_that_refuses_every_case_is_not_green(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    checks()  # all of them, though only a few are asked for by the first one
    few = tuple(item for item in items() if item.group == "host")
    monkeypatch.setattr(suite, "items", lambda: few)
    text = OUTSIDE.replace(
        '"too many statics" if len(program.program.statics) > 1 else None', '"no"'
    )
    pytester.makepyfile(text)
    result = run(pytester, "-k", "backend/accepts or trap/in-main-divide/plain")
    result.assert_outcomes(failed=1, skipped=1)
    result.stdout.fnmatch_lines(["backend 'mine': it takes no case at all", "  * times: no"])


def test_what_a_backend_raises_is_a_failure_with_its_place(pytester: pytest.Pytester) -> None:
    text = OUTSIDE.replace("machine.control.sp -= 1", "raise SystemExit('out')")
    path = pytester.makepyfile(text)
    result = run(pytester, "-k", "trap/in-main-divide/plain or value/operands/plain")
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines(
        ["    found:    raises SystemExit: out", f"              at {path}:*, enter"]
    )


@pytest.mark.nightly
def test_entry_of_several_cases_is_stale_when_all_pass(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        OUTSIDE
        + """
    XFAIL = {"trap/*-divide*": "pops too much", "value/operands": "it is said"}
"""
    )
    result = run(pytester, "-rf", "-k", "in-main-divide/plain or operands/")
    outcomes = result.parseoutcomes()
    assert (outcomes["xfailed"], outcomes["failed"]) == (1, 1)
    result.stdout.fnmatch_lines(
        ["backend 'mine': none of the * items of 'value/operands' fails, but they are expected *"]
    )


def test_failure_is_a_few_lines_without_a_traceback(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(OUTSIDE)
    result = run(pytester, "-k", "trap/in-main-divide", "-rs")
    result.assert_outcomes(failed=1, skipped=2)
    result.stdout.fnmatch_lines(
        [
            "backend 'mine': trap/in-main-divide, step 1:",
            "  sp",
            "    expected: 5",
            "    found:    4",
            "SKIPPED*backend 'mine': skipped: it does not count instructions",
        ]
    )
    assert "Traceback" not in result.stdout.str()


def test_refused_program_is_a_skip_with_the_backend_s_reason(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(OUTSIDE)
    result = run(pytester, "-k", "value/nan/plain", "-rs")
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED*backend 'mine': refused: too many statics"])


@pytest.mark.nightly
def test_expected_failures_come_from_the_module_and_from_a_file(pytester: pytest.Pytester) -> None:
    pytester.makefile(".toml", known='[xfail]\n"trap/in-main-overflow/plain" = "pops too much"\n')
    pytester.makepyfile(
        OUTSIDE
        + """
    XFAIL = {
        "trap/in-main-divide/plain": "pops too much",
        "value/operands/plain": "it is said",
    }
    XFAIL_FILE = "known.toml"
"""
    )
    result = run(
        pytester, "-rx", "-k", "in-main-divide/plain or in-main-overflow/plain or operands/plain"
    )
    result.assert_outcomes(xfailed=2, failed=1)
    result.stdout.fnmatch_lines(
        ["backend 'mine': passes, but is expected to fail (it is said): take it out of the table"]
    )
    result.stdout.fnmatch_lines(["XFAIL*in-main-divide/plain* pops too much*"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "*no backend is named: set BACKEND in the module, or pass --ferry-backend NAME"),
        ('BACKEND = "swich"', "*no backend 'swich'; did you mean 'switch'*"),
        (
            'BACKEND = "switch"\nXFAIL = {"fuel/lop/cuts": "x"}',
            "*no case in XFAIL 'fuel/lop/cuts'; did you mean 'fuel/loop/cuts'*",
        ),
        (
            'BACKEND = "switch"\nGOLDEN = {"switch": "some"}',
            "*GOLDEN is 'some' (allowed: each, rotated, together)",
        ),
        nightly(
            ('BACKEND = "switch"\nXFAIL = ["fuel"]', "*XFAIL is not a dictionary from cases to *")
        ),
        nightly(
            ('BACKEND = "switch"\nXFAIL_FILE = "x.toml"', "*x.toml: cannot be read: No such file*")
        ),
    ],
)
def test_what_cannot_be_run_is_one_line_at_collection(
    pytester: pytest.Pytester, text: str, message: str
) -> None:
    pytester.makepyfile(f"from ferryvm.testing.conformance import *\n{text}\n")
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines([message])
    assert "Traceback" not in result.stdout.str()
    assert "During handling" not in result.stdout.str()


def test_backend_that_does_not_load_is_one_line(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A distribution with a broken plugin, as pip would install it."""
    folder = pytester.mkdir("site")
    (folder / "broken_plugin.py").write_text(
        "from ferryvm.hooks import BackendEntry, hookimpl\n"
        "@hookimpl\n"
        "def ferryvm_backends():\n"
        "    return [BackendEntry('broken', lambda: __import__('no_such_driver'))]\n"
    )
    info = folder / "broken-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: broken\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[ferryvm]\nbroken = broken_plugin\n")
    monkeypatch.syspath_prepend(folder)
    pytester.makepyfile('from ferryvm.testing.conformance import *\nBACKEND = "broken"\n')
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(
        ["backend 'broken' of broken:broken does not load: ModuleNotFoundError: No module named *"]
    )


def test_fixture_gives_anyone_s_tests_the_name(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import ferryvm

        def test_sum(ferry_backend):
            program = ferryvm.compile("(+ 1 2)")
            assert ferryvm.run(program, ferry_backend).value == 3
        """
    )
    names = ("--ferry-backend", "switch", "--ferry-backend", "reference")
    result = run(pytester, "-v", *names)
    result.assert_outcomes(passed=2)
    result.stdout.fnmatch_lines(["*test_sum[[]switch[]] PASSED*"])
    run(pytester).assert_outcomes(errors=1)


def test_star_import_brings_the_test_and_nothing_else() -> None:
    assert ferryvm.testing.conformance.__all__ == ["test_conformance"]


def test_plugin_and_suite_load_next_to_nothing_before_they_are_used() -> None:
    text = (
        "import sys, pytest, ferryvm.testing.pytest_plugin, ferryvm.testing.conformance\n"
        "print(*(name for name in sys.modules if name.split('.')[0] in ('numpy', 'ferryvm')))"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.split() == [
        "ferryvm",
        "ferryvm.testing",
        "ferryvm.testing.pytest_plugin",
        "ferryvm.testing.conformance",
    ]


def test_names_of_the_package_are_there_when_they_are_asked_for() -> None:
    for name in ferryvm.testing.__all__:
        assert getattr(ferryvm.testing, name).__name__ == name
    with pytest.raises(AttributeError, match="has no attribute 'Difer'"):
        _ = ferryvm.testing.Difer  # type: ignore[attr-defined] # the fault to be found
