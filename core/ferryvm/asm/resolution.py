# SPDX-License-Identifier: Apache-2.0
"""The names of a text, looked up after its last line: they may be used before their declaration."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from ferryvm.asm.function import PendingClause, PendingFunction
from ferryvm.asm.source import Source, StatementFault, Token, near
from ferryvm.asm.statement import name_of
from ferryvm.asm.symbol import Symbols
from ferryvm.isa import INSTRUCTIONS, Immediate, Instruction
from ferryvm.listing import ClauseListing, FunctionListing, Listing

_KINDS = [row.immediate for row in INSTRUCTIONS]


class Resolver:
    """Looks up names in the symbols of a text; a name that nothing declares is a fault of it."""

    def __init__(self, source: Source, symbols: Symbols) -> None:
        self._source, self._symbols = source, symbols

    def resolve(self, listing: Listing, functions: Iterable[PendingFunction]) -> None:
        """Add table, exports and functions to the listing."""
        source, known = self._source, self._symbols.functions
        for token in self._symbols.table:
            with source.collecting():
                listing.table.append(_known(token, "function", known))
        for name, token in self._symbols.exported.items():
            with source.collecting():
                listing.exports[name] = _known(token, "function", known)
        for function in functions:
            self._resolve_code(function)
            found = FunctionListing.of(
                function.name, function.signature, tuple(function.types), function.code
            )
            found.parameters = function.parameters
            listing.functions.append(found)
            for clause in function.clauses:
                with source.collecting():
                    found.clauses.append(self._clause(function, clause))

    def _resolve_code(self, function: PendingFunction) -> None:
        """Look up the names in a function."""
        code = function.code
        tables: dict[Immediate, Collection[str]] = {
            Immediate.TARGET: function.labels,
            Immediate.FUNCTION: self._symbols.functions,
            Immediate.ITEM: self._symbols.functions,
            Immediate.HOST: self._symbols.hosts,
            Immediate.TAG: self._symbols.tags,
        }
        signatures, code.relocations = code.relocations, []
        for pc, text, where in function.references:
            kind = _KINDS[code.opcodes[pc]]
            known = tables.get(kind)
            if known is not None and text in known:
                code.relocations.append((pc, text))
                continue
            token = where
            if isinstance(token, int):
                token = self._source.tokens(token)[-1]
            with self._source.collecting():
                if known is not None:
                    what = "label" if kind is Immediate.TARGET else kind.value
                    code.relocations.append((pc, _known(token, what, known)))
                else:
                    row = INSTRUCTIONS[code.opcodes[pc]]
                    code.immediates[pc] = function.encoded(
                        row, self._variable(function, row, token)
                    )
        if signatures:
            code.relocations = sorted([*code.relocations, *signatures], key=lambda each: each[0])

    def _clause(self, function: PendingFunction, pending: PendingClause) -> ClauseListing:
        tag = None if pending.tag is None else _known(pending.tag, "tag", self._symbols.tags)
        start, end, handler = (_known(token, "label", function.labels) for token in pending.places)
        return ClauseListing(start, end, handler, pending.depth, tag, pending.record)

    def _variable(self, function: PendingFunction, row: Instruction, token: Token) -> int:
        """The number of a local or static that has a name."""
        if row.immediate is Immediate.LOCAL:
            return function.locals[_known(token, "local", function.locals)]
        numbers = self._symbols.statics[_known(token, "static", self._symbols.statics)]
        if len(numbers) > 1:
            raise StatementFault(
                token,
                f"{len(numbers)} statics are named {token.text!r}: say by number "
                f"which one is meant ({', '.join(map(str, numbers))})",
            )
        return numbers[0]


def _known(token: Token, kind: str, known: Collection[str]) -> str:
    """The name that a token denotes, of a kind of which `known` are declared."""
    if token.text.startswith(":"):
        raise StatementFault(
            token,
            f"expected a {kind}, found {token.text!r}; as an operand it stands without the colon",
        )
    name = name_of(token)
    if name not in known:
        raise StatementFault(token, f"no {kind} {name!r}{near(name, known)}")
    return name
