# SPDX-License-Identifier: Apache-2.0
"""The languages that come with ferryvm, registered through the hook that plugins use."""

from __future__ import annotations

from ferryvm.front_end import FrontEnd
from ferryvm.hooks import LanguageEntry


def _skiff() -> FrontEnd:
    from ferryvm import skiff  # a language is imported for its first program

    return FrontEnd(skiff.parse_listing, session=skiff.Session)


def _assembly() -> FrontEnd:
    from ferryvm import asm

    return FrontEnd(asm.parse, optimize=False)


def _classic() -> FrontEnd:
    from ferryvm import asm

    return FrontEnd(asm.parse_classic, optimize=False)


def ferryvm_languages() -> list[LanguageEntry]:
    """Skiff, and both forms of assembly: the first token of a .fasm file determines which."""
    return [
        LanguageEntry("skiff", (".skiff",), _skiff, "a small imperative language"),
        LanguageEntry("assembly", (".fasm",), _assembly, "instructions by name, in either form"),
        LanguageEntry("classic", (), _classic, "the classic listing form of assembly"),
    ]
