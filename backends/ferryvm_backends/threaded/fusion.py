# SPDX-License-Identifier: Apache-2.0
"""The list of fused instructions, and finding them in code.

A trie over opcodes gives, at every pc, the longest listed sequence that starts there. Since every
pc keeps a cell of its own, sequences may overlap and be entered in the middle: no analysis of
jump targets is needed.
"""

from __future__ import annotations

import itertools
import re
from importlib import resources

import tomli

from ferryvm.isa import BY_MNEMONIC, Instruction

Group = tuple[Instruction, ...]


def _expand(pattern: str, sets: dict[str, list[str]]) -> list[str]:
    """All mnemonic sequences that a pattern stands for."""
    parts = re.split(r"\{(\w+)\}", pattern)
    choices = [sets[part] if odd % 2 else [part] for odd, part in enumerate(parts)]
    return ["".join(choice) for choice in itertools.product(*choices)]


def groups() -> list[Group]:
    """The fused instructions of `fused.toml`, each once, in the file's order."""
    text = resources.files(__package__).joinpath("fused.toml").read_text(encoding="utf-8")
    table = tomli.loads(text)
    found: dict[tuple[str, ...], None] = {}
    for patterns in table["patterns"].values():
        for pattern in patterns:
            for sequence in _expand(pattern, table["sets"]):
                mnemonics = tuple(sequence.split())
                if len(mnemonics) > 1:
                    found[mnemonics] = None
    return [tuple(BY_MNEMONIC[mnemonic] for mnemonic in mnemonics) for mnemonics in found]


class Fusion:
    """Which handler to use at each pc."""

    def __init__(self, fused: list[Group], first: int) -> None:
        """Handler numbers of `fused` start at `first`; below are the single instructions'."""
        self._root: dict[int, object] = {}
        for number, group in enumerate(fused):
            node = self._root
            for row in group:
                node = node.setdefault(row.opcode, {})  # type: ignore[assignment]
            node[-1] = first + number

    def handlers(self, opcodes: list[int]) -> list[int]:
        """The number of the handler for each pc: of the longest sequence that starts there."""
        result = []
        end = len(opcodes)
        for pc, opcode in enumerate(opcodes):
            best = opcode
            node = self._root.get(opcode)
            following = pc + 1
            while node is not None:
                best = node.get(-1, best)  # type: ignore[attr-defined]
                if following == end:
                    break
                node = node.get(opcodes[following])  # type: ignore[attr-defined]
                following += 1
            result.append(best)
        return result
