# SPDX-License-Identifier: Apache-2.0
"""Checks of the reference types that a program declares, and of those that it uses.

They come first: all other checks may look types up.
"""

from __future__ import annotations

from collections.abc import Iterable

from ferryvm.isa.declared_type import DeclarationFault, TypeHierarchy, check_declarations
from ferryvm.isa.element import Element
from ferryvm.isa.type import Reference, ValueType
from ferryvm.program import Program
from ferryvm.verify.refusal import VerifyCode, refusal

_EXPORTABLE = frozenset(element.array for element in Element)
"""The reference types that an exported function can take and return."""


def check_types(program: Program) -> TypeHierarchy:
    """The reference types of the program, each legal by itself, and used under its own number."""
    try:
        check_declarations(program.types)
    except DeclarationFault as fault:
        raise refusal(program, VerifyCode.DECLARED_TYPE, str(fault)) from None
    hierarchy = TypeHierarchy(program.types)
    for where, types in program.used_types():
        for t in types:
            if isinstance(t, Reference) and not hierarchy.has(t):
                message = f"{where} has type {t}, number {t.number}: the program has no such type"
                raise refusal(program, VerifyCode.UNKNOWN_TYPE, message)
    return hierarchy


def check_outside(program: Program) -> None:
    """Raise VerifyError for references that would leave the program or enter it."""
    for host in program.hosts:
        types = (*host.signature.parameters, *host.signature.results)
        _refuse_references(program, f"host import {host.name!r}", types)
    for name, function in program.exports:
        signature = program.signature(function)
        for t in (*signature.parameters, *signature.results):
            if isinstance(t, Reference) and t not in _EXPORTABLE:
                message = f"export {name!r} has the reference type {t}"
                message += "; only numbers and arrays of numbers are possible there yet"
                raise refusal(program, VerifyCode.OUTSIDE_REFERENCE, message)
    for tag in program.tags:
        _refuse_references(program, f"tag {tag.name!r}", tag.parameters)


def _refuse_references(program: Program, where: str, types: Iterable[ValueType]) -> None:
    for t in types:
        if isinstance(t, Reference):
            message = f"{where} has the reference type {t}; only numbers are possible there yet"
            raise refusal(program, VerifyCode.OUTSIDE_REFERENCE, message)
