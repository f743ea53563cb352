# SPDX-License-Identifier: Apache-2.0
"""A program with a loop of which everything is said, and pages as a browser would read them."""

from __future__ import annotations

import dataclasses
from html.parser import HTMLParser
from pathlib import Path

import ferryvm
from ferryvm.program import SourceMap
from ferryvm.region.region import region
from ferryvm.verify import verify
from ferryvm_backends.vliw.code.program import LoopSummary, Program
from ferryvm_backends.vliw.machine.read import find

from .program import compiled

TEXT = """\
(define v (make-array i64 9))
(define s 0)
(define i 0)
(while (< i 9)
  (set! s (+ s (* i 3)))
  (array-set! v i s)
  (set! i (+ i 1)))
(print! s) ; <b>&amp;"'</b>
"""
REASON = 'a call to <i>f</i> & "g"'


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A program and where its instructions come from."""

    program: Program
    source_map: SourceMap


def drawn(name: str, folder: Path | None = None, text: str = TEXT) -> Drawn:
    """The program of a text in a file, which is there if there is a folder for it."""
    if folder is not None:
        (folder / name).write_text(text, encoding="utf-8")
        name = str(folder / name)
    verified = verify(ferryvm.compile(text, name))
    found = region(verified, "program")
    return Drawn(compiled(found, find("multi16")), verified.program.source_map)


def with_loops(program: Program) -> Program:
    """The program as if two of its blocks were its loops: a kernel of two copies, and a plain
    one."""
    starts = sorted(program.labels)
    ends = [*starts[1:], len(program.bundles)]
    (first, _), (last, last_end) = [
        pair for pair in zip(starts, ends, strict=True) if pair[1] - pair[0] >= 6
    ][1:3]
    pc = max(slot.pc for bundle in program.bundles for slot in bundle)
    kernel = LoopSummary(
        program.labels[first], pc, 4, first + 1, first + 5, 2, 3, 1, "memory", 2, reason=""
    )
    plain = LoopSummary(program.labels[last], pc, 1, last, last_end, 1, 1, 3, "alu", 4, REASON)
    return dataclasses.replace(program, loops=(kernel, plain))


class Page(HTMLParser):
    """Elements of a page in their order, with the text in each that holds nothing else."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str], list[str]]] = []
        self.text = ""
        self._open: list[list[str]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open.append([])
        self.elements.append((tag, {name: value or "" for name, value in attrs}, self._open[-1]))
        if tag in ("meta", "link"):
            self._open.pop()

    def handle_endtag(self, tag: str) -> None:
        self._open.pop()

    def handle_data(self, data: str) -> None:
        self.text += data
        for texts in self._open:
            texts.append(data)

    def of(self, tag: str, css: str = "") -> list[tuple[dict[str, str], str]]:
        """Attributes and text of the elements of a name, with a class if one is given."""
        return [
            (attributes, "".join(texts))
            for name, attributes, texts in self.elements
            if name == tag and (not css or css in attributes.get("class", "").split())
        ]
