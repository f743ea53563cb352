# SPDX-License-Identifier: Apache-2.0
"""`ferryvm.explain`: what became of a Python function, as text and in notebooks."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ferryvm
from ferryvm.policy import Choice, Options, Policy, Profile, Rule
from ferryvm.python.call.explanation import FunctionExplanation

_HOT = Policy(
    profile=Profile(loop_threshold=5),
    rules=(Rule("hot", backends=(Choice("llvm", Options(background=False)),)),),
)


class _Text(HTMLParser):
    """The text of a page, and its elements."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.texts: list[str] = []
        self.elements: set[str] = set()
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_explain_shows_what_the_engine_compiled_with_lines_of_python() -> None:
    @ferryvm.function(policy=_HOT)
    def total(n):
        x = 0
        while x < n:
            x += 3
        return x

    assert total(30) == 30
    found = ferryvm.explain(total)
    (version,) = found.versions
    assert version.signature == "total(n: int) -> int"
    (region,) = version.regions
    (compiled,) = region.tried
    assert compiled.backend == "llvm"
    assert compiled.seconds > 0
    lines = str(found).splitlines()
    assert lines[0] == version.signature
    assert f"({__file__}:" in lines[1]
    assert lines[1].endswith(": installed")
    assert lines[2].split() == ["line", "while", "x", "<", "n:"]
    assert any(line.lstrip().startswith(f"llvm      {compiled.outcome} in ") for line in lines)
    assert not any("entered" in line for line in lines)  # that is not measured
    assert repr(found) == str(found) == str(total.explain())


def test_explain_counts_refusals_with_their_lines() -> None:
    @ferryvm.function
    def stored(x):
        return {x: x}

    for _ in range(2):
        with pytest.raises(ferryvm.UnsupportedError):
            stored(1)
    with pytest.raises(ferryvm.UnsupportedError):
        ferryvm.map(stored, np.ones(2))
    line = stored.__wrapped__.__code__.co_firstlineno + 2
    assert str(ferryvm.explain(stored)) == (
        "refused stored 3 times: cannot compile a dict; number its keys, and write a list or an array with"
        f" the values by number ({__file__}:{line})"
    )


def test_explain_takes_functions_that_were_mapped() -> None:
    def twice(x):
        return x * 2

    with pytest.raises(TypeError, match=r"found <function .*twice"):
        ferryvm.explain(twice)
    ferryvm.map(twice, np.arange(3))
    assert str(ferryvm.explain(twice)) == "twice(x: numpy.int64) -> numpy.int64"
    assert "float64" not in str(ferryvm.explain(twice))


def test_a_notebook_gets_escaped_html() -> None:
    @ferryvm.function
    def least(a, b):
        raise ValueError("<script>alert(1)</script>")

    with pytest.raises(ValueError, match="script"):
        least(1, 2)
    found = least.explain()
    page = _Text(found._repr_html_())
    assert page.elements == {"div", "b"}
    assert page.texts == str(found).splitlines()
    hostile = FunctionExplanation("f", (), ("<img src=x> &amp;",))
    assert _Text(hostile._repr_html_()).texts == ["<img src=x> &amp;"]


_CELLS = (
    "import numpy as np, ferryvm",
    "from ferryvm.policy import Choice, Options, Policy, Profile, Rule",
    "llvm = Choice('llvm', Options(background=False))",
    "hot = Policy(profile=Profile(loop_threshold=5), rules=(Rule('hot', backends=(llvm,)),))",
    """@ferryvm.function(policy=hot)
def below(xs, x):
    n = 0
    for each in xs:
        if each < x:
            n += 1
    return n""",
    "below(np.arange(100.0), 50.0)",
    "ferryvm.explain(below)",
    "# the same name, another meaning\n@ferryvm.function\ndef below(xs, x):\n    return x",
    "below(np.arange(100.0), 50.0)",
)


@pytest.mark.nightly
def test_a_real_notebook_shows_the_html(tmp_path: Path) -> None:
    client = pytest.importorskip("nbclient", reason="notebooks need nbclient")
    pytest.importorskip("ipykernel", reason="notebooks need ipykernel")
    import nbformat

    notebook = nbformat.v4.new_notebook(cells=[*map(nbformat.v4.new_code_cell, _CELLS)])
    client.NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": tmp_path}}
    ).execute()
    outputs: list[Any] = [cell.outputs for cell in notebook.cells]
    assert outputs[5][0].data["text/plain"] == "50"
    shown = outputs[6][0].data
    page = _Text(shown["text/html"])
    assert "below(xs: array of float64, 1-d, x: float) -> int" in page.texts
    assert "for each in xs:" in page.texts  # the line of the cell
    assert "if each < x:" not in shown["text/html"]  # it is escaped
    assert shown["text/plain"].startswith("below(xs: array of float64, 1-d, x: float) -> int")
    assert outputs[8][0].data["text/plain"] == "50.0"
