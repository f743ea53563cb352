# SPDX-License-Identifier: Apache-2.0
"""The list of fused instructions, and finding them in code.

A trie over opcodes gives, at every pc, the listed sequences that start there; the part of it below
an opcode is built when code has that opcode, since a small program has few of them. Since every pc
has a cell of its own, sequences may overlap and be entered in the middle: no analysis of jump
targets is needed.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Sequence
from pathlib import Path

from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS, Flow, Instruction

Group = tuple[Instruction, ...]

_END, _SECTION = "\ufffe", "\uffff"
"""In the notes: the end of a group, and of the groups with one first opcode; both are no
opcodes."""


def _expand(pattern: str, sets: dict[str, list[str]]) -> list[str]:
    """All mnemonic sequences that a pattern denotes."""
    parts = re.split(r"\{(\w+)\}", pattern)
    choices = [sets[part] if odd % 2 else [part] for odd, part in enumerate(parts)]
    return ["".join(choice) for choice in itertools.product(*choices)]


def groups() -> list[Group]:
    """The fused instructions of `fused.toml`, each once, by their first opcodes."""
    import tomli  # only for building; the groups are then cached with the code

    text = Path(__file__).with_name("fused.toml").read_text(encoding="utf-8")
    table = tomli.loads(text)
    found: dict[tuple[str, ...], None] = {}
    for patterns in table["patterns"].values():
        for pattern in patterns:
            for sequence in _expand(pattern, table["sets"]):
                mnemonics = tuple(sequence.split())
                if len(mnemonics) > 1:
                    found[mnemonics] = None
    named = [tuple(BY_MNEMONIC[mnemonic] for mnemonic in mnemonics) for mnemonics in found]
    return sorted(named, key=lambda group: group[0].opcode)


def packed(fused: Sequence[Sequence[int]]) -> bytes:
    """The opcodes of groups as notes: text in UTF-8, a character an opcode. Groups with the same
    first opcode are together, so that each such section can be read when it is needed."""
    sections: dict[int, list[str]] = {}
    for group in fused:
        sections.setdefault(group[0], []).append("".join(map(chr, group)) + _END)
    assert [group[0] for group in fused] == sorted(group[0] for group in fused)
    return _SECTION.join(map("".join, sections.values())).encode()


class _Node:
    """Sequences with a common prefix: the handler of the one that ends here, and the possible next
    opcodes."""

    __slots__ = ("following", "handler")

    def __init__(self) -> None:
        self.handler: int | None = None
        self.following: dict[int, _Node] = {}


class Fusion:
    """The handler of each pc."""

    def __init__(self, notes: bytes, first: int) -> None:
        """`notes`: the groups, see `packed`. Their handlers' numbers start at `first`; below are
        the single instructions'."""
        text = notes.decode()
        self._sections: dict[int, tuple[int, str]] = {}
        """By first opcode, the number of the first handler and the groups."""
        number = first
        for section in filter(None, text.split(_SECTION)):
            self._sections[ord(section[0])] = number, section
            number += section.count(_END)
        self.count = number - first
        """Number of groups."""
        self._nodes: dict[int, _Node] = {}
        """The tries that have been made, by first opcode."""
        self._text, self._first = text, first

    def _node(self, first: int) -> _Node:
        """The trie of the groups that begin with an opcode."""
        found = self._nodes.get(first)
        if found is None:
            found = self._nodes[first] = _Node()
            number, section = self._sections.get(first, (0, ""))
            for group in section.split(_END)[:-1]:
                node = found
                for opcode in map(ord, group[1:]):
                    below = node.following.get(opcode)
                    if below is None:
                        below = node.following[opcode] = _Node()
                    node = below
                node.handler = number
                number += 1
        return found

    @functools.cached_property
    def _lengths(self) -> list[int]:
        return [len(group) for group in self._text.replace(_SECTION, "").split(_END)[:-1]]

    @functools.cached_property
    def longest(self) -> int:
        """Instructions of the longest group."""
        return max(self._lengths, default=1)

    def length(self, handler: int) -> int:
        """Number of instructions of the handler with that number."""
        return 1 if handler < self._first else self._lengths[handler - self._first]

    def handlers(self, opcodes: list[int]) -> list[int]:
        """The number of the handler for each pc.

        For each pc the sequence is chosen with which the fewest dispatches reach the end of the
        straight-line code; of equal ones the longest.
        """
        end = len(opcodes)
        result = [0] * end
        dispatches = [0] * (end + 1)
        """From a pc to the end of its straight-line code."""

        def rest(following: int) -> int:
            return 0 if opcodes[following - 1] in _ENDS else dispatches[following]

        for pc in range(end - 1, -1, -1):
            best = opcodes[pc]
            fewest = rest(pc + 1)
            node: _Node | None = self._node(best)
            following = pc + 1
            while node is not None:
                if node.handler is not None and rest(following) <= fewest:
                    best, fewest = node.handler, rest(following)
                if following == end:
                    break
                node = node.following.get(opcodes[following])
                following += 1
            result[pc] = best
            dispatches[pc] = fewest + 1
        return result


_ENDS = frozenset(
    row.opcode
    for row in INSTRUCTIONS
    if row.flow in (Flow.JUMP, Flow.RETURN, Flow.STOP, Flow.THROW)
)
"""Instructions without fall-through: straight-line code ends there."""
