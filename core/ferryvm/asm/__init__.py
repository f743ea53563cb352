# SPDX-License-Identifier: Apache-2.0
"""Assembly, both ways, and the classic listing form (docs/assembly.md is the manual of both)."""

from __future__ import annotations

from ferryvm.asm import classic
from ferryvm.asm.inference import infer
from ferryvm.asm.parser import Parser
from ferryvm.asm.source import Source
from ferryvm.asm.writer import write
from ferryvm.float_environment import in_ours
from ferryvm.garbage import collector_suspended
from ferryvm.listing import Listing
from ferryvm.listing.decode import decode
from ferryvm.listing.encode import encode
from ferryvm.program import Program

__all__ = ["assemble", "disassemble", "parse", "parse_classic", "write"]


@in_ours
def parse(text: str, file: str = "<string>") -> Listing:
    """The listing of an assembly text; its first token determines the form.

    Raises SourceError with every fault in the text.
    """
    with collector_suspended():
        source = Source(text, file)
        return _classic(source) if classic.is_classic(source) else Parser(source).parse()


@in_ours
def parse_classic(text: str, file: str = "<string>") -> Listing:
    """The listing of a text in the classic form. Raises as `parse`."""
    return _classic(Source(text, file))


def _classic(source: Source) -> Listing:
    return infer(source, classic.read(source))


@in_ours
def assemble(text: str, file: str = "<string>", optimize: bool = False) -> Program:
    """The program of an assembly text, not verified; `optimize` applies the peephole.

    Raises SourceError with every fault in the text.
    """
    with collector_suspended():
        return encode(parse(text, file), optimize)


@in_ours
def disassemble(program: Program) -> str:
    """The text that assembles to `program`, in every bit; raises DecodeError if there is none."""
    return write(decode(program))
