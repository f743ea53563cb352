# SPDX-License-Identifier: Apache-2.0
"""The phases in order, for one text and for the inputs of a session.

    text ──read──> datums ──parse──> tree ──infer──> typed tree ──generate──> Listing ──> Program

A session compiles each input to a whole program: its statics begin with those of the inputs
before, in the same order, and the functions of earlier inputs are compiled into it again.
"""

from __future__ import annotations

from ferryvm.float_environment import in_ours
from ferryvm.listing import Listing
from ferryvm.listing.encode import encode
from ferryvm.program import Program
from ferryvm.skiff import reader
from ferryvm.skiff.fault import Faults
from ferryvm.skiff.generate import generate
from ferryvm.skiff.inference import infer
from ferryvm.skiff.object_type import ObjectTypes
from ferryvm.skiff.parser import EarlierTexts, parse
from ferryvm.skiff.scope import BUILT_IN
from ferryvm.skiff.tree import Tree, Variable


class Session:
    """Texts that are compiled one after another; each can use the definitions of earlier ones."""

    def __init__(self) -> None:
        self.inputs = 0
        self._statics: list[Variable] = []
        self._known = EarlierTexts()
        self._types = ObjectTypes()
        self._texts: dict[str, str] = {}

    @in_ours
    def listing(self, text: str, file: str | None = None) -> Listing:
        """The listing of the next input, not optimised.

        Raises SourceError if there are faults; the session is then unchanged.
        """
        file = file or f"<input {self.inputs + 1}>"
        if file in self._texts:  # messages about faults show lines of earlier texts, too
            file = f"{file} {self.inputs + 1}"
        faults = Faults()
        for name, earlier in self._texts.items():
            faults.add_text(name, earlier)
        datums = reader.read(text, file, faults)
        tree, known = parse(datums, faults, self._known, file)
        infer(tree, faults)
        faults.check()
        statics = self._number(tree)
        tree.statics = statics
        types = self._types.copy()
        listing = generate(tree, types)
        self.inputs += 1
        self._statics, self._known, self._types = statics, known, types
        used = {definition.place.position.file for definition in known.functions.values()}
        self._texts = {name: t for name, t in {**self._texts, file: text}.items() if name in used}
        return listing

    @in_ours
    def compile(self, text: str, file: str | None = None, optimize: bool = True) -> Program:
        """The program of the next input; raises SourceError as `listing` does."""
        return encode(self.listing(text, file), optimize)

    @property
    def names(self) -> list[str]:
        """All names with a meaning: definitions so far, and built-in names."""
        return sorted({*self._known.globals, *self._known.functions, *BUILT_IN})

    def is_complete(self, text: str) -> bool:
        """True if the text can be compiled; False if a form continues on another line."""
        return reader.is_complete(text)

    def _number(self, tree: Tree) -> list[Variable]:
        """All statics, the earlier ones first. A redefined variable keeps its number if it keeps
        its type."""
        statics = list(self._statics)
        for variable in tree.statics:
            earlier = self._known.globals.get(variable.name)
            if isinstance(earlier, Variable) and earlier.type == variable.type:
                variable.number = earlier.number
                statics[variable.number] = variable
            else:
                variable.number = len(statics)
                statics.append(variable)
        return statics


@in_ours
def parse_listing(text: str, file: str = "<string>") -> Listing:
    """The listing of a whole text, not optimised; raises SourceError if there are faults."""
    return Session().listing(text, file)


@in_ours
def compile(text: str, file: str = "<string>", optimize: bool = True) -> Program:
    """The program of a whole text; raises SourceError if there are faults."""
    return Session().compile(text, file, optimize)
