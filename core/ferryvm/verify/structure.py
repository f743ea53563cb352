# SPDX-License-Identifier: Apache-2.0
"""Checks that need no types: tables, limits, clauses, opcodes and immediates.

They cover all instructions at once, reachable or not. The checks that depend on control flow are in
`type_flow`, which relies on these: every index that it follows exists.
"""

from __future__ import annotations

from ferryvm.clause import ClauseForest, NestingFault
from ferryvm.isa import INSTRUCTIONS, Immediate, Type
from ferryvm.isa.declared_type import ArrayType, StructType, TypeHierarchy
from ferryvm.isa.struct import field_of
from ferryvm.isa.type import FIRST_DECLARED, Reference, signed, with_article
from ferryvm.program import HOST_TAG, MAX_TAG_VALUES, RECORD_BYTES, Program, Signature
from ferryvm.verify.refusal import VerifyCode, VerifyError, refusal

MAX_STATICS = 1 << 24
"""Largest number of statics of a program (128 MiB)."""

MAX_DATA_END = 1 << 32
"""Largest end address of initial data, in heap bytes."""

MAX_PARAMETERS = 1000
"""Largest number of parameters of a signature. A signature is declared once and may be used by
every function and call: without a limit, checking them could take time quadratic in the size."""

MAX_RESULTS = 1000
"""Largest number of results of a function; `return` moves them all for one unit of fuel."""

MAX_LOCALS = 1 << 15
"""Largest number of locals, without the parameters. A call zeroes them for one unit of
fuel: without a limit, fuel would not bound time (docs/decisions/2026-11-23-fuel-and-locals.md)."""


_IMMEDIATES = [row.immediate for row in INSTRUCTIONS]
_OPCODE = {row.mnemonic: row.opcode for row in INSTRUCTIONS}
_LOCALS = frozenset(row.opcode for row in INSTRUCTIONS if row.immediate is Immediate.LOCAL)
_FAR = 1 << 32
"""A number of words past every local of a frame."""
_STATIC_INDIRECT = frozenset((_OPCODE["static.load"], _OPCODE["static.store"]))
_TYPED = frozenset(
    row.opcode
    for row in INSTRUCTIONS
    if row.immediate in (Immediate.FIELDS, Immediate.STRUCT, Immediate.ARRAY, Immediate.FIELD)
)
_ANY = 1 << 64
"""A bound above every immediate."""


def check_tables(program: Program) -> None:
    """Check the tables, everything but code. Raises VerifyError."""

    def refuse(code: VerifyCode, message: str) -> VerifyError:
        return refusal(program, code, message)

    count = len(program.code)
    if not program.functions or not count:
        raise refuse(VerifyCode.NO_CODE, "a program needs at least one function and its code")
    for function in program.functions:
        if not 0 <= function.entry < count:
            message = f"function {function.name!r} starts at {function.entry}, code has {count}"
            raise refuse(VerifyCode.FUNCTION_ENTRY, message)
        if not 0 <= function.signature < len(program.signatures):
            message = (
                f"function {function.name!r} has signature {function.signature}, "
                f"there are {len(program.signatures)}"
            )
            raise refuse(VerifyCode.FUNCTION_SIGNATURE, message)
        names = [name for name in function.parameters if name]
        count_there = len(program.signatures[function.signature].parameters)
        if function.parameters and len(function.parameters) != count_there:
            found = f"{len(function.parameters)} names for {count_there} parameters"
            message = f"function {function.name!r} has {found}"
            raise refuse(VerifyCode.FUNCTION_SIGNATURE, message)
        if len(set(names)) < len(names):
            message = f"function {function.name!r} has two parameters of one name"
            raise refuse(VerifyCode.FUNCTION_SIGNATURE, message)
        if len(function.locals) > MAX_LOCALS:
            found = f"function {function.name!r} has {len(function.locals)} locals"
            raise refuse(VerifyCode.FUNCTION_LOCALS, f"{found}, at most {MAX_LOCALS}")
    numbers: dict[Signature, int] = {}
    for number, signature in enumerate(program.signatures):
        _check_signature(program, f"signature {number}", signature, MAX_RESULTS)
        # call_indirect compares numbers, so equal signatures must have one number.
        earlier = numbers.setdefault(signature, number)
        if earlier != number:
            message = f"signature {number} is the same as signature {earlier}"
            raise refuse(VerifyCode.FUNCTION_SIGNATURE, message)
    for host in program.hosts:
        _check_signature(program, f"host import {host.name!r}", host.signature, 1)
    main = program.signature(0)
    if main.parameters or main.results:
        name = program.functions[0].name
        message = f"function {name!r} starts the program: () -> () expected, found {main}"
        raise refuse(VerifyCode.MAIN_SIGNATURE, message)
    if len(program.statics) > MAX_STATICS:
        message = f"{len(program.statics)} statics, at most {MAX_STATICS}"
        raise refuse(VerifyCode.STATIC_BITS, message)
    for static in program.statics:
        most = 0 if isinstance(static.type, Reference) else static.type.mask
        if not 0 <= static.bits <= most:
            expected = with_article(static.type)
            message = f"static {static.name!r} starts with {static.bits:#x}, not {expected}"
            raise refuse(VerifyCode.STATIC_BITS, message)
    for entry in program.table:
        if not 0 <= entry < len(program.functions):
            message = f"the table names function {entry}, there are {len(program.functions)}"
            raise refuse(VerifyCode.TABLE_ENTRY, message)
    _check_exports(program)
    _check_tags(program)
    end = 0
    for data in sorted(program.data, key=lambda data: data.address):
        if data.address < end or data.address + len(data.bytes) > MAX_DATA_END:
            size = f"{len(data.bytes)} bytes of data at {data.address}"
            message = f"{size} overlap others or pass {MAX_DATA_END:#x}"
            raise refuse(VerifyCode.DATA_RANGE, message)
        end = data.address + len(data.bytes)


def _check_exports(program: Program) -> None:
    names = set()
    for name, function in program.exports:
        if name in names:
            raise refusal(program, VerifyCode.EXPORT, f"two exports are named {name!r}")
        names.add(name)
        if not 0 <= function < len(program.functions):
            message = f"export {name!r} is function {function}, there are {len(program.functions)}"
            raise refusal(program, VerifyCode.EXPORT, message)


def _check_tags(program: Program) -> None:
    names = set()
    for name, parameters in program.tags:
        if name in names:
            raise refusal(program, VerifyCode.TAG, f"two tags are named {name!r}")
        names.add(name)
        if len(parameters) > MAX_TAG_VALUES:
            message = f"tag {name!r} has {len(parameters)} values, at most {MAX_TAG_VALUES}"
            raise refusal(program, VerifyCode.TAG, message)
        if name.startswith(HOST_TAG) and parameters != (Type.I64,):
            found = " ".join(map(str, parameters))
            message = f"tag {name!r} is of host exceptions: (i64) expected, found ({found})"
            raise refusal(program, VerifyCode.TAG, message)


def check_clauses(program: Program) -> ClauseForest:
    """Check that each clause is legal and that clauses nest properly. Raises VerifyError."""
    count = len(program.code)
    for number, clause in enumerate(program.clauses):
        fault = None
        if not 0 <= clause.start < clause.end <= count:
            fault = f"covers pcs {clause.start} to {clause.end - 1}, code has {count}"
        elif not 0 <= clause.handler < count:
            fault = f"has its handler at {clause.handler}, code has {count}"
        elif clause.tag is not None and not 0 <= clause.tag < len(program.tags):
            fault = f"takes tag {clause.tag}, there are {len(program.tags)}"
        elif clause.tag is not None and clause.record:
            fault = "takes one tag and pushes a record, which only one of all tags does"
        elif clause.depth < 0:
            fault = f"leaves {clause.depth} operands"
        if fault is not None:
            raise _clause_refusal(program, VerifyCode.CLAUSE, number, f" {fault}")
    try:
        return ClauseForest(program.clauses)
    except NestingFault as fault:
        kind = VerifyCode.CLAUSE_NESTING
        raise _clause_refusal(program, kind, fault.number, f": {fault}") from None


def _clause_refusal(program: Program, code: VerifyCode, number: int, fault: str) -> VerifyError:
    """The error for a clause, with the source position of the first instruction that it covers."""
    start = program.clauses[number].start
    position = program.source_map.position(start) if 0 <= start < len(program.code) else None
    return VerifyError(code, f"clause {number}{fault}", None, position)


def _check_signature(program: Program, what: str, signature: Signature, most_results: int) -> None:
    for part, types, most in (
        ("parameters", signature.parameters, MAX_PARAMETERS),
        ("results", signature.results, most_results),
    ):
        if len(types) > most:
            message = f"{what} has {len(types)} {part}, at most {most}"
            raise refusal(program, VerifyCode.FUNCTION_SIGNATURE, message)


def check_immediates(program: Program, hierarchy: TypeHierarchy) -> None:
    """Check opcode and immediate of every instruction, reachable or not. Raises VerifyError."""
    opcodes, immediates = program.code.opcodes.tolist(), program.code.immediates.tolist()
    # Opcode and reserved bytes as one number: the opcode if the reserved bytes are zero.
    heads = memoryview(program.code.tobytes()).cast("Q")[:: RECORD_BYTES // 8].tolist()
    if max(heads) >= len(INSTRUCTIONS):
        pc = next(pc for pc, head in enumerate(heads) if head >= len(INSTRUCTIONS))
        message = "reserved bytes are not zero"
        if opcodes[pc] >= len(INSTRUCTIONS):
            message = f"opcode {opcodes[pc]}, there are {len(INSTRUCTIONS)} instructions"
        raise refusal(program, VerifyCode.OPCODE, message, pc)
    limits = {
        Immediate.NONE: 1,
        Immediate.I32: 1 << 32,
        Immediate.F32: 1 << 32,
        Immediate.STATIC: len(program.statics),
        Immediate.OFFSET: 1 << 32,
        Immediate.TARGET: len(opcodes),
        Immediate.FUNCTION: len(program.functions),
        Immediate.ITEM: len(program.functions),
        Immediate.SIGNATURE: len(program.signatures),
        Immediate.HOST: len(program.hosts),
        Immediate.TAG: len(program.tags),
        Immediate.TYPE: len(hierarchy.references),
    }
    of_opcode = [limits.get(kind, _ANY) for kind in _IMMEDIATES]
    for pc, (opcode, immediate) in enumerate(zip(opcodes, immediates, strict=True)):
        if immediate < of_opcode[opcode]:
            continue
        kind = _IMMEDIATES[opcode]
        name = kind.value.partition(",")[0]
        message = f"{name} {immediate} is not below {limits[kind]}"
        if kind is Immediate.NONE:
            message = f"it takes no immediate, found {immediate}"
        raise refusal(program, VerifyCode.IMMEDIATE, message, pc)
    # `type_flow` checks reachable locals more exactly, since it knows their function.
    for pc, opcode in enumerate(opcodes):
        if opcode in _LOCALS and not -_FAR <= signed(Type.I64, immediates[pc]) < _FAR:
            message = f"local {signed(Type.I64, immediates[pc])} words from the header of the frame"
            raise refusal(program, VerifyCode.IMMEDIATE, message, pc)
    for pc, opcode in enumerate(opcodes):
        if opcode == _OPCODE["jump_table"]:
            jumps = immediates[pc] + 1
            following = opcodes[pc + 1 : pc + 1 + jumps]
            if following.count(_OPCODE["jump"]) != jumps:
                raise refusal(program, VerifyCode.JUMP_TABLE, f"{jumps} jumps must follow", pc)
    for pc, opcode in enumerate(opcodes):
        if opcode in _TYPED:
            _check_type(program, hierarchy, pc, _IMMEDIATES[opcode], immediates[pc])
    if not all(static.type is Type.I64 for static in program.statics):
        for pc, opcode in enumerate(opcodes):
            if opcode in _STATIC_INDIRECT:
                message = "every static must be i64 for statics to be numbered at run time"
                raise refusal(program, VerifyCode.STATIC_TYPES, message, pc)


def _check_type(
    program: Program, hierarchy: TypeHierarchy, pc: int, kind: Immediate, immediate: int
) -> None:
    """The immediate is the number of a struct or array type, or a field of a struct type."""
    number, field = field_of(immediate) if kind is Immediate.FIELD else (immediate, 0)
    known = hierarchy.references
    is_own = FIRST_DECLARED <= number < len(known)
    declared = hierarchy.declared(number) if is_own else None
    expected = ArrayType if kind is Immediate.ARRAY else StructType
    if not isinstance(declared, expected):
        found = f"type {number}" if number >= len(known) else str(known[number])
        what = "array of references" if expected is ArrayType else "struct"
        message = f"{found} is no {what} that the program declares"
        raise refusal(program, VerifyCode.IMMEDIATE, message, pc)
    fields = len(declared.fields) if isinstance(declared, StructType) else 0
    if kind is Immediate.FIELD and not 0 <= field < fields:
        message = f"struct {declared.name!r} has {fields} fields, not this one"
        raise refusal(program, VerifyCode.IMMEDIATE, message, pc)
