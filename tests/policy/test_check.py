# SPDX-License-Identifier: Apache-2.0
"""Reading a policy file: every mistake in one line that says where, what, and what is allowed."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import pytest

from ferryvm import policy
from ferryvm.errors import FerryError
from ferryvm.policy.check import KnownBackends, read_text

from .sample import BACKENDS, check, faults

RULE = '[[rule]]\nbackends = ["llvm"]\n'
PROFILE = ("delay_ms", "enabled", "function_threshold", "loop_threshold", "scope_threshold")
FOLDER = Path(__file__).parent
CASE = re.compile(r"^--------\n(.*?)\n=>\n(.*?)\n", re.MULTILINE | re.DOTALL)


def _cases(file: str) -> list[tuple[str, str]]:
    text = (FOLDER / file).read_text(encoding="utf-8")
    cases = CASE.findall(text)
    assert len(cases) == text.count("\n=>\n") > 5
    return cases


@pytest.mark.parametrize(("text", "message"), _cases("mistakes.txt"))
def test_a_mistake_is_one_line_with_place_key_and_what_is_allowed(text: str, message: str) -> None:
    assert faults(text) == [f"p.toml:{message}"]
    assert check(text).policy is None


@pytest.mark.parametrize(("text", "message"), _cases("warnings.txt"))
def test_what_does_nothing_is_a_warning_and_the_policy_is_usable(text: str, message: str) -> None:
    assert faults(text) == [f"p.toml:{message}"]
    assert check(text).policy is not None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"a = {'[' * 3000}{']' * 3000}", "1:1: the file: nested too deeply"),
        (
            f"{RULE}when.{'not.' * 20_000}depth = 1",
            "3:1: the file: found a key of more than 50 parts (allowed: 50 at most)",
        ),
        (
            f"a = {{ b = 1, 'x'.{'y . ' * 20_000}\"z\" = 1 }}",
            "1:14: the file: found a key of more than 50 parts (allowed: 50 at most)",
        ),
    ],
    ids=["arrays", "tables", "inline"],
)
def test_what_is_nested_too_deeply_is_one_line(text: str, said: str) -> None:
    assert faults(text) == [f"p.toml:{said}"]


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("# {0}\na = '{0}'\nb = {0}", "3:1: b"),
        ("[c]\nb = [1, {{ d = -{0} }}]", "2:11: c.b[2].d"),
        ('a = """\n{0}"""\n{0} = 1\n"{0}" = +{0}', '4:1: "99999'),
    ],
)
def test_a_number_of_thousands_of_digits_is_one_line(text: str, place: str) -> None:
    (line,) = faults(text.format("9" * 5000))
    assert line.startswith(f"p.toml:{place}")
    assert re.search(r" 500[01] characters \(allowed: 19 digits at most\)$", line)


def test_what_is_missing_is_one_of_the_backends_that_can_stand_there(tmp_path: Path) -> None:
    path = tmp_path / "nameless.toml"
    path.write_text("[[rule]]\nbackends = ['llvm', {}]\n")
    with pytest.raises(policy.PolicyError) as raised:
        policy.load(path, BACKENDS, ("reference", "threaded"), ("llvm", "opencl"))
    assert (
        str(raised.value)
        == f"{path}:2:21: rule[1].backends[2].name: is missing (allowed: llvm, opencl)"
    )


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file() -> None:
    text = """
interpeter = "threaded"
[[rule]]
name = 3
when = { kind = "lop", depth = "< 0" }
backends = ["lvm", { name = "llvm", optimize = 9, cash = true }]
[profile]
enabled = "no"
[[rule]]
"""
    keys = [fault.fault.key for fault in check(text).faults]
    assert keys == [
        "interpeter",
        "rule[1].name",
        "rule[1].when.kind",
        "rule[1].when.depth",
        "rule[1].backends[1]",
        "rule[1].backends[2].optimize",
        "rule[1].backends[2].cash",
        "profile.enabled",
        "rule[2].backends",
    ]


def test_loading_raises_all_errors_and_no_warnings(tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_text("[profile]\nenabled = 1\nx = 2\n" + RULE + RULE)
    with pytest.raises(policy.PolicyError) as raised:
        policy.load(path, BACKENDS)
    assert str(raised.value).splitlines() == [
        f"{path}:2:1: profile.enabled: found 1 (allowed: true or false)",
        f"{path}:3:1: profile.x: unknown key (allowed: {', '.join(PROFILE)})",
    ]
    assert [fault.position.line for fault in raised.value.faults] == [2, 3]


def test_a_backend_of_the_other_kind_is_a_mistake(tmp_path: Path) -> None:
    path = tmp_path / "mixed_up.toml"
    path.write_text(
        "interpreter = 'llvm'\nshadow.against = 'opencl'\n"
        "rule = [{ backends = ['threaded', { name = 'reference' }, 'llmv'] }]\n"
    )
    with pytest.raises(policy.PolicyError) as raised:
        policy.load(path, BACKENDS, ("reference", "threaded"), ("llvm", "opencl"))
    interpreters, compilers = "(allowed: reference, threaded)", "(allowed: llvm, opencl)"
    assert str(raised.value).replace(f"{path}:", "").splitlines() == [
        f'1:1: interpreter: "llvm" is a compiler {interpreters}',
        f'2:1: shadow.against: "opencl" is a compiler {interpreters}',
        f'3:23: rule[1].backends[1]: "threaded" is an interpreter {compilers}',
        f'3:37: rule[1].backends[2].name: "reference" is an interpreter {compilers}',
        f"3:59: rule[1].backends[3]: unknown backend \"llmv\"; did you mean 'llvm'? {compilers}",
    ]


def test_loading_logs_warnings(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "odd.toml"
    path.write_text(RULE + RULE)
    with caplog.at_level(logging.WARNING, "ferryvm"):
        assert len(policy.load(path, BACKENDS).rules) == 2
    assert caplog.messages == [
        f"{path}:3:1: warning: rule[2]: never reached: rule[1] takes everything"
    ]


def test_a_file_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    with pytest.raises(FerryError, match=r"none\.toml: cannot be read: No such file"):
        policy.load(tmp_path / "none.toml", BACKENDS)
    (tmp_path / "latin.toml").write_bytes(b"a = '\xe9'")
    with pytest.raises(FerryError, match=r"latin\.toml: not UTF-8 text \(byte 5\)"):
        policy.load(tmp_path / "latin.toml", BACKENDS)


def test_a_mark_at_the_start_of_the_file_is_no_key(tmp_path: Path) -> None:
    path = tmp_path / "windows.toml"
    path.write_bytes(b"\xef\xbb\xbfinterpreter = 'reference'\r\n")
    assert policy.load(path, BACKENDS).interpreter == "reference"


def test_an_interpreter_without_cells_is_refused_in_plain_words() -> None:
    known = KnownBackends(
        ("plain", "threaded", "llvm"), ("plain", "threaded"), ("llvm",), ("plain",)
    )
    reading = read_text("interpreter = 'plain'\n", "p.toml", known)
    (placed,) = reading.faults
    assert str(placed) == (
        'p.toml:1:1: interpreter: "plain" has no cells: nothing is counted and no code entered in '
        "it (allowed: threaded)"
    )
    assert not read_text("interpreter = 'threaded'\n", "p.toml", known).faults
