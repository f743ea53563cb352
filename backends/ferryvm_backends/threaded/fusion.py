# SPDX-License-Identifier: Apache-2.0
"""The list of fused instructions, and finding them in code.

A trie over opcodes gives, at every pc, the listed sequences that start there; the part of it below
an opcode is built when code has that opcode, since a small program has few of them. Since every pc
has a cell of its own, sequences may overlap and be entered in the middle: no analysis of jump
targets is needed.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from pathlib import Path

from ferryvm.isa import BY_MNEMONIC, INSTRUCTIONS, Flow, Instruction

Group = tuple[Instruction, ...]

_END = b"\xff"
"""Ends a group in the notes; no opcode of a fused instruction."""


def _expand(pattern: str, sets: dict[str, list[str]]) -> list[str]:
    """All mnemonic sequences that a pattern denotes."""
    parts = re.split(r"\{(\w+)\}", pattern)
    choices = [sets[part] if odd % 2 else [part] for odd, part in enumerate(parts)]
    return ["".join(choice) for choice in itertools.product(*choices)]


def groups() -> list[Group]:
    """The fused instructions of `fused.toml`, each once, in the file's order."""
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
    return [tuple(BY_MNEMONIC[mnemonic] for mnemonic in mnemonics) for mnemonics in found]


def packed(fused: Sequence[Group]) -> bytes:
    """The groups as notes: the opcodes of each, a byte an opcode."""
    assert max(row.opcode for group in fused for row in group) < _END[0]
    return b"".join(bytes(row.opcode for row in group) + _END for group in fused)


def unpacked(notes: bytes) -> list[bytes]:
    """The opcodes of each group from the result of `packed`."""
    return notes.split(_END)[:-1]


class _Node:
    """Sequences with a common prefix: the handler of the one that ends here, and the possible next
    opcodes."""

    __slots__ = ("following", "handler")

    def __init__(self) -> None:
        self.handler: int | None = None
        self.following: dict[int, _Node] = {}


class Fusion:
    """The handler of each pc."""

    def __init__(self, fused: Sequence[bytes], first: int) -> None:
        """`fused`: opcodes of each group. Its handlers' numbers start at `first`; below are the
        single instructions'."""
        self._by_first: dict[int, list[tuple[int, bytes]]] = {}
        """By first opcode, the groups with their handlers' numbers."""
        for number, group in enumerate(fused, first):
            self._by_first.setdefault(group[0], []).append((number, group))
        self._nodes: dict[int, _Node] = {}
        """The tries that have been made, by first opcode."""
        self._lengths = [len(group) for group in fused]
        self._first = first
        self.longest = max(self._lengths, default=1)
        """Instructions of the longest group."""

    def _node(self, first: int) -> _Node:
        """The trie of the groups that begin with an opcode."""
        found = self._nodes.get(first)
        if found is None:
            found = self._nodes[first] = _Node()
            for number, group in self._by_first.get(first, ()):
                node = found
                for opcode in group[1:]:
                    below = node.following.get(opcode)
                    if below is None:
                        below = node.following[opcode] = _Node()
                    node = below
                node.handler = number
        return found

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
