# SPDX-License-Identifier: Apache-2.0
"""The page as text, and `ferry diff --html` that writes it."""

from __future__ import annotations

import dataclasses
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

import ferryvm
from ferryvm.cli.command import ferry
from ferryvm.errors import FerryError
from ferryvm.isa import F32, F64, I32, I64
from ferryvm.page import shown
from ferryvm.testing import Comparison, Differ, Schedule, Verdict
from ferryvm.testing.report import Evidence, Report, examine, page, report, write
from ferryvm.testing.report.text import digits, seconds, word
from ferryvm.testing.report.view import LOOKS
from ferryvm.verify import verify

from ...double.suspect import with_suspects
from .conftest import make_report

PLAIN = ".function main\nhalt\n"


class Tags(HTMLParser):
    """Names and attributes of the elements, and text that a reader sees."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def plain_report(name: str = "plain.fasm") -> Report:
    differ = Differ(["switch"])
    program = verify(ferryvm.assemble(PLAIN))
    return report(
        differ, Schedule.NONE, 0, [examine(differ, name, program, differ.compare(program))]
    )


def test_every_verdict_has_a_look_of_its_own() -> None:
    assert set(LOOKS) == set(Verdict)
    for field in ("css", "sign", "label"):
        assert len({getattr(look, field) for look in LOOKS.values()}) == len(Verdict)


def test_agreement_is_said_in_the_title_and_nothing_differs() -> None:
    text = page(plain_report())
    assert "<title>No disagreement · ferryvm</title>" in text
    assert 'id="differences"' not in text


def test_page_names_nothing_to_load(made: Report) -> None:
    for tag, attributes in Tags(page(made)).tags:
        assert "src" not in attributes, tag
        href = attributes.get("href") or "#"
        assert href.startswith("#") or href == "data:,"
    assert "url(" not in page(made)
    assert "@import" not in page(made)


def test_names_cannot_become_markup() -> None:
    evil = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'>"
    text = page(plain_report(evil))
    tags = Tags(text).tags
    assert [tag for tag, _ in tags].count("script") == 2
    assert "img" not in [tag for tag, _ in tags]
    assert not any(name.startswith("on") for _, attributes in tags for name in attributes)


def test_only_the_script_of_the_page_may_run(made: Report) -> None:
    (policy,) = [
        attributes["content"] or ""
        for tag, attributes in Tags(page(made)).tags
        if attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy.startswith("default-src 'none'; ")
    assert re.search(r"script-src 'sha256-[A-Za-z0-9+/]{43}='", policy)


def test_moving_programs_are_one_column_with_their_moves() -> None:
    made = make_report(Schedule.RANDOM)
    text = Tags(page(made)).text
    assert "reference ⇄ threaded ⇄ wrong ⇄ picky ⇄ small" in text
    assert re.search(r"\d+ moves?\b", text)


def test_disagreement_that_was_not_traced_says_why() -> None:
    made = make_report()
    (result, *_) = made.results
    (number,) = result.evidence
    lost = dataclasses.replace(result, evidence={number: Evidence(None, "the <dog> ate it")})
    text = Tags(page(dataclasses.replace(made, results=(lost,)))).text
    assert "No trace: the <dog> ate it." in text
    assert "0xbfe0000000000000" in text


def test_program_that_was_not_watched_is_said_to_be_so() -> None:
    made = plain_report()
    unseen = dataclasses.replace(made.results[0], coverage=None)
    assert "not watched" in Tags(page(dataclasses.replace(made, results=(unseen,)))).text


def test_seconds_of_unsupported_comparisons_do_not_count(made: Report) -> None:
    refused = Comparison(("picky",), Verdict.UNSUPPORTED, 0, 0, 99.0, reason="no")
    result = dataclasses.replace(made.results[0], comparisons=(refused,))
    text = Tags(page(dataclasses.replace(made, results=(result,)))).text
    assert "99 s" not in text


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0 µs"), (1.5e-6, "1.5 µs"), (0.0123, "12.3 ms"), (1.0, "1 s"), (1234.5, "1234 s")],
)
def test_seconds_have_the_unit_that_suits_them(value: float, text: str) -> None:
    assert seconds(value) == text


def test_words_are_shown_as_values_and_nans_with_their_bits() -> None:
    assert word(I64, (1 << 64) - 5) == "-5"
    assert word(I32, 0x1_0000_0000) == "0x100000000"  # more bits than the type has
    assert word(F64, 1 << 63) == "-0.0"
    assert word(F32, 0x7FC0_0001) == "nan 0x7fc00001"
    assert word(None, 255) == "0xff"


def test_digits_that_differ_are_told() -> None:
    assert [digit for digit, differs in digits(0x1F, 0x2F) if differs] == ["1"]
    assert digits(None, 1) == []


def test_what_does_not_print_is_escaped() -> None:
    assert shown("a\x00\u202eb\udcffé") == "a\\x00\\u202eb\\udcffé"


def test_a_page_that_cannot_be_written_is_one_clear_error(made: Report, tmp_path: Path) -> None:
    with pytest.raises(FerryError, match=r"nowhere/page\.html: cannot be written: No such file"):
        write(tmp_path / "nowhere" / "page.html", made)


def run(*arguments: str | Path) -> int:
    code = ferry.main(["diff", *map(str, arguments)], standalone_mode=False)
    assert isinstance(code, int)
    return code


def test_diff_writes_the_page(tmp_path: Path) -> None:
    folder = tmp_path / "<script>alert(1)<"
    folder.mkdir()
    file = folder / "script>.fasm"
    file.write_text(PLAIN)
    target = tmp_path / "page.html"
    assert run("--backends", "switch", file, "--html", target) == 0
    text = target.read_text()
    assert "<script>alert(1)</script>.fasm" in Tags(text).text
    assert "<script>alert(1)" not in text
    assert [entry.name for entry in tmp_path.iterdir() if entry.is_file()] == ["page.html"]


def test_diff_refuses_a_page_before_it_runs_anything(tmp_path: Path) -> None:
    file = tmp_path / "endless.fasm"
    file.write_text(".function main\n:on\njump on\n")
    with pytest.raises(FerryError, match="is the input; name another file to write"):
        run(file, "--html", file)
    with pytest.raises(FerryError, match="cannot be written: Is a directory"):
        run(file, "--html", tmp_path)
    assert file.read_text().startswith(".function")


def test_backend_that_fails_is_shown_with_what_it_said() -> None:
    differ = Differ(["broken"], registry=with_suspects())
    program = verify(ferryvm.compile("(define x 3) (set! x (* x x)) x"))
    result = examine(differ, "t", program, differ.compare(program))
    tags = Tags(page(report(differ, Schedule.NONE, 0, [result])))
    assert "1 disagreement" in tags.text
    assert "RuntimeError: <b>smoke</b>" in tags.text
    assert result.evidence[0].parting is not None
    assert result.evidence[0].parting.mnemonic == "i64.mul"


def test_program_that_traps_is_shown_up_to_its_trap() -> None:
    differ = Differ(["wrong"], registry=with_suspects())
    program = verify(ferryvm.compile("(define x (+ 1.5 1.0)) (/ 1 0)"))
    result = examine(differ, "t", program, differ.compare(program))
    assert result.coverage is not None
    assert result.coverage.is_whole
    assert "1 disagreement" in Tags(page(report(differ, Schedule.NONE, 0, [result]))).text
