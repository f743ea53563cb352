# SPDX-License-Identifier: Apache-2.0
"""Languages that plugins bring: found by suffix or name, and what becomes of faults in them."""

from __future__ import annotations

import json
import os
import sys
import types
from collections.abc import Callable
from pathlib import Path

import pytest

import ferryvm
from ferryvm import asm, plugin
from ferryvm.errors import FerryError, SourceError, UnknownNameError
from ferryvm.front_end import FrontEnd
from ferryvm.hooks import LanguageEntry, hookimpl
from ferryvm.isa import BY_MNEMONIC
from ferryvm.language import Languages, installed
from ferryvm.listing import FunctionListing, Line, Listing
from ferryvm.plugin import Plugin, Plugins

from .. import command
from ..double.distribution import plant

LARK = (Path(__file__).with_name("lark.py")).read_text(encoding="utf-8")
SQUARES = "n = 3\nwhile n\n  print n * n\n  n = n - 1\nend\n"


@pytest.fixture
def lark(site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a program, in a process that sees the plugin."""
    plant(site, "lark", LARK)
    (tmp_path / "squares.lark").write_text(SQUARES, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def ferry(folder: Path, *arguments: str, text: str = "") -> tuple[int, str, str]:
    """Exit code, stdout and stderr of a command that sees the plugin."""
    path = os.pathsep.join(filter(None, (str(folder / "site"), os.environ.get("PYTHONPATH"))))
    return command.ferry(*arguments, environment={**os.environ, "PYTHONPATH": path}, given=text)


def test_the_plugin_is_about_a_hundred_lines() -> None:
    assert len(LARK.splitlines()) < 120


def test_ferry_run_runs_a_program_in_the_language_of_a_plugin(lark: Path) -> None:
    assert ferry(lark, "run", "squares.lark") == (0, "9\n4\n1\n", "")


def test_every_command_that_takes_a_program_takes_it(lark: Path) -> None:
    assert ferry(lark, "verify", "squares.lark") == (0, "", "")
    code, out, _ = ferry(lark, "dis", "squares.lark")
    assert (code, ".loc 0 3 3" in out or "squares.lark" in out) == (0, True)
    code, out, _ = ferry(lark, "compile", "squares.lark", "--emit", "ir")
    assert (code, out.startswith("module program\n")) == (0, True)
    assert ferry(lark, "compile", "squares.lark")[0] == 0
    assert ferry(lark, "run", "squares.fvm") == (0, "9\n4\n1\n", "")
    code, out, err = ferry(lark, "diff", "squares.lark", "--backends", "switch,threaded")
    assert (code, out.count("agree"), err) == (0, 2, "")
    assert ferry(lark, "explain", "squares.lark", "--json")[0] == 0
    code, _, err = ferry(lark, "bisect", "squares.lark", "--bad", "switch")
    assert (code, "agree in all" in err) == (2, True)


def test_an_option_names_the_language_whatever_the_suffix(lark: Path) -> None:
    (lark / "squares.lark").rename(lark / "squares.txt")
    assert ferry(lark, "run", "squares.txt", "--language", "lark")[:2] == (0, "9\n4\n1\n")
    code, _, err = ferry(lark, "run", "squares.txt", "--language", "larc")
    assert (code, err) == (
        2,
        (
            "ferry: squares.txt: no language 'larc'; did you mean 'lark'? "
            "(known: assembly, classic, lark, skiff)\n"
        ),
    )


def test_languages_are_listed_with_where_they_come_from(lark: Path) -> None:
    code, out, err = ferry(lark, "languages")
    rows = [line.split(maxsplit=3) for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert [row[:3] for row in rows[1:]] == [
        ["skiff", ".skiff", "ferryvm:in_tree_languages"],
        ["assembly", ".fasm", "ferryvm:in_tree_languages"],
        ["classic", "-", "ferryvm:in_tree_languages"],
        ["lark", ".lark", "lark:lark"],
    ]
    assert rows[4][3].strip() == "lines over 64-bit integers"


def test_faults_of_a_text_are_shown_with_place_and_caret(lark: Path) -> None:
    (lark / "bad.lark").write_text("n = 3\nprint n + m\n\twhile n ?\n", encoding="utf-8")
    code, out, err = ferry(lark, "run", "bad.lark")
    assert (code, out) == (2, "")
    assert err == (
        "ferry: bad.lark:2:11: no variable 'm'\n    print n + m\n              ^\n"
        "bad.lark:3:2: this while has no end\n    \twhile n ?\n    \t^^^^^\n"
        "bad.lark:3:10: this is too much for a statement\n    \twhile n ?\n    \t        ^\n"
    )


def test_a_trap_shows_the_line_of_the_source(lark: Path) -> None:
    (lark / "trap.lark").write_text("n = 0\nprint 7 / n\n", encoding="utf-8")
    code, _, err = ferry(lark, "run", "trap.lark")
    assert code == 1
    assert err.startswith("ferry: trap.lark:2:9: ")
    assert "    print 7 / n\n            ^" in err


def test_a_language_without_sessions_is_none_for_the_repl(lark: Path) -> None:
    code, _, err = ferry(lark, "repl", "--language", "lark")
    assert (code, err) == (
        2,
        (
            "ferry: language 'lark' of lark:lark compiles whole programs: "
            "`ferry repl` cannot take it\n"
        ),
    )


def test_a_suffix_that_nobody_knows_is_one_line_with_what_is_known(tmp_path: Path) -> None:
    file = tmp_path / "x.lark"
    with pytest.raises(FerryError) as caught:
        ferryvm.read(file)
    assert str(caught.value) == (
        f"{file}: no language has the suffix '.lark' (known: .fasm, .fvm, .skiff); --language "
        "says what a file is in, and plugins bring languages"
    )


def test_python_takes_a_language_too(lark: Path) -> None:
    languages = Languages()
    program = languages.read(lark / "squares.lark")
    assert ferryvm.run(program).output == "9\n4\n1\n"
    assert ferryvm.run(languages.named("lark").program("print 2 + 3 * 4", "text")).output == "14\n"
    assert languages.is_program(Path("a.lark"))
    assert not languages.is_program(Path("a.ferry"))


def test_in_tree_languages_look_for_no_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    languages = Languages()
    monkeypatch.setattr(plugin.Plugins, "_discover", lambda self: pytest.fail("looked"))
    assert languages.named("skiff").program("(print! 1)", "x").functions
    assert languages.of(Path("x.fasm")).name == "assembly"


def test_the_classic_form_is_a_language_of_its_own(tmp_path: Path) -> None:
    text = "PUSH_WORD 7 PRINT STOP"
    for language in ("classic", "assembly"):
        assert ferryvm.run(ferryvm.compile(text, language=language)).output == "7\n"
    with pytest.raises(SourceError, match="instructions of the other form"):
        ferryvm.compile(".function main\nhalt\n", language="classic")


def test_the_peephole_runs_as_the_language_says_unless_told() -> None:
    text = ".function main\njump end\n:end\nhalt\n"
    assert len(ferryvm.compile(text, language="assembly").code) == 2
    assert len(ferryvm.compile(text, optimize=True, language="assembly").code) == 1
    same = languages(entry(front_end(asm.parse))).named("odd")
    assert len(same.program(text, "x").code) == 1
    assert len(same.program(text, "x", optimize=False).code) == 2


# --- what plugins do that they should not ---------------------------------------------------


def languages(*entries: object, name: str = "p") -> Languages:
    """Ours, and those of a plugin."""
    plugins = Plugins(discover=False)
    hook = hookimpl(lambda: list(entries))
    plugins.register(types.SimpleNamespace(ferryvm_languages=hook), Plugin(name))
    return Languages(plugins)


def entry(load: Callable[[], object], name: str = "odd", *suffixes: str) -> LanguageEntry:
    return LanguageEntry(name, suffixes or (".odd",), load)  # type: ignore[arg-type]  # anything


def front_end(parse: Callable[[str, str], object]) -> Callable[[], FrontEnd]:
    return lambda: FrontEnd(parse)  # type: ignore[arg-type]  # anything


def _raise(*_: object) -> object:
    raise ValueError("no wish to")


def made(*lines: Line) -> Callable[[], FrontEnd]:
    return front_end(lambda *_: Listing([FunctionListing("main", items=list(lines))]))


WRONG: dict[str, tuple[Callable[[], object], str]] = {
    "does not load": (_raise, "does not load: ValueError: no wish to (test_language.py:"),
    "loads as a text": (lambda: "x", "loads as a str, not a FrontEnd"),
    "has no function": (lambda: FrontEnd(3), "has an int as its parse, no function"),  # type: ignore[arg-type]  # wrong
    "raises": (front_end(_raise), "failed: ValueError: no wish to (test_language.py:"),
    "exits": (front_end(lambda *_: sys.exit(3)), "failed: SystemExit: 3"),
    "returns nothing": (front_end(lambda *_: None), "returned None, not a Listing"),
    "returns no lines": (
        front_end(lambda *_: Listing([FunctionListing("main", items=[3])])),  # type: ignore[list-item]  # wrong
        "failed: AttributeError: 'int' object has no attribute 'row' (",
    ),
    "makes wrong code": (
        made(Line(BY_MNEMONIC["drop"])),
        "made code that cannot run: V30 at pc 0: drop: operand of type any value expected",
    ),
}


@pytest.mark.parametrize(("load", "what"), WRONG.values(), ids=WRONG)
def test_a_front_end_that_misbehaves_is_one_line_that_names_it(
    load: Callable[[], object], what: str
) -> None:
    with pytest.raises(FerryError) as caught:
        languages(entry(load)).named("odd").program("text", "file.odd")
    message = str(caught.value)
    assert message.startswith(f"language 'odd' of p {what}"), message
    assert "\n" not in message


def test_what_the_text_is_to_blame_for_is_not_the_plugin_s_fault() -> None:
    def parse(*_: object) -> object:
        raise FerryError("this text has no end")

    with pytest.raises(FerryError, match=r"^this text has no end$"):
        languages(entry(front_end(parse))).named("odd").program("text", "file.odd")


RETURNED: dict[str, tuple[object, str]] = {
    "no entry": ("lark", "returned a str in its list, not a LanguageEntry"),
    "name": (entry(list, "Odd"), "returned a language of the name 'Odd'; small letters"),
    "load": (LanguageEntry("odd", (), 3), "returned an int to load language 'odd' by"),  # type: ignore[arg-type]  # wrong
    "suffixes": (
        LanguageEntry("odd", ".odd", list),  # type: ignore[arg-type]  # wrong
        "returned a str as the suffixes of language 'odd', not a tuple",
    ),
    "suffix": (entry(list, "odd", "odd"), "returned the suffix 'odd' of language 'odd'; a dot"),
    "image": (entry(list, "odd", ".fvm"), "returned the suffix '.fvm' of language 'odd'; a dot"),
}


@pytest.mark.parametrize(("returned", "what"), RETURNED.values(), ids=RETURNED)
def test_ferryvm_languages_that_returns_what_it_should_not_is_told(
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    returned: object,
    what: str,
) -> None:
    monkeypatch.setattr(plugin, "_reported", set())
    assert [one.name for one in languages(returned).all] == ["skiff", "assembly", "classic"]
    (record,) = caplog.records
    assert record.getMessage().startswith(f"plugin p ferryvm_languages {what}")
    assert record.getMessage().endswith("; it is not called again")


def test_names_and_suffixes_that_are_taken_are_told(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(plugin, "_reported", set())
    found = languages(entry(list, "skiff", ".ski"), entry(list, "other", ".skiff"))
    assert [one.name for one in found.all] == ["skiff", "assembly", "classic", "other"]
    assert found.of(Path("a.skiff")).plugin.is_own
    assert [record.getMessage() for record in caplog.records] == [
        "language name 'skiff' of p is taken by ferryvm:in_tree_languages",
        (
            "suffix '.skiff' of language 'other' of p is taken by language 'skiff' of "
            "ferryvm:in_tree_languages; --language other says what is meant"
        ),
    ]


def test_a_plugin_that_did_not_load_is_named_where_its_language_is_missing(
    site: Path, tmp_path: Path
) -> None:
    plant(site, "lark", "raise ImportError('no module named x')")
    with pytest.raises(FerryError, match=r"not there to ask: plugin lark:lark does not load"):
        Languages().of(tmp_path / "a.lark")
    with pytest.raises(UnknownNameError, match="no language 'lark'"):
        Languages().named("lark")


def test_the_session_of_a_plugin_s_language_is_typed_in_the_repl(lark: Path) -> None:
    source = LARK.replace(
        "front_end = FrontEnd(lambda text, file: Compiler(text, file).listing())",
        "front_end = FrontEnd(parse, session=Session)",
    ) + (
        "\n\ndef parse(text, file):\n    return Compiler(text, file).listing()\n\n\n"
        "class Session:\n    def listing(self, text):\n        return parse(text, '<input>')\n\n"
        "    def is_complete(self, text):\n        return text.count('while') <= text.count('end')\n"
    )
    (lark / "site" / "lark_plugin.py").write_text(source, encoding="utf-8")
    code, out, err = ferry(lark, "repl", "--language", "lark", text="print 6 * 7\nprint x\n")
    assert (code, out) == (2, "42\n")
    assert "<input>:1:7: no variable 'x'\n    print x\n          ^" in err


def test_what_is_installed_is_looked_for_once_in_a_process() -> None:
    assert installed() is installed()
    assert (
        json.dumps([one.name for one in installed().all][:3]) == '["skiff", "assembly", "classic"]'
    )
