# SPDX-License-Identifier: Apache-2.0
"""Checks of the reference types that a program declares, and of those that it uses.

They come first: all other checks may look types up.
"""

from __future__ import annotations

from ferryvm.isa.declared_type import DeclarationFault, TypeHierarchy, check_declarations
from ferryvm.isa.type import Reference
from ferryvm.program import Program
from ferryvm.verify.refusal import VerifyCode, refusal


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
